package settle_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle"
)

// saga is one buyer with a claim of each way, over as many lives of the service
// as it takes.
type saga struct {
	t    testing.TB
	c    *chain
	w    wallet
	rng  *rand.Rand
	disk *vfs.MemFS
	l    *life

	// stubborn buyers ask again after a crash; others leave what they began.
	stubborn bool
	// lossy: once the payment is on the chain, all sends are lost until blockhashes
	// have died for the first time.
	lossy, losing   bool
	before          holdings
	modular, atomic *rfq.Claim
	paid            solana.Signature
	submitted       bool // or refused for good
	steps           []string
	died            []string
}

func (s *saga) holders() map[string]solana.Address {
	return map[string]solana.Address{"wallet": s.w.address, "desk": s.c.desk, "treasury": s.c.treasury}
}

// newSaga sets a desk up on a chain of its own and a disk that can crash, and has
// the buyer take both claims.
func newSaga(t testing.TB, seed uint64) *saga {
	t.Helper()
	c := startChain(t)
	w := c.wallet(0)
	s := &saga{t: t, c: c, w: w, rng: rand.New(rand.NewPCG(seed, seed)), disk: vfs.NewCrashableMem()}
	s.stubborn = s.rng.IntN(2) == 0
	l := begin(t, c, lifeOptions{fs: s.disk, dir: "data"}).open()
	rails := []market.Rail{market.RailUSDC, market.RailSOL}
	s.modular = l.take(rfq.Modular, market.TicketID(1+s.rng.IntN(2)), rails[s.rng.IntN(2)], w)
	s.atomic = l.take(rfq.Atomic, market.TicketID(1+s.rng.IntN(2)), rails[s.rng.IntN(2)], w)
	s.before = c.holdings(s.holders())
	l.end()
	return s
}

// live runs the service with a failpoint until it dies or all has ended, rightly, and
// reports whether it has.
func (s *saga) live(d *failpoint) (ended bool) {
	s.t.Helper()
	s.l = begin(s.t, s.c, lifeOptions{fs: s.disk, dir: "data", failpoint: d})
	if d != nil {
		defer func() {
			s.steps = append(s.steps, d.steps...)
			if d.died != "" {
				s.died = append(s.died, d.died)
			}
		}()
	}
	hasDied := func() bool { return d != nil && d.isDead() }
	const dead, over = "dead", "over"
	how := await.Value(s.t, "the end of the saga", func() string {
		s.act(hasDied)
		switch {
		case hasDied():
			return dead
		case s.over():
			return over
		case s.allLost():
			s.l.expire()
			s.heal()
		case s.l.expireMissing():
			s.heal()
		}
		return fmt.Sprintf("modular is %d, atomic %d; died %v; %+v", s.l.claim(s.modular.ID).State, s.l.claim(s.atomic.ID).State,
			s.died, s.l.settle.Health().Tracker)
	}, func(how string) bool { return how == dead || how == over })
	if how == dead {
		s.crash()
		return false
	}
	s.settledRight()
	s.l.end()
	return true
}

// heal ends the loss of sends: blockhashes have died.
func (s *saga) heal() {
	s.c.control("heal", nil)
	s.losing = false
}

// allLost reports whether both transactions are out and their sends are lost.
func (s *saga) allLost() bool {
	t := s.l.settle.Health().Tracker
	return s.losing && s.submitted && s.l.claim(s.modular.ID).State == rfq.ClaimDelivering && t.Tracked > 0 && t.Sends >= uint64(t.Tracked)
}

// act does what the buyer has left to do. A service that dies under it has not
// answered.
func (s *saga) act(hasDied func() bool) {
	s.t.Helper()
	if s.l.settle.Ready() != nil {
		return
	}
	if s.paid == (solana.Signature{}) {
		p, err := s.l.settle.Package(s.t.Context(), s.modular, 0)
		if s.ok(err, hasDied) {
			raw := s.w.fill(s.t, p.Transaction)
			if _, err := s.c.client.Send(s.t.Context(), raw, sendPlainly); err != nil {
				s.t.Fatalf("the payment: %v", err)
			}
			s.paid = signatureOf(s.t, raw)
			if s.lossy {
				s.c.control("dropSends", map[string]any{"count": 1_000_000})
				s.losing = true
			}
		}
	}
	if s.paid != (solana.Signature{}) && s.stubborn && !hasDied() {
		r := &desk.PaymentProof{Ticket: s.modular.Terms.Ticket, Tranche: 1, Signature: s.paid}
		v, err := s.l.settle.Verify(s.t.Context(), r)
		if s.ok(err, hasDied) && v.Refused != 0 {
			s.t.Fatalf("the payment is refused: %s %s", v.Refused, v.Mismatch)
		}
	}
	if s.submitted || hasDied() {
		return
	}
	p, err := s.l.settle.Package(s.t.Context(), s.atomic, 0)
	if !s.ok(err, hasDied) {
		return
	}
	_, err = s.l.submit(s.t.Context(), s.atomic.ID, s.w.address, desk.Submission{Transaction: s.w.fill(s.t, p.Transaction)})
	refusal := (*desk.Refusal)(nil)
	if errors.As(err, &refusal) {
		if refusal.Reason != desk.RefusalExpired {
			s.t.Fatal(err)
		}
		err = nil
	}
	s.submitted = s.ok(err, hasDied) || !s.stubborn
}

// ok reports whether there was no error; one is forgiven the dying.
func (s *saga) ok(err error, hasDied func() bool) bool {
	s.t.Helper()
	if err != nil && !hasDied() && !errors.Is(err, settle.ErrNotReady) && !errors.Is(err, settle.ErrChain) {
		s.t.Fatalf("%v (died %v)", err, s.died)
	}
	return err == nil
}

// over reports whether nothing is left to do.
func (s *saga) over() bool {
	modular, atomic := s.l.claim(s.modular.ID).State, s.l.claim(s.atomic.ID).State
	return modular == rfq.ClaimSettled && s.submitted && atomic != rfq.ClaimCosigned
}

// crash takes the disk as it was when the process died: part of what was not synced is
// lost. Calls that were running then have ended.
func (s *saga) crash() {
	s.l.stopSettle()
	s.l.settled.Wait()
	percent := []int{0, 50, 100}[s.rng.IntN(3)]
	clone := s.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: s.rng})
	s.l.end()
	s.disk = clone
}

// settledRight holds the balances against what the desk says has been settled.
func (s *saga) settledRight() {
	s.t.Helper()
	want := map[string]int64{}
	for _, c := range []*rfq.Claim{s.modular, s.atomic} {
		now := s.l.claim(c.ID)
		if now.State != rfq.ClaimSettled {
			continue
		}
		base, rail := symbols[c.Terms.Instrument], c.Terms.Rail.String()
		want["wallet "+base] += int64(c.Terms.Base)
		want["desk "+base] -= int64(c.Terms.Base)
		want["treasury "+rail] += int64(c.Terms.Payment)
		want["wallet "+rail] -= int64(c.Terms.Payment)
	}
	got := s.c.holdings(s.holders()).minus(s.before)
	for _, name := range []string{"wallet SOL", "desk SOL"} { // fees and rents are another test's
		delete(got, name)
		delete(want, name)
	}
	reconcile(s.t, got, want)
	if refunds, unmatched := s.l.settle.RefundsDue(solana.Signature{}, 10), s.l.unmatched(); len(refunds)+len(unmatched) != 0 {
		s.t.Errorf("refunds %+v are due, unmatched %+v", refunds, unmatched)
	}
	if s.t.Failed() {
		s.t.Logf("died %v, steps %v", s.died, s.steps)
	}
}

// dryRun returns the steps of an undisturbed saga.
func dryRun(t testing.TB, lossy bool) []string {
	t.Helper()
	s := newSaga(t, 1)
	s.stubborn, s.lossy = true, lossy
	d := newFailpoint(func(string, int) bool { return false })
	if !s.live(d) {
		t.Fatal("it died by itself")
	}
	return s.steps
}

// TestCrashAtEveryStep: the process is killed before and after each thing that it
// does to the world; a second one finishes what is left.
func TestCrashAtEveryStep(t *testing.T) {
	names := map[string]bool{} // of a step; whether only sends that are lost lead to it
	for _, lossy := range []bool{true, false} {
		for _, step := range dryRun(t, lossy) {
			names[step] = lossy
		}
	}
	for i, name := range slices.Sorted(maps.Keys(names)) {
		for _, stubborn := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, stubborn %v", name, stubborn), func(t *testing.T) {
				t.Parallel()
				s := newSaga(t, uint64(i))
				s.stubborn, s.lossy = stubborn, names[name]
				seen := false
				d := newFailpoint(func(step string, _ int) bool {
					first := step == name && !seen
					seen = seen || first
					return first
				})
				if !s.live(d) && !s.live(nil) {
					t.Fatal("no end")
				}
			})
		}
	}
}

// TestCrashes: one seed says when the process is killed, again and again, and how
// much of what was not synced is lost.
func TestCrashes(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s := newSaga(t, 1000+seed)
			s.lossy = s.rng.IntN(2) == 0
			for range 1 + s.rng.IntN(5) {
				at := 1 + s.rng.IntN(30)
				if s.live(newFailpoint(func(_ string, n int) bool { return n == at })) {
					return
				}
			}
			s.live(nil)
		})
	}
}
