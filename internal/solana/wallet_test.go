package solana_test

import (
	"testing"

	"blockdesk/internal/solana"
)

// TestIsReserved: programs and sysvars by their texts, and no other address.
func TestIsReserved(t *testing.T) {
	for text, want := range map[string]bool{
		"11111111111111111111111111111111": true, "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA": true,
		"TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb": true, "SysvarC1ock11111111111111111111111111111111": true,
		"SysvarRent111111111111111111111111111111111": true, "BPFLoaderUpgradeab1e11111111111111111111111": true,
		"Vote111111111111111111111111111111111111111": true, "1nc1nerator11111111111111111111111111111111": true,
		"So11111111111111111111111111111111111111112": true, "9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFio": false,
		"EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v": false,
	} {
		a, err := solana.ParseAddress(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := solana.IsReserved(a); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
