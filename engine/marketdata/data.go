package marketdata

import (
	"fmt"
	"slices"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// Sink receives changes of market data on the feed's goroutine. It must not block. Its
// arguments are immutable and may be kept.
type Sink interface {
	// MarketUpdate replaces prev (nil: the first view) with next. trades are the trades in
	// between, oldest first. If next.Epoch differs from prev.Epoch, all Seqs start again.
	MarketUpdate(prev, next *View, trades []Trade)
}

// Data computes views from events: displayed book, last trades and 24 h ticker of every
// instrument. It is a function of the events (column L2 of the table in package event) and of
// the calls of Advance.
//
// Invariants:
//  1. A level has a positive quantity. An event that would make it negative panics, because
//     only a broken engine writes one.
//  2. A view never changes after Flush. It shares unchanged parts with the view before.
//  3. A view of a mirrored instrument shows the book of one slot. Its trades count at their
//     on-chain time, however late they are reported.
//  4. DepthSeq, TradesSeq, EngineSeq and At of a view are functions of the events alone: they
//     change at most once a batch (the events of one At), however often Flush is called, and
//     snapshots contain them. So machines that have read the same journal have the same
//     numbers, wherever each began. TickerSeq counts the views of this machine, because
//     Advance depends on its clock.
//
// Cost: Apply allocates only for the growth of a book, and a block of memory every few hundred
// trades. It finds a level in O(log levels), near the best price in O(1). Flush costs as much
// as changed. Memory: 16 B a level and 64 B a minute with trades, at most 1,440 an instrument.
//
// One goroutine at a time. After the first Flush every trade is kept until the next, so Flush
// must be called regularly; before it only the last MaxTape trades are kept.
type Data struct {
	epoch   uint64
	seq     uint64 // of the last event
	at      int64  // of the last event
	minute  int64  // latest minute of all windows
	flushed bool   // Flush has been called

	data    []*instrumentData      // by ID; nil = unknown
	changed []market.InstrumentID  // changed since the last Flush, in order of first change
	scratch [MaxDepth]market.Level // of Flush
}

// change is a set of parts of an instrument that may differ from its view.
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

// instrumentData is the market data of one instrument.
type instrumentData struct {
	id      market.InstrumentID
	status  uint8
	changed change // since the last Flush
	counted change // in the batch of seqs.at
	seqs    viewSeqs
	bids    levels
	asks    levels
	tape    tape
	window  window
	ticker  Ticker
	auction Auction
	view    *View // of the last Flush

	slot uint64 // of a mirrored book
	// midRefresh: more events of the current refresh follow. No view shows half a refresh.
	midRefresh bool
}

// viewSeqs are the fields of a View after the last event that changed the instrument.
type viewSeqs struct {
	depthSeq, tradesSeq uint64
	engineSeq           uint64
	at                  int64
}

// New returns a Data without instruments.
func New() *Data { return &Data{} }

// Apply applies the next event.
func (m *Data) Apply(e *event.Event) {
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
	case event.AuctionTraded:
		m.trade(e)
	case event.Auction:
		l := m.instrument(e.Instrument)
		l.auction = Auction{
			Price: e.Price, Volume: e.Qty, Imbalance: market.Qty(e.Aux), Until: int64(e.Other),
			Uncrossing: e.Code == event.AuctionUncrossing,
		}
		m.changedBy(l, changedStatus)
	case event.MirrorLevel:
		m.display(e, e.Side, e.Aux)
		m.refresh(e, true)
	case event.Mirrored:
		m.refresh(e, false)
	case event.MirrorTraded:
		m.trade(e)
	case event.InstrumentSet:
		l := m.instrument(e.Instrument)
		if status := uint8(e.Code); status != l.status || l.seqs.depthSeq == 0 {
			l.status = status
			m.changedBy(l, changedStatus)
		}
		if l.status != event.StatusAuction {
			l.auction = Auction{}
		}
	case event.EpochStarted:
		m.epoch = e.Other
		for _, l := range m.data {
			if l != nil {
				l.seqs.depthSeq, l.seqs.tradesSeq, l.counted = 0, 0, 0
				m.changedBy(l, changedAll)
			}
		}
	}
}

func (m *Data) display(e *event.Event, side market.Side, delta int64) {
	l := m.instrument(e.Instrument)
	book, part, key := &l.bids, changedBids, int64(e.Price)
	if side == market.Sell {
		book, part, key = &l.asks, changedAsks, -int64(e.Price)
	}
	rank, ok := book.add(key, delta)
	if !ok {
		panic(fmt.Sprintf("marketdata: seq %d takes %d from level %d of instrument %d, which has less",
			e.Seq, -delta, e.Price, e.Instrument))
	}
	if rank < MaxDepth {
		m.changedBy(l, part)
	}
}

func (m *Data) trade(e *event.Event) {
	l := m.instrument(e.Instrument)
	t, _ := TradeOf(e)
	l.tape.add(t, m.flushed)
	l.ticker.Last, l.ticker.LastQty, l.ticker.LastAt = t.Price, t.Qty, t.At
	if t.At/nanosPerMinute > m.minute-windowMinutes {
		l.window.add(&t, &l.ticker)
	}
	m.changedBy(l, changedTape|changedTicker)
}

// refresh applies the slot of a mirrored book, or records that more levels follow (more).
func (m *Data) refresh(e *event.Event, more bool) {
	l := m.instrument(e.Instrument)
	l.midRefresh = more
	if !more && l.slot != e.Other {
		l.slot = e.Other
		m.changedBy(l, changedSlot)
	}
}

// Advance moves the 24 h windows to time at, Unix ns, as an event of that time would. In a
// quiet market trades age only by it. A time before the latest one has no effect.
func (m *Data) Advance(at int64) {
	minute := at / nanosPerMinute
	if minute <= m.minute {
		return
	}
	m.minute = minute
	for _, l := range m.data {
		if l != nil && l.window.expire(minute, &l.ticker) {
			m.markChanged(l, changedTicker)
		}
	}
}

// instrument returns the data of an instrument, creating it if need be. It panics on an id out
// of range, because only a broken engine writes such an event.
func (m *Data) instrument(id market.InstrumentID) *instrumentData {
	if int(id) < len(m.data) && m.data[id] != nil {
		return m.data[id]
	}
	if id >= market.MaxInstruments {
		panic(fmt.Sprintf("marketdata: event of instrument %d, the highest id is %d", id, market.MaxInstruments-1))
	}
	for len(m.data) <= int(id) {
		m.data = append(m.data, nil)
	}
	m.data[id] = &instrumentData{id: id, status: event.StatusTrading}
	return m.data[id]
}

// changedBy is markChanged for a change by an event: it also updates seqs. It counts a part
// once a batch, at its first change, even if later events undo the change.
func (m *Data) changedBy(l *instrumentData, c change) {
	const depth = changedBids | changedAsks
	s := &l.seqs
	if s.at != m.at {
		l.counted = 0
	}
	if s.depthSeq == 0 {
		c |= depth | changedTape // everything is new in this epoch
	}
	s.depthSeq += one(c&depth != 0 && l.counted&depth == 0)
	s.tradesSeq += one(c&changedTape != 0 && l.counted&changedTape == 0)
	s.engineSeq, s.at = m.seq, m.at
	l.counted |= c
	m.markChanged(l, c)
}

func (m *Data) markChanged(l *instrumentData, c change) {
	if l.changed == 0 {
		m.changed = append(m.changed, l.id)
	}
	l.changed |= c
}

// Flush makes a new view of every instrument that differs from its last view, and calls pub
// (which may be nil) with the last view, the new one and the trades in between, in order of
// first change. It must be called between two batches, because the changes of one batch count
// as one. The first Flush passes no trades. An instrument in the middle of a refresh waits for
// a later Flush. A view with only a new Slot has the Seqs of the last one; a view after several
// batches may have skipped Seqs.
func (m *Data) Flush(pub func(prev, next *View, trades []Trade)) {
	waiting := m.changed[:0]
	for _, id := range m.changed {
		l := m.data[id]
		if l.midRefresh {
			waiting = append(waiting, id)
			continue
		}
		prev := l.view
		if !m.render(l) {
			continue
		}
		trades := l.tape.takeRecent(m.flushed)
		if pub != nil {
			pub(prev, l.view, trades)
		}
	}
	m.changed = waiting
	m.flushed = true
}

// render replaces the view of l if it is out of date, and reports whether it was.
func (m *Data) render(l *instrumentData) bool {
	parts, prev := l.changed, l.view
	l.changed = 0
	if prev == nil {
		prev, parts = &View{}, changedAll
	}
	next := *prev
	next.Instrument, next.Status, next.Epoch = l.id, l.status, m.epoch
	next.DepthSeq, next.TradesSeq = l.seqs.depthSeq, l.seqs.tradesSeq
	next.EngineSeq, next.At = l.seqs.engineSeq, l.seqs.at
	next.Ticker, next.Slot, next.Auction = l.ticker, l.slot, l.auction
	if parts&changedBids != 0 {
		next.Bids = m.side(&l.bids, +1, prev.Bids)
	}
	if parts&changedAsks != 0 {
		next.Asks = m.side(&l.asks, -1, prev.Asks)
	}
	if l.tape.hasRecent() {
		next.Trades = l.tape.last(prev.Trades)
	}
	ticker := next.Ticker != prev.Ticker || next.Status != prev.Status || next.Auction != prev.Auction ||
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

// side returns the top of a side, which is old itself if nothing changed.
func (m *Data) side(book *levels, sign market.Price, old []market.Level) []market.Level {
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

// View returns the last flushed view of an instrument, or nil.
func (m *Data) View(in market.InstrumentID) *View {
	if int(in) >= len(m.data) || m.data[in] == nil {
		return nil
	}
	return m.data[in].view
}

// Position returns Seq and time of the last event, and the epoch.
func (m *Data) Position() (seq uint64, at int64, epoch uint64) { return m.seq, m.at, m.epoch }

// Len returns the number of instruments, known or not, up to the highest known one.
func (m *Data) Len() int { return len(m.data) }

// Whole is what the state of an engine has of an instrument too: its book in full depth.
type Whole struct {
	Status     uint8
	Last       market.Price
	Slot       uint64
	Bids, Asks []market.Level
}

// Whole returns the market data of an instrument; false if it is unknown.
func (m *Data) Whole(in market.InstrumentID) (w Whole, ok bool) {
	if int(in) >= len(m.data) || m.data[in] == nil {
		return w, false
	}
	l := m.data[in]
	return Whole{
		Status: l.status, Last: l.ticker.Last, Slot: l.slot,
		Bids: l.bids.top(nil, l.bids.len(), +1), Asks: l.asks.top(nil, l.asks.len(), -1),
	}, true
}
