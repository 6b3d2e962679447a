package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/internal/await"
	"blockdesk/market"
)

func TestSubmitAllCounts(t *testing.T) {
	e := newEngine(t, Options{})
	for n, want := range map[int]error{0: ErrCommandCount, 1: nil, MaxSubmitAll: nil, MaxSubmitAll + 1: ErrCommandCount} {
		before, refused := e.ingress.end(), e.Stats().Refused
		err := e.SubmitAll(make([]Command, n))
		if !errors.Is(err, want) || want != nil && (e.ingress.end() != before || e.Stats().Refused != refused+1) {
			t.Errorf("%d commands: %v, %d went in", n, err, e.ingress.end()-before)
		}
	}
	e.SetAdmission(AdmitNone)
	if err := e.SubmitAll(make([]Command, 1)); !errors.Is(err, ErrReadOnly) {
		t.Errorf("with nothing let in: %v", err)
	}
	small := newEngine(t, Options{IngressSize: 2})
	if err := small.SubmitAll(make([]Command, 3)); !errors.Is(err, ErrFull) || small.ingress.end() != 1 {
		t.Errorf("three commands into a ring of two: %v", err)
	}
}

// TestSubmitAllAllocatesNothing: neither if it is accepted nor if it is refused.
func TestSubmitAllAllocatesNothing(t *testing.T) {
	e := newEngine(t, Options{IngressSize: 1 << 14})
	cs := deskCommands(t, longRequest(1))
	if n := testing.AllocsPerRun(1000, func() {
		if e.SubmitAll(cs) != nil {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for e.SubmitAll(cs) == nil {
	}
	if n := testing.AllocsPerRun(1000, func() { _ = e.SubmitAll(cs) }); n != 0 {
		t.Errorf("%v allocations where the ring is full", n)
	}
}

// groupMark identifies a command of the stress test below: producer, group, index in the
// group, and size of the group.
type groupMark struct{ producer, group, index, size int }

func (m groupMark) command() Command {
	c := Command{Kind: Tick, Origin: uint16(m.producer), Arg: uint64(m.group)}
	c.Order.ID, c.Order.Qty = market.OrderID(m.index), market.Qty(m.size)
	return c
}

func markOf(c *Command) groupMark {
	return groupMark{int(c.Origin), int(c.Arg), int(c.Order.ID), int(c.Order.Qty)}
}

// TestSubmitAllStress: many goroutines submit groups and single commands into a small ring.
// In the journal every group is whole and consecutive, in the order of its producer, and
// refused commands are absent. The engine is stopped while they still submit.
func TestSubmitAllStress(t *testing.T) {
	for name, o := range map[string]Options{
		"small ring": {IngressSize: 16, MaxBatch: 3},
		"defaults":   {},
		"spin":       {Wait: Spin, IngressSize: 64},
	} {
		t.Run(name, func(t *testing.T) {
			j := &slowJournal{delay: 100 * time.Microsecond}
			o.Journal = j
			e := newEngine(t, o)
			e.start(t)
			submitted, full := submitGroups(t, e, 8)
			if err := e.finish(t); err != nil {
				t.Fatal(err)
			}
			sent := submitted()
			if o.IngressSize == 16 && full.Load() == 0 {
				t.Error("the ring was never full")
			}
			if err := checkGroups(j.commands, sent); err != nil {
				t.Error(err)
			}
		})
	}
}

// submitGroups lets producers submit until the engine is stopped, and returns once enough
// is accepted; submitted waits for their end and returns how many groups of each were
// accepted.
func submitGroups(t *testing.T, e *running, producers int) (submitted func() []int, full *atomic.Int64) {
	var sent atomic.Int64
	full = new(atomic.Int64)
	groups := make([]int, producers)
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(p), 5))
			for {
				size := 1 + rng.IntN(MaxSubmitAll)
				cs := make([]Command, size)
				for i := range cs {
					cs[i] = groupMark{p, groups[p], i, size}.command()
				}
				var err error
				if size == 1 && rng.IntN(2) == 0 {
					err = e.Submit(&cs[0])
				} else {
					err = e.SubmitAll(cs)
				}
				switch {
				case err == nil:
					groups[p]++
					sent.Add(1)
				case errors.Is(err, ErrFull):
					full.Add(1)
					time.Sleep(time.Microsecond) // sleep: the pace of a producer that finds the ring full
				case errors.Is(err, ErrStopped):
					return
				default:
					t.Errorf("submit: %v", err)
					return
				}
			}
		})
	}
	await.True(t, "groups enough", func() bool { return sent.Load() > 5_000 })
	return func() []int { wg.Wait(); return groups }, full
}

func checkGroups(commands []Command, sent []int) error {
	next := make([]int, len(sent))
	for i := 1; i < len(commands); { // after StartEpoch
		first := markOf(&commands[i])
		if first.index != 0 || first.group != next[first.producer] {
			return fmt.Errorf("seq %d: %+v, want group %d", i+1, first, next[first.producer])
		}
		for n := range first.size {
			want := first
			want.index = n
			if i == len(commands) || markOf(&commands[i]) != want {
				return fmt.Errorf("seq %d: want %+v", i+1, want)
			}
			i++
		}
		next[first.producer]++
	}
	for p := range sent {
		if next[p] != sent[p] {
			return fmt.Errorf("producer %d: %d groups in the journal, %d were let in", p, next[p], sent[p])
		}
	}
	return nil
}
