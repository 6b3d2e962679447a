package fixgw

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/ratelimit"
)

// rawClient is a FIX client that sends exactly the given bytes.
type rawClient struct {
	t    testing.TB
	conn net.Conn
	us   string
	seq  int
	in   []byte
	got  []sessiontest.Message
}

func (d *harness) wire(compID, logon string) *rawClient {
	d.t.Helper()
	conn, err := d.connect()
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	w := &rawClient{t: d.t, conn: conn, us: d.options.CompID, seq: 1}
	w.say(w.frame(compID, "A", fmt.Sprintf("98=0|108=60|141=Y|553=%s|554=%s|%s", strings.ToLower(compID), sessiontest.Password, logon)))
	w.until(func(m sessiontest.Message) bool { return m.Get(35) == "A" })
	return w
}

// frame returns the next message.
func (w *rawClient) frame(compID, msgType, body string) []byte {
	f := w.numbered(compID, msgType, w.seq, "", body)
	w.seq++
	return f
}

func (w *rawClient) numbered(compID, msgType string, seq int, header, body string) []byte {
	return wiretest.Message(fmt.Sprintf("35=%s|34=%d|49=%s|52=%s|56=%s|%s%s", msgType, seq, compID,
		time.Now().UTC().Format("20060102-15:04:05.000"), w.us, header, body))
}

func (w *rawClient) say(frames ...[]byte) {
	w.t.Helper()
	if _, err := w.conn.Write(bytes.Join(frames, nil)); err != nil {
		w.t.Fatal(err)
	}
}

// until reads up to a message that last says is the last, or the end.
func (w *rawClient) until(last func(sessiontest.Message) bool) {
	w.t.Helper()
	buf := make([]byte, 4096)
	for {
		skip, n, err := wire.ScanFrame(w.in, 1<<20)
		if err != nil || skip > 0 {
			w.t.Fatalf("not FIX: %v: %s", err, wiretest.Show(w.in))
		}
		if n > 0 {
			m := sessiontest.Message(bytes.Clone(w.in[:n]))
			w.in = w.in[n:]
			w.got = append(w.got, m)
			if err := wiretest.StockChecker().Check(m); err != nil {
				w.t.Fatalf("%v: %s", err, m)
			}
			if last(m) {
				return
			}
			continue
		}
		w.conn.SetReadDeadline(time.Now().Add(wait))
		n, err = w.conn.Read(buf)
		if err != nil {
			w.t.Fatalf("%v, after %d messages", err, len(w.got))
		}
		w.in = append(w.in, buf[:n]...)
	}
}

// script says the same, chosen by seed, to a session, many messages a write, and
// returns what came back in a form that does not depend on time: the answers to
// each ClOrdID in their order. Messages come in the order of their numbers.
func (w *rawClient) script(seed uint64) string {
	w.t.Helper()
	const id = "MM"
	r := rand.New(rand.NewPCG(seed, 7))
	price := func() string { return fmt.Sprintf("0.%04d", 1000+r.IntN(100)) }
	order := func(n int, more string) string {
		return fmt.Sprintf("11=o%d-%d|55=SLUSD/USDC|54=1|38=1|40=2|44=%s|%s%s", seed, n, price(), now60, more)
	}
	var out [][]byte
	tests := 0
	for n := range 60 {
		switch r.IntN(16) {
		case 0: // a TestRequest between orders
			tests++
			out = append(out, w.frame(id, "1", fmt.Sprintf("112=T%d|", tests)))
		case 1:
			out = append(out, w.frame(id, "0", ""))
		case 2: // a gap, and what fills it
			w.seq++
			out = append(out, w.frame(id, "D", order(n, "59=1|")))
			missing := w.numbered(id, "D", w.seq-2, "43=Y|122=19990101-00:00:00|", order(n+1000, "59=1|"))
			w.say(out...)
			out = [][]byte{missing}
			w.until(func(m sessiontest.Message) bool { return m.Get(35) == "2" })
		case 3: // a gap fill
			out = append(out, w.numbered(id, "4", w.seq, "", fmt.Sprintf("36=%d|123=Y|", w.seq+5)))
			w.seq += 5
		case 4: // said before
			out = append(out, w.numbered(id, "D", w.seq-1, "43=Y|122=19990101-00:00:00|", order(n, "59=1|")))
		case 5:
			out = append(out, w.frame(id, "2", fmt.Sprintf("7=%d|16=0|", 1+r.IntN(20))))
		case 6: // not ordinary, and refused by the dictionary
			out = append(out, w.frame(id, "D", order(n, "59=1|59=1|")))
		case 7:
			out = append(out, w.frame(id, "D", order(n, "59=1|58=a text|")))
		case 8: // refused by us
			out = append(out, w.frame(id, "D", strings.Replace(order(n, "59=1|"), "SLUSD", "NO", 1)))
		case 9: // too long a ClOrdID: a reject (35=j) of the handler's
			out = append(out, w.frame(id, "q", "11="+strings.Repeat("x", wire.MaxClOrdID+1)+"|530=7|"+now60))
		case 10:
			out = append(out, w.frame(id, "F", fmt.Sprintf("11=c%d-%d|41=o%d-0|55=SLUSD/USDC|54=1|%s", seed, n, seed, now60)))
		case 11:
			w.say(out...)
			out = nil
		default:
			out = append(out, w.frame(id, "D", order(n, "59=3|")))
		}
	}
	out = append(out, w.frame(id, "D", order(9999, "59=3|")), w.frame(id, "1", "112=END|"))
	w.say(out...)
	ended := 0
	w.until(func(m sessiontest.Message) bool {
		if m.Get(112) == "END" || m.Get(35) == "8" && m.Get(11) == fmt.Sprintf("o%d-9999", seed) && m.Get(150) == "4" && m.Get(43) == "" {
			ended++
		}
		return ended == 2
	})
	// A Logout comes right after an order.
	w.say(w.frame(id, "H", fmt.Sprintf("11=o%d-9999|54=1|", seed)), w.frame(id, "5", ""))
	w.until(func(m sessiontest.Message) bool { return m.Get(35) == "5" })
	return w.answers()
}

func (w *rawClient) answers() string {
	said, next := map[string][]string{}, 1
	for _, m := range w.got {
		seq := 0
		fmt.Sscan(m.Get(34), &seq)
		if m.Get(43) == "Y" {
			continue
		}
		if seq != next {
			w.t.Errorf("number %d where %d is due: %s", seq, next, m)
		}
		next = seq + 1
		switch m.Get(35) {
		case "8", "9", "r":
			said[m.Get(11)] = append(said[m.Get(11)], m.Pick(35, 150, 39, 58, 102, 103, 97))
		case "3", "j":
			if m.Get(372) == "2" {
				break // whether it asks for more than we have sent is a question of time
			}
			said["refused"] = append(said["refused"], m.Pick(35, 45, 371, 372, 373, 379, 380, 58))
		case "0":
			if m.Get(112) != "" {
				said["heartbeats"] = append(said["heartbeats"], m.Get(112))
			}
		}
	}
	var b strings.Builder
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for key := range said {
			if !yield(key) {
				return
			}
		}
	}) {
		fmt.Fprintf(&b, "%s: %s\n", key, strings.Join(said[key], "; "))
	}
	return b.String()
}

// TestFastPathChangesNothing: random messages, in bursts, get the same answers as through
// quickfix alone, and the numbers of the answers have no gap.
func TestFastPathChangesNothing(t *testing.T) {
	t.Parallel()
	const scripts = 8
	answers := func(t *testing.T, fastPath bool) (all []string, past int64) {
		d := newDesk(t, []string{"MM"}, func(o *Options) { o.Rate = 1_000_000 })
		d.stop()
		d.quickfixOnly = !fastPath
		d.start()
		// Whether a ResendRequest is one too many is a question of time.
		d.hooks.LimitResends(ratelimit.NewRate(1, time.Second, 1000))
		for seed := range uint64(scripts) {
			w := d.wire("MM", "8013=N|")
			all = append(all, w.script(seed))
			w.conn.Close()
			d.awaitConnections(0)
		}
		return all, int64(d.gateway.Stats().MessagesIn) - int64(d.hooks.Session("MM").ThroughQuickfix())
	}
	var slow []string
	run := func(name string, play func(t *testing.T) []string) {
		t.Run(name, func(t *testing.T) {
			got := play(t)
			if slow == nil {
				slow = got
			}
			for seed := range got {
				if got[seed] != slow[seed] {
					t.Errorf("seed %d:\n%s\nbut by quickfix\n%s", seed, got[seed], slow[seed])
				}
			}
		})
	}
	run("quickfix", func(t *testing.T) []string {
		all, past := answers(t, false)
		if past > 0 {
			t.Errorf("%d requests went past quickfix", past)
		}
		return all
	})
	// Which go past quickfix is a question of time: on a busy machine few do.
	run("fastPath", func(t *testing.T) []string {
		all, _ := answers(t, true)
		return all
	})
	run("fastPath in no time", func(t *testing.T) (all []string) {
		synctest.Test(t, func(t *testing.T) {
			var past int64
			if all, past = answers(t, true); past <= 100 {
				t.Errorf("%d requests went past quickfix", past)
			}
		})
		return all
	})
}
