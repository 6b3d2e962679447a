package settle

import (
	"fmt"
	"strings"
	"testing"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
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
rfq: {claim_ttl_s: 3600, quote_ttl_s: 3600, unproven_ttl_s: 3600, unproven_usd_per_ip: "10000000", unproven_share_bps: 10000}
settle: {key_file: %q, resend_ms: 200, poll_ms: 50, watch_ms: 300}
`

// newDemoRig starts the demo on a chain of our own.
func newDemoRig(t *testing.T, wallets int) *chaintest.Rig {
	t.Helper()
	r := &chaintest.Rig{T: t, Keys: t.TempDir()}
	r.StartChain(wallets, nil)
	config := programtest.Config(t, fmt.Sprintf(demoSettleConfig, r.Chain.URL(), r.KeyFile(demo.Desk)))
	_, config, _ = strings.Cut(config, "http:") // a demo has its own participants
	r.Server = programtest.Start(t, "http:"+config)
	return r
}

// ticketOf returns the first open ticket of a pair.
func ticketOf(r *chaintest.Rig, pair string) (id string) {
	r.T.Helper()
	await.True(r.T, "a ticket of "+pair, func() bool {
		var book struct {
			Tickets []struct {
				OrderID string   `json:"order_id"`
				Pair    string   `json:"pair"`
				State   string   `json:"state"`
				Rails   []string `json:"rails"`
			}
		}
		programtest.GetJSON(r.T, r.Server.Addresses.Base+"/api/v1/rfq/market-tickets", &book)
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
	runtest.SkipUnderRace(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	r := newDemoRig(t, 2)
	pairs := map[string]string{"SLUSD": ticketOf(r, programtest.Symbol), "92C": ticketOf(r, programtest.OtherSymbol)}
	was := r.Holdings()
	token, from := "", chaintest.ClientIPs.Next()
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
					mode, "--base", r.Server.Addresses.Base, "--api", r.Server.Addresses.API, "--rpc", r.Chain.URL(),
					"--wallet", r.Keys + "/" + r.Setup.Wallets[wallet].Keypair, "--from", from,
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
					if ok, output := runSolanaClient(t, "", &p, args...); !ok {
						t.Fatal(output)
					}
					if token == "" {
						token = p.Token
					}
					first := rail == "USDC" && (way == "dvp desk" || way == "modular")
					checkPurchase(r, t, &p, base, way, first)
					bought++
				})
			}
		}
	}
	conserved(r, was, r.Holdings())
	t.Logf("%d purchases", bought)
}

// checkPurchase holds what the client reports to what the way promises; first is
// whether the account that receives had to be made.
func checkPurchase(r *chaintest.Rig, t *testing.T, p *purchase, base, way string, first bool) {
	t.Helper()
	want := "0"
	if first {
		want = rentOf[base]
	}
	if !p.OK || p.State != "settled" || p.Rent != want {
		t.Errorf("%+v; rent should be %s", p, want)
	}
	if way == "modular" {
		if p.RentPayer != solana.Base58(r.Desk) {
			t.Errorf("the rent of a delivery is paid by %s", p.RentPayer)
		}
		return
	}
	feePayer := solana.Base58(r.Desk)
	if way == "dvp taker" {
		feePayer = r.Setup.Wallets[0].Address
	}
	if p.FeePayer != feePayer || p.BuildState != "finalized" {
		t.Errorf("%+v; the fee should be paid by %s", p, feePayer)
	}
}

// conserved: no token came from nowhere or went there, and SOL only into fees and
// rent.
func conserved(r *chaintest.Rig, was, now chaintest.Holdings) {
	r.T.Helper()
	sums := map[string]int64{}
	for key, d := range now.Minus(was) {
		_, symbol, _ := strings.Cut(key, " ")
		sums[symbol] += d
	}
	for symbol, sum := range sums {
		if symbol == "SOL" && sum >= 0 || symbol != "SOL" && sum != 0 {
			r.T.Errorf("all of %s together: %+d atoms", symbol, sum)
		}
	}
}
