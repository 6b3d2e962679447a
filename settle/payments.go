package settle

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/settle/proof"
)

// maxLookBack bounds how far back the watch of an account without a cursor begins.
const maxLookBack = 24 * time.Hour

// payments proves payments, and watches for those that no client reports.
type payments struct {
	*env
	options  Payments
	treasury []solana.Address
	chain    *chainState

	payees       payees
	unseenClaims unseen
	tooMany      sync.Once
	prover       atomic.Pointer[proof.Prover]
	// since is where the watch of an account without a cursor begins, Unix ns. With
	// rewind every watch begins there, even if its cursor is newer. unseen: the chain
	// may have payments of recovered claims that the desk has not seen.
	since          int64
	rewind, unseen bool
}

// watchFrom sets the beginning of the watch: now, or before lostSince if that is
// not zero, less the tolerance for the chain's clock. Call it before Run.
func (p *payments) watchFrom(now int64, lostSince time.Time) {
	tolerance := int64(p.options.ClockTolerance)
	p.since, p.rewind, p.unseen = now-tolerance, !lostSince.IsZero(), false
	if p.rewind {
		p.since = min(p.since, lostSince.UnixNano()-tolerance)
	}
}

// recovered moves the beginning of the watch to before a recovered claim, if the
// chain may have a payment for it that the desk has not seen. Call it before Run.
func (p *payments) recovered(c *rfq.Claim, list []rfq.Payment, now int64) {
	if c.Mode == rfq.Modular && len(list) == 0 && (c.State == rfq.ClaimReserved || c.State == rfq.ClaimExpired) {
		p.since = min(p.since, max(c.ReservedAt-int64(p.options.ClockTolerance), now-int64(maxLookBack)))
		p.unseen = true
	}
}

// Verify examines the payment with a signature, records it in the desk, and returns
// the verdict for the request, with the claim's delivery: see [proof.Prover.Verify].
// Errors: [ErrNotReady], and those of proof.Prover.Verify.
func (p *payments) Verify(ctx context.Context, r *desk.PaymentProof) (desk.Verdict, error) {
	prover := p.prover.Load()
	if prover == nil {
		return desk.Verdict{}, errNoProver
	}
	v, err := prover.Verify(ctx, r)
	if err != nil || v.Claim == nil {
		return v, err
	}
	list, err := p.store.Transactions(v.Claim.ID)
	if n := len(list); n > 0 {
		v.Delivery = list[n-1].Signature()
	}
	return v, err
}

// seen returns what the prover has seen; the zero value before there is one.
func (p *payments) seen() (s proof.Stats) {
	if prover := p.prover.Load(); prover != nil {
		s = prover.Stats()
	}
	return s
}

// watch watches for payments until ctx ends. The watched accounts follow the desk's
// policy: when that changes, a new prover begins at the stored cursors.
//
// The desk takes no claim before the first prover is set (Ready), and that one has placed
// its cursors: so no claim of this life is paid before them, whatever the clocks say.
// Claims of an earlier life that wait for their payment need the clock instead.
func (p *payments) watch(ctx context.Context) error {
	var failed error
	for {
		rails, ok := p.rails()
		if !ok {
			if !sleep(ctx, p.chain.checkEvery()) {
				return nil
			}
			continue
		}
		prover, err := proof.New(p.proofOptions(&rails), p.node, p.desk, p.store)
		if err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		if p.prover.Load() == nil && !p.unseen && !p.rewind {
			err := prover.Place(ctx)
			if err != nil && ctx.Err() == nil && (failed == nil || failed.Error() != err.Error()) {
				p.log.Warn("watch of the treasury cannot begin", "error", err)
			}
			if failed = err; err != nil {
				if !sleep(ctx, p.chain.checkEvery()) {
					return nil
				}
				continue
			}
		}
		p.prover.Store(prover)
		if err := p.watchUntilChanged(ctx, prover, &rails); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// watchUntilChanged runs a prover until the desk's rails differ from its own.
func (p *payments) watchUntilChanged(ctx context.Context, prover *proof.Prover, with *rails) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return prover.Run(ctx) })
	group.Go(func() error {
		defer stop()
		for sleep(ctx, p.chain.checkEvery()) {
			if now, ok := p.rails(); ok && !now.equal(with) {
				return nil
			}
		}
		return nil
	})
	return group.Wait()
}

// rails are the payment rails that the desk serves, and the desk's own address.
type rails struct {
	by   [market.RailCount]proof.Rail
	desk solana.Address
	// known are the mints that the desk takes or sells.
	known []solana.Address
}

func (r *rails) equal(o *rails) bool {
	for i := range r.by {
		if r.by[i].Mint != o.by[i].Mint || !slices.Equal(r.by[i].Treasury, o.by[i].Treasury) {
			return false
		}
	}
	return r.desk == o.desk && slices.Equal(r.known, o.known)
}

// rails returns the rails that the desk serves now; ok is false if they are unknown
// yet, or there are none. The desk's address must be known, because a transaction
// that the desk has signed itself is no payment.
func (p *payments) rails() (r rails, ok bool) {
	v, accounts := p.desk.View(), p.chain.accounts.Load()
	r.desk = p.signer.Address()
	if v == nil || accounts == nil || r.desk == (solana.Address{}) {
		return r, false
	}
	r.known = mintsOf(v)
	for rail := range r.by {
		list, full := p.payees.of(market.Rail(rail), v.Policy.PayTo[rail])
		if full {
			p.tooMany.Do(func() {
				p.log.Warn("more treasury wallets than can be watched", "rail", market.Rail(rail).String(), "limit", proof.MaxWallets)
			})
		}
		if len(list) == 0 {
			continue
		}
		if market.Rail(rail) == market.RailUSDC {
			mint, err := accounts.mint(v.Policy.USDCMint)
			if err != nil {
				continue // the other rail works without it
			}
			r.by[rail].Mint = mint
		}
		r.by[rail].Treasury, ok = list, true
	}
	return r, ok
}

func (p *payments) proofOptions(r *rails) proof.Options {
	o := proof.Options{
		Rails: r.by, Known: r.known, Wallets: []solana.Address{r.desk}, ClockTolerance: p.options.ClockTolerance,
		Retry: p.options.Retry, WatchEvery: p.options.WatchEvery, Now: p.clock, Logger: p.log,
		Since: time.Unix(0, p.since), Rewind: p.rewind,
	}
	o.Unseen = func() bool {
		v := p.desk.View()
		return v != nil && v.Policy.Rules == rfq.RulesGuarded && p.unseenClaims.any()
	}
	for rail, atoms := range p.options.Dust {
		o.Rails[rail].Dust = atoms
	}
	for _, w := range p.treasury {
		if w != r.desk {
			o.Wallets = append(o.Wallets, w)
		}
	}
	return o
}

// payees are the payees in the terms of remembered claims, by rail, in the order in
// which they were added last. Safe for concurrent use.
type payees struct {
	mu   sync.Mutex
	list [market.RailCount][]solana.Address
}

// add appends a wallet, or moves it to the end. Beyond proof.MaxWallets it removes
// the wallet that was added longest ago, because its claims are the oldest.
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

// of returns the wallets to watch, at most proof.MaxWallets: the policy's, if it is
// not zero, and those added last. They are sorted by their bytes, so that the order
// of claims does not restart the watch. full reports that there is no room for
// another wallet: payments to others may not be noticed.
func (p *payees) of(rail market.Rail, policy solana.Address) (list []solana.Address, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list = slices.Clone(p.list[rail])
	full = len(list) == proof.MaxWallets
	if policy != (solana.Address{}) && !slices.Contains(list, policy) {
		list = append(list, policy)
		list = list[max(0, len(list)-proof.MaxWallets):]
	}
	slices.SortFunc(list, func(a, b solana.Address) int { return bytes.Compare(a[:], b[:]) })
	return list, full
}

// unseen are the unproven claims that wait for their payment: it is worth reporting before
// it is final. The engine's claims bound it. Safe for concurrent use.
type unseen struct {
	mu  sync.Mutex
	ids map[market.ClaimID]bool
}

func (u *unseen) set(c *rfq.Claim) {
	if c.State != rfq.ClaimReserved || c.Mode != rfq.Modular || c.Proven {
		u.remove(c.ID)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids == nil {
		u.ids = map[market.ClaimID]bool{}
	}
	u.ids[c.ID] = true
}

func (u *unseen) remove(id market.ClaimID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.ids, id)
}

func (u *unseen) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.ids) > 0
}

// sleep waits for d, and reports false if ctx ended first.
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
