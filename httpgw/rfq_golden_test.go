package httpgw

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"blockdesk/engine/rfq"
)

var rewriteRFQ = flag.Bool("rewrite-rfq", false, "write testdata/rfq anew")

// TestRFQGolden pins every document of the fixed view, member by member: the
// files are the bodies, indented.
func TestRFQGolden(t *testing.T) {
	p := pagesOf(t, showing(fixedView()), newDeskClock())
	for d := range documentCount {
		checkGolden(t, d.String(), p.get(d).body)
	}
	// A desk that nobody has set up.
	p = pagesOf(t, showing(nil), newDeskClock())
	for _, d := range []document{docStatus, docSellable, docTickets, docCompact, docPairs, docTokens, docBoard, docDesk} {
		checkGolden(t, "empty_"+d.String(), p.get(d).body)
	}
}

func checkGolden(t *testing.T, name string, body []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, body, "", "  "); err != nil {
		t.Errorf("%s: %v in %s", name, err, body)
		return
	}
	got.WriteByte('\n')
	if bytes.ContainsAny(body, "\n\t") {
		t.Errorf("%s: blanks in the body", name)
	}
	file := filepath.Join("testdata", "rfq", name+".json")
	if *rewriteRFQ {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s differs from its file; got\n%s", name, got.Bytes())
	}
}

// chain is a settlement whose readiness a test sets. Nothing else is asked of it.
type chain struct {
	Settlement
	ready error
}

func (c chain) Ready() error { return c.ready }

// TestChainShown: the desk says whether a claim can be settled now.
func TestChainShown(t *testing.T) {
	for _, c := range []struct {
		settlement Settlement
		available  bool
		reason     string
	}{
		{nil, false, "not_configured"},
		{chain{ready: errors.New("no upstream answers")}, false, "not_ready"},
		{chain{}, true, ""},
	} {
		p := pagesOf(t, showing(&rfq.View{}), newDeskClock())
		p.chain = c.settlement
		for _, d := range []document{docStatus, docDesk} {
			var got struct {
				Chain struct {
					Available bool
					Reason    string
				}
			}
			if err := json.Unmarshal(p.get(d).body, &got); err != nil {
				t.Fatal(err)
			}
			if got.Chain.Available != c.available || got.Chain.Reason != c.reason {
				t.Errorf("%v: %+v shown as %+v", d, c, got.Chain)
			}
		}
	}
}
