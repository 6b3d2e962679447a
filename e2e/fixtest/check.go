// Package fixtest has participants that trade over FIX. A Trader trades at random by a
// seed, over as many connections as the test breaks, records everything, and checks each
// report against the rules that must survive a crash; the first broken one is its
// Violation. With a Session or a Firm a test reads messages one by one.
//
// After a crash ResolveRound sends every unanswered request again; then each trader knows
// the final state of its orders, and CheckTrades compares both sides of every trade. At
// most TraderWindow requests of a trader are unanswered at a time.
package fixtest

import (
	"strings"
	"testing"
)

// ResolveRound makes the traders send every unanswered request again, after the server has
// resent its messages, and waits until each trader knows the final state of its orders. It
// returns the number of those requests.
func ResolveRound(t *testing.T, traders ...*Trader) (late int) {
	t.Helper()
	for _, tr := range traders {
		late += sendLateAgain(t, tr)
	}
	// Only now has the server handled everything, and one firm's last order may have
	// filled the other's.
	for _, tr := range traders {
		if err := tr.barrier(); err != nil {
			t.Fatal(err)
		}
	}
	return late
}

// CheckTrades compares the two reports of each trade: the maker's ExecID is the taker's
// with an M.
func CheckTrades(t *testing.T, a, b *Trader) {
	t.Helper()
	for _, tr := range []*Trader{a, b} { // reports may still come
		tr.Mu.Lock()
		defer tr.Mu.Unlock()
	}
	for _, pair := range [][2]*Trader{{a, b}, {b, a}} {
		for id, f := range pair[0].Fills {
			other := id + "M"
			if strings.HasSuffix(id, "M") {
				other = strings.TrimSuffix(id, "M")
			}
			if theirs, ok := pair[1].Fills[other]; !ok || theirs != f {
				t.Fatalf("%s has fill %s %+v, %s has %s %+v (%v)", pair[0].Name, id, f, pair[1].Name, other, theirs, ok)
			}
		}
	}
}

func sendLateAgain(t *testing.T, tr *Trader) int {
	t.Helper()
	if err := tr.barrier(); err != nil {
		t.Fatal(err)
	}
	late := tr.unanswered()
	for _, r := range late {
		if err := tr.SendAgain(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.Await("answers to what was sent again", func() bool { return tr.Waiting == 0 }); err != nil {
		left := tr.unanswered()
		for _, r := range left[:min(1, len(left))] {
			t.Logf("the first is %s %q", r.MsgType, r.Body)
		}
		t.Fatalf("%v: of %d requests %d", err, len(late), len(left))
	}
	return len(late)
}
