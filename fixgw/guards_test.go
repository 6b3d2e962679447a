package fixgw

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"blockdesk/fixgw/fixclient"
)

// The figures that hold a connection down, each at its limit and past it, as a
// client meets them. The session's own are in session_test.go.

// padded returns a message's fields with a Text that makes its body size bytes.
func padded(fields string, size int) []byte {
	return fixMessage(fields + "58=" + strings.Repeat("x", size-len(fields)-len("58=|")) + "|")
}

// TestBytesBeforeLogon: a first message of as many bytes as there may be is read,
// and its Logon refused for its password; one byte more gets no answer.
func TestBytesBeforeLogon(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	limit := d.gateway.options.LogonBytes - maxHeader
	if limit != 4<<10-64 {
		t.Errorf("limit %d", limit)
	}
	fields := d.logonText("MM", "108=30|553=mm|554=wrong|")
	r := d.raw()
	r.write(padded(fields, limit))
	if answer := r.rest(); !strings.Contains(answer, "58=LOGON_REFUSED") {
		t.Errorf("at the limit: %q", answer)
	}
	r = d.raw()
	r.write(padded(fields, limit+1))
	if answer := r.rest(); answer != "" {
		t.Errorf("one byte above: %q", answer)
	}
}

// TestSecondsBeforeLogon: who sends a byte now and then is closed when its time
// is over, not a time after its last byte.
func TestSecondsBeforeLogon(t *testing.T) {
	t.Parallel()
	const limit = time.Second
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.LogonTimeout = limit })
	d.dial("MM", nil) // it is awake
	r := d.raw()
	began := time.Now()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for _, b := range fixMessage(d.logonText("MM", "108=30|553=mm|554="+testPassword+"|")) {
			select {
			case <-stop:
				return
			case <-time.After(limit / 20):
				if _, err := r.conn.Write([]byte{b}); err != nil {
					return
				}
			}
		}
	}()
	if _, err := r.conn.Read(make([]byte, 1)); err == nil {
		t.Error("it was answered")
	}
	if took := time.Since(began); took < limit-limit/20 || took > 5*limit {
		t.Errorf("closed after %v, want %v", took, limit)
	}
}

// TestMessageSize: after the logon a message may be as large as Options say, and
// one byte more ends the session.
func TestMessageSize(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	r := d.raw()
	r.write(fixMessage(d.logonText("MM", "108=30|553=mm|554="+testPassword+"|")))
	head := func(seq int) string {
		return fmt.Sprintf("35=D|34=%d|49=MM|52=%s|56=%s|11=a|55=SLUSD/USDC|54=1|38=1|40=2|44=1|59=1|%s",
			seq, time.Now().UTC().Format("20060102-15:04:05.000"), d.options.CompID, now60)
	}
	r.write(padded(head(2), d.gateway.options.MaxMessage))
	waitFor(t, func() bool { return d.gateway.Stats().LiveOrders == 1 })
	r.write(padded(head(3), d.gateway.options.MaxMessage+1))
	if answer := r.rest(); !strings.Contains(answer, "58=MESSAGE_TOO_LARGE: BodyLength (9) is above 16384") {
		t.Errorf("one byte above: %q", answer)
	}
}

// TestHardRate: so far above the rate that its bytes are read no more.
func TestHardRate(t *testing.T) {
	t.Parallel()
	const rate = 50
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.Rate = rate })
	mm := d.dial("MM", nil)
	bodies := make([][]byte, 2*hardRate*rate)
	for i := range bodies {
		bodies[i] = []byte("112=x\x01")
	}
	if err := mm.c.SendAll("1", bodies); err != nil {
		t.Fatal(err)
	}
	if text := mm.loggedOut(); !strings.Contains(text, "RATE_LIMITED: more than") {
		t.Errorf("logged out with %s", text)
	}
}

// TestBlockedReader: a client that takes nothing, while too little is sent to fill
// its buffer here, is cut off within two heartbeats. Another session is answered
// all the time, and the engine goes on.
func TestBlockedReader(t *testing.T) {
	if testing.Short() {
		t.Skip("two heartbeats are 20 s")
	}
	t.Parallel()
	d := newDesk(t, []string{"SLOW", "MM"}, nil)
	r := d.raw()
	if err := r.conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	r.write(fixMessage(d.logonText("SLOW", "108=10|8013=N|553=slow|554="+testPassword+"|")))
	r.write(fixMessage(fmt.Sprintf("35=D|34=2|49=SLOW|52=%s|56=%s|11=rest|55=SLUSD/USDC|54=1|38=90000|40=2|44=1|59=1|%s",
		time.Now().UTC().Format("20060102-15:04:05.000"), d.options.CompID, now60)))
	mm := d.dial("MM", func(o *fixclient.Options) { o.Timeout = wait })
	waitFor(t, func() bool { return d.gateway.Stats().LiveOrders == 1 })
	slow := d.gateway.sessionNamed("SLOW").conn.Load()
	sale := 0
	sell := func() time.Duration {
		sale++
		start := time.Now()
		mm.order(fmt.Sprint("x", sale), "2", "1", "1", "59=3|")
		mm.want("35=8 150=0")
		mm.want("35=8 150=F")
		return time.Since(start)
	}
	// Heartbeats of its own keep the session in: what cuts it off is the writing.
	seq, beaten := 2, time.Now()
	beat := func() {
		seq++
		beaten = time.Now()
		r.write(fixMessage(fmt.Sprintf("35=0|34=%d|49=SLOW|52=%s|56=%s|", seq, beaten.UTC().Format("20060102-15:04:05.000"), d.options.CompID)))
	}
	for slow.waiting() < 1<<10 { // the socket takes no more
		sell()
		if time.Since(beaten) > time.Second {
			beat()
		}
	}
	began, slowest := time.Now(), time.Duration(0)
	for d.gateway.Stats().Connections == 2 {
		if time.Since(began) > 30*time.Second {
			t.Fatal("not cut off")
		}
		beat()
		slowest = max(slowest, sell())
		time.Sleep(100 * time.Millisecond)
	}
	took := time.Since(began)
	t.Logf("cut off after %v, %d sales; slowest answer to the other session %v", took, sale, slowest)
	if took > 22*time.Second || slowest > 5*time.Second {
		t.Error("too late")
	}
}
