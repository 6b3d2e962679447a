package fixgw

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
)

// numbered is a message with a number of its own.
func (d *harness) numbered(compID, msgType string, seq int, fields string) []byte {
	return wiretest.Message(fmt.Sprintf("35=%s|34=%d|49=%s|52=%s|56=%s|%s", msgType, seq, compID, stampNow(), d.options.CompID, fields))
}

// until reads until text has come.
func (r *rawConn) until(text string) {
	r.t.Helper()
	r.conn.SetReadDeadline(time.Now().Add(wait))
	var got []byte
	for !strings.Contains(wiretest.Show(got), text) {
		var buf [4 << 10]byte
		n, err := r.conn.Read(buf[:])
		if got = append(got, buf[:n]...); err != nil {
			r.t.Fatalf("%v instead of %q, after %s", err, text, wiretest.Show(got))
		}
	}
}

const filler = "43=Y|122=19990101-00:00:00|" // of a message that fills a gap

// TestRefusedMessageKeepsItsNumber: a ResendRequest may come out of turn. Refused,
// it must not move the session on: the fill of an open gap, or the client's next
// message, would be too low then, and waited for for ever.
func TestRefusedMessageKeepsItsNumber(t *testing.T) {
	t.Parallel()
	const tries = session.MaxResends + 3
	d := newDesk(t, []string{"ABOVE", "BELOW", "TURN"}, func(o *Options) { o.Now = frozen() })
	for compID, play := range map[string]func(r *rawConn) (next int){
		"ABOVE": func(r *rawConn) int {
			r.write(d.numbered("ABOVE", "0", 3, ""))
			r.until("|35=2|")
			for i := range tries {
				r.write(d.numbered("ABOVE", "2", 4+i, "7=1|16=1|"))
			}
			r.until("58=RATE_LIMITED")
			r.write(d.numbered("ABOVE", "4", 2, filler+fmt.Sprintf("123=Y|36=%d|", 4+tries)))
			return 4 + tries
		},
		"BELOW": func(r *rawConn) int {
			for range tries {
				r.write(d.numbered("BELOW", "2", 1, filler+"7=1|16=1|"))
			}
			r.until("58=RATE_LIMITED")
			return 2
		},
		"TURN": func(r *rawConn) int {
			for i := range tries {
				r.write(d.numbered("TURN", "2", 2+i, "7=1|16=1|"))
			}
			r.until("58=RATE_LIMITED")
			return 2 + tries
		},
	} {
		t.Run(compID, func(t *testing.T) {
			t.Parallel()
			r := d.rawOf(t, compID)
			r.write(d.numbered(compID, "1", play(r), "112=alive|"))
			r.until("|112=alive|")
		})
	}
}

// rawOf is a connection of t's that has logged on.
func (d *harness) rawOf(t *testing.T, compID string) *rawConn {
	t.Helper()
	r := d.raw()
	r.t = t
	r.write(wiretest.Message(d.logonText(compID, "108=60|553="+strings.ToLower(compID)+"|554="+sessiontest.Password+"|")))
	r.until("|35=A|")
	return r
}

// TestGapTimeout: a session whose gap is not filled is ended with the reason, and
// the next one asks for the same message. A session that makes progress stays.
func TestGapTimeout(t *testing.T) {
	t.Parallel()
	const patience = 300 * time.Millisecond
	desk := func(t *testing.T, compID string) *harness {
		return newDesk(t, []string{compID}, func(o *Options) { o.GapTimeout = patience })
	}
	t.Run("LATE", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := desk(t, "LATE")
			r := d.rawOf(t, "LATE")
			said := make(chan string, 1)
			go func() { said <- r.rest() }()
			next := 3
			for began := time.Now(); d.gateway.Stats().Kicked == 0; next++ {
				if passed := time.Since(began); passed > patience+patience/5 {
					t.Fatalf("goes on after %v", passed)
				}
				r.write(d.numbered("LATE", "0", next, ""))
				await.VirtualSleep(t, patience/10)
			}
			if said := <-said; strings.Count(said, "|35=2|") != 1 || !strings.Contains(said, "|58=MESSAGE_MISSING: message 2 has not arrived within 300ms|") {
				t.Errorf("it said %s", said)
			}
			d.awaitFree("LATE")
			r = d.raw()
			r.write(d.numbered("LATE", "A", next, "98=0|108=60|553=late|554="+sessiontest.Password+"|"))
			r.until("|7=2|16=0|")
			r.write(d.numbered("LATE", "4", 2, filler+fmt.Sprintf("123=Y|36=%d|", next+1)))
			r.write(d.numbered("LATE", "1", next+1, "112=alive|"))
			r.until("|112=alive|")
		})
	})
	t.Run("QUIET", func(t *testing.T) { // nothing more comes after the gap
		synctest.Test(t, func(t *testing.T) {
			d := desk(t, "QUIET")
			r := d.rawOf(t, "QUIET")
			began := time.Now()
			r.write(d.numbered("QUIET", "0", 3, ""))
			if said := r.rest(); !strings.Contains(said, "|58=MESSAGE_MISSING: message 2 has not arrived within 300ms|") {
				t.Errorf("it said %s", said)
			}
			if took := time.Since(began); took < patience || took > 3*patience {
				t.Errorf("ended after %v", took)
			}
		})
	})
	t.Run("SLOW", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := desk(t, "SLOW")
			r := d.rawOf(t, "SLOW")
			alive := make(chan struct{})
			go func() {
				defer close(alive)
				r.until("|112=alive|")
			}()
			const behind = 10
			for i := range behind { // each message that fills comes in time, all of them together do not
				r.write(d.numbered("SLOW", "0", 20+i, ""))
				await.VirtualSleep(t, patience/5)
				r.write(d.numbered("SLOW", "0", 2+i, filler))
			}
			r.write(d.numbered("SLOW", "4", 2+behind, filler+fmt.Sprintf("123=Y|36=%d|", 20+behind)))
			r.write(d.numbered("SLOW", "1", 20+behind, "112=alive|"))
			await.Closed(t, "the answer", alive)
		})
	})
}
