package settle

import (
	"slices"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/proof"
)

// TestPayees: the policy's wallet is always watched; of the others those that claims
// named last, as many as fit, in an order that does not depend on which was last.
func TestPayees(t *testing.T) {
	var p payees
	const rail = market.RailSOL
	policy := solana.Address{99}
	if list, full := p.of(rail, solana.Address{}); len(list) != 0 || full {
		t.Fatalf("%v, %v", list, full)
	}
	for i := range byte(proof.MaxWallets + 3) {
		newest := solana.Address{i + 1}
		p.add(rail, newest)
		p.add(rail, newest)
		list, full := p.of(rail, policy)
		if len(list) != min(int(i)+2, proof.MaxWallets) || !slices.Contains(list, policy) || !slices.Contains(list, newest) || full != (i+1 >= proof.MaxWallets) {
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
	p.add(rail, policy)
	if list, _ := p.of(rail, policy); slices.Contains(list, solana.Address{5}) || !slices.Contains(list, solana.Address{4}) {
		t.Errorf("the one that was named last is dropped first: %v", list)
	}
	p.add(0, policy)
	p.add(rail, solana.Address{})
	if list, _ := p.of(market.RailUSDC, solana.Address{}); len(list) != 0 {
		t.Errorf("the other rail has %v", list)
	}
}

// TestDust: the prover gets the dust limit of each rail.
func TestDust(t *testing.T) {
	s := payments{env: &env{}}
	s.options.Dust = [market.RailCount]market.Amount{market.RailUSDC: 10_000, market.RailSOL: 100_000}
	o := s.proofOptions(&rails{})
	for rail, want := range s.options.Dust {
		if got := o.Rails[rail].Dust; got != want {
			t.Errorf("rail %d: %d, not %d", rail, got, want)
		}
	}
}
