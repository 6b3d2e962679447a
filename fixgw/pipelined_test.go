package fixgw

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
)

// Messages that a client sends without waiting for answers.

// TestNothingAfterLogout: what comes behind a client's own Logout, even another
// Logon, opens no session and enters no order: cancel on disconnect has been.
func TestNothingAfterLogout(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	s := d.gateway.SessionNamed("MM")
	for round := range 10 {
		w := d.wire("MM", "8013=Y|")
		var out [][]byte
		for n := range 10 { // quickfix has something to do meanwhile
			out = append(out, w.frame("MM", "1", fmt.Sprintf("112=T%d|", n)))
		}
		out = append(out, w.frame("MM", "5", ""), w.frame("MM", "A", "98=0|108=60|8013=Y|"))
		for n := range 5 {
			out = append(out, w.frame("MM", "D", fmt.Sprintf("11=o%d-%d|55=SLUSD/USDC|54=1|38=1|40=2|44=0.1|59=1|%s", round, n, now60)))
		}
		w.say(out...)
		w.until(func(m sessiontest.Message) bool { return m.Get(35) == "5" })
		d.awaitFree("MM")
		// The next session begins when quickfix is through with this one, and what it
		// enters comes after what this one has.
		w = d.wire("MM", "8013=Y|")
		w.say(w.frame("MM", "D", fmt.Sprintf("11=last%d|55=SLUSD/USDC|54=1|38=1|40=2|44=0.1|59=3|%s", round, now60)))
		w.until(func(m sessiontest.Message) bool { return m.Get(150) == "4" })
		d.awaitOrders(0)
		w.say(w.frame("MM", "5", ""))
		w.until(func(m sessiontest.Message) bool { return m.Get(35) == "5" })
		d.awaitFree("MM")
		if s.LoggedOn() {
			t.Fatalf("round %d: logged on without a connection", round)
		}
	}
}

// TestEachGapHasItsMeasure: what waited for a gap that was filled does not count
// for the next.
func TestEachGapHasItsMeasure(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	w := d.wire("MM", "")
	const size = 12 << 10
	text := "58=" + strings.Repeat("x", size) + "|"
	behind := 64 + 2 + session.MaxAhead/size*2/3
	for round := range 3 {
		missing := w.seq
		w.seq++
		var out [][]byte
		for n := range behind {
			out = append(out, w.frame("MM", "D", fmt.Sprintf("11=o%d-%d|55=SLUSD/USDC|54=1|38=1|40=2|44=0.1|59=3|%s%s", round, n, now60, text)))
		}
		w.say(bytes.Join(out, nil))
		w.until(func(m sessiontest.Message) bool { return m.Get(35) == "2" })
		w.say(w.numbered("MM", "4", missing, "43=Y|122=20260101-00:00:00|", fmt.Sprintf("36=%d|123=Y|", missing+1)))
		last := fmt.Sprintf("o%d-%d", round, behind-1)
		w.until(func(m sessiontest.Message) bool { return m.Get(11) == last && m.Get(150) == "4" })
	}
}
