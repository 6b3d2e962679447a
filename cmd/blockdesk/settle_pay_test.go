package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

// Every surface that takes a proof of payment, by its path; the last one is on
// the api address.
var verifyPaths = []string{
	"/rfq-native/settlement/verify-payment", "/api/v1/rfq/native/settlement/verify-payment", "/api/v1/rfq/settlement/verify-payment",
}

func (b *buyer) verifyURL(surface int) string {
	if surface == len(verifyPaths)-1 {
		return b.r.s.Addresses.API + verifyPaths[surface]
	}
	return b.r.s.Addresses.Base + verifyPaths[surface]
}

// verify reports a payment of a claim of the ticket; more are optional members,
// names and values in turn.
func (b *buyer) verify(ctx context.Context, surface int, ticket, signature string, more ...string) (*answer, error) {
	body := map[string]string{"order_id": ticket, "tranche_id": ticket + "-1", "l1_signature": signature}
	for i := 0; i < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	return b.send(ctx, "POST", b.verifyURL(surface), body)
}

// verified asks until the payment is final and the chain is there, and returns the
// last answer.
func (b *buyer) verified(surface int, ticket, signature string, more ...string) (got *answer) {
	b.r.t.Helper()
	await.True(b.r.t, "a verdict on "+signature, func() bool {
		var err error
		if got, err = b.verify(b.r.t.Context(), surface, ticket, signature, more...); err != nil {
			b.r.t.Fatal(err)
		}
		return got.status != 202 && got.status != 503
	})
	return got
}

// post is send to a path of the base address; it is for goroutines.
func (b *buyer) post(ctx context.Context, path string, body any) (*answer, error) {
	return b.send(ctx, "POST", b.r.s.Addresses.Base+path, body, b.bearer()...)
}

// signedPayment is a transaction that its payer alone has signed, and its
// signature in base58.
type signedPayment struct {
	raw       []byte
	signature string
}

// sign signs an unsigned transaction that we alone sign.
func (b *buyer) sign(raw []byte) signedPayment {
	signed := slices.Clone(raw)
	copy(signed[1:], ed25519.Sign(b.key, raw[1+64:]))
	return signedPayment{signed, base58.Encode(signed[1:65])}
}

// broadcast sends a transaction to the chain, past the desk. It tries again while
// the chain has a fault that passes.
func (r *rig) broadcast(ctx context.Context, raw []byte) error {
	text := base64.StdEncoding.EncodeToString(raw)
	var last error
	return cmp.Or(await.Poll(ctx, "the chain to take a transaction", func() bool {
		last = r.chain.Call(ctx, "sendTransaction", []any{text, map[string]any{"encoding": "base64", "preflightCommitment": "confirmed"}}, nil)
		return last == nil || ctx.Err() != nil || !passing(last)
	}), last)
}

// passing reports whether an error of the chain is a fault that ends.
func passing(err error) bool {
	var refused *sandbox.Error
	if !errors.As(err, &refused) {
		return true
	}
	const preflight, invalid = -32002, -32602
	return refused.Code != preflight && refused.Code != invalid
}

// mustBroadcast is broadcast that has to be taken.
func (r *rig) mustBroadcast(raw []byte) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), runtest.Patience)
	defer cancel()
	if err := r.broadcast(ctx, raw); err != nil {
		r.t.Fatal(err)
	}
}

// tryBlockhash asks for the chain's newest.
func (r *rig) tryBlockhash(ctx context.Context) (solana.Hash, error) {
	var got struct {
		Value struct {
			Blockhash string `json:"blockhash"`
		} `json:"value"`
	}
	if err := r.chain.Call(ctx, "getLatestBlockhash", []any{map[string]any{"commitment": "confirmed"}}, &got); err != nil {
		return solana.Hash{}, err
	}
	return solana.ParseHash(got.Value.Blockhash)
}

// ownPayment is a payment that a wallet makes by itself, with a memo and a
// reference of its choice.
type ownPayment struct {
	memo      string
	reference string
	rail      market.Rail
	atoms     uint64
}

// pays makes one and signs it.
func (b *buyer) pays(p ownPayment) signedPayment {
	b.r.t.Helper()
	hash, err := b.r.tryBlockhash(b.r.t.Context())
	if err != nil {
		b.r.t.Fatal(err)
	}
	return b.payment(p, hash)
}

// payment is pays with a blockhash.
func (b *buyer) payment(p ownPayment, hash solana.Hash) signedPayment {
	leg := build.Leg{Rail: p.rail, Amount: market.Amount(p.atoms), To: b.r.address(b.r.setup.Treasury.Address)}
	if p.rail == market.RailUSDC {
		m := token.Mint{
			Address: b.r.address(b.r.setup.Mints["USDC"].Address), Program: b.r.address(b.r.setup.Mints["USDC"].Program), Decimals: 6,
		}
		leg.Mint = must(m.Check(0))
	}
	payment := build.Payment{
		Common: build.Common{
			Blockhash: hash, Budget: build.Budget{Units: 200_000, MicroLamports: 1_000}, Memo: p.memo,
			Reference: b.r.address(p.reference),
		},
		Wallet: b.address, Leg: leg,
	}
	return b.sign(must(payment.Build(&solana.Accounts{})).Bytes())
}

// claimRecord is what the desk tells of a claim.
type claimRecord struct {
	ClaimID string `json:"claim_id"`
	State   string `json:"state"`
	Claim   struct {
		Way    string `json:"way"`
		Wallet string `json:"bot_wallet"`
		Rail   string `json:"rail"`
		Base   string `json:"base_amount_atoms"`
		Order  string `json:"order_id"`
	} `json:"claim"`
	Payment struct {
		Atoms string `json:"amount_atoms"`
	} `json:"payment"`
	Payments []paymentRecord `json:"payments"`
}

type paymentRecord struct {
	Signature string `json:"l1_signature"`
	State     string `json:"state"`
	Reason    string `json:"reason"`
	Rail      string `json:"rail"`
	Atoms     string `json:"amount_atoms"`
	Payer     string `json:"payer"`
}

// record reads a claim.
func (r *rig) record(id string) (c claimRecord) {
	r.t.Helper()
	getJSON(r.t, r.s.Addresses.Base+pathClaims+id, &c)
	return c
}

// A payment serves one claim, whichever of many claims it is reported for, on
// whichever surface, however many report it at once.
func TestPaymentRace(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{wallets: 2})
	const claims = 6
	payer := r.wallet(1)
	var taken []*built
	var payments []string // of each claim, the one that it asks for
	for i := range claims {
		rail := []string{"USDC", "SOL"}[i%2]
		x := payer.build(deal{"T1", "250", rail, ""}, pathModular)
		p := payer.sign(x.raw)
		r.mustBroadcast(p.raw)
		taken, payments = append(taken, x), append(payments, p.signature)
	}
	// Two more over the first claim, one that names two claims, one that names
	// none that there is.
	first, second := taken[0], taken[2]
	surplus := ownPayment{memo: first.ClaimID, reference: first.Payment.Reference, rail: market.RailUSDC, atoms: parseAtoms(first.Payment.AmountAtoms)}
	both := ownPayment{memo: first.ClaimID, reference: second.Payment.Reference, rail: market.RailUSDC, atoms: surplus.atoms}
	unknown := ownPayment{memo: "C0000000000001", reference: solana.Text(testMallory), rail: market.RailUSDC, atoms: surplus.atoms}
	for _, p := range []ownPayment{surplus, surplus, both, unknown} {
		own := payer.pays(p)
		r.mustBroadcast(own.raw)
		payments = append(payments, own.signature)
		r.control("advance", map[string]any{"slots": 1}) // the next blockhash: the same payment twice is one transaction
	}
	r.finalize()

	verdicts := r.reportAll(taken, payments)
	served := map[string][]int{} // by claim, the payments that serve it
	for i, signature := range payments {
		if claim := r.servedBy(i, signature, taken, verdicts[signature]); claim != "" {
			served[claim] = append(served[claim], i)
		}
	}
	for i, x := range taken {
		if got := served[x.ClaimID]; len(got) != 1 || i > 0 && got[0] != i || i == 0 && got[0] != 0 && (got[0] < claims || got[0] > claims+1) {
			t.Errorf("claim %d is served by %v", i, got)
		}
	}
	if len(served) != claims {
		t.Errorf("served: %v", served)
	}
	used := map[string]string{}
	for _, x := range taken {
		payer.awaitClaim(x.ClaimID, "settled")
		for _, p := range r.record(x.ClaimID).Payments {
			if other := used[p.Signature]; other != "" {
				t.Errorf("payment %s is of %s and of %s", p.Signature, other, x.ClaimID)
			}
			used[p.Signature] = x.ClaimID
		}
	}
	c := r.record(first.ClaimID)
	due := 0
	for _, p := range c.Payments {
		if p.State == "refund_due" {
			due++
		}
	}
	if len(c.Payments) != 3 || due != 2 {
		t.Errorf("the first claim's payments: %+v, want one applied and two due for refund", c.Payments)
	}
}

func parseAtoms(text string) (n uint64) {
	if _, err := fmt.Sscan(text, &n); err != nil {
		panic(err)
	}
	return n
}

// verdict is one answer to a proof, and which claim it was for; "" = none named.
type verdict struct {
	claim string
	*answer
}

// reportAll reports every payment for every claim and for none, on all surfaces at
// once, until each answer is final.
func (r *rig) reportAll(taken []*built, payments []string) map[string][]verdict {
	r.t.Helper()
	reporter := r.wallet(2)
	type result struct {
		signature string
		verdict
		err error
	}
	results := make(chan result)
	ctx, cancel := context.WithTimeout(r.t.Context(), runtest.Patience)
	defer cancel()
	sent := 0
	for _, signature := range payments {
		for i := range len(taken) + 1 {
			var more []string
			if i < len(taken) {
				more = []string{"claim_id", taken[i].ClaimID}
			}
			for surface := range verifyPaths {
				sent++
				go func() {
					got, err := reporter.settledVerdict(ctx, surface, signature, more)
					v := verdict{answer: got}
					if more != nil {
						v.claim = more[1]
					}
					results <- result{signature, v, err}
				}()
			}
		}
	}
	out := map[string][]verdict{}
	for range sent {
		got := <-results
		if got.err != nil {
			r.t.Fatal(got.err)
		}
		out[got.signature] = append(out[got.signature], got.verdict)
	}
	return out
}

// settledVerdict asks until the answer is neither pending nor for later.
func (b *buyer) settledVerdict(ctx context.Context, surface int, signature string, more []string) (got *answer, err error) {
	return got, cmp.Or(await.Poll(ctx, "a verdict on "+signature, func() bool {
		got, err = b.verify(ctx, surface, "T1", signature, more...)
		return err != nil || got.status != 202 && got.status != 503
	}), err)
}

// servedBy returns the one claim that the verdicts on a payment say it serves, or
// "": then each of them is a refusal.
func (r *rig) servedBy(i int, signature string, taken []*built, verdicts []verdict) (claim string) {
	r.t.Helper()
	if len(verdicts) != (len(taken)+1)*len(verifyPaths) {
		r.t.Fatalf("%d verdicts", len(verdicts))
	}
	accepted := 0
	for _, v := range verdicts {
		var body struct {
			Claim    string `json:"claim_id"`
			Verified bool   `json:"verified"`
		}
		v.into(r.t, &body)
		switch {
		case v.status == 200 && body.Verified:
			if claim != "" && claim != body.Claim || v.claim != "" && v.claim != body.Claim {
				r.t.Errorf("payment %d serves %s and, reported for %q, %s", i, claim, v.claim, body.Claim)
			}
			claim = body.Claim
			accepted++
		case v.status != 409 && v.status != 422 && v.status != 404:
			r.t.Errorf("payment %d reported for %q: %s", i, v.claim, v)
		}
	}
	// Those that name its claim and those that name none, on each surface.
	if want := 2 * len(verifyPaths); claim != "" && accepted != want {
		r.t.Errorf("payment %d (%s) is accepted %d times, want %d", i, signature, accepted, want)
	}
	return claim
}

// jsonOf is a value's JSON, for messages.
func jsonOf(v any) string { return string(must(json.Marshal(v))) }
