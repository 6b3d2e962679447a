package fixterm

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"blockdesk/fixgw/fixclient"
)

func testTerminal() *Terminal {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	return New("c", func() time.Time { return at })
}

// received makes a message of fields written with '|'.
func received(fields string) *fixclient.Message {
	return fixclient.AsMessage([]byte("8=FIX.4.4\x01" + strings.ReplaceAll(fields, "|", "\x01") + "\x01"))
}

// TestTranscripts runs conversations: `say` has a command a line and shows the
// messages that they become, `get` has a message a line and shows its report; `json`
// shows the report as objects.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		terminal, seq := testTerminal(), 1
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			show := func(reports []Report) {
				for i := range reports {
					if d.Cmd == "json" {
						fmt.Fprintf(&out, "%s\n", reports[i].AppendJSON(nil))
						continue
					}
					fmt.Fprintln(&out, &reports[i])
					for _, line := range reports[i].Lines {
						fmt.Fprintln(&out, "  "+line)
					}
				}
			}
			for _, line := range strings.Split(d.Input, "\n") {
				if d.Cmd != "say" {
					show(terminal.Message(received(line)))
					continue
				}
				a, err := terminal.Command(line)
				switch {
				case err != nil:
					fmt.Fprintln(&out, "error:", err)
				case a.MsgType != "":
					seq++
					terminal.Sent(&a, seq)
					fmt.Fprintf(&out, "35=%s|%s\n", a.MsgType, strings.ReplaceAll(string(a.Body), "\x01", "|"))
				case a.Quit:
					fmt.Fprintln(&out, "quit")
				case a.From > 0:
					fmt.Fprintf(&out, "resend %d to %d\n", a.From, a.To)
				case a.Pause > 0:
					fmt.Fprintln(&out, "pause", a.Pause)
				}
				show(a.Reports)
			}
			fmt.Fprintf(&out, "%d waiting\n", terminal.Waiting())
			return out.String()
		})
	})
}

// The number of remembered orders has a limit, and live orders stay longest.
func TestMemoryIsBounded(t *testing.T) {
	term := testTerminal()
	for i := range MaxOrders + 1 {
		status := "0"
		if i == 7 {
			status = "2"
		}
		term.Message(received(fmt.Sprintf("35=8|37=%d|11=x%d|150=0|39=%s|55=A/B|54=1|38=1|44=1|151=1|14=0", i+1, i+1, status)))
	}
	if len(term.listed) != MaxOrders {
		t.Errorf("%d orders", len(term.listed))
	}
	if _, err := term.order("8"); err == nil {
		t.Error("the order that had ended is still there")
	}
	if _, err := term.order("x1"); err != nil {
		t.Error(err)
	}
	if n := len(term.orders); n != 2*MaxOrders {
		t.Errorf("%d names", n)
	}
	for i := range MaxQuotes + 1 {
		term.Message(received(fmt.Sprintf("35=S|117=Q%d|55=A/B|133=1|135=1", i)))
	}
	for i := range MaxClaims + 1 {
		term.Message(received(fmt.Sprintf("35=8|37=C%d|11=y%d|150=A|39=A|40=D|55=A/B|58=AWAIT_PAYMENT", i, i)))
	}
	if len(term.quotes) != MaxQuotes || len(term.claims) != MaxClaims || term.quotes[0].id != "Q1" || term.claims[0].id != "C1" {
		t.Errorf("%d quotes from %s, %d claims from %s", len(term.quotes), term.quotes[0].id, len(term.claims), term.claims[0].id)
	}
	for i := range MaxSubscriptions {
		if _, err := term.Command(fmt.Sprintf("book S%d/X", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := term.Command("book ONE/MORE"); err == nil {
		t.Error("a book beyond the limit")
	}
	k := &book{}
	for i := range maxLevels + 1 {
		k.bids = change(k.bids, message{{270, fmt.Sprint(i + 1)}, {271, "1"}}, compare)
	}
	if len(k.bids) != maxLevels {
		t.Errorf("%d levels", len(k.bids))
	}
	if again := term.Disconnected(); len(again) != MaxSubscriptions || again[0] != "book S0/X 5" || len(term.books) != 0 {
		t.Errorf("%d books are followed again, %d are left", len(again), len(term.books))
	}
	if _, err := term.Command("buy A/B 1 at " + strings.Repeat("1", MaxLine)); !errors.Is(err, ErrUsage) {
		t.Errorf("a long line: %v", err)
	}
}

func TestCompareDecimals(t *testing.T) {
	ascending := []string{"0", "0.0001", "0.1", "0.10001", "1", "1.01", "9.9", "10", "010.5", "100.0001"}
	for i, a := range ascending {
		for j, b := range ascending {
			if got := compare(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s against %s: %d", a, b, got)
			}
		}
	}
	if compare("1.500", "1.5") != 0 || compare("00", "0.0") != 0 {
		t.Error("zeros count")
	}
}

// A line that says anything is a command, or an error that says how.
func FuzzCommand(f *testing.F) {
	for _, c := range commands() {
		f.Add(c.usage)
	}
	f.Add("raw 35=D|11=a|55=A/B")
	f.Fuzz(func(t *testing.T, line string) {
		a, err := testTerminal().Command(line)
		if err != nil {
			return
		}
		for i, b := range a.Body {
			if b != 1 && (b < ' ' || b > '~') {
				t.Fatalf("%q: byte %d of the body is %#x", line, i, b)
			}
		}
		if len(a.Body) > 0 && a.Body[len(a.Body)-1] != 1 {
			t.Fatalf("%q: %q", line, a.Body)
		}
	})
}

// Whatever the gateway sends, the terminal shows text and continues.
func FuzzMessage(f *testing.F) {
	for _, fields := range []string{
		"35=8|37=1|11=c1|150=F|39=1|55=A/B|54=1|38=2|32=1|31=3|151=1|14=1", "35=W|262=c1|55=A/B|268=1|269=0|270=1|271=2",
		"35=X|262=c1|268=1|279=2|269=0|55=A/B|270=1", "35=B|148=CLAIM 7|33=1|58=pay|95=4|96=AAAA", "35=y|320=c2|146=1|55=A/B",
	} {
		f.Add([]byte(strings.ReplaceAll(fields, "|", "\x01") + "\x01"))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		term := testTerminal()
		for _, line := range []string{"book A/B", "buy A/B 1 at 2"} {
			a, err := term.Command(line)
			if err != nil {
				t.Fatal(err)
			}
			term.Sent(&a, 2)
		}
		for _, r := range term.Message(fixclient.AsMessage(raw)) {
			text := r.String() + strings.Join(r.Lines, "")
			if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
				t.Fatalf("%q is shown as %q", raw, text)
			}
			if r.Event == "" {
				t.Fatalf("%q: no event", raw)
			}
		}
	})
}
