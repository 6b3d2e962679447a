package market

import (
	"testing"

	"pgregory.net/rapid"
)

func TestIDTexts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{string(AppendTicketID(nil, 7)), "T7"},
		{string(AppendTicketID([]byte("x"), 1<<64-1)), "xT18446744073709551615"},
		{string(AppendTrancheID(nil, 7, 1)), "T7-1"},
		{string(AppendQuoteID(nil, 1)), "Q0000000000001"},
		{string(AppendClaimID(nil, 1<<64-1)), "Cfzzzzzzzzzzzz"},
		{string(AppendClaimID(nil, 32)), "C0000000000010"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestIDTextsRefused(t *testing.T) {
	for _, text := range []string{
		"", "T", "7", "t7", "T0", "T07", "T+7", "T-7", "T7.", "T7.0", "T 7", "T7 ", "T18446744073709551616", "T99999999999999999999",
		"T340282366920938463463374607431768211456", "Q0000000000001",
	} {
		if id, ok := ParseTicketID([]byte(text)); ok {
			t.Errorf("ticket %q is %d", text, id)
		}
	}
	for _, text := range []string{"", "T7", "T7-", "-1", "T7-0", "T7-01", "T0-1", "T7-65536", "T7-1-1", "T7--1", "7-1"} {
		if ticket, tranche, ok := ParseTrancheID([]byte(text)); ok {
			t.Errorf("tranche %q is %d-%d", text, ticket, tranche)
		}
	}
	for _, text := range []string{
		"", "Q", "Q0000000000000", "Q000000000001", "Q00000000000001", "q0000000000001", "C0000000000001",
		"Q000000000000i", "Q000000000000l", "Q000000000000o", "Q000000000000u", "QG000000000000", "Qg000000000000",
		"Q000000000000Z", "Qzzzzzzzzzzzzz", "Q00000000000 1",
	} {
		if id, ok := ParseQuoteID([]byte(text)); ok {
			t.Errorf("quote %q is %d", text, id)
		}
	}
	if id, ok := ParseClaimID([]byte("Q0000000000001")); ok {
		t.Errorf("a quote is claim %d", id)
	}
}

// TestIDTextsAreCanonical: appended text parses, and no two texts are the same id.
func TestIDTextsAreCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Min(1).Draw(t, "id")
		small := TrancheID(rapid.Uint16Min(1).Draw(t, "tranche"))
		if id, ok := ParseTicketID(AppendTicketID(nil, TicketID(n))); !ok || id != TicketID(n) {
			t.Fatalf("ticket %d %v", id, ok)
		}
		if id, tranche, ok := ParseTrancheID(AppendTrancheID(nil, TicketID(n), small)); !ok || id != TicketID(n) || tranche != small {
			t.Fatalf("tranche %d-%d %v", id, tranche, ok)
		}
		if id, ok := ParseQuoteID(AppendQuoteID(nil, QuoteID(n))); !ok || id != QuoteID(n) {
			t.Fatalf("quote %d %v", id, ok)
		}
		if id, ok := ParseClaimID(AppendClaimID(nil, ClaimID(n))); !ok || id != ClaimID(n) {
			t.Fatalf("claim %d %v", id, ok)
		}
		if id, ok := ParseBuildID(AppendBuildID(nil, ClaimID(n))); !ok || id != ClaimID(n) {
			t.Fatalf("build %d %v", id, ok)
		}
	})
}

func FuzzParseIDs(f *testing.F) {
	for _, text := range []string{"T7", "T7-1", "Q0000000000001", "Cfzzzzzzzzzzzz"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if id, ok := ParseTicketID(text); ok && string(AppendTicketID(nil, id)) != string(text) {
			t.Errorf("ticket %q is %d", text, id)
		}
		if id, tranche, ok := ParseTrancheID(text); ok && string(AppendTrancheID(nil, id, tranche)) != string(text) {
			t.Errorf("tranche %q is %d-%d", text, id, tranche)
		}
		if id, ok := ParseQuoteID(text); ok && string(AppendQuoteID(nil, id)) != string(text) {
			t.Errorf("quote %q is %d", text, id)
		}
		if id, ok := ParseClaimID(text); ok && string(AppendClaimID(nil, id)) != string(text) {
			t.Errorf("claim %q is %d", text, id)
		}
	})
}

func TestIDTextsDoNotAllocate(t *testing.T) {
	dst := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		dst = AppendTrancheID(dst[:0], 7, 1)
		ParseTrancheID(dst)
		dst = AppendClaimID(dst[:0], 77)
		ParseClaimID(dst)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
