package book_test

import (
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/auction"
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// caller leads a flow through continuous trading and calls, as the engine does.
type caller struct {
	flow
	*twin
	phase  int
	price  market.Price
	calls  int
	trades int
}

const (
	trading = iota
	gathering
	uncrossing
	releasing
)

// do applies one command to both books.
func (c *caller) do(o op) int {
	const whole = 8 // commands between checks of the whole book
	return c.step(o, c.seq%whole == 0)
}

// advance takes one step.
func (c *caller) advance() {
	o := c.next()
	switch c.phase {
	case trading:
		c.do(o)
		if c.chance(12) {
			c.phase = gathering
		}
	case gathering:
		switch {
		case o.kind == opSubmit && fitsCall(&o.order):
			o.kind = opGather
		case o.kind == opSubmit:
			return
		case o.kind == opAmend:
			o.kind = opAmendGathered
		}
		c.do(o)
		if c.chance(12) {
			c.fix(o.at)
		}
	default:
		if o.kind != opSubmit && o.kind != opAmend && c.chance(3) {
			c.do(o)
			return
		}
		c.uncross(o.at)
	}
}

// uncross takes a slice of an uncrossing.
func (c *caller) uncross(at int64) {
	if c.a.Sweeping() {
		c.do(op{kind: opSweep, at: at, order: book.Order{Qty: 1 << 20}})
		return
	}
	n := 1 + market.Qty(c.src.draw(3))
	switch c.phase {
	case uncrossing:
		done := c.do(op{kind: opUncross, at: at, order: book.Order{Price: c.price, Qty: n}})
		for _, e := range c.outB.Events() {
			if e.Kind != event.AuctionTraded {
				continue
			}
			if c.trades++; e.Price != c.price {
				c.fail("a trade at %d in an auction at %d", e.Price, c.price)
			}
		}
		if market.Qty(done) < n {
			c.fix(at)
		}
	case releasing:
		if done := c.do(op{kind: opRelease, at: at, order: book.Order{Qty: n}}); market.Qty(done) < n {
			c.do(op{kind: opElect, at: at})
			c.phase = trading
			c.calls++
		}
	}
}

// fix fixes the price.
func (c *caller) fix(at int64) {
	if c.a.Sweeping() {
		c.do(op{kind: opSweep, at: at, order: book.Order{Qty: 1 << 20}})
	}
	r := auction.Find(c.a, c.a.LastTrade())
	if got := auction.Find(c.b, c.b.LastTrade()); got != r {
		c.fail("price: naive %+v, ladder %+v", r, got)
	}
	c.phase, c.price = uncrossing, r.Price
	if r.Volume == 0 {
		c.phase = releasing
	}
}

// fitsCall reports whether the engine lets an order gather.
func fitsCall(o *book.Order) bool {
	rests := o.Type == book.Limit && o.TIF != book.IOC && o.TIF != book.FOK && o.Flags&book.FlagPostOnly == 0
	return rests || o.Type == book.Stop || o.Type == book.StopLimit
}

// TestBooksAgreeInCalls runs random flows with calls, uncrossings in slices, and orders that
// end meanwhile, through both books: same events, same state, same price, and all laws hold.
func TestBooksAgreeInCalls(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			calls, trades := 0, 0
			enough := func() bool { return calls >= 10 && trades >= 10 } // else the flow is too tame
			runtest.CheckUntil(t, enough, func(rt *rapid.T) {
				c := caller{flow: flow{shape: s, src: rapidSource{rt}}, twin: newTwin(rt, book.Options{MaxOrders: s.max, Instrument: 7})}
				for range rapid.IntRange(1, 200).Draw(rt, "commands") {
					c.advance()
				}
				calls += c.calls
				trades += c.trades
			})
		})
	}
}

// FuzzBooksAgreeInCalls is TestBooksAgreeInCalls on a fuzzer's flows.
func FuzzBooksAgreeInCalls(f *testing.F) {
	for i := range shapes {
		seed := []byte{byte(i)}
		for j := range 900 {
			seed = append(seed, byte(j*j*(i+5)>>3))
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
		c := caller{flow: flow{shape: s, src: src}, twin: newTwin(t, book.Options{MaxOrders: s.max})}
		for len(src.data) > 0 {
			c.advance()
		}
	})
}
