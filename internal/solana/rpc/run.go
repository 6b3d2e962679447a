package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"blockdesk/internal/solana"
)

// Blockhash is what a transaction lives by.
type Blockhash struct {
	Hash solana.Hash
	// LastValidBlockHeight is the height of the last block that a transaction
	// with this blockhash can be in.
	LastValidBlockHeight uint64
	// Slot is the slot that it is as of, FetchedAt when we asked.
	Slot      uint64
	FetchedAt time.Time
}

// Blockhash returns a recent blockhash: the one that Run keeps, or, where that
// is older than Options.MaxBlockhashAge, one asked for now.
func (c *Client) Blockhash(ctx context.Context) (Blockhash, error) {
	if b, ok := c.cachedBlockhash(); ok {
		return b, nil
	}
	c.fetching.Lock()
	defer c.fetching.Unlock()
	if b, ok := c.cachedBlockhash(); ok { // somebody else has fetched it meanwhile
		return b, nil
	}
	return c.refresh(ctx)
}

func (c *Client) cachedBlockhash() (Blockhash, bool) {
	c.hashMu.Lock()
	defer c.hashMu.Unlock()
	return c.hash, !c.hash.FetchedAt.IsZero() && time.Since(c.hash.FetchedAt) < c.options.MaxBlockhashAge
}

// refresh asks for the latest blockhash and keeps it, unless a node that is
// behind has answered with an older one than is kept.
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

// Run keeps a recent blockhash and probes each node, until the context ends. A
// node that fails is a matter of [Client.Health], not of Run. The client works
// without Run, slower.
func (c *Client) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, u := range c.upstreams {
		wg.Go(func() { every(ctx, c.options.ProbeEvery, func() { c.probe(ctx, u) }) })
	}
	every(ctx, c.options.BlockhashEvery, func() {
		c.fetching.Lock()
		defer c.fetching.Unlock()
		_, _ = c.refresh(ctx) // the failure is in the nodes' health
	})
	wg.Wait()
	c.Close()
	return nil
}

// every does something now and at each tick until the context ends.
func every(ctx context.Context, pace time.Duration, do func()) {
	ticker := time.NewTicker(pace)
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

// probe asks one node for its slot.
func (c *Client) probe(ctx context.Context, u *upstream) {
	q, err := newRequest(c, "getSlot", number, []any{object{"commitment": Processed}})
	if err != nil {
		return // it is always the same request, which a test sends
	}
	if slot, err := attempt(ctx, c, u, &q); err == nil {
		u.setSlot(slot)
	}
}
