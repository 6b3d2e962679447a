package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"blockdesk/internal/solana"
)

// Blockhash is a recent blockhash.
type Blockhash struct {
	Hash solana.Hash
	// LastValidBlockHeight is the height of the last block that a transaction
	// with this blockhash can be in.
	LastValidBlockHeight uint64
	// Slot is the slot of the answer, FetchedAt the time of the request.
	Slot      uint64
	FetchedAt time.Time
}

// Blockhash returns a recent blockhash: the one that Run has fetched or, if that is
// older than Options.MaxBlockhashAge, a new one.
func (c *Client) Blockhash(ctx context.Context) (Blockhash, error) {
	if b, ok := c.cachedBlockhash(); ok {
		return b, nil
	}
	c.fetching.Lock()
	defer c.fetching.Unlock()
	if b, ok := c.cachedBlockhash(); ok { // another goroutine has fetched it
		return b, nil
	}
	return c.refresh(ctx)
}

func (c *Client) cachedBlockhash() (Blockhash, bool) {
	c.hashMu.Lock()
	defer c.hashMu.Unlock()
	return c.hash, !c.hash.FetchedAt.IsZero() && time.Since(c.hash.FetchedAt) < c.options.MaxBlockhashAge
}

// refresh fetches the latest blockhash and caches it, unless a node that is behind has
// answered with an older one.
func (c *Client) refresh(ctx context.Context) (Blockhash, error) {
	asked := time.Now()
	b, err := call(ctx, c, true, "getLatestBlockhash", func(result json.RawMessage) (b Blockhash, err error) {
		v, err := withContext[*struct {
			Blockhash string  `json:"blockhash"`
			Height    *uint64 `json:"lastValidBlockHeight"`
		}](result)
		if err != nil {
			return b, err
		}
		if v.Value == nil || v.Value.Height == nil {
			return b, errMissing
		}
		b = Blockhash{LastValidBlockHeight: *v.Value.Height, Slot: v.Context.Slot, FetchedAt: asked}
		b.Hash, err = solana.ParseHash(v.Value.Blockhash)
		return b, err
	}, object{"commitment": c.options.BlockhashCommitment})
	if err != nil {
		return Blockhash{}, fmt.Errorf("blockhash: %w", err)
	}
	c.hashMu.Lock()
	defer c.hashMu.Unlock()
	fresh := time.Since(c.hash.FetchedAt) < c.options.MaxBlockhashAge
	if !fresh || b.LastValidBlockHeight >= c.hash.LastValidBlockHeight {
		c.hash = b
	}
	return c.hash, nil
}

// Run fetches blockhashes and probes each node until the context ends. A node's failure
// is in [Client.Health] and does not end Run. The client also works without Run, but slower.
func (c *Client) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, u := range c.upstreams {
		wg.Go(func() { every(ctx, c.options.ProbeEvery, func() { c.probe(ctx, u) }) })
	}
	every(ctx, c.options.BlockhashEvery, func() {
		c.fetching.Lock()
		defer c.fetching.Unlock()
		_, _ = c.refresh(ctx) // a failure is in the nodes' health
	})
	wg.Wait()
	c.Close()
	return nil
}

// every calls do at once and at each tick until the context ends.
func every(ctx context.Context, period time.Duration, do func()) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// probe reads one node's slot.
func (c *Client) probe(ctx context.Context, u *upstream) {
	if slot, err := callNode(ctx, c, u, "getSlot", number, object{"commitment": Processed}); err == nil {
		u.setSlot(slot)
	}
}
