package cosign

import (
	"context"
	"testing"
	"time"

	"blockdesk/internal/solana/eddsa"
	"blockdesk/internal/solana/tx"
)

// TestEveryForm: all that package build makes can be signed, and what comes out is
// a whole transaction whose every signature verifies.
func TestEveryForm(t *testing.T) {
	for name, b := range variants(t) {
		t.Run(name, func(t *testing.T) {
			u := built(t, b)
			x := signedBy(t, authorized(t, b), desk())
			got, err := tx.Decode(x.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			for i, key := range got.Message.Signers() {
				if !eddsa.Verify(key, got.Signed, got.Signatures[i]) {
					t.Errorf("slot %d does not verify", i)
				}
			}
			if x.Hash() != u.Hash() || x.Claim() != testClaim || x.Signature() != got.Signatures[0] {
				t.Errorf("hash %s, claim %d, signature %s", x.Hash(), x.Claim(), x.Signature())
			}
		})
	}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
