package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

// slot names the candle of one instrument and interval that trades go into now.
type series struct {
	in       market.InstrumentID
	interval Interval
}

type openCandle struct {
	Candle
	dirty bool // since the last commit
}

// follower turns durable events into the store's content. One goroutine at a
// time: that of Replay, Skip and Reconcile, then Run's.
type follower struct {
	archive *Archive
	cursor  cursor
	open    map[series]*openCandle // the changed ones of them are not in batch yet

	batch    kv.Batch
	trades   int  // in batch
	moved    bool // the cursor has, since the last commit
	synced   time.Time
	unsynced bool
	key      []byte
	value    []byte

	// prunable is the last trade that the journal keeps whatever happens: of the
	// last prune, or the recovery.
	prunableTo market.TradeID
}

// Replay takes events that the store may not have seen, in their order: those of
// the journal after Cursor, or from before it. Before Run.
func (a *Archive) Replay(events []event.Event) error {
	f := &a.follower
	for i := range events {
		// The command before has no more events.
		if whole := events[i].Seq - 1; whole > f.cursor.seq {
			f.cursor.seq, f.moved = whole, true
		}
		if err := f.apply(&events[i]); err != nil {
			return err
		}
	}
	return nil
}

// Start ends the recovery: all events up to seq have been replayed. ErrAhead: the
// store has seen later ones, see Reconcile; nothing has happened then.
func (a *Archive) Start(seq uint64) error {
	f := &a.follower
	if f.cursor.seq > seq {
		return fmt.Errorf("archive: %w: seq %d, the journal ends at %d", projection.ErrAhead, f.cursor.seq, seq)
	}
	f.cursor.seq, f.moved, f.prunableTo = seq, true, f.cursor.trade
	return f.commit(true)
}

// Run follows c until it ends, also past the end of ctx, but no longer than
// DrainTimeout then. It returns nil when the engine has stopped, else the error
// of c or the store's.
func (a *Archive) Run(ctx context.Context, c projection.Consumer) error {
	drain, cancel := projection.Drain(ctx, a.o.DrainTimeout, context.Canceled)
	defer cancel()
	return a.follower.run(drain, c)
}

func (f *follower) run(ctx context.Context, c projection.Consumer) error {
	for {
		wait, cancel := context.WithTimeout(ctx, f.archive.o.SyncEvery)
		events, err := c.Next(wait)
		cancel()
		if err != nil && (!errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil) {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			f.advance(c.CompleteSeq())
			return errors.Join(err, f.commit(true))
		}
		for ; len(events) > 0; events = c.Poll() {
			for i := range events {
				if err := f.apply(&events[i]); err != nil {
					return err
				}
			}
			c.Release(len(events))
		}
		f.advance(c.CompleteSeq())
		if err := f.commitDue(); err != nil {
			return err
		}
	}
}

// reach notes that all events up to whole have been followed.
func (f *follower) advance(whole uint64) {
	if whole > f.cursor.seq {
		f.cursor.seq, f.moved = whole, true
	}
}

// settle commits trades at once, and the cursor alone now and then.
func (f *follower) commitDue() error {
	now := time.Now()
	if f.trades == 0 && (!f.moved && !f.unsynced || now.Sub(f.synced) < f.archive.o.SyncEvery) {
		return nil
	}
	sync := now.Sub(f.synced) >= f.archive.o.SyncEvery
	if err := f.commit(sync); err != nil {
		return err
	}
	return f.archive.prune(f.archive.o.Now())
}

// apply takes one event. A trade that the store has is passed over.
func (f *follower) apply(e *event.Event) error {
	if e.Kind == event.Reference || e.Kind == event.Desk {
		return nil // they have no At
	}
	f.cursor.at = max(f.cursor.at, e.At)
	t, ok := engine.TradeOf(e)
	if !ok || t.ID <= f.cursor.trade {
		return nil
	}
	for i := Minute1; i <= Day1; i++ {
		if err := f.addToCandle(&t, series{e.Instrument, i}); err != nil {
			return err
		}
	}
	f.key, f.value = tradeKey(f.key[:0], e.Instrument, t.ID), appendTrade(f.value[:0], &t)
	f.batch.Set(f.key, f.value)
	f.cursor.trade = t.ID
	f.trades++
	f.archive.trades.Add(1)
	if f.trades >= maxBatch {
		return f.commit(false)
	}
	return nil
}

// sum adds a trade to the candle of at.
func (f *follower) addToCandle(t *engine.Trade, at series) error {
	open := at.interval.openTime(t.At)
	if open < f.cursor.gapEnd {
		return nil // it would miss what is missing
	}
	c := f.open[at]
	switch {
	case c == nil:
		kept, err := f.storedCandle(at, open)
		if err != nil {
			return err
		}
		c = &openCandle{Candle: kept}
		f.open[at] = c
	case c.OpenAt != open:
		if c.dirty { // the batch has trades of two candles
			f.putCandle(at, &c.Candle)
		}
		*c = openCandle{Candle: Candle{OpenAt: open}}
	}
	c.add(t)
	c.dirty = true
	return nil
}

// stored returns the candle that the store has there, or a new one.
func (f *follower) storedCandle(at series, open int64) (Candle, error) {
	key := candleKey(nil, at.in, at.interval, open)
	value, ok, err := f.archive.store.Get(key)
	if err != nil || !ok {
		return Candle{OpenAt: open}, err
	}
	return parseCandle(key, value)
}

// write adds a candle to the batch.
func (f *follower) putCandle(at series, c *Candle) {
	f.key, f.value = candleKey(f.key[:0], at.in, at.interval, c.OpenAt), appendCandle(f.value[:0], c)
	f.batch.Set(f.key, f.value)
}

// commit writes what has changed and the cursor, in one step.
func (f *follower) commit(sync bool) error {
	for at, c := range f.open {
		if c.dirty {
			f.putCandle(at, &c.Candle)
			c.dirty = false
		}
	}
	f.value = appendCursor(f.value[:0], f.cursor)
	if err := f.archive.store.Commit(f.cursor.seq, f.value, f.batch.Fill, sync); err != nil {
		return err
	}
	f.archive.commits.Add(1)
	f.batch.Reset()
	f.trades, f.moved, f.unsynced = 0, false, !sync
	if sync {
		f.synced = time.Now()
	}
	return nil
}
