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

	"github.com/quickfixgo/quickfix"

	"blockdesk/engine/book"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// strict fails when scan lets a frame through that quickfix's way would not take,
// or would read in another way.
func strict(t testing.TB, validator quickfix.Validator, frame []byte) (ordinary bool) {
	t.Helper()
	var x wire.Ordinary
	if _, n, err := wire.ScanFrame(frame, 1<<16); n != len(frame) || err != nil || !x.Scan(frame, "MM", "US") {
		return false
	}
	if seq, err := wire.CheckFrame(frame); err != nil || seq != x.Seq {
		t.Fatalf("let through: %v, number %d for %d: %s", err, x.Seq, seq, wiretest.Show(frame))
	}
	m := quickfix.NewMessage()
	if err := quickfix.ParseMessage(m, bytes.NewBuffer(bytes.Clone(frame))); err != nil {
		t.Fatalf("let through: %v: %s", err, wiretest.Show(frame))
	}
	if err := validator.Validate(m); err != nil {
		t.Fatalf("let through: %v, tag %v: %s", err, err.RefTagID(), wiretest.Show(frame))
	}
	at, err := m.Header.GetTime(52)
	if err != nil || at.UnixNano() != x.SendingTime {
		t.Fatalf("SendingTime %v, %v: %s", at, err, wiretest.Show(frame))
	}
	if a, b := fmt.Sprintf("%q", wire.ScanOrderRequest(frame)), fmt.Sprintf("%q", x.OrderRequest); a != b {
		t.Fatalf("read as %s, not %s: %s", b, a, wiretest.Show(frame))
	}
	return true
}

// TestExpressIsStrict changes ordinary requests at random, field by field: what is
// still ordinary, the dictionary and quickfix take too.
func TestExpressIsStrict(t *testing.T) {
	t.Parallel()
	validator, err := newValidator()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var pool []string
	for _, sample := range wiretest.OrdinaryRequests {
		if !strict(t, validator, wiretest.Message(sample)) {
			t.Errorf("not ordinary: %s", sample)
		}
		pool = append(pool, strings.Split(strings.TrimSuffix(sample, "|"), "|")...)
	}
	pool = append(pool, "97=Y", "43=Y", "50=x", "58=text", "117=q", "22=8", "48=x", "152=5", "453=1", "8013=Y", "11=", "=", "x", "-1=2",
		"038=1", "34=0", "40=P", "59=2", "59=7", "18=6 G", "54=5", "38=-1", "38=1e5", "38=.", "38=1.1.1", "44=+1", "60=20260101", "60=20260230-00:00:00",
		"60=20260101-24:00:00", "126=x", "432=", "530=3", "35=8", "35=AE", "21=4", "15=USD", "122=20260101-00:00:00", "49=TK", "56=ME")
	ordinary := 0
	for range 100_000 {
		fields := strings.Split(strings.TrimSuffix(wiretest.OrdinaryRequests[r.IntN(len(wiretest.OrdinaryRequests))], "|"), "|")
		for range 1 + r.IntN(3) {
			i, j := r.IntN(len(fields)), r.IntN(len(fields))
			switch r.IntN(4) {
			case 0:
				fields[i] = pool[r.IntN(len(pool))]
			case 1:
				fields = slices.Insert(fields, i, pool[r.IntN(len(pool))])
			case 2:
				fields = slices.Delete(fields, i, i+1)
			case 3:
				fields[i], fields[j] = fields[j], fields[i]
			}
			if len(fields) == 0 {
				fields = []string{"35=D"}
			}
		}
		if strict(t, validator, wiretest.Message(strings.Join(fields, "|")+"|")) {
			ordinary++
		}
	}
	if ordinary < 5_000 {
		t.Errorf("only %d were ordinary: the test shows little", ordinary)
	}
}

func FuzzExpress(f *testing.F) {
	validator, err := newValidator()
	if err != nil {
		f.Fatal(err)
	}
	for _, sample := range wiretest.OrdinaryRequests {
		f.Add(sample)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) < 4<<10 && !strings.ContainsAny(body, "\x01") {
			strict(t, validator, wiretest.Message(body))
		}
	})
}

// TestExpressAllocates: nothing to read a request, decode it, and encode its
// report under a number.
func TestExpressAllocates(t *testing.T) {
	set := wiretest.Instruments(t)
	frame := wiretest.Message(wiretest.OrdinaryRequests[0])
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var x wire.Ordinary
	if n := testing.AllocsPerRun(1000, func() {
		if !x.Scan(frame, "MM", "US") {
			t.Fatal("not ordinary")
		}
		if _, _, no := x.DecodeNew(set, now); no != nil {
			t.Fatal(no.Text)
		}
	}); n != 0 {
		t.Errorf("reading a request allocates %v times", n)
	}
	s := &session{id: quickfix.SessionID{SenderCompID: "US", TargetCompID: "MM"}}
	s.line.session = s
	o := &wire.ClientOrder{ID: 1, ClOrdID: "a", Side: market.Buy, Type: book.Limit, TIF: book.GTC, Status: wire.StatusNew, Price: 15000, Total: 1000, Leaves: 1000}
	var b batch
	var body, out []byte
	encode := func() {
		b.clear()
		body = (&wire.ExecutionReport{Order: o, Instrument: set.Get(0), ExecType: wire.ExecNew, ExecID: []byte("1-0-1"), At: now.UnixNano()}).AppendBody(body[:0])
		b.add("8", wire.TagOrderID, body, false)
		s.line.batch, s.line.stamp = &b, now.UnixNano()
		out = s.line.appendDraft(out[:0], &b.drafts[0], 9)
	}
	encode()
	if n := testing.AllocsPerRun(1000, encode); n > 0 {
		t.Errorf("encoding a report allocates %v times", n)
	}
	if err := wiretest.StockChecker().Check(out); err != nil {
		t.Errorf("%v: %s", err, wiretest.Show(out))
	}
}

// rawClient is a FIX client that says exactly what it is told to.
type rawClient struct {
	t    testing.TB
	conn net.Conn
	us   string
	seq  int
	in   []byte
	got  []msg
}

func (d *harness) wire(compID, logon string) *rawClient {
	d.t.Helper()
	conn, err := d.connect()
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	w := &rawClient{t: d.t, conn: conn, us: d.options.CompID, seq: 1}
	w.say(w.frame(compID, "A", fmt.Sprintf("98=0|108=60|141=Y|553=%s|554=%s|%s", strings.ToLower(compID), testPassword, logon)))
	w.until(func(m msg) bool { return m.get(35) == "A" })
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
func (w *rawClient) until(last func(msg) bool) {
	w.t.Helper()
	buf := make([]byte, 4096)
	for {
		skip, n, err := wire.ScanFrame(w.in, 1<<20)
		if err != nil || skip > 0 {
			w.t.Fatalf("not FIX: %v: %s", err, wiretest.Show(w.in))
		}
		if n > 0 {
			m := msg(bytes.Clone(w.in[:n]))
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
			w.until(func(m msg) bool { return m.get(35) == "2" })
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
	w.until(func(m msg) bool {
		if m.get(112) == "END" || m.get(35) == "8" && m.get(11) == fmt.Sprintf("o%d-9999", seed) && m.get(150) == "4" && m.get(43) == "" {
			ended++
		}
		return ended == 2
	})
	// A Logout comes right after an order.
	w.say(w.frame(id, "H", fmt.Sprintf("11=o%d-9999|54=1|", seed)), w.frame(id, "5", ""))
	w.until(func(m msg) bool { return m.get(35) == "5" })
	return w.answers()
}

func (w *rawClient) answers() string {
	said, next := map[string][]string{}, 1
	for _, m := range w.got {
		seq := 0
		fmt.Sscan(m.get(34), &seq)
		if m.get(43) == "Y" {
			continue
		}
		if seq != next {
			w.t.Errorf("number %d where %d is due: %s", seq, next, m)
		}
		next = seq + 1
		switch m.get(35) {
		case "8", "9", "r":
			said[m.get(11)] = append(said[m.get(11)], m.pick(35, 150, 39, 58, 102, 103, 97))
		case "3", "j":
			said["refused"] = append(said["refused"], m.pick(35, 45, 371, 372, 373, 379, 380, 58))
		case "0":
			if m.get(112) != "" {
				said["heartbeats"] = append(said["heartbeats"], m.get(112))
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

// TestExpressChangesNothing: whatever is said, in bursts, the answers are those
// that quickfix's way alone gives, and their numbers have no hole.
func TestExpressChangesNothing(t *testing.T) {
	t.Parallel()
	const scripts = 8
	answers := func(t *testing.T, express bool) (all []string, past int64) {
		d := newDesk(t, []string{"MM"}, func(o *Options) { o.Rate = 1_000_000 })
		d.stop()
		d.quickfixOnly = !express
		d.start()
		// Whether a ResendRequest is one too many is a question of time.
		d.gateway.rates.resends = ratelimit.NewRate(1, time.Second, 1000)
		for seed := range uint64(scripts) {
			w := d.wire("MM", "8013=N|")
			all = append(all, w.script(seed))
			w.conn.Close()
			d.awaitConnections(0)
		}
		return all, int64(d.gateway.Stats().MessagesIn) - int64(d.gateway.sessionNamed("MM").messages.begun.Load())
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
	run("express", func(t *testing.T) []string {
		all, _ := answers(t, true)
		return all
	})
	run("express in no time", func(t *testing.T) (all []string) {
		synctest.Test(t, func(t *testing.T) {
			var past int64
			if all, past = answers(t, true); past <= 100 {
				t.Errorf("%d requests went past quickfix", past)
			}
		})
		return all
	})
}
