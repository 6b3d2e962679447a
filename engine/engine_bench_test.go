package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// benchFlow makes n commands on one instrument: about half add an order, nearly as many
// cancel one of some thousand live orders, one in ten takes.
func benchFlow(n int) []Command {
	rng := rand.New(rand.NewPCG(1, 2))
	var live []market.OrderID
	commands := make([]Command, 0, n)
	id := market.OrderID(0)
	for len(commands) < n {
		roll := rng.IntN(100)
		if roll >= 48 && roll < 90 && len(live) > 1000 {
			i := rng.IntN(len(live))
			c := Command{Kind: CancelOrder}
			c.Order.ID, c.Order.Participant = live[i], market.ParticipantID(1+live[i]%8)
			live[i] = live[len(live)-1]
			live = live[:len(live)-1]
			commands = append(commands, c)
			continue
		}
		id++
		c := order(id, market.ParticipantID(1+id%8), market.Side(1+rng.IntN(2)), 0, market.Qty(1+rng.IntN(20)))
		c.Order.Price = 5_000 - market.Price(rng.IntN(200))
		if c.Order.Side == market.Sell {
			c.Order.Price = 5_001 + market.Price(rng.IntN(200))
		}
		if roll >= 90 {
			c.Order.TIF, c.Order.Side = book.IOC, c.Order.Side.Opposite()
		} else {
			live = append(live, id)
		}
		commands = append(commands, c)
	}
	return commands
}

// startBench starts an engine with the flow's instrument and participants, and one consumer
// that has read those events.
func startBench(b *testing.B, o Options) (*Engine, *Consumer, func()) {
	b.Helper()
	r := NewReplica(StateOptions{})
	e, err := New(o, r)
	if err != nil {
		b.Fatal(err)
	}
	c := e.Consumer("bench")
	for _, command := range head() {
		if err := e.Submit(&command); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	for c.CompleteSeq() < uint64(1+len(head())) {
		c.Release(len(c.Poll()))
	}
	return e, c, func() {
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommandToEvent submits b.N commands at a fixed rate, however fast the engine is,
// and measures from the moment a command was due until the consumer has its first event:
// both rings, risk checks and matching. One goroutine is producer and consumer, the matcher
// has the other core. No journal.
func BenchmarkCommandToEvent(b *testing.B) {
	for _, rate := range []int{100_000, 1_000_000} {
		for name, mode := range map[string]WaitMode{"spin": Spin, "park": Park} {
			b.Run(fmt.Sprintf("%s-%d", name, rate), func(b *testing.B) {
				benchOpenLoop(b, Options{Wait: mode}, time.Second/time.Duration(rate))
			})
		}
	}
}

func benchOpenLoop(b *testing.B, o Options, every time.Duration) {
	commands := benchFlow(b.N)
	e, c, stop := startBench(b, o)
	defer stop()
	base := e.Stats().Seq + 1
	waited := make([]time.Duration, 0, b.N)
	sent, seen := 0, 0
	full := 0
	b.ReportAllocs()
	b.ResetTimer()
	start := time.Now()
	for seen < b.N {
		now := time.Since(start)
		if sent < b.N && now >= time.Duration(sent)*every {
			if e.Submit(&commands[sent]) == nil {
				sent++
			} else {
				full++
			}
		}
		events := c.Poll()
		if len(events) == 0 {
			continue
		}
		now = time.Since(start)
		for i := range events {
			if n := int(events[i].Seq - base); n >= seen {
				waited = append(waited, now-time.Duration(n)*every)
				seen = n + 1
			}
		}
		c.Release(len(events))
	}
	b.StopTimer()
	slices.Sort(waited)
	for _, permille := range []int{500, 900, 990, 999, 1000} {
		at := max(len(waited)*permille/1000, 1) - 1
		b.ReportMetric(float64(waited[at]), fmt.Sprintf("p%v-ns", float64(permille)/10))
	}
	b.ReportMetric(float64(full), "full")
}

// BenchmarkThroughput submits as fast as the ring accepts, with one goroutine as producer
// and consumer. With "journal", a frame costs only the hand-over.
func BenchmarkThroughput(b *testing.B) {
	for name, o := range map[string]Options{
		"spin": {Wait: Spin}, "park": {}, "park-journal": {Journal: nullJournal{}},
	} {
		b.Run(name, func(b *testing.B) {
			commands := benchFlow(b.N)
			e, c, stop := startBench(b, o)
			defer stop()
			last := e.Stats().Seq + uint64(b.N)
			sent := 0
			b.ReportAllocs()
			b.ResetTimer()
			for c.CompleteSeq() < last {
				for burst := 0; burst < 64 && sent < b.N && e.Submit(&commands[sent]) == nil; burst++ {
					sent++
				}
				c.Release(len(c.Poll()))
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
		})
	}
}

// benchEvents returns the events of the flow, of b.N commands or more.
func benchEvents(n int) []event.Event {
	s := NewState(StateOptions{})
	sink := event.NewGrowingSink(1 << 16)
	for i, c := range append(head(), benchFlow(n)...) {
		c.Seq, c.At = uint64(i+1), int64(i+1)*1000
		s.Apply(&c, sink)
	}
	return sink.Events()
}

// BenchmarkMarketDataApply measures one event.
func BenchmarkMarketDataApply(b *testing.B) {
	events := benchEvents(b.N)
	m := marketdata.New()
	m.Flush(nil)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		m.Apply(&events[i])
	}
}

// BenchmarkMarketDataFlush measures a Flush after a number of events.
func BenchmarkMarketDataFlush(b *testing.B) {
	for _, every := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("events-%d", every), func(b *testing.B) {
			events := benchEvents(b.N * every)
			m := marketdata.New()
			views := 0
			pub := func(_, _ *marketdata.View, _ []marketdata.Trade) { views++ }
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				for j := range every {
					m.Apply(&events[i*every+j])
				}
				m.Flush(pub)
			}
			b.ReportMetric(float64(views)/float64(b.N), "views/op")
		})
	}
}
