package mirror

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"blockdesk/market"
)

const (
	// publishEvery is the number of transactions that are read before their swaps are
	// published.
	publishEvery = 64
	// numberBatch is the number of swaps that get ordinals in one commit, rounded up to
	// whole transactions.
	numberBatch = 4096
	// maxUnconfirmed bounds the trades that were submitted to the engine and are not
	// durable yet.
	maxUnconfirmed = 4096
	// maxFinalityLag is the number of slots by which a node's final slot may be behind
	// the slot of the accounts before the node counts as behind.
	maxFinalityLag = 150
	// traceSlack is how long traces are kept beyond the week's window.
	traceSlack = time.Hour
)

// swapTracker reads the swaps of one pair and publishes each to the engine once.
//
// A transaction is stored together with the cursor that has read it. Once the past is
// read, stored swaps get ordinals, oldest first. A swap is published after its ordinal is
// on disk. After a crash the engine's last ordinal says where to continue: the same swap
// has the same ordinal, and the engine takes no ordinal twice.
type swapTracker struct {
	o      *Options
	engine Engine
	reader *reader
	pair   *Pair
	store  *records

	// Of run. backfill is nil before the records were read, and after a failed write.
	lists     listQuorum
	backfill  *Backfill
	windows   *Windows
	head      head
	toLots    market.Ratio
	snapshots []Snapshot
	// submitted is the last submitted ordinal, confirmed the last durable one, and
	// confirmedAt the time when confirmed last grew, or when trades were submitted
	// again.
	submitted, confirmed uint64
	confirmedAt          time.Time

	mu        sync.Mutex
	published SwapState
	reasons   Reasons
	err       error
}

// run reads the history every cycle, from when the vaults are known until ctx ends.
func (s *swapTracker) run(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.reader.opened:
	}
	every(ctx, s.o.Every, s.reader.offset, func() {
		err := s.poll(ctx)
		if errors.Is(err, errStore) {
			s.backfill = nil // memory differs from the disk
		}
		s.publishState(err)
	})
}

// poll reads until there is nothing new, or until the rest must wait for the next cycle.
func (s *swapTracker) poll(ctx context.Context) error {
	if s.backfill == nil {
		if err := s.load(); err != nil {
			return err
		}
	}
	begun := s.o.Now()
	if !s.reader.clockPlausible(begun) {
		// With a wrong clock of ours, block times would be recorded as impossible
		// for good.
		return fmt.Errorf("%w: %w", ErrHistory, errClock)
	}
	slot := s.reader.state(begun).At.Slot
	s.backfill.Poll(begun, slot-min(slot, maxFinalityLag))
	s.lists.disagreement = nil
	for n := 1; ctx.Err() == nil && s.backfill.Next().Kind != 0; n++ {
		if err := s.step(ctx); err != nil {
			if errors.Is(err, errStore) {
				return err
			}
			return errors.Join(err, s.publishTrades())
		}
		if n%publishEvery == 0 {
			if err := s.publishTrades(); err != nil {
				return err
			}
			s.publishState(s.lists.disagreement)
		}
		if s.o.Now().Sub(begun) >= s.o.Every {
			break // new transactions come before more of the past
		}
	}
	return errors.Join(s.lists.disagreement, s.publishTrades(), s.prune(), s.takeSnapshot(ctx))
}

// load loads the stored records.
func (s *swapTracker) load() error {
	s.head = head{}
	if _, err := s.store.get(s.store.key('h'), &s.head); err != nil {
		return err
	}
	durable := s.engine.Durable(s.pair.Instrument.ID)
	if durable.Ordinal > s.head.Numbered {
		// The store was lost or restored from an old backup, or another pool was mirrored
		// meanwhile: the engine has ordinals of swaps that the store lacks. Published swaps
		// are known by their time only, and the engine replaces a block's time that is
		// ahead of its own. So omit a swap rather than publish it twice or under the
		// ordinal of another swap.
		s.head.Numbered, s.head.MayOverlap = durable.Ordinal, true
		s.head.Last = swapRef{Time: time.Unix(0, durable.TradedAt).Add(s.o.MaxAhead).Unix()}
	}
	s.submitted, s.confirmed, s.confirmedAt = durable.Ordinal, durable.Ordinal, s.o.Now()
	var err error
	if s.snapshots, err = s.store.snapshots(); err != nil {
		return err
	}
	if s.windows, err = NewWindows(WindowOptions{MaxAge: s.maxAge(), MaxAhead: s.o.MaxAhead}); err != nil {
		return err
	}
	var broken error
	err = s.store.traces(s.head.Run, s.head.First, s.head.Next, func(_ int64, t *Trace, failed bool) bool {
		p := Progress{Kind: ReadNewer, Trace: *t}
		if failed {
			p.Err = ErrRecord
		}
		_, broken = s.windows.Apply(&p)
		return broken == nil
	})
	if err := errors.Join(err, broken); err != nil {
		return storeError(err)
	}
	s.windows.resume(s.head.Totals)
	in := s.pair.Instrument
	if s.toLots, err = market.NewRatio(nil, []uint64{in.Lot}, int(in.QtyDecimals)-int(s.pair.Base.Decimals)); err != nil {
		return err
	}
	pool := s.pair.poolListing()
	s.backfill, err = NewBackfill(BackfillOptions{Pair: s.reader.vaults, Account: pool.history(), Horizon: max(s.o.Lookback, 0), MaxAhead: s.o.MaxAhead}, s.head.Cursor)
	return err
}

// step makes one request and stores its result.
func (s *swapTracker) step(ctx context.Context) error {
	p, err := s.backfill.Step(ctx, &s.lists)
	if err != nil {
		return err
	}
	counted, err := s.windows.Apply(&p)
	if errors.Is(err, ErrOrder) {
		// The nodes now contradict what was read.
		p = s.backfill.restart()
		counted, err = s.windows.Apply(&p)
	}
	if err != nil {
		return err
	}
	h := &s.head
	h.Cursor, h.Totals = s.backfill.Cursor(), s.windows.At(s.o.Now()).Totals
	at := h.Next
	switch {
	case p.Kind == Restarted:
		return s.beginRun()
	case !counted:
		return nil // nothing was read, or it is already stored
	case p.Kind == ReadNewer:
		h.Next++
	default:
		h.First--
		at = h.First
	}
	payer := s.store.key('p', p.Trace.Payer[:])
	trader, err := s.newTrader(&p.Trace, payer)
	if err != nil {
		return err
	}
	if trader {
		h.Traders++
	}
	return commit(s.store.kv, false, func(set func(key, value []byte), _ func(lo, hi []byte)) {
		set(s.store.traceKey(h.Run, at), encodeTrace(&p.Trace, p.Err != nil))
		set(s.store.key('h'), encode(nil, h))
		if trader {
			set(payer, []byte{recordVersion})
		}
	})
}

// newTrader reports whether a transaction has a swap and its fee payer must be
// counted as a new trader.
func (s *swapTracker) newTrader(t *Trace, key []byte) (bool, error) {
	if t.swaps() == 0 || s.head.Traders >= MaxTraders {
		return false, nil
	}
	_, known, err := s.store.kv.Get(key)
	return !known && err == nil, storeError(err)
}

// beginRun begins a run that may not join the run before. It deletes the traces of the
// run before; swaps with ordinals stay.
func (s *swapTracker) beginRun() error {
	h := &s.head
	h.Run++
	h.First, h.Next, h.NumberedTo = 0, 0, math.MinInt64
	h.MayOverlap = h.Numbered > 0
	return commit(s.store.kv, true, func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		deleteRange(s.store.traceKey(0, math.MinInt64), s.store.traceKey(h.Run, math.MinInt64))
		set(s.store.key('h'), encode(nil, h))
	})
}

// publishTrades numbers swaps and submits those with ordinals to the engine.
func (s *swapTracker) publishTrades() error {
	done, exhausted := s.backfill.PastRead()
	full := s.head.Next-s.head.First >= s.o.MaxPendingSwaps
	// Once the run has its first ordinal, older swaps get none.
	for h := &s.head; done || exhausted || full || h.NumberedTo > math.MinInt64; {
		from := max(h.NumberedTo, h.First)
		if from >= h.Next {
			break
		}
		if err := s.numberSwaps(from, min(from+scanBatch, h.Next)); err != nil {
			return err
		}
	}
	durable := s.engine.Durable(s.pair.Instrument.ID).Ordinal
	now := s.o.Now()
	switch {
	case durable > s.confirmed || s.submitted <= durable:
		s.confirmedAt = now
	case now.Sub(s.confirmedAt) > max(s.o.Every, 5*time.Second):
		s.submitted, s.confirmedAt = durable, now // submit again what was lost
	}
	s.confirmed, s.submitted = durable, max(s.submitted, durable)
	for s.submitted < s.head.Numbered && s.submitted-s.confirmed < maxUnconfirmed {
		var r swapRecord
		ok, err := s.store.get(s.store.key('s', number(s.submitted+1)), &r)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%w: %w: swap %d is missing", errStore, ErrRecord, s.submitted+1)
		}
		if err := s.engine.Trade(r.trade(s.pair.Instrument.ID)); err != nil {
			return fmt.Errorf("%w: trade %d: %w", errEngine, r.Ordinal, err)
		}
		s.submitted++
	}
	return nil
}

func (r *swapRecord) trade(in market.InstrumentID) Trade {
	return Trade{in, r.Ordinal, r.Price, r.Qty, r.Side, r.Ref.Time * int64(time.Second), r.Ref.Slot}
}

// numberSwaps gives ordinals to swaps of the traces with positions in [from, to),
// up to about numberBatch swaps, and returns once the ordinals are on disk.
func (s *swapTracker) numberSwaps(from, to int64) error {
	h := s.head
	var out []swapRecord
	err := s.store.traces(h.Run, from, to, func(at int64, t *Trace, _ bool) bool {
		for i := range t.Movements {
			f, ok := t.swap(i)
			if !ok || h.alreadyNumbered(&f) {
				continue
			}
			r, ok := s.toRecord(&f)
			if !ok {
				h.OmittedSwaps++
				continue
			}
			h.Numbered++
			r.Ordinal, r.Payer, h.Last = h.Numbered, t.Payer, r.Ref
			out = append(out, r)
		}
		h.NumberedTo = at + 1
		return len(out) < numberBatch
	})
	if err != nil {
		return err
	}
	err = commit(s.store.kv, true, func(set func(key, value []byte), _ func(lo, hi []byte)) {
		for i := range out {
			set(s.store.key('s', number(out[i].Ordinal)), encode(nil, &out[i]))
		}
		set(s.store.key('h'), encode(nil, &h))
	})
	if err == nil {
		s.head = h
	}
	return err
}

// alreadyNumbered reports whether a swap of a run that may not join the run before
// already has an ordinal from that run, and detects where the runs join.
func (h *head) alreadyNumbered(f *CountedSwap) bool {
	last := &h.Last
	switch {
	case !h.MayOverlap:
		return false
	case last.Key == f.Key:
		h.MayOverlap = false // this swap has an ordinal; later ones have none
		return true
	case last.Slot > 0 && f.Slot > last.Slot, last.Slot == 0 && f.Time > last.Time:
		h.MayOverlap = false
		return false
	default:
		return true
	}
}

// toRecord converts a swap to the instrument's units: the price rounded up for a buy and
// down for a sell, the size down. ok is false if the result is out of range or the time
// unknown.
func (s *swapTracker) toRecord(f *CountedSwap) (r swapRecord, ok bool) {
	in := s.pair.Instrument
	exp10 := int(in.PriceDecimals) + int(s.pair.Base.Decimals) - int(s.pair.Quote.Decimals)
	ratio, err := market.NewRatio(nil, []uint64{uint64(f.Base), in.Tick}, exp10)
	if err != nil || f.Time <= 0 {
		return r, false
	}
	round := ratio.Floor
	if f.Side == market.Buy {
		round = ratio.Ceil
	}
	price, err1 := round(market.Uint128{Lo: uint64(f.Quote)})
	qty, err2 := s.toLots.Floor(market.Uint128{Lo: uint64(f.Base)})
	if err1 != nil || err2 != nil || price < 1 || price > uint64(in.MaxPrice) || qty < 1 || qty > uint64(market.MaxQty) {
		return r, false
	}
	mark := swapRef{f.Key, f.Slot, f.Time}
	return swapRecord{Ref: mark, Side: f.Side, Price: market.Price(price), Qty: market.Qty(qty), Base: f.Base, Quote: f.Quote}, true
}

// prune deletes traces that have ordinals and that no window needs. The newest of those
// stays, because it proves that the windows are complete. The oldest stays while the run
// may grow there, because an older transaction must join it.
func (s *swapTracker) prune() error {
	for range scanBatch {
		if more, err := s.pruneSome(); !more || err != nil {
			return err
		}
	}
	return nil
}

// pruneSome deletes up to scanBatch traces and reports whether there may be more.
func (s *swapTracker) pruneSome() (more bool, err error) {
	h := s.head
	if h.NumberedTo == math.MinInt64 {
		return false, nil
	}
	// Use the chain's clock too, because ours may be wrong for a while.
	before := min(s.o.Now().Unix(), s.backfill.Cursor().Newest.Time) - int64((Week+traceSlack)/time.Second)
	last, first, newest := min(h.NumberedTo, h.Next), h.First, h.First
	var oldest []byte
	err = s.store.traces(h.Run, first, max(last, first), func(at int64, t *Trace, failed bool) bool {
		if at == first {
			oldest = encodeTrace(t, failed)
		}
		more = at-first >= scanBatch
		if more || t.Time >= before {
			return false
		}
		if t.Time > 0 {
			newest = at
		}
		return true
	})
	if h.First = newest; !h.Cursor.Complete {
		h.First--
	}
	if err != nil || h.First <= first {
		return false, err
	}
	err = commit(s.store.kv, false, func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		deleteRange(s.store.traceKey(h.Run, first), s.store.traceKey(h.Run, h.First))
		if !h.Cursor.Complete {
			set(s.store.traceKey(h.Run, h.First), oldest)
		}
		set(s.store.key('h'), encode(nil, &h))
	})
	if err == nil {
		s.head = h
	}
	return more, err
}

// takeSnapshot stores a snapshot if the next one is due, the state is current, and the
// past was read as far as the nodes have it. It reads the pool again, finalized, because
// a snapshot is kept for good.
func (s *swapTracker) takeSnapshot(ctx context.Context) error {
	now := s.o.Now()
	state := s.reader.state(now)
	rolling := s.windows.At(now)
	length := int64(max(s.o.SnapshotEvery/time.Second, 1))
	due := len(s.snapshots) == 0 || now.Unix()/length > s.snapshots[0].At/length
	done, exhausted := s.backfill.PastRead()
	if !due || !done && !exhausted || state.Pool == nil || state.Reasons.Has(Stale) || rolling.Day.Status == Behind {
		return nil
	}
	var last uint64
	if len(s.snapshots) > 0 {
		last = s.snapshots[0].Slot
	}
	p, err := s.reader.finalPool(ctx, last)
	if err != nil {
		return err
	}
	t := &rolling.Totals
	next := Snapshot{
		now.Unix(), p.At.Slot, p.BaseBalance, p.QuoteBalance, p.BaseFees, p.QuoteFees,
		t.Swaps, t.Base, t.Quote, s.head.Traders, t.Complete,
	}
	list := slices.Insert(slices.Clone(s.snapshots), 0, next)
	err = commit(s.store.kv, true, func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
		set(s.store.key('r', number(uint64(next.At))), encode(nil, &next))
		if len(list) > MaxSnapshots {
			list = list[:MaxSnapshots]
			deleteRange(s.store.key('r'), s.store.key('r', number(uint64(list[MaxSnapshots-1].At))))
		}
	})
	if err == nil {
		s.snapshots = list
	}
	return err
}

// publishState publishes the state that state returns.
func (s *swapTracker) publishState(err error) {
	reasons := reasonsOf(err)
	var shown SwapState
	if s.backfill != nil {
		c := s.backfill.Cursor()
		shown = SwapState{
			Rolling: s.windows.At(s.o.Now()), Traders: s.head.Traders, Numbered: s.head.Numbered, OmittedSwaps: s.head.OmittedSwaps,
			Pending: s.backfill.Pending(), Newest: c.Newest, Snapshots: s.snapshots,
		}
		shown.Reconstructed = reconstructed(s.snapshots, &shown.Rolling.Totals, &c.Oldest)
		if shown.Rolling.Day.Status == Behind {
			reasons = reasons.With(HistoryBehind)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backfill == nil {
		shown = s.published // from before the store failed
	}
	s.published, s.reasons, s.err = shown, reasons, err
}

// maxAge is how long windows stay proven without reading the chain.
func (s *swapTracker) maxAge() time.Duration { return max(time.Minute, 6*s.o.Every) }

// state returns the state of the swaps at now. Windows that were published long ago,
// because the store fails or the nodes are slow, are no longer proven.
func (s *swapTracker) state(now time.Time) (SwapState, Reasons, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shown, reasons := s.published, s.reasons
	if r := &shown.Rolling; r.AsOf.IsZero() || now.Sub(r.AsOf) > s.maxAge() {
		r.Day, r.Week = Window{Status: Behind}, Window{Status: Behind}
		reasons = reasons.With(HistoryBehind)
	}
	return shown, reasons, s.err
}

// reconstructed returns the newest snapshot from before an incomplete history.
func reconstructed(list []Snapshot, totals *Totals, oldest *TxRef) Snapshot {
	if totals.Complete || oldest.Time <= 0 {
		return Snapshot{}
	}
	for i := range list {
		if list[i].At < oldest.Time {
			return list[i]
		}
	}
	return Snapshot{}
}
