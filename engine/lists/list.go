// Package lists has the form of an order list in journals: the new orders of one session that
// are accepted together or not at all, or the orders that it cancels together.
//
// A list travels through the journal as one request in pieces, so a crash leaves all of it or
// nothing.
//
// Limits: MaxOrders, MaxCancels. Not for concurrent use.
package lists

import (
	"encoding/binary"
	"errors"
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

const (
	// MaxOrders is the most new orders of one list.
	MaxOrders = 32
	// MaxCancels is the most orders that one list cancels.
	MaxCancels = 256
	// MaxBytes is the longest encoding of a list.
	MaxBytes = headerSize + event.MaxText + max(MaxOrders*(orderSize+event.MaxText), MaxCancels*cancelSize)

	version    = 1
	headerSize = 16
	orderSize  = 56
	cancelSize = 10
)

// ErrInvalid is wrapped by errors about a list that has no encoding.
var ErrInvalid = errors.New("engine: invalid order list")

// Entry is one order of a list. A cancel has only Order.ID and Instrument.
type Entry struct {
	Order      book.Order // without Participant; ID is that of the list's FirstID
	Arg        uint64     // of the order's event.Terms
	Instrument market.InstrumentID
	Ref        []byte // the client's id of the order, 1 to event.MaxText bytes
}

// List is new orders, or with Cancel orders to cancel, of one session of a participant.
type List struct {
	Ref    []byte // the client's id of the list, at most event.MaxText bytes
	Cancel bool
	// More: further lists of the same request follow this list of cancels.
	More bool
	// On and Side are what a list of cancels was selected by: they are passed on in
	// event.MassCancelled.
	On   market.InstrumentID
	Side market.Side
	// FirstID is the first of len(Entries) consecutive ids for the new orders.
	FirstID market.OrderID
	Entries []Entry
}

const (
	flagCancel uint8 = 1 << iota
	flagMore
	flagsEnd
)

// Validate returns ErrInvalid with the first rule that l breaks. The rules of an order are the
// engine's.
func (l *List) Validate() error {
	most := MaxOrders
	if l.Cancel {
		most = MaxCancels
	}
	switch {
	case len(l.Ref) > event.MaxText:
		return fmt.Errorf("%w: id of %d bytes: at most %d", ErrInvalid, len(l.Ref), event.MaxText)
	case len(l.Entries) > most || len(l.Entries) == 0 && !l.Cancel:
		return fmt.Errorf("%w: %d entries: must be 1 to %d, and 0 only in a list of cancels", ErrInvalid, len(l.Entries), most)
	case l.Cancel && l.FirstID != 0 || !l.Cancel && (l.FirstID == 0 || l.More || l.On|market.InstrumentID(l.Side) != 0):
		return fmt.Errorf("%w: first id %d, more %v, instrument %d, side %d: do not fit cancel %v", ErrInvalid, l.FirstID, l.More, l.On, l.Side, l.Cancel)
	case l.Side > market.Sell:
		return fmt.Errorf("%w: side %d: unknown", ErrInvalid, l.Side)
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		if size := len(e.Ref); l.Cancel != (size == 0) || size > event.MaxText {
			return fmt.Errorf("%w: entry %d: id of %d bytes: must be 1 to %d, and none in a cancel", ErrInvalid, i, size, event.MaxText)
		}
		if !l.Cancel && e.Order.ID != l.FirstID+market.OrderID(i) || e.Order.Participant != 0 {
			return fmt.Errorf("%w: entry %d: order %d of participant %d: must be %d of none", ErrInvalid, i, e.Order.ID, e.Order.Participant, l.FirstID+market.OrderID(i))
		}
	}
	return nil
}

// Append appends the encoding of a valid list, little-endian:
//
//	 0         1       2         4      5         6    8          16
//	┌─────────┬───────┬─────────┬──────┬─────────┬────┬──────────┬─────┐
//	│ version │ flags │ entries │ side │ len ref │ on │ first id │ ref │  then the entries
//	└─────────┴───────┴─────────┴──────┴─────────┴────┴──────────┴─────┘
//	 0       8      16    24        32       40    48           50     51     52    53      54    55        56
//	┌───────┬──────┬─────┬─────────┬────────┬─────┬────────────┬──────┬──────┬─────┬───────┬─────┬─────────┬─────┐
//	│ price │ stop │ qty │ display │ expiry │ arg │ instrument │ side │ type │ tif │ flags │ stp │ len ref │ ref │
//	└───────┴──────┴─────┴─────────┴────────┴─────┴────────────┴──────┴──────┴─────┴───────┴─────┴─────────┴─────┘
//	 0    8            10
//	┌────┬────────────┐
//	│ id │ instrument │  of a cancel
//	└────┴────────────┘
func (l *List) Append(dst []byte) []byte {
	le := binary.LittleEndian
	flags := uint8(0)
	if l.Cancel {
		flags |= flagCancel
	}
	if l.More {
		flags |= flagMore
	}
	dst = append(dst, version, flags)
	dst = le.AppendUint16(dst, uint16(len(l.Entries)))
	dst = append(dst, uint8(l.Side), uint8(len(l.Ref)))
	dst = le.AppendUint16(dst, uint16(l.On))
	dst = append(le.AppendUint64(dst, uint64(l.FirstID)), l.Ref...)
	for i := range l.Entries {
		e := &l.Entries[i]
		o := &e.Order
		if l.Cancel {
			dst = le.AppendUint16(le.AppendUint64(dst, uint64(o.ID)), uint16(e.Instrument))
			continue
		}
		for _, n := range [...]uint64{uint64(o.Price), uint64(o.Stop), uint64(o.Qty), uint64(o.Display), uint64(o.ExpireAt), e.Arg} {
			dst = le.AppendUint64(dst, n)
		}
		dst = le.AppendUint16(dst, uint16(e.Instrument))
		dst = append(dst, byte(o.Side), byte(o.Type), byte(o.TIF), byte(o.Flags), byte(o.STP), byte(len(e.Ref)))
		dst = append(dst, e.Ref...)
	}
	return dst
}

// Decode decodes what an Assembler has joined. Entries are appended to entries[:0]; the
// texts alias data. Errors wrap ErrInvalid.
func Decode(data []byte, entries []Entry) (l List, err error) {
	if PeekRef(data) == nil && (len(data) < headerSize || data[5] != 0) || data[0] != version || data[1] >= flagsEnd {
		return l, fmt.Errorf("%w: unknown header in %d bytes", ErrInvalid, len(data))
	}
	le, refEnd := binary.LittleEndian, headerSize+int(data[5])
	l = List{
		Ref: data[headerSize:refEnd], Cancel: data[1]&flagCancel != 0, More: data[1]&flagMore != 0,
		Side: market.Side(data[4]), On: market.InstrumentID(le.Uint16(data[6:])), FirstID: market.OrderID(le.Uint64(data[8:])),
		Entries: entries[:0],
	}
	rest := data[refEnd:]
	for i := range int(le.Uint16(data[2:])) {
		var e Entry
		var ok bool
		if l.Cancel {
			rest, ok = e.decodeCancel(rest)
		} else {
			rest, ok = e.decodeOrder(rest, l.FirstID+market.OrderID(i))
		}
		if !ok || len(l.Entries) == MaxCancels {
			return l, fmt.Errorf("%w: entry %d does not fit %d bytes", ErrInvalid, i, len(data))
		}
		l.Entries = append(l.Entries, e)
	}
	if len(rest) > 0 {
		return l, fmt.Errorf("%w: %d bytes after the entries", ErrInvalid, len(rest))
	}
	return l, l.Validate()
}

func (e *Entry) decodeCancel(data []byte) (rest []byte, ok bool) {
	if len(data) < cancelSize {
		return nil, false
	}
	e.Order.ID = market.OrderID(binary.LittleEndian.Uint64(data))
	e.Instrument = market.InstrumentID(binary.LittleEndian.Uint16(data[8:]))
	return data[cancelSize:], true
}

func (e *Entry) decodeOrder(data []byte, id market.OrderID) (rest []byte, ok bool) {
	const sizeAt = 55
	if len(data) < orderSize || len(data) < orderSize+int(data[sizeAt]) {
		return nil, false
	}
	number := func(at int) int64 { return int64(binary.LittleEndian.Uint64(data[at:])) }
	end := orderSize + int(data[sizeAt])
	*e = Entry{
		Order: book.Order{
			ID: id, Price: market.Price(number(0)), Stop: market.Price(number(8)), Qty: market.Qty(number(16)), Display: market.Qty(number(24)), ExpireAt: number(32),
			Side: market.Side(data[50]), Type: book.Type(data[51]), TIF: book.TIF(data[52]), Flags: book.Flag(data[53]), STP: book.STP(data[54]),
		},
		Arg: uint64(number(40)), Instrument: market.InstrumentID(binary.LittleEndian.Uint16(data[48:])), Ref: data[orderSize:end],
	}
	return data[end:], true
}

// PeekRef returns the client's id in an encoding, which may be damaged; nil = none.
func PeekRef(data []byte) []byte {
	const sizeAt = 5
	if len(data) < headerSize || data[sizeAt] == 0 || len(data) < headerSize+int(data[sizeAt]) {
		return nil
	}
	return data[headerSize : headerSize+int(data[sizeAt])]
}
