package httpgw

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// testWallet is a key pair that signs claims.
type testWallet struct {
	key     ed25519.PrivateKey
	address string
}

// newTestWallet returns the wallet number n.
func newTestWallet(n int) testWallet {
	seed := [32]byte{31: 1}
	copy(seed[:], fmt.Sprintf("wallet %d", n))
	key := ed25519.NewKeyFromSeed(seed[:])
	return testWallet{key, base58.Encode(key.Public().(ed25519.PublicKey))}
}

// sign returns the proof of a claim of 250 USD of T7-2 in the minute of at plus minutes.
func (w testWallet) sign(at int64, minutes int64, rail string) []byte {
	text := fmt.Sprintf("blockdesk-claim-v1|T7|T7-2|250|%s|%d", rail, at/int64(time.Minute)+minutes)
	return ed25519.Sign(w.key, []byte(text))
}

// claim returns the body of such a claim, with more members.
func (w testWallet) claim(more string) string {
	return `{"bot_wallet":"` + w.address + `","order_id":"T7","tranche_id":"T7-2","fill_usd":"250"` + more + `}`
}

func signatureMember(s []byte) string { return `,"wallet_signature":"` + base58.Encode(s) + `"` }

// newProofRig returns a gateway with a handshake, a chain and a clock that a test moves.
func newProofRig(t *testing.T) (*testWriter, *gatewaytest.DeskClock) {
	t.Helper()
	clock := gatewaytest.NewDeskClock()
	rig := newDvPRig(t, func(d *Dependencies, o *Options) {
		d.Settlement = &fakeChain{}
		desk, _ := wire.ParseAddress([]byte(newTestWallet(-1).address))
		d.ChainHealth = healthOf(desk)
		o.Now = clock.Now
	})
	return rig.testWriter, clock
}

// healthOf is the health of a chain on which the desk has this wallet.
func healthOf(wallet market.Address) func() desk.ChainHealth {
	return func() desk.ChainHealth { return desk.ChainHealth{Desk: wallet} }
}

// TestWalletSignature: what proves a claim, and that a wrong proof refuses it.
func TestWalletSignature(t *testing.T) {
	w, clock := newProofRig(t)
	me, other := newTestWallet(1), newTestWallet(2)
	now := clock.Now()
	ours := me.sign(now, 0, "USDC")
	for name, c := range map[string]struct {
		more   string
		proven bool
		reason string // of the refusal
	}{
		"none":                 {"", false, ""},
		"null":                 {`,"wallet_signature":null`, false, ""},
		"base58":               {signatureMember(ours), true, ""},
		"base64":               {`,"wallet_signature":"` + base64.StdEncoding.EncodeToString(ours) + `"`, true, ""},
		"the minute before":    {signatureMember(me.sign(now, -1, "USDC")), true, ""},
		"two minutes before":   {signatureMember(me.sign(now, -2, "USDC")), false, "bad_signature"},
		"the next minute":      {signatureMember(me.sign(now, 1, "USDC")), false, "bad_signature"},
		"another wallet":       {signatureMember(other.sign(now, 0, "USDC")), false, "bad_signature"},
		"another rail":         {signatureMember(me.sign(now, 0, "SOL")), false, "bad_signature"},
		"its rail written out": {signatureMember(me.sign(now, 0, "SOL")) + `,"payment_rail":"SOL"`, true, ""},
		"one bit":              {signatureMember(flipped(ours)), false, "bad_signature"},
		"scalar plus order":    {signatureMember(malleable(ours)), false, "bad_signature"},
		"zero":                 {`,"wallet_signature":"` + strings.Repeat("1", 64) + `"`, false, "not_a_signature"},
		"text":                 {`,"wallet_signature":"signed"`, false, "not_a_signature"},
		"empty":                {`,"wallet_signature":""`, false, "empty"},
		"number":               {`,"wallet_signature":1`, false, "wrong_type"},
	} {
		for _, path := range []string{rfqapi.PathModular, rfqapi.PathNativeModular, rfqapi.PathAtomic, rfqapi.PathNativeAtomic} {
			asked := len(w.desk.Requests)
			got := w.post(t, path, me.claim(c.more))
			if c.reason != "" {
				e := gatewaytest.DecodeError(t, got.body)
				if got.status != 400 || e.Code != wire.CodeInvalidField || e.Field != "wallet_signature" || e.Reason != c.reason || len(w.desk.Requests) != asked {
					t.Errorf("%s: status %d: %s", name, got.status, got.body)
				}
				continue
			}
			r, ok := w.desk.Last().(*rfq.TakeClaim)
			if got.status != 200 || !ok || r.Proven != c.proven || r.Client == 0 {
				t.Errorf("%s: status %d: %s: %+v", name, got.status, got.body, r)
			}
		}
	}
}

// TestProofByToken: a DvP token proves its own wallet, and one that is sent must be valid.
func TestProofByToken(t *testing.T) {
	w, _ := newProofRig(t)
	body := strings.Replace(claimBody, wallet, taker, 1)
	for _, c := range []struct {
		body, line string
		proven     bool
		reason     string
	}{
		{body, "X: y", false, ""},
		{body, "Authorization:", false, ""},
		{body, bearer, true, ""},
		{claimBody, bearer, false, terms.TokenWrongTaker},
		{body, bearer + "x", false, terms.TokenUnknown},
		{body, "Authorization: Basic x", false, terms.TokenMalformed},
		{body, "Authorization:\r\n" + bearer, false, terms.TokenMalformed},
	} {
		got := w.post(t, rfqapi.PathModular, c.body, c.line)
		if c.reason != "" {
			if e := gatewaytest.DecodeError(t, got.body); got.status != 403 || e.Code != wire.CodeTokenRefused || e.Reason != c.reason {
				t.Errorf("%q: status %d: %s", c.line, got.status, got.body)
			}
			continue
		}
		if r := w.desk.Last().(*rfq.TakeClaim); got.status != 200 || r.Proven != c.proven {
			t.Errorf("%q: status %d: %s: %+v", c.line, got.status, got.body, r)
		}
	}
}

// TestProofIsNoPartOfTheKey: a client may repeat a claim from another address and with a
// signature of a later minute; an old signature gets the stored answer, and nothing else.
func TestProofIsNoPartOfTheKey(t *testing.T) {
	w, clock := newProofRig(t)
	me := newTestWallet(1)
	signed := me.claim(signatureMember(me.sign(clock.Now(), 0, "USDC")))
	send := func(body string) (rfq.IdempotencyKey, int) {
		got := w.post(t, rfqapi.PathModular, body, "Idempotency-Key: k")
		return w.desk.Last().Head().Key, got.status
	}
	first, _ := send(signed)
	if unsigned, _ := send(me.claim("")); unsigned != first || first == (rfq.IdempotencyKey{}) {
		t.Errorf("key %x without a signature, %x with one", unsigned, first)
	}
	clock.Move(5 * time.Minute)
	if _, status := send(signed); status != 400 {
		t.Errorf("an old signature: status %d", status)
	}
	w.desk.Keys = map[rfq.IdempotencyKey]bool{first: true}
	if _, status := send(signed); status != 200 || w.desk.Last().(*rfq.TakeClaim).Proven {
		t.Errorf("an old signature of an answered request: status %d, %+v", status, w.desk.Last())
	}
}

// TestClientAddress: which clients share their limit.
func TestClientAddress(t *testing.T) {
	w, _ := newProofRig(t)
	for address, want := range map[string]rfq.ClientAddress{
		"192.0.2.1": 0x0000ffff_c0000201, "::ffff:192.0.2.1": 0x0000ffff_c0000201,
		"2001:db8::1": 0x20010db8_00000000, "2001:db8::ffff:1": 0x20010db8_00000000, "2001:db8:0:1::1": 0x20010db8_00000001,
		"::1": 1, "::2": 1,
	} {
		if got := w.postFrom(t, address, rfqapi.PathModular, claimBody); got.status != 200 {
			t.Fatalf("%s: status %d: %s", address, got.status, got.body)
		}
		if got := w.desk.Last().(*rfq.TakeClaim).Client; got != want {
			t.Errorf("%s: client %x, want %x", address, got, want)
		}
	}
}

// flipped returns s with one bit of its scalar changed.
func flipped(s []byte) []byte {
	s = append([]byte(nil), s...)
	s[40] ^= 1
	return s
}

// malleable returns s with the group's order added to its scalar: the same signature to a
// verifier that is not strict.
func malleable(s []byte) []byte {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	scalar := make([]byte, 32)
	for i := range scalar {
		scalar[i] = s[63-i]
	}
	sum := new(big.Int).Add(new(big.Int).SetBytes(scalar), order).FillBytes(make([]byte, 32))
	out := append([]byte(nil), s[:32]...)
	for i := range sum {
		out = append(out, sum[31-i])
	}
	return out
}

// newChainWriter returns a writer to the base gateway of d, on the wall clock, and the chain
// that the gateway asks.
func newChainWriter(t *testing.T, d *desk.Desk) (*testWriter, *fakeChain) {
	deps, chain := testDependencies(), &fakeChain{}
	deps.Desk, deps.Settlement = d, chain
	g := newGateway(t, deps, func(o *Options) { o.Now = func() int64 { return time.Now().UnixNano() } })
	w := &testWriter{g: g}
	w.handlers[0] = &handler{g: g, on: wire.OnBase, router: newRouter(g.routes(deps), wire.OnBase, newMetrics())}
	return w, chain
}

// TestQuoteWithoutChain: a quote is firm if a claim could be taken when it was issued; its
// answer is the same for ever.
func TestQuoteWithoutChain(t *testing.T) {
	d := sellingDesk(t)
	body := fmt.Sprintf(`{"order_id":"T%d","tranche_id":"T%[1]d-1","fill_usd":"250","rail":"USDC"}`, setUpDesk(t, d, 100_000))
	w, chain := newChainWriter(t, d)
	for i, down := range []error{nil, errors.New("no node answers")} {
		chain.down = down
		key := fmt.Sprintf("Idempotency-Key: %d", i)
		first := w.post(t, rfqapi.PathRFQ+"quote", body, key)
		if want := fmt.Sprintf(`"firm":%v}`, down == nil); first.status != 200 || !strings.HasSuffix(string(first.body), want) {
			t.Errorf("chain %v: status %d: %s", down, first.status, first.body)
		}
		chain.down = []error{errors.New("no node answers"), nil}[i]
		if again := w.post(t, rfqapi.PathRFQ+"quote", body, key); string(again.body) != string(first.body) || again.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s\nrepeated as the chain changed: %s", first.body, again.body)
		}
	}
}

// TestQuoteWithoutChainBeforeFinalize: a group whose log has the format of release 0.1.0
// cannot record that a quote is indicative, so each answer has the state of the chain at
// that moment.
func TestQuoteWithoutChainBeforeFinalize(t *testing.T) {
	d := sellingDesk(t, func(o *desk.Options) { o.Format1 = true })
	body := fmt.Sprintf(`{"order_id":"T%d","tranche_id":"T%[1]d-1","fill_usd":"250","rail":"USDC"}`, setUpDesk(t, d, 100_000))
	w, chain := newChainWriter(t, d)
	for i, down := range []error{errors.New("no node answers"), nil, errors.New("no node answers")} {
		chain.down = down
		for _, key := range []string{"Idempotency-Key: same", fmt.Sprintf("Idempotency-Key: %d", i)} {
			got := w.post(t, rfqapi.PathRFQ+"quote", body, key)
			if want := fmt.Sprintf(`"firm":%v}`, down == nil); got.status != 200 || !strings.HasSuffix(string(got.body), want) {
				t.Errorf("chain %v, %s: status %d: %s", down, key, got.status, got.body)
			}
		}
	}
}

// newLimitRig returns a gateway over a real desk with one ticket of 100,000 USD in a
// tranche. A client address may reserve 25,000 USD without proof, all together 30 %.
func newLimitRig(t *testing.T) (w *testWriter, d *desk.Desk, claim func(address string, of testWallet, fill, more string) reply) {
	t.Helper()
	d = sellingDesk(t)
	ticket := setUpDesk(t, d, 100_000)
	policy := d.View().Policy
	policy.Rules, policy.LateWindow, policy.WalletClaims = rfq.RulesGuarded, 0, 8
	policy.UnprovenTTL, policy.UnprovenPerClient, policy.UnprovenShareBps = 45e9, 25_000*gatewaytest.Dollar, 3000
	mustDo(t, d, &rfq.SetPolicy{Policy: policy})
	w, _ = newChainWriter(t, d)
	return w, d, func(address string, of testWallet, fill, more string) reply {
		body := fmt.Sprintf(`{"bot_wallet":"%s","order_id":"T%d","tranche_id":"T%d-1","fill_usd":"%s"%s}`, of.address, ticket, ticket, fill, more)
		return w.postFrom(t, address, rfqapi.PathModular, body)
	}
}

// proofOf returns the member that proves a claim of the first tranche of T1 now.
func (w testWallet) proofOf(fill string) string {
	text := fmt.Sprintf("blockdesk-claim-v1|T1|T1-1|%s|USDC|%d", fill, time.Now().Unix()/60)
	return signatureMember(ed25519.Sign(w.key, []byte(text)))
}

// TestNobodyHoldsTheTrancheForNothing: claims without proof, of any number of addresses and
// wallets, leave most of a tranche to those with proof.
func TestNobodyHoldsTheTrancheForNothing(t *testing.T) {
	_, d, claim := newLimitRig(t)
	refused := func(got reply, code, reason string) {
		t.Helper()
		e := gatewaytest.DecodeError(t, got.body)
		if got.status != 409 || e.Code != code || e.Reason != reason || got.header.Get("Retry-After") != "45" {
			t.Errorf("status %d, Retry-After %s: %s", got.status, got.header.Get("Retry-After"), got.body)
		}
	}
	// One address takes what it may, in the names of many wallets.
	if got := claim("192.0.2.1", newTestWallet(0), "25000", ""); got.status != 200 {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	for i := range 20 {
		refused(claim("192.0.2.1", newTestWallet(i), "1000", ""), wire.CodeRefused, "unproven_limit")
	}
	// Many addresses together take the share, and no more.
	taken := 0
	for i := range 100 {
		got := claim(fmt.Sprintf("198.51.100.%d", i), newTestWallet(100+i), "1000", "")
		if got.status == 200 {
			taken++
			continue
		}
		refused(got, wire.CodeCapacityExhausted, "unproven_share")
	}
	if taken != 5 { // 25,000 + 5,000 of 30,000
		t.Errorf("%d claims of 1,000 USD without proof", taken)
	}
	// A buyer with proof finds the rest, from the attacker's address too.
	buyer, bought := newTestWallet(1000), 0
	for _, fill := range []string{"25000", "25000", "1000", "1000", "1000"} {
		got := claim("192.0.2.1", buyer, fill, buyer.proofOf(fill))
		var a claimAnswer
		if err := json.Unmarshal(got.body, &a); err != nil || got.status != 200 {
			t.Errorf("status %d: %s", got.status, got.body)
			continue
		}
		bought++
		if left := time.Until(a.ExpiresAt); left < time.Minute {
			t.Errorf("a claim with proof expires in %s", left)
		}
	}
	if tr := d.View().Tickets[0].Tranches[0]; bought != 5 || tr.Reserved != 83_000*gatewaytest.Dollar {
		t.Errorf("%d claims with proof, %d reserved", bought, tr.Reserved)
	}
}

// TestVictimIsNotLockedOut: claims without proof of their wallet never count against the
// wallet, so its owner is served.
func TestVictimIsNotLockedOut(t *testing.T) {
	_, _, claim := newLimitRig(t)
	victim := newTestWallet(1)
	for i := range 20 {
		if got := claim(fmt.Sprintf("198.51.100.%d", i), victim, "250", ""); got.status != 200 {
			t.Fatalf("claim %d in the victim's name: status %d: %s", i, got.status, got.body)
		}
	}
	for i := range 8 {
		if got := claim("192.0.2.1", victim, "250", victim.proofOf("250")); got.status != 200 {
			t.Errorf("claim %d of the victim: status %d: %s", i, got.status, got.body)
		}
	}
	got := claim("192.0.2.1", victim, "250", victim.proofOf("250"))
	if e := gatewaytest.DecodeError(t, got.body); got.status != 409 || e.Reason != "wallet_claims" {
		t.Errorf("the ninth claim with proof: status %d: %s", got.status, got.body)
	}
	if got := claim("192.0.2.1", victim, "250", victim.proofOf("1000")); got.status != 400 {
		t.Errorf("a wrong proof: status %d: %s", got.status, got.body)
	}
}

// TestWalletThatCannotPay: a wallet that cannot sign, or is one of the desk's, is refused
// before anything is reserved.
func TestWalletThatCannotPay(t *testing.T) {
	w, _ := newProofRig(t)
	v := gatewaytest.FixedView()
	offCurve := testWallet{address: gatewaytest.AddressText(market.Address{0: 2})}
	for name, c := range map[string]struct{ address, reason string }{
		"token program":      {"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "not_a_wallet"},
		"clock sysvar":       {"SysvarC1ock11111111111111111111111111111111", "not_a_wallet"},
		"upgradeable loader": {"BPFLoaderUpgradeab1e11111111111111111111111", "not_a_wallet"},
		"off the curve":      {offCurve.address, "not_a_wallet"},
		"small order":        {gatewaytest.AddressText(market.Address{0: 1}), "not_a_wallet"},
		"treasury":           {gatewaytest.AddressText(v.Policy.PayTo[market.RailUSDC]), "account_of_the_desk"},
		"treasury of SOL":    {gatewaytest.AddressText(v.Policy.PayTo[market.RailSOL]), "account_of_the_desk"},
		"USDC":               {gatewaytest.AddressText(v.Policy.USDCMint), "account_of_the_desk"},
		"base mint":          {gatewaytest.AddressText(v.Pairs[0].BaseMint), "account_of_the_desk"},
		"the desk":           {newTestWallet(-1).address, "account_of_the_desk"},
	} {
		for _, path := range []string{rfqapi.PathModular, rfqapi.PathAtomic} {
			got := w.post(t, path, testWallet{address: c.address}.claim(""))
			if e := gatewaytest.DecodeError(t, got.body); got.status != 400 || e.Code != wire.CodeInvalidField || e.Field != "bot_wallet" || e.Reason != c.reason {
				t.Errorf("%s: status %d: %s", name, got.status, got.body)
			}
		}
	}
	if n := len(w.desk.Requests); n != 0 {
		t.Errorf("%d requests reached the desk", n)
	}
}

// TestFreshTransaction: a modular claim that is reserved gets its transaction again; others do
// not.
func TestFreshTransaction(t *testing.T) {
	chain := &fakeChain{}
	w := newWriter(t, chain)
	claim := func(mode rfq.SettlementMode, state rfq.ClaimState) {
		w.desk.History[78] = &desk.History{Claim: rfq.Claim{ID: 78, Mode: mode, State: state, Deadline: gatewaytest.ViewTime + 1e9}}
	}
	path := rfqapi.PathRFQ + "claims/" + gatewaytest.ClaimText(78) + "/transaction"
	get := func(target string) reply {
		return do(t, w.handlers[0], "GET "+target+" HTTP/1.1\r\nHost: test\r\n\r\n")
	}
	claim(rfq.Modular, rfq.ClaimReserved)
	got := get(path)
	for _, member := range []string{`"state":"reserved"`, `"transaction":"`, `"last_valid_block_height":398214907`, `"preflight_commitment":"finalized"`, `"expires_at":"`} {
		if got.status != 200 || !strings.Contains(string(got.body), member) || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("status %d %v: %s, no %s", got.status, got.header, got.body, member)
		}
	}
	for _, other := range []rfq.Claim{{Mode: rfq.Atomic, State: rfq.ClaimReserved}, {Mode: rfq.Modular, State: rfq.ClaimPaid}, {Mode: rfq.Modular, State: rfq.ClaimExpired}} {
		claim(other.Mode, other.State)
		if got := get(path); got.status != 409 || gatewaytest.DecodeError(t, got.body).Reason != "claim_state" {
			t.Errorf("%+v: status %d: %s", other, got.status, got.body)
		}
	}
	claim(rfq.Modular, rfq.ClaimReserved)
	for err, want := range map[error]int{desk.ErrUnknownBuild: 404, errors.New("no blockhash"): 503} {
		chain.failing = err
		if got := get(path); got.status != want {
			t.Errorf("%v: status %d: %s", err, got.status, got.body)
		}
	}
	chain.failing, chain.down = nil, errors.New("no node answers")
	if got := get(path); got.status != 503 || gatewaytest.DecodeError(t, got.body).Code != wire.CodeChainUnavailable {
		t.Errorf("chain down: status %d: %s", got.status, got.body)
	}
	for target, code := range map[string]string{
		rfqapi.PathRFQ + "claims/C1/transaction": wire.CodeUnknownClaim, rfqapi.PathRFQ + "claims/x/transaction": wire.CodeUnknownClaim,
		rfqapi.PathRFQ + "claims//transaction": wire.CodeUnknownRoute, rfqapi.PathRFQ + "claims/../transaction": wire.CodeUnknownRoute,
		path + "/": wire.CodeUnknownRoute, "/transaction": wire.CodeUnknownRoute, "//transaction": wire.CodeUnknownRoute,
		rfqapi.PathRFQ + "claims/" + strings.Repeat("x", 300) + "/transaction": wire.CodeUnknownRoute,
	} {
		if got := get(target); got.status != 404 || gatewaytest.DecodeError(t, got.body).Code != code {
			t.Errorf("%.80s: status %d: %s", target, got.status, got.body)
		}
	}
}
