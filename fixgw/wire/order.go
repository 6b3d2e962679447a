package wire

import (
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// ClientOrder is an order as its client sees it in the reports.
type ClientOrder struct {
	ID      market.OrderID
	ClOrdID string // the last one accepted for it

	Instrument market.InstrumentID
	Side       market.Side
	Type       book.Type
	TIF        book.TIF
	Status     byte // OrdStatus (39)
	// QuoteSet is the number of the quote set that the order belongs to; ClOrdID is then the
	// QuoteID that last changed it. 0 = an order of its own.
	QuoteSet uint16

	Price market.Price // limit; 0 for market and stop
	OrderTerms
	Total    market.Qty // OrderQty
	Leaves   market.Qty
	Cum      market.Qty
	Notional market.Uint128 // Σ price × quantity of its trades, in ticks × lots
}

// OrderTerms are what an order asks for beside its price and quantity. Reports repeat them,
// because FIX requires a field of the report that the order had.
type OrderTerms struct {
	Stop     market.Price // StopPx (99); 0 = none
	Display  market.Qty   // MaxFloor (111); 0 = all
	MinQty   market.Qty   // MinQty (110); 0 = any
	ExpireAt int64        // ExpireTime (126) of a GTD order, Unix nanoseconds; 0 = none
	PostOnly bool         // ExecInst (18) 6
	Account  string       // Account (1); "" = none
	// OnDisconnect is CancelOrdersOnDisconnect (8013) of the order; reports do not repeat it.
	OnDisconnect OnDisconnect
}

// OnDisconnect says what becomes of an order when the connection of its session ends. The
// numbers are on disk.
type OnDisconnect uint8

const (
	AsLogon         OnDisconnect = 0 // as the last Logon has it
	Cancelled       OnDisconnect = 1
	Kept            OnDisconnect = 2
	onDisconnectEnd OnDisconnect = 3
)

// Valid reports whether d is one of the constants.
func (d OnDisconnect) Valid() bool { return d < onDisconnectEnd }

// Cancels reports whether an order is cancelled; logon is that of the session's last Logon.
func (d OnDisconnect) Cancels(logon bool) bool { return d == Cancelled || d == AsLogon && logon }

// OnDisconnect reads CancelOrdersOnDisconnect (8013) of a D.
func (r *OrderRequest) OnDisconnect() (OnDisconnect, *Refusal) {
	switch {
	case r.onDisconnect == nil:
		return AsLogon, nil
	case string(r.onDisconnect) == "Y":
		return Cancelled, nil
	case string(r.onDisconnect) == "N":
		return Kept, nil
	}
	return 0, Refuse(OrdRejUnsupported, CodeInvalidField, "CancelOrdersOnDisconnect (8013) %.20q: must be Y or N", r.onDisconnect)
}

// Any reports whether there are terms.
func (t *OrderTerms) Any() bool { return *t != OrderTerms{} }

// append appends the fields of the terms.
func (t *OrderTerms) append(dst []byte, in *market.Instrument) []byte {
	if t.Stop > 0 {
		dst = in.AppendPrice(append(dst, "\x0199="...), t.Stop)
	}
	if t.ExpireAt > 0 {
		dst = AppendTime(append(dst, "\x01126="...), t.ExpireAt)
	}
	if t.PostOnly {
		dst = append(dst, "\x0118=6"...)
	}
	if t.MinQty > 0 {
		dst = in.AppendQty(append(dst, "\x01110="...), t.MinQty)
	}
	if t.Display > 0 {
		dst = in.AppendQty(append(dst, "\x01111="...), t.Display)
	}
	if t.Account != "" {
		dst = append(append(dst, "\x011="...), t.Account...)
	}
	return dst
}

// TagSelfTrade is SelfTradeType (7928), the tag and the values that other venues of tokens use.
const TagSelfTrade = 7928

// parseSelfTrade reads SelfTradeType (7928), the self-trade prevention of one request; 0 = it
// has none. reason is that of a refusal.
func parseSelfTrade(value []byte, reason int) (book.STP, *Refusal) {
	if value == nil {
		return 0, nil
	}
	switch string(value) {
	case "N":
		return book.STPCancelNewest, nil
	case "O":
		return book.STPCancelOldest, nil
	case "B":
		return book.STPCancelBoth, nil
	case "D":
		return book.STPDecrement, nil
	}
	return 0, Refuse(reason, CodeInvalidField, "SelfTradeType (7928) %.20q: must be N (cancel newest), O (cancel oldest), B (cancel both) or D (decrement)", value)
}

// Values of OrdStatus (39).
const (
	StatusNew       byte = '0'
	statusPartial   byte = '1'
	StatusFilled    byte = '2'
	StatusCancelled byte = '4'
	StatusRejected  byte = '8'
	StatusExpired   byte = 'C'
)

// Live reports whether the order may still trade.
func (o *ClientOrder) Live() bool { return o.Status == StatusNew || o.Status == statusPartial }

// Trade adds a fill.
func (o *ClientOrder) Trade(price market.Price, qty market.Qty) error {
	sum, err := o.Notional.Add(market.Mul(uint64(price), uint64(qty)))
	if err != nil {
		return fmt.Errorf("order %d: notional: %w", o.ID, err)
	}
	o.Notional = sum
	o.Cum += qty
	o.Leaves -= qty
	o.Status = statusPartial
	if o.Leaves <= 0 {
		o.Status = StatusFilled
	}
	return nil
}

func ordTypeOf(t book.Type) byte {
	switch t {
	case book.Market:
		return '1'
	case book.Limit:
		return '2'
	case book.Stop:
		return '3'
	case book.StopLimit:
		return '4'
	}
	return 0
}

func tifOf(t book.TIF) byte {
	switch t {
	case book.Day:
		return '0'
	case book.GTC:
		return '1'
	case book.IOC:
		return '3'
	case book.FOK:
		return '4'
	case book.GTD:
		return '6'
	}
	return 0
}
