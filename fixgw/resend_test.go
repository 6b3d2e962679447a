package fixgw

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
)

// frame returns the next message; rest is what has come behind it.
func (r *rawConn) frame(rest *[]byte) sessiontest.Message {
	r.t.Helper()
	for {
		skip, n, err := wire.ScanFrame(*rest, 1<<20)
		switch {
		case err != nil || skip > 0:
			r.t.Fatalf("%d bytes of no message, %v: %s", skip, err, wiretest.Show(*rest))
		case n > 0:
			m := sessiontest.Message((*rest)[:n:n])
			*rest = (*rest)[n:]
			return m
		}
		b := make([]byte, 4096)
		r.conn.SetReadDeadline(time.Now().Add(wait))
		n, err = r.conn.Read(b)
		if err != nil {
			r.t.Fatal(err)
		}
		*rest = append(*rest, b[:n]...)
	}
}

// TestResendOfAConversation: a resend of all messages has the reports, rejects of orders
// and answers, with PossDup, and no old market data, instruments or statuses.
func TestResendOfAConversation(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	mm := d.dial("MM", keep(1, 1))
	kept := ""
	say := func(msgType, body string, answers ...string) {
		t.Helper()
		mm.send(msgType, body)
		for range answers {
			m := mm.next()
			if answer := m.Get(35); answer == "8" || answer == "9" || answer == "r" || answer == "j" {
				kept += answer + "=" + m.Get(34) + " "
			}
		}
	}
	say("x", "320=l|559=4|", "y")
	say("c", "320=l|321=0|55=SLUSD/USDC|", "d")
	say("e", "324=s|55=SLUSD/USDC|263=1|", "f")
	say("D", "11=a|55=SLUSD/USDC|54=1|38=10|40=2|44=1|59=1|"+now60, "8")
	d.awaitView(0, "a bid in the view", func(v *marketdata.View) bool { return len(v.Bids) == 1 })
	say("V", "262=m|263=1|264=0|265=1|267=1|269=0|146=1|55=SLUSD/USDC|", "W")
	say("F", "11=b|41=none|55=SLUSD/USDC|54=1|"+now60, "9")
	say("G", "11=c|41=a|55=SLUSD/USDC|54=1|38=5|40=2|44=1|"+now60, "8", "X")
	say("V", "262=m|263=0|264=0|267=1|269=0|146=1|55=SLUSD/USDC|", "Y")
	d.setStatus(0, engine.StatusHalted)
	mm.want("35=f 325=Y 326=2")
	say("g", "335=t|263=0|", "h")
	say("v", "320=v|", "j")
	say("q", "11=d|530=7|"+now60, "8", "r", "X")
	say("e", "324=s|55=SLUSD/USDC|263=2|")
	_, target := mm.leave()
	r := d.raw()
	next := 2 // the first number is the Logon's
	write := func(msgType, fields string) {
		sender := d.gateway.SessionNamed("MM").Messages.NextTargetMsgSeqNum()
		r.write(wiretest.Message(fmt.Sprintf("35=%s|34=%d|49=MM|52=%s|56=%s|%s", msgType, sender,
			time.Now().UTC().Format("20060102-15:04:05.000"), d.options.CompID, fields)))
	}
	write("A", "98=0|108=60|8013=N|553=mm|554="+sessiontest.Password+"|")
	d.awaitStats("1 sessions logged on", func(s Stats) bool { return s.Sessions == 1 })
	write("2", fmt.Sprintf("7=%d|16=%d|", next, target-1))
	replayed := ""
	for rest := []byte(nil); next < target; {
		m := r.frame(&rest)
		switch m.Get(35) {
		case "4":
			m.Want(t, fmt.Sprintf("34=%d 43=Y 123=Y", next))
			_, err := fmt.Sscan(m.Get(36), &next)
			if err != nil {
				t.Fatal(err)
			}
		case "A", "0", "1":
		default:
			m.Want(t, fmt.Sprintf("34=%d 43=Y", next))
			replayed += m.Get(35) + "=" + m.Get(34) + " "
			next++
		}
	}
	if replayed != kept || strings.Count(kept, "=") != 6 {
		t.Errorf("%q was replayed, want %q", replayed, kept)
	}
}
