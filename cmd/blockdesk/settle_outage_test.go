package main

import (
	"context"
	"testing"

	"blockdesk/internal/await"
)

// While no node answers, what needs the chain says so and changes nothing; what
// was under way goes on when the chain is back, over a crash of the service too.
func TestChainOutage(t *testing.T) {
	t.Parallel()
	// Nobody looks for the payment by itself: it is to be unknown when the chain goes.
	r := newRig(t, rigOptions{wallets: 1, watchMS: 600_000})
	b := r.wallet(1).handshake()
	was := r.holdings()
	// Before: one claim that is paid and not reported, one build that is not
	// submitted, one that is on its way.
	paid := b.build(deal{"T1", "250", "USDC", ""}, pathModular)
	payment := b.sign(paid.raw)
	r.mustBroadcast(payment.raw)
	open := b.build(deal{"T2", "250", "USDC", "desk"}, pathBuild)
	onWay := b.build(deal{"T2", "1000", "SOL", "taker"}, pathAtomic)
	r.finalize()
	r.control("dropSends", map[string]any{"count": 1_000_000}) // those that the desk sends again, too
	if got := b.submit(onWay); got.status != 200 || got.State != "broadcast" {
		t.Fatalf("submit of what the node will lose: %s", got)
	}
	r.control("setNode", map[string]any{"mode": "503"})
	check := func() {
		t.Helper()
		r.unavailable(b, payment.signature, open)
		if state, a := b.claim(onWay.ClaimID); state != "cosigned" {
			t.Errorf("what is on its way: %s", a)
		}
	}
	check()
	// The same from a service that has never seen the chain. It says that it is
	// not ready, and serves all the same.
	if err := r.s.Kill(); err != nil {
		t.Fatal(err)
	}
	verifyJournal(t, r.s)
	restarted := make(chan error, 1)
	revived := *r.s // it comes up at the same addresses
	go func() { restarted <- revived.Restart(context.Background()) }()
	await.True(t, "the service to serve", func() bool {
		_, err := b.send(t.Context(), "GET", r.s.Addresses.Base+pathClaims+onWay.ClaimID, nil)
		return err == nil
	})
	check()
	r.control("heal", map[string]any{})
	err := <-restarted
	*r.s = revived
	if err != nil {
		t.Fatal(err)
	}
	if got := b.verified(0, "T1", payment.signature); got.status != 200 {
		t.Errorf("the payment, when the chain is back: %s", got)
	}
	b.awaitClaim(paid.ClaimID, "settled")
	b.awaitClaim(onWay.ClaimID, "settled", "released")
	// Its blockhash may have ended meanwhile: then it says so, and a new one goes.
	if got := b.submit(open); got.status != 200 && got.Reason != "expired" {
		t.Errorf("the build, when the chain is back: %s", got)
	}
	again := b.build(deal{"T2", "250", "USDC", "desk"}, pathBuild)
	if got := b.submit(again); got.status != 200 {
		t.Errorf("a new build: %s", got)
	}
	b.awaitClaim(again.ClaimID, "settled")
	moved := r.holdings().minus(was)
	if moved["desk SLUSD"] != -int64(parseAtoms(r.record(paid.ClaimID).Claim.Base)) || moved["desk SLUSD"] != -moved["wallet-1 SLUSD"] {
		t.Errorf("moved: %v", moved)
	}
	r.conserved(was, r.holdings())
}

// unavailable asks for all that needs the chain.
func (r *rig) unavailable(b *buyer, payment string, x *built) {
	r.t.Helper()
	d := deal{"T1", "250", "USDC", ""}
	// Until a probe has found out, claims are taken: their packages are right.
	await.True(r.t, "claims to be refused", func() bool {
		return b.call("POST", pathModular, b.order(d, pathModular)).status == 503
	})
	book := bookOf(r.t, r.s)
	defer func() {
		if now := bookOf(r.t, r.s); now != book {
			r.t.Fatalf("the book is\n%s\nit was\n%s", now, book)
		}
	}()
	for name, ask := range map[string]func() *answer{
		"modular claim": func() *answer { return b.call("POST", pathModular, b.order(d, pathModular)) },
		"atomic claim":  func() *answer { return b.call("POST", pathAtomic, b.order(d, pathAtomic)) },
		"build":         func() *answer { return b.call("POST", pathBuild, b.order(d, pathBuild), b.bearer()...) },
		"submit":        func() *answer { return b.submit(x) },
		"proof":         func() *answer { return must(b.verify(r.t.Context(), 0, "T1", payment)) },
	} {
		got := ask()
		if got.status != 503 || got.Code != "CHAIN_UNAVAILABLE" || got.header.Get("Retry-After") == "" {
			r.t.Errorf("%s without a chain: %s, Retry-After %q", name, got, got.header.Get("Retry-After"))
		}
	}
	for _, path := range []string{"/api/v1/rfq/market-tickets", "/api/v1/dvp/status", pathClaims + x.ClaimID, pathBuilds + x.BuildID} {
		b.want(200, "GET", path, nil)
	}
	b.want(200, "POST", "/api/v1/rfq/quote", map[string]string{"order_id": "T1", "tranche_id": "T1-1", "fill_usd": "250", "rail": "USDC"})
}

// The desk sees money that nobody reports from the first claim on: there is none
// that it takes before it watches, whenever it is killed.
func TestFirstPaymentIsSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{wallets: 1})
	b := r.wallet(1)
	var x *built
	await.True(t, "a claim", func() bool {
		d := deal{"T1", "250", "USDC", ""}
		got := b.call("POST", pathModular, b.order(d, pathModular))
		if got.status != 200 {
			return false
		}
		x = &built{}
		got.into(t, x)
		return true
	})
	paid := b.sign(x.open(t).raw)
	r.mustBroadcast(paid.raw)
	if err := r.s.Kill(); err != nil {
		t.Fatal(err)
	}
	r.finalize()
	if err := r.s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.awaitClaim(x.ClaimID, "settled")
}
