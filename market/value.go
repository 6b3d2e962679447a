package market

// Price counts ticks of one instrument. Range 1..MaxPrice for an order; zero
// means "no price" (a market order, an empty side).
type Price int64

// Qty counts lots of one instrument. Range 1..MaxQty for an order; zero means
// nothing.
type Qty int64

// Amount counts atoms of one mint (1 USDC = 1,000,000 atoms).
type Amount uint64

const (
	// MaxPrice and MaxQty bound what an order may carry. Their product fits
	// in 94 bits and price × 16,384 in a signed 64-bit word, so that the band
	// check needs no wide arithmetic.
	MaxPrice Price = 1 << 47
	MaxQty   Qty   = 1 << 47
)

// Side says which side of the book an order is on. The values are those of
// FIX tag 54.
type Side uint8

const (
	Buy  Side = 1
	Sell Side = 2
)

// Opposite returns the side that s trades against. s must be Valid.
func (s Side) Opposite() Side { return 3 - s }

// Valid reports whether s is Buy or Sell.
func (s Side) Valid() bool { return s == Buy || s == Sell }

// String returns "buy" or "sell", the wire words of the REST and WebSocket
// surfaces.
func (s Side) String() string {
	switch s {
	case Buy:
		return "buy"
	case Sell:
		return "sell"
	default:
		return "side?"
	}
}

// InstrumentID is an instrument's index in the configured list, from 0. It is
// stable for the life of a journal.
type InstrumentID uint16

// ParticipantID is a trading participant's number. 0 is nobody: a command of
// the service itself.
type ParticipantID uint16

// OrderID identifies one order for ever. The producer of the command chooses
// it (see engine.OrderIDs); the engine refuses one that is live already.
// 0 is no order.
type OrderID uint64

// TradeID numbers the trades of one engine from 1, without gaps.
type TradeID uint64

// Level is one price of a book and the quantity displayed there.
type Level struct {
	Price Price
	Qty   Qty
}
