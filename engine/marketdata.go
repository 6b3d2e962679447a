package engine

import (
	"fmt"
	"slices"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// MarketSink takes market data as it changes, on the feed's goroutine. It must
// not block. All it is given is immutable and may be kept.
type MarketSink interface {
	// MarketUpdate says that next replaces prev (nil: the first one); trades are
	// the new ones in between, oldest first. When next.Epoch is not prev.Epoch,
	// all Seqs have begun again.
	MarketUpdate(prev, next *View, trades []Trade)
}

// MarketData turns events into views: the displayed book, the last trades and
// the 24 h ticker of every instrument. It is a function of the events, as the
// L2 column of package event's table has them, and of the calls of Advance.
//
// Invariants:
//  1. A level has quantity; one without is not there. An event that would make
//     a level negative is a broken engine, and panics.
//  2. A view is never changed after Flush made it. It shares the parts that did
//     not change with the one before.
//  3. A view of a mirrored instrument shows the book of one slot. Its trades
//     count when they happened on chain, however late they are told.
//  4. A view's DepthSeq, TradesSeq, EngineSeq and At are functions of the events
//     alone: they move once a batch (the events of one At), whoever calls Flush
//     and however often, and a snapshot has them. So two machines that have read
//     the same journal, from wherever each began, count alike. The TickerSeq
//     counts the views made here, since Advance goes by each machine's clock.
//
// Cost: Apply does not allocate beyond the growth of the book, and a new block
// of memory every few hundred trades; a level is found in O(log levels), near
// the best price at once. Flush costs what has changed. Memory: 16 B a level,
// 64 B a minute with trades, at most 1,440 of them an instrument.
//
// One goroutine at a time. Between two calls of Flush every trade is kept for
// it, so who has called Flush once goes on doing so; before the first call only
// the last MaxTape are.
type MarketData struct {
	epoch   uint64
	seq     uint64 // of the last event
	at      int64  // of the last event
	minute  int64  // the newest minute of all windows
	flushed bool   // Flush has been called

	listings []*listing             // by ID; nil where nothing is known
	changed  []market.InstrumentID  // by first change since the last Flush
	scratch  [MaxDepth]market.Level // of Flush
}

// change is a set of parts of a listing that may differ from its view.
type change uint8

const (
	changedBids change = 1 << iota
	changedAsks
	changedTape
	changedTicker
	changedStatus
	changedSlot
	changedAll change = 1<<iota - 1
)

// listing is one instrument.
type listing struct {
	id      market.InstrumentID
	status  uint8
	changed change // since the last Flush
	counted change // of the batch at stand.at
	stand   stand
	bids    levels
	asks    levels
	tape    tape
	window  window
	ticker  Ticker
	view    *View // of the last Flush

	slot uint64 // of a mirrored book
	// torn: more events of the refresh under way come. No view shows half of it.
	torn bool
}

// stand is where a listing is after the last event that changed it, as View has
// it.
type stand struct {
	depthSeq, tradesSeq uint64
	engineSeq           uint64
	at                  int64
}

// NewMarketData returns one that knows no instrument.
func NewMarketData() *MarketData { return &MarketData{} }

// Apply takes the next event.
func (m *MarketData) Apply(e *event.Event) {
	m.seq = e.Seq
	if e.Kind == event.Reference || e.Kind == event.Desk {
		return // they have no At
	}
	m.at = e.At
	if e.At-m.minute*nanosPerMinute >= nanosPerMinute {
		m.Advance(e.At)
	}
	switch e.Kind {
	case event.Accepted, event.Rested, event.Amended, event.Replenished:
		if e.Aux != 0 {
			m.display(e, e.Side, e.Aux)
		}
	case event.Cancelled, event.Reduced, event.Unrested:
		if e.Aux != 0 {
			m.display(e, e.Side, -e.Aux)
		}
	case event.Traded:
		m.display(e, e.Side.Opposite(), -int64(e.Qty))
		m.trade(e)
	case event.MirrorLevel:
		m.display(e, e.Side, e.Aux)
		m.refresh(e, true)
	case event.Mirrored:
		m.refresh(e, false)
	case event.MirrorTraded:
		m.trade(e)
	case event.InstrumentSet:
		l := m.listing(e.Instrument)
		if status := uint8(e.Code); status != l.status || l.stand.depthSeq == 0 {
			l.status = status
			m.touch(l, changedStatus)
		}
	case event.EpochStarted:
		m.epoch = e.Other
		for _, l := range m.listings {
			if l != nil {
				l.stand.depthSeq, l.stand.tradesSeq, l.counted = 0, 0, 0
				m.touch(l, changedAll)
			}
		}
	}
}

func (m *MarketData) display(e *event.Event, side market.Side, delta int64) {
	l := m.listing(e.Instrument)
	book, part, key := &l.bids, changedBids, int64(e.Price)
	if side == market.Sell {
		book, part, key = &l.asks, changedAsks, -int64(e.Price)
	}
	rank, ok := book.add(key, delta)
	if !ok {
		panic(fmt.Sprintf("engine: seq %d takes %d from level %d of instrument %d, which has less",
			e.Seq, -delta, e.Price, e.Instrument))
	}
	if rank < MaxDepth {
		m.touch(l, part)
	}
}

func (m *MarketData) trade(e *event.Event) {
	l := m.listing(e.Instrument)
	t, _ := TradeOf(e)
	l.tape.add(t, m.flushed)
	l.ticker.Last, l.ticker.LastQty, l.ticker.LastAt = t.Price, t.Qty, t.At
	if t.At/nanosPerMinute > m.minute-windowMinutes {
		l.window.add(&t, &l.ticker)
	}
	m.touch(l, changedTape|changedTicker)
}

// refresh takes what a refresh of a mirrored book has beside its levels.
func (m *MarketData) refresh(e *event.Event, torn bool) {
	l := m.listing(e.Instrument)
	l.torn = torn
	if !torn && l.slot != e.Other {
		l.slot = e.Other
		m.touch(l, changedSlot)
	}
}

// Advance moves the 24 h windows on to time at, Unix ns, as an event of that
// time would. For a quiet market: where no event comes, trades age only by it.
// An earlier time than the latest seen does nothing.
func (m *MarketData) Advance(at int64) {
	minute := at / nanosPerMinute
	if minute <= m.minute {
		return
	}
	m.minute = minute
	for _, l := range m.listings {
		if l != nil && l.window.expire(minute, &l.ticker) {
			m.mark(l, changedTicker)
		}
	}
}

// listing returns the instrument's, made if need be. The engine writes no event
// that changes anything for an instrument that it does not have, so an id out
// of range is a broken engine.
func (m *MarketData) listing(id market.InstrumentID) *listing {
	if int(id) < len(m.listings) && m.listings[id] != nil {
		return m.listings[id]
	}
	if id >= market.MaxInstruments {
		panic(fmt.Sprintf("engine: an event of instrument %d, at most %d", id, market.MaxInstruments-1))
	}
	for len(m.listings) <= int(id) {
		m.listings = append(m.listings, nil)
	}
	m.listings[id] = &listing{id: id, status: StatusTrading}
	return m.listings[id]
}

// touch is mark for an event that the view tells of, if only by its EngineSeq. Of a
// batch it counts a part once, at the first touch, whatever becomes of it in the
// end.
func (m *MarketData) touch(l *listing, c change) {
	const depth = changedBids | changedAsks
	s := &l.stand
	if s.at != m.at {
		l.counted = 0
	}
	if s.depthSeq == 0 {
		c |= depth | changedTape // all is new in this epoch
	}
	s.depthSeq += one(c&depth != 0 && l.counted&depth == 0)
	s.tradesSeq += one(c&changedTape != 0 && l.counted&changedTape == 0)
	s.engineSeq, s.at = m.seq, m.at
	l.counted |= c
	m.mark(l, c)
}

func (m *MarketData) mark(l *listing, c change) {
	if l.changed == 0 {
		m.changed = append(m.changed, l.id)
	}
	l.changed |= c
}

// Flush makes a new view of each instrument that differs from its last one, and
// gives it to pub (which may be nil) together with the one before and the trades
// since then. It is called between two batches, since one counts as one change.
// Order: by the first event that changed each. The first
// Flush of all has no trades to tell: what happened before is in the views. An
// instrument in the middle of a refresh waits for a later Flush. A view of which
// only the Slot is new has the Seqs of the one before; one that has several
// batches since then has Seqs that have grown by more than one.
func (m *MarketData) Flush(pub func(prev, next *View, trades []Trade)) {
	waiting := m.changed[:0]
	for _, id := range m.changed {
		l := m.listings[id]
		if l.torn {
			waiting = append(waiting, id)
			continue
		}
		prev := l.view
		if !m.render(l) {
			continue
		}
		trades := l.tape.take(m.flushed)
		if pub != nil {
			pub(prev, l.view, trades)
		}
	}
	m.changed = waiting
	m.flushed = true
}

// render replaces l's view if it is out of date, and reports whether it was.
func (m *MarketData) render(l *listing) bool {
	parts, prev := l.changed, l.view
	l.changed = 0
	if prev == nil {
		prev, parts = &View{}, changedAll
	}
	next := *prev
	next.Instrument, next.Status, next.Epoch = l.id, l.status, m.epoch
	next.DepthSeq, next.TradesSeq = l.stand.depthSeq, l.stand.tradesSeq
	next.EngineSeq, next.At = l.stand.engineSeq, l.stand.at
	next.Ticker, next.Slot = l.ticker, l.slot
	if parts&changedBids != 0 {
		next.Bids = m.side(&l.bids, +1, prev.Bids)
	}
	if parts&changedAsks != 0 {
		next.Asks = m.side(&l.asks, -1, prev.Asks)
	}
	if l.tape.pending() {
		next.Trades = l.tape.last(prev.Trades)
	}
	ticker := next.Ticker != prev.Ticker || next.Status != prev.Status ||
		best(next.Bids) != best(prev.Bids) || best(next.Asks) != best(prev.Asks)
	if l.view == nil || prev.Epoch != m.epoch {
		next.TickerSeq, ticker = 0, true
	}
	if !ticker && next.EngineSeq == prev.EngineSeq &&
		slices.Equal(next.Bids, prev.Bids) && slices.Equal(next.Asks, prev.Asks) {
		return false
	}
	next.TickerSeq += one(ticker)
	l.view = &next
	return true
}

// side returns the top of book: old itself when nothing there has changed.
func (m *MarketData) side(book *levels, sign market.Price, old []market.Level) []market.Level {
	top := book.top(m.scratch[:0], MaxDepth, sign)
	if slices.Equal(top, old) {
		return old
	}
	return slices.Clone(top)
}

func best(levels []market.Level) market.Level {
	if len(levels) == 0 {
		return market.Level{}
	}
	return levels[0]
}

func one(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// View returns the instrument's last flushed view; nil = there is none.
func (m *MarketData) View(in market.InstrumentID) *View {
	if int(in) >= len(m.listings) || m.listings[in] == nil {
		return nil
	}
	return m.listings[in].view
}
