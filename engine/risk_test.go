package engine

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// riskLab is one instrument and one participant under random limits, with orders of another
// participant that move the reference price.
type riskLab struct {
	state  *State
	limits Limits
	next   market.OrderID
}

func newRiskLab(t *rapid.T) *riskLab {
	l := &riskLab{state: NewState(StateOptions{MaxOrders: 1000})}
	in := testInstrument(0)
	in.MaxQty, in.MaxPrice = market.MaxQty, market.MaxPrice
	c, err := DefineInstrumentCommand(&in)
	mustApplyRapid(t, l.state, c, err)
	big := rapid.Bool().Draw(t, "big")
	scale := func(n uint64) uint64 {
		if big {
			return n << 39
		}
		return n
	}
	l.limits = Limits{
		MaxQty:        market.Qty(scale(rapid.Uint64Range(0, 200).Draw(t, "max qty"))),
		MaxNotional:   market.Mul(scale(rapid.Uint64Range(0, 100).Draw(t, "notional qty")), scale(100)),
		MaxOpenOrders: rapid.Int32Range(0, 5).Draw(t, "max open"),
		BandBps:       rapid.Uint16Range(0, 3000).Draw(t, "band"),
	}
	c, err = SetRiskCommand(1, 0, l.limits)
	mustApplyRapid(t, l.state, c, err)
	c, err = SetRiskCommand(2, 0, Limits{})
	mustApplyRapid(t, l.state, c, err)
	return l
}

func mustApplyRapid(t *rapid.T, s *State, c Command, err error) []event.Event {
	if err != nil {
		t.Fatal(err)
	}
	return applyTo(s, c)
}

// draw makes a well-formed order.
func (l *riskLab) draw(t *rapid.T, participant market.ParticipantID) book.Order {
	l.next++
	shift := rapid.SampledFrom([]uint{0, 0, 0, 39}).Draw(t, "shift")
	o := book.Order{
		ID: l.next, Participant: participant, Side: market.Side(rapid.Uint8Range(1, 2).Draw(t, "side")),
		Type: book.Type(rapid.Uint8Range(1, 4).Draw(t, "type")), TIF: book.TIF(rapid.Uint8Range(1, 3).Draw(t, "tif")),
		STP: book.STPCancelOldest, Qty: market.Qty(rapid.Int64Range(1, 250).Draw(t, "qty") << shift),
	}
	price := func(label string) market.Price {
		return market.Price(rapid.Int64Range(60, 140).Draw(t, label) << shift)
	}
	if o.Type == book.Limit || o.Type == book.StopLimit {
		o.Price = price("price")
	}
	if o.Type == book.Stop || o.Type == book.StopLimit {
		o.Stop = price("stop")
	}
	return o
}

// broken is the model: the limits that o breaks before it is entered, by wide arithmetic
// and the documentation of Limits.
func (l *riskLab) broken(o *book.Order) map[event.Reason]bool {
	b := l.state.instruments[0].book
	wide := func(n int64) *big.Int { return big.NewInt(n) }
	last, bid, ask := int64(b.lastTrade()), int64(b.best(market.Buy)), int64(b.best(market.Sell))

	var reference *big.Rat
	switch {
	case o.Type == book.StopLimit:
		reference = big.NewRat(int64(o.Stop), 1)
	case last != 0:
		reference = big.NewRat(last, 1)
	case bid != 0 && ask != 0:
		reference = big.NewRat(bid+ask, 2)
	}
	out := map[event.Reason]bool{}
	if l.limits.MaxQty != 0 && o.Qty > l.limits.MaxQty {
		out[event.ReasonMaxQty] = true
	}
	judged := wide(int64(o.Price))
	switch o.Type {
	case book.Stop:
		judged = wide(int64(o.Stop))
	case book.Market:
		judged = wide(int64(b.best(o.Side.Opposite())))
		if reference != nil {
			up := new(big.Int).Add(reference.Num(), new(big.Int).Sub(reference.Denom(), wide(1)))
			up.Quo(up, reference.Denom())
			if up.Cmp(judged) > 0 {
				judged = up
			}
		}
	}
	limit := new(big.Int).Lsh(new(big.Int).SetUint64(l.limits.MaxNotional.Hi), 64)
	limit.Add(limit, new(big.Int).SetUint64(l.limits.MaxNotional.Lo))
	if limit.Sign() != 0 && new(big.Int).Mul(judged, wide(int64(o.Qty))).Cmp(limit) > 0 {
		out[event.ReasonMaxNotional] = true
	}
	if l.limits.BandBps != 0 && o.Price != 0 && reference != nil {
		away := new(big.Rat).Sub(big.NewRat(int64(o.Price), 1), reference)
		width := new(big.Rat).Mul(reference, big.NewRat(int64(l.limits.BandBps), 10_000))
		if away.Abs(away).Cmp(width) > 0 {
			out[event.ReasonPriceBand] = true
		}
	}
	// A stop waits, whatever it does once it is triggered.
	stays := o.Type == book.Limit && o.TIF == book.GTC || o.Type == book.Stop || o.Type == book.StopLimit
	if l.limits.MaxOpenOrders != 0 && stays && b.open(o.Participant) >= int(l.limits.MaxOpenOrders) {
		out[event.ReasonMaxOpenOrders] = true
	}
	return out
}

var riskReasons = map[event.Reason]bool{
	event.ReasonMaxQty: true, event.ReasonMaxNotional: true, event.ReasonPriceBand: true, event.ReasonMaxOpenOrders: true,
}

// TestRiskIsExact: an order passes exactly if it breaks no limit, and a reject names the
// first broken limit in the order of Limits' checks.
func TestRiskIsExact(t *testing.T) {
	refused := map[event.Reason]int{}
	every := func() bool { return len(refused) == len(riskReasons) }
	runtest.CheckUntil(t, every, func(t *rapid.T) {
		l := newRiskLab(t)
		for range rapid.IntRange(1, 40).Draw(t, "orders") {
			participant := market.ParticipantID(rapid.Uint8Range(1, 2).Draw(t, "who"))
			o := l.draw(t, participant)
			c := Command{Kind: NewOrder, Order: o}
			if participant == 2 {
				applyTo(l.state, c)
				continue
			}
			want := l.broken(&o)
			got := applyTo(l.state, c)[0]
			why := event.Reason(got.Code)
			if got.Kind == event.Rejected && riskReasons[why] {
				refused[why]++
				if !want[why] {
					t.Fatalf("%+v refused: %v, which it does not break", o, why)
				}
			} else if len(want) != 0 {
				t.Fatalf("%+v got through (%+v) and breaks %v", o, got, want)
			}
		}
	})
}

// TestBandEdgeIsTheLastPrice: the price in a band reject is the last one that passes.
func TestBandEdgeIsTheLastPrice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewState(StateOptions{})
		def := testInstrument(0)
		def.MaxPrice = market.MaxPrice
		c, err := DefineInstrumentCommand(&def)
		mustApplyRapid(t, s, c, err)
		in := &s.instruments[0]
		in.book.stored().SetLastTrade(market.Price(rapid.Int64Range(1, int64(market.MaxPrice)).Draw(t, "last")))
		bps := rapid.Uint16Range(1, MaxBandBps).Draw(t, "band")
		o := &book.Order{Price: market.Price(rapid.Int64Range(1, int64(market.MaxPrice)).Draw(t, "price"))}
		why, edge := checkBand(o, in, bps)
		if why == event.ReasonNone {
			return
		}
		outward := market.Price(1)
		if o.Price < in.book.lastTrade() {
			outward = -1
		}
		if why, _ := checkBand(&book.Order{Price: market.Price(edge)}, in, bps); why != event.ReasonNone {
			t.Fatalf("%d is outside as well", edge)
		}
		if why, _ := checkBand(&book.Order{Price: market.Price(edge) + outward}, in, bps); why == event.ReasonNone {
			t.Fatalf("%d is not the last inside", edge)
		}
	})
}

func TestLimitsCompileBack(t *testing.T) {
	for _, l := range []Limits{{}, {MaxQty: 1}, {MaxNotional: market.Uint128{Lo: 1}}, {MaxOpenOrders: 1}, {BandBps: 1}} {
		if got := l.compile().export(); got != l {
			t.Errorf("%+v became %+v", l, got)
		}
	}
}
