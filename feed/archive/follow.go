package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// Consumer is what Run follows: engine.Consumer.
type Consumer interface {
	Next(ctx context.Context) ([]event.Event, error)
	Poll() []event.Event
	Release(n int)
	// Whole is the highest Seq whose events have all been returned.
	Whole() uint64
}

// slot names the candle of one instrument and interval that trades go into now.
type slot struct {
	in       market.InstrumentID
	interval Interval
}

type openCandle struct {
	Candle
	dirty bool // since the last commit
}

// closedCandle is one that changed since the last commit and takes no more.
type closedCandle struct {
	slot
	Candle
}

type newTrade struct {
	in market.InstrumentID
	engine.Trade
}

// follower turns durable events into the store's content. One goroutine at a
// time: that of Replay, Skip and Rebase, then Run's.
type follower struct {
	archive *Archive
	place   cursor
	open    map[slot]*openCandle

	fresh    []newTrade // since the last commit
	closed   []closedCandle
	moved    bool // the cursor has, since the last commit
	synced   time.Time
	unsynced bool
	key      []byte
	value    []byte

	// prunable is the last trade that the journal keeps whatever happens: of the
	// last prune, or the recovery.
	prunable market.TradeID

	committed, durable atomic.Uint64
}

// load reads the cursor; the open candles are read when a trade needs them.
func (f *follower) load() error {
	value, ok, err := f.archive.store.Get([]byte{keyCursor})
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if ok {
		if f.place, err = parseCursor(value); err != nil {
			return err
		}
	}
	f.committed.Store(f.place.whole)
	f.durable.Store(f.place.whole)
	return nil
}

// Replay takes events that the store may not have seen, in their order: those of
// the journal after Cursor, or from before it. Before Run.
func (a *Archive) Replay(events []event.Event) error {
	f := &a.follower
	for i := range events {
		// The command before has no more events.
		if whole := events[i].Seq - 1; whole > f.place.whole {
			f.place.whole, f.moved = whole, true
		}
		if err := f.apply(&events[i]); err != nil {
			return err
		}
	}
	return nil
}

// Start ends the recovery: all events up to seq have been replayed. ErrAhead: the
// store has seen later ones, see Rebase; nothing has happened then.
func (a *Archive) Start(seq uint64) error {
	f := &a.follower
	if f.place.whole > seq {
		return fmt.Errorf("%w: seq %d, the journal ends at %d", ErrAhead, f.place.whole, seq)
	}
	f.place.whole, f.moved, f.prunable = seq, true, f.place.trade
	return f.commit(nil, true)
}

// Run follows c until it ends, also past the end of ctx, but no longer than
// DrainTimeout then. It returns nil when the engine has stopped, else the error
// of c or the store's.
func (a *Archive) Run(ctx context.Context, c Consumer) error {
	drain, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(a.o.DrainTimeout):
			cancel()
		case <-drain.Done():
		}
	})
	defer stop()
	return a.follower.run(drain, c)
}

func (f *follower) run(ctx context.Context, c Consumer) error {
	for {
		wait, cancel := context.WithTimeout(ctx, f.archive.o.SyncEvery)
		events, err := c.Next(wait)
		cancel()
		if err != nil && (!errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil) {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			f.reach(c.Whole())
			return errors.Join(err, f.commit(nil, true))
		}
		for ; len(events) > 0; events = c.Poll() {
			for i := range events {
				if err := f.apply(&events[i]); err != nil {
					return err
				}
			}
			c.Release(len(events))
		}
		f.reach(c.Whole())
		if err := f.settle(); err != nil {
			return err
		}
	}
}

// reach notes that all events up to whole have been followed.
func (f *follower) reach(whole uint64) {
	if whole > f.place.whole {
		f.place.whole, f.moved = whole, true
	}
}

// settle commits trades at once, and the cursor alone now and then.
func (f *follower) settle() error {
	now := time.Now()
	if len(f.fresh) == 0 && (!f.moved && !f.unsynced || now.Sub(f.synced) < f.archive.o.SyncEvery) {
		return nil
	}
	sync := now.Sub(f.synced) >= f.archive.o.SyncEvery
	if err := f.commit(nil, sync); err != nil {
		return err
	}
	return f.archive.prune(f.archive.o.Now())
}

// apply takes one event. A trade that the store has is passed over.
func (f *follower) apply(e *event.Event) error {
	if e.Kind == event.Reference || e.Kind == event.Desk {
		return nil // they have no At
	}
	f.place.at = max(f.place.at, e.At)
	told, ok := engine.TradeOf(e)
	if !ok || told.ID <= f.place.trade {
		return nil
	}
	t := newTrade{e.Instrument, told}
	for i := Minute1; i <= Day1; i++ {
		if err := f.sum(&t, i); err != nil {
			return err
		}
	}
	f.place.trade = told.ID
	f.fresh = append(f.fresh, t)
	f.archive.trades.Add(1)
	if len(f.fresh) >= maxBatch {
		return f.commit(nil, false)
	}
	return nil
}

// sum takes a trade into its candle.
func (f *follower) sum(t *newTrade, i Interval) error {
	open := i.opens(t.At)
	if open < f.place.floor {
		return nil // it would miss what is missing
	}
	at := slot{t.in, i}
	c := f.open[at]
	switch {
	case c == nil:
		kept, err := f.stored(at, open)
		if err != nil {
			return err
		}
		c = &openCandle{Candle: kept}
		f.open[at] = c
	case c.OpenAt != open:
		if c.dirty { // the batch has trades of two candles
			f.closed = append(f.closed, closedCandle{at, c.Candle})
		}
		*c = openCandle{Candle: Candle{OpenAt: open}}
	}
	c.add(&t.Trade)
	c.dirty = true
	return nil
}

// stored returns the candle that the store has there, or a new one.
func (f *follower) stored(at slot, open int64) (Candle, error) {
	key := candleKey(nil, at.in, at.interval, open)
	value, ok, err := f.archive.store.Get(key)
	switch {
	case err != nil:
		return Candle{}, fmt.Errorf("archive: %w", err)
	case !ok:
		return Candle{OpenAt: open}, nil
	}
	return parseCandle(key, value)
}

// commit deletes the cuts, then writes what has changed and the cursor, in one
// step.
func (f *follower) commit(cuts []cut, sync bool) error {
	err := f.archive.commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		for _, c := range cuts {
			deleteRange(c.lo, c.hi)
		}
		for i := range f.fresh {
			t := &f.fresh[i]
			f.key, f.value = tradeKey(f.key[:0], t.in, t.ID), appendTrade(f.value[:0], &t.Trade)
			set(f.key, f.value)
		}
		write := func(at slot, c *Candle) {
			f.key, f.value = candleKey(f.key[:0], at.in, at.interval, c.OpenAt), appendCandle(f.value[:0], c)
			set(f.key, f.value)
		}
		for i := range f.closed {
			write(f.closed[i].slot, &f.closed[i].Candle)
		}
		for at, c := range f.open {
			if c.dirty {
				write(at, &c.Candle)
			}
		}
		f.value = appendCursor(f.value[:0], f.place)
		set([]byte{keyCursor}, f.value)
	}, sync)
	if err != nil {
		return err
	}
	for _, c := range f.open {
		c.dirty = false
	}
	f.fresh, f.closed, f.moved, f.unsynced = f.fresh[:0], f.closed[:0], false, !sync
	f.committed.Store(f.place.whole)
	if sync {
		f.synced = time.Now()
		f.durable.Store(f.place.whole)
	}
	return nil
}
