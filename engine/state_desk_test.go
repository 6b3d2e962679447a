package engine

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// TestMid compares the mid price with unbounded arithmetic.
func TestMid(t *testing.T) {
	fits, tooLarge := 0, 0
	runtest.CheckUntil(t, func() bool { return fits > 0 && tooLarge > 0 }, func(t *rapid.T) {
		decimals := rapid.IntRange(0, market.MaxDecimals).Draw(t, "decimals")
		bits := rapid.IntRange(1, 63).Draw(t, "tick bits")
		tick := rapid.Uint64Range(1, 1<<bits-1).Draw(t, "tick")
		ticks := rapid.Uint64Range(2, 2*uint64(market.MaxPrice)).Draw(t, "bid + ask")
		want := new(big.Int).Mul(new(big.Int).SetUint64(ticks), new(big.Int).SetUint64(tick))
		want.Mul(want, new(big.Int).Exp(big.NewInt(10), big.NewInt(market.USDPriceDecimals), nil))
		divisor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
		divisor.Mul(divisor, big.NewInt(2))
		want.Add(want, divisor).Sub(want, big.NewInt(1)).Div(want, divisor)
		in := market.Instrument{PriceDecimals: uint8(decimals), Tick: tick}
		got, ok := in.MidPrice(market.Price(ticks/2), market.Price(ticks-ticks/2))
		if ok != want.IsUint64() || ok && uint64(got) != want.Uint64() {
			t.Fatalf("%d × %d at %d decimals: %d %v, want %v", ticks, tick, decimals, got, ok, want)
		}
		if ok {
			fits++
		} else {
			tooLarge++
		}
	})
}

func TestMidNeedsBothSides(t *testing.T) {
	s := NewState(StateOptions{})
	in := testInstrument(0) // 2 decimals, tick 1
	c, err := DefineInstrumentCommand(&in)
	mustApply(t, s, c, err)
	c, err = SetRiskCommand(1, AllInstruments, Limits{})
	mustApply(t, s, c, err)
	want := func(mid market.USDPrice, there bool) {
		t.Helper()
		if got, ok := s.Mid(0); ok != there || ok && got != mid {
			t.Errorf("mid %d %v, want %d %v", got, ok, mid, there)
		}
	}
	want(0, false)
	bid := testOrder(1, 1)
	mustApply(t, s, bid, nil)
	want(0, false)
	ask := testOrder(2, 1)
	ask.Order.Side, ask.Order.Price = market.Sell, 103
	mustApply(t, s, ask, nil)
	want(1_015_000_000, true)
	mustApply(t, s, Command{Kind: SetInstrument, Status: StatusHalted}, nil)
	want(0, false)
	mustApply(t, s, Command{Kind: SetInstrument, Status: StatusTrading}, nil)
	want(1_015_000_000, true)
	if _, ok := s.Mid(1); ok {
		t.Error("an undefined instrument has a mid price")
	}
	if _, ok := s.Mid(AllInstruments); ok {
		t.Error("AllInstruments has a mid price")
	}
	cancel := Command{Kind: CancelOrder}
	cancel.Order.ID, cancel.Order.Participant = 1, 1
	mustApply(t, s, cancel, nil)
	want(0, false)
}

// TestExpirySlices: a Tick sweeps a slice of what is due at the desk, an order a smaller one,
// and NextExpiry is due until nothing is left, also after a restart.
func TestExpirySlices(t *testing.T) {
	s := NewState(StateOptions{})
	out := event.NewGrowingSink(64)
	apply := func(cs ...Command) (removed int) {
		out.Reset()
		for _, c := range cs {
			c.Seq, c.At = s.Seq()+1, max(c.At, s.At())
			s.Apply(&c, out)
		}
		var r rfq.Reader
		for i := range out.Events() {
			if record, _, ok := r.Add(&out.Events()[i]); ok && record.Tag() == rfq.TagRemoved {
				removed++
			}
		}
		return removed
	}
	policy := testPolicy(second, second)
	policy.Rules, policy.LateWindow, policy.UnprovenTTL = rfq.RulesGuarded, 0, second
	d := &deskFlow{}
	for _, r := range []rfq.Request{
		&rfq.SetPolicy{Policy: policy}, &rfq.SetPair{Pair: testPair(0)}, &rfq.SetAnchor{Price: 1_000_000_000},
		&rfq.SetInventory{Atoms: 1 << 60}, &rfq.PostTicket{Label: "block", Capacities: []market.USD{1_000_000_000}},
	} {
		apply(d.pack(r)...)
	}
	const quotes = 3 * rfq.TickSlice
	for range quotes {
		apply(d.pack(&rfq.RequestQuote{Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailUSDC})...)
	}
	if n := apply(Command{Kind: Tick, At: second - 1}); n != 0 || s.NextExpiry() == 0 {
		t.Fatalf("%d quotes ended too early, next expiry %d", n, s.NextExpiry())
	}
	if n := apply(Command{Kind: Tick, At: 2 * second}); n != rfq.TickSlice {
		t.Fatalf("a tick ended %d quotes", n)
	}
	if n := apply(order(1, 1, market.Buy, 100, 5)); n != rfq.CommandSlice || s.NextExpiry() > s.At() {
		t.Fatalf("an order ended %d quotes, next expiry %d", n, s.NextExpiry())
	}
	again, err := RestoreState(s.AppendSnapshot(nil), StateOptions{})
	if err != nil || again.NextExpiry() != s.NextExpiry() {
		t.Fatalf("%v, next expiry %d", err, again.NextExpiry())
	}
	s = again
	left := quotes - rfq.TickSlice - rfq.CommandSlice
	for s.NextExpiry() != 0 {
		n := apply(Command{Kind: Tick})
		if left -= n; n == 0 || n > rfq.TickSlice {
			t.Fatalf("a tick ended %d quotes, %d are left", n, left)
		}
	}
	if left != 0 {
		t.Fatalf("%d quotes are left", left)
	}
}
