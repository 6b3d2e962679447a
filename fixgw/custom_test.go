package fixgw

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quickfixgo/quickfix"

	"blockdesk/engine/marketdata"
	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/runtest"
)

// TestCustomMarketData: a session with custom fields gets the message's position in the
// feed; one without gets what a stock client knows, on the same book.
func TestCustomMarketData(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "PLAIN", "RICH"}, nil)
	mm, plain := d.dial("MM", nil), d.dial("PLAIN", nil)
	rich := d.dial("RICH", func(o *fixclient.Options) { o.LogonFields = "5600=Y\x01" })
	position := func(v uint64) string { return fmt.Sprintf("5615=e%d 5616=%d", d.views.View(0).Epoch, v) }
	d.awaitView(0, "a view", func(*marketdata.View) bool { return true })
	const kinds, trades = "267=3|269=0|269=1|269=2|", "267=1|269=2|"
	for _, k := range []*client{plain, rich} {
		k.send("V", "262=s|263=0|264=0|"+kinds+"146=1|55=SLUSD/USDC|")
		k.send("V", "262=all|263=1|264=0|265=1|"+kinds+"146=1|55=SLUSD/USDC|")
		k.send("V", "262=trades|263=1|264=0|265=1|"+trades+"146=1|55=SLUSD/USDC|")
		for _, id := range []string{"s", "all", "trades"} {
			if m := k.want("35=W 262=" + id); k == plain && m.Get(5615)+m.Get(5616) != "" {
				t.Errorf("a stock client gets %s", m)
			} else if k == rich {
				m.Want(t, position(1))
			}
		}
	}
	mm.order("b", "1", "10", "1", "59=1|")
	plain.want("35=X 262=all 5615= 5616= 268=1 271=10.00")
	m := rich.want("35=X 262=all 268=1 271=10.00")
	d.awaitView(0, "a bid in the view", func(v *marketdata.View) bool { return len(v.Bids) == 1 })
	m.Want(t, position(d.views.View(0).DepthSeq))
	mm.want("150=0")
}

// TestCustomSession: a stock quickfix initiator with our dictionary, and one
// with the stock dictionary and no word of custom fields, get what they can read.
func TestCustomSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"PLAIN", "RICH"}, nil)
	const at = "60=20260101-00:00:00.000"
	for _, c := range []struct {
		compID, dictionary string
		logon              map[quickfix.Tag]string
		carries            bool
	}{
		{"PLAIN", "session/FIX44.xml", nil, false},
		{"RICH", "../sdk/fix/FIX44-blockdesk.xml", map[quickfix.Tag]string{wire.TagCustomFields: "Y", wire.TagCancelOnDisconnect: "N", wire.TagDropCopy: "N"}, true},
	} {
		i := d.initiate(c.compID, c.dictionary, c.logon)
		i.send(t, "V", "262=m", "263=1", "264=5", "265=1", "267=3\x01269=0\x01269=1\x01269=2", "146=1\x0155=92C/SLUSD")
		if m := i.want(t, "35=W 262=m"); (m.Get(5615) != "") != c.carries || (m.Get(5616) != "") != c.carries {
			t.Errorf("%s: %s", c.compID, m)
		}
		i.send(t, "D", "11="+c.compID, "55=92C/SLUSD", "54=1", "38=10", "40=2", "44=5", "59=1", at)
		seen := map[string]bool{}
		for !seen["8"] || !seen["X"] {
			m := i.want(t, "")
			seen[m.Get(35)] = true
			if m.Get(35) == "X" && (m.Get(5616) != "") != c.carries {
				t.Errorf("%s: %s", c.compID, m)
			}
			if m.Get(35) != "8" && m.Get(35) != "X" {
				t.Fatalf("%s: unexpected %s", c.compID, m)
			}
		}
		i.send(t, "x", "320=l", "559=4")
		i.want(t, "35=y 560=0 393=3")
	}
}

// TestLogonRequests: the options of a Logon outlive the connection and the
// process, until the next Logon; anything but Y and N is refused.
func TestLogonRequests(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, nil)
	has := func(cancel, dropCopy, custom bool) {
		t.Helper()
		s := d.gateway.SessionNamed("MM")
		if s.CancelOnDisconnect.Load() != cancel || s.DropCopy.Load() != dropCopy || s.Custom.Load() != custom {
			t.Errorf("cancel %v, drop copy %v, custom %v; want %v, %v, %v",
				s.CancelOnDisconnect.Load(), s.DropCopy.Load(), s.Custom.Load(), cancel, dropCopy, custom)
		}
	}
	with := func(fields string) func(*fixclient.Options) {
		return func(o *fixclient.Options) { o.LogonFields = fields }
	}
	leave := func(k *client) {
		k.c.Close()
		d.awaitStats("nobody there", func(s Stats) bool { return s.Connections == 0 && s.Sessions == 0 })
	}
	has(false, false, false) // before the first logon
	for _, c := range []struct {
		fields                   string
		cancel, dropCopy, custom bool
	}{
		{"", true, false, false},
		{"8013=N\x01", false, false, false},
		{"9406=Y\x01", true, true, false},
		{"5600=Y\x01", true, false, true},
		{"8013=N\x019406=Y\x015600=Y\x01", false, true, true},
		{"8013=Y\x019406=N\x015600=N\x01", true, false, false},
		{"8013=N\x019406=Y\x015600=Y\x01", false, true, true},
	} {
		leave(d.dial("MM", with(c.fields)))
		has(c.cancel, c.dropCopy, c.custom)
	}
	d.stop()
	d.start()
	has(false, true, true)
	for _, tag := range []int{wire.TagCustomFields, wire.TagCancelOnDisconnect, wire.TagDropCopy} {
		_, err := fixclient.Dial(t.Context(), fixclient.Options{
			Addr: d.addr(), SenderCompID: "MM", TargetCompID: d.options.CompID, Username: "mm", Password: sessiontest.Password,
			LogonFields: fmt.Sprintf("%d=1\x01", tag), Timeout: runtest.HangTimeout,
		})
		if want := fmt.Sprintf("INVALID_FIELD: tag %d %q: must be Y or N", tag, "1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("tag %d: %v, want %s", tag, err, want)
		}
	}
	has(false, true, true) // a refused Logon asks for nothing
}
