package fixgw

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/engine"
	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
)

// rawConn is a client that says what it likes.
type rawConn struct {
	t    testing.TB
	conn net.Conn
}

func (d *harness) raw() *rawConn {
	d.t.Helper()
	conn, err := d.connect()
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	return &rawConn{d.t, conn}
}

func (r *rawConn) write(b []byte) {
	r.t.Helper()
	if _, err := r.conn.Write(b); err != nil {
		r.t.Logf("write: %v", err)
	}
}

// rest returns everything that comes until the gateway closes.
func (r *rawConn) rest() string {
	r.t.Helper()
	r.conn.SetReadDeadline(time.Now().Add(wait))
	b, err := io.ReadAll(r.conn)
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		r.t.Fatalf("the connection was not closed; it said %s", wiretest.Show(b))
	}
	return wiretest.Show(b)
}

func (d *harness) logonText(compID, fields string) string {
	return fmt.Sprintf("35=A|34=1|49=%s|52=%s|56=%s|98=0|%s", compID, time.Now().UTC().Format("20060102-15:04:05.000"), d.options.CompID, fields)
}

func TestLogonRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.RefuseDelay = 200 * time.Millisecond })
	const good = "553=mm|554=" + sessiontest.Password + "|"
	for _, c := range []struct{ name, message, want string }{
		{"wrong password", d.logonText("MM", "108=60|553=mm|554=wrong|"), "LOGON_REFUSED: username, password or CompID is wrong"},
		{"no password", d.logonText("MM", "108=60|"), "LOGON_REFUSED: username, password or CompID is wrong"},
		{"wrong user", d.logonText("MM", "108=60|553=tk|554="+sessiontest.Password+"|"), "LOGON_REFUSED: username, password or CompID is wrong"},
		{"unknown CompID", d.logonText("XX", "108=60|"+good), "LOGON_REFUSED: username, password or CompID is wrong"},
		{"heartbeat 9", d.logonText("MM", "108=9|"+good), `INVALID_FIELD: HeartBtInt (108) "9": must be 10 to 60`},
		{"heartbeat 61", d.logonText("MM", "108=61|"+good), `INVALID_FIELD: HeartBtInt (108) "61": must be 10 to 60`},
		{"no heartbeat", d.logonText("MM", good), `INVALID_FIELD: HeartBtInt (108) "": must be 10 to 60`},
		{"heartbeat overflow", d.logonText("MM", "108=99999999999999999999|"+good), `must be 10 to 60`},
		{"reset", d.logonText("MM", "108=60|141=X|"+good), `INVALID_FIELD: tag 141 "X": must be Y or N`},
		{"cancel on disconnect", d.logonText("MM", "108=60|8013=1|"+good), `INVALID_FIELD: tag 8013 "1": must be Y or N`},
		{"encryption", strings.Replace(d.logonText("MM", "108=60|"+good), "98=0", "98=1", 1), `INVALID_FIELD: EncryptMethod (98) "1": must be 0`},
		{"target", strings.Replace(d.logonText("MM", "108=60|"+good), "56=", "56=X", 1), "INVALID_FIELD: TargetCompID (56)"},
		{"no logon", "35=0|34=1|49=MM|56=X|", `LOGON_REFUSED: the first message must be a Logon, not MsgType (35) "0"`},
		{"empty number", strings.Replace(d.logonText("MM", "108=60|"+good), "34=1|", "34=|", 1), `INVALID_FIELD: MsgSeqNum (34) ""`},
		{"another version", "", `INVALID_FIELD: BeginString (8) "FIX.4.2": must be FIX.4.4`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			frame := wiretest.Message(c.message)
			if c.message == "" {
				text := strings.Replace(string(wiretest.Message(d.logonText("MM", "108=60|"+good))), "FIX.4.4", "FIX.4.2", 1)
				text = text[:len(text)-7]
				frame = fmt.Appendf(nil, "%s10=%03d\x01", text, wiretest.SumOf(text))
			}
			r := d.raw()
			start := time.Now()
			r.write(frame)
			answer := r.rest()
			if !strings.Contains(answer, "|35=5|34=1|") || !strings.Contains(answer, "|58=") || !strings.Contains(answer, strings.ReplaceAll(c.want, "|", "?")) {
				t.Errorf("answer %q, want a Logout with %q", answer, c.want)
			}
			if err := wiretest.StockChecker().Check([]byte(strings.ReplaceAll(answer, "|", "\x01"))); err != nil {
				t.Errorf("the Logout breaks the dictionary: %v", err)
			}
			if took := time.Since(start); took < d.options.RefuseDelay {
				t.Errorf("refused after %v, before the constant delay", took)
			}
		})
	}
	t.Run("afterwards", func(t *testing.T) {
		d.dial("MM", nil) // no refusal has moved the session
	})
}

// TestSecondConnection: a new connection with a proven Logon gets the session of a client
// that does not answer, and not that of one that does.
func TestSecondConnection(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, func(o *Options) { o.TakeoverSilence = 3 * time.Second })
	logon := func(compID string) *rawConn {
		r := d.raw()
		r.write(wiretest.Message(d.logonText(compID, "108=60|8013=N|553="+strings.ToLower(compID)+"|554="+sessiontest.Password+"|")))
		return r
	}
	first := logon("MM")
	first.until("|35=A|")
	refused := logon("MM")
	first.until("|35=1|")
	first.write(d.numbered("MM", "0", 2, "112=ANOTHER LOGON|"))
	if answer := refused.rest(); !strings.Contains(answer, "58=LOGON_REFUSED: session MM is already connected, and the connected client still answers") {
		t.Errorf("answer %q", answer)
	}
	first.write(d.numbered("MM", "1", 3, "112=alive|"))
	first.until("|112=alive|")

	silent := logon("TK")
	silent.until("|35=A|")
	second := d.raw()
	second.write(d.numbered("TK", "A", 2, "98=0|108=60|8013=N|553=tk|554="+sessiontest.Password+"|"))
	second.until("|35=A|")
	if said := silent.rest(); !strings.Contains(said, "|35=1|") {
		t.Errorf("the silent client was not asked: %s", said)
	}
	second.write(d.numbered("TK", "1", 3, "112=alive|"))
	second.until("|112=alive|")
}

func TestBeforeLogon(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.LogonTimeout = time.Second })
	for name, bytes := range map[string]string{
		"silence":                  "",
		"garbage":                  strings.Repeat("x", 100_000),
		"http":                     "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"a message of 4 KiB":       "8=FIX.4.4\x019=4090\x0135=A\x01" + strings.Repeat("58=x\x01", 2000),
		"two thousand million":     "8=FIX.4.4\x019=2000000000\x0135=A\x01",
		"half a logon":             string(wiretest.Message(d.logonText("MM", "108=60|")))[:60],
		"endless begin":            "8=FIX" + strings.Repeat("4", 50_000),
		"wrong checksum":           strings.Replace(string(wiretest.Message(d.logonText("MM", "108=60|"))), "\x0110=", "\x0158=x\x0110=", 1),
		"begins without their end": strings.Repeat("8=FIX.4.4\x019=10\x01", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := d.raw()
			r.write([]byte(bytes))
			if answer := r.rest(); answer != "" {
				t.Errorf("answer %q, want silence", answer)
			}
		})
	}
}

// TestPendingLimit: connections that have sent nothing do not keep a client from logging
// on: one more than may wait replaces the oldest of them.
func TestPendingLimit(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){
		"in all":         func(o *Options) { o.MaxPending = 3 },
		"of one address": func(o *Options) { o.MaxPendingPerIP = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, []string{"MM", "TK"}, change)
			d.dial("MM", nil) // a session that is logged on does not count
			d.awaitLoggedOn("MM")
			oldest := d.raw()
			oldest.t = t
			d.awaitConnections(2)
			for range 2 {
				d.raw()
			}
			d.awaitConnections(4)
			d.raw()
			if answer := oldest.rest(); answer != "" {
				t.Errorf("the connection that made room got %q", answer)
			}
			d.dial("TK", nil)
			d.awaitLoggedOn("TK")
			if s := d.gateway.Stats(); s.RefusedConns == 0 || s.Sessions != 2 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestWrongPasswordsWait: an address that guesses waits, and a client that has logged on
// from it before does not.
func TestWrongPasswordsWait(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	d.dial("MM", nil).leave()
	refused := false
	for range 10 {
		answer := d.answer(d.logonText("TK", "108=60|553=tk|554=wrong|"))
		if strings.Contains(answer, "58=RATE_LIMITED: too many wrong passwords") {
			refused = true
			break
		}
		if !strings.Contains(answer, "58=LOGON_REFUSED: username, password or CompID is wrong") {
			t.Fatalf("answer %q", answer)
		}
	}
	if !refused {
		t.Error("an address may guess without end")
	}
	d.awaitFree("MM")
	d.dial("MM", nil)
}

// TestBadBytesEndTheSession: after the logon too, a connection's own rules end
// it with a Logout, and the session's numbers stand.
func TestBadBytesEndTheSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ bytes, want string }{
		"large":         {"8=FIX.4.4\x019=2000000000\x01", "MESSAGE_TOO_LARGE: BodyLength (9) is above 16384"},
		"one too large": {"8=FIX.4.4\x019=16385\x01", "MESSAGE_TOO_LARGE: BodyLength (9) is above 16384"},
		"garbage":       {strings.Repeat("x", session.MaxGarbage+10), "INVALID_MESSAGE: bytes are not FIX"},
		"empty number":  {string(wiretest.Message("35=0|34=|49=MM|52=20260101-00:00:00|56=X|")), "INVALID_FIELD: MsgSeqNum (34)"},
		"xml data":      {string(wiretest.Message("35=n|34=2|212=999|213=a|")), "INVALID_FIELD: XmlData (213) is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, []string{"MM"}, func(o *Options) { o.CompID = "BB-" + strings.ReplaceAll(name, " ", "-") })
			r := d.raw()
			r.write(wiretest.Message(d.logonText("MM", "108=60|553=mm|554="+sessiontest.Password+"|")))
			r.write([]byte(c.bytes))
			answer := r.rest()
			if !strings.Contains(answer, "|35=A|") || !strings.Contains(answer, "|35=5|") || !strings.Contains(answer, "58="+c.want) {
				t.Errorf("answer %q, want %q", answer, c.want)
			}
			d.awaitStats("0 sessions logged on", func(s Stats) bool { return s.Sessions == 0 })
		})
	}
}

func TestGarbledMessageIsAskedAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	r := d.raw()
	r.write(wiretest.Message(d.logonText("MM", "108=60|553=mm|554="+sessiontest.Password+"|")))
	head := func(seq int, more string) string {
		return fmt.Sprintf("35=0|34=%d|49=MM|52=%s|56=%s|%s", seq, time.Now().UTC().Format("20060102-15:04:05.000"), d.options.CompID, more)
	}
	bad := wiretest.Message(head(2, ""))
	bad[len(bad)-2] ^= 1
	r.write(bad)
	r.write(wiretest.Message(head(3, "")))
	r.conn.SetReadDeadline(time.Now().Add(wait))
	var got []byte
	for !strings.Contains(wiretest.Show(got), "|35=2|") {
		buf := make([]byte, 4096)
		n, err := r.conn.Read(buf)
		if err != nil {
			t.Fatalf("%v after %s", err, wiretest.Show(got))
		}
		got = append(got, buf[:n]...)
	}
	if !strings.Contains(wiretest.Show(got), "|7=2|") {
		t.Errorf("no request for message 2 in %s", wiretest.Show(got))
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.Rate, o.Now = 20, frozen() })
	mm := d.dial("MM", nil)
	var bodies [][]byte
	for i := range 30 {
		bodies = append(bodies, fmt.Appendf(nil, "11=o%d\x0155=SLUSD/USDC\x0154=1\x0138=1\x0140=2\x0144=1\x0160=20260101-00:00:00.000\x01", i))
	}
	if err := mm.c.SendAll("D", bodies); err != nil {
		t.Fatal(err)
	}
	accepted, limited := 0, 0
	for range 30 {
		switch m := mm.next(); m.Get(35) {
		case "8":
			accepted++
		case "j":
			m.Want(t, "372=D 380=4")
			if m.Get(58) != "RATE_LIMITED: more than 20 messages a second" || !strings.HasPrefix(m.Get(379), "o") {
				t.Errorf("reject %s", m)
			}
			limited++
		}
	}
	if accepted != 19 || limited != 11 { // the Logon was the first of 20
		t.Errorf("%d accepted, %d limited of 30", accepted, limited)
	}
	mm.order("o29", "1", "1", "1", "") // it was refused: the id is free
	if err := mm.c.SendAll("D", bodies); err != nil {
		t.Fatal(err)
	}
	if text := mm.loggedOut(); !strings.Contains(text, "RATE_LIMITED: more than 20 messages a second, for too long") {
		t.Errorf("logged out with %s", text)
	}
	if s := d.gateway.Stats(); s.Kicked != 1 || s.RateLimited == 0 {
		t.Errorf("%+v", s)
	}
}

func TestResendLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, []string{"MM"}, nil)
		mm := d.dial("MM", nil)
		for range session.MaxResends + 5 {
			mm.send("2", "7=1|16=0|")
		}
		mm.want("35=3 372=2 373=99 ")
	})
}

// busy is an engine that refuses, or swallows, commands on request.
type busy struct {
	engineWithOrders
	why atomic.Pointer[error] // nil = it works; nil in it = it swallows
}

// makeBusy puts one before the engine, while nobody is connected.
func (d *harness) makeBusy() *busy {
	b := &busy{engineWithOrders: d.late.Engine.(engineWithOrders)}
	d.late.Engine = b
	return b
}

func (b *busy) Submit(c *engine.Command) error {
	if why := b.why.Load(); why != nil {
		return *why
	}
	return b.engineWithOrders.Submit(c)
}

func (b *busy) Enqueue(c *engine.Command) error {
	if why := b.why.Load(); why != nil {
		return *why
	}
	return b.engineWithOrders.Enqueue(c)
}

// TestSequenceResetIsBounded: no NewSeqNo moves the session to where no message
// can follow it.
func TestSequenceResetIsBounded(t *testing.T) {
	t.Parallel()
	k := newDesk(t, []string{"MM"}, nil).dial("MM", nil)
	for _, newSeqNo := range []string{"0", "-7", "1000000000", "9223372036854775807", "99999999999999999999"} {
		k.send("4", "36="+newSeqNo+"|")
		k.want("35=3 372=4 373=5")
	}
	k.order("a", "1", "10", "1", "59=1|")
	k.want("35=8 11=a 150=0")
}

func TestEngineRefuses(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	b := d.makeBusy()
	mm := d.dial("MM", nil)
	mm.order("a", "1", "1", "1", "")
	mm.want("35=8 11=a 150=0")
	for _, c := range []struct {
		err  error
		text string
	}{
		{engine.ErrFull, "OVERLOADED: the engine's queue is full, try again"},
		{engine.ErrReadOnly, "READ_ONLY: " + engine.ErrReadOnly.Error()},
		{engine.ErrStopped, "READ_ONLY: " + engine.ErrStopped.Error()},
	} {
		b.why.Store(&c.err)
		mm.order("b", "1", "1", "1", "")
		if m := mm.want("35=j 372=D 379=b 380=4"); m.Get(58) != c.text {
			t.Errorf("%v: %s", c.err, m)
		}
		mm.send("F", "11=c|41=a|55=SLUSD/USDC|54=1|38=1|"+now60)
		mm.want("35=j 372=F 379=c 380=4")
		mm.send("q", "11=d|530=7|"+now60)
		mm.want("35=j 372=q 379=d 380=4")
	}
	b.why.Store(nil)
	mm.order("b", "1", "1", "1", "")
	mm.want("35=8 11=b 150=0")
}

func TestPendingOrderLimit(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.MaxPendingOrders = 2 })
	d.makeBusy().why.Store(new(error)) // swallows
	mm := d.dial("MM", nil)
	mm.order("a", "1", "1", "1", "")
	mm.order("b", "1", "1", "1", "")
	mm.order("c", "1", "1", "1", "")
	if m := mm.want("35=j 379=c 380=4"); !strings.HasPrefix(m.Get(58), "OVERLOADED: 2 requests") {
		t.Errorf("%s", m)
	}
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", nil)
	mm.send("B", "148=hello|33=1|58=x|")
	mm.want("35=j 372=B 380=3")
	mm.send("D", "11=a|55=SLUSD/USDC|54=1|38=1|40=2|44=1|") // no TransactTime
	if m := mm.want("35=3 372=D 371=60 373=1"); m.Get(58) != "MISSING_FIELD: tag 60: Required tag missing" {
		t.Errorf("%s", m)
	}
	mm.send("D", "11=a|55=SLUSD/USDC|54=1|38=x|40=2|44=1|"+now60)
	mm.want("35=3 372=D 371=38 373=6")
	mm.send("D", "11=a|55=SLUSD/USDC|54=1|38=1|40=2|44=|"+now60)
	mm.want("35=3 372=D 371=44 373=4")
	mm.send("D", "11=a|55=SLUSD/USDC|54=1|38=1|38=1|40=2|44=1|"+now60)
	mm.want("35=3 372=D 371=38 373=13")
	mm.send("D", "11=a|55=SLUSD/USDC|54=1|38=1|40=2|44=1|9000=x|"+now60) // above 5000: let through
	mm.want("35=8 11=a 150=0")
	mm.send("D", "11="+strings.Repeat("x", wire.MaxClOrdID+1)+"|55=SLUSD/USDC|54=1|38=1|40=2|44=1|"+now60)
	mm.want("35=8 150=8 39=8 37=NONE")
	mm.send("D", "11=b|55=SLUSD/USDC|54=1|38=1|40=2|44=1.00001|"+now60)
	mm.want("35=8 11=b 150=8 39=8 37=NONE 103=11")
	mm.send("D", "11=b|55=NO/PE|54=1|38=1|40=2|44=1|"+now60)
	mm.want("35=8 11=b 150=8 39=8 37=NONE 103=1")
	mm.send("D", "11=c|55=MIR/USDC|54=1|38=1|40=2|44=1|"+now60)
	mm.want("35=8 11=c 150=8 39=8 103=11 58=not_matched")
	mm.send("D", "11=d|55=SLUSD/USDC|54=1|38=99999999|40=2|44=1|"+now60)
	mm.want("35=8 11=d 150=8 39=8")
}

func TestTwentySessions(t *testing.T) {
	t.Parallel()
	var compIDs []string
	for i := range 20 {
		compIDs = append(compIDs, fmt.Sprintf("P%02d", i))
	}
	d := newDesk(t, compIDs, nil)
	const each = 40
	done := make(chan error, len(compIDs))
	for i, id := range compIDs {
		k := d.dial(id, func(o *fixclient.Options) { o.LogonFields = "8013=N\x01" })
		side := string('1' + byte(i%2))
		go func() {
			for j := range each {
				body := fmt.Sprintf("11=%s-%d|55=SLUSD/USDC|54=%s|38=1|40=2|44=1|59=1|%s", id, j, side, now60)
				if err := k.c.Send("D", []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
					done <- err
					return
				}
			}
			acks, fills := 0, 0
			for acks < each || fills < each {
				raw := <-k.in
				if err := k.checker.Check(raw); err != nil {
					done <- err
					return
				}
				switch sessiontest.Message(raw).Get(150) {
				case "0":
					acks++
				case "F":
					fills++
				default:
					done <- fmt.Errorf("unexpected %s", wiretest.Show(raw))
					return
				}
			}
			done <- nil
		}()
	}
	for range compIDs {
		if err := await.Receive(t, fmt.Sprintf("%d acks and fills of a session", each), done); err != nil {
			t.Error(err)
		}
	}
	d.awaitOrders(0)
	if s := d.gateway.Stats(); s.Sessions != 20 {
		t.Errorf("%+v", s)
	}
}
