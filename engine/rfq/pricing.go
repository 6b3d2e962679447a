package rfq

import (
	"cmp"
	"math"
	"slices"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// Prices gives the desk the mid prices of the order books.
type Prices interface {
	// Mid returns the mid price of our book in 10^-9 quote units per base unit, rounded up;
	// false if a side is empty or the instrument is halted.
	Mid(in market.InstrumentID) (market.USDPrice, bool)
}

const (
	// usdPriceOne is one dollar as a USDPrice.
	usdPriceOne = 1_000_000_000
	// priceToUSD is the number of USDPrice units in a USD unit.
	priceToUSD = 1_000
)

// Corridor returns the lowest and highest reference price that the anchor of p allows: anchor ×
// (1 - corridor) rounded up and anchor × (1 + corridor) rounded down; zeros without an anchor.
func Corridor(p *Pair) (lowest, highest market.USDPrice) {
	low, errLow := market.MulDivCeil(uint64(p.Anchor), market.MaxBps-uint64(p.CorridorBps), market.MaxBps)
	high, errHigh := market.MulDivFloor(uint64(p.Anchor), market.MaxBps+uint64(p.CorridorBps), market.MaxBps)
	if errLow != nil || errHigh != nil {
		return 0, 0
	}
	return market.USDPrice(low), market.USDPrice(high)
}

// Price returns the unit price of a fill of size f: reference × (1 - discount), rounded up.
// f must be Valid.
func (p *Policy) Price(reference market.USDPrice, f market.FillUSD) market.USDPrice {
	price, err := market.MulDivCeil(uint64(reference), market.MaxBps-uint64(p.Discounts[f-1]), market.MaxBps)
	if err != nil { // a discount above 100 %, which no valid policy has
		return 0
	}
	return market.USDPrice(price)
}

// refusal is why a request is refused; reason 0 = it is not.
type refusal struct {
	reason event.Reason
	limit  int64
}

// clampToInt64 returns atoms as a limit, at most math.MaxInt64.
func clampToInt64(atoms uint64) int64 { return int64(min(atoms, math.MaxInt64)) }

// pricing is the input of prices: the policy, the pairs by instrument, the prices of rails by
// rail, the books and the time.
type pricing struct {
	policy *Policy
	pairs  []Pair
	rails  []RailPrice
	books  Prices
	at     int64
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

// reference returns the price before discounts: own, the ticket's, or that of p's source.
// It must lie within the corridor.
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

// checkAnchor checks that p has a fresh anchor.
func (o *pricing) checkAnchor(p *Pair) refusal {
	switch {
	case p.Anchor == 0:
		return refusal{reason: event.ReasonPriceUnavailable}
	case tooOld(o.at, cmp.Or(p.PublishedAt, p.AnchorAt), p.MaxAge):
		return refusal{event.ReasonPriceStale, p.MaxAge}
	}
	return refusal{}
}

// checkCorridor checks that ref lies within p's corridor. The refusal's limit is the bound
// that ref is beyond.
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

// current returns the reference price of p and the price of the rail's asset. A book whose
// price has left the corridor has none: it contradicts the anchor.
func (o *pricing) current(p *Pair, rail market.Rail) (reference, asset market.USDPrice, refused refusal) {
	reference, refused = o.reference(p, 0)
	switch refused.reason {
	case 0:
	case event.ReasonPriceCorridor:
		return 0, 0, refusal{reason: event.ReasonPriceUnavailable}
	default:
		return 0, 0, refused
	}
	asset, refused = o.priceOfRail(rail)
	return reference, asset, refused
}

// priceOfRail returns the dollar price of the rail's asset.
func (o *pricing) priceOfRail(rail market.Rail) (market.USDPrice, refusal) {
	if rail == market.RailUSDC {
		return usdPriceOne, refusal{}
	}
	p := findRailPrice(o.rails, rail)
	switch {
	case p == nil || p.Price == 0:
		return 0, refusal{reason: event.ReasonPriceUnavailable}
	case tooOld(o.at, cmp.Or(p.PublishedAt, p.At), p.MaxAge):
		return 0, refusal{event.ReasonPriceStale, p.MaxAge}
	}
	return p.Price, refusal{}
}

func findRailPrice(rails []RailPrice, rail market.Rail) *RailPrice {
	i, ok := slices.BinarySearchFunc(rails, RailPrice{Rail: rail}, compareRailPrices)
	if !ok {
		return nil
	}
	return &rails[i]
}

// terms computes the terms of a at the current prices.
func (o *pricing) terms(a fillRequest, t *Ticket, into *Terms) refusal {
	p := findPair(o.pairs, t.Instrument)
	if !t.Rails.Has(a.rail) || !p.Rails.Has(a.rail) || o.policy.PayTo[a.rail] == (market.Address{}) {
		return refusal{reason: event.ReasonRailNotAccepted}
	}
	ref, refused := o.reference(p, t.Reference)
	if refused.reason != 0 {
		return refused
	}
	asset, refused := o.priceOfRail(a.rail)
	if refused.reason != 0 {
		return refused
	}
	price := o.policy.Price(ref, a.fill)
	base, enough := baseFor(a.fill, price, p.BaseDecimals)
	payment, fits := paymentFor(a.fill, a.rail, asset)
	if !enough || !fits {
		return refusal{reason: event.ReasonPriceUnavailable}
	}
	*into = Terms{
		Ticket: a.ticket, Tranche: a.tranche, Instrument: t.Instrument, Fill: a.fill, Rail: a.rail,
		DiscountBps: o.policy.Discounts[a.fill-1], FeeBps: o.policy.FeeBps,
		Reference: ref, Price: price, Base: base, Payment: payment, PayTo: o.policy.PayTo[a.rail],
	}
	if o.policy.Rules == RulesGuarded {
		into.Market, into.RailPrice, refused = o.current(p, a.rail)
	}
	return refused
}

// sourcePrice returns the reference price of p's source. The pair Via converts a book's
// quote asset into dollars; its own source may not need a third pair (direct).
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

// baseFor returns the atoms that fill buys at price, rounded down, where a unit has 10^decimals
// atoms. It returns false if that is 0 or more than 64 bits.
func baseFor(fill market.FillUSD, price market.USDPrice, decimals uint8) (uint64, bool) {
	base, err := market.MulDivFloor(uint64(fill.USD()), market.Pow10(int(decimals)+market.USDPriceDecimals-market.USDDecimals), uint64(price))
	return base, err == nil && base != 0
}

// paymentFor returns the atoms of the rail's asset for fill, rounded up; a USDC atom is a
// USD unit. It returns false if that is more than 64 bits.
func paymentFor(fill market.FillUSD, rail market.Rail, price market.USDPrice) (uint64, bool) {
	if rail == market.RailUSDC {
		return uint64(fill.USD()), true
	}
	atoms, err := market.MulDivCeil(uint64(fill.USD()), market.Pow10(rail.Decimals())*priceToUSD, uint64(price))
	return atoms, err == nil
}

func validPrice(p market.USDPrice) bool { return p >= 1 && p <= market.MaxUSDPrice }
