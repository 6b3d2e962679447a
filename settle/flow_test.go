package settle_test

import (
	"bytes"
	"fmt"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// Sizes of the token accounts that a delivery creates.
const (
	tokenAccount     = 165
	token2022Account = 170 // with its immutable owner
)

var accountSizes = map[string]int{"SLUSD": tokenAccount, "92C": token2022Account}

// TestAtomic: both rails, both token programs, both fee payers. The moved amounts are
// what the claim says, to the atom.
func TestAtomic(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{}).open()
	i := 0
	for _, rail := range []market.Rail{market.RailUSDC, market.RailSOL} {
		for ticket, symbol := range symbols {
			for _, payer := range []desk.FeePayer{desk.DeskPays, desk.TakerPays} {
				w := c.wallet(i)
				i++
				t.Run(fmt.Sprintf("%s %s payer %d", rail, symbol, payer), func(t *testing.T) {
					atomicFlow(t, l, w, market.TicketID(ticket), rail, payer)
				})
			}
		}
	}
}

func atomicFlow(t *testing.T, l *life, w wallet, ticket market.TicketID, rail market.Rail, payer desk.FeePayer) {
	c := l.chain
	holders := map[string]solana.Address{"wallet": w.address, "desk": c.desk, "treasury": c.treasury}
	before := c.holdings(holders)
	claim := l.take(rfq.Atomic, ticket, rail, w)
	p := l.pack(claim, payer)
	if again := l.pack(claim, desk.TakerPays); !bytes.Equal(again.Transaction, p.Transaction) {
		t.Fatal("another package the second time")
	}
	b, ok, err := l.settle.Build(t.Context(), claim.ID)
	if err != nil || !ok || b.Stage != desk.BuildOpen || b.Hash != p.Hash {
		t.Fatalf("the build is %v, %v, %v", b.Stage, ok, err)
	}
	sub := desk.Submission{Transaction: w.fill(t, p.Transaction)}
	got, err := l.submit(t.Context(), claim.ID, w.address, sub)
	if err != nil || got.Stage != desk.BuildBroadcast {
		t.Fatalf("%v, %v", got.Stage, err)
	}
	settled := l.becomes(claim.ID, rfq.ClaimSettled)
	if settled.Proof != p.Hash {
		t.Errorf("settled by %x, not by message %s", settled.Proof, p.Hash)
	}
	again, err := l.submit(t.Context(), claim.ID, w.address, desk.Submission{Signature: w.sign(messageOf(t, p.Transaction))})
	if err != nil || again.Stage != desk.BuildFinalized || again.Slot == 0 || !bytes.Equal(again.Transaction, got.Transaction) || again.Signature != got.Signature {
		t.Errorf("submitted again: %v in slot %d, %v", again.Stage, again.Slot, err)
	}
	symbol, terms := symbols[market.InstrumentID(ticket)], &claim.Terms
	want := map[string]int64{
		"wallet " + symbol: int64(terms.Base), "desk " + symbol: -int64(terms.Base),
		"wallet " + rail.String(): -int64(terms.Payment), "treasury " + rail.String(): int64(terms.Payment),
	}
	want[map[desk.FeePayer]string{desk.DeskPays: "desk SOL", desk.TakerPays: "wallet SOL"}[payer]] -= c.fee(got.Signature)
	want["wallet SOL"] -= c.rent(accountSizes[symbol])
	reconcile(t, c.holdings(holders).minus(before), want)
}

// reconcile holds what has changed against what should have.
func reconcile(t testing.TB, got, want map[string]int64) {
	t.Helper()
	for key, d := range got {
		if want[key] != d {
			t.Errorf("%s changed by %d, want %d", key, d, want[key])
		}
	}
	for key, d := range want {
		if got[key] != d {
			t.Errorf("%s changed by %d, want %d", key, got[key], d)
		}
	}
}

// TestModular: paid by the wallet alone, proved, delivered; also without a client's
// report.
func TestModular(t *testing.T) {
	c := startChain(t)
	l := begin(t, c, lifeOptions{}).open()
	i := 0
	for _, rail := range []market.Rail{market.RailUSDC, market.RailSOL} {
		for ticket, symbol := range symbols {
			w, reports := c.wallet(i), i%2 == 0
			i++
			t.Run(fmt.Sprintf("%s %s reported %v", rail, symbol, reports), func(t *testing.T) {
				modularFlow(t, l, w, market.TicketID(ticket), rail, reports)
			})
		}
	}
}

func modularFlow(t *testing.T, l *life, w wallet, ticket market.TicketID, rail market.Rail, reports bool) {
	c := l.chain
	holders := map[string]solana.Address{"wallet": w.address, "desk": c.desk, "treasury": c.treasury}
	before := c.holdings(holders)
	claim := l.take(rfq.Modular, ticket, rail, w)
	p := l.pack(claim, 0)
	if len(p.Signers) != 1 || p.Signers[0] != w.address {
		t.Fatalf("signers %v", p.Signers)
	}
	paid := c.send(w.fill(t, p.Transaction))
	if reports {
		l.verified(claim, paid)
	}
	settled := l.becomes(claim.ID, rfq.ClaimSettled)
	delivery, ok, err := l.settle.Delivery(claim.ID)
	if err != nil || !ok {
		t.Fatalf("no delivery: %v", err)
	}
	stored, ok, err := l.store.Transaction(claim.ID, settled.Proof)
	if err != nil || !ok || stored.Signature() != delivery {
		t.Fatalf("settled by another transaction than the delivery: %v, %v", ok, err)
	}
	symbol, terms := symbols[market.InstrumentID(ticket)], &claim.Terms
	want := map[string]int64{
		"wallet " + symbol: int64(terms.Base), "desk " + symbol: -int64(terms.Base),
		"wallet " + rail.String(): -int64(terms.Payment), "treasury " + rail.String(): int64(terms.Payment),
	}
	want["wallet SOL"] -= c.fee(paid)
	want["desk SOL"] -= c.fee(delivery) + c.rent(accountSizes[symbol])
	reconcile(t, c.holdings(holders).minus(before), want)
}

// verified has a payment proved.
func (l *life) verified(claim *rfq.Claim, paid solana.Signature) {
	l.t.Helper()
	await.True(l.t, "a verdict", func() bool {
		v, err := l.settle.Verify(l.t.Context(), &desk.PaymentProof{Ticket: claim.Terms.Ticket, Tranche: 1, Signature: paid})
		if err != nil {
			l.t.Fatal(err)
		}
		if v.Refused != 0 {
			l.t.Fatalf("refused: %s %s", v.Refused, v.Mismatch)
		}
		return v.Pending == 0
	})
}
