package rfq

import (
	"testing"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// runner applies encoded requests and discards the records.
type runner struct {
	m   *Machine
	seq uint64
	at  int64
	out *event.Sink
	w   codec
	mid Prices
}

func newRunner(t testing.TB) *runner {
	d := openDesk(t, 1_000_000_000)
	return &runner{mid: d.mids, m: d.m, seq: d.seq, at: d.at, out: &event.Sink{Buf: make([]event.Event, 64), Limit: 1 << 62}}
}

func (r *runner) apply(q Request) {
	r.seq++
	r.w.buf = r.w.buf[:0]
	writeRequest(q, &r.w)
	r.m.Apply(r.w.buf, Stamp{Seq: r.seq, At: r.at}, r.mid, r.out)
}

// roundTrip is a quote, its claim, payment, delivery and settlement.
type roundTrip struct {
	quote   RequestQuote
	claim   TakeClaim
	pay     ProvePayment
	deliver BeginDelivery
	settle  SettleClaim
}

func newRoundTrip() *roundTrip {
	return &roundTrip{
		quote: RequestQuote{Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailSOL},
		claim: TakeClaim{Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailSOL, Mode: Modular, Wallet: address("a")},
		pay:   ProvePayment{Rail: market.RailSOL, Amount: 1 << 60},
	}
}

func (p *roundTrip) next(r *runner) {
	id := 1000 + r.seq
	p.quote.RequestID, p.claim.RequestID, p.claim.Quote = id, id+1, market.QuoteID(id)
	p.pay.RequestID, p.pay.Claim = id+2, market.ClaimID(id+1)
	for i := range 8 {
		p.pay.Signature[i] = byte(id >> (8 * i))
	}
	p.deliver.RequestID, p.deliver.Claim = id+3, p.pay.Claim
	p.settle.RequestID, p.settle.Claim = id+4, p.pay.Claim
}

// TestAllocs: once the tables have grown, a claim from quote to settlement does not allocate,
// under either rules.
func TestAllocs(t *testing.T) {
	t.Run("0.1.0", func(t *testing.T) { allocs(t, newRunner(t), newRoundTrip()) })
	t.Run("guarded", func(t *testing.T) {
		r, p := newRunner(t), newRoundTrip()
		policy := guardedPolicy()
		r.apply(&SetPolicy{Header: token(0), Policy: policy})
		r.apply(&SetBalance{Header: token(0), Atoms: 1 << 62})
		p.pay.Amount, p.pay.BlockTime = 1_666_666_667, r.at/second
		p.claim.Client = 7
		allocs(t, r, p)
		if r.m.refundsDue != 0 || len(r.m.clients) != 0 || len(r.m.unproven) != 0 || r.m.pairs[0].OnChain == 1<<62 {
			t.Errorf("%d refunds due, clients %v: not the requests of a guarded sale", r.m.refundsDue, r.m.clients)
		}
	})
}

func allocs(t *testing.T, r *runner, p *roundTrip) {
	const bound = 0
	r.m.limits.claims, r.m.limits.payments = 1000, 1000
	whole := func() {
		p.next(r)
		for _, q := range [...]Request{&p.quote, &p.claim, &p.pay, &p.deliver, &p.settle} {
			r.apply(q)
		}
	}
	for range 5000 {
		whole()
	}
	if n := testing.AllocsPerRun(1000, whole); n > bound {
		t.Errorf("%v allocations, at most %d", n, bound)
	}
	if sold := r.m.tickets.get(1).Tranches[0].Filled; sold != 6001*250_000_000 {
		t.Errorf("%d was sold: the requests do not do what they are for", sold)
	}
}

func BenchmarkQuote(b *testing.B) {
	r, p := newRunner(b), newRoundTrip()
	b.ReportAllocs()
	for b.Loop() {
		p.next(r)
		r.at += second / 1000 // 15,000 quotes live
		r.apply(&p.quote)
	}
}

func BenchmarkClaim(b *testing.B) {
	r, p := newRunner(b), newRoundTrip()
	p.claim.Mode = Atomic
	r.m.policy.WalletClaims = 65535
	cosign, release := CosignClaim{}, ReleaseClaim{}
	b.ReportAllocs()
	for b.Loop() {
		p.next(r)
		p.claim.Quote = 0
		cosign.RequestID, cosign.Claim = p.claim.RequestID+1, market.ClaimID(p.claim.RequestID)
		release.RequestID, release.Claim = p.claim.RequestID+2, cosign.Claim
		r.apply(&p.claim)
		r.apply(&cosign)
		r.apply(&release)
	}
}

func BenchmarkSale(b *testing.B) {
	r, p := newRunner(b), newRoundTrip()
	r.m.tickets.get(1).Tranches[0].Capacity = 1 << 62
	r.m.pairs[0].Inventory = 1 << 63
	b.ReportAllocs()
	for b.Loop() {
		p.next(r)
		for _, q := range [...]Request{&p.quote, &p.claim, &p.pay, &p.deliver, &p.settle} {
			r.apply(q)
		}
	}
}
