package settle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/proof"
	"blockdesk/settle/store"
)

const (
	// pruneEvery is how often old builds are looked for.
	pruneEvery = time.Hour
	// lookBack bounds how far the watch of an account goes back that has no cursor.
	lookBack = 24 * time.Hour
)

// Settle joins the desk and the chain: see the package. New, Start, then Run;
// every other method from any goroutine once Start has returned.
type Settlement struct {
	options Options
	desk    Desk
	node    Node
	store   *store.Store
	signer  cosign.Signer
	tracker *broadcast.Tracker
	log     *slog.Logger

	tokens  solana.AccountCache
	locks   *locks
	work    *work
	refund  *owed
	payees  payees
	tooMany sync.Once
	ground  atomic.Pointer[ground]
	newest  atomic.Pointer[rpc.Blockhash]
	prover  atomic.Pointer[proof.Prover]
	counts  counters
	// since is when the oldest claim was taken, Unix ns, whose payment a watch that
	// has no cursor must not take for history.
	since int64
	// rewind: the watch begins at since even where its cursor is newer.
	rewind bool
	// unpromised are claims that recall looks at: Start's, then Run's.
	unpromised []market.ClaimID
}

// New makes a settlement. It asks nobody but the store. Errors: [ErrOptions], those
// of package store.
func New(o Options, d Desk, node Node, st *store.Store, signer cosign.Signer) (*Settlement, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Settlement{
		options: o, desk: d, node: node, store: st, signer: signer, log: o.Logger,
		locks: newLocks(), work: newWork(o.RetryFirst, o.RetryMax), refund: newOwed(),
	}
	var err error
	if s.tracker, err = broadcast.New(o.Broadcast, node, s.ended); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return s, s.holdDelivered()
}

// now is the clock in nanoseconds of Unix time.
func (s *Settlement) now() int64 { return s.options.Now().UnixNano() }

// claim returns a claim as it is in what is durable, or nil.
func (s *Settlement) claim(id market.ClaimID) (*rfq.Claim, error) {
	h, ok, err := s.desk.Claim(id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("claim %s: %w", claimText(id), err)
	case !ok:
		return nil, nil
	}
	return &h.Claim, nil
}

// Start takes up the claims that the recovered machine remembers:
// rfq.Machine.EachClaim is what claims is. lostSince is when the journal ends that the
// desk was reconciled with, while our store may be newer: payments are looked for from
// then on, read before or not. Zero: the journal has lost nothing. Once, before Run, and
// before the engine runs.
func (s *Settlement) Start(claims func(yield func(c *rfq.Claim, payments []rfq.Payment) bool), lostSince time.Time) {
	now := s.now()
	s.since, s.rewind = now, !lostSince.IsZero()
	claims(func(c *rfq.Claim, payments []rfq.Payment) bool {
		s.tellClaim(c)
		if mayBePaid(c, payments) {
			s.since = max(min(s.since, c.ReservedAt-int64(s.options.Payments.ClockTolerance)), now-int64(lookBack))
		}
		if mayBeUnpromised(c) {
			s.unpromised = append(s.unpromised, c.ID)
		}
		for i := range payments {
			s.refund.tell(&payments[i])
			if payments[i].State == rfq.PaymentRefundDue {
				s.doubt(c)
			}
		}
		return true
	})
	if s.rewind {
		s.since = min(s.since, lostSince.Add(-s.options.Payments.ClockTolerance).UnixNano())
	}
}

// mayBePaid reports whether a payment of a claim may be on the chain that the desk
// has not seen.
func mayBePaid(c *rfq.Claim, payments []rfq.Payment) bool {
	return c.Mode == rfq.Modular && len(payments) == 0 && (c.State == rfq.ClaimReserved || c.State == rfq.ClaimExpired)
}

// errEnded ends Run when the engine's events do.
var errEnded = errors.New("settle: the engine has stopped")

// Run does what claims need until ctx ends or the engine has stopped, and
// returns nil then. What it leaves undone, the next Start takes up. It follows c
// without ever waiting for the chain, the desk or the disk.
func (s *Settlement) Run(ctx context.Context, c Consumer) error {
	group, within := errgroup.WithContext(ctx)
	group.Go(func() error { return s.follow(within, c) })
	group.Go(func() error { return s.surveyor(within) })
	group.Go(func() error { return s.tracker.Run(within) })
	group.Go(func() error { return s.watch(within) })
	group.Go(func() error { return s.recall(within) })
	group.Go(func() error { return s.pruner(within) })
	due := make(chan rfq.Claim)
	group.Go(func() error { return s.dispatch(within, due) })
	for range s.options.Deliverers {
		group.Go(func() error { return s.worker(within, due) })
	}
	if err := group.Wait(); !errors.Is(err, errEnded) && ctx.Err() == nil {
		return err
	}
	return nil
}

// dispatch hands out what is due.
func (s *Settlement) dispatch(ctx context.Context, due chan<- rfq.Claim) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		c, wait, ok := s.work.take(s.now())
		if ok {
			select {
			case due <- c:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-s.work.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

// worker does what is handed out.
func (s *Settlement) worker(ctx context.Context, due <-chan rfq.Claim) error {
	for {
		select {
		case c := <-due:
			err := s.step(ctx, &c)
			if err != nil && !errors.Is(err, errLater) && ctx.Err() == nil {
				s.log.Debug("a claim's work failed", "claim", claimText(c.ID), "state", int(c.State), "error", err)
			}
			s.work.done(c.ID, s.now(), err)
		case <-ctx.Done():
			return nil
		}
	}
}

// step does the next thing that a claim needs.
func (s *Settlement) step(ctx context.Context, c *rfq.Claim) error {
	switch c.State {
	case rfq.ClaimPaid:
		return s.deliver(ctx, c)
	case rfq.ClaimDelivering:
		return s.resume(c, cosign.Deliver, 0)
	case rfq.ClaimCosigned:
		return s.resumeAtomic(c)
	case rfq.ClaimRefundDue:
		return s.audit(ctx, c)
	}
	return nil
}

// pruner drops builds that nobody signed.
func (s *Settlement) pruner(ctx context.Context) error {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		for n := store.MaxPrunedACall; n == store.MaxPrunedACall && ctx.Err() == nil; {
			var err error
			if n, err = s.store.Prune(s.now()); err != nil {
				s.log.Warn("old builds were not dropped", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
