package prices

import (
	"errors"
	"fmt"
	"slices"

	"blockdesk/market"
)

// Source is where a price comes from. The numbers are on disk: frozen.
type Source uint8

const (
	// Pyth is a price update account on Solana, verified by Pyth's receiver program.
	Pyth Source = 1
	// Pool is the time-weighted price of a mirrored pool.
	Pool Source = 2
	// Operator is a price that an operator has set.
	Operator Source = 3
)

var sourceNames = [...]string{Pyth: "pyth", Pool: "pool", Operator: "operator"}

// String returns the name of the source in the configuration and in documents.
func (s Source) String() string {
	if s == 0 || int(s) >= len(sourceNames) {
		return "source?"
	}
	return sourceNames[s]
}

// ParseSource is the inverse of String.
func ParseSource(text string) (Source, error) {
	if i := slices.Index(sourceNames[:], text); i > 0 {
		return Source(i), nil
	}
	return 0, fmt.Errorf("price source %q: must be pyth, pool or operator", text)
}

// MaxAhead is how far ahead of our clock the time of a price may be, in nanoseconds.
const MaxAhead = 5_000_000_000

// MaxSources bounds a rule's sources.
const MaxSources = 3

// Rule says which sources price an asset and which of their prices are usable.
type Rule struct {
	Sources          []Source // 1 to MaxSources, each once, in the order of preference
	MaxAge           int64    // nanoseconds, above 0
	MaxSpreadBps     uint16   // between usable sources, 1 to market.MaxBps-1
	MaxConfidenceBps uint16   // of a source's own price, 1 to market.MaxBps-1
}

// ErrRule means that a rule is out of its ranges.
var ErrRule = errors.New("prices: invalid rule")

// Validate checks the ranges. Errors: [ErrRule].
func (r *Rule) Validate() error {
	switch {
	case len(r.Sources) == 0 || len(r.Sources) > MaxSources:
		return fmt.Errorf("%w: %d sources: must be 1 to %d", ErrRule, len(r.Sources), MaxSources)
	case r.MaxAge <= 0:
		return fmt.Errorf("%w: maximum age %d: must be above 0", ErrRule, r.MaxAge)
	case r.MaxSpreadBps == 0 || r.MaxSpreadBps >= market.MaxBps:
		return fmt.Errorf("%w: maximum spread %d bps: must be 1 to %d", ErrRule, r.MaxSpreadBps, market.MaxBps-1)
	case r.MaxConfidenceBps == 0 || r.MaxConfidenceBps >= market.MaxBps:
		return fmt.Errorf("%w: maximum confidence %d bps: must be 1 to %d", ErrRule, r.MaxConfidenceBps, market.MaxBps-1)
	}
	for i, s := range r.Sources {
		if s.String() == "source?" || slices.Contains(r.Sources[:i], s) {
			return fmt.Errorf("%w: source %d of %v is unknown or listed twice", ErrRule, i+1, r.Sources)
		}
	}
	return nil
}

// Observation is the price of one source.
type Observation struct {
	Source     Source
	Price      market.USDPrice // 0: the source has no price
	Confidence market.USDPrice // half the width of the interval around Price; 0: the source has none
	At         int64           // when the price was published, Unix nanoseconds
	// NoQuorum: the nodes have no majority for a price, and this is the last one that they
	// had. It holds until it is too old.
	NoQuorum bool
}

// Fault is why a source or an asset has no price.
type Fault uint8

const (
	NoFault      Fault = 0
	Missing      Fault = 1 // the source has no price
	TooOld       Fault = 2
	FromFuture   Fault = 3
	TooUncertain Fault = 4 // the confidence interval is too wide
	Disagree     Fault = 5 // usable sources are too far apart
	NoQuorum     Fault = 6 // the configured nodes have no majority for a price
)

var faultNames = [...]string{
	"", "price_missing", "price_too_old", "price_from_the_future", "price_too_uncertain", "price_sources_disagree", "price_without_quorum",
}

// String returns the name of the fault in documents, metrics and logs; empty for NoFault.
func (f Fault) String() string {
	if int(f) >= len(faultNames) {
		return "fault?"
	}
	return faultNames[f]
}

// Judgement is the price of an asset, or why it has none.
type Judgement struct {
	Observation       // of the source that gives the price; zero: there is none
	Fault       Fault // 0: there is a price
	// Faults are those of the rule's sources, in the order of the rule.
	Faults [MaxSources]Fault
}

// Judge returns the price at the time now. observed has at most one observation of a
// source. A source without one is Missing; a source that is not in the rule is ignored.
// Without a price, Fault is that of the preferred source, or Disagree.
func (r *Rule) Judge(now int64, observed []Observation) Judgement {
	var j Judgement
	for i, s := range r.Sources {
		var o Observation
		if at := slices.IndexFunc(observed, func(o Observation) bool { return o.Source == s }); at >= 0 {
			o = observed[at]
		}
		switch j.Faults[i] = r.fault(now, &o); {
		case j.Faults[i] != NoFault:
		case j.Price == 0:
			j.Observation = o
		case apart(j.Price, o.Price, r.MaxSpreadBps):
			j.Fault = Disagree
		}
	}
	if j.Price == 0 {
		j.Fault = j.Faults[0]
	}
	if j.Fault != NoFault {
		j.Observation = Observation{}
	}
	return j
}

func (r *Rule) fault(now int64, o *Observation) Fault {
	switch {
	case o.NoQuorum && (o.Price == 0 || now-o.At > r.MaxAge):
		return NoQuorum
	case o.Price == 0 || o.Price > market.MaxUSDPrice:
		return Missing
	case o.At > now+MaxAhead:
		return FromFuture
	case now-o.At > r.MaxAge:
		return TooOld
	case beyond(o.Confidence, o.Price, r.MaxConfidenceBps):
		return TooUncertain
	}
	return NoFault
}

// apart reports whether two prices differ by more than bps of the lower one.
func apart(a, b market.USDPrice, bps uint16) bool {
	return beyond(max(a, b)-min(a, b), min(a, b), bps)
}

// beyond reports whether part is more than bps of whole, without rounding.
func beyond(part, whole market.USDPrice, bps uint16) bool {
	return market.Mul(uint64(part), market.MaxBps).Cmp(market.Mul(uint64(whole), uint64(bps))) > 0
}
