package orders

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/engine/book"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

func sessionNumbered(n uint16) *Session {
	return &Session{Session: &reports.Session{Session: &session.Session{Number: n}}}
}

func TestOrderRecord(t *testing.T) {
	t.Parallel()
	s := sessionNumbered(7)
	find := func(n uint16) *Session {
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
	other := order{owner: sessionNumbered(8), ClientOrder: wire.ClientOrder{ClOrdID: "x"}}
	if o, err := parseOrderRecord(1, other.appendRecord(nil), find); o != nil || err != nil {
		t.Errorf("order of a session that is no more: %v, %v", o, err)
	}
}

// TestOrderRecords: records with and without terms are read as they were written.
func TestOrderRecords(t *testing.T) {
	t.Parallel()
	s := sessionNumbered(7)
	for _, terms := range []wire.OrderTerms{{}, {Account: "x"}, {Stop: 1, Display: 2, MinQty: 3, ExpireAt: 4, PostOnly: true, Account: strings.Repeat("a", wire.MaxAccount)}} {
		o := &order{owner: s, ClientOrder: wire.ClientOrder{ID: 7, ClOrdID: "c", Instrument: 1, Side: 1, Type: book.Limit, TIF: book.GTC, Status: '0', Price: 5, Total: 6, OrderTerms: terms}}
		record := o.appendRecord(nil)
		got, err := parseOrderRecord(7, record, func(uint16) *Session { return s })
		if err != nil || got.ClientOrder != o.ClientOrder {
			t.Errorf("%+v, %v, want %+v", got.ClientOrder, err, o.ClientOrder)
		}
		for n := range record {
			if o, err := parseOrderRecord(7, record[:n], func(uint16) *Session { return s }); err == nil && n <= orderRecordSize {
				t.Errorf("%d bytes of a record are the order %+v", n, o)
			}
		}
	}
}
