package fixgw

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// numbered is a message with a number of its own.
func (d *desk) numbered(compID, msgType string, seq int, fields string) []byte {
	return fixMessage(fmt.Sprintf("35=%s|34=%d|49=%s|52=%s|56=%s|%s", msgType, seq, compID, stampNow(), d.options.CompID, fields))
}

// until reads until text has come.
func (r *rawConn) until(text string) {
	r.t.Helper()
	r.conn.SetReadDeadline(time.Now().Add(wait))
	var got []byte
	for !strings.Contains(show(got), text) {
		var buf [4 << 10]byte
		n, err := r.conn.Read(buf[:])
		if got = append(got, buf[:n]...); err != nil {
			r.t.Fatalf("%v instead of %q, after %s", err, text, show(got))
		}
	}
}

const filler = "43=Y|122=20260101-00:00:00|" // of a message that fills a gap

// TestRefusedMessageKeepsItsNumber: a ResendRequest may come out of turn. Refused,
// it must not move the session on: the fill of an open gap, or the client's next
// message, would be too low then, and waited for for ever.
func TestRefusedMessageKeepsItsNumber(t *testing.T) {
	t.Parallel()
	const tries = MaxResends + 3
	d := newDesk(t, []string{"ABOVE", "BELOW", "TURN"}, nil)
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
func (d *desk) rawOf(t *testing.T, compID string) *rawConn {
	t.Helper()
	r := d.raw()
	r.t = t
	r.write(fixMessage(d.logonText(compID, "108=10|553="+strings.ToLower(compID)+"|554="+testPassword+"|")))
	r.until("|35=A|")
	return r
}
