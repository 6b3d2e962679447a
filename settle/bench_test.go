package settle_test

import (
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// BenchmarkPackage is a claim's first package: built and on disk.
func BenchmarkPackage(b *testing.B) {
	c := startChain(b)
	l := begin(b, c, lifeOptions{}).open()
	w := c.wallet(0)
	for b.Loop() {
		b.StopTimer()
		claim := l.take(rfq.Atomic, 1, market.RailUSDC, w)
		b.StartTimer()
		l.pack(claim, 0)
	}
}

// BenchmarkSubmit is a submission from the taker's signature to the desk's, both
// on disk, with the simulation on a local chain.
func BenchmarkSubmit(b *testing.B) {
	c := startChain(b)
	l := begin(b, c, lifeOptions{}).open()
	w := c.wallet(0)
	for b.Loop() {
		b.StopTimer()
		claim := l.take(rfq.Atomic, 1, market.RailUSDC, w)
		p := l.pack(claim, 0)
		sub := submission(w.fill(b, p.Transaction))
		b.StartTimer()
		if got, err := l.submit(b.Context(), claim.ID, w.address, sub); err != nil || got.Stage != desk.BuildBroadcast {
			b.Fatal(got, err)
		}
	}
}

// BenchmarkReady is what every claim's request asks first.
func BenchmarkReady(b *testing.B) {
	c := startChain(b)
	l := begin(b, c, lifeOptions{}).open()
	for b.Loop() {
		if err := l.settle.Ready(); err != nil {
			b.Fatal(err)
		}
	}
}
