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

	Price    market.Price // limit; 0 for market and stop
	Total    market.Qty   // OrderQty
	Leaves   market.Qty
	Cum      market.Qty
	Notional market.Uint128 // Σ price × quantity of its trades, in ticks × lots
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
