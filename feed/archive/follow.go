package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

// series identifies the candles of one instrument and interval.
type series struct {
	in       market.InstrumentID
	interval Interval
}

type openCandle struct {
	Candle
	dirty bool // since the last commit
}

// follower applies durable events to the store. It belongs to one goroutine: that of
// Replay, Skip and Reconcile, then that of Run.
type follower struct {
	archive *Archive
	cursor  cursor
	open    map[series]*openCandle // dirty ones are not in batch yet

	batch    kv.Batch
	trades   int  // in batch
	moved    bool // the cursor, since the last commit
	synced   time.Time
	unsynced bool
	key      []byte
	value    []byte
	traders  traders

	definitions definitions

	// prunableTo is the last trade that the journal cannot lose any more: as of the last
	// prune or the recovery.
	prunableTo market.TradeID
}

// Replay applies events that the store may not have, in order: those of the journal after
// Cursor, or from before it. It is called before Run.
func (a *Archive) Replay(events []event.Event) error {
	f := &a.follower
	for i := range events {
		f.advance(events[i].Seq - 1) // the command before has no more events
		if err := f.apply(&events[i]); err != nil {
			return err
		}
	}
	return nil
}

// Start ends the recovery: all events up to seq have been replayed. ErrAhead: the store
// has later ones (see Reconcile), and Start has changed nothing.
func (a *Archive) Start(seq uint64) error {
	f := &a.follower
	if f.cursor.seq > seq {
		return fmt.Errorf("archive: %w: the store is at seq %d, the journal ends at %d", projection.ErrAhead, f.cursor.seq, seq)
	}
	f.cursor.seq, f.moved, f.prunableTo = seq, true, f.cursor.trade
	return f.commit(true)
}

// Run follows c until its end, and after the end of ctx for at most DrainTimeout. It
// returns nil if the engine has stopped, else the error of c or of the store.
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
		if err := f.archive.prune(f.archive.o.Now()); err != nil {
			return err
		}
	}
}

// advance records that all events up to seq have been applied.
func (f *follower) advance(seq uint64) {
	if seq > f.cursor.seq {
		f.cursor.seq, f.moved = seq, true
	}
}

// commitDue commits trades at once, and a moved cursor every SyncEvery.
func (f *follower) commitDue() error {
	now := time.Now()
	if f.trades == 0 && (!f.moved && !f.unsynced || now.Sub(f.synced) < f.archive.o.SyncEvery) {
		return nil
	}
	return f.commit(now.Sub(f.synced) >= f.archive.o.SyncEvery)
}

// apply applies one event. It skips a trade that is already stored.
func (f *follower) apply(e *event.Event) error {
	if e.Kind == event.Reference || e.Kind == event.Desk {
		return nil // no At
	}
	f.cursor.at = max(f.cursor.at, e.At)
	if e.Kind == event.InstrumentSet {
		f.addDefinition(e)
		return nil
	}
	t, ok := marketdata.TradeOf(e)
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
	f.addTraders(e, t.ID)
	f.cursor.trade = t.ID
	f.trades++
	f.archive.trades.Add(1)
	if f.trades >= maxBatch {
		return f.commit(false)
	}
	return nil
}

// addToCandle adds a trade to the current candle of a series.
func (f *follower) addToCandle(t *marketdata.Trade, at series) error {
	open := at.interval.openTime(t.At)
	if open < f.cursor.gapEnd {
		return nil // the candle would miss trades of the gap
	}
	c := f.open[at]
	switch {
	case c == nil:
		stored, err := f.storedCandle(at, open)
		if err != nil {
			return err
		}
		c = &openCandle{Candle: stored}
		f.open[at] = c
	case c.OpenAt != open:
		if c.dirty { // the batch has trades of two candles of this series
			f.putCandle(at, &c.Candle)
		}
		*c = openCandle{Candle: Candle{OpenAt: open}}
	}
	c.add(t)
	c.dirty = true
	return nil
}

// storedCandle returns the stored candle that opens at open, or a new one.
func (f *follower) storedCandle(at series, open int64) (Candle, error) {
	key := candleKey(nil, at.in, at.interval, open)
	value, ok, err := f.archive.store.Get(key)
	if err != nil || !ok {
		return Candle{OpenAt: open}, err
	}
	return parseCandle(key, value)
}

// putCandle adds a candle to the batch.
func (f *follower) putCandle(at series, c *Candle) {
	f.key, f.value = candleKey(f.key[:0], at.in, at.interval, c.OpenAt), appendCandle(f.value[:0], c)
	f.batch.Set(f.key, f.value)
}

// commit commits the batch, the changed candles and the cursor in one step.
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
