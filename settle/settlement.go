package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
)

// pruneEvery is the pause between two prunings of old builds.
const pruneEvery = time.Hour

// Settlement settles the desk's claims on the chain: see the package documentation.
// Call New, Start, then Run. Every other method may be called from any goroutine
// after Start.
type Settlement struct {
	*env
	*packages    // Package, Build, Delivery
	*submissions // Submit
	*payments    // Verify
	*balances    // Balances
	*network     // CheckNetwork, Network
	*operations  // Money, MoneyCounts, RefundsDue and what an operator decides
	*refunder    // Refund
	*signerLimits

	chain    *chainState
	jobs     *jobs
	tables   *tables
	tracker  *broadcast.Tracker
	recovery *recovery
	workers  *workers

	deliverers int
}

// New returns a Settlement. It reads the store and calls nothing else. Errors:
// [ErrOptions], errors of package store.
func New(o Options, d Desk, node Node, st *store.Store, signer cosign.Signer) (*Settlement, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	e := &env{desk: d, node: node, store: st, signer: signer, log: o.Logger, clock: o.Now}
	jobs, refunds, locks := newJobs(o.RetryFirst, o.RetryMax), newRefunds(), newClaimLocks()
	if err := holdDelivered(st, refunds); err != nil {
		return nil, err
	}
	orders := &refundOrders{
		env: e, refunds: refunds, retryFirst: o.RetryFirst, retryMax: o.RetryMax,
		wake: make(chan struct{}, 1), orders: map[solana.Signature]*refundOrder{},
	}
	outcomes := &outcomes{env: e, jobs: jobs, orders: orders}
	tracker, err := broadcast.New(o.Broadcast, node, outcomes.record)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	network := &network{env: e, want: o.Network, trustSingle: o.TrustSingleNode}
	chain := &chainState{env: e, network: network, extensions: o.Extensions, refreshEvery: o.RefreshEvery}
	builder := &builder{env: e, chain: chain, budget: o.Budget}
	guard := &guard{env: e, builder: builder, blockhashLife: o.BlockhashLife}
	key := &deskKey{env: e, timeout: o.SignTimeout}
	search := &deliverySearch{env: e, blockhashLife: o.BlockhashLife}
	refunder := &refunder{refundOrders: orders, tracker: tracker, builder: builder, treasury: o.Treasury, key: key, guard: guard}
	if err := refunder.start(); err != nil {
		return nil, err
	}
	resumer := &resumer{env: e, tracker: tracker, locks: locks}
	packages := &packages{env: e, tracker: tracker, builder: builder, locks: locks, treasury: o.Treasury, syncBuilds: o.SyncBuilds}
	payments := &payments{env: e, chain: chain, options: o.Payments, treasury: o.Treasury}
	return &Settlement{
		env:         e,
		packages:    packages,
		submissions: &submissions{env: e, tracker: tracker, packages: packages, guard: guard, key: key, locks: locks},
		payments:    payments,
		refunder:    refunder, signerLimits: &signerLimits{env: e},
		operations: &operations{
			env: e, tracker: tracker, jobs: jobs, refunds: refunds, orders: orders, resumer: resumer, locks: locks, failingAfter: o.FailingAfter, seen: payments.seen,
		},
		network:  network,
		balances: &balances{env: e, chain: chain, orders: orders, every: o.BalanceEvery, sol: solNeeded(o.Budget)},
		chain:    chain, jobs: jobs, tracker: tracker, deliverers: o.Deliverers,
		tables:   &tables{payees: &payments.payees, jobs: jobs, refunds: refunds, unseen: &payments.unseenClaims, now: e.now},
		recovery: &recovery{env: e, tracker: tracker, retryEvery: o.RetryMax},
		workers: &workers{
			env: e, jobs: jobs, resumer: resumer, searches: &refundSearches{env: e, refunds: refunds, search: search},
			deliveries: &deliveries{env: e, tracker: tracker, jobs: jobs, builder: builder, guard: guard, key: key, search: search},
		},
	}, nil
}

// Start takes the claims of the recovered state; claims is rfq.Machine.EachClaim.
// lostSince is the time of the journal's end if the desk was reconciled with a
// journal that has lost commands: payments since then are searched for again, even
// those that were read before. Zero means that the journal has lost nothing. Start
// is called once, before Run and before the engine runs.
func (s *Settlement) Start(claims func(yield func(c *rfq.Claim, payments []rfq.Payment) bool), lostSince time.Time) {
	// The chain's clock is compared with the earlier one: the desk's time may be ahead.
	now := min(s.now(), time.Now().UnixNano())
	s.payments.watchFrom(now, lostSince)
	claims(func(c *rfq.Claim, payments []rfq.Payment) bool {
		s.tables.setClaim(c)
		s.payments.recovered(c, payments, now)
		s.recovery.recovered(c)
		for i := range payments {
			s.tables.refunds.set(&payments[i])
			s.refunder.recovered(&payments[i])
			if payments[i].State == rfq.PaymentRefundDue {
				s.tables.queueSearch(c)
			}
		}
		return true
	})
}

// Run works until ctx ends or the engine has stopped, and returns nil then. The
// next Start continues unfinished work. Run follows c and never waits for the
// chain, the desk or the disk while it does.
func (s *Settlement) Run(ctx context.Context, c Consumer) error {
	group, ctxAll := errgroup.WithContext(ctx)
	group.Go(func() error { return s.tables.follow(ctxAll, c) })
	group.Go(func() error { return s.chain.keepFresh(ctxAll) })
	group.Go(func() error { return s.tracker.Run(ctxAll) })
	group.Go(func() error { return s.payments.watch(ctxAll) })
	group.Go(func() error { return s.recovery.run(ctxAll) })
	group.Go(func() error { return s.balances.run(ctxAll) })
	group.Go(func() error { return s.pruneBuilds(ctxAll) })
	group.Go(func() error { return s.refunder.run(ctxAll) })
	group.Go(func() error { return s.watchLimits(ctxAll) })
	for range s.deliverers {
		group.Go(func() error { return s.workers.work(ctxAll) })
	}
	if err := group.Wait(); !errors.Is(err, errEngineStopped) && ctx.Err() == nil {
		return err
	}
	return nil
}

func (s *Settlement) pruneBuilds(ctx context.Context) error {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		for n := store.MaxPrunedACall; n == store.MaxPrunedACall && ctx.Err() == nil; {
			var err error
			if n, err = s.store.Prune(s.now()); err != nil {
				s.log.Warn("deleting old builds failed", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Ready returns nil if a transaction package can be built now, and otherwise an [ErrNotReady]
// that says what is missing. It does not block.
func (s *Settlement) Ready() error {
	v := s.desk.View()
	if v == nil {
		return errNoView
	}
	if s.signer.Address() == (solana.Address{}) {
		return fmt.Errorf("%w: the signer has not said its address yet: is it running?", ErrNotReady)
	}
	if err := s.chain.ready(v); err != nil {
		return err
	}
	if s.payments.prover.Load() == nil {
		return errNoProver
	}
	return nil
}

// Health is the state of settlement and of its nodes.
type Health struct {
	// Desk is the wallet that delivers, co-signs and sponsors; zero while the
	// signer's address is unknown.
	Desk  solana.Address
	Nodes []rpc.UpstreamHealth
	// Blockhash is the newest one; the zero value if there is none.
	Blockhash rpc.Blockhash
	// Working counts the claims whose transaction has to be made, or has not ended.
	Working  int
	Tracker  broadcast.Stats
	Money    desk.MoneyCounts // needs an operator
	NotReady error            // the result of Ready
}

// Health returns the current figures. It does not block.
func (s *Settlement) Health() Health {
	h := Health{
		Desk: s.signer.Address(), Nodes: s.node.Health(), Working: s.jobs.count(), Tracker: s.tracker.Stats(),
		Money: s.MoneyCounts(), NotReady: s.Ready(),
	}
	if b := s.chain.newest.Load(); b != nil {
		h.Blockhash = *b
	}
	return h
}

// Counts returns the counters, each read by itself.
func (s *Settlement) Counts() Counts { return s.counts.read() }
