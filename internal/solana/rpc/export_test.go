package rpc

import "time"

const MaxBatch = maxBatch

// SplitList is splitList.
func SplitList(text []byte, most int) ([][]byte, bool) { return splitList(text, most) }

// SetGatherFor changes the longest wait for a batch.
func (c *Client) SetGatherFor(d time.Duration) {
	for _, u := range c.upstreams {
		u.batches.gatherFor = d
	}
}

// Waiting returns how many requests to the first node wait for a batch.
func (c *Client) Waiting() int { return c.WaitingAt(0) }

// WaitingAt returns how many requests to a node wait for a batch.
func (c *Client) WaitingAt(node int) int {
	b := &c.upstreams[node].batches
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// UnderWay returns how many requests and batches the first node has not answered.
func (c *Client) UnderWay() int {
	b := &c.upstreams[0].batches
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.underWay
}
