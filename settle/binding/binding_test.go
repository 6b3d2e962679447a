package binding

import (
	"testing"

	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// TestGolden freezes what is on chain.
func TestGolden(t *testing.T) {
	const id = market.ClaimID(0x0123456789abcdef)
	if got, want := Memo(id), "C028t5cy4tqkff"; got != want {
		t.Errorf("memo %s, want %s", got, want)
	}
	if got, want := solana.Base58(Reference(id)), "5SbtwbUjjoTrJZ1M7sDFbGgWvgToVSSvGwLFZkEf9UG"; got != want {
		t.Errorf("reference %s, want %s", got, want)
	}
}

// TestRoundTrip: a claim is found by what it wrote, and by nothing that differs
// in one bit.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := market.ClaimID(rapid.Uint64Min(1).Draw(t, "id"))
		if got, ok := ClaimOfMemo(Memo(id)); !ok || got != id {
			t.Fatalf("memo of %d names %d, %v", id, got, ok)
		}
		ref := Reference(id)
		if got, ok := ClaimOfReference(ref); !ok || got != id {
			t.Fatalf("reference of %d names %d, %v", id, got, ok)
		}
		bit := rapid.IntRange(0, 255).Draw(t, "bit")
		ref[bit/8] ^= 1 << (bit % 8)
		if got, ok := ClaimOfReference(ref); ok {
			t.Fatalf("reference of %d with bit %d turned names %d", id, bit, got)
		}
	})
}

func TestNoClaim(t *testing.T) {
	for _, memo := range []string{"", "C", "C0000000000000", " " + Memo(1), Memo(1) + " ", Memo(1) + Memo(2), "c" + Memo(1)[1:]} {
		if id, ok := ClaimOfMemo(memo); ok {
			t.Errorf("memo %q names %d", memo, id)
		}
	}
	for _, a := range []solana.Address{{}, Reference(0), solana.TokenProgram} {
		if id, ok := ClaimOfReference(a); ok {
			t.Errorf("account %s names %d", solana.Base58(a), id)
		}
	}
}
