package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"time"

	"blockdesk/market"
)

// The lengths of the rolling windows.
const (
	Day  = 24 * time.Hour
	Week = 7 * Day
)

// MaxWindowSwaps is how many swaps [Windows] hold by default, a little over 100
// bytes each. A pool that trades more in a week has its week not proven.
const MaxWindowSwaps = 1 << 17

// Errors of [Windows].
var (
	// ErrWindowOptions: options that cannot work.
	ErrWindowOptions = errors.New("mirror: invalid window options")
	// ErrOrder: a transaction that is neither at an end of what has been read nor
	// within it.
	ErrOrder = errors.New("mirror: a transaction out of order")
)

// WindowOptions are the windows'. Zero values take the defaults.
type WindowOptions struct {
	// MaxSwaps bounds the swaps held; the oldest go first. Default
	// [MaxWindowSwaps].
	MaxSwaps int
	// MaxAge is for how long a window is proven after the chain was last read to
	// its end. Default one minute.
	MaxAge time.Duration
	// MaxAhead is how far a block's time may be ahead of our clock. Default one
	// minute.
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

// WindowStatus says what a window's figures are worth.
type WindowStatus uint8

const (
	// Exact: all swaps of the window have been decoded.
	Exact WindowStatus = 1
	// Empty: it is proven that there was none.
	Empty WindowStatus = 2
	// Behind: the chain has not been read to its end lately.
	Behind WindowStatus = 3
	// Partial: the history has not been read back to the window's start, or is
	// more than is held.
	Partial WindowStatus = 4
	// Doubtful: something in the window was not decoded, or has no time, or the
	// vaults' balances show that something is missing.
	Doubtful WindowStatus = 5
	// Ahead: the chain's time is ahead of our clock.
	Ahead WindowStatus = 6
)

// Proven reports whether a window's figures are exact.
func (s WindowStatus) Proven() bool { return s == Exact || s == Empty }

// Word returns the word of the status record for a window that is called name
// there, "24h" or "7d". The description gives the word for an empty window; the
// others are our choice.
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
	case Doubtful:
		return "undecoded_transaction_in_" + name + "_window"
	case Ahead:
		return "chain_time_ahead_of_clock"
	default:
		return "status?"
	}
}

// CountedSwap is a swap as the windows hold it.
type CountedSwap struct {
	Key  MovementKey
	Slot uint64
	// Time is in seconds of Unix time.
	Time int64
	Side market.Side
	// Calls is how many swaps it joins, mostly 1: see [Movement].
	Calls int
	// Base and Quote are what changed hands, in atoms, neither 0. Their quotient
	// is the price.
	Base, Quote market.Amount
}

// Window is what was traded in a time that ends now. What is not proven is zero.
type Window struct {
	Status WindowStatus
	Swaps  int
	// Base and Quote are what changed hands, in atoms.
	Base, Quote market.Uint128
	// First and Last are the oldest and the newest swap; zero if there is none.
	First, Last CountedSwap
}

// Rolling is what the windows show at one moment.
type Rolling struct {
	Day, Week Window
	// Last is the newest swap known, however old; its Time is 0 if there is none.
	Last CountedSwap
	// AsOf is when the chain was last read to its end; zero if it never was.
	AsOf   time.Time
	Totals Totals
}

// Totals are over all swaps read.
type Totals struct {
	Swaps       uint64
	Base, Quote market.Uint128
	// Complete: the history has been read from the vaults' creation on.
	Complete bool
	// Doubts is how often something was not decoded or missing.
	Doubts uint64
}

// Windows count decoded swaps, each once, and know for which time they have seen
// all of them. What they hold is of one gapless run of the pool's history, that
// grows at both ends.
//
// Not safe for concurrent use. [Windows.At] takes time in proportion to the swaps
// held.
type Windows struct {
	o WindowOptions
	// older is newest first and newer oldest first, so that both ends grow.
	older, newer   []CountedSwap
	begun          bool
	oldest, newest edge
	// named: some transaction has told of the vault.
	named  [sides]bool
	asOf   time.Time
	totals Totals
	// dropped is the newest time that swaps are not held of any more.
	dropped int64
	// doubted is the newest time that something is missing at; untimed: something
	// is missing since newest.time, and it is not known until when.
	doubted int64
	untimed bool
}

// NewWindows makes windows that have read nothing. Errors: [ErrWindowOptions].
func NewWindows(o WindowOptions) (*Windows, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Windows{o: o.withDefaults()}, nil
}

// Apply takes what a [Backfill] has read, and reports whether a transaction was
// new: what is told twice counts once. Errors: [ErrOrder].
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

// At returns what the windows show at now. Seconds are whole, as blocks' are: a
// window of a day holds what is less than a day old.
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
	for i := w.len() - 1; i >= 0 && w.at(i).Time > start; i-- {
		f := w.at(i)
		if out.Swaps == 0 {
			out.Last = *f
		}
		out.Swaps += f.Calls
		out.First = *f
		add(&out.Base, f.Base)
		add(&out.Quote, f.Quote)
	}
	if out.Swaps == 0 {
		out.Status = Empty
	}
	return out
}

// status says what a window from start to now is worth, Exact for an empty one
// too.
func (w *Windows) status(now time.Time, start int64) WindowStatus {
	switch {
	case w.asOf.IsZero() || now.Sub(w.asOf) > w.o.MaxAge || w.asOf.After(now.Add(w.o.MaxAhead)):
		return Behind
	case w.newest.time > now.Add(w.o.MaxAhead).Unix():
		return Ahead
	case !w.begun, !w.totals.Complete && w.oldest.time > start, w.dropped > start:
		return Partial
	case w.untimed || w.doubted > start:
		return Doubtful
	default:
		return Exact
	}
}

// Delta returns by how much the price of the window's last swap differs from that
// of its first, in millionths of the latter, rounded towards zero. ok is false
// where there is no swap, or the number does not fit.
func (w *Window) Delta() (millionths int64, ok bool) {
	if w.Swaps == 0 {
		return 0, false
	}
	product := func(a, b market.Amount) *big.Int {
		return new(big.Int).Mul(new(big.Int).SetUint64(uint64(a)), new(big.Int).SetUint64(uint64(b)))
	}
	// last.Quote/last.Base − first.Quote/first.Base, over first.Quote/first.Base.
	reference := product(w.First.Quote, w.Last.Base)
	change := new(big.Int).Sub(product(w.Last.Quote, w.First.Base), reference)
	change.Mul(change, big.NewInt(1_000_000))
	change.Quo(change, reference)
	return change.Int64(), change.IsInt64()
}
