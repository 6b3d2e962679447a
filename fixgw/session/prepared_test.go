package session

import (
	"slices"
	"testing"

	"blockdesk/fixgw/session/sessiontest"
)

// TestSparesAreMadeAhead: so many sets as are asked for at once were made before, all
// beside each other; where the participants are others, all are made anew.
func TestSparesAreMadeAhead(t *testing.T) {
	t.Parallel()
	var spares Pool
	o := Options{Address: "127.0.0.1:9878", CompID: t.Name(), Participants: sessiontest.Participants("MM")}
	sets := []*Prepared{nextPrepared(t, &spares, &o)}
	for round := range 2 * poolSize {
		ahead := slices.Clone(spares.ready)
		if len(ahead) != poolSize {
			t.Fatalf("turn %d: %d sets ahead, want %d", round, len(ahead), poolSize)
		}
		sets = append(sets, nextPrepared(t, &spares, &o))
		if sets[round+1] != ahead[0] || spares.ready[0] != ahead[1] {
			t.Errorf("turn %d: not the set that was there longest", round)
		}
	}
	sets = append(sets, spares.ready...)
	for i, e := range sets {
		if n := e.Registered(); n != 1 {
			t.Errorf("set %d: quickfix knows %d sessions", i, n)
		}
	}
	old := slices.Clone(spares.ready)
	o.Participants = sessiontest.Participants("MM", "TAKER")
	fresh := nextPrepared(t, &spares, &o)
	if n := fresh.Registered(); n != 2 || len(spares.ready) != poolSize {
		t.Errorf("with another participant quickfix knows %d sessions of the next set, and %d are ahead", n, len(spares.ready))
	}
	for _, e := range old {
		if n := e.Registered(); n != 0 {
			t.Errorf("quickfix keeps %d sessions of a set that can no longer be used", n)
		}
	}
}

// TestSparesNeedAPort: and make nothing without one.
func TestSparesNeedAPort(t *testing.T) {
	t.Parallel()
	var spares Pool
	o := Options{Address: "127.0.0.1:0", CompID: t.Name(), Participants: sessiontest.Participants("MM")}
	if e, err := spares.Next(o); err == nil {
		e.Close()
		t.Error("made without a port")
	}
	if len(spares.ready) != 0 {
		t.Errorf("%d sets ahead", len(spares.ready))
	}
}

// nextPrepared takes the sessions of o's participants out of pool.
func nextPrepared(t *testing.T, spares *Pool, o *Options) *Prepared {
	t.Helper()
	early, err := spares.Next(*o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(early.Close)
	t.Cleanup(spares.Close)
	return early
}
