package engine

import (
	"slices"

	"blockdesk/market"
)

// mirrorFlow adds a mirrored instrument to a flow: refreshes, some of several pieces, some
// stale or with a missing piece; trades, some out of order; and orders, which are rejected.
type mirrorFlow struct {
	queue     []Command // to be sent next, without anything between
	book      MirrorBook
	ordinal   uint64
	block     int64
	published int // refreshes sent whole and not old
}

// newMirrorFlow is newFlow with a mirrored instrument behind the others.
func newMirrorFlow(seed uint64) *flow {
	f := newFlow(seed)
	f.mirror = &mirrorFlow{book: MirrorBook{Instrument: 2}, block: 1}
	c, err := DefineInstrumentCommand(&market.Instrument{
		ID: 2, Symbol: "CCC/USD", Base: "CCC", Quote: "USD",
		Tick: 1, Lot: 1, MinQty: 1, MaxQty: 1_000_000, MaxPrice: 1_000_000, Source: market.Mirrored,
	})
	if err != nil {
		panic(err)
	}
	f.head = append(f.head, c)
	return f
}

// queueMirrorInput queues the next refresh, trade or order of the mirrored instrument.
func (f *flow) queueMirrorInput() {
	switch roll := f.rng.IntN(20); {
	case roll < 9:
		f.refresh()
	case roll < 18:
		f.swap()
	default:
		c := Command{Kind: NewOrder, Instrument: f.mirror.book.Instrument}
		c.Order.Participant, c.Order.Side = 1, market.Buy
		f.fill(&c.Order)
		f.mirror.queue = append(f.mirror.queue, c)
	}
}

func (f *flow) refresh() {
	m := f.mirror
	b := m.book
	b.Slot += uint64(f.rng.IntN(3)) // the same one is refused
	levels := 3
	if f.rng.IntN(2) == 0 {
		levels = MaxMirrorLevels
	}
	b.Bids = f.ladder(market.Price(2_000+f.rng.IntN(20)), -1, levels)
	b.Asks = f.ladder(market.Price(2_000+f.rng.IntN(20)), +1, levels)
	cs, err := MirrorRefreshCommands(nil, &b)
	if b.Slot == 0 {
		return
	}
	if err != nil {
		panic(err)
	}
	if len(cs) > 1 && f.rng.IntN(5) == 0 {
		i := f.rng.IntN(len(cs))
		cs = slices.Delete(cs, i, i+1)
	} else if b.Slot > m.book.Slot {
		m.book = b
		m.published++
	}
	m.queue = append(m.queue, cs...)
}

// ladder returns up to n levels from price in the direction of sign.
func (f *flow) ladder(price, sign market.Price, n int) (levels []market.Level) {
	for range f.rng.IntN(n + 1) {
		levels = append(levels, market.Level{Price: price, Qty: market.Qty(1 + f.rng.IntN(4))})
		price += sign * market.Price(1+f.rng.IntN(3))
	}
	return levels
}

func (f *flow) swap() {
	m := f.mirror
	t := MirrorSwap{
		Instrument: m.book.Instrument, Ordinal: m.ordinal + 1, Slot: m.book.Slot,
		Price: market.Price(2_000 + f.rng.IntN(40)), Qty: market.Qty(1 + f.rng.IntN(30)), Side: market.Side(1 + f.rng.IntN(2)),
	}
	m.block += f.rng.Int64N(2 * minute)
	t.At = m.block
	if f.rng.IntN(5) == 0 {
		t.At = 1 + f.rng.Int64N(m.block)
	}
	if f.rng.IntN(8) == 0 {
		t.Ordinal += uint64(1 + f.rng.IntN(2))
	} else {
		m.ordinal++
	}
	c, err := MirrorTradeCommand(&t)
	if err != nil {
		panic(err)
	}
	m.queue = append(m.queue, c)
}
