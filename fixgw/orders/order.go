package orders

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// The kinds of keys of this package, in the store.
const (
	keyLive    byte = 'o' // OrderID: one live order
	keyClosed  byte = 'y' // day, OrderID: one closed order
	keyAccount byte = 'n' // session, number: an Account (1)
	keyPartial byte = 'w' // session: how many orders an unfinished mass cancel has cancelled
)

func liveKey(dst []byte, id market.OrderID) []byte {
	return binary.BigEndian.AppendUint64(append(dst, keyLive), uint64(id))
}

func closedKey(dst []byte, day uint32, id market.OrderID) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, keyClosed), day)
	return binary.BigEndian.AppendUint64(dst, uint64(id))
}

// Expired returns the range of closed orders of the days before day.
func Expired(day uint32) (lo, hi []byte) { return reports.ExpiredOf(keyClosed, day) }

// An order's record:
//
//	0 version · 1 session u16 · 3 instrument u16 · 5 side · 6 type · 7 tif ·
//	8 status · 9 price i64 · 17 total i64 · 25 leaves i64 · 33 cum i64 ·
//	41 notional u128 · 57 ClOrdID
//
// Version 2, of an order with terms, has between 57 and the ClOrdID:
//
//	57 stop i64 · 65 display i64 · 73 min i64 · 81 expiry i64 · 89 post-only | on disconnect << 1 ·
//	90 length of account u8 · 91 account
//
// Version 3, of a quote's order, has between 57 and the QuoteID that last changed it:
//
//	57 quote set u16
const (
	orderRecordVersion = 1
	orderRecordSize    = 57

	orderRecordTerms     = 2
	orderRecordTermsSize = 91

	orderRecordQuote     = 3
	orderRecordQuoteSize = 59
)

func (o *order) appendRecord(dst []byte) []byte {
	version := byte(orderRecordVersion)
	switch {
	case o.QuoteSet != 0:
		version = orderRecordQuote
	case o.Any():
		version = orderRecordTerms
	}
	dst = append(dst, version)
	dst = binary.BigEndian.AppendUint16(dst, o.owner.Number)
	dst = binary.BigEndian.AppendUint16(dst, uint16(o.Instrument))
	dst = append(dst, byte(o.Side), byte(o.Type), byte(o.TIF), o.Status)
	for _, n := range [...]uint64{uint64(o.Price), uint64(o.Total), uint64(o.Leaves), uint64(o.Cum), o.Notional.Hi, o.Notional.Lo} {
		dst = binary.BigEndian.AppendUint64(dst, n)
	}
	if version == orderRecordQuote {
		dst = binary.BigEndian.AppendUint16(dst, o.QuoteSet)
	}
	if version == orderRecordTerms {
		for _, n := range [...]int64{int64(o.Stop), int64(o.Display), int64(o.MinQty), o.ExpireAt} {
			dst = binary.BigEndian.AppendUint64(dst, uint64(n))
		}
		flags := byte(o.OnDisconnect) << 1
		if o.PostOnly {
			flags |= 1
		}
		dst = append(append(dst, flags, byte(len(o.Account))), o.Account...)
	}
	return append(dst, o.ClOrdID...)
}

// parseOrderTerms reads the terms of a record of version 2, and returns the ClOrdID.
func parseOrderTerms(value []byte, t *wire.OrderTerms) (clOrdID []byte, ok bool) {
	if len(value) < orderRecordTermsSize || !wire.OnDisconnect(value[89]>>1).Valid() {
		return nil, false
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(value[at:])) }
	end := orderRecordTermsSize + int(value[90])
	if len(value) <= end {
		return nil, false
	}
	*t = wire.OrderTerms{
		Stop: market.Price(number(57)), Display: market.Qty(number(65)), MinQty: market.Qty(number(73)), ExpireAt: number(81),
		PostOnly: value[89]&1 != 0, Account: string(value[orderRecordTermsSize:end]), OnDisconnect: wire.OnDisconnect(value[89] >> 1),
	}
	return value[end:], true
}

// parseOrderRecord reads the encoding of appendRecord. sessionOf returns the session of a
// number, or nil if there is no such session; then the order is nil.
func parseOrderRecord(id market.OrderID, value []byte, sessionOf func(uint16) *Session) (*order, error) {
	bad := func() (*order, error) {
		return nil, fmt.Errorf("%w: order %d: %d bytes", session.ErrLayout, id, len(value))
	}
	if len(value) <= orderRecordSize {
		return bad()
	}
	clOrdID, terms, quoteSet := value[orderRecordSize:], wire.OrderTerms{}, uint16(0)
	switch value[0] {
	case orderRecordVersion:
	case orderRecordTerms:
		var ok bool
		if clOrdID, ok = parseOrderTerms(value, &terms); !ok {
			return bad()
		}
	case orderRecordQuote:
		if len(value) <= orderRecordQuoteSize {
			return bad()
		}
		quoteSet, clOrdID = binary.BigEndian.Uint16(value[orderRecordSize:]), value[orderRecordQuoteSize:]
		if quoteSet == 0 {
			return bad()
		}
	default:
		return bad()
	}
	number := func(at int) uint64 { return binary.BigEndian.Uint64(value[at:]) }
	s := sessionOf(binary.BigEndian.Uint16(value[1:]))
	if s == nil {
		return nil, nil
	}
	return &order{owner: s, ClientOrder: wire.ClientOrder{
		ID: id, ClOrdID: string(clOrdID), OrderTerms: terms, QuoteSet: quoteSet,
		Instrument: market.InstrumentID(binary.BigEndian.Uint16(value[3:])),
		Side:       market.Side(value[5]), Type: book.Type(value[6]), TIF: book.TIF(value[7]), Status: value[8],
		Price: market.Price(number(9)), Total: market.Qty(number(17)),
		Leaves: market.Qty(number(25)), Cum: market.Qty(number(33)),
		Notional: market.Uint128{Hi: number(41), Lo: number(49)},
	}}, nil
}

// stored returns an order that has ended today or yesterday, or nil.
func (s *Session) stored(id market.OrderID) (*order, error) {
	for _, day := range reports.RecentDays(s.entry.Now().UnixNano()) {
		value, ok, err := s.entry.Store.Get(closedKey(nil, day, id))
		if err != nil {
			return nil, err
		}
		if ok {
			return parseOrderRecord(id, value, s.sessions.Numbered)
		}
	}
	return nil, nil
}

// order is one live order of a session. Only the reporter changes it, under its owner's
// mutex; the session reads it under the same lock.
type order struct {
	wire.ClientOrder
	owner *Session
	dirty bool // changed since the last commit; the reporter's, without the lock
}

// LiveUnder implements reports.Subject.
func (o *order) LiveUnder(clOrdID string) bool { return o.Live() && o.ClOrdID == clOrdID }
