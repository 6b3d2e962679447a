package engine

import (
	"slices"
	"testing"

	"blockdesk/engine/event"
)

// TestCrashWithinRequest: wherever the journal ends, the next epoch starts the same from a
// replay and from a snapshot; an incomplete request is rejected once and has no effect,
// even if its last piece arrives later.
func TestCrashWithinRequest(t *testing.T) {
	for name, f := range map[string]*flow{"request": newDeskFlow(3), "refresh": newMirrorFlow(5)} {
		t.Run(name, func(t *testing.T) { crashInside(t, f) })
	}
}

func crashInside(t *testing.T, f *flow) {
	commands := make([]Command, 200)
	for i := range commands {
		commands[i] = f.next()
		commands[i].At = int64(i) * second / 10
	}
	inside := 0
	for n := range commands {
		replayed, _ := replay(t, commands[:n], nil)
		restored, _ := replay(t, commands[:n], []int{n - 1})
		cut := replayed.State.assembler.NextPiece(replayed.State.Seq()+1) > 0
		if cut {
			inside++
		}
		for i, r := range []*Replica{replayed, restored} {
			events := nextLife(r, commands[n:min(n+20, len(commands))])
			published := slices.ContainsFunc(events, func(e event.Event) bool { return e.Kind == event.Rejected })
			if events[0].Kind != event.EpochStarted || published != cut {
				t.Fatalf("after %d commands, replica %d: inside a request %v, the epoch begins with %+v", n, i, cut, events)
			}
		}
		if replayed.Digest != restored.Digest || replayed.State.Hash() != restored.State.Hash() {
			t.Fatalf("after %d commands: the replay and the snapshot go on differently", n)
		}
	}
	if inside < 10 {
		t.Errorf("only %d of %d places are inside a request", inside, len(commands))
	}
}

// nextLife applies the next StartEpoch, then commands, and returns the events of the first.
func nextLife(r *Replica, commands []Command) (first []event.Event) {
	c := Command{Seq: r.State.Seq() + 1, At: r.State.At(), Kind: StartEpoch, Arg: r.State.Epoch() + 1}
	r.Apply(&c, func(events []event.Event) { first = slices.Clone(events) })
	for i := range commands {
		c = commands[i]
		c.Seq = r.State.Seq() + 1
		r.Apply(&c, nil)
	}
	return first
}
