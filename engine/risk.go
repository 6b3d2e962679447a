package engine

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// MaxBandBps is the widest price band, 100 %.
const MaxBandBps = 10_000

// Limits bound one participant's orders on one instrument. A zero field is no limit; the
// instrument's own limits always apply.
type Limits struct {
	MaxQty market.Qty // of one order, in lots
	// MaxNotional bounds price × quantity of one order, in tick × lot. A market order counts at
	// the reference price or the best opposite price, whichever is higher; a stop at its
	// trigger.
	MaxNotional market.Uint128
	// MaxOpenOrders bounds the live orders, waiting stops included. It does not apply to an
	// order that never rests.
	MaxOpenOrders int32
	// BandBps bounds the distance of a limit price from the reference price in either
	// direction, in basis points (our choice: it catches fat fingers and forgotten orders).
	// The reference price is the last trade; or the mid price, if nothing has traded; with
	// neither, the band does not apply. A stop-limit is compared with its own trigger.
	BandBps uint16
}

// Validate returns an error that names the first limit out of its range.
func (l Limits) Validate() error {
	switch {
	case l.MaxQty < 0 || l.MaxQty > market.MaxQty:
		return fmt.Errorf("max_qty %d lots: must be 0 to %d", l.MaxQty, market.MaxQty)
	case l.MaxOpenOrders < 0:
		return fmt.Errorf("max_open_orders %d: must not be negative", l.MaxOpenOrders)
	case l.BandBps > MaxBandBps:
		return fmt.Errorf("band_bps %d: at most %d", l.BandBps, MaxBandBps)
	}
	return nil
}

func (l Limits) compile() limits {
	return limits{
		maxQty: cmp.Or(l.MaxQty, math.MaxInt64), maxNotional: cmp.Or(l.MaxNotional, unlimited),
		maxOpen: cmp.Or(l.MaxOpenOrders, math.MaxInt32), bandBps: l.BandBps,
	}
}

// export undoes compile.
func (l limits) export() Limits {
	p := Limits{l.maxQty, l.maxNotional, l.maxOpen, l.bandBps}
	if p.MaxQty == math.MaxInt64 {
		p.MaxQty = 0
	}
	if p.MaxNotional == unlimited {
		p.MaxNotional = market.Uint128{}
	}
	if p.MaxOpenOrders == math.MaxInt32 {
		p.MaxOpenOrders = 0
	}
	return p
}

// limitsOn returns the limits that apply to an instrument.
func (p *participant) limitsOn(in market.InstrumentID) *limits {
	if int(in) < len(p.own) {
		return &p.own[in]
	}
	return &p.common
}

// Limits returns a participant's limits on an instrument; ok is false for an unknown
// participant.
func (s *State) Limits(id market.ParticipantID, in market.InstrumentID) (l Limits, ok bool) {
	if int(id) >= len(s.participants) || s.participants[id].status == 0 {
		return Limits{}, false
	}
	return s.participants[id].limitsOn(in).export(), true
}

// ParticipantStatus returns StatusKilled or StatusLive, or 0 for an unknown participant.
func (s *State) ParticipantStatus(id market.ParticipantID) uint8 {
	if int(id) >= len(s.participants) {
		return 0
	}
	return s.participants[id].status
}

// checkRisk returns the limit that a well-formed new order breaks. A limit order on a fast
// book that has traded passes here; explainRisk checks every limit.
func checkRisk(o *book.Order, in *instrument, l *limits) (event.Reason, int64) {
	if b := in.book.ladder; b != nil && o.Type == book.Limit && o.Qty <= l.maxQty {
		last := b.LastTrade()
		away := o.Price - last
		if away < 0 {
			away = -away
		}
		hi, lo := bits.Mul64(uint64(o.Price), uint64(o.Qty))
		if (hi < l.maxNotional.Hi || hi == l.maxNotional.Hi && lo <= l.maxNotional.Lo) &&
			last != 0 && (l.bandBps == 0 || away*MaxBandBps <= last*market.Price(l.bandBps)) &&
			b.OpenOrders(o.Participant) < int(l.maxOpen) {
			return event.ReasonNone, 0
		}
	}
	return explainRisk(o, in, l)
}

func explainRisk(o *book.Order, in *instrument, l *limits) (event.Reason, int64) {
	if o.Qty > l.maxQty {
		return event.ReasonMaxQty, int64(l.maxQty)
	}
	if reason, limit := checkNotional(o, in, l); reason != event.ReasonNone {
		return reason, limit
	}
	if l.bandBps != 0 && o.Price != 0 {
		if reason, limit := checkBand(o, in, l.bandBps); reason != event.ReasonNone {
			return reason, limit
		}
	}
	// IOC and FOK stops are live until they trigger.
	waits := o.Type == book.Stop || o.Type == book.StopLimit
	rests := o.Type == book.Limit && o.TIF != book.IOC && o.TIF != book.FOK
	if (waits || rests) && l.maxOpen != math.MaxInt32 && in.book.open(o.Participant) >= int(l.maxOpen) {
		return event.ReasonMaxOpenOrders, int64(l.maxOpen)
	}
	return event.ReasonNone, 0
}

// checkAmendRisk is checkRisk for an amend that changes the order was into o. Reducing the
// quantity at an unchanged price always passes, even under limits that were tightened since.
func checkAmendRisk(o, was *book.Order, in *instrument, l *limits) (event.Reason, int64) {
	moved := o.Price != was.Price || o.Stop != was.Stop
	if o.Qty > was.Qty && o.Qty > l.maxQty {
		return event.ReasonMaxQty, int64(l.maxQty)
	}
	if moved || o.Qty > was.Qty {
		if reason, limit := checkNotional(o, in, l); reason != event.ReasonNone {
			return reason, limit
		}
	}
	if moved && l.bandBps != 0 && o.Price != 0 {
		return checkBand(o, in, l.bandBps)
	}
	return event.ReasonNone, 0
}

func checkNotional(o *book.Order, in *instrument, l *limits) (event.Reason, int64) {
	price := o.Price
	if price == 0 {
		price = marketOrderPrice(o, in)
	}
	hi, lo := bits.Mul64(uint64(price), uint64(o.Qty))
	if hi > l.maxNotional.Hi || hi == l.maxNotional.Hi && lo > l.maxNotional.Lo {
		return event.ReasonMaxNotional, clampToInt64(l.maxNotional)
	}
	return event.ReasonNone, 0
}

// clampToInt64 returns u, or math.MaxInt64 if u is larger.
func clampToInt64(u market.Uint128) int64 {
	if u.Hi != 0 || u.Lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(u.Lo)
}

// marketOrderPrice returns the price at which an order without a limit price is valued.
func marketOrderPrice(o *book.Order, in *instrument) market.Price {
	if o.Stop != 0 {
		return o.Stop
	}
	best := in.book.best(o.Side.Opposite())
	return max(best, (doubledReference(in)+1)>>1)
}

// doubledReference returns twice the reference price, so that a mid price between two ticks is
// exact; 0 = none.
func doubledReference(in *instrument) market.Price {
	if last := in.book.lastTrade(); last != 0 {
		return 2 * last
	}
	bid := in.book.best(market.Buy)
	ask := in.book.best(market.Sell)
	if bid == 0 || ask == 0 {
		return 0
	}
	return bid + ask
}

// checkBand compares |price − reference| × 10,000 with reference × bps, both doubled: at most
// 2^48 × 2^14.
func checkBand(o *book.Order, in *instrument, bps uint16) (event.Reason, int64) {
	double := 2 * o.Stop
	if double == 0 {
		double = doubledReference(in)
	}
	away := 2*o.Price - double
	if away < 0 {
		away = -away
	}
	if double == 0 || away*MaxBandBps <= double*market.Price(bps) {
		return event.ReasonNone, 0
	}
	return event.ReasonPriceBand, bandEdge(o, double, bps)
}

// bandEdge returns the last price inside the band, on the side where o lies outside.
func bandEdge(o *book.Order, double market.Price, bps uint16) int64 {
	const whole = 2 * MaxBandBps
	if 2*o.Price > double {
		return int64(double) * (MaxBandBps + int64(bps)) / whole
	}
	return (int64(double)*(MaxBandBps-int64(bps)) + whole - 1) / whole
}
