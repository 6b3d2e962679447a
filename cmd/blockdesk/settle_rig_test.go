package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/bench/server"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/sandbox/sandboxtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/service/demo"
)

// settleDeskConfig is a desk with both pairs at a price of its operator's, that
// settles on a chain. Its limits are out of reach, and its pace is a test's.
const settleDeskConfig = `  rfq_writes_per_minute: 0
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
  pairs:
    - {symbol: SLUSD/USDC, base_mint: %[5]s, base_decimals: 6, rails: [USDC, SOL],
       price_source: operator, reference_price_usd: "0.999", corridor_bps: 1000, max_age_s: %[8]d, inventory: "50000000"}
    - {symbol: 92C/SLUSD, base_mint: %[6]s, base_decimals: 6, rails: [USDC, SOL],
       price_source: operator, reference_price_usd: "0.35", corridor_bps: 1000, max_age_s: %[8]d, inventory: "50000000"}
`

// rig is a desk with a chain under it that the test holds in its hands.
type rig struct {
	t     *testing.T
	chain *sandbox.Node
	setup *sandbox.Setup
	keys  string // folder of the keypairs
	s     *server.Server
	desk  solana.Address

	signer *signerProcess // nil: the service has the key
	socket string         // of the signer
}

// Figures of the tests' chains. A block is final soon, so that slots may be long, and
// a blockhash outlives every test that does not let it expire.
const (
	testSlot           = 500 * time.Millisecond
	testFinalizeSlots  = 2
	testBlockhashSlots = 20_000 // as in settleDeskConfig
)

// mainnetBlockhash is how many slots a blockhash lives on mainnet.
const mainnetBlockhash = 150

// testChain returns the options of a chain with so many wallets.
func testChain(wallets int) sandbox.Options {
	return sandbox.Options{
		Wallets: wallets, SlotTime: testSlot, FinalizeSlots: testFinalizeSlots, BlockhashSlots: testBlockhashSlots, History: 100_000,
	}
}

// rigOptions are what the tests have differently.
type rigOptions struct {
	chain func(*sandbox.Options) // changes testChain's
	// blockhashSlots is how long a blockhash lives; 0 = testBlockhashSlots.
	blockhashSlots int
	wallets        int
	claimTTL       int  // seconds; 0 = an hour
	maxAge         int  // seconds, of prices; 0 = an hour
	watchMS        int  // between two looks for payments; 0 = 300
	hangs          bool // the chain may not answer: the desk does not wait long for it
	signer         bool // the desk's key is in a process of its own
	// firmWallet: the first wallet is the firm AA's, which takes claims over FIX.
	firmWallet bool
}

// newRig starts both, and posts a ticket of each pair: T1 sells SLUSD, T2 92C.
func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	if o.maxAge == 0 {
		o.maxAge = 3600
	}
	if o.claimTTL == 0 {
		o.claimTTL = 3600
	}
	if o.watchMS == 0 {
		o.watchMS = 300
	}
	r := &rig{t: t, keys: t.TempDir()}
	r.startChain(o.wallets, func(chain *sandbox.Options) {
		chain.BlockhashSlots = cmp.Or(o.blockhashSlots, testBlockhashSlots)
		if o.chain != nil {
			o.chain(chain)
		}
	})
	key := fmt.Sprintf("key_file: %q", r.keyFile("desk"))
	if o.signer {
		dir, err := os.MkdirTemp("", "signer") // short: a socket's path has to be
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		r.socket = dir + "/socket"
		r.startSigner()
		key = fmt.Sprintf("signer_socket: %q, desk: %s", r.socket, r.setup.Desk.Address)
	}
	config := fmt.Sprintf(settleDeskConfig, r.chain.URL(), key, r.setup.Mints["USDC"].Address,
		r.setup.Treasury.Address, r.setup.Mints["SLUSD"].Address, r.setup.Mints["92C"].Address, o.claimTTL, o.maxAge, o.watchMS)
	if o.hangs {
		config = strings.Replace(config, "timeout_ms: 60000, attempt_timeout_ms: 50000", "timeout_ms: 2000, attempt_timeout_ms: 1000", 1)
	}
	if o.blockhashSlots != 0 {
		config = strings.Replace(config, "blockhash_slots: 20000", fmt.Sprint("blockhash_slots: ", o.blockhashSlots), 1)
	}
	config = testConfig(t, config)
	if o.firmWallet {
		giveWallet(t, config, traderA, r.setup.Wallets[0].Address)
	}
	r.s = startProgram(t, config)
	for _, pair := range []string{testSymbol, otherSymbol} {
		cli(t, r.s, "ticket", "post", "--pair", pair, "--label", "Block "+pair[:3], "--tranches", "10000000")
	}
	return r
}

// giveWallet gives a firm of testConfig's the wallet of its claims.
func giveWallet(t *testing.T, config, firm, wallet string) {
	t.Helper()
	file := participantsFile(config)
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

// startSigner starts a process that holds the desk's key, again after it was
// killed.
func (r *rig) startSigner() {
	r.t.Helper()
	r.signer, _ = startSigner(r.t, r.keyFile("desk"), r.socket)
}

// killSigner ends it at once.
func (r *rig) killSigner() {
	r.t.Helper()
	if err := r.signer.end(r.t, os.Kill); err == nil {
		r.t.Error("the signer ended cleanly: it was not killed")
	}
}

func (r *rig) keyFile(name string) string { return r.keys + "/" + name + ".json" }

// startChain starts the sandbox, or skips the test with the reason.
func (r *rig) startChain(wallets int, change func(*sandbox.Options)) {
	r.t.Helper()
	o := testChain(wallets)
	o.SetupDir = r.keys
	if change != nil {
		change(&o)
	}
	r.chain, r.setup = startTestChain(r.t, o)
	r.desk = r.address(r.setup.Desk.Address)
}

// startTestChain is sandboxtest.Start with the demo's keys.
func startTestChain(t *testing.T, o sandbox.Options) (*sandbox.Node, *sandbox.Setup) {
	t.Helper()
	if err := demo.WriteKeys(o.SetupDir, o.Wallets); err != nil {
		t.Fatal(err)
	}
	c := sandboxtest.Start(t, o)
	return c.Node, c.Setup
}

func (r *rig) address(text string) solana.Address { return must(solana.ParseAddress(text)) }

// text is an address in base58.
func text(a solana.Address) string { return solana.Text(a) }

// tell tells the chain to do something. Where it closes connections, ours is among
// them: then it is told again.
func (r *rig) tell(method string, params map[string]any) (err error) {
	const tries = 5
	for range tries {
		err = r.chain.Call(context.WithoutCancel(r.t.Context()), "sandbox_"+method, params, nil)
		if refused := new(sandbox.Error); err == nil || errors.As(err, &refused) {
			return err
		}
	}
	return err
}

// control is tell of what must be done.
func (r *rig) control(method string, params map[string]any) {
	r.t.Helper()
	if err := r.tell(method, params); err != nil {
		r.t.Fatal(err)
	}
}

// ask asks the chain as any client would.
func (r *rig) ask(method string, result any, params ...any) {
	r.t.Helper()
	if err := r.chain.Call(r.t.Context(), method, params, result); err != nil {
		r.t.Fatal(err)
	}
}

// holdings are balances by "NAME SYMBOL", in atoms; SOL in lamports.
type holdings map[string]uint64

// minus returns what has changed since was, as "name symbol": difference.
func (h holdings) minus(was holdings) map[string]int64 {
	out := map[string]int64{}
	for key := range h {
		if d := int64(h[key] - was[key]); d != 0 {
			out[key] = d
		}
	}
	return out
}

// parties are all whose balances count, by name.
func (r *rig) parties(more ...*buyer) map[string]solana.Address {
	out := map[string]solana.Address{"desk": r.desk, "treasury": r.address(r.setup.Treasury.Address)}
	for i, w := range r.setup.Wallets {
		out[fmt.Sprintf("wallet-%d", i+1)] = r.address(w.Address)
	}
	for _, b := range more {
		out[b.name] = b.address
	}
	return out
}

// tokenAccount is the associated account of a mint of the setup.
func (r *rig) tokenAccount(owner solana.Address, symbol string) solana.Address {
	r.t.Helper()
	m := r.setup.Mints[symbol]
	a, err := solana.TokenAccount(owner, r.address(m.Address), r.address(m.Program))
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// holdings reads all balances from the chain.
func (r *rig) holdings(more ...*buyer) holdings {
	r.t.Helper()
	out := holdings{}
	var names, keys []string
	for name, address := range r.parties(more...) {
		names, keys = append(names, name+" SOL"), append(keys, solana.Text(address))
		for symbol := range r.setup.Mints {
			names, keys = append(names, name+" "+symbol), append(keys, solana.Text(r.tokenAccount(address, symbol)))
		}
	}
	const accountsACall = 100
	for len(names) > 0 {
		n := min(len(names), accountsACall)
		r.readHoldings(out, names[:n], keys[:n])
		names, keys = names[n:], keys[n:]
	}
	return out
}

func (r *rig) readHoldings(out holdings, names, keys []string) {
	r.t.Helper()
	var answer struct {
		Value []*struct {
			Lamports uint64   `json:"lamports"`
			Data     []string `json:"data"`
		} `json:"value"`
	}
	r.ask("getMultipleAccounts", &answer, keys, map[string]any{"encoding": "base64", "commitment": "processed"})
	for i, account := range answer.Value {
		switch {
		case account == nil:
			out[names[i]] = 0
		case strings.HasSuffix(names[i], " SOL"):
			out[names[i]] = account.Lamports
		default:
			data, err := base64.StdEncoding.DecodeString(account.Data[0])
			if err != nil || len(data) < 165 {
				r.t.Fatalf("%s: %d bytes: %v", names[i], len(data), err)
			}
			out[names[i]] = binary.LittleEndian.Uint64(data[64:])
		}
	}
}

// landed is a transaction as the list of an address has it.
type landed struct {
	Signature string          `json:"signature"`
	Err       json.RawMessage `json:"err"`
	Memo      *string         `json:"memo"`
}

// transactionsOf lists what has landed with an address in it, newest first.
func (r *rig) transactionsOf(address solana.Address) (out []landed) {
	r.t.Helper()
	for before := ""; ; {
		options := map[string]any{"commitment": "confirmed", "limit": 1000}
		if before != "" {
			options["before"] = before
		}
		var page []landed
		r.ask("getSignaturesForAddress", &page, solana.Text(address), options)
		out = append(out, page...)
		if len(page) < 1000 {
			return out
		}
		before = page[len(page)-1].Signature
	}
}

// nextIP numbers the addresses that the tests' clients come from: each client IP
// gets one token an hour, and the whole of 127.0.0.0/8 is this machine.
type nextIP struct{ n atomic.Uint32 }

// sources is shared by the tests of this package, which may run at once.
var sources = &nextIP{}

func (n *nextIP) take() string {
	at := n.n.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 1+at/62_500%200, 1+at/250%250, 1+at%250)
}

// buyer is somebody who buys from the desk.
type buyer struct {
	r       *rig
	name    string
	key     ed25519.PrivateKey
	address solana.Address
	ip      string
	token   string
	http    *http.Client
}

// buyer returns the holder of a key, from an IP of his own.
func (r *rig) buyer(name string, key ed25519.PrivateKey) *buyer {
	b := &buyer{r: r, name: name, key: key, address: solana.Address(key[32:]), ip: sources.take()}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(b.ip)}}
	b.http = &http.Client{
		Timeout:   runtest.Patience,
		Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: 5 * time.Second},
	}
	r.t.Cleanup(b.http.CloseIdleConnections)
	return b
}

// wallet returns one of the setup's wallets as a buyer, from 1.
func (r *rig) wallet(n int) *buyer {
	r.t.Helper()
	key, err := r.setup.Key(r.setup.Wallets[n-1])
	if err != nil {
		r.t.Fatal(err)
	}
	return r.buyer(fmt.Sprintf("wallet-%d", n), key)
}

// answer is what the desk says.
type answer struct {
	status int
	header http.Header
	body   []byte
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Field  string `json:"field"`
	State  string `json:"state"`
}

func (a *answer) String() string { return fmt.Sprintf("%d %.400s", a.status, a.body) }

// into decodes the body.
func (a *answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
}

// errLine means that the line broke before there was an answer.
var errLine = errors.New("no answer")

// send sends a request; body is marshalled unless it is text or nil.
func (b *buyer) send(ctx context.Context, method, url string, body any, headers ...string) (*answer, error) {
	var text []byte
	switch body := body.(type) {
	case nil:
	case string:
		text = []byte(body)
	default:
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return nil, errors.Join(errLine, err)
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, header: resp.Header}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return nil, errors.Join(errLine, err)
	}
	return a, json.Unmarshal(a.body, a)
}

// call is send to a path of the base address that must be answered.
func (b *buyer) call(method, path string, body any, headers ...string) *answer {
	b.r.t.Helper()
	a, err := b.send(b.r.t.Context(), method, b.r.s.Addresses.Base+path, body, headers...)
	if err != nil {
		b.r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// want is call of what must be answered with this status.
func (b *buyer) want(status int, method, path string, body any, headers ...string) *answer {
	b.r.t.Helper()
	a := b.call(method, path, body, headers...)
	if a.status != status {
		b.r.t.Fatalf("%s %s: %s, want %d", method, path, a, status)
	}
	return a
}

func (b *buyer) bearer() []string { return []string{"Authorization", "Bearer " + b.token} }

const (
	pathHandshake = "/api/v1/dvp/handshake"
	pathBuild     = "/api/v1/dvp/build"
	pathSubmit    = "/api/v1/dvp/submit"
	pathBuilds    = "/api/v1/dvp/builds/"
	pathClaims    = "/api/v1/rfq/claims/"
	pathAtomic    = "/rfq-native/atomic-claim-ticket"
	pathModular   = "/rfq-native/modular-claim-take"
)

// handshake gets a token.
func (b *buyer) handshake() *buyer {
	b.r.t.Helper()
	var challenge struct{ Nonce string }
	b.want(200, "POST", pathHandshake, map[string]string{"pubkey": solana.Text(b.address)}).into(b.r.t, &challenge)
	var granted struct {
		AccessToken string `json:"access_token"`
	}
	b.want(201, "POST", pathHandshake, map[string]string{
		"pubkey": solana.Text(b.address), "nonce": challenge.Nonce,
		"signature": base58.Encode(ed25519.Sign(b.key, []byte(challenge.Nonce))),
	}).into(b.r.t, &granted)
	b.token = granted.AccessToken
	return b
}

// deal is what a test buys.
type deal struct {
	ticket string // T1 or T2
	fill   string
	rail   string
	payer  string // desk or taker; empty = as the desk likes
}

// built is an unsigned transaction of both legs, or of a payment.
type built struct {
	BuildID     string   `json:"build_id"`
	ClaimID     string   `json:"claim_id"`
	State       string   `json:"state"`
	Transaction string   `json:"transaction"`
	Digest      string   `json:"message_sha256"`
	Signers     []string `json:"required_signers"`
	LastValid   uint64   `json:"last_valid_block_height"`
	Payment     struct {
		AmountAtoms string `json:"amount_atoms"`
		Memo        string `json:"memo"`
		Reference   string `json:"reference"`
	} `json:"payment"`
	Submit struct { // of an atomic claim
		BuildID string `json:"build_id"`
	} `json:"submit"`

	raw, message []byte
	slots        []solana.Address // who signs, in order
}

// open decodes the transaction.
func (b *built) open(t *testing.T) *built {
	t.Helper()
	var err error
	if b.raw, err = base64.StdEncoding.DecodeString(b.Transaction); err != nil {
		t.Fatal(err)
	}
	x, err := tx.Decode(b.raw)
	if err != nil {
		t.Fatal(err)
	}
	b.slots = x.Message.Signers()
	b.BuildID = cmp.Or(b.BuildID, b.Submit.BuildID)
	b.message = b.raw[1+64*len(b.slots):]
	if sum := sha256.Sum256(b.message); b.Digest != "" && b.Digest != hex.EncodeToString(sum[:]) {
		t.Fatalf("message_sha256 is %s, of the message it is %x", b.Digest, sum)
	}
	return b
}

func (b *buyer) order(d deal, way string) map[string]string {
	body := map[string]string{"order_id": d.ticket, "tranche_id": d.ticket + "-1", "fill_usd": d.fill}
	if way == pathBuild {
		body["rail"], body["taker"] = d.rail, solana.Text(b.address)
	} else {
		body["payment_rail"], body["bot_wallet"] = d.rail, solana.Text(b.address)
	}
	if d.payer != "" && way == pathBuild { // otherwise it is not for the client to say
		body["fee_payer"] = d.payer
	}
	return body
}

// build takes a claim and gets its transaction: by DvP's build, the atomic claim
// ticket or the modular claim.
func (b *buyer) build(d deal, way string) *built {
	b.r.t.Helper()
	out := &built{}
	b.want(200, "POST", way, b.order(d, way), b.bearer()...).into(b.r.t, out)
	return out.open(b.r.t)
}

// signed returns a transaction with our signature in our slot.
func (b *buyer) signed(x *built) []byte {
	out := slices.Clone(x.raw)
	slot := slices.Index(x.slots, b.address)
	copy(out[1+64*slot:], ed25519.Sign(b.key, x.message))
	return out
}

// submission is the body of a submit.
func submission(x *built, raw []byte) map[string]string {
	return map[string]string{"build_id": x.BuildID, "transaction": base64.StdEncoding.EncodeToString(raw)}
}

// submit signs a build and submits it.
func (b *buyer) submit(x *built) *answer {
	b.r.t.Helper()
	return b.call("POST", pathSubmit, submission(x, b.signed(x)), b.bearer()...)
}

// claim returns a claim's state and the whole answer.
func (b *buyer) claim(id string) (string, *answer) {
	b.r.t.Helper()
	a := b.want(200, "GET", pathClaims+id, nil)
	return a.State, a
}

// awaitClaim waits until a claim is in one of the states.
func (b *buyer) awaitClaim(id string, states ...string) string {
	b.r.t.Helper()
	return await.Value(b.r.t, fmt.Sprintf("claim %s in %v", id, states), func() string {
		state, _ := b.claim(id)
		return state
	}, func(state string) bool { return slices.Contains(states, state) })
}

// awaitBlockhash waits until the desk builds with a blockhash that is as new as what
// is confirmed now. Where many slots were opened at once, what it builds before has
// expired already.
func (r *rig) awaitBlockhash() {
	r.t.Helper()
	var confirmed uint64
	r.ask("getSlot", &confirmed, map[string]any{"commitment": "confirmed"})
	await.Value(r.t, fmt.Sprintf("the desk to have a blockhash of slot %d", confirmed), func() uint64 {
		return uint64(metric(r.t, r.s, "blockdesk_settlement_blockhash_slot"))
	}, func(slot uint64) bool { return slot >= confirmed })
}

// moved fails unless exactly these balances have changed, to the atom.
func (r *rig) moved(was, now holdings, want map[string]int64) {
	r.t.Helper()
	if got := now.minus(was); !maps.Equal(got, want) {
		r.t.Errorf("moved: %v, want %v", got, want)
	}
}
