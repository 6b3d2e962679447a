package settle

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/desk"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/proof"
)

// payees are the wallets that claims name to be paid, by rail, those told last at
// the end: those of claims that are remembered, whose money may still come, and of
// the policy. Safe for concurrent use.
type payees struct {
	mu   sync.Mutex
	list [market.RailCount][]solana.Address
}

// add enters a wallet, or moves it to the end. Of more than can be watched the one
// that was told longest ago gives way: its claims are the oldest.
func (p *payees) add(rail market.Rail, wallet solana.Address) {
	if !rail.Valid() || wallet == (solana.Address{}) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list[rail]
	if n := len(list); n > 0 && list[n-1] == wallet {
		return
	}
	list = append(slices.DeleteFunc(list, func(a solana.Address) bool { return a == wallet }), wallet)
	p.list[rail] = list[max(0, len(list)-proof.MaxWallets):]
}

// of returns the wallets to be watched, proof.MaxWallets at most: today's, if it
// is one, and those told last. They are in the order of their bytes: which claim
// came last is no reason to watch anew. full reports whether there is room for no more:
// money for others is perhaps not noticed, and Verify says so.
func (p *payees) of(rail market.Rail, today solana.Address) (list []solana.Address, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list = slices.Clone(p.list[rail])
	full = len(list) == proof.MaxWallets
	if today != (solana.Address{}) && !slices.Contains(list, today) {
		list = append(list, today)
		list = list[max(0, len(list)-proof.MaxWallets):]
	}
	slices.SortFunc(list, func(a, b solana.Address) int { return bytes.Compare(a[:], b[:]) })
	return list, full
}

// Verify examines the payment with a signature, has the desk book it, and returns
// its verdict for the request, with the claim's delivery: proof.Prover.Verify.
// Errors: [ErrNotReady] too.
func (s *Settlement) Verify(ctx context.Context, r *desk.PaymentProof) (desk.Verdict, error) {
	p := s.prover.Load()
	if p == nil {
		return desk.Verdict{}, fmt.Errorf("%w: nobody looks at payments yet", ErrNotReady)
	}
	v, err := p.Verify(ctx, r)
	if err != nil || v.Claim == nil {
		return v, err
	}
	v.Delivery, _, err = s.Delivery(v.Claim.ID)
	return v, err
}

// watch looks for payments that nobody reports. What is watched follows the
// desk's policy: where that changes, the watch begins anew, from its cursors.
func (s *Settlement) watch(ctx context.Context) error {
	for {
		rails, ok := s.rails()
		if !ok {
			if !sleep(ctx, s.surveyEvery()) {
				return nil
			}
			continue
		}
		p, err := proof.New(s.proofOptions(&rails), s.node, s.desk, s.store)
		if err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		s.prover.Store(p)
		if err := s.watchUntilOther(ctx, p, &rails); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// watchUntilOther runs a prover until its rails are no longer the desk's.
func (s *Settlement) watchUntilOther(ctx context.Context, p *proof.Prover, with *rails) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.Run(ctx) })
	group.Go(func() error {
		defer stop()
		for sleep(ctx, s.surveyEvery()) {
			if now, ok := s.rails(); ok && !now.equal(with) {
				return nil
			}
		}
		return nil
	})
	return group.Wait()
}

// rails are how the desk is paid, and who it is.
type rails struct {
	by   [market.RailCount]proof.Rail
	desk solana.Address
}

func (r *rails) equal(o *rails) bool {
	for i := range r.by {
		if r.by[i].Mint != o.by[i].Mint || !slices.Equal(r.by[i].Treasury, o.by[i].Treasury) {
			return false
		}
	}
	return r.desk == o.desk
}

// rails returns how the desk is paid now; ok is false where that is not known
// yet, or it is not paid at all. The desk must be known: what it has signed
// itself is no payment.
func (s *Settlement) rails() (r rails, ok bool) {
	v, g := s.desk.View(), s.ground.Load()
	r.desk = s.signer.Address()
	if v == nil || g == nil || r.desk == (solana.Address{}) {
		return r, false
	}
	for rail := range r.by {
		list, full := s.payees.of(market.Rail(rail), v.Policy.PayTo[rail])
		if full {
			s.tooMany.Do(func() {
				s.log.Warn("as many wallets to be paid as can be watched: those of some old claims may be left out", "rail", market.Rail(rail).String())
			})
		}
		if len(list) == 0 {
			continue
		}
		if market.Rail(rail) == market.RailUSDC {
			mint, err := g.mint(v.Policy.USDCMint)
			if err != nil {
				continue // the other rail goes on without
			}
			r.by[rail].Mint = mint
		}
		r.by[rail].Treasury, ok = list, true
	}
	return r, ok
}

func (s *Settlement) proofOptions(r *rails) proof.Options {
	o := proof.Options{
		Rails: r.by, Wallets: []solana.Address{r.desk}, ClockTolerance: s.options.Payments.ClockTolerance,
		Retry: s.options.Payments.Retry, WatchEvery: s.options.Payments.WatchEvery, Now: s.options.Now, Logger: s.log,
		Since: time.Unix(0, s.since), Rewind: s.rewind,
	}
	for rail, atoms := range s.options.Payments.Dust {
		o.Rails[rail].Dust = atoms
	}
	for _, w := range s.options.Treasury {
		if w != r.desk {
			o.Wallets = append(o.Wallets, w)
		}
	}
	return o
}

// sleep waits, and reports false where the context has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
