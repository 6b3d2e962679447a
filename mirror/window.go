package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"time"

	"blockdesk/market"
)

// Lengths of the rolling windows.
const (
	Day  = 24 * time.Hour
	Week = 7 * Day
)

// MaxWindowSwaps is the default number of swaps that [Windows] hold, a little over 100
// bytes each. The week of a pool with more swaps is not proven.
const MaxWindowSwaps = 1 << 17

// Errors of [Windows].
var (
	// ErrWindowOptions means invalid options.
	ErrWindowOptions = errors.New("mirror: invalid window options")
	// ErrOrder means a transaction that is neither at an end of the run nor within it.
	ErrOrder = errors.New("mirror: a transaction is out of order")
)

// WindowOptions are the settings of Windows. Zero values take the defaults.
type WindowOptions struct {
	// MaxSwaps bounds the swaps held; the oldest go first. Default [MaxWindowSwaps].
	MaxSwaps int
	// MaxAge is how long a window stays proven after the chain was last read to its end.
	// Default one minute.
	MaxAge time.Duration
	// MaxAhead bounds a block's time beyond our clock. Default one minute.
	MaxAhead time.Duration
}

// Validate checks the options. Errors: [ErrWindowOptions].
func (o *WindowOptions) Validate() error {
	if o.MaxSwaps < 0 || o.MaxAge < 0 || o.MaxAhead < 0 {
		return fmt.Errorf("%w: %+v", ErrWindowOptions, *o)
	}
	return nil
}

func (o WindowOptions) withDefaults() WindowOptions {
	o.MaxSwaps = cmp.Or(o.MaxSwaps, MaxWindowSwaps)
	o.MaxAge = cmp.Or(o.MaxAge, time.Minute)
	o.MaxAhead = cmp.Or(o.MaxAhead, time.Minute)
	return o
}

// WindowStatus says whether a window's figures are proven.
type WindowStatus uint8

const (
	// Exact: all swaps of the window were decoded.
	Exact WindowStatus = 1
	// Empty: it is proven that there were none.
	Empty WindowStatus = 2
	// Behind: the chain was not read to its end recently.
	Behind WindowStatus = 3
	// Partial: the history was not read back to the window's start, or has more swaps
	// than are held.
	Partial WindowStatus = 4
	// Uncertain: a transaction in the window could not be decoded or has no time, or the
	// vaults' balances show that one is missing.
	Uncertain WindowStatus = 5
	// Ahead: the chain's time is ahead of our clock.
	Ahead WindowStatus = 6
)

// Proven reports whether a window's figures are exact.
func (s WindowStatus) Proven() bool { return s == Exact || s == Empty }

// Word returns the status of the window "24h" or "7d" in JSON. The value for an empty
// window is from docs/specification.md 2.5, the others are our choice.
func (s WindowStatus) Word(name string) string {
	switch s {
	case Exact:
		return "exact_from_decoded_swaps"
	case Empty:
		return "no_indexed_swaps_in_" + name + "_window"
	case Behind:
		return "not_synced_to_chain"
	case Partial:
		return "history_not_indexed_to_" + name + "_start"
	case Uncertain:
		return "undecoded_transaction_in_" + name + "_window"
	case Ahead:
		return "chain_time_ahead_of_clock"
	default:
		return "status?"
	}
}

// CountedSwap is a swap in Windows.
type CountedSwap struct {
	Key  MovementKey
	Slot uint64
	// Time is in Unix seconds.
	Time int64
	Side market.Side
	// Calls is the number of calls that it joins, mostly 1: see [Movement].
	Calls int
	// Base and Quote are the exchanged amounts in atoms, not 0. Their quotient is the
	// price.
	Base, Quote market.Amount
}

// Window sums up the swaps of a time span that ends now. Its figures are zero unless it
// is proven.
type Window struct {
	Status WindowStatus
	Swaps  int
	// Base and Quote are the exchanged amounts in atoms.
	Base, Quote market.Uint128
	// Last is the newest swap, zero if there is none. Reference is the newest one before
	// the window, zero if none is held.
	Reference, Last CountedSwap
}

// Rolling are the windows at one moment.
type Rolling struct {
	Day, Week Window
	// Last is the newest known swap, of any age; its Time is 0 if there is none.
	Last CountedSwap
	// AsOf is when the chain was last read to its end; zero = never.
	AsOf   time.Time
	Totals Totals
}

// Totals are over all swaps read.
type Totals struct {
	Swaps       uint64
	Base, Quote market.Uint128
	// Complete: the history was read from the vaults' creation on.
	Complete bool
	// Doubts counts transactions that could not be decoded or are missing.
	Doubts uint64
}

// Windows count decoded swaps, each once, and know for which time they have all of them.
// They hold one gapless run of the pool's history, which grows at both ends.
//
// Not safe for concurrent use. [Windows.At] takes time in proportion to the swaps held.
type Windows struct {
	o WindowOptions
	// older is newest first and newer oldest first, so that both ends can grow.
	older, newer   []CountedSwap
	begun          bool
	oldest, newest edge
	// named: a transaction with the vault's balance was read.
	named  [sides]bool
	asOf   time.Time
	totals Totals
	// dropped is the newest time of which swaps are no longer held.
	dropped int64
	// doubted is the newest time at which something is missing. untimed: something is
	// missing since newest.time, until an unknown time.
	doubted int64
	untimed bool
}

// NewWindows returns empty windows. Errors: [ErrWindowOptions].
func NewWindows(o WindowOptions) (*Windows, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Windows{o: o.withDefaults()}, nil
}

// Apply applies a step of a [Backfill] and reports whether it was a new transaction; a
// repeated one counts once. Errors: [ErrOrder].
func (w *Windows) Apply(p *Progress) (counted bool, err error) {
	switch p.Kind {
	case ReadNewer:
		counted, err = w.newerTrace(p)
	case ReadOlder:
		counted, err = w.olderTrace(p)
	case Restarted:
		*w = Windows{o: w.o}
	}
	if err == nil && !p.AsOf.IsZero() {
		w.asOf = p.AsOf
	}
	return counted, err
}

// At returns the windows at now. Times are whole seconds, like those of blocks: a window
// of a day has the swaps that are less than a day old.
func (w *Windows) At(now time.Time) Rolling {
	r := Rolling{Day: w.window(now, Day), Week: w.window(now, Week), AsOf: w.asOf, Totals: w.totals}
	if n := w.len(); n > 0 {
		r.Last = *w.at(n - 1)
	}
	return r
}

func (w *Windows) window(now time.Time, length time.Duration) (out Window) {
	start := now.Add(-length).Unix()
	if out.Status = w.status(now, start); out.Status != Exact {
		return out
	}
	i := w.len() - 1
	for ; i >= 0 && w.at(i).Time > start; i-- {
		f := w.at(i)
		if out.Swaps == 0 {
			out.Last = *f
		}
		out.Swaps += f.Calls
		add(&out.Base, f.Base)
		add(&out.Quote, f.Quote)
	}
	if out.Swaps == 0 {
		out.Status = Empty
	} else if i >= 0 {
		out.Reference = *w.at(i)
	}
	return out
}

// status returns the status of a window from start to now; Exact for an empty one too.
func (w *Windows) status(now time.Time, start int64) WindowStatus {
	switch {
	case w.asOf.IsZero() || now.Sub(w.asOf) > w.o.MaxAge || w.asOf.After(now.Add(w.o.MaxAhead)):
		return Behind
	case w.newest.time > now.Add(w.o.MaxAhead).Unix():
		return Ahead
	case !w.begun, !w.totals.Complete && w.oldest.time > start, w.dropped > start:
		return Partial
	case w.untimed || w.doubted > start:
		return Uncertain
	default:
		return Exact
	}
}

// Delta returns the change of the price from the reference to the window's last swap, in
// millionths, rounded towards zero. ok is false if one of them is missing or the result
// overflows.
func (w *Window) Delta() (millionths int64, ok bool) {
	if w.Swaps == 0 || w.Reference.Base == 0 {
		return 0, false
	}
	product := func(a, b market.Amount) *big.Int {
		return new(big.Int).Mul(new(big.Int).SetUint64(uint64(a)), new(big.Int).SetUint64(uint64(b)))
	}
	// last.Quote/last.Base − ref.Quote/ref.Base, over ref.Quote/ref.Base.
	reference := product(w.Reference.Quote, w.Last.Base)
	change := new(big.Int).Sub(product(w.Last.Quote, w.Reference.Base), reference)
	change.Mul(change, big.NewInt(1_000_000))
	change.Quo(change, reference)
	return change.Int64(), change.IsInt64()
}
