// Package chaintest runs a desk that settles on a local chain which the test controls, and
// wallets that buy from it.
package chaintest

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
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/sandbox/sandboxtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/service/demo"
)

// Config is a desk with both pairs at a price of its operator's, that
// settles on a chain. Its limits are out of reach, and its pace is a test's.
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
  pairs:
    - {symbol: SLUSD/USDC, base_mint: %[5]s, base_decimals: 6, rails: [USDC, SOL],
       price_source: operator, reference_price_usd: "0.999", corridor_bps: 1000, max_age_s: %[8]d, inventory: "50000000"}
    - {symbol: 92C/SLUSD, base_mint: %[6]s, base_decimals: 6, rails: [USDC, SOL],
       price_source: operator, reference_price_usd: "0.35", corridor_bps: 1000, max_age_s: %[8]d, inventory: "50000000"}
`

// Rig is a desk with a chain under it that the test holds in its hands.
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

// Figures of the tests' chains. A block is final soon, so that slots may be long, and
// a blockhash outlives every test that does not let it expire.
const (
	testSlot           = 500 * time.Millisecond
	FinalizeSlots      = 2
	testBlockhashSlots = 20_000 // as in Config
)

// MainnetBlockhash is how many slots a blockhash lives on mainnet.
const MainnetBlockhash = 150

// testChain returns the options of a chain with so many wallets.
func testChain(wallets int) sandbox.Options {
	return sandbox.Options{
		Wallets: wallets, SlotTime: testSlot, FinalizeSlots: FinalizeSlots, BlockhashSlots: testBlockhashSlots, History: 100_000,
	}
}

// Options are what the tests have differently.
type Options struct {
	Chain func(*sandbox.Options) // changes testChain's
	// BlockhashSlots is how long a blockhash lives; 0 = testBlockhashSlots.
	BlockhashSlots int
	Wallets        int
	ClaimTTL       int  // seconds; 0 = an hour
	MaxAge         int  // seconds, of prices; 0 = an hour
	WatchMS        int  // between two looks for payments; 0 = 300
	Hangs          bool // the chain may not answer: the desk does not wait long for it
	Signer         bool // the desk's key is in a process of its own
	// FirmWallet: the first wallet is the firm AA's, which takes claims over FIX.
	FirmWallet bool
}

// Start starts both, and posts a ticket of each pair: T1 sells SLUSD, T2 92C.
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

// GiveWallet gives a firm of Config's the wallet of its claims.
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

// StartSigner starts a process that holds the desk's key, again after it was
// killed.
func (r *Rig) StartSigner() {
	r.T.Helper()
	r.Signer, _ = StartSigner(r.T, r.KeyFile("desk"), r.Socket)
}

// KillSigner ends it at once.
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
func Text(a solana.Address) string { return solana.Text(a) }

// Try tells the chain to do something. Where it closes connections, ours is among
// them: then it is told again.
func (r *Rig) Try(method string, params map[string]any) (err error) {
	const tries = 5
	for range tries {
		err = r.Chain.Call(context.WithoutCancel(r.T.Context()), "sandbox_"+method, params, nil)
		if refused := new(sandbox.Error); err == nil || errors.As(err, &refused) {
			return err
		}
	}
	return err
}

// Control is tell of what must be done.
func (r *Rig) Control(method string, params map[string]any) {
	r.T.Helper()
	if err := r.Try(method, params); err != nil {
		r.T.Fatal(err)
	}
}

// Query asks the chain as any client would.
func (r *Rig) Query(method string, result any, params ...any) {
	r.T.Helper()
	if err := r.Chain.Call(r.T.Context(), method, params, result); err != nil {
		r.T.Fatal(err)
	}
}

// Holdings are balances by "NAME SYMBOL", in atoms; SOL in lamports.
type Holdings map[string]uint64

// Minus returns what has changed since was, as "name symbol": difference.
func (h Holdings) Minus(was Holdings) map[string]int64 {
	out := map[string]int64{}
	for key := range h {
		if d := int64(h[key] - was[key]); d != 0 {
			out[key] = d
		}
	}
	return out
}

// Parties are all whose balances count, by name.
func (r *Rig) Parties(more ...*Buyer) map[string]solana.Address {
	out := map[string]solana.Address{"desk": r.Desk, "treasury": r.address(r.Setup.Treasury.Address)}
	for i, w := range r.Setup.Wallets {
		out[fmt.Sprintf("wallet-%d", i+1)] = r.address(w.Address)
	}
	for _, b := range more {
		out[b.name] = b.Address
	}
	return out
}

// TokenAccount is the associated account of a mint of the setup.
func (r *Rig) TokenAccount(owner solana.Address, symbol string) solana.Address {
	r.T.Helper()
	m := r.Setup.Mints[symbol]
	a, err := solana.TokenAccount(owner, r.address(m.Address), r.address(m.Program))
	if err != nil {
		r.T.Fatal(err)
	}
	return a
}

// Holdings reads all balances from the chain.
func (r *Rig) Holdings(more ...*Buyer) Holdings {
	r.T.Helper()
	out := Holdings{}
	var names, keys []string
	for name, address := range r.Parties(more...) {
		names, keys = append(names, name+" SOL"), append(keys, solana.Text(address))
		for symbol := range r.Setup.Mints {
			names, keys = append(names, name+" "+symbol), append(keys, solana.Text(r.TokenAccount(address, symbol)))
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

func (r *Rig) readHoldings(out Holdings, names, keys []string) {
	r.T.Helper()
	var answer struct {
		Value []*struct {
			Lamports uint64   `json:"lamports"`
			Data     []string `json:"data"`
		} `json:"value"`
	}
	r.Query("getMultipleAccounts", &answer, keys, map[string]any{"encoding": "base64", "commitment": "processed"})
	for i, account := range answer.Value {
		switch {
		case account == nil:
			out[names[i]] = 0
		case strings.HasSuffix(names[i], " SOL"):
			out[names[i]] = account.Lamports
		default:
			data, err := base64.StdEncoding.DecodeString(account.Data[0])
			if err != nil || len(data) < 165 {
				r.T.Fatalf("%s: %d bytes: %v", names[i], len(data), err)
			}
			out[names[i]] = binary.LittleEndian.Uint64(data[64:])
		}
	}
}

// Landed is a transaction as the list of an address has it.
type Landed struct {
	Signature string          `json:"signature"`
	Err       json.RawMessage `json:"err"`
	Memo      *string         `json:"memo"`
}

// TransactionsOf lists what has landed with an address in it, newest first.
func (r *Rig) TransactionsOf(address solana.Address) (out []Landed) {
	r.T.Helper()
	for before := ""; ; {
		options := map[string]any{"commitment": "confirmed", "limit": 1000}
		if before != "" {
			options["before"] = before
		}
		var page []Landed
		r.Query("getSignaturesForAddress", &page, solana.Text(address), options)
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

// ClientIPs is shared by the tests of this package, which may run at once.
var ClientIPs = &nextIP{}

func (n *nextIP) Next() string {
	at := n.n.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 1+at/62_500%200, 1+at/250%250, 1+at%250)
}

// Buyer is somebody who buys from the desk.
type Buyer struct {
	Rig     *Rig
	name    string
	Key     ed25519.PrivateKey
	Address solana.Address
	ip      string
	Token   string
	http    *http.Client
}

// Buyer returns the holder of a key, from an IP of his own.
func (r *Rig) Buyer(name string, key ed25519.PrivateKey) *Buyer {
	b := &Buyer{Rig: r, name: name, Key: key, Address: solana.Address(key[32:]), ip: ClientIPs.Next()}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(b.ip)}}
	b.http = &http.Client{
		Timeout:   runtest.HangTimeout,
		Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 64, IdleConnTimeout: 5 * time.Second},
	}
	r.T.Cleanup(b.http.CloseIdleConnections)
	return b
}

// Wallet returns one of the setup's wallets as a buyer, from 1.
func (r *Rig) Wallet(n int) *Buyer {
	r.T.Helper()
	key, err := r.Setup.Key(r.Setup.Wallets[n-1])
	if err != nil {
		r.T.Fatal(err)
	}
	return r.Buyer(fmt.Sprintf("wallet-%d", n), key)
}

// Answer is what the desk says.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Code   string `json:"code"`
	Reason string `json:"reason"`
	Field  string `json:"field"`
	State  string `json:"state"`
}

func (a *Answer) String() string { return fmt.Sprintf("%d %.400s", a.Status, a.Body) }

// Into decodes the body.
func (a *Answer) Into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
}

// ErrNoAnswer means that the line broke before there was an answer.
var ErrNoAnswer = errors.New("no answer")

// Send sends a request; body is marshalled unless it is text or nil.
func (b *Buyer) Send(ctx context.Context, method, url string, body any, headers ...string) (*Answer, error) {
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
		return nil, errors.Join(ErrNoAnswer, err)
	}
	defer resp.Body.Close()
	a := &Answer{Status: resp.StatusCode, Header: resp.Header}
	if a.Body, err = io.ReadAll(resp.Body); err != nil {
		return nil, errors.Join(ErrNoAnswer, err)
	}
	return a, json.Unmarshal(a.Body, a)
}

// Call is send to a path of the base address that must be answered.
func (b *Buyer) Call(method, path string, body any, headers ...string) *Answer {
	b.Rig.T.Helper()
	a, err := b.Send(b.Rig.T.Context(), method, b.Rig.Server.Addresses.Base+path, body, headers...)
	if err != nil {
		b.Rig.T.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// Want is call of what must be answered with this status.
func (b *Buyer) Want(status int, method, path string, body any, headers ...string) *Answer {
	b.Rig.T.Helper()
	a := b.Call(method, path, body, headers...)
	if a.Status != status {
		b.Rig.T.Fatalf("%s %s: %s, want %d", method, path, a, status)
	}
	return a
}

// Bearer returns the header with the buyer's token.
func (b *Buyer) Bearer() []string { return []string{"Authorization", "Bearer " + b.Token} }

const (
	PathHandshake = "/api/v1/dvp/handshake"
	PathBuild     = "/api/v1/dvp/build"
	PathSubmit    = "/api/v1/dvp/submit"
	PathBuilds    = "/api/v1/dvp/builds/"
	PathClaims    = "/api/v1/rfq/claims/"
	PathAtomic    = "/rfq-native/atomic-claim-ticket"
	PathModular   = "/rfq-native/modular-claim-take"
)

// Handshake gets a token.
func (b *Buyer) Handshake() *Buyer {
	b.Rig.T.Helper()
	var challenge struct{ Nonce string }
	b.Want(200, "POST", PathHandshake, map[string]string{"pubkey": solana.Text(b.Address)}).Into(b.Rig.T, &challenge)
	var granted struct {
		AccessToken string `json:"access_token"`
	}
	b.Want(201, "POST", PathHandshake, map[string]string{
		"pubkey": solana.Text(b.Address), "nonce": challenge.Nonce,
		"signature": base58.Encode(ed25519.Sign(b.Key, []byte(challenge.Nonce))),
	}).Into(b.Rig.T, &granted)
	b.Token = granted.AccessToken
	return b
}

// Deal is what a test buys.
type Deal struct {
	Ticket string // T1 or T2
	Fill   string
	Rail   string
	Payer  string // desk or taker; empty = as the desk likes
}

// Built is an unsigned transaction of both legs, or of a payment.
type Built struct {
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

	Raw, Message []byte
	Slots        []solana.Address // who signs, in order
}

// Open decodes the transaction.
func (b *Built) Open(t *testing.T) *Built {
	t.Helper()
	var err error
	if b.Raw, err = base64.StdEncoding.DecodeString(b.Transaction); err != nil {
		t.Fatal(err)
	}
	x, err := tx.Decode(b.Raw)
	if err != nil {
		t.Fatal(err)
	}
	b.Slots = x.Message.Signers()
	b.BuildID = cmp.Or(b.BuildID, b.Submit.BuildID)
	b.Message = b.Raw[1+64*len(b.Slots):]
	if sum := sha256.Sum256(b.Message); b.Digest != "" && b.Digest != hex.EncodeToString(sum[:]) {
		t.Fatalf("message_sha256 is %s, of the message it is %x", b.Digest, sum)
	}
	return b
}

// Order returns the body of a request that buys, as the way wants it.
func (b *Buyer) Order(d Deal, way string) map[string]string {
	body := map[string]string{"order_id": d.Ticket, "tranche_id": d.Ticket + "-1", "fill_usd": d.Fill}
	if way == PathBuild {
		body["rail"], body["taker"] = d.Rail, solana.Text(b.Address)
	} else {
		body["payment_rail"], body["bot_wallet"] = d.Rail, solana.Text(b.Address)
	}
	if d.Payer != "" && way == PathBuild { // otherwise it is not for the client to say
		body["fee_payer"] = d.Payer
	}
	return body
}

// Build takes a claim and gets its transaction: by DvP's build, the atomic claim
// ticket or the modular claim.
func (b *Buyer) Build(d Deal, way string) *Built {
	b.Rig.T.Helper()
	out := &Built{}
	b.Want(200, "POST", way, b.Order(d, way), b.Bearer()...).Into(b.Rig.T, out)
	return out.Open(b.Rig.T)
}

// Signed returns a transaction with our signature in our slot.
func (b *Buyer) Signed(x *Built) []byte {
	out := slices.Clone(x.Raw)
	slot := slices.Index(x.Slots, b.Address)
	copy(out[1+64*slot:], ed25519.Sign(b.Key, x.Message))
	return out
}

// Submission is the body of a submit.
func Submission(x *Built, raw []byte) map[string]string {
	return map[string]string{"build_id": x.BuildID, "transaction": base64.StdEncoding.EncodeToString(raw)}
}

// Submit signs a build and submits it.
func (b *Buyer) Submit(x *Built) *Answer {
	b.Rig.T.Helper()
	return b.Call("POST", PathSubmit, Submission(x, b.Signed(x)), b.Bearer()...)
}

// Claim returns a claim's state and the whole answer.
func (b *Buyer) Claim(id string) (string, *Answer) {
	b.Rig.T.Helper()
	a := b.Want(200, "GET", PathClaims+id, nil)
	return a.State, a
}

// AwaitClaim waits until a claim is in one of the states.
func (b *Buyer) AwaitClaim(id string, states ...string) string {
	b.Rig.T.Helper()
	return await.Value(b.Rig.T, fmt.Sprintf("claim %s in %v", id, states), func() string {
		state, _ := b.Claim(id)
		return state
	}, func(state string) bool { return slices.Contains(states, state) })
}

// AwaitBlockhash waits until the desk builds with a blockhash that is as new as what
// is confirmed now. Where many slots were opened at once, what it builds before has
// expired already.
func (r *Rig) AwaitBlockhash() {
	r.T.Helper()
	var confirmed uint64
	r.Query("getSlot", &confirmed, map[string]any{"commitment": "confirmed"})
	await.Value(r.T, fmt.Sprintf("the desk to have a blockhash of slot %d", confirmed), func() uint64 {
		return uint64(programtest.Metric(r.T, r.Server, "blockdesk_settlement_blockhash_slot"))
	}, func(slot uint64) bool { return slot >= confirmed })
}

// Moved fails unless exactly these balances have changed, to the atom.
func (r *Rig) Moved(was, now Holdings, want map[string]int64) {
	r.T.Helper()
	if got := now.Minus(was); !maps.Equal(got, want) {
		r.T.Errorf("moved: %v, want %v", got, want)
	}
}
