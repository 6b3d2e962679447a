// Package chaintest runs a desk that settles on a local chain that the test controls, and
// wallets that buy from it. Tests of atomic and modular claims, refunds, crashes and chain
// outages share it.
//
// A Rig is the service as a child process with the chain beside it. A Buyer has its own
// key and its own client address, so rate limits do not join the tests, which run
// concurrently. A test advances slots, and blocks are final after FinalizeSlots, so no
// test waits for a real chain's time. Balances are compared to the atom (Moved).
package chaintest

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/sandbox/sandboxtest"
	"blockdesk/internal/solana"
	"blockdesk/service/demo"
)

// Config is a desk with both pairs, priced by the operator, that settles on a chain.
// Its limits are out of reach, and its intervals are short.
const Config = `  rfq_writes_per_minute: 0
  dvp_per_minute: 0
  handshake_per_minute: 0
chain: {rpc_urls: %q, timeout_ms: 60000, attempt_timeout_ms: 50000, blockhash_slots: 20000}
settle: {%s, resend_ms: 200, poll_ms: 50, watch_ms: %[9]d}
rfq:
  usdc_mint: %[3]s
  pay_to: {USDC: %[4]s, SOL: %[4]s}
  sol_price_usd: "150"
  sol_max_age_s: %[8]d
  claim_ttl_s: %[7]d
  quote_ttl_s: 3600
  wallet_claims: 1000
  unproven_usd_per_ip: "50000000"
  unproven_share_bps: 10000
  unproven_ttl_s: %[7]d
  pairs:
    - {symbol: SLUSD/USDC, base_mint: %[5]s, base_decimals: 6, rails: [USDC, SOL],
       price_source: operator, reference_price_usd: "0.999", corridor_bps: 1000, max_age_s: %[8]d, inventory: "50000000"}
    - {symbol: 92C/SLUSD, base_mint: %[6]s, base_decimals: 6, rails: [USDC, SOL],
       price_source: operator, reference_price_usd: "0.35", corridor_bps: 1000, max_age_s: %[8]d, inventory: "50000000"}
`

// Rig is a desk and its chain, which the test controls.
type Rig struct {
	T      *testing.T
	Chain  *sandbox.Node
	Setup  *sandbox.Setup
	Keys   string // folder of the keypairs
	Server *server.Server
	Desk   solana.Address

	Signer *SignerProcess // nil: the service has the key
	Socket string         // of the signer
}

// The tests' chain: a block is final soon, so that slots can be long, and a blockhash
// outlives every test that does not let it expire.
const (
	testSlot           = 500 * time.Millisecond
	FinalizeSlots      = 2
	testBlockhashSlots = 20_000 // as in Config
)

// MainnetBlockhash is the life of a blockhash on mainnet, in slots.
const MainnetBlockhash = 150

func testChain(wallets int) sandbox.Options {
	return sandbox.Options{
		Wallets: wallets, SlotTime: testSlot, FinalizeSlots: FinalizeSlots, BlockhashSlots: testBlockhashSlots, History: 100_000,
	}
}

// Options differ from test to test.
type Options struct {
	Chain func(*sandbox.Options) // changes testChain's
	// BlockhashSlots is the life of a blockhash; 0 = testBlockhashSlots.
	BlockhashSlots int
	Wallets        int
	ClaimTTL       int  // seconds; 0 = an hour
	MaxAge         int  // seconds, of prices; 0 = an hour
	WatchMS        int  // between two polls for payments; 0 = 300
	Hangs          bool // the chain may hang: the desk has short timeouts
	Signer         bool // the desk's key is in a process of its own
	// FirmWallet: the first wallet takes the claims of firm AA over FIX.
	FirmWallet bool
}

// Start starts the chain and the desk, and posts a ticket of each pair: T1 sells
// SLUSD, T2 92C.
func Start(t *testing.T, o Options) *Rig {
	t.Helper()
	if o.MaxAge == 0 {
		o.MaxAge = 3600
	}
	if o.ClaimTTL == 0 {
		o.ClaimTTL = 3600
	}
	if o.WatchMS == 0 {
		o.WatchMS = 300
	}
	r := &Rig{T: t, Keys: t.TempDir()}
	r.StartChain(o.Wallets, func(chain *sandbox.Options) {
		chain.BlockhashSlots = cmp.Or(o.BlockhashSlots, testBlockhashSlots)
		if o.Chain != nil {
			o.Chain(chain)
		}
	})
	key := fmt.Sprintf("key_file: %q", r.KeyFile("desk"))
	if o.Signer {
		dir, err := os.MkdirTemp("", "signer") // short: a socket's path has to be
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		r.Socket = dir + "/socket"
		r.StartSigner()
		key = fmt.Sprintf("signer_socket: %q, desk: %s", r.Socket, r.Setup.Desk.Address)
	}
	config := fmt.Sprintf(Config, r.Chain.URL(), key, r.Setup.Mints["USDC"].Address,
		r.Setup.Treasury.Address, r.Setup.Mints["SLUSD"].Address, r.Setup.Mints["92C"].Address, o.ClaimTTL, o.MaxAge, o.WatchMS)
	if o.Hangs {
		config = strings.Replace(config, "timeout_ms: 60000, attempt_timeout_ms: 50000", "timeout_ms: 2000, attempt_timeout_ms: 1000", 1)
	}
	if o.BlockhashSlots != 0 {
		config = strings.Replace(config, "blockhash_slots: 20000", fmt.Sprint("blockhash_slots: ", o.BlockhashSlots), 1)
	}
	config = programtest.Config(t, config)
	if o.FirmWallet {
		GiveWallet(t, config, programtest.FirmA, r.Setup.Wallets[0].Address)
	}
	r.Server = programtest.Start(t, config)
	for _, pair := range []string{programtest.Symbol, programtest.OtherSymbol} {
		programtest.CLI(t, r.Server, "ticket", "post", "--pair", pair, "--label", "Block "+pair[:3], "--tranches", "10000000")
	}
	return r
}

// GiveWallet sets the wallet that takes a firm's claims.
func GiveWallet(t *testing.T, config, firm, wallet string) {
	t.Helper()
	file := programtest.ParticipantsFile(config)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name := "{name: " + firm + ","
	text = bytes.Replace(text, []byte(name), []byte(name+" wallet: "+wallet+","), 1)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// StartSigner starts the process with the desk's key, also after KillSigner.
func (r *Rig) StartSigner() {
	r.T.Helper()
	r.Signer, _ = StartSigner(r.T, r.KeyFile("desk"), r.Socket)
}

// KillSigner kills the process with the desk's key.
func (r *Rig) KillSigner() {
	r.T.Helper()
	if err := r.Signer.End(r.T, os.Kill); err == nil {
		r.T.Error("the signer ended cleanly: it was not killed")
	}
}

// KeyFile returns the path of a keypair, by its name in the chain's setup.
func (r *Rig) KeyFile(name string) string { return r.Keys + "/" + name + ".json" }

// StartChain starts the sandbox, or skips the test with the reason.
func (r *Rig) StartChain(wallets int, change func(*sandbox.Options)) {
	r.T.Helper()
	o := testChain(wallets)
	o.SetupDir = r.Keys
	if change != nil {
		change(&o)
	}
	r.Chain, r.Setup = StartChain(r.T, o)
	r.Desk = r.address(r.Setup.Desk.Address)
}

// StartChain is sandboxtest.Start with the demo's keys.
func StartChain(t *testing.T, o sandbox.Options) (*sandbox.Node, *sandbox.Setup) {
	t.Helper()
	if err := demo.WriteKeys(o.SetupDir, o.Wallets); err != nil {
		t.Fatal(err)
	}
	c := sandboxtest.Start(t, o)
	return c.Node, c.Setup
}

func (r *Rig) address(text string) solana.Address { return programtest.Must(solana.ParseAddress(text)) }

// Text is an address in base58.
func Text(a solana.Address) string { return solana.Base58(a) }
