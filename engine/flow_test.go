package engine

import (
	"fmt"
	"math/rand/v2"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// flow makes random commands for two instruments and eight participants, most
// of them sensible. It begins with the definitions.
type flow struct {
	rng  *rand.Rand
	head []Command
	id   market.OrderID
	// terms: amends also change terms.
	terms bool
	desk  *deskFlow // nil = no requests to the desk
	// mirror is nil where nothing is mirrored.
	mirror *mirrorFlow
}

func newFlow(seed uint64) *flow {
	f := &flow{rng: rand.New(rand.NewPCG(seed, 99))}
	for i, symbol := range []string{"AAA/USD", "BBB/USD"} {
		c, err := DefineInstrumentCommand(&market.Instrument{
			ID: market.InstrumentID(i), Symbol: symbol, Base: symbol[:3], Quote: symbol[4:],
			Tick: 1, Lot: 1, MinQty: 1, MaxQty: 1_000_000, MaxPrice: 1_000_000, Source: market.Matched,
		})
		if err != nil {
			panic(err)
		}
		f.head = append(f.head, c)
	}
	for participant := range 8 {
		c, err := SetRiskCommand(market.ParticipantID(participant+1), AllInstruments, Limits{
			MaxQty: 1_000_000, MaxNotional: market.Uint128{Lo: 1 << 60}, MaxOpenOrders: 1 << 20,
		})
		if err != nil {
			panic(err)
		}
		f.head = append(f.head, c)
	}
	return f
}

func (f *flow) next() Command {
	if len(f.head) > 0 {
		c := f.head[0]
		f.head = f.head[1:]
		return c
	}
	if m := f.mirror; m != nil {
		if len(m.queue) == 0 && f.rng.IntN(6) == 0 {
			f.queueMirrorInput()
		}
		if len(m.queue) > 0 {
			c := m.queue[0]
			m.queue = m.queue[1:]
			return c
		}
	}
	if d := f.desk; d != nil {
		if len(d.queue) == 0 && f.rng.IntN(4) == 0 {
			f.request()
		}
		if len(d.queue) > 0 {
			c := d.queue[0]
			d.queue = d.queue[1:]
			return c
		}
	}
	c := Command{Instrument: market.InstrumentID(f.rng.IntN(2))}
	c.Order.Participant = market.ParticipantID(1 + f.rng.IntN(8))
	c.Order.Side = market.Side(1 + f.rng.IntN(2))
	if f.rng.IntN(3) == 0 {
		c.SetRef(fmt.Appendf(nil, "ref-%d", f.rng.IntN(1000)))
	}
	switch roll := f.rng.IntN(100); {
	case roll < 62:
		c.Kind = NewOrder
		f.fill(&c.Order)
	case roll < 84:
		c.Kind = CancelOrder
		c.Order.ID, c.Order.Side = f.recent(), 0
		c.Order.Participant = 0
	case roll < 95:
		c.Kind = AmendOrder
		c.Order.ID = f.recent()
		c.Order.Price, c.Order.Qty = f.price(), market.Qty(1+f.rng.IntN(30))
		if f.terms && f.rng.IntN(4) == 0 {
			c.Order.Flags, c.Order.Display = book.FlagAmendTerms, market.Qty(f.rng.IntN(9))
			c.Order.TIF = book.TIF(f.rng.IntN(3))
		}
	case roll < 97:
		c.Kind = MassCancel
	case roll < 98:
		c = Command{Kind: SetInstrument, Instrument: c.Instrument, Status: uint8(1 + f.rng.IntN(8)/7)}
	default:
		c = Command{Kind: Tick}
	}
	return c
}

func (f *flow) fill(o *book.Order) {
	f.id++
	o.ID, o.Price, o.Qty = f.id, f.price(), market.Qty(1+f.rng.IntN(30))
	o.Type, o.TIF, o.STP = book.Limit, book.GTC, book.STP(1+f.rng.IntN(4))
	switch f.rng.IntN(12) {
	case 0:
		o.TIF = book.IOC
	case 1:
		o.Display = 1 + o.Qty/4
	case 2:
		o.Type, o.Stop = book.StopLimit, f.price()
	case 3:
		o.Type, o.TIF, o.Price = book.Market, book.IOC, 0
	case 4:
		o.Flags = book.FlagPostOnly
	case 5:
		o.TIF = book.FOK
	}
}

func (f *flow) price() market.Price { return market.Price(1_000 + f.rng.IntN(40)) }

func (f *flow) recent() market.OrderID {
	return f.id - min(f.id, market.OrderID(f.rng.IntN(60)))
}
