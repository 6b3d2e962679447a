package cosign

import (
	"context"
	"testing"
)

// BenchmarkSettle: what a submit costs beside the desk's journal.
func BenchmarkSettle(b *testing.B) {
	atomic := atomicOf(b, testClaim)
	u := built(b, &atomic)
	s := Submission{Signature: signatureOf(takerKey, u.Message())}
	key := desk()
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := CheckAtomic(u.Message(), deskAddress); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("countersign", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Countersign(testClaim, u.Bytes(), takerAddress, s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("countersign_and_sign", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c, err := Countersign(testClaim, u.Bytes(), takerAddress, s)
			if err != nil {
				b.Fatal(err)
			}
			a, err := c.Authorize(&agreeing{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := a.Sign(context.Background(), key); err != nil {
				b.Fatal(err)
			}
		}
	})
}
