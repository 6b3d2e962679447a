package engine

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// Position returns a point in the engine's events: everything that anybody has been
// told by now lies before it. Consumer.Await waits for it. Safe from any goroutine.
func (e *Engine) Position() uint64 { return e.egress.published.Load() }

// Await returns nil once all events before mark, of this engine's Position, are durable
// and c has released them: who reads, behind c, what those events have changed then
// knows what any other consumer had told before the mark was taken. It is for reads
// that must not be older than what another surface has acknowledged. Other than c's
// other methods it may be called from any goroutine, by many at once.
//
// Errors: ErrStopped once the engine has ended or c is closed; ErrReadOnly once the
// journal has failed, since events before mark may never be durable then; ctx's.
func (c *Consumer) Await(ctx context.Context, mark uint64) error {
	for {
		// Most have not to wait, and leave the consumer's goroutine nothing to do.
		if over, err := c.reached(mark); over {
			return err
		}
		again := c.awaited.join(mark)
		if over, err := c.reached(mark); over {
			return err
		}
		select {
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reached reports whether there is nothing to wait for, or no longer.
func (c *Consumer) reached(mark uint64) (over bool, err error) {
	switch at := c.cursor.Load(); {
	case at == math.MaxUint64:
		return true, ErrStopped
	case at >= mark:
		return true, nil
	case c.engine.ended.Load():
		return true, ErrStopped
	case c.engine.failed() != nil:
		return true, ErrReadOnly
	}
	return false, nil
}

// giveUp has every Await look again: what it waits for may never come.
func (g *egress) giveUp() {
	for _, c := range g.consumers {
		c.awaited.reach(math.MaxUint64)
	}
}

// awaited tells those who wait for a cursor that it has come to the lowest position
// that one of them waits for. It costs the consumer one load while nobody does.
type awaited struct {
	lowest atomic.Uint64 // the largest number: nobody waits

	mu    sync.Mutex
	moved chan struct{} // closed when lowest is reached; nil while nobody waits
}

// join notes that somebody waits for the position mark. The channel is closed once
// the lowest of all such positions is reached: look again then.
func (a *awaited) join(mark uint64) (moved <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.moved == nil {
		a.moved = make(chan struct{})
	}
	a.lowest.Store(min(a.lowest.Load(), mark))
	return a.moved
}

// reach tells that the cursor is at at, which was stored before: either this sees
// that somebody waits, or who joins sees the cursor.
func (a *awaited) reach(at uint64) {
	if at < a.lowest.Load() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lowest.Store(math.MaxUint64)
	if a.moved != nil {
		close(a.moved)
		a.moved = nil
	}
}
