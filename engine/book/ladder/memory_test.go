package ladder

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// TestGrowth grows a book to many orders, with cancels in between, and checks it all the
// time: its slices never move again once it has reserved memory, and its id table grows in
// steps and gives the old one back.
func TestGrowth(t *testing.T) {
	const most = 12_000
	rng := rand.New(rand.NewPCG(21, 22))
	b := New(book.Options{MaxOrders: most})
	out := ring(1 << 10)
	var live []market.OrderID
	var orders *order
	growing, dropping, seq := 0, 0, uint64(0)
	grow := func(to int) {
		for b.live < to {
			seq++
			if rng.IntN(3) == 0 && len(live) > 0 {
				i := rng.IntN(len(live))
				b.Cancel(live[i], 0, 1, seq, out)
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			} else {
				id := market.OrderID(rng.Uint64()>>1 + 1)
				o := plainOrder(id, market.Side(1+seq%2), market.Price(10_000+rng.IntN(3000)))
				o.Participant = market.ParticipantID(rng.IntN(1 << 16))
				if o.Side == market.Sell {
					o.Price += 5000
				}
				b.Submit(&o, 1, seq, out)
				live = append(live, id)
			}
			if b.growing != nil {
				growing++
			}
			if b.dropping != nil {
				dropping++
			}
			if b.reserved != 0 && b.memory != nil && orders == nil {
				orders = &b.orders[0]
			}
			if seq%5000 == 0 || b.growing != nil && seq%100 == 0 {
				if err := b.check(); err != nil {
					t.Fatalf("after command %d: %v", seq, err)
				}
			}
		}
	}
	grow(most * 3 / 4)
	if growing < 500 {
		t.Fatalf("the id table has grown in %d commands: not in steps", growing)
	}
	if runtime.GOOS == "linux" && (dropping == 0 || orders != &b.orders[0]) {
		t.Fatalf("memory: %d commands gave some back; the orders have moved: %v", dropping, orders != &b.orders[0])
	}
	b.SetMaxOrders(4 * most)
	orders = nil
	if err := b.check(); err != nil {
		t.Fatalf("with more room: %v", err)
	}
	grow(2 * most)
	for _, id := range live {
		if _, ok := b.Get(id); !ok {
			t.Fatalf("order %d is lost", id)
		}
	}
	if n := b.MassCancel(0, 0, event.ReasonMassCancel, 1, seq+1, out); n != len(live) {
		t.Fatalf("a mass cancel took out %d of %d orders", n, len(live))
	}
	if err := b.check(); err != nil {
		t.Fatalf("when empty: %v", err)
	}
}

// TestReleasedMemory makes and forgets many books that reserve memory: the system takes it
// back, or it would run out of address space.
func TestReleasedMemory(t *testing.T) {
	out := ring(1 << 10)
	for range 64 {
		b := New(book.Options{MaxOrders: book.MaxMaxOrders})
		for id := market.OrderID(1); id <= 2*reserveAt; id++ {
			o := plainOrder(id, market.Buy, market.Price(id))
			b.Submit(&o, 1, uint64(id), out)
		}
		if b.live != 2*reserveAt || b.reserved == 0 {
			t.Fatalf("%d live, reserved %d", b.live, b.reserved)
		}
		if runtime.GOOS == "linux" && b.memory == nil {
			t.Fatal("no address space")
		}
		runtime.GC()
	}
}

// TestWithoutReservedMemory: a book that gets no address space works all the same.
func TestWithoutReservedMemory(t *testing.T) {
	b := New(book.Options{})
	b.reserved = 1 // as after a refusal
	out := ring(1 << 10)
	for id := market.OrderID(1); id <= 20_000; id++ {
		o := plainOrder(id, market.Buy, market.Price(id))
		o.Participant = market.ParticipantID(id % 3000)
		b.Submit(&o, 1, uint64(id), out)
	}
	if err := b.check(); err != nil || b.live != 20_000 || b.memory != nil {
		t.Fatalf("%v; %d live", err, b.live)
	}
}

func plainOrder(id market.OrderID, s market.Side, p market.Price) book.Order {
	return book.Order{ID: id, Side: s, Qty: 1, Price: p, Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest}
}

// TestSlideInSteps: a window with many levels follows the best price in steps, and the book
// is right after each.
func TestSlideInSteps(t *testing.T) {
	const levels = 1000
	b := New(book.Options{})
	id := market.OrderID(0)
	sell := func(p market.Price) {
		id++
		put(b, id, market.Sell, p)
	}
	for i := range market.Price(levels) {
		sell(10_000_000 + 100*i)
	}
	steps := 0
	for at, jump := range []market.Price{9_000_000, 8_950_000, 9_900_000, 1_000_000} {
		for k := 0; !b.near(jump); k++ {
			if k > 4*levels {
				t.Fatalf("jump %d: the window never follows", at)
			}
			base, width, far := b.base, b.width, b.far.size
			sell(jump + market.Price(k%10))
			if b.base != base || b.width != width {
				steps++
				if moved := b.far.size - far; moved > slideStep || moved < -slideStep {
					t.Fatalf("jump %d: one command moved %d levels", at, moved)
				}
				if err := b.check(); err != nil {
					t.Fatalf("jump %d: %v", at, err)
				}
			}
		}
		for i := market.OrderID(levels + 1); i <= id; i++ { // the market returns
			b.Cancel(i, 0, 1, 1, ring(2))
		}
		if err := b.check(); err != nil {
			t.Fatalf("after jump %d: %v", at, err)
		}
	}
	if steps < levels/slideStep {
		t.Fatalf("%d steps", steps)
	}
}
