package orders_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/book"
	"blockdesk/engine/book/ladder"
	"blockdesk/engine/book/naive"
	"blockdesk/engine/event"
	"blockdesk/engine/orders"
	"blockdesk/market"
)

// clientBook is a client's book: queues by price, built from changes alone.
type clientBook map[market.Side][]orders.Order

func (c clientBook) apply(t *rapid.T, side market.Side, changes []orders.Change) {
	for _, change := range changes {
		list := c[side]
		at := slices.IndexFunc(list, func(o orders.Order) bool { return o.ID == change.ID })
		switch change.Action {
		case orders.Delete:
			if at < 0 {
				t.Fatalf("%+v deletes what is not there", change)
			}
			c[side] = slices.Delete(list, at, at+1)
		case orders.Update:
			if at < 0 || list[at].Price != change.Price || list[at].Qty == change.Qty {
				t.Fatalf("%+v changes %v", change, list)
			}
			list[at].Qty = change.Qty
		case orders.New:
			if at >= 0 {
				t.Fatalf("%+v is there already", change)
			}
			end := 0
			for end < len(list) && (list[end].Price == change.Price || (list[end].Price > change.Price) == (side == market.Buy)) {
				end++
			}
			c[side] = slices.Insert(list, end, change.Order)
		}
	}
}

// engineBook is what both book implementations have.
type engineBook interface {
	Submit(o *book.Order, at int64, seq uint64, out *event.Sink)
	Amend(o *book.Order, at int64, seq uint64, out *event.Sink)
	Cancel(id market.OrderID, participant market.ParticipantID, at int64, seq uint64, out *event.Sink)
	EndLater(participant market.ParticipantID, side market.Side, reason event.Reason, at int64, seq uint64, out *event.Sink) int
	Sweep(at int64, n int, seq uint64, out *event.Sink) int
	Depth(side market.Side, dst []market.Level) []market.Level
	Export(func(book.LiveOrder))
}

func drawOrder(t *rapid.T, id market.OrderID) book.Order {
	o := book.Order{
		ID: id, Participant: market.ParticipantID(rapid.IntRange(1, 3).Draw(t, "participant")),
		Side: market.Side(rapid.IntRange(1, 2).Draw(t, "side")), Type: book.Limit, TIF: book.GTC,
		Price: market.Price(rapid.IntRange(95, 105).Draw(t, "price")), Qty: market.Qty(rapid.IntRange(1, 20).Draw(t, "qty")),
		STP: book.STP(rapid.IntRange(1, 4).Draw(t, "stp")),
	}
	switch rapid.IntRange(0, 9).Draw(t, "form") {
	case 0, 1:
		o.Display = market.Qty(rapid.IntRange(1, int(o.Qty)).Draw(t, "display"))
	case 2:
		o.Type, o.Price, o.TIF = book.Market, 0, book.IOC
	case 3:
		o.Type, o.Stop = book.StopLimit, market.Price(rapid.IntRange(95, 105).Draw(t, "stop"))
	case 4:
		o.TIF = book.IOC
	}
	return o
}

// displayed returns the displayed orders of a side in the engine's own order.
func displayed(b engineBook, side market.Side) (list []orders.Order) {
	b.Export(func(r book.LiveOrder) {
		if !r.Waiting && r.Side == side {
			list = append(list, orders.Order{ID: r.ID, Price: r.Price, Qty: r.Shown})
		}
	})
	return list
}

// TestBookFollowsTheEngine: after each random command the book from events is that of the
// engine, and a client that applies the changes has it too, also one that sees only a few
// levels, or several commands at once.
func TestBookFollowsTheEngine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b engineBook = ladder.New(book.Options{})
		if rapid.Bool().Draw(t, "naive") {
			b = naive.New(book.Options{})
		}
		var followed orders.Book
		few := rapid.IntRange(1, 3).Draw(t, "levels")
		clients := [...]clientBook{{}, {}}
		seen := [...]map[market.Side][]orders.Order{{}, {}}
		sink := event.NewGrowingSink(64)
		pause := 1
		for seq := uint64(1); seq <= uint64(rapid.IntRange(1, 120).Draw(t, "commands")); seq++ {
			sink.Reset()
			id := market.OrderID(rapid.IntRange(1, int(seq)).Draw(t, "id"))
			switch rapid.IntRange(0, 9).Draw(t, "command") {
			case 0, 1:
				b.Cancel(id, 0, int64(seq), seq, sink)
			case 2:
				b.Amend(&book.Order{ID: id, Qty: market.Qty(rapid.IntRange(0, 25).Draw(t, "amended")), Price: market.Price(rapid.SampledFrom([]int{0, 97, 100, 103}).Draw(t, "to"))}, int64(seq), seq, sink)
			case 3:
				b.EndLater(market.ParticipantID(rapid.IntRange(0, 3).Draw(t, "of")), 0, event.ReasonMassCancel, int64(seq), seq, sink)
				b.Sweep(int64(seq), rapid.IntRange(0, 3).Draw(t, "slice"), seq, sink)
			default:
				o := drawOrder(t, market.OrderID(seq))
				b.Submit(&o, int64(seq), seq, sink)
			}
			events := sink.Events()
			for i := range events {
				followed.Apply(&events[i])
			}
			if pause--; pause > 0 {
				continue // the clients see several commands at once
			}
			pause = rapid.IntRange(1, 5).Draw(t, "pause")
			count := 0
			for _, side := range [...]market.Side{market.Buy, market.Sell} {
				want := displayed(b, side)
				count += len(want)
				got := followed.Append(nil, side, b.Depth(side, make([]market.Level, 0, 100)))
				if !slices.Equal(got, want) {
					t.Fatalf("side %d: %v, the engine has %v", side, got, want)
				}
				for i, levels := range [...]int{100, few} {
					next := orders.TopLevels(got, levels)
					clients[i].apply(t, side, orders.AppendChanges(nil, side, seen[i][side], next))
					if seen[i][side] = next; !slices.Equal(clients[i][side], next) {
						t.Fatalf("side %d, %d levels: the client has %v, want %v", side, levels, clients[i][side], next)
					}
				}
			}
			if followed.Len() != count {
				t.Fatalf("%d orders, the engine displays %d", followed.Len(), count)
			}
		}
	})
}

// TestBookEndsAtMaxOrders: one order more than the limit does not show until there is room.
func TestBookEndsAtMaxOrders(t *testing.T) {
	var b orders.Book
	for id := market.OrderID(1); id <= orders.MaxOrders+1; id++ {
		b.Add(market.Buy, orders.Order{ID: id, Price: 100, Qty: 5})
	}
	levels := []market.Level{{Price: 100, Qty: 5 * (orders.MaxOrders + 1)}}
	before := b.Append(nil, market.Buy, levels)
	if len(before) != orders.MaxOrders || before[orders.MaxOrders-1].ID != orders.MaxOrders {
		t.Fatalf("%d orders, the last is %v", len(before), before[len(before)-1])
	}
	b.Apply(&event.Event{Kind: event.Cancelled, OrderID: 7, Side: market.Buy, Price: 100, Aux: 5})
	changes := orders.AppendChanges(nil, market.Buy, before, b.Append(nil, market.Buy, levels))
	want := []orders.Change{
		{Order: orders.Order{ID: 7, Price: 100, Qty: 5}, Action: orders.Delete},
		{Order: orders.Order{ID: orders.MaxOrders + 1, Price: 100, Qty: 5}, Action: orders.New},
	}
	if !slices.Equal(changes, want) {
		t.Fatalf("changes %v, want %v", changes, want)
	}
}

// TestBookPanicsOnABrokenEngine: what would make the published book wrong ends the service.
func TestBookPanicsOnABrokenEngine(t *testing.T) {
	for name, e := range map[string]event.Event{
		"twice":   {Kind: event.Accepted, OrderID: 1, Side: market.Buy, Price: 100, Aux: 5},
		"unknown": {Kind: event.Cancelled, OrderID: 2, Side: market.Buy, Price: 100, Aux: 5},
		"less":    {Kind: event.Traded, OrderID: 2, Other: 1, Side: market.Sell, Price: 100, Qty: 6},
	} {
		t.Run(name, func(t *testing.T) {
			var b orders.Book
			b.Add(market.Buy, orders.Order{ID: 1, Price: 100, Qty: 5})
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			b.Apply(&e)
		})
	}
}
