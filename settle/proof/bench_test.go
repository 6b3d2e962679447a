package proof

import (
	"log/slog"
	"sync/atomic"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

// BenchmarkVerifyKnown is the answer from the desk's record, many at once.
func BenchmarkVerifyKnown(b *testing.B) {
	x := newTable(b, nil)
	c := x.take()
	sig := x.node.pays(b, c)
	x.wants(request(sig, c), verified, "")
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		r := request(sig, c)
		for pb.Next() {
			if v, err := x.Verify(b.Context(), r); err != nil || v.Payment == nil {
				b.Error(v, err)
				return
			}
		}
	})
}

// forgetful is a desk that books everything and remembers nothing, so that each
// Verify goes to the chain.
type forgetful struct{ claim *rfq.Claim }

func (d *forgetful) Do(request rfq.Request) (*desk.Result, error) {
	r := request.(*rfq.ProvePayment)
	return &desk.Result{Claim: d.claim, Payment: &rfq.Payment{
		Signature: r.Signature, Claim: r.Claim, Rail: r.Rail, State: rfq.PaymentApplied, Amount: r.Amount, Payer: r.Payer, Slot: r.Slot,
	}}, nil
}

func (d *forgetful) Claim(market.ClaimID) (*desk.History, bool, error) {
	return &desk.History{Claim: *d.claim}, true, nil
}

func (d *forgetful) PaymentClaim([64]byte) (market.ClaimID, bool, error) { return 0, false, nil }

// BenchmarkExamine is what we do with an answer: facts, signature, claim, decision.
func BenchmarkExamine(b *testing.B) {
	x := newTable(b, nil)
	c := x.take()
	sig := x.node.pays(b, c)
	x.desk2(&forgetful{c})
	r := request(sig, c)
	b.ReportAllocs()
	for b.Loop() {
		if v, err := x.Verify(b.Context(), r); err != nil || v.Refused != event.ReasonNone {
			b.Fatal(v, err)
		}
	}
}

// BenchmarkVerifyChain verifies payments that the desk does not know, 16 in flight
// on two cores, against the local chain, which runs on the same cores.
func BenchmarkVerifyChain(b *testing.B) {
	const payments, inFlight = 64, 16
	c := startChain(b)
	o := c.options(c.checked)
	o.Logger = slog.New(slog.DiscardHandler)
	s := c.stage(nil, o)
	claim := s.take(market.RailUSDC)
	var sigs []solana.Signature
	for i := range payments {
		sigs = append(sigs, s.does(s.bound(claim, due(claim)+uint64(i))...))
	}
	p, err := New(o, c.Client, &forgetful{claim}, newMemStore())
	c.must(err)
	var next atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(inFlight / 2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := request(sigs[next.Add(1)%payments], claim)
			if v, err := p.Verify(b.Context(), r); err != nil || v.Refused != event.ReasonNone || v.Pending != 0 {
				b.Errorf("%+v, %v", v, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "payments/s")
}
