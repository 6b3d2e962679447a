package fixgw

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// order is one live order of a session. Only the reporter changes it, under its owner's
// mutex; the session reads it under the same lock.
type order struct {
	wire.ClientOrder
	owner *blotter
	dirty bool // changed since the last commit; the reporter's, without the lock
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
	dst = binary.BigEndian.AppendUint16(dst, o.owner.Number)
	dst = binary.BigEndian.AppendUint16(dst, uint16(o.Instrument))
	dst = append(dst, byte(o.Side), byte(o.Type), byte(o.TIF), o.Status)
	for _, n := range [...]uint64{uint64(o.Price), uint64(o.Total), uint64(o.Leaves), uint64(o.Cum), o.Notional.Hi, o.Notional.Lo} {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	return append(dst, o.ClOrdID...)
}

// parseOrderRecord reads the encoding of appendRecord. blotterOf returns the blotter of a
// session number, or nil if there is no such session; then the order is nil.
func parseOrderRecord(id market.OrderID, value []byte, blotterOf func(uint16) *blotter) (*order, error) {
	if len(value) <= orderRecordSize || value[0] != orderRecordVersion {
		return nil, fmt.Errorf("%w: order %d: %d bytes", session.ErrLayout, id, len(value))
	}
	number := func(at int) uint64 { return binary.BigEndian.Uint64(value[at:]) }
	s := blotterOf(binary.BigEndian.Uint16(value[1:]))
	if s == nil {
		return nil, nil
	}
	return &order{owner: s, ClientOrder: wire.ClientOrder{
		ID: id, ClOrdID: string(value[orderRecordSize:]),
		Instrument: market.InstrumentID(binary.BigEndian.Uint16(value[3:])),
		Side:       market.Side(value[5]), Type: book.Type(value[6]), TIF: book.TIF(value[7]), Status: value[8],
		Price: market.Price(number(9)), Total: market.Qty(number(17)),
		Leaves: market.Qty(number(25)), Cum: market.Qty(number(33)),
		Notional: market.Uint128{Hi: number(41), Lo: number(49)},
	}}, nil
}

// An answer record is the first answer to a ClOrdID:
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
		return answer{}, fmt.Errorf("%w: answer of %d bytes", session.ErrLayout, len(value))
	}
	return answer{
		request: value[1], id: market.OrderID(binary.BigEndian.Uint64(value[2:])),
		msgType: value[10], body: value[answerRecordSize:],
	}, nil
}
