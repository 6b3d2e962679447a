package flow

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"blockdesk/bench/yardstick"
	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

func newMix(t testing.TB, o MixOptions) *Mix {
	t.Helper()
	m, err := NewMix(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMixKeepsItsProportions(t *testing.T) {
	const commands = 200_000
	m := newMix(t, MixOptions{Seed: 1})
	var adds, cancels, iocs int
	for _, c := range m.Take(commands) {
		switch {
		case c.Kind == engine.CancelOrder:
			cancels++
		case c.Order.TIF == book.IOC:
			iocs++
		default:
			adds++
		}
	}
	near := func(what string, got, want, slack int) {
		if got < want-slack || got > want+slack {
			t.Errorf("%s: %d, want %d ± %d", what, got, want, slack)
		}
	}
	near("adds", adds, commands*mixAdds/100, commands/100)
	near("cancels", cancels, commands*mixCancels/100, commands/100)
	near("IOCs", iocs, commands/10, commands/100)
	near("resting", len(m.live), 17_000, 2_000)

	resting, refused := 0, 0
	m.State().Orders(0, func(book.LiveOrder) { resting++ })
	if resting != len(m.live) {
		t.Errorf("the mix counts %d resting orders, its engine %d", len(m.live), resting)
	}
	again := newMix(t, MixOptions{Seed: 1})
	replica, state := again.Setup(), engine.NewState(engine.StateOptions{})
	out := event.NewGrowingSink(64)
	for _, c := range append(replica, again.Take(commands)...) {
		out.Reset()
		state.Apply(&c, out)
		for _, e := range out.Events() {
			if e.Kind == event.Rejected || e.Kind == event.CancelRejected {
				refused++
			}
		}
	}
	if refused != 0 {
		t.Errorf("%d commands refused", refused)
	}
	if state.Hash() != m.State().Hash() {
		t.Error("the same seed gave another state")
	}
}

// TestMixPaths: every path is followed over the range that it names, and no command of it
// is refused.
func TestMixPaths(t *testing.T) {
	ranges := [Paths][2]market.Price{
		Still: {10_000, 10_000}, Wander: {10_000, 12_000}, Crash: {13_402, 33_504},
		Swing25: {25_128, 41_880}, Swing40: {20_103, 46_905}, Swing90: {20_103, 381_945},
	}
	for path := range Paths {
		t.Run(path.String(), func(t *testing.T) {
			m := newMix(t, MixOptions{Seed: 3, Path: path, Resting: 1000})
			low, high := market.MaxPrice, market.Price(0)
			state, out := engine.NewState(engine.StateOptions{}), event.NewGrowingSink(64)
			for _, c := range append(m.Setup(), m.Take(310_000)...) {
				if int(c.Seq) > len(m.Setup()) && c.Kind == engine.NewOrder && c.Order.TIF == book.GTC {
					low, high = min(low, c.Order.Price), max(high, c.Order.Price)
				}
				out.Reset()
				state.Apply(&c, out)
				for _, e := range out.Events() {
					if e.Kind == event.Rejected || e.Kind == event.CancelRejected {
						t.Fatalf("command %d refused: %+v", c.Seq, e)
					}
				}
			}
			want := ranges[path]
			near := func(got, want market.Price) bool { return max(got-want, want-got) <= 251+want/100 }
			if path != Wander && (!near(low, want[0]) || !near(high, want[1])) || path == Wander && high-low < 1000 {
				t.Errorf("prices %d to %d, want about %d to %d", low, high, want[0], want[1])
			}
		})
	}
}

func TestMixOptionsOutOfRange(t *testing.T) {
	for _, o := range []MixOptions{
		{Resting: -1},
		{Resting: book.MaxMaxOrders/4 + 1},
		{Ticks: 1},
		{Ticks: mixMiddle + 1},
		{Participants: engine.MaxParticipants + 1},
		{Instruments: market.MaxInstruments + 1},
		{Path: Paths},
	} {
		if _, err := NewMix(o); err == nil {
			t.Errorf("%+v: accepted", o)
		}
	}
}

// Every kind of event must occur in a random stream, or the laws that are tested
// on it are tested on less than they claim.
func TestRandomReachesEveryEvent(t *testing.T) {
	seen := map[event.Kind]int{}
	reasons := map[event.Reason]int{}
	r := engine.NewReplica(engine.StateOptions{MaxOrders: 40})
	w := NewRandom(1)
	var c engine.Command
	for range 200_000 {
		w.Next(&c)
		r.Apply(&c, func(events []event.Event) {
			for i := range events {
				e := &events[i]
				seen[e.Kind]++
				switch e.Kind {
				case event.Rejected, event.AmendRejected, event.CancelRejected, event.Cancelled, event.Reduced:
					reasons[event.Reason(e.Code)]++
				}
			}
		})
	}
	for k := event.Accepted; k <= event.EpochStarted; k++ {
		if seen[k] == 0 {
			t.Errorf("event kind %d never occurred", k)
		}
	}
	for r := event.ReasonUser; r <= event.ReasonInvalidCommand; r++ {
		unreached := r == event.ReasonLevelFull || // 2^60 lots on one price
			r == event.ReasonQuoteReplaced || r == event.ReasonQuoteProtection // of mass quotes, which engine's tests draw
		if r.String() != "unknown" && !unreached && reasons[r] == 0 {
			t.Errorf("reason %v never occurred", r)
		}
	}
}

// The journal decides everything: the book's implementation, the moments at
// which a caller saves and restores, do not.
func TestRandomSameOnBothBooks(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		fast := engine.NewReplica(engine.StateOptions{MaxOrders: 300})
		slow := engine.NewReplica(engine.StateOptions{MaxOrders: 300, Naive: true})
		w := NewRandom(seed)
		for i := range 20_000 {
			var c engine.Command
			w.Next(&c)
			var a, b []event.Event
			fast.Apply(&c, func(e []event.Event) { a = e })
			slow.Apply(&c, func(e []event.Event) { b = e })
			if len(a) != len(b) {
				t.Fatalf("seed %d, command %d %+v:\nladder %+v\nnaive  %+v", seed, i, c, a, b)
			}
			for k := range a {
				if a[k] != b[k] {
					t.Fatalf("seed %d, command %d %+v: event %d\nladder %+v\nnaive  %+v", seed, i, c, k, a[k], b[k])
				}
			}
			if i%1_999 == 0 {
				if fast.State.Hash() != slow.State.Hash() {
					t.Fatalf("seed %d, command %d: hashes differ", seed, i)
				}
				fast, slow = swapBooks(t, fast, slow)
			}
		}
		if fast.Digest != slow.Digest || fast.State.Hash() != slow.State.Hash() {
			t.Fatalf("seed %d: digests or hashes differ", seed)
		}
	}
}

// swapBooks saves both and restores each on the other's kind of book; which of
// the two is returned first does not matter to the caller.
func swapBooks(t *testing.T, fast, slow *engine.Replica) (*engine.Replica, *engine.Replica) {
	t.Helper()
	restore := func(r *engine.Replica, naive bool) *engine.Replica {
		again, err := engine.RestoreReplica(r.AppendSnapshot(nil), engine.StateOptions{MaxOrders: 300, Naive: naive})
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	return restore(slow, false), restore(fast, true)
}

// The number of processors, and others at work beside, change nothing.
func TestRandomSameOnAnyProcessors(t *testing.T) {
	commands := NewRandom(42).Take(5_000)
	replay := func() uint64 {
		r := engine.NewReplica(engine.StateOptions{MaxOrders: 300})
		for i := range commands {
			r.Apply(&commands[i], nil)
		}
		hash := r.State.Hash()
		return r.Digest ^ binary.LittleEndian.Uint64(hash[:])
	}
	want := replay()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(procs)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if replay() != want {
					t.Errorf("GOMAXPROCS %d: another end", procs)
				}
			})
		}
		group.Wait()
	}
}

func ringSink() *event.Sink {
	return &event.Sink{Buf: make([]event.Event, 1<<12), Limit: 1 << 62}
}

func TestMixDoesNotAllocate(t *testing.T) {
	m := newMix(t, MixOptions{Seed: 3, References: true})
	state, out := engine.NewState(engine.StateOptions{}), ringSink()
	commands := append(m.Setup(), m.Take(300_000)...)
	apply := func(cs []engine.Command) {
		for i := range cs {
			state.Apply(&cs[i], out)
		}
	}
	const runs, each = 20, 5_000
	tail := len(commands) - (runs+1)*each
	apply(commands[:tail])
	next := tail
	allocs := testing.AllocsPerRun(runs, func() {
		apply(commands[next : next+each])
		next += each
	})
	if allocs != 0 {
		t.Errorf("%v allocations in %d commands", allocs, each)
	}
}

// The engine (shape, risk, self-trade prevention, events, digest) against the
// bare ladder on the same commands, chunk by chunk in turn, so that a busy
// machine slows both; medians of the chunks.
func BenchmarkMix(b *testing.B) {
	for _, references := range []bool{false, true} {
		name := "plain"
		if references {
			name = "references"
		}
		m := newMix(b, MixOptions{Seed: 1, References: references})
		setup, commands := m.Setup(), m.Take(1_000_000)
		b.Run(name, func(b *testing.B) { compare(b, setup, commands) })
	}
}

func compare(b *testing.B, setup, commands []engine.Command) {
	const chunk, batch = 6_400, 64 // the engine folds its digest once a batch
	var state *engine.State
	var bare *yardstick.Ladder
	var sum uint64
	out := ringSink()
	runEngine := func(cs []engine.Command) {
		first := out.Pos
		for i := range cs {
			state.Apply(&cs[i], out)
			if i%batch != batch-1 {
				continue
			}
			for ; first < out.Pos; first++ {
				sum = event.Digest(sum, out.At(first))
			}
		}
	}
	var engineTimes, bareTimes []time.Duration
	b.ReportAllocs()
	for done := 0; done < b.N; {
		b.StopTimer()
		state, bare = engine.NewState(engine.StateOptions{}), yardstick.NewLadder(1<<15, 1<<16)
		runEngine(setup)
		runBare(bare, setup)
		b.StartTimer()
		for at := 0; at+chunk <= len(commands) && done < b.N; at, done = at+chunk, done+chunk {
			// The second one finds the commands in the cache, so they alternate.
			cs, engineFirst := commands[at:at+chunk], at/chunk%2 == 0
			if engineFirst {
				engineTimes = append(engineTimes, timed(func() { runEngine(cs) }))
			}
			bareTimes = append(bareTimes, timed(func() { runBare(bare, cs) }))
			if !engineFirst {
				engineTimes = append(engineTimes, timed(func() { runEngine(cs) }))
			}
		}
	}
	if got := state.Seq(); got <= setup[len(setup)-1].Seq || sum == 0 {
		b.Fatalf("seq %d, digest %d: nothing was applied", got, sum)
	}
	slices.Sort(engineTimes)
	slices.Sort(bareTimes)
	ours, theirs := float64(engineTimes[len(engineTimes)/2])/chunk, float64(bareTimes[len(bareTimes)/2])/chunk
	b.ReportMetric(0, "ns/op") // both together: says nothing
	b.ReportMetric(ours, "engine-ns/cmd")
	b.ReportMetric(theirs, "yardstick-ns/cmd")
	b.ReportMetric(ours/theirs, "ratio")
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func runBare(bare *yardstick.Ladder, commands []engine.Command) {
	for i := range commands {
		c := &commands[i]
		switch c.Kind {
		case engine.NewOrder:
			o := &c.Order
			bare.Add(uint64(o.ID), o.Side == market.Buy, int32(o.Price), int64(o.Qty), o.TIF == book.IOC)
		case engine.CancelOrder:
			bare.Cancel(uint64(c.Order.ID))
		}
	}
}
