package engine

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// replay stamps and applies commands one after another, saving and restoring after each
// index in saves, on alternating books.
func replay(t testing.TB, commands []Command, saves []int) (r *Replica, events []event.Event) {
	t.Helper()
	options := StateOptions{MaxOrders: 100}
	r = NewReplica(options)
	for i := range commands {
		c := commands[i]
		c.Seq = r.State.Seq() + 1
		r.Apply(&c, func(e []event.Event) { events = append(events, e...) })
		if slices.Contains(saves, i) {
			options.Naive = !options.Naive
			again, err := RestoreReplica(r.AppendSnapshot(nil), options)
			if err != nil {
				t.Fatalf("restore after command %d: %v", i, err)
			}
			r = again
		}
	}
	return r, events
}

func TestReplicaIsAFunctionOfTheJournal(t *testing.T) {
	commands := sampleCommands()
	want, wantEvents := replay(t, commands, nil)
	all := make([]int, len(commands))
	for i := range all {
		all[i] = i
	}
	for _, saves := range [][]int{{3}, {5, 6, 9}, {len(commands) - 1}, all} {
		got, events := replay(t, commands, saves)
		sameEvents(t, events, wantEvents)
		if got.Digest != want.Digest || !bytes.Equal(got.AppendSnapshot(nil), want.AppendSnapshot(nil)) {
			t.Errorf("saved after %v: another replica", saves)
		}
	}
	var sum uint64
	for i := range wantEvents {
		sum = event.Digest(sum, &wantEvents[i])
	}
	if sum != want.Digest {
		t.Error("the digest is not that of the events")
	}
}

// TestReplicasSideBySide: replicas share nothing; many at once, on any number of
// processors, end the same.
func TestReplicasSideBySide(t *testing.T) {
	commands := sampleCommands()
	want, _ := replay(t, commands, nil)
	hash := want.State.Hash() // a State is for one goroutine at a time
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(procs)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				got, _ := replay(t, commands, []int{4, 8})
				if got.Digest != want.Digest || got.State.Hash() != hash {
					t.Errorf("GOMAXPROCS %d: another replica", procs)
				}
			})
		}
		group.Wait()
	}
}

func TestReplicaVisitsOnlyEvents(t *testing.T) {
	r := NewReplica(StateOptions{})
	calls := 0
	r.Apply(&Command{Seq: 1, Kind: Tick}, func([]event.Event) { calls++ })
	if calls != 0 {
		t.Errorf("%d calls for a command without events", calls)
	}
	r.Apply(&Command{Seq: 2, Kind: StartEpoch, Arg: 1}, nil)
	if r.State.Epoch() != 1 || r.Digest == 0 {
		t.Error("without a visitor nothing was applied")
	}
}

// TestReplicaGivesMemoryBack: the buffer of one huge command is not kept.
func TestReplicaGivesMemoryBack(t *testing.T) {
	r := NewReplica(StateOptions{})
	in := testInstrument(0)
	var setup []Command
	c, err := DefineInstrumentCommand(&in)
	if err != nil {
		t.Fatal(err)
	}
	setup = append(setup, c)
	if c, err = SetRiskCommand(1, AllInstruments, Limits{}); err != nil {
		t.Fatal(err)
	}
	setup = append(setup, c)
	apply := func(c Command) (n int) {
		c.Seq = r.State.Seq() + 1
		r.Apply(&c, func(e []event.Event) { n = len(e) })
		return n
	}
	for _, c := range setup {
		apply(c)
	}
	for id := range maxRetainedEvents {
		apply(testOrder(market.OrderID(1+id), 1))
	}
	if n := apply(Command{Kind: MassCancel, Instrument: AllInstruments}); n != maxRetainedEvents+1 {
		t.Errorf("%d events", n)
	}
	if n := len(r.sink.Buf); n > maxRetainedEvents {
		t.Errorf("room for %d events is kept", n)
	}
}

func TestRestoreReplicaRefuses(t *testing.T) {
	r, _ := replay(t, sampleCommands(), nil)
	whole := r.AppendSnapshot(nil)
	options := StateOptions{MaxOrders: 100}
	for n := range len(whole) {
		if _, err := RestoreReplica(whole[:n], options); err == nil {
			t.Fatalf("cut at %d: accepted", n)
		}
	}
	if _, err := RestoreReplica(append(bytes.Clone(whole), 0), options); err == nil {
		t.Error("a byte more: accepted")
	}
	newer := bytes.Clone(whole)
	newer[4] = 9
	if _, err := RestoreReplica(newer, options); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("another version: %v", err)
	}
	long := bytes.Clone(whole)
	for i := 16; i < 24; i++ {
		long[i] = 0xff
	}
	if _, err := RestoreReplica(long, options); !errors.Is(err, ErrSnapshot) {
		t.Errorf("a lying length: %v", err)
	}
}

func FuzzRestoreReplica(f *testing.F) {
	commands := sampleCommands()
	flow := newMirrorFlow(1)
	var mirror []Command
	for flow.mirror.published < 5 || len(flow.mirror.queue) > 0 {
		mirror = append(mirror, flow.next())
	}
	r, _ := replay(f, mirror, nil)
	f.Add(r.AppendSnapshot(nil))
	commands = append(commands, refreshCommands(f, &MirrorBook{Instrument: 2, Slot: 1<<64 - 1, Asks: []market.Level{{Price: 1, Qty: 1}}})...)
	for n := range commands {
		r, _ := replay(f, commands[:n], nil)
		f.Add(r.AppendSnapshot(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := RestoreReplica(data, StateOptions{MaxOrders: 100})
		if err != nil {
			return
		}
		for _, c := range commands {
			c.Seq = r.State.Seq() + 1
			r.Apply(&c, nil)
		}
		r.AppendSnapshot(nil)
	})
}

// TestRestoreReplicaRefusesOtherMarketData: each part is a valid snapshot, but they are of
// two journals.
func TestRestoreReplicaRefusesOtherMarketData(t *testing.T) {
	commands := sampleCommands()
	r, _ := replay(t, commands, nil)
	last := len(commands) - 1 // it changes nothing that is displayed
	for n := range last {
		other, _ := replay(t, commands[:n], nil)
		mixed := &Replica{State: r.State, Market: other.Market}
		_, err := RestoreReplica(mixed.AppendSnapshot(nil), StateOptions{MaxOrders: 100})
		same := bytes.Equal(other.Market.AppendSnapshot(nil), r.Market.AppendSnapshot(nil))
		if !same && !errors.Is(err, ErrSnapshot) {
			t.Errorf("market data after %d commands of %d: %v", n, len(commands), err)
		}
	}
}
