package main

import (
	"fmt"
	"strings"
	"testing"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/service/demo"
)

// demoSettleConfig is a demo whose chain the test holds in its hands.
const demoSettleConfig = `  rfq_writes_per_minute: 0
  dvp_per_minute: 0
  handshake_per_minute: 0
demo: true
chain: {rpc_urls: %q, timeout_ms: 60000, attempt_timeout_ms: 50000, blockhash_slots: 20000}
rfq: {claim_ttl_s: 3600, quote_ttl_s: 3600}
settle: {key_file: %q, resend_ms: 200, poll_ms: 50, watch_ms: 300}
`

// newDemoRig starts the demo on a chain of our own.
func newDemoRig(t *testing.T, wallets int) *rig {
	t.Helper()
	r := &rig{t: t, keys: t.TempDir()}
	r.startChain(wallets, nil)
	config := testConfig(t, fmt.Sprintf(demoSettleConfig, r.chain.URL(), r.keyFile(demo.Desk)))
	_, config, _ = strings.Cut(config, "http:") // a demo has its own participants
	r.s = startProgram(t, "http:"+config)
	return r
}

// ticketOf returns the first open ticket of a pair.
func (r *rig) ticketOf(pair string) (id string) {
	r.t.Helper()
	await.True(r.t, "a ticket of "+pair, func() bool {
		var book struct {
			Tickets []struct {
				OrderID string   `json:"order_id"`
				Pair    string   `json:"pair"`
				State   string   `json:"state"`
				Rails   []string `json:"rails"`
			}
		}
		getJSON(r.t, r.s.Addresses.Base+"/api/v1/rfq/market-tickets", &book)
		for _, k := range book.Tickets {
			if k.Pair == pair && k.State == "open" && len(k.Rails) == 2 {
				id = k.OrderID
				return true
			}
		}
		return false
	})
	return id
}

// purchase is what the client that is not ours reports of one.
type purchase struct {
	OK           bool   `json:"ok"`
	Error        string `json:"error"`
	State        string `json:"state"`
	BuildState   string `json:"build_state"`
	Token        string `json:"token"`
	Rent         string `json:"rent"`
	RentPayer    string `json:"rent_payer"`
	FeePayer     string `json:"fee_payer"`
	Fee          string `json:"fee"`
	Signature    string `json:"signature"`
	Instructions []struct {
		Kind string `json:"kind"`
	} `json:"shown"`
	Moved map[string]map[string]string `json:"moved"`
}

// Rent of an associated account, in lamports, by its program.
var rentOf = map[string]string{"SLUSD": "2039280", "92C": "2074080"}

// A client that shares nothing with us buys in every way, over both rails, with
// both fee payers, of both token programs, and holds all balances to the atom.
func TestSettle(t *testing.T) {
	runtest.NotRaced(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	r := newDemoRig(t, 2)
	pairs := map[string]string{"SLUSD": r.ticketOf(testSymbol), "92C": r.ticketOf(otherSymbol)}
	was := r.holdings()
	token, from := "", sources.take()
	bought := 0
	for _, base := range []string{"SLUSD", "92C"} {
		for _, rail := range []string{"USDC", "SOL"} {
			for _, way := range []string{"dvp desk", "dvp taker", "atomic", "modular"} {
				// The second wallet's first modular purchase finds no account.
				wallet := 0
				if way == "modular" {
					wallet = 1
				}
				mode, payer, _ := strings.Cut(way, " ")
				args := []string{
					mode, "--base", r.s.Addresses.Base, "--api", r.s.Addresses.API, "--rpc", r.chain.URL(),
					"--wallet", r.keys + "/" + r.setup.Wallets[wallet].Keypair, "--from", from,
					"--order", pairs[base], "--tranche", pairs[base] + "-1", "--fill", "1000", "--rail", rail,
				}
				if mode == "dvp" {
					args = append(args, "--fee-payer", payer)
				}
				if token != "" {
					args = append(args, "--token", token)
				}
				t.Run(base+" for "+rail+" by "+way, func(t *testing.T) {
					var p purchase
					if ok, said := runSolanaClient(t, "", &p, args...); !ok {
						t.Fatal(said)
					}
					if token == "" {
						token = p.Token
					}
					first := rail == "USDC" && (way == "dvp desk" || way == "modular")
					r.checkPurchase(t, &p, base, way, first)
					bought++
				})
			}
		}
	}
	r.conserved(was, r.holdings())
	t.Logf("%d purchases", bought)
}

// checkPurchase holds what the client reports to what the way promises; first is
// whether the account that receives had to be made.
func (r *rig) checkPurchase(t *testing.T, p *purchase, base, way string, first bool) {
	t.Helper()
	want := "0"
	if first {
		want = rentOf[base]
	}
	if !p.OK || p.State != "settled" || p.Rent != want {
		t.Errorf("%+v; rent should be %s", p, want)
	}
	if way == "modular" {
		if p.RentPayer != solana.Text(r.desk) {
			t.Errorf("the rent of a delivery is paid by %s", p.RentPayer)
		}
		return
	}
	feePayer := solana.Text(r.desk)
	if way == "dvp taker" {
		feePayer = r.setup.Wallets[0].Address
	}
	if p.FeePayer != feePayer || p.BuildState != "finalized" {
		t.Errorf("%+v; the fee should be paid by %s", p, feePayer)
	}
}

// conserved: no token came from nowhere or went there, and SOL only into fees and
// rent.
func (r *rig) conserved(was, now holdings) {
	r.t.Helper()
	sums := map[string]int64{}
	for key, d := range now.minus(was) {
		_, symbol, _ := strings.Cut(key, " ")
		sums[symbol] += d
	}
	for symbol, sum := range sums {
		if symbol == "SOL" && sum >= 0 || symbol != "SOL" && sum != 0 {
			r.t.Errorf("all of %s together: %+d atoms", symbol, sum)
		}
	}
}
