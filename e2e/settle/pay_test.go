package settle

import (
	"cmp"
	"context"
	"testing"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// Every surface that takes a proof of payment, by its path; the last one is on
// the api address.
var verifyPaths = []string{
	"/rfq-native/settlement/verify-payment", "/api/v1/rfq/native/settlement/verify-payment", "/api/v1/rfq/settlement/verify-payment",
}

func verifyURL(b *chaintest.Buyer, surface int) string {
	if surface == len(verifyPaths)-1 {
		return b.Rig.Server.Addresses.API + verifyPaths[surface]
	}
	return b.Rig.Server.Addresses.Base + verifyPaths[surface]
}

// verify reports a payment of a claim of the ticket; more are optional members,
// names and values in turn.
func verify(ctx context.Context, b *chaintest.Buyer, surface int, ticket, signature string, more ...string) (*chaintest.Answer, error) {
	body := map[string]string{"order_id": ticket, "tranche_id": ticket + "-1", "l1_signature": signature}
	for i := 0; i < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	return b.Send(ctx, "POST", verifyURL(b, surface), body)
}

// verified asks until the payment is final and the chain is there, and returns the
// last answer.
func verified(b *chaintest.Buyer, surface int, ticket, signature string, more ...string) (got *chaintest.Answer) {
	b.Rig.T.Helper()
	await.True(b.Rig.T, "a verdict on "+signature, func() bool {
		var err error
		if got, err = verify(b.Rig.T.Context(), b, surface, ticket, signature, more...); err != nil {
			b.Rig.T.Fatal(err)
		}
		return got.Status != 202 && got.Status != 503
	})
	return got
}

// post is send to a path of the base address; it is for goroutines.
func post(ctx context.Context, b *chaintest.Buyer, path string, body any) (*chaintest.Answer, error) {
	return b.Send(ctx, "POST", b.Rig.Server.Addresses.Base+path, body, b.Bearer()...)
}

// claimRecord is the desk's record of a claim.
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
func record(r *chaintest.Rig, id string) (c claimRecord) {
	r.T.Helper()
	programtest.GetJSON(r.T, r.Server.Addresses.Base+chaintest.PathClaims+id, &c)
	return c
}

// A payment serves one claim, whichever of many claims it is reported for, on
// whichever surface, however many report it at once.
func TestPaymentRace(t *testing.T) {
	t.Parallel()
	r := chaintest.Start(t, chaintest.Options{Wallets: 2})
	const claims = 6
	payer := r.Wallet(1)
	var taken []*chaintest.Built
	var payments []string // of each claim, the one that it asks for
	for i := range claims {
		rail := []string{"USDC", "SOL"}[i%2]
		x := payer.Build(chaintest.Deal{Ticket: "T1", Fill: "250", Rail: rail}, chaintest.PathModular)
		p := payer.Sign(x.Raw)
		r.MustBroadcast(p.Raw)
		taken, payments = append(taken, x), append(payments, p.Signature)
	}
	// Two more over the first claim, one that names two claims, one that names
	// none that there is.
	first, second := taken[0], taken[2]
	surplus := chaintest.OwnPayment{Memo: first.ClaimID, Reference: first.Payment.Reference, Rail: market.RailUSDC, Atoms: chaintest.ParseAtoms(first.Payment.AmountAtoms)}
	both := chaintest.OwnPayment{Memo: first.ClaimID, Reference: second.Payment.Reference, Rail: market.RailUSDC, Atoms: surplus.Atoms}
	unknown := chaintest.OwnPayment{Memo: "C0000000000001", Reference: solana.Base58(testMallory), Rail: market.RailUSDC, Atoms: surplus.Atoms}
	for _, p := range []chaintest.OwnPayment{surplus, surplus, both, unknown} {
		own := payer.Pays(p)
		r.MustBroadcast(own.Raw)
		payments = append(payments, own.Signature)
		r.Control("advance", map[string]any{"slots": 1}) // the next blockhash: the same payment twice is one transaction
	}
	r.Finalize()

	verdicts := reportAll(r, taken, payments)
	served := map[string][]int{} // by claim, the payments that serve it
	for i, signature := range payments {
		if claim := servedBy(r, i, signature, taken, verdicts[signature]); claim != "" {
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
		payer.AwaitClaim(x.ClaimID, "settled")
		for _, p := range record(r, x.ClaimID).Payments {
			if other := used[p.Signature]; other != "" {
				t.Errorf("payment %s is of %s and of %s", p.Signature, other, x.ClaimID)
			}
			used[p.Signature] = x.ClaimID
		}
	}
	c := record(r, first.ClaimID)
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

// verdict is one answer to a proof, and which claim it was for; "" = none named.
type verdict struct {
	claim string
	*chaintest.Answer
}

// reportAll reports every payment for every claim and for none, on all surfaces at
// once, until each answer is final.
func reportAll(r *chaintest.Rig, taken []*chaintest.Built, payments []string) map[string][]verdict {
	r.T.Helper()
	reporter := r.Wallet(2)
	type result struct {
		signature string
		verdict
		err error
	}
	results := make(chan result)
	ctx, cancel := context.WithTimeout(r.T.Context(), runtest.HangTimeout)
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
					got, err := settledVerdict(ctx, reporter, surface, signature, more)
					v := verdict{Answer: got}
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
			r.T.Fatal(got.err)
		}
		out[got.signature] = append(out[got.signature], got.verdict)
	}
	return out
}

// settledVerdict asks until the answer is neither pending nor for later.
func settledVerdict(ctx context.Context, b *chaintest.Buyer, surface int, signature string, more []string) (got *chaintest.Answer, err error) {
	return got, cmp.Or(await.Poll(ctx, "a verdict on "+signature, func() bool {
		got, err = verify(ctx, b, surface, "T1", signature, more...)
		return err != nil || got.Status != 202 && got.Status != 503
	}), err)
}

// servedBy returns the one claim that the verdicts on a payment say it serves, or
// "": then each of them is a refusal.
func servedBy(r *chaintest.Rig, i int, signature string, taken []*chaintest.Built, verdicts []verdict) (claim string) {
	r.T.Helper()
	if len(verdicts) != (len(taken)+1)*len(verifyPaths) {
		r.T.Fatalf("%d verdicts", len(verdicts))
	}
	accepted := 0
	for _, v := range verdicts {
		var body struct {
			Claim    string `json:"claim_id"`
			Verified bool   `json:"verified"`
		}
		v.Into(r.T, &body)
		switch {
		case v.Status == 200 && body.Verified:
			if claim != "" && claim != body.Claim || v.claim != "" && v.claim != body.Claim {
				r.T.Errorf("payment %d serves %s and, reported for %q, %s", i, claim, v.claim, body.Claim)
			}
			claim = body.Claim
			accepted++
		case v.Status != 409 && v.Status != 422 && v.Status != 404:
			r.T.Errorf("payment %d reported for %q: %s", i, v.claim, v)
		}
	}
	// Those that name its claim and those that name none, on each surface.
	if want := 2 * len(verifyPaths); claim != "" && accepted != want {
		r.T.Errorf("payment %d (%s) is accepted %d times, want %d", i, signature, accepted, want)
	}
	return claim
}
