package rfq

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/terms"
)

var rewriteRFQ = flag.Bool("rewrite-rfq", false, "write testdata/rfq anew")

// TestRFQGolden pins every document of the fixed view; the files are the indented
// bodies.
func TestRFQGolden(t *testing.T) {
	p := pagesOf(t, gatewaytest.NewViewDesk(gatewaytest.FixedView()), gatewaytest.NewDeskClock())
	for d := range documentCount {
		checkGolden(t, d.String(), p.get(d).Body)
	}
	// A desk that is not set up.
	p = pagesOf(t, gatewaytest.NewViewDesk(nil), gatewaytest.NewDeskClock())
	for _, d := range []document{docStatus, docSellable, docTickets, docCompact, docPairs, docTokens, docBoard, docDesk} {
		checkGolden(t, "empty_"+d.String(), p.get(d).Body)
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

// TestChainHealthShown: the desk status has the state of the nodes; unknown values are
// null.
func TestChainHealthShown(t *testing.T) {
	for _, c := range []struct {
		health desk.ChainHealth
		want   string
	}{
		{desk.ChainHealth{}, `"desk_address":null,"slot":null,"blockhash_age_ms":null,"tracked":0,"nodes":[]}}`},
		{
			desk.ChainHealth{
				Desk: gatewaytest.Address(60), Slot: 4711, BlockhashAge: 1500 * time.Millisecond, Tracked: 3,
				Nodes: []desk.ChainNode{{Name: "main", Available: true, Slot: 4711}, {Name: "spare", Slot: 4700, Lag: 11}, {Name: "new"}},
			},
			`"desk_address":"` + gatewaytest.AddressText(gatewaytest.Address(60)) + `","slot":4711,"blockhash_age_ms":1500,"tracked":3,"nodes":[` +
				`{"name":"main","available":true,"slot":4711,"lag_slots":0},{"name":"spare","available":false,"slot":4700,"lag_slots":11},` +
				`{"name":"new","available":false,"slot":null,"lag_slots":null}]}}`,
		},
	} {
		p := pagesOf(t, gatewaytest.NewViewDesk(gatewaytest.FixedView()), gatewaytest.NewDeskClock())
		p.chain, p.health = chain{}, func() desk.ChainHealth { return c.health }
		if body := string(p.get(docDesk).Body); !strings.HasSuffix(body, `"chain":{"available":true,"reason":null,"execution_network":"solana-mainnet-beta",`+c.want) {
			t.Errorf("want %s in %s", c.want, body)
		}
		if body := string(p.get(docStatus).Body); strings.Contains(body, "nodes") {
			t.Errorf("the RFQ status names nodes: %s", body)
		}
	}
}

// chain is a settlement whose readiness a test sets. Only Ready is called.
type chain struct {
	terms.Settlement
	ready error
}

func (c chain) Ready() error { return c.ready }

// TestChainShown: the desk reports whether a claim can be settled now.
func TestChainShown(t *testing.T) {
	for _, c := range []struct {
		settlement terms.Settlement
		available  bool
		reason     string
	}{
		{nil, false, "not_configured"},
		{chain{ready: errors.New("no upstream answers")}, false, "not_ready"},
		{chain{}, true, ""},
	} {
		p := pagesOf(t, gatewaytest.NewViewDesk(&rfq.View{}), gatewaytest.NewDeskClock())
		p.chain = c.settlement
		for _, d := range []document{docStatus, docDesk} {
			var got struct {
				Chain struct {
					Available bool
					Reason    string
				}
			}
			if err := json.Unmarshal(p.get(d).Body, &got); err != nil {
				t.Fatal(err)
			}
			if got.Chain.Available != c.available || got.Chain.Reason != c.reason {
				t.Errorf("%v: %+v shown as %+v", d, c, got.Chain)
			}
		}
	}
}
