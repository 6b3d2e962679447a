package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"blockdesk/engine/book"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
)

// Limits of a [Service].
const (
	// MaxPairs bounds the instruments of a service.
	MaxPairs = 64
	// MaxShownLevels bounds a side of the published book.
	MaxShownLevels = 100
	// MaxObserved bounds a pair's observed accounts, so that all its accounts fit into
	// one call.
	MaxObserved = 64
	// MaxSnapshots bounds the stored snapshots of a pair; the oldest are deleted first.
	MaxSnapshots = 1000
	// MaxTraders bounds the distinct traders that are counted for a pair.
	MaxTraders = 1 << 20
	// MaxAttempts bounds Options.MaxAttempts.
	MaxAttempts = 16

	// maxShownQty is the largest quantity of a level, in lots, that the engine
	// accepts.
	maxShownQty = book.MaxLevelQty
	// minLookback is the least history that the windows need.
	minLookback = Week + Day
)

// ErrOptions means invalid options. It is wrapped with the pair concerned.
var ErrOptions = errors.New("mirror: invalid options")

// Pair is a mirrored instrument with its on-chain book, its pool, or both.
type Pair struct {
	Instrument *market.Instrument
	// Base and Quote are the traded tokens.
	Base, Quote Coin
	// Book is the on-chain market; its zero Layout means none. Instrument, Base and Quote
	// are the pair's and empty here. Levels is at most MaxShownLevels; 0 means that.
	Book Listing
	// Pool is the pool whose swaps are read; its zero Pool means none. Base and Quote are
	// the pair's and empty here.
	Pool PoolListing
	// Observed are token accounts that are read too, such as reserves and fee vaults.
	Observed []solana.Address
}

// Options are the settings of a Service. The zero value of a field means its default.
type Options struct {
	Pairs []Pair
	// Every is the interval of reading accounts and history. Default 10 s.
	Every time.Duration
	// Commitment is the commitment of books and balances; swaps and snapshots are always
	// finalized. Default confirmed.
	Commitment rpc.Commitment
	// MaxBehind and MaxAhead bound the difference of the chain's time from our clock;
	// answers beyond them are refused. Defaults 1 minute.
	MaxBehind, MaxAhead time.Duration
	// MaxSpread bounds the slots between two nodes' answers, and the slots by which a
	// node may be further ahead of the last reading than the time since then allows.
	// Default 150, a minute.
	MaxSpread uint64
	// MaxAttempts bounds how often the nodes are asked in one cycle until a majority
	// agrees, up to the constant MaxAttempts. Default 5.
	MaxAttempts int
	// AttemptPause is the pause between two attempts. Default 300 ms, less than a slot.
	AttemptPause time.Duration
	// StaleAfter is the age from which on a reading counts as degraded. Default 3 ×
	// Every.
	StaleAfter time.Duration
	// Lookback is how far back swaps are read: at least 8 days, which is the default.
	// Negative: to the pool's beginning.
	Lookback time.Duration
	// MaxPendingSwaps bounds a pair's transactions that are read back, at some 300 bytes
	// each on disk, before their swaps get ordinals and the old ones are deleted. Swaps
	// read from further back are counted and not published. Default 2^21.
	MaxPendingSwaps int64
	// SnapshotEvery is the interval of snapshots. Default 6 h.
	SnapshotEvery time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Validate checks the options. Errors: [ErrOptions], [ErrListing].
func (o *Options) Validate() error {
	for _, d := range [...]struct {
		name  string
		value time.Duration
	}{
		{"Every", o.Every},
		{"MaxBehind", o.MaxBehind},
		{"MaxAhead", o.MaxAhead},
		{"AttemptPause", o.AttemptPause},
		{"StaleAfter", o.StaleAfter},
		{"SnapshotEvery", o.SnapshotEvery},
	} {
		if d.value < 0 {
			return fmt.Errorf("%w: %s %v: must be 0 or more", ErrOptions, d.name, d.value)
		}
	}
	switch {
	case len(o.Pairs) > MaxPairs:
		return fmt.Errorf("%w: %d pairs: must be at most %d", ErrOptions, len(o.Pairs), MaxPairs)
	case o.Commitment > rpc.Finalized:
		return fmt.Errorf("%w: Commitment %d: unknown", ErrOptions, o.Commitment)
	case o.MaxAttempts < 0 || o.MaxAttempts > MaxAttempts:
		return fmt.Errorf("%w: MaxAttempts %d: must be 0 to %d", ErrOptions, o.MaxAttempts, MaxAttempts)
	case o.MaxPendingSwaps < 0:
		return fmt.Errorf("%w: MaxPendingSwaps %d: must be 0 or more", ErrOptions, o.MaxPendingSwaps)
	case o.Lookback > 0 && o.Lookback < minLookback:
		return fmt.Errorf("%w: Lookback %v: must be at least %v", ErrOptions, o.Lookback, minLookback)
	}
	seen := map[market.InstrumentID]bool{}
	for i := range o.Pairs {
		p := &o.Pairs[i]
		if p.Instrument == nil || p.Instrument.Source != market.Mirrored {
			return fmt.Errorf("%w: the instrument of pair %d is not mirrored", ErrOptions, i+1)
		}
		if seen[p.Instrument.ID] {
			return fmt.Errorf("%w: %s has two pairs", ErrOptions, p.Instrument.Symbol)
		}
		seen[p.Instrument.ID] = true
		if err := p.validate(); err != nil {
			return fmt.Errorf("%s: %w", p.Instrument.Symbol, err)
		}
	}
	return nil
}

func (p *Pair) validate() error {
	switch {
	case p.Book.Layout == 0 && p.Pool.Pool == solana.Address{}:
		return fmt.Errorf("%w: the pair has neither a book nor a pool", ErrOptions)
	case p.Book.Levels < 0 || p.Book.Levels > MaxShownLevels:
		return fmt.Errorf("%w: %d levels: must be at most %d", ErrOptions, p.Book.Levels, MaxShownLevels)
	case len(p.Observed) > MaxObserved:
		return fmt.Errorf("%w: %d observed accounts: must be at most %d", ErrOptions, len(p.Observed), MaxObserved)
	}
	l := p.listing()
	return l.validate()
}

// listing returns Book with the pair's members.
func (p *Pair) listing() Listing {
	l := p.Book
	l.Instrument, l.Base, l.Quote = p.Instrument, p.Base, p.Quote
	if l.Levels == 0 {
		l.Levels = MaxShownLevels
	}
	return l
}

// poolListing returns Pool with the pair's members.
func (p *Pair) poolListing() PoolListing {
	l := p.Pool
	l.Base, l.Quote = p.Base, p.Quote
	return l
}

// history returns the account whose transactions are the pool's history: the pool's
// account, which its program writes in every swap, or one of the vaults of a pool without
// a program.
func (l *PoolListing) history() solana.Address {
	if l.Program == (solana.Address{}) {
		return l.BaseVault
	}
	return l.Pool
}

func (o Options) withDefaults() Options {
	o.Every = cmp.Or(o.Every, 10*time.Second)
	o.MaxBehind = cmp.Or(o.MaxBehind, time.Minute)
	o.MaxAhead = cmp.Or(o.MaxAhead, time.Minute)
	o.AttemptPause = cmp.Or(o.AttemptPause, 300*time.Millisecond)
	o.Lookback = cmp.Or(o.Lookback, minLookback)
	o.SnapshotEvery = cmp.Or(o.SnapshotEvery, 6*time.Hour)
	o.StaleAfter = cmp.Or(o.StaleAfter, 3*o.Every)
	o.Commitment = cmp.Or(o.Commitment, rpc.Confirmed)
	o.MaxPendingSwaps = cmp.Or(o.MaxPendingSwaps, 1<<21)
	o.MaxSpread = cmp.Or(o.MaxSpread, 150)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 5)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
