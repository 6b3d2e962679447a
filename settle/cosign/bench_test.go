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
	key := deskSigner()
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

// BenchmarkSocket: what the signer's own process adds: a connection, and for a new
// message a sync of the disk.
func BenchmarkSocket(b *testing.B) {
	s := start(b, options(b))
	signer := dialled(b, s.path)
	delivery := deliveryOf(b, testClaim)
	again := authorized(b, &delivery)
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			signedBy(b, again, signer)
		}
	})
	claim := testClaim
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			claim++
			d := deliveryOf(b, claim)
			a, err := AuthorizeDelivery(&agreeing{}, claim, built(b, &d))
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			signedBy(b, a, signer)
		}
	})
}
