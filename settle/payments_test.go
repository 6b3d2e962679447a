package settle

import (
	"slices"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/proof"
)

// TestPayees: today's wallet is always watched; of the others those that claims
// named last, as many as fit, and the same list whichever claim was last.
func TestPayees(t *testing.T) {
	var p payees
	const rail = market.RailSOL
	today := solana.Address{99}
	if list, full := p.of(rail, solana.Address{}); len(list) != 0 || full {
		t.Fatalf("%v, %v", list, full)
	}
	for i := range byte(proof.MaxWallets + 3) {
		newest := solana.Address{i + 1}
		p.add(rail, newest)
		p.add(rail, newest)
		list, full := p.of(rail, today)
		if len(list) != min(int(i)+2, proof.MaxWallets) || !slices.Contains(list, today) || !slices.Contains(list, newest) || full != (i+1 >= proof.MaxWallets) {
			t.Fatalf("after %d: %v, full %v", i+1, list, full)
		}
	}
	list, _ := p.of(rail, solana.Address{})
	if len(list) != proof.MaxWallets || list[0] != (solana.Address{4}) {
		t.Errorf("the oldest have not given way: %v", list)
	}
	p.add(rail, solana.Address{4}) // an old one is named again
	if again, _ := p.of(rail, solana.Address{6}); !slices.Equal(again, list) {
		t.Errorf("%v after %v: only the order differs", again, list)
	}
	p.add(rail, today)
	if list, _ := p.of(rail, today); slices.Contains(list, solana.Address{5}) || !slices.Contains(list, solana.Address{4}) {
		t.Errorf("the one that was named last is dropped first: %v", list)
	}
	p.add(0, today)
	p.add(rail, solana.Address{})
	if list, _ := p.of(market.RailUSDC, solana.Address{}); len(list) != 0 {
		t.Errorf("the other rail has %v", list)
	}
}

// TestDustTold: the proof of payments is told what is dust on each rail.
func TestDustTold(t *testing.T) {
	var s Settlement
	s.options.Payments.Dust = [market.RailCount]market.Amount{market.RailUSDC: 10_000, market.RailSOL: 100_000}
	o := s.proofOptions(&rails{})
	for rail, want := range s.options.Payments.Dust {
		if got := o.Rails[rail].Dust; got != want {
			t.Errorf("rail %d: %d, not %d", rail, got, want)
		}
	}
}
