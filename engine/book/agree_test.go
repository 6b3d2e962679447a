package book_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// shape bounds the random numbers of a flow.
type shape struct {
	name     string
	low, top market.Price // of limits and triggers
	qty      market.Qty
	ids      market.OrderID // ids repeat after so many
	max      int            // Options.MaxOrders
}

var shapes = []shape{
	{"tight", 95, 105, 12, 40, 24},
	{"wide", 1, 60_000, 50, 200, 4096},
	{"huge", 1, market.MaxPrice, market.MaxQty, 100, 4096},
	{"crowded", 100, 101, 5, 1 << 20, 4096},
	{"edge", 1<<14 - 3, 1<<14 + 3, 30, 60, 4096},
}

// source provides the numbers of a flow: from rapid or a fuzzer.
type source interface {
	// draw returns a number from 0 to n-1.
	draw(n int64) int64
}

type rapidSource struct{ t *rapid.T }

func (s rapidSource) draw(n int64) int64 { return rapid.Int64Range(0, n-1).Draw(s.t, "n") }

// flow makes well-formed commands of one shape.
type flow struct {
	shape
	src source
	now int64
}

func (f *flow) next() op {
	f.now += f.src.draw(3)
	o := op{at: f.now}
	switch roll := f.src.draw(100); {
	case roll < 55:
		o.kind, o.order = opSubmit, f.order()
	case roll < 75:
		o.kind, o.order = opAmend, f.amend()
	case roll < 78:
		o.kind, o.order.ID = opCancelFor, f.id()
	case roll < 93:
		o.kind, o.participant = opCancel, f.participant()
		o.order.ID = f.id()
	case roll < 94:
		o.kind, o.participant, o.side = opMassCancel, f.participant(), market.Side(f.src.draw(3))
	case roll < 96:
		o.kind, o.participant, o.side = opEndLater, f.participant(), market.Side(f.src.draw(3))
		o.order.Qty = market.Qty(f.src.draw(2))
	case roll < 98:
		o.kind, o.order.Qty = opSweep, market.Qty(f.src.draw(4))
	case roll < 99:
		o.kind, o.order.ID = opTakeOut, f.id()
	default:
		o.kind = opExpire
	}
	return o
}

func (f *flow) id() market.OrderID                { return 1 + market.OrderID(f.src.draw(int64(f.ids))) }
func (f *flow) participant() market.ParticipantID { return market.ParticipantID(f.src.draw(5)) }
func (f *flow) price() market.Price               { return f.low + market.Price(f.src.draw(int64(f.top-f.low)+1)) }
func (f *flow) chance(oneIn int64) bool           { return f.src.draw(oneIn) == 0 }
func (f *flow) quantity() market.Qty              { return 1 + market.Qty(f.src.draw(int64(f.qty))) }

// order returns a new order that is well-formed as package book defines.
func (f *flow) order() book.Order {
	o := book.Order{
		ID: f.id(), Participant: f.participant(), Side: market.Side(1 + f.src.draw(2)), Qty: f.quantity(),
		STP: book.STP(1 + f.src.draw(4)), TIF: book.GTC, Type: book.Limit,
	}
	if f.chance(3) {
		o.Type = book.Type(1 + f.src.draw(4))
	}
	if f.chance(2) {
		o.TIF = book.TIF(1 + f.src.draw(5))
	}
	if o.Type == book.Limit || o.Type == book.StopLimit {
		o.Price = f.price()
		if o.TIF != book.IOC && o.TIF != book.FOK && f.chance(5) {
			o.Flags = book.FlagPostOnly
		}
		if f.chance(4) {
			o.Display = f.quantity()
		}
	}
	if o.Type == book.Limit && o.TIF == book.GTC && o.Display == 0 && f.chance(4) {
		o.Flags |= book.FlagQuote
	}
	if never := o.Type == book.Limit && o.TIF == book.IOC || o.Type == book.Market && o.TIF != book.FOK; never && f.chance(2) {
		o.Flags, o.Display = book.FlagMinQty, 1+market.Qty(f.src.draw(int64(o.Qty)))
	}
	if o.Type == book.Stop || o.Type == book.StopLimit {
		o.Stop = f.price()
	}
	if o.TIF == book.GTD || o.TIF == book.Day {
		o.ExpireAt = f.now + 1 + f.src.draw(20)
	}
	return o
}

func (f *flow) amend() book.Order {
	o := book.Order{ID: f.id(), Participant: f.participant(), Side: market.Buy}
	if f.chance(2) {
		o.Price = f.price()
	}
	if !f.chance(3) {
		o.Qty = f.quantity()
	}
	if f.chance(2) {
		o.Stop = f.price()
	}
	if f.chance(2) {
		o.Flags = book.FlagOpenQty
	}
	if f.chance(3) {
		f.amendTerms(&o)
	}
	return o
}

// amendTerms adds terms to an amend that fit every order which is not a quote.
func (f *flow) amendTerms(o *book.Order) {
	o.Flags |= book.FlagAmendTerms
	if f.chance(2) {
		o.TIF = []book.TIF{book.GTC, book.GTD, book.Day}[f.src.draw(3)]
	}
	if o.TIF == book.GTD || o.TIF == book.Day {
		o.ExpireAt = f.now + 1 + f.src.draw(20)
	}
	switch f.src.draw(4) {
	case 0:
		o.Display = market.MaxQty
	case 1, 2:
		o.Display = f.quantity()
	}
}

// TestBooksAgree runs random flows through both books: same events, same state, and all
// laws hold.
func TestBooksAgree(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				f := flow{shape: s, src: rapidSource{rt}}
				w := newTwin(rt, book.Options{MaxOrders: s.max, Instrument: 7})
				n := rapid.IntRange(1, 150).Draw(rt, "commands")
				for range n {
					w.step(f.next(), true)
				}
			})
		})
	}
}

// byteSource takes the numbers of a flow from bytes, one, two or eight at a time.
type byteSource struct{ data []byte }

func (s *byteSource) draw(n int64) int64 {
	width := 1
	if n > 1<<8 {
		width = 2
	}
	if n > 1<<16 {
		width = 8
	}
	var x uint64
	for range width {
		x <<= 8
		if len(s.data) > 0 {
			x |= uint64(s.data[0])
			s.data = s.data[1:]
		}
	}
	return int64(x % uint64(n))
}

// FuzzBooksAgree is TestBooksAgree on a fuzzer's flows: the first byte selects the shape,
// the rest are the numbers of the flow.
func FuzzBooksAgree(f *testing.F) {
	for i := range shapes {
		seed := []byte{byte(i)}
		for j := range 400 {
			seed = append(seed, byte(j*j*(i+3)>>3))
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const longest = 1 << 12
		if len(data) == 0 || len(data) > longest {
			return
		}
		s := shapes[int(data[0])%len(shapes)]
		src := &byteSource{data[1:]}
		fl := flow{shape: s, src: src}
		w := newTwin(t, book.Options{MaxOrders: s.max})
		for len(src.data) > 0 {
			w.step(fl.next(), true)
		}
	})
}

// TestBooksAgreeWandering runs both books with prices that wander far and jump, so that the
// ladder's window slides and levels enter and leave it.
func TestBooksAgreeWandering(t *testing.T) {
	const (
		commands = 6000
		whole    = 50 // commands between checks of the whole book
	)
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 7))
		f := flow{shape: shape{name: "wandering", qty: 40, ids: 1500, max: 4096}, src: randSource{rng}}
		w := newTwin(t, book.Options{MaxOrders: f.max})
		middle := market.Price(1 << 30)
		spread := market.Price(200)
		for i := range commands {
			switch rng.IntN(300) {
			case 0:
				middle = 1<<30 + market.Price(rng.Int64N(1<<20))
			case 1:
				middle = 1<<20 + market.Price(rng.Int64N(1<<40))
			case 2:
				spread = 1 << rng.IntN(20)
			}
			middle += market.Price(rng.IntN(601) - 300)
			middle = max(middle, spread+1)
			f.low, f.top = middle-spread, middle+spread
			w.step(f.next(), i%whole == 0)
		}
		w.compareWhole()
	}
}

type randSource struct{ rng *rand.Rand }

func (s randSource) draw(n int64) int64 { return s.rng.Int64N(n) }
