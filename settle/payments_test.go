package settle

import (
	"slices"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/proof"
)

// TestPayees: today's wallet is always watched; of the others, as many as fit, and
// the same ones each time.
func TestPayees(t *testing.T) {
	var p payees
	const rail = market.RailSOL
	today := solana.Address{99}
	if list, full := p.of(rail, solana.Address{}); len(list) != 0 || full {
		t.Fatalf("%v, %v", list, full)
	}
	for i := range byte(proof.MaxWallets + 3) {
		p.add(rail, solana.Address{i + 1})
		p.add(rail, solana.Address{i + 1})
		list, full := p.of(rail, today)
		if len(list) != min(int(i)+2, proof.MaxWallets) || list[0] != today || full != (i+1 >= proof.MaxWallets) {
			t.Fatalf("after %d: %d wallets, full %v", i+1, len(list), full)
		}
		if again, _ := p.of(rail, today); !slices.Equal(again, list) {
			t.Fatal("other wallets the second time")
		}
	}
	if list, _ := p.of(rail, solana.Address{3}); len(list) != proof.MaxWallets || list[0] != (solana.Address{1}) {
		t.Errorf("today's is among them: %v", list)
	}
	p.add(0, today)
	p.add(rail, solana.Address{})
	if list, _ := p.of(market.RailUSDC, solana.Address{}); len(list) != 0 {
		t.Errorf("the other rail has %v", list)
	}
}

// TestDustTold: the proof of payments is told what is dust on each rail.
func TestDustTold(t *testing.T) {
	var s Settle
	s.options.Payments.Dust = [market.RailCount]market.Amount{market.RailUSDC: 10_000, market.RailSOL: 100_000}
	o := s.proofOptions(&rails{})
	for rail, want := range s.options.Payments.Dust {
		if got := o.Rails[rail].Dust; got != want {
			t.Errorf("rail %d: %d, not %d", rail, got, want)
		}
	}
}
