package fixgw

import (
	"testing"

	"pgregory.net/rapid"

	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

func TestOrderRecord(t *testing.T) {
	t.Parallel()
	s := &blotter{Session: &session.Session{Number: 7}}
	find := func(n uint16) *blotter {
		if n == 7 {
			return s
		}
		return nil
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64()
		want := order{owner: s, ClientOrder: wire.ClientOrder{
			ID: market.OrderID(n.Draw(t, "id")), ClOrdID: rapid.StringN(1, 20, 40).Draw(t, "clOrdID"),
			Instrument: market.InstrumentID(rapid.Uint16().Draw(t, "in")), Side: market.Side(rapid.Byte().Draw(t, "side")),
			Status: rapid.Byte().Draw(t, "status"), Price: market.Price(n.Draw(t, "price")), Total: market.Qty(n.Draw(t, "total")),
			Leaves: market.Qty(n.Draw(t, "leaves")), Cum: market.Qty(n.Draw(t, "cum")),
			Notional: market.Uint128{Hi: n.Draw(t, "hi"), Lo: n.Draw(t, "lo")},
		}}
		got, err := parseOrderRecord(want.ID, want.appendRecord(nil), find)
		if err != nil || *got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	})
	for _, bad := range [][]byte{nil, {1}, make([]byte, orderRecordSize+5)} {
		if _, err := parseOrderRecord(1, bad, find); err == nil {
			t.Errorf("%x passed", bad)
		}
	}
	other := order{owner: &blotter{Session: &session.Session{Number: 8}}, ClientOrder: wire.ClientOrder{ClOrdID: "x"}}
	if o, err := parseOrderRecord(1, other.appendRecord(nil), find); o != nil || err != nil {
		t.Errorf("order of a session that is no more: %v, %v", o, err)
	}
	if _, err := parseAnswer([]byte{1, 2}); err == nil {
		t.Error("short answer passed")
	}
}
