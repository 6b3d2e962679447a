package fixgw

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
)

// The figures that hold a connection down, each at its limit and past it, as a
// client meets them. The session's own are in session_test.go.

// padded returns a message's fields with a Text that makes its body size bytes.
func padded(fields string, size int) []byte {
	return wiretest.Message(fields + "58=" + strings.Repeat("x", size-len(fields)-len("58=|")) + "|")
}

// TestBytesBeforeLogon: a first message of as many bytes as there may be is read,
// and its Logon refused for its password; one byte more gets no answer.
func TestBytesBeforeLogon(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	limit := d.gateway.options.LogonBytes - wire.MaxHeader
	if limit != 4<<10-64 {
		t.Errorf("limit %d", limit)
	}
	fields := d.logonText("MM", "108=60|553=mm|554=wrong|")
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

// TestSecondsBeforeLogon: the timeout before the logon counts from the start of the
// connection, not from the last byte received.
func TestSecondsBeforeLogon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Second
		d := newDesk(t, []string{"MM"}, func(o *Options) { o.LogonTimeout = limit })
		r := d.raw()
		const pace = 45 * time.Millisecond
		said := 0
		for _, b := range wiretest.Message(d.logonText("MM", "108=60|553=mm|554="+sessiontest.Password+"|")) {
			if _, err := r.conn.Write([]byte{b}); err != nil {
				break
			}
			said++
			await.VirtualSleep(t, pace)
		}
		if _, err := r.conn.Read(make([]byte, 1)); err == nil {
			t.Error("it was answered")
		}
		if want := 1 + int(limit/pace); said != want {
			t.Errorf("closed after %d bytes, want %d", said, want)
		}
	})
}

// TestMessageSize: after the logon a message may be as large as Options say, and
// one byte more ends the session.
func TestMessageSize(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	r := d.raw()
	r.write(wiretest.Message(d.logonText("MM", "108=60|553=mm|554="+sessiontest.Password+"|")))
	head := func(seq int) string {
		return fmt.Sprintf("35=D|34=%d|49=MM|52=%s|56=%s|11=a|55=SLUSD/USDC|54=1|38=1|40=2|44=1|59=1|%s",
			seq, time.Now().UTC().Format("20060102-15:04:05.000"), d.options.CompID, now60)
	}
	r.write(padded(head(2), d.gateway.options.MaxMessage))
	d.awaitOrders(1)
	r.write(padded(head(3), d.gateway.options.MaxMessage+1))
	if answer := r.rest(); !strings.Contains(answer, "58=MESSAGE_TOO_LARGE: BodyLength (9) is above 16384") {
		t.Errorf("one byte above: %q", answer)
	}
}

// TestHardRate: so far above the rate that its bytes are read no more.
func TestHardRate(t *testing.T) {
	t.Parallel()
	const rate = 50
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.Rate, o.Now = rate, frozen() })
	mm := d.dial("MM", nil)
	bodies := make([][]byte, 2*4*rate)
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
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const beat = 10 * time.Second
		d := newDesk(t, []string{"SLOW", "MM"}, nil)
		r := d.raw()
		r.write(wiretest.Message(d.logonText("SLOW", "108=10|8013=N|553=slow|554="+sessiontest.Password+"|")))
		r.until("|35=A|")
		r.write(d.numbered("SLOW", "D", 2, "11=rest|55=SLUSD/USDC|54=1|38=90000|40=2|44=1|59=1|"+now60))
		r.until("|11=rest|")
		mm := d.dial("MM", nil)
		slow := d.hooks.Session("SLOW").Conn()
		began := time.Now()
		for sale := 0; d.gateway.Stats().Connections == 2; sale++ {
			// Heartbeats of its own keep the session in: what cuts it off is the writing.
			r.write(d.numbered("SLOW", "0", 3+sale, ""))
			start := time.Now()
			mm.order(fmt.Sprint("x", sale), "2", "1", "1", "59=3|")
			mm.want("35=8 150=0")
			mm.want("35=8 150=F")
			if took := time.Since(start); took != 0 {
				t.Fatalf("the other session is answered after %v", took)
			}
			if sale > 0 && slow.Waiting() == 0 && slow.Cut() == nil {
				t.Fatal("the client is not blocked")
			}
			await.VirtualSleep(t, time.Second)
		}
		if took := time.Since(began); took > 2*beat+time.Second || !errors.Is(slow.Cut(), os.ErrDeadlineExceeded) {
			t.Errorf("cut off after %v, want %v, by %v", took, 2*beat, slow.Cut())
		}
	})
}

// TestKickGrace: a client that does not read the Logout that ends its session is cut off.
func TestKickGrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const grace = 100 * time.Millisecond // quickfix gives up after 2 s
		d := newDesk(t, []string{"MM"}, func(o *Options) { o.KickGrace = grace })
		r := d.raw()
		r.write(wiretest.Message(d.logonText("MM", "108=60|553=mm|554="+sessiontest.Password+"|")))
		r.until("|35=A|")
		d.awaitLoggedOn("MM")
		began := time.Now()
		if err := d.gateway.Kick("MM", "go"); err != nil {
			t.Fatal(err)
		}
		d.awaitConnections(0)
		if took := time.Since(began); took < grace || took > grace+100*time.Millisecond {
			t.Errorf("cut off after %v, want %v", took, grace)
		}
	})
}
