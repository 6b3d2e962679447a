package rfq

import (
	"cmp"
	"math"
	"slices"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// Prices is where the desk sees the order books.
type Prices interface {
	// Mid returns the middle of our book in 10^-9 quote units per base unit,
	// rounded up; false where it has no two sides, or is halted.
	Mid(in market.InstrumentID) (market.USDPrice, bool)
}

const (
	// usdPriceOne is one dollar as a USDPrice.
	usdPriceOne = 1_000_000_000
	// priceToUSD is how many USDPrice units a USD unit has.
	priceToUSD = 1_000
)

// Corridor returns the lowest and the highest reference that p's anchor allows:
// anchor × (1 - corridor) rounded up, anchor × (1 + corridor) rounded down. Both
// are 0 where there is no anchor.
func Corridor(p *Pair) (lowest, highest market.USDPrice) {
	low, errLow := market.MulDivCeil(uint64(p.Anchor), market.MaxBps-uint64(p.CorridorBps), market.MaxBps)
	high, errHigh := market.MulDivFloor(uint64(p.Anchor), market.MaxBps+uint64(p.CorridorBps), market.MaxBps)
	if errLow != nil || errHigh != nil {
		return 0, 0
	}
	return market.USDPrice(low), market.USDPrice(high)
}

// Price returns what a fill of size f costs a unit: reference × (1 - discount),
// rounded up. f must be Valid.
func (p *Policy) Price(reference market.USDPrice, f market.FillUSD) market.USDPrice {
	price, err := market.MulDivCeil(uint64(reference), market.MaxBps-uint64(p.Discounts[f-1]), market.MaxBps)
	if err != nil { // a discount above the whole, which no policy has
		return 0
	}
	return market.USDPrice(price)
}

// refusal says why a request was refused; Reason 0 = it was not.
type refusal struct {
	reason event.Reason
	limit  int64
}

// clampToInt64 is a number of atoms as a limit: what passes an int64 is its largest.
func clampToInt64(atoms uint64) int64 { return int64(min(atoms, math.MaxInt64)) }

// pricing is what pricing looks at: the pairs in order of their instruments, the
// books, and the time.
type pricing struct {
	pairs []Pair
	books Prices
	at    int64
}

func findPair(pairs []Pair, in market.InstrumentID) *Pair {
	i, ok := slices.BinarySearchFunc(pairs, in, func(p Pair, in market.InstrumentID) int {
		return cmp.Compare(p.Instrument, in)
	})
	if !ok {
		return nil
	}
	return &pairs[i]
}

// reference returns the price before discounts of p, or of a ticket on p that
// has its own. It lies in the corridor.
func (o *pricing) reference(p *Pair, own market.USDPrice) (market.USDPrice, refusal) {
	if r := o.checkAnchor(p); r.reason != 0 {
		return 0, r
	}
	ref := own
	if ref == 0 {
		var r refusal
		if ref, r = o.sourcePrice(p, true); r.reason != 0 {
			return 0, r
		}
	}
	return ref, checkCorridor(p, ref)
}

// checkAnchor checks that p has an anchor young enough.
func (o *pricing) checkAnchor(p *Pair) refusal {
	switch {
	case p.Anchor == 0:
		return refusal{reason: event.ReasonPriceUnavailable}
	case tooOld(o.at, p.AnchorAt, p.MaxAge):
		return refusal{event.ReasonPriceStale, p.MaxAge}
	}
	return refusal{}
}

// checkCorridor checks that ref lies in p's corridor. The limit is the edge that it is
// beyond.
func checkCorridor(p *Pair, ref market.USDPrice) refusal {
	lowest, highest := Corridor(p)
	switch {
	case ref < lowest:
		return refusal{event.ReasonPriceCorridor, int64(lowest)}
	case ref > highest:
		return refusal{event.ReasonPriceCorridor, int64(highest)}
	}
	return refusal{}
}

func tooOld(at, since, maxAge int64) bool { return maxAge != 0 && at-since > maxAge }

// sourcePrice returns the reference that p's source gives. A book's quote asset is
// turned into dollars by the pair Via, whose own source may not need another.
func (o *pricing) sourcePrice(p *Pair, direct bool) (market.USDPrice, refusal) {
	if p.Source == SourceOperator {
		return p.Anchor, refusal{}
	}
	none := refusal{reason: event.ReasonPriceUnavailable}
	if o.books == nil {
		return 0, none
	}
	mid, ok := o.books.Mid(p.Instrument)
	if !ok || mid == 0 {
		return 0, none
	}
	if p.Via == NoInstrument {
		return mid, refusal{}
	}
	via := findPair(o.pairs, p.Via)
	if !direct || via == nil {
		return 0, none
	}
	if r := o.checkAnchor(via); r.reason != 0 {
		return 0, r
	}
	dollars, r := o.sourcePrice(via, false)
	if r.reason != 0 {
		return 0, r
	}
	if r := checkCorridor(via, dollars); r.reason != 0 {
		return 0, r
	}
	ref, err := market.MulDivCeil(uint64(mid), uint64(dollars), usdPriceOne)
	if err != nil {
		return 0, none
	}
	return market.USDPrice(ref), refusal{}
}

// baseFor returns how many atoms, of which a unit has 10^decimals, fill buys at
// price: rounded down. False where that is none, or more than a word holds.
func baseFor(fill market.FillUSD, price market.USDPrice, decimals uint8) (uint64, bool) {
	base, err := market.MulDivFloor(uint64(fill.USD()), market.Pow10(int(decimals)+market.USDPriceDecimals-market.USDDecimals), uint64(price))
	return base, err == nil && base != 0
}

// paymentFor returns how many atoms of the rail's asset fill is: a USDC atom for
// each USD unit; or fill ÷ the price of a unit, rounded up. False where that is
// more than a word holds.
func paymentFor(fill market.FillUSD, rail market.Rail, price market.USDPrice) (uint64, bool) {
	if rail == market.RailUSDC {
		return uint64(fill.USD()), true
	}
	atoms, err := market.MulDivCeil(uint64(fill.USD()), market.Pow10(rail.Decimals())*priceToUSD, uint64(price))
	return atoms, err == nil
}
