package fixgw

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// clientOrder is an order as its client sees it, by the reports that were made.
type clientOrder struct {
	id      market.OrderID
	clOrdID string // the last one accepted for it

	instrument market.InstrumentID
	side       market.Side
	typ        book.Type
	tif        book.TIF
	status     byte // OrdStatus (39)

	price    market.Price // limit; 0 for market and stop
	total    market.Qty   // OrderQty
	leaves   market.Qty
	cum      market.Qty
	notional market.Uint128 // Σ price × quantity of its trades, in ticks × lots
}

// order is one live order of a session. The follower alone changes it, under
// session.mu; the session reads it under the same lock.
type order struct {
	clientOrder
	session *session
	dirty   bool // changed since the last commit; the follower's, without the lock
}

// Values of OrdStatus (39).
const (
	statusNew       byte = '0'
	statusPartial   byte = '1'
	statusFilled    byte = '2'
	statusCancelled byte = '4'
	statusRejected  byte = '8'
	statusExpired   byte = 'C'
)

// live reports whether the order may still trade.
func (o *clientOrder) live() bool { return o.status == statusNew || o.status == statusPartial }

// trade adds a fill.
func (o *clientOrder) trade(price market.Price, qty market.Qty) error {
	sum, err := o.notional.Add(market.Mul(uint64(price), uint64(qty)))
	if err != nil {
		return fmt.Errorf("order %d: notional: %w", o.id, err)
	}
	o.notional = sum
	o.cum += qty
	o.leaves -= qty
	o.status = statusPartial
	if o.leaves <= 0 {
		o.status = statusFilled
	}
	return nil
}

// orderRecordSize is the size of an order's record without its ClOrdID:
//
//	0 version · 1 session u16 · 3 instrument u16 · 5 side · 6 type · 7 tif ·
//	8 status · 9 price i64 · 17 total i64 · 25 leaves i64 · 33 cum i64 ·
//	41 notional u128 · 57 ClOrdID
const (
	orderRecordVersion = 1
	orderRecordSize    = 57
)

func (o *order) appendRecord(dst []byte) []byte {
	dst = append(dst, orderRecordVersion)
	dst = binary.BigEndian.AppendUint16(dst, o.session.number)
	dst = binary.BigEndian.AppendUint16(dst, uint16(o.instrument))
	dst = append(dst, byte(o.side), byte(o.typ), byte(o.tif), o.status)
	for _, n := range [...]uint64{uint64(o.price), uint64(o.total), uint64(o.leaves), uint64(o.cum), o.notional.Hi, o.notional.Lo} {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	return append(dst, o.clOrdID...)
}

// parseOrderRecord reads what appendRecord wrote. session returns the session of
// a number, or nil where there is none any more; such an order is nil.
func parseOrderRecord(id market.OrderID, value []byte, session func(uint16) *session) (*order, error) {
	if len(value) <= orderRecordSize || value[0] != orderRecordVersion {
		return nil, fmt.Errorf("%w: order %d: %d bytes", errLayout, id, len(value))
	}
	number := func(at int) uint64 { return binary.BigEndian.Uint64(value[at:]) }
	s := session(binary.BigEndian.Uint16(value[1:]))
	if s == nil {
		return nil, nil
	}
	return &order{session: s, clientOrder: clientOrder{
		id: id, clOrdID: string(value[orderRecordSize:]),
		instrument: market.InstrumentID(binary.BigEndian.Uint16(value[3:])),
		side:       market.Side(value[5]), typ: book.Type(value[6]), tif: book.TIF(value[7]), status: value[8],
		price: market.Price(number(9)), total: market.Qty(number(17)),
		leaves: market.Qty(number(25)), cum: market.Qty(number(33)),
		notional: market.Uint128{Hi: number(41), Lo: number(49)},
	}}, nil
}

// An answer record says what a ClOrdID was first answered with:
//
//	0 version · 1 MsgType of the request · 2 OrderID u64 · 10 MsgType of the
//	answer · 11 the answer's body
const (
	answerRecordVersion = 1
	answerRecordSize    = 11
)

type answer struct {
	request byte
	id      market.OrderID
	msgType byte
	body    []byte
}

func appendAnswer(dst []byte, a answer) []byte {
	dst = append(dst, answerRecordVersion, a.request)
	dst = binary.BigEndian.AppendUint64(dst, uint64(a.id))
	return append(append(dst, a.msgType), a.body...)
}

func parseAnswer(value []byte) (answer, error) {
	if len(value) <= answerRecordSize || value[0] != answerRecordVersion {
		return answer{}, fmt.Errorf("%w: answer of %d bytes", errLayout, len(value))
	}
	return answer{
		request: value[1], id: market.OrderID(binary.BigEndian.Uint64(value[2:])),
		msgType: value[10], body: value[answerRecordSize:],
	}, nil
}
