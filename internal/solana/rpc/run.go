package rpc

import (
	"context"
	"encoding/json"
	"errors"
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
// answered with an older one. The caller holds fetching.
func (c *Client) refresh(ctx context.Context) (Blockhash, error) {
	b, err := c.latest(ctx)
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

// latest returns a recent blockhash: that of the only node, or one that a majority of the
// configured nodes has in a block, with a height that a minority cannot lower. A
// transaction counts as expired above that height: a single node that lowers it would have
// the desk sign again what can still land.
//
// A round asks the nodes about the blockhash that one of them had in the round before,
// because nodes that are a little behind do not know the newest one. The next offer is
// another node's, because one may offer what nobody knows. Errors: [ErrNoMajority], joined
// with the [Error] of a node that fails if there is one; the context's.
func (c *Client) latest(ctx context.Context) (b Blockhash, err error) {
	if len(c.upstreams) == 1 {
		asked := time.Now()
		b, err = call(ctx, c, true, "getLatestBlockhash", latestBlockhash, object{"commitment": c.options.BlockhashCommitment})
		b.FetchedAt = asked
		return b, err
	}
	var votes []blockhashVote
	for range len(c.upstreams) + 1 {
		if votes, err = c.voteOnBlockhash(ctx, c.offered.Hash); err != nil {
			return b, err
		}
		b = c.offered
		if next, ok := nextOffer(votes, c.offers); ok {
			c.offered, c.offers = next, c.offers+1
		}
		if height, ok := commonHeight(votes); ok {
			b.LastValidBlockHeight = height
			return b, nil
		}
	}
	err = fmt.Errorf("%w", ErrNoMajority)
	for i := range votes {
		if votes[i].err != nil {
			return b, errors.Join(err, votes[i].err)
		}
	}
	return b, err
}

// voteOnBlockhash asks every node whether it has a blockhash in a block, and then for the
// newest one, until a majority has answered yes. A zero hash asks for the newest only.
func (c *Client) voteOnBlockhash(ctx context.Context, hash solana.Hash) ([]blockhashVote, error) {
	at := object{"commitment": c.options.BlockhashCommitment}
	e := allNodes[blockhashVote]{client: c, call: func(ctx context.Context, u *upstream, _ int) (v blockhashVote) {
		if hash != (solana.Hash{}) {
			if v.valid, v.err = callNode(ctx, c, u, "isBlockhashValid", withContext[bool], hash.String(), at); v.err != nil {
				return v
			}
		}
		asked := time.Now()
		v.newest, v.err = callNode(ctx, c, u, "getLatestBlockhash", latestBlockhash, at)
		v.newest.FetchedAt = asked
		return v
	}}
	if hash != (solana.Hash{}) {
		e.enough = func(votes []blockhashVote) bool { _, ok := commonHeight(votes); return ok }
	}
	return e.Run(ctx)
}

// latestBlockhash decodes getLatestBlockhash's result.
func latestBlockhash(result json.RawMessage) (b Blockhash, err error) {
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
	b = Blockhash{LastValidBlockHeight: *v.Value.Height, Slot: v.Context.Slot}
	b.Hash, err = solana.ParseHash(v.Value.Blockhash)
	return b, err
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
