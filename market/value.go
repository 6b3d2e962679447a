package market

// Price counts ticks of one instrument. An order has 1..MaxPrice; 0 means "no price"
// (a market order, an empty side).
type Price int64

// Qty counts lots of one instrument. An order has 1..MaxQty.
type Qty int64

// Amount counts atoms of one mint (1 USDC = 1,000,000 atoms).
type Amount uint64

const (
	// MaxPrice and MaxQty bound an order. Their product fits in 94 bits, and price ×
	// 16,384 in an int64, so that the price band check needs no wide arithmetic.
	MaxPrice Price = 1 << 47
	MaxQty   Qty   = 1 << 47
)

// ValidTrade reports whether a trade may have a price and a quantity.
func ValidTrade(p Price, q Qty) bool { return p >= 1 && p <= MaxPrice && q >= 1 && q <= MaxQty }

// Side is a side of the book. The values are those of FIX tag 54.
type Side uint8

const (
	Buy  Side = 1
	Sell Side = 2
)

// Opposite returns the other side. s must be Valid.
func (s Side) Opposite() Side { return 3 - s }

// Valid reports whether s is Buy or Sell.
func (s Side) Valid() bool { return s == Buy || s == Sell }

// String returns "buy" or "sell", as REST and WebSocket messages show it.
func (s Side) String() string {
	switch s {
	case Buy:
		return "buy"
	case Sell:
		return "sell"
	default:
		return "unknown"
	}
}

// InstrumentID is an instrument's index in the configured list, from 0. It never
// changes during the life of a journal.
type InstrumentID uint16

// ParticipantID is the number of a trading participant. 0 is the service itself.
type ParticipantID uint16

// OrderID identifies an order for all time. The producer of the command chooses it
// (engine.OrderIDs); the engine rejects an ID that is live. 0 is no order.
type OrderID uint64

// TradeID numbers the trades of one engine from 1, without gaps.
type TradeID uint64

// Level is a price and the quantity displayed at it.
type Level struct {
	Price Price
	Qty   Qty
}
