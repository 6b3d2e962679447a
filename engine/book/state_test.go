package book_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// limitOrder returns a plain limit order that rests.
func limitOrder(id market.OrderID, side market.Side, qty market.Qty, price market.Price) book.Order {
	return book.Order{ID: id, Side: side, Qty: qty, Price: price, Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest}
}

// TestRestore: a book that is restored in the middle of a random flow gives the same export
// and then the same events as the original.
func TestRestore(t *testing.T) {
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				f := flow{shape: rapid.SampledFrom(shapes).Draw(rt, "shape"), src: rapidSource{rt}}
				ours, theirs := new(market.TradeID), new(market.TradeID)
				a := impl.make(book.Options{MaxOrders: f.max, Trades: ours})
				out := event.NewGrowingSink(64)
				seq, swept := uint64(0), int64(0)
				for range rapid.IntRange(1, 80).Draw(rt, "before") {
					seq++
					o := f.next()
					o.do(a, seq, out)
					if o.kind == opSweep {
						swept = o.at
					}
				}
				b := impl.make(book.Options{MaxOrders: f.max, Trades: theirs})
				for _, r := range export(a) {
					if err := b.Import(r); err != nil {
						rt.Fatal(err)
					}
				}
				b.SetLastTrade(a.LastTrade())
				*theirs = *ours
				if a.Sweeping() {
					b.Sweep(swept, 0, seq, out) // finds again what is overdue
				}
				requireSame(rt, a, b)
				other := event.NewGrowingSink(64)
				for range rapid.IntRange(1, 40).Draw(rt, "after") {
					seq++
					out.Reset()
					other.Reset()
					o := f.next()
					o.do(a, seq, out)
					o.do(b, seq, other)
					if !slices.Equal(out.Events(), other.Events()) {
						rt.Fatalf("%v:\nundisturbed:\n%s\nrestored:\n%s", o, lines(out.Events()), lines(other.Events()))
					}
				}
				requireSame(rt, a, b)
			})
		})
	}
}

func requireSame(t failer, a, b orderBook) {
	t.Helper()
	x, y := export(a), export(b)
	if !slices.Equal(x, y) || a.NextExpiry() != b.NextExpiry() || a.OrderCount() != b.OrderCount() || a.LastTrade() != b.LastTrade() {
		t.Fatalf("undisturbed:\n%+v\nrestored:\n%+v", x, y)
	}
}

// TestImportRefuses gives Import what a damaged snapshot could contain.
func TestImportRefuses(t *testing.T) {
	good := book.LiveOrder{Order: limitOrder(1, market.Buy, 10, 100), Open: 7, Shown: 7}
	stop := book.LiveOrder{Order: limitOrder(2, market.Sell, 10, 90), Open: 10, Waiting: true, EnteredSeq: 3}
	stop.Type, stop.Stop = book.StopLimit, 95
	cases := []struct {
		name string
		from book.LiveOrder
		harm func(*book.LiveOrder)
		want error
	}{
		{"id 0", good, func(r *book.LiveOrder) { r.ID = 0 }, book.ErrLiveOrder},
		{"side", good, func(r *book.LiveOrder) { r.Side = 3 }, book.ErrLiveOrder},
		{"no time in force", good, func(r *book.LiveOrder) { r.TIF = 0 }, book.ErrLiveOrder},
		{"unknown time in force", good, func(r *book.LiveOrder) { r.TIF = 6 }, book.ErrLiveOrder},
		{"resting IOC", good, func(r *book.LiveOrder) { r.TIF = book.IOC }, book.ErrLiveOrder},
		{"resting FOK", good, func(r *book.LiveOrder) { r.TIF = book.FOK }, book.ErrLiveOrder},
		{"self-trade prevention", good, func(r *book.LiveOrder) { r.STP = 5 }, book.ErrLiveOrder},
		{"flags", good, func(r *book.LiveOrder) { r.Flags = book.FlagOpenQty }, book.ErrLiveOrder},
		{"quantity", good, func(r *book.LiveOrder) { r.Qty = market.MaxQty + 1 }, book.ErrLiveOrder},
		{"open 0", good, func(r *book.LiveOrder) { r.Open, r.Shown = 0, 0 }, book.ErrLiveOrder},
		{"open above total", good, func(r *book.LiveOrder) { r.Open, r.Shown = 11, 11 }, book.ErrLiveOrder},
		{"shown 0", good, func(r *book.LiveOrder) { r.Shown = 0 }, book.ErrLiveOrder},
		{"hidden without display", good, func(r *book.LiveOrder) { r.Shown = 6 }, book.ErrLiveOrder},
		{"shown above display", good, func(r *book.LiveOrder) { r.Display, r.Shown = 3, 4 }, book.ErrLiveOrder},
		{"negative display", good, func(r *book.LiveOrder) { r.Display = -1 }, book.ErrLiveOrder},
		{"slices", good, func(r *book.LiveOrder) { r.Qty, r.Open, r.Display, r.Shown = 101, 101, 1, 1 }, book.ErrLiveOrder},
		{"price 0", good, func(r *book.LiveOrder) { r.Price = 0 }, book.ErrLiveOrder},
		{"price", good, func(r *book.LiveOrder) { r.Price = market.MaxPrice + 1 }, book.ErrLiveOrder},
		{"negative price", good, func(r *book.LiveOrder) { r.Price = -1 }, book.ErrLiveOrder},
		{"GTC that expires", good, func(r *book.LiveOrder) { r.ExpireAt = 5 }, book.ErrLiveOrder},
		{"GTD that does not", good, func(r *book.LiveOrder) { r.TIF = book.GTD }, book.ErrLiveOrder},
		{"negative expiry", good, func(r *book.LiveOrder) { r.TIF, r.ExpireAt = book.Day, -5 }, book.ErrLiveOrder},
		{"resting market order", good, func(r *book.LiveOrder) { r.Type = book.Market }, book.ErrLiveOrder},
		{"resting stop", good, func(r *book.LiveOrder) { r.Type, r.Stop = book.StopLimit, 9 }, book.ErrLiveOrder},
		{"trigger of what rests", good, func(r *book.LiveOrder) { r.Stop = 9 }, book.ErrLiveOrder},
		{"entered of what rests", good, func(r *book.LiveOrder) { r.EnteredSeq = 9 }, book.ErrLiveOrder},
		{"waiting limit order", stop, func(r *book.LiveOrder) { r.Type = book.Limit }, book.ErrLiveOrder},
		{"trigger 0", stop, func(r *book.LiveOrder) { r.Stop = 0 }, book.ErrLiveOrder},
		{"trigger", stop, func(r *book.LiveOrder) { r.Stop = market.MaxPrice + 1 }, book.ErrLiveOrder},
		{"shown stop", stop, func(r *book.LiveOrder) { r.Shown = 1 }, book.ErrLiveOrder},
		{"stop with a limit", stop, func(r *book.LiveOrder) { r.Type = book.Stop }, book.ErrLiveOrder},
		{"post-only IOC", stop, func(r *book.LiveOrder) { r.TIF, r.Flags = book.IOC, book.FlagPostOnly }, book.ErrLiveOrder},
		{"live already", good, func(r *book.LiveOrder) { r.ID = 50 }, book.ErrDuplicate},
		{"waiting and live already", stop, func(r *book.LiveOrder) { r.ID = 51 }, book.ErrDuplicate},
		{"crossed", good, func(r *book.LiveOrder) { r.Price = 200 }, book.ErrCrossed},
	}
	for _, impl := range implementations {
		for _, c := range cases {
			t.Run(impl.name+"/"+c.name, func(t *testing.T) {
				b := impl.make(book.Options{MaxOrders: 4})
				ask := book.LiveOrder{Order: limitOrder(50, market.Sell, 1, 200), Open: 1, Shown: 1}
				wait := stop
				wait.ID = 51
				for _, r := range []book.LiveOrder{ask, wait} {
					if err := b.Import(r); err != nil {
						t.Fatal(err)
					}
				}
				r := c.from
				c.harm(&r)
				if err := b.Import(r); !errors.Is(err, c.want) {
					t.Fatalf("Import: %v, want %v", err, c.want)
				}
				if err := b.Import(c.from); err != nil || b.OrderCount() != 3 {
					t.Fatalf("after the refusal the sound order gives %v, %d orders live", err, b.OrderCount())
				}
			})
		}
	}
}

// TestFull checks MaxOrders at the limit and one beyond, for Import too.
func TestFull(t *testing.T) {
	const limit = 1000
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			b := impl.make(book.Options{MaxOrders: limit})
			out := event.NewGrowingSink(64)
			for i := range market.OrderID(limit) {
				o := limitOrder(i+1, market.Buy, 1, 100+market.Price(i%7))
				b.Submit(&o, 0, uint64(i), out)
			}
			if b.OrderCount() != limit {
				t.Fatalf("%d orders live, want %d", b.OrderCount(), limit)
			}
			out.Reset()
			o := limitOrder(limit+1, market.Buy, 1, 100)
			b.Submit(&o, 0, limit, out)
			if e := out.Events()[0]; e.Kind != event.Rejected || event.Reason(e.Code) != event.ReasonBookFull || e.Aux != limit {
				t.Fatalf("order %d of %d: %s", limit+1, limit, describe(&e))
			}
			if err := b.Import(book.LiveOrder{Order: o, Open: 1, Shown: 1}); !errors.Is(err, book.ErrFull) {
				t.Fatalf("Import: %v", err)
			}
			b.Cancel(5, 0, 0, limit, out)
			b.Submit(&o, 0, limit, out)
			if b.OrderCount() != limit {
				t.Fatalf("after a cancel: %d orders live, want %d", b.OrderCount(), limit)
			}
		})
	}
}

// TestLevelFull fills a level to MaxLevelQty and tries all commands that could exceed it.
func TestLevelFull(t *testing.T) {
	const fill = int(book.MaxLevelQty / market.MaxQty)
	for _, impl := range implementations {
		t.Run(impl.name, func(t *testing.T) {
			b := impl.make(book.Options{})
			out := event.NewGrowingSink(64)
			seq := uint64(0)
			try := func(o op) event.Event {
				t.Helper()
				seq++
				out.Reset()
				o.do(b, seq, out)
				return out.Events()[len(out.Events())-1]
			}
			refused := func(what string, e event.Event, kind event.Kind) {
				t.Helper()
				if e.Kind != kind || event.Reason(e.Code) != event.ReasonLevelFull {
					t.Fatalf("%s: %s", what, describe(&e))
				}
			}
			for i := range fill {
				r := book.LiveOrder{Order: limitOrder(market.OrderID(i+1), market.Buy, market.MaxQty, 100), Open: market.MaxQty, Shown: market.MaxQty}
				if i%2 == 1 { // hidden quantity counts
					r.Display, r.Shown = market.MaxQty/2, market.MaxQty/2
				}
				if err := b.Import(r); err != nil {
					t.Fatal(err)
				}
			}
			more := limitOrder(90_001, market.Buy, 1, 100)
			refused("submit", try(op{kind: opSubmit, order: more}), event.Rejected)
			hidden := limitOrder(90_001, market.Buy, 50, 100)
			hidden.Display = 1
			refused("submit an iceberg", try(op{kind: opSubmit, order: hidden}), event.Rejected)
			if err := b.Import(book.LiveOrder{Order: more, Open: 1, Shown: 1}); !errors.Is(err, book.ErrFull) {
				t.Fatalf("Import: %v", err)
			}
			beside := limitOrder(90_012, market.Buy, 5, 99)
			try(op{kind: opSubmit, order: beside})
			refused("amend the price", try(op{kind: opAmend, order: book.Order{ID: 90_012, Price: 100}}), event.AmendRejected)
			stop := limitOrder(90_003, market.Buy, 1, 100)
			stop.Type, stop.Stop = book.StopLimit, 101
			try(op{kind: opSubmit, order: stop})
			ask := limitOrder(90_004, market.Sell, 1, 101)
			try(op{kind: opSubmit, order: ask})
			taker := limitOrder(90_005, market.Buy, 1, 101)
			refused("elect a stop", try(op{kind: opSubmit, order: taker}), event.Cancelled)

			less := book.Order{ID: 3, Qty: market.MaxQty - 2}
			if e := try(op{kind: opAmend, order: less}); e.Kind != event.Reduced {
				t.Fatalf("amend down: %s", describe(&e))
			}
			if e := try(op{kind: opAmend, order: book.Order{ID: 3, Qty: market.MaxQty - 1}}); e.Kind != event.Amended {
				t.Fatalf("amend up into the room: %s", describe(&e))
			}
			if e := try(op{kind: opSubmit, order: more}); e.Kind != event.Accepted {
				t.Fatalf("the last lot: %s", describe(&e))
			}
			more.ID++
			refused("one lot more", try(op{kind: opSubmit, order: more}), event.Rejected)
		})
	}
}

// TestOptions holds Options to its range.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		max int
		ok  bool
	}{{-1, false}, {0, true}, {1, true}, {book.MaxMaxOrders, true}, {book.MaxMaxOrders + 1, false}} {
		if err := (book.Options{MaxOrders: c.max}).Validate(); (err == nil) != c.ok {
			t.Errorf("MaxOrders %d: %v", c.max, err)
		}
	}
	for _, impl := range implementations {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: New takes invalid options", impl.name)
				}
			}()
			impl.make(book.Options{MaxOrders: -1})
		}()
	}
}

// TestTradesAreShared: two books of one engine share the trade ids.
func TestTradesAreShared(t *testing.T) {
	for _, impl := range implementations {
		trades := market.TradeID(41)
		out := event.NewGrowingSink(64)
		for i := range 2 {
			b := impl.make(book.Options{Instrument: market.InstrumentID(i), Trades: &trades})
			maker, taker := limitOrder(1, market.Buy, 1, 100), limitOrder(2, market.Sell, 1, 100)
			b.Submit(&maker, 0, 1, out)
			b.Submit(&taker, 0, 2, out)
			if e := out.Events()[len(out.Events())-1]; e.Kind != event.Traded || e.Aux != int64(42+i) || e.Instrument != market.InstrumentID(i) {
				t.Errorf("%s: book %d: %+v", impl.name, i, e)
			}
		}
	}
}
