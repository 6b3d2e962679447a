package quorum

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"blockdesk/engine/event"
	"blockdesk/persist/journaltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 9)) }

// TestGroup: three nodes take frames and commits, the leader dies, another one
// continues from all that was acknowledged, and the dead one comes back.
func TestGroup(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	ref := journaltest.NewReference(journaltest.Commands(2000, 1))
	at := 0
	for round, percent := range []int{0, 50, 100} {
		id, term := c.lead()
		var events []event.Event
		w := newWriter(t, term)
		if got := int(w.replica.State.Seq()); got != at {
			t.Fatalf("round %d: recovered seq %d, acknowledged %d", round, got, at)
		}
		fix := term.Store("fix")
		for n := range 30 {
			if err := w.append(ref.Commands[at : at+20]); err != nil {
				t.Fatal(err)
			}
			at += 20
			key := fmt.Appendf(nil, "%d-%d", round, n)
			err := fix.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
				set([]byte("at"), fmt.Appendf(nil, "%d", at))
				set(key, key)
			}, n%3 == 0)
			if err != nil {
				t.Fatal(err)
			}
			if v, ok, err := fix.Get(key); err != nil || !ok || string(v) != string(key) {
				t.Fatalf("read back %q %v: %v", v, ok, err)
			}
		}
		_ = events
		count := 0
		if err := fix.Scan([]byte("0"), []byte("9"), func(_, _ []byte) bool { count++; return true }); err != nil || count != 30*(round+1) {
			t.Fatalf("round %d: %d entries: %v", round, count, err)
		}
		c.kill(id, percent)
		if err := w.append(ref.Commands[at : at+1]); !errors.Is(err, ErrDeposed) {
			t.Fatalf("the dead leader's append: %v", err)
		}
		c.start(id)
	}
	if seq := c.agree(ref); int(seq) != at {
		t.Fatalf("seq %d, acknowledged %d", seq, at)
	}
}
