package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

// errEngine means that the engine refuses a command.
var errEngine = errors.New("mirror: the engine refused a command")

// reader reads the accounts of one pair.
type reader struct {
	o      *Options
	node   Node
	engine Engine
	pair   *Pair
	// offset spreads the pairs over the cycle, because nodes limit calls.
	offset time.Duration

	// Of run. book and pool are nil until their accounts were read, and if the pair has
	// none; complete: neither is missing. accounts are those that a cycle reads.
	book         Book
	pool         *Pool
	complete     bool
	accounts     []solana.Address
	depth        Depth
	bids, asks   []market.Level
	lastAgreed   Clock
	lastAgreedAt time.Time
	// vaults are the vaults of the pool; valid once opened is closed.
	vaults VaultPair
	opened chan struct{}

	mu sync.Mutex
	// published is the state without swaps. Its Reasons and Err are from the last
	// cycle.
	published PairState
	refused   map[string]error
	// agreed is the last result's clock; clockSkewed: there is no result because the
	// nodes' clocks differ from ours.
	agreed      Clock
	clockSkewed bool
}

// run reads the accounts every cycle until ctx ends.
func (r *reader) run(ctx context.Context) {
	every(ctx, r.o.Every, r.offset, func() {
		err := r.cycle(ctx)
		r.mu.Lock()
		r.published.Err, r.published.Reasons = err, reasonsOf(err)
		r.mu.Unlock()
	})
}

// every calls do now and at each tick until ctx ends. The ticks begin after offset.
func every(ctx context.Context, interval, offset time.Duration, do func()) {
	if offset > 0 {
		do()
		if !pause(ctx, offset) {
			return
		}
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		do()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// cycle reads and publishes the accounts once.
func (r *reader) cycle(ctx context.Context) error {
	var missing error
	if !r.complete {
		missing = r.open(ctx)
	}
	if r.accounts == nil {
		return missing
	}
	got, agreeing, err := r.query(ctx, r.accounts)
	if agreeing > 0 {
		err = errors.Join(err, r.apply(&got, agreeing))
	}
	return errors.Join(missing, err)
}

// open reads the accounts that name the other accounts of the book and of the pool.
// If the book or the pool fails, the other is used.
func (r *reader) open(ctx context.Context) error {
	listing, pool := r.pair.listing(), r.pair.poolListing()
	got, agreeing, err := r.query(ctx, []solana.Address{solana.ClockSysvar, listing.Market, pool.Pool})
	if agreeing == 0 {
		return err
	}
	var bookErr, poolErr error
	if listing.Layout != 0 && r.book == nil {
		var b Book
		if b, bookErr = Open(listing, got.accounts[0]); bookErr == nil {
			r.book = b
		}
	}
	if pool.Pool != (solana.Address{}) && r.pool == nil {
		var p *Pool
		if p, poolErr = OpenPool(pool, got.accounts[1]); poolErr == nil {
			r.pool, r.vaults = p, p.Vaults()
			close(r.opened)
		}
	}
	if err = errors.Join(bookErr, poolErr); err != nil && r.book == nil && r.pool == nil {
		return err
	}
	r.complete = err == nil
	r.accounts = []solana.Address{solana.ClockSysvar}
	if r.book != nil {
		r.accounts = append(r.accounts, r.book.Accounts()...)
	}
	if r.pool != nil {
		r.accounts = append(r.accounts, r.pool.Accounts()...)
	}
	r.accounts = append(append(r.accounts, r.pair.Base.Mint, r.pair.Quote.Mint), r.pair.Observed...)
	return err
}

// query asks the nodes until a majority agrees; agreeing is 0 if none does. An error
// beside a result is about a minority.
func (r *reader) query(ctx context.Context, list []solana.Address) (got reading, agreeing int, err error) {
	q := newQuorum(r.o, r.lastAgreed, r.lastAgreedAt)
	slot := max(r.lastAgreed.Slot, r.engine.Durable(r.pair.Instrument.ID).Slot)
	for n := 1; ; n++ {
		views, err := r.node.AccountsFromEach(ctx, list, r.o.Commitment, slot)
		if err != nil {
			return got, 0, err
		}
		now := r.o.Now()
		q.add(views, now)
		got, agreeing, err = q.result()
		r.recordAnswers(q, got.at, agreeing)
		if agreeing > 0 {
			r.lastAgreed, r.lastAgreedAt = got.at, now
			return got, agreeing, q.warnings()
		}
		if !errors.Is(err, errUnconfirmed) || n >= r.o.MaxAttempts || !pause(ctx, r.o.AttemptPause) {
			return got, 0, err
		}
	}
}

// recordAnswers stores the parts of the answers that other goroutines need.
func (r *reader) recordAnswers(q *quorum, at Clock, agreeing int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = maps.Clone(q.refused)
	r.clockSkewed = len(q.answered) == 0 && q.anyRefusedFor(errClock)
	if agreeing > 0 {
		r.agreed = at
	}
}

// clockPlausible reports whether our clock can be right, given the chain's last
// time.
func (r *reader) clockPlausible(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.clockSkewed && now.Unix() >= r.agreed.Unix-int64(r.o.MaxAhead/time.Second)
}

// pause waits and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// apply decodes a reading. A failing book, pool or observed account does not affect the
// others; a failing mint does.
func (r *reader) apply(got *reading, agreeing int) error {
	rest := got.accounts
	next := func(n int) (part []*rpc.Account) {
		part, rest = rest[:n], rest[n:]
		return part
	}
	var inBook, inPool []*rpc.Account
	if r.book != nil {
		inBook = next(len(r.book.Accounts()))
	}
	if r.pool != nil {
		inPool = next(len(r.pool.Accounts()))
	}
	mints := next(2)
	s := PairState{At: got.at, ReadAt: r.lastAgreedAt, AgreeingNodes: agreeing, Price: NoPrice}
	var err1, err2 error
	if s.BaseSupply, err1 = supply(&r.pair.Base, mints[0]); err1 != nil {
		return err1
	}
	if s.QuoteSupply, err2 = supply(&r.pair.Quote, mints[1]); err2 != nil {
		return err2
	}
	var errs []error
	if r.book != nil {
		errs = append(errs, r.applyBook(&s, inBook))
	}
	if r.pool != nil {
		errs = append(errs, r.applyPool(&s, inPool))
	}
	for i, a := range rest {
		h, ok, err := holding(r.pair.Observed[i], a)
		errs = append(errs, err)
		if ok {
			s.Observed = append(s.Observed, h)
		}
	}
	r.mu.Lock()
	r.published = s
	r.mu.Unlock()
	return errors.Join(errs...)
}

// applyBook decodes the book and publishes it to the engine.
func (r *reader) applyBook(s *PairState, accounts []*rpc.Account) error {
	if err := r.book.Decode(&r.depth, s.At, accounts); err != nil {
		return err
	}
	listing := r.pair.listing()
	var err1, err2 error
	r.bids, err1 = listing.AppendLots(r.bids[:0], r.depth.Bids)
	r.asks, err2 = listing.AppendLots(r.asks[:0], r.depth.Asks)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	tooLarge := func(l market.Level) bool { return l.Qty > maxShownQty }
	r.bids, r.asks = slices.DeleteFunc(r.bids, tooLarge), slices.DeleteFunc(r.asks, tooLarge)
	s.Orders, s.OmittedOrders = r.depth.Orders, r.depth.Omitted
	s.OmittedLevels = len(r.depth.Bids) + len(r.depth.Asks) - len(r.bids) - len(r.asks)
	if len(r.bids)+len(r.asks) > 0 {
		s.Price = BookPrice
	}
	if s.At.Slot <= r.engine.Durable(r.pair.Instrument.ID).Slot {
		return nil
	}
	err := r.engine.Refresh(Refresh{r.pair.Instrument.ID, s.At.Slot, r.bids, r.asks})
	if err != nil {
		return fmt.Errorf("%w: slot %d: %w", errEngine, s.At.Slot, err)
	}
	return nil
}

func (r *reader) applyPool(s *PairState, accounts []*rpc.Account) error {
	p, err := r.pool.Decode(s.At, accounts)
	if err != nil {
		return err
	}
	s.Pool, s.Proof = &p, p.Proof()
	if _, ok := p.Spot(0); ok && s.Price == NoPrice {
		s.Price = PoolPrice
	}
	return nil
}

// supply returns a mint's supply, after comparing it with the pair.
func supply(c *Coin, a *rpc.Account) (market.Amount, error) {
	if a == nil {
		return 0, fmt.Errorf("%w: mint %s does not exist", ErrAccount, solana.Base58(c.Mint))
	}
	m, err := token.ParseMint(a.Address, a.Owner, a.Data)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrAccount, err)
	}
	if m.Address != c.Mint || m.Decimals != c.Decimals {
		return 0, fmt.Errorf("%w: mint %s has %d decimals", ErrListing, solana.Base58(c.Mint), m.Decimals)
	}
	return m.Supply, nil
}

// holding parses an observed account; ok is false if it does not exist.
func holding(address solana.Address, a *rpc.Account) (h Holding, ok bool, err error) {
	if a == nil {
		return h, false, nil
	}
	t, err := token.ParseAccount(a.Owner, a.Data)
	if err != nil {
		return h, false, fmt.Errorf("%w: %s: %w", ErrAccount, solana.Base58(address), err)
	}
	return Holding{address, t.Mint, t.Amount}, true, nil
}

// state returns the state of the accounts at now.
func (r *reader) state(now time.Time) PairState {
	r.mu.Lock()
	s := r.published
	r.mu.Unlock()
	s.Instrument = r.pair.Instrument
	switch {
	case s.ReadAt.IsZero():
		s.Price, s.Reasons = NoPrice, s.Reasons.With(NotRead)
	case now.Sub(s.ReadAt) > r.o.StaleAfter:
		s.Reasons = s.Reasons.With(Stale)
	}
	if s.Price == PoolPrice {
		s.Reasons = s.Reasons.With(VaultPrice)
	}
	return s
}

// reasonsOf returns the degradation reasons of an error.
func reasonsOf(err error) (set Reasons) {
	for _, c := range [...]struct {
		err    error
		reason Reason
	}{
		{errNoUpstream, NoUpstream},
		{errContradicted, Contradicted},
		{errUnconfirmed, Unconfirmed},
		{errFuture, FutureSlot},
		{ErrAccount, BadAccount},
		{ErrMalformed, BadAccount},
		{ErrListing, BadAccount},
		{ErrClosed, MarketClosed},
		{errEngine, EngineRefuses},
		{errStore, StoreFailed},
		{ErrHistory, HistoryBehind},
		{ErrNotFound, HistoryBehind},
	} {
		if errors.Is(err, c.err) {
			set = set.With(c.reason)
		}
	}
	return set
}
