package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// A transaction that the desk has signed and that fails on the chain, since the
// taker's money has gone meanwhile, costs its fee and moves nothing else. The
// claim is released, and what it held is for sale again.
func TestFailsOnChain(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{wallets: 1})
	b := r.wallet(1).handshake()
	book := bookOf(t, r.s)
	for _, payer := range []string{"desk", "taker"} {
		was := r.holdings()
		x := b.build(deal{"T1", "1000", "USDC", payer}, pathBuild)
		r.control("pause", map[string]any{}) // it lands after the money has gone
		r.control("delayLanding", map[string]any{"slots": 1})
		got := b.submit(x)
		if got.status != 200 || got.State != "broadcast" {
			t.Fatalf("submit: %s", got)
		}
		r.freeze(r.tokenAccount(b.address, "USDC"), true)
		r.control("resume", map[string]any{})
		b.awaitClaim(x.ClaimID, "released")
		var state buildShown
		b.want(200, "GET", pathBuilds+x.BuildID, nil).into(t, &state)
		if state.State != "failed" || state.Signature == nil {
			t.Errorf("the build: %+v", state)
		}
		feePayer := map[string]string{"desk": "desk SOL", "taker": "wallet-1 SOL"}[payer]
		r.moved(was, r.holdings(), map[string]int64{feePayer: -11_000})
		if again := b.submit(x); again.status != 200 && again.Code != "REFUS_DVP" {
			t.Errorf("the same submit again: %s", again)
		}
		r.control("heal", map[string]any{})
		r.freeze(r.tokenAccount(b.address, "USDC"), false)
		r.moved(was, r.holdings(), map[string]int64{feePayer: -11_000})
	}
	if now := bookOf(t, r.s); capacities(t, now) != capacities(t, book) {
		t.Errorf("the book is\n%s\nit was\n%s", now, book)
	}
}

// capacities are what the book has for sale.
func capacities(t *testing.T, book string) string {
	t.Helper()
	var tickets []struct {
		Tranches []struct {
			Available string `json:"available_usd"`
			Reserved  string `json:"reserved_usd"`
			Filled    string `json:"filled_usd"`
		} `json:"tranches"`
	}
	if err := json.Unmarshal([]byte(book), &tickets); err != nil {
		t.Fatal(err)
	}
	return jsonOf(tickets)
}

// What is confirmed and not finalized may still be taken back by the chain: it
// pays for nothing and settles nothing.
func TestNothingBeforeFinality(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{wallets: 1})
	b := r.wallet(1).handshake()
	r.control("holdFinality", map[string]any{"hold": true})
	paid := b.build(deal{"T1", "250", "SOL", ""}, pathModular)
	payment := b.sign(paid.raw)
	r.mustBroadcast(payment.raw)
	x := b.build(deal{"T2", "250", "USDC", "desk"}, pathBuild)
	submitted := b.submit(x)
	var s struct {
		Signature string `json:"signature"`
	}
	submitted.into(t, &s)
	await.True(t, "both to land", func() bool { return r.succeeded(payment.signature) && r.succeeded(s.Signature) })
	await.True(t, "proofs to be taken", func() bool {
		return must(b.verify(t.Context(), 0, "T1", payment.signature)).status != 503
	})
	await.Equal(t, "transactions that the desk sees landed", 1, func() float64 {
		return metric(t, r.s, "blockdesk_settlement_landed")
	})
	for range 3 { // each time the desk has heard of more slots above it
		r.control("advance", map[string]any{"slots": 2 * testFinalizeSlots})
		r.awaitBlockhash()
		for surface := range verifyPaths {
			got, err := b.verify(t.Context(), surface, "T1", payment.signature)
			if err != nil {
				t.Fatal(err)
			}
			if got.status != 202 || got.State != "pending" {
				t.Fatalf("a payment that is not final: %s", got)
			}
		}
		if state, a := b.claim(paid.ClaimID); state != "reserved" {
			t.Fatalf("its claim: %s", a)
		}
		if state, a := b.claim(x.ClaimID); state != "cosigned" {
			t.Fatalf("the build's claim: %s", a)
		}
		if again := b.submit(x); again.status != 200 || again.State != "broadcast" {
			t.Fatalf("the build: %s", again)
		}
	}
	r.control("holdFinality", map[string]any{"hold": false})
	if got := b.verified(1, "T1", payment.signature); got.status != 200 {
		t.Errorf("when it is final: %s", got)
	}
	b.awaitClaim(paid.ClaimID, "settled")
	b.awaitClaim(x.ClaimID, "settled")
}

// A claim whose wallet takes no transfer is given up by the operator, who pays it
// back; or it is delivered when the wallet takes it again.
func TestUndeliverable(t *testing.T) {
	t.Parallel()
	r := newRig(t, rigOptions{wallets: 1})
	b := r.wallet(1)
	r.control("fund", map[string]any{"wallet": text(b.address), "symbol": "SLUSD", "amount": "1"})
	account := r.tokenAccount(b.address, "SLUSD")
	r.freeze(account, true)
	was := r.holdings()
	var claims, payments []string
	for range 2 {
		x := b.build(deal{"T1", "250", "USDC", ""}, pathModular)
		p := b.sign(x.raw)
		r.mustBroadcast(p.raw)
		claims, payments = append(claims, x.ClaimID), append(payments, p.signature)
	}
	r.finalize()
	for i, id := range claims {
		if got := b.verified(0, "T1", payments[i]); got.status != 200 {
			t.Fatalf("payment: %s", got)
		}
		b.awaitClaim(id, "paid")
	}
	up, helped := claims[0], claims[1]
	if out := cli(t, r.s, "money", "abandon", up); !strings.Contains(out, "refund_due") {
		t.Errorf("abandon: %s", out)
	}
	owed := r.record(up)
	if owed.State != "refund_due" || len(owed.Payments) != 1 || owed.Payments[0].State != "refund_due" || !slices.Contains(payments, owed.Payments[0].Signature) {
		t.Fatalf("given up: %+v", owed)
	}
	r.freeze(account, false)
	b.awaitClaim(helped, "settled")
	base, price := int64(parseAtoms(owed.Claim.Base)), int64(parseAtoms(owed.Payment.Atoms))
	moved := r.holdings().minus(was)
	if moved["wallet-1 SLUSD"] != base || moved["desk SLUSD"] != -base || moved["treasury USDC"] != 2*price {
		t.Errorf("moved %v, want one delivery of %d and two payments of %d", moved, base, price)
	}
	// Paying back is for a person; the desk notes by what.
	refund := b.pays(ownPayment{memo: "refund", reference: text(testMallory), atoms: 1, rail: 1})
	if out := cli(t, r.s, "money", "refunded", owed.Payments[0].Signature, "--by", refund.signature); !strings.Contains(out, "refunded") {
		t.Errorf("refunded: %s", out)
	}
	if now := r.record(up); now.Payments[0].State != "refunded" {
		t.Errorf("paid back: %+v", now)
	}
	var left struct{ Counts map[string]int }
	if err := json.Unmarshal([]byte(cli(t, r.s, "money", "list", "--json")), &left); err != nil {
		t.Fatal(err)
	}
	if left.Counts["stuck_deliveries"] != 0 || left.Counts["refunds_due"] != 0 {
		t.Errorf("what is left: %v", left.Counts)
	}
}

// A desk that comes back from an old backup has forgotten what it has delivered
// since. The chain has not: nothing is delivered twice.
func TestRestoreDeliversNothingTwice(t *testing.T) {
	runtest.NotRaced(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	r := newRig(t, rigOptions{wallets: 1})
	b := r.wallet(1).handshake()
	settle := func(x *built) string {
		t.Helper()
		p := b.sign(x.raw)
		r.mustBroadcast(p.raw)
		if got := b.verified(0, "T1", p.signature); got.status != 200 {
			t.Fatalf("payment: %s", got)
		}
		b.awaitClaim(x.ClaimID, "settled")
		return p.signature
	}
	modular := func() *built { return b.build(deal{"T1", "250", "USDC", ""}, pathModular) }
	settle(modular())
	later, open := modular(), b.build(deal{"T2", "250", "SOL", "desk"}, pathBuild)
	copied := filepath.Join(t.TempDir(), "copy")
	cli(t, r.s, "backup", copied)

	payment := settle(later)
	b.settles(open, b.submit(open))
	unknown := modular()
	forgotten := settle(unknown)
	was, landed := r.holdings(), len(r.transactionsOf(r.desk))
	if err := r.s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(r.s.DataDir()); err != nil {
		t.Fatal(err)
	}
	cli(t, r.s, "restore", copied)
	if err := r.s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := b.verified(0, "T1", payment); got.status != 200 {
		t.Errorf("the payment, again: %s", got)
	}
	b.awaitClaim(later.ClaimID, "settled")
	if got := b.verified(0, "T1", forgotten); got.status != 404 || got.Code != "UNKNOWN_CLAIM" {
		t.Errorf("a payment of a claim that is forgotten: %s", got)
	}
	if out := cli(t, r.s, "money", "list", "--kind", "strays"); !strings.Contains(out, forgotten) {
		t.Errorf("it is not among the strays:\n%s", out)
	}
	if got := b.submit(open); got.status != 200 && got.Reason != "expired" && got.Reason != "already_settled" {
		t.Errorf("the build, again: %s", got)
	}
	b.awaitClaim(open.ClaimID, "settled", "reserved")
	await.Equal(t, "transactions whose end is not known", 0, func() float64 {
		return metric(t, r.s, "blockdesk_settlement_tracked")
	})
	r.moved(was, r.holdings(), map[string]int64{})
	if now := len(r.transactionsOf(r.desk)); now != landed {
		t.Errorf("%d transactions of the desk's, there were %d", now, landed)
	}
}
