package journaltest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"blockdesk/engine"
	"blockdesk/engine/event"
)

// Journal is a journal under test.
type Journal interface {
	engine.Journal
	// Recover returns the replica of all frames, after calling visit with the events of
	// the commands above floor.
	Recover(floor uint64, visit func([]event.Event)) (*engine.Replica, error)
}

// Rig opens and kills one journal.
type Rig interface {
	// Open creates or reopens the journal.
	Open() Journal
	// Close closes it cleanly.
	Close()
	// Kill crashes it and keeps about percentKept of what is not durable.
	Kill(percentSurviving int)
	// MayRefuse reports whether the journal may refuse any frame, for example because
	// another node was elected.
	MayRefuse() bool
}

// Run tests the contract of engine.Journal. Each test has a rig of its own.
func Run(t *testing.T, rigged func(t *testing.T) Rig) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, rig Rig)
	}{
		{"recovers every appended frame", recovers},
		{"keeps acknowledged frames after a kill", survives},
		{"the events above a floor come once, in order", replays},
		{"a frame that does not follow is refused for good", refuses},
		{"a frame of too many commands is refused", limits},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // a group waits for its elections
			c.run(t, rigged(t))
		})
	}
}

// driver appends a reference's commands and tracks what the journal may and must have.
type driver struct {
	t       *testing.T
	rig     Rig
	ref     *Reference
	journal Journal
	replica *engine.Replica

	acked, issued int
}

func drive(t *testing.T, rig Rig, n int, seed uint64) *driver {
	d := &driver{t: t, rig: rig, ref: NewReference(Commands(n, seed))}
	d.open()
	return d
}

// open recovers and checks the result.
func (d *driver) open() {
	d.t.Helper()
	d.journal = d.rig.Open()
	r, err := d.journal.Recover(^uint64(0), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	seq := int(r.State.Seq())
	if seq < d.acked || seq > d.issued {
		d.t.Fatalf("recovered seq %d, acknowledged %d, issued %d", seq, d.acked, d.issued)
	}
	if !d.ref.Same(r) {
		d.t.Fatalf("seq %d: not the state of an undisturbed run", seq)
	}
	d.replica, d.acked, d.issued = r, seq, seq
}

// append appends the next n commands as one frame in two parts.
func (d *driver) append(n int) error {
	commands := d.ref.Commands[d.acked : d.acked+n]
	prior := d.replica.Digest
	for i := range commands {
		d.replica.Apply(&commands[i], nil)
	}
	d.issued = d.acked + n
	err := d.journal.Append(prior, commands[:n/3], commands[n/3:])
	if err == nil {
		d.acked = d.issued
	}
	return err
}

// appendAll appends until n more commands are acknowledged. It reopens a journal that refuses
// a frame if MayRefuse permits that, else it fails the test.
func (d *driver) appendAll(n int) {
	d.t.Helper()
	for end := d.acked + n; d.acked < end; {
		err := d.append(end - d.acked)
		if err == nil {
			return
		}
		if !d.rig.MayRefuse() {
			d.t.Fatal(err)
		}
		d.rig.Close()
		d.open()
	}
}

func recovers(t *testing.T, rig Rig) {
	d := drive(t, rig, 600, 1)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 3 {
		for range 20 {
			d.appendAll(1 + rng.IntN(9))
		}
		rig.Close()
		d.issued = d.acked
		d.open()
	}
	rig.Close()
}

func survives(t *testing.T, rig Rig) {
	d := drive(t, rig, 1200, 2)
	rng := rand.New(rand.NewPCG(2, 2))
	for round := range 6 {
		for range rng.IntN(30) {
			d.appendAll(1 + rng.IntN(9))
		}
		rig.Kill([]int{0, 50, 100}[round%3])
		d.open()
	}
	rig.Close()
}

func replays(t *testing.T, rig Rig) {
	d := drive(t, rig, 300, 3)
	for range 30 {
		d.appendAll(10)
	}
	floor := d.acked - 77
	var want, got []event.Event
	r := engine.NewReplica(State())
	for i := range d.acked {
		r.Apply(&d.ref.Commands[i], func(events []event.Event) {
			if i >= floor {
				want = append(want, events...)
			}
		})
	}
	rig.Close()
	last := uint64(0)
	_, err := rig.Open().Recover(uint64(floor), func(events []event.Event) {
		if events[0].Seq <= last {
			t.Errorf("events of seq %d after those of seq %d", events[0].Seq, last)
		}
		last = events[len(events)-1].Seq
		got = append(got, events...)
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d events above seq %d, want %d", len(got), floor, len(want))
	}
	rig.Close()
}

func refuses(t *testing.T, rig Rig) {
	d := drive(t, rig, 100, 4)
	d.appendAll(40)
	next := d.ref.Commands[d.acked:]
	backwards := slices.Clone(next[:2])
	backwards[1].At = 1
	for _, c := range []struct {
		name     string
		commands []engine.Command
	}{
		{"a gap before it", next[1:3]},
		{"a gap within it", []engine.Command{next[0], next[2]}},
		{"a command again", d.ref.Commands[d.acked-1 : d.acked+1]},
		{"a time that falls", backwards},
		{"none", nil},
	} {
		if err := d.journal.Append(d.replica.Digest, c.commands, nil); err == nil {
			t.Fatalf("%s: accepted", c.name)
		}
		if err := d.journal.Append(d.replica.Digest, next[:1], nil); err == nil {
			t.Fatalf("%s: the journal went on after it", c.name)
		}
		rig.Kill(100)
		d.open()
	}
	d.appendAll(10)
	rig.Close()
}

func limits(t *testing.T, rig Rig) {
	const most = 1 << 17
	d := drive(t, rig, 10, 5)
	many := make([]engine.Command, most+1)
	for i := range many {
		many[i] = engine.Command{Seq: uint64(i + 1), At: 1, Kind: engine.Tick}
	}
	if err := d.journal.Append(d.replica.Digest, many, nil); err == nil {
		t.Fatalf("a frame of %d commands was accepted", len(many))
	}
	rig.Kill(100)
	d.open()
	d.appendAll(10)
	rig.Close()
}
