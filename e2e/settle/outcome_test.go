package settle

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// A transaction that the desk has signed and that fails on the chain, since the
// taker's money has gone meanwhile, costs its fee and moves nothing else. The
// claim is released, and what it held is for sale again.
func TestFailsOnChain(t *testing.T) {
	t.Parallel()
	r := chaintest.Start(t, chaintest.Options{Wallets: 1})
	b := r.Wallet(1).Handshake()
	book := programtest.Tickets(t, r.Server)
	for _, payer := range []string{"desk", "taker"} {
		was := r.Holdings()
		x := b.Build(chaintest.Deal{Ticket: "T1", Fill: "1000", Rail: "USDC", Payer: payer}, chaintest.PathBuild)
		r.Control("pause", map[string]any{}) // it lands after the money has left the wallet
		r.Control("delayLanding", map[string]any{"slots": 1})
		got := b.Submit(x)
		if got.Status != 200 || got.State != "broadcast" {
			t.Fatalf("submit: %s", got)
		}
		freeze(r, r.TokenAccount(b.Address, "USDC"), true)
		r.Control("resume", map[string]any{})
		b.AwaitClaim(x.ClaimID, "released")
		var state buildShown
		b.Want(200, "GET", chaintest.PathBuilds+x.BuildID, nil).Into(t, &state)
		if state.State != "failed" || state.Signature == nil {
			t.Errorf("the build: %+v", state)
		}
		feePayer := map[string]string{"desk": "desk SOL", "taker": "wallet-1 SOL"}[payer]
		r.Moved(was, r.Holdings(), map[string]int64{feePayer: -11_000})
		if again := b.Submit(x); again.Status != 200 && again.Code != "REFUS_DVP" {
			t.Errorf("the same submit again: %s", again)
		}
		r.Control("heal", map[string]any{})
		freeze(r, r.TokenAccount(b.Address, "USDC"), false)
		r.Moved(was, r.Holdings(), map[string]int64{feePayer: -11_000})
	}
	if now := programtest.Tickets(t, r.Server); capacities(t, now) != capacities(t, book) {
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
	return programtest.JSON(tickets)
}

// A confirmed transaction that is not finalized may still be taken back by the chain: it
// pays for nothing and settles nothing.
func TestNothingBeforeFinality(t *testing.T) {
	t.Parallel()
	r := chaintest.Start(t, chaintest.Options{Wallets: 1})
	b := r.Wallet(1).Handshake()
	r.Control("holdFinality", map[string]any{"hold": true})
	paid := b.Build(chaintest.Deal{Ticket: "T1", Fill: "250", Rail: "SOL"}, chaintest.PathModular)
	payment := b.Sign(paid.Raw)
	r.MustBroadcast(payment.Raw)
	x := b.Build(chaintest.Deal{Ticket: "T2", Fill: "250", Rail: "USDC", Payer: "desk"}, chaintest.PathBuild)
	submitted := b.Submit(x)
	var s struct {
		Signature string `json:"signature"`
	}
	submitted.Into(t, &s)
	await.True(t, "both to land", func() bool { return succeeded(r, payment.Signature) && succeeded(r, s.Signature) })
	await.True(t, "proofs to be taken", func() bool {
		return programtest.Must(verify(t.Context(), b, 0, "T1", payment.Signature)).Status != 503
	})
	await.Equal(t, "transactions that the desk sees landed", 1, func() float64 {
		return programtest.Metric(t, r.Server, "blockdesk_settlement_landed")
	})
	for range 3 { // each time the desk has heard of more slots above it
		r.Control("advance", map[string]any{"slots": 2 * chaintest.FinalizeSlots})
		r.AwaitSlot()
		for surface := range verifyPaths {
			got, err := verify(t.Context(), b, surface, "T1", payment.Signature)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != 202 || got.State != "pending" {
				t.Fatalf("a payment that is not final: %s", got)
			}
		}
		if state, a := b.Claim(paid.ClaimID); state != "reserved" {
			t.Fatalf("its claim: %s", a)
		}
		if state, a := b.Claim(x.ClaimID); state != "cosigned" {
			t.Fatalf("the build's claim: %s", a)
		}
		if again := b.Submit(x); again.Status != 200 || again.State != "broadcast" {
			t.Fatalf("the build: %s", again)
		}
	}
	r.Control("holdFinality", map[string]any{"hold": false})
	if got := verified(b, 1, "T1", payment.Signature); got.Status != 200 {
		t.Errorf("when it is final: %s", got)
	}
	b.AwaitClaim(paid.ClaimID, "settled")
	b.AwaitClaim(x.ClaimID, "settled")
}

// A claim whose wallet takes no transfer is abandoned by the operator, who refunds it;
// or it is delivered when the wallet accepts transfers again.
func TestUndeliverable(t *testing.T) {
	t.Parallel()
	r := chaintest.Start(t, chaintest.Options{Wallets: 1})
	b := r.Wallet(1)
	r.Control("fund", map[string]any{"wallet": chaintest.Text(b.Address), "symbol": "SLUSD", "amount": "1"})
	account := r.TokenAccount(b.Address, "SLUSD")
	freeze(r, account, true)
	was := r.Holdings()
	var claims, payments []string
	for range 2 {
		x := b.Build(chaintest.Deal{Ticket: "T1", Fill: "250", Rail: "USDC"}, chaintest.PathModular)
		p := b.Sign(x.Raw)
		r.MustBroadcast(p.Raw)
		claims, payments = append(claims, x.ClaimID), append(payments, p.Signature)
	}
	r.Finalize()
	for i, id := range claims {
		if got := verified(b, 0, "T1", payments[i]); got.Status != 200 {
			t.Fatalf("payment: %s", got)
		}
		b.AwaitClaim(id, "paid")
	}
	up, helped := claims[0], claims[1]
	if out := programtest.CLI(t, r.Server, "money", "abandon", up); !strings.Contains(out, "refund_due") {
		t.Errorf("abandon: %s", out)
	}
	dueRecord := record(r, up)
	if dueRecord.State != "refund_due" || len(dueRecord.Payments) != 1 || dueRecord.Payments[0].State != "refund_due" || !slices.Contains(payments, dueRecord.Payments[0].Signature) {
		t.Fatalf("refund due: %+v", dueRecord)
	}
	freeze(r, account, false)
	b.AwaitClaim(helped, "settled")
	base, price := int64(chaintest.ParseAtoms(dueRecord.Claim.Base)), int64(chaintest.ParseAtoms(dueRecord.Payment.Atoms))
	moved := r.Holdings().Minus(was)
	if moved["wallet-1 SLUSD"] != base || moved["desk SLUSD"] != -base || moved["treasury USDC"] != 2*price {
		t.Errorf("moved %v, want one delivery of %d and two payments of %d", moved, base, price)
	}
	// Paying back is for a person; the desk notes by what.
	refund := b.Pays(chaintest.OwnPayment{Memo: "refund", Reference: chaintest.Text(testMallory), Atoms: 1, Rail: 1})
	if out := programtest.CLI(t, r.Server, "money", "refunded", dueRecord.Payments[0].Signature, "--by", refund.Signature); !strings.Contains(out, "refunded") {
		t.Errorf("refunded: %s", out)
	}
	if now := record(r, up); now.Payments[0].State != "refunded" {
		t.Errorf("paid back: %+v", now)
	}
	var left struct{ Counts map[string]int }
	if err := json.Unmarshal([]byte(programtest.CLI(t, r.Server, "money", "list", "--json")), &left); err != nil {
		t.Fatal(err)
	}
	if left.Counts["stuck_deliveries"] != 0 || left.Counts["refunds_due"] != 0 {
		t.Errorf("what is left: %v", left.Counts)
	}
}

// A desk that comes back from an old backup has forgotten what it has delivered
// since. The chain has not: nothing is delivered twice.
func TestRestoreDeliversNothingTwice(t *testing.T) {
	runtest.SkipUnderRace(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	r := chaintest.Start(t, chaintest.Options{Wallets: 1})
	b := r.Wallet(1).Handshake()
	settle := func(x *chaintest.Built) string {
		t.Helper()
		p := b.Sign(x.Raw)
		r.MustBroadcast(p.Raw)
		if got := verified(b, 0, "T1", p.Signature); got.Status != 200 {
			t.Fatalf("payment: %s", got)
		}
		b.AwaitClaim(x.ClaimID, "settled")
		return p.Signature
	}
	modular := func() *chaintest.Built {
		return b.Build(chaintest.Deal{Ticket: "T1", Fill: "250", Rail: "USDC"}, chaintest.PathModular)
	}
	settle(modular())
	later, open := modular(), b.Build(chaintest.Deal{Ticket: "T2", Fill: "250", Rail: "SOL", Payer: "desk"}, chaintest.PathBuild)
	copied := filepath.Join(t.TempDir(), "copy")
	programtest.CLI(t, r.Server, "backup", copied)

	payment := settle(later)
	settles(b, open, b.Submit(open))
	unknown := modular()
	forgotten := settle(unknown)
	was, landed := r.Holdings(), len(r.TransactionsOf(r.Desk))
	if err := r.Server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(r.Server.DataDir()); err != nil {
		t.Fatal(err)
	}
	programtest.CLI(t, r.Server, "restore", copied)
	if err := r.Server.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := verified(b, 0, "T1", payment); got.Status != 200 {
		t.Errorf("the payment, again: %s", got)
	}
	b.AwaitClaim(later.ClaimID, "settled")
	if got := verified(b, 0, "T1", forgotten); got.Status != 404 || got.Code != "UNKNOWN_CLAIM" {
		t.Errorf("a payment of a claim that is forgotten: %s", got)
	}
	if out := programtest.CLI(t, r.Server, "money", "list", "--kind", "strays"); !strings.Contains(out, forgotten) {
		t.Errorf("it is not among the unmatched payments:\n%s", out)
	}
	if got := b.Submit(open); got.Status != 200 && got.Reason != "expired" && got.Reason != "already_settled" {
		t.Errorf("the build, again: %s", got)
	}
	b.AwaitClaim(open.ClaimID, "settled", "reserved")
	await.Equal(t, "transactions whose end is not known", 0, func() float64 {
		return programtest.Metric(t, r.Server, "blockdesk_settlement_tracked")
	})
	r.Moved(was, r.Holdings(), map[string]int64{})
	if now := len(r.TransactionsOf(r.Desk)); now != landed {
		t.Errorf("%d transactions of the desk's, there were %d", now, landed)
	}
}
