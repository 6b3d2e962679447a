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
	// MaxPairs bounds the instruments that one service mirrors.
	MaxPairs = 64
	// MaxShownLevels bounds a side of the book that the engine is told.
	MaxShownLevels = 100
	// MaxObserved bounds the accounts that are read beside a pair's own, so that
	// all of them fit into one call.
	MaxObserved = 64
	// MaxSnapshots bounds the snapshots that are kept of a pair; the oldest go
	// first.
	MaxSnapshots = 1000
	// MaxTraders is how many takers of a pair are told apart. More are not
	// counted.
	MaxTraders = 1 << 20
	// MaxAttempts bounds Options.MaxAttempts.
	MaxAttempts = 16

	// maxShownQty is the most lots of a level that the engine takes.
	maxShownQty = book.MaxLevelQty
	// minLookback is the least history that the windows need.
	minLookback = Week + Day
)

// ErrOptions means options that cannot work, wrapped with the pair concerned.
var ErrOptions = errors.New("mirror: invalid options")

// Pair is a mirrored instrument and what it is read from: a book, a pool or both.
type Pair struct {
	Instrument *market.Instrument
	// Base and Quote are what is traded.
	Base, Quote Coin
	// Book is the market of whose orders the book is; its zero Layout is none. Its
	// Instrument, Base and Quote are the pair's own and left empty here. Levels is
	// at most MaxShownLevels; 0 is that.
	Book Listing
	// Pool is where swaps are made; its zero Pool is none. Its Base and Quote are
	// the pair's own and left empty here.
	Pool PoolListing
	// Observed are token accounts that are read along, such as reserves and fee
	// vaults.
	Observed []solana.Address
}

// Options are a service's. Zero values take the defaults.
type Options struct {
	Pairs []Pair
	// Every is how often accounts and the history are read. Default 10 s.
	Every time.Duration
	// Commitment is how settled the slot of a book and of balances is; swaps and
	// snapshots are final always. Default confirmed.
	Commitment rpc.Commitment
	// MaxBehind and MaxAhead bound the chain's time by our clock: an answer of
	// another time is not believed. Defaults 1 minute.
	MaxBehind, MaxAhead time.Duration
	// MaxSpread is how many slots two nodes' answers may be apart, and by how many
	// more than time has passed for a node may run ahead of what was read last.
	// Default 150, a minute.
	MaxSpread uint64
	// MaxAttempts is how often in one cycle the nodes are asked until enough of them
	// tell the same, up to the constant MaxAttempts. Default 5.
	MaxAttempts int
	// AttemptPause is how long to wait in between. Default 300 ms, less than a slot.
	AttemptPause time.Duration
	// StaleAfter is how old what was read may be before it counts as degraded.
	// Default 3 × Every.
	StaleAfter time.Duration
	// Reach is how far back swaps are read: 8 days at least, which is the default.
	// Negative: to the pool's beginning.
	Lookback time.Duration
	// MaxUnnumbered is how many transactions of a pair are read back, at some 300
	// bytes each on disk, before their swaps get their ordinals and the old ones
	// are dropped: what is read of the past after that is counted and not told.
	// Default 2^21.
	MaxUnnumbered int64
	// SnapshotEvery is how far snapshots are apart. Default 6 h.
	SnapshotEvery time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Validate checks the options. Errors: [ErrOptions], [ErrListing].
func (o *Options) Validate() error {
	for _, d := range [...]time.Duration{o.Every, o.MaxBehind, o.MaxAhead, o.AttemptPause, o.StaleAfter, o.SnapshotEvery} {
		if d < 0 {
			return fmt.Errorf("%w: a negative duration", ErrOptions)
		}
	}
	if len(o.Pairs) > MaxPairs || o.Commitment > rpc.Finalized || o.MaxAttempts < 0 || o.MaxAttempts > MaxAttempts || o.MaxUnnumbered < 0 || o.Lookback > 0 && o.Lookback < minLookback {
		return fmt.Errorf("%w: %d pairs, commitment %d, %d asks, reach %v", ErrOptions, len(o.Pairs), o.Commitment, o.MaxAttempts, o.Lookback)
	}
	seen := map[market.InstrumentID]bool{}
	for i := range o.Pairs {
		p := &o.Pairs[i]
		if p.Instrument == nil || p.Instrument.Source != market.Mirrored {
			return fmt.Errorf("%w: pair %d is of no mirrored instrument", ErrOptions, i+1)
		}
		if seen[p.Instrument.ID] {
			return fmt.Errorf("%w: %s twice", ErrOptions, p.Instrument.Symbol)
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
		return fmt.Errorf("%w: neither a book nor a pool", ErrOptions)
	case p.Book.Levels < 0 || p.Book.Levels > MaxShownLevels:
		return fmt.Errorf("%w: %d levels: at most %d", ErrOptions, p.Book.Levels, MaxShownLevels)
	case len(p.Observed) > MaxObserved:
		return fmt.Errorf("%w: %d observed accounts: at most %d", ErrOptions, len(p.Observed), MaxObserved)
	}
	l := p.listing()
	return l.validate()
}

// listing returns the book's with what is the pair's own.
func (p *Pair) listing() Listing {
	l := p.Book
	l.Instrument, l.Base, l.Quote = p.Instrument, p.Base, p.Quote
	if l.Levels == 0 {
		l.Levels = MaxShownLevels
	}
	return l
}

// poolListing returns the pool's with what is the pair's own.
func (p *Pair) poolListing() PoolListing {
	l := p.Pool
	l.Base, l.Quote = p.Base, p.Quote
	return l
}

// history returns whose transactions are a pool's: those of the account that its
// program writes in every swap, or, of a bare pair of vaults, of one of them.
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
	o.MaxUnnumbered = cmp.Or(o.MaxUnnumbered, 1<<21)
	o.MaxSpread = cmp.Or(o.MaxSpread, 150)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 5)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
