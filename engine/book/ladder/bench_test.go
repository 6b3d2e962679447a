package ladder

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// step is one command of a benchmark's flow.
type step struct {
	order  book.Order
	cancel bool
}

// mix is a seeded flow: 48 % adds, 42 % cancels of a random resting order, 10 % IOC, about
// 17,000 resting orders. Prices are spread evenly over ticks around the middle, which
// follows a path.
type mix struct {
	ticks int64
	path  func(rng *rand.Rand, command int, middle market.Price) market.Price
}

// standard is the mix for which the speed of the package is stated: 500 ticks around a
// fixed center.
var standard = mix{500, still(10_000)}

func still(middle market.Price) func(*rand.Rand, int, market.Price) market.Price {
	return func(*rand.Rand, int, market.Price) market.Price { return middle }
}

// swing moves between middle × (1 ± part) and back in a hundred thousand commands.
func swing(middle market.Price, percent int) func(*rand.Rand, int, market.Price) market.Price {
	const period = 100_000
	reach := float64(middle) * float64(percent) / 100
	return func(_ *rand.Rand, command int, _ market.Price) market.Price {
		return middle + market.Price(reach*math.Sin(2*math.Pi*float64(command)/period))
	}
}

const mixResting = 17_000

func (m mix) flow(n int) []step {
	rng := rand.New(rand.NewPCG(1, 2))
	b := New(book.Options{})
	sink := event.NewGrowingSink(16)
	var live []market.OrderID
	steps := make([]step, 0, n)
	middle := market.Price(0)
	for id := market.OrderID(1); len(steps) < n; {
		middle = m.path(rng, len(steps), middle)
		var s step
		switch roll := rng.IntN(100); {
		case roll < 48 || len(steps) < mixResting || b.OrderCount() < mixResting/2:
			s.order = m.order(rng, id, middle, book.GTC, 100)
			live = append(live, id)
			id++
		case roll < 90:
			s.cancel = true
			for { // live may hold orders that have traded
				i := rng.IntN(len(live))
				s.order.ID = live[i]
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				if _, ok := b.Get(s.order.ID); ok {
					break
				}
			}
		default:
			// An IOC takes as much as keeps the book at its size.
			size := 20
			if b.OrderCount() > mixResting {
				size = 120
			}
			s.order = m.order(rng, id, middle, book.IOC, size)
			id++
		}
		sink.Reset()
		apply(b, &s, uint64(len(steps)), sink)
		steps = append(steps, s)
	}
	return steps
}

func (m mix) order(rng *rand.Rand, id market.OrderID, middle market.Price, tif book.TIF, size int) book.Order {
	o := book.Order{
		ID: id, Type: book.Limit, TIF: tif, STP: book.STPCancelNewest, Qty: market.Qty(1 + rng.IntN(size)),
		Side: market.Side(1 + rng.IntN(2)), Participant: market.ParticipantID(1 + rng.IntN(50)),
	}
	away := market.Price(1 + rng.Int64N(m.ticks/2))
	if tif == book.IOC {
		away = -away
	}
	o.Price = middle - away
	if o.Side == market.Sell {
		o.Price = middle + away
	}
	return o
}

func apply(b *Book, s *step, seq uint64, out *event.Sink) {
	if s.cancel {
		b.Cancel(s.order.ID, 0, 1, seq, out)
	} else {
		b.Submit(&s.order, 1, seq, out)
	}
}

// ring returns a sink that overwrites itself, as the engine's egress ring does.
func ring(size int) *event.Sink {
	return &event.Sink{Buf: make([]event.Event, size), Limit: 1 << 62}
}

// uncounted is the number of steps that fill the book.
const uncounted = 2 * mixResting

// BenchmarkMix runs the standard mix. The other flows are hard for a window: a price that
// wanders, swings, crashes and recovers, jumps far away and back every thousand commands,
// and prices so far apart that nearly every order is outside. They report ns/op in wall
// time and cpu-ns/op in the thread's CPU time; on a shared machine only the second is
// meaningful.
func BenchmarkMix(b *testing.B) { standard.run(b) }

func BenchmarkWander(b *testing.B) {
	mix{500, func(rng *rand.Rand, _ int, middle market.Price) market.Price {
		return max(middle, 40_000) + market.Price(rng.IntN(41)-20)
	}}.run(b)
}

func BenchmarkSwing25(b *testing.B) { mix{500, swing(33_504, 25)}.run(b) }
func BenchmarkSwing40(b *testing.B) { mix{500, swing(33_504, 40)}.run(b) }
func BenchmarkSwing90(b *testing.B) { mix{500, swing(200_000, 90)}.run(b) }

func BenchmarkCrash(b *testing.B) {
	mix{500, func(_ *rand.Rand, command int, _ market.Price) market.Price {
		if at := command % 300_000; at > 200_000 {
			return 33_504 - market.Price(min(at-200_000, 300_000-at)/2)
		}
		return 33_504
	}}.run(b)
}

func BenchmarkJumps(b *testing.B) {
	mix{500, func(rng *rand.Rand, _ int, middle market.Price) market.Price {
		if middle == 0 || rng.IntN(1000) == 0 {
			return []market.Price{10_000, 100_000, 1_000_000, 10_000_000}[rng.IntN(4)]
		}
		return middle
	}}.run(b)
}

func BenchmarkScattered(b *testing.B) { mix{1 << 46, still(1 << 46)}.run(b) }

func (m mix) run(b *testing.B) {
	steps := m.flow(2_000_000)
	out := ring(1 << 12)
	var lob *Book
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ReportAllocs()
	b.ResetTimer()
	var cpu time.Duration
	start, j := threadTime(), len(steps)
	for i := 0; i < b.N; i++ {
		if j == len(steps) {
			b.StopTimer()
			cpu += threadTime() - start
			lob = New(book.Options{})
			for j = 0; j < uncounted; j++ {
				apply(lob, &steps[j], 0, out)
			}
			runtime.GC()
			start = threadTime()
			b.StartTimer()
		}
		apply(lob, &steps[j], uint64(i), out)
		j++
	}
	cpu += threadTime() - start
	b.ReportMetric(float64(cpu)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(lob.OrderCount()), "resting")
}
