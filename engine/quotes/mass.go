// Package quotes has the quotes of market makers: the form of a mass quote in journals, and the
// quote sets that the engine keeps.
//
// A mass quote travels through the journal as one request in pieces. A quote set belongs to
// a session; each of its quotes has at most one order a side in the book of its instrument.
// A set's protection counts the fills of a time window and withdraws the whole set when a
// limit is reached, until the client resets it. Everything is a function of the commands:
// no clock, no randomness, and Restore accepts only what an equal state has written.
//
// Limits: MaxEntries, MaxSets, MaxWindow. Not for concurrent use.
package quotes

import (
	"encoding/binary"
	"errors"
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

const (
	// MaxEntries is the most entries of one mass quote, and the most instruments of one quote
	// set.
	MaxEntries = 64
	// MaxSets is the most quote sets of one session.
	MaxSets = 16
	// MaxWindow is the longest window of a quote protection, an hour in nanoseconds.
	MaxWindow int64 = 3_600_000_000_000
	// MaxBytes is the longest encoding of a mass quote.
	MaxBytes = headerSize + event.MaxText + MaxEntries*entrySize

	version    = 1
	headerSize = 36
	entrySize  = 48
)

// ErrInvalid is wrapped by errors about a mass quote that has no encoding.
var ErrInvalid = errors.New("engine: invalid mass quote")

// Entry sets both sides of the quote of one instrument in one quote set. A side with
// quantity 0 is withdrawn.
type Entry struct {
	// Set is the number of the quote set, from 1; 0 = every set of the session, only with both
	// quantities 0.
	Set        uint16
	Number     uint16 // the client's number of the entry
	Instrument market.InstrumentID
	BidPrice   market.Price // 0 where BidQty is 0
	AskPrice   market.Price
	BidQty     market.Qty // open quantity
	AskQty     market.Qty
	// MaxQty is how much of the instrument may trade in the protection's window; 0 = any.
	MaxQty market.Qty
}

// Mass changes quotes of one session of a participant.
type Mass struct {
	Ref      []byte // the client's id, at most event.MaxText bytes
	STP      book.STP
	Response uint8 // passed on in event.MassQuoted
	// CancelAll withdraws all quotes of the session; there are no entries then.
	CancelAll bool
	// Cancel: the entries only withdraw.
	Cancel bool
	// Reset lets the sets of the entries quote again after their protection has pulled them.
	Reset bool
	// Protect sets the protection of the sets of the entries: after MaxFills trades (0 = any)
	// in Window nanoseconds, 0 to MaxWindow, or the entry's MaxQty, the quotes of the
	// set are pulled. Window 0 = no protection. Without Protect it stays as it is.
	Protect  bool
	MaxFills uint32
	Window   int64
	// FirstID is the first of 2 × len(Entries) consecutive ids for the orders of new quotes.
	FirstID market.OrderID
	Entries []Entry
}

const (
	flagCancelAll uint8 = 1 << iota
	flagCancel
	flagReset
	flagProtect
)

// Validate returns ErrInvalid with the first rule that q breaks.
func (q *Mass) Validate() error {
	switch {
	case len(q.Ref) > event.MaxText:
		return fmt.Errorf("%w: id of %d bytes: at most %d", ErrInvalid, len(q.Ref), event.MaxText)
	case q.STP < book.STPCancelNewest || q.STP > book.STPDecrement:
		return fmt.Errorf("%w: self-trade prevention %d: unknown", ErrInvalid, q.STP)
	case len(q.Entries) > MaxEntries || (len(q.Entries) == 0) != q.CancelAll:
		return fmt.Errorf("%w: %d entries: must be 1 to %d, and none to cancel all", ErrInvalid, len(q.Entries), MaxEntries)
	case q.Window < 0 || q.Window > MaxWindow:
		return fmt.Errorf("%w: protection window %d ns: must be 0 to %d", ErrInvalid, q.Window, MaxWindow)
	case !q.CancelAll && !q.Cancel && q.FirstID == 0:
		return fmt.Errorf("%w: first order id 0: must not be 0", ErrInvalid)
	}
	for i := range q.Entries {
		if !q.Entries[i].valid(q.Cancel) {
			return fmt.Errorf("%w: entry %d has a value out of range: %+v", ErrInvalid, i, q.Entries[i])
		}
	}
	return nil
}

func (e *Entry) valid(cancel bool) bool {
	side := func(p market.Price, q market.Qty) bool {
		return p >= 0 && p <= market.MaxPrice && q >= 0 && q <= market.MaxQty && (p != 0) == (q != 0)
	}
	empty := e.BidQty|e.AskQty|e.MaxQty == 0
	return e.Instrument < market.MaxInstruments && side(e.BidPrice, e.BidQty) && side(e.AskPrice, e.AskQty) &&
		e.MaxQty >= 0 && e.MaxQty <= market.MaxQty && (!cancel || empty) && (e.Set != 0 || cancel)
}

// Append appends the encoding of a valid mass quote, little-endian:
//
//	 0         1       2         4     5          6         7   8          16          20   28
//	┌─────────┬───────┬─────────┬─────┬──────────┬─────────┬───┬──────────┬───────────┬────────┬───┬─────┐
//	│ version │ flags │ entries │ stp │ response │ len ref │ 0 │ first id │ max fills │ window │ 0 │ ref │  then the entries
//	└─────────┴───────┴─────────┴─────┴──────────┴─────────┴───┴──────────┴───────────┴────────┴───┴─────┘
//	 0     2        4            6   8           16          24        32        40        48
//	┌─────┬────────┬────────────┬───┬───────────┬───────────┬─────────┬─────────┬─────────┐
//	│ set │ number │ instrument │ 0 │ bid price │ ask price │ bid qty │ ask qty │ max qty │
//	└─────┴────────┴────────────┴───┴───────────┴───────────┴─────────┴─────────┴─────────┘
func (q *Mass) Append(dst []byte) []byte {
	le := binary.LittleEndian
	flags := uint8(0)
	for i, on := range [...]bool{q.CancelAll, q.Cancel, q.Reset, q.Protect} {
		if on {
			flags |= 1 << i
		}
	}
	dst = append(dst, version, flags)
	dst = le.AppendUint16(dst, uint16(len(q.Entries)))
	dst = append(dst, uint8(q.STP), q.Response, uint8(len(q.Ref)), 0)
	dst = le.AppendUint64(dst, uint64(q.FirstID))
	dst = le.AppendUint32(dst, q.MaxFills)
	dst = le.AppendUint64(dst, uint64(q.Window))
	dst = append(le.AppendUint64(dst, 0), q.Ref...)
	for i := range q.Entries {
		e := &q.Entries[i]
		dst = le.AppendUint16(dst, e.Set)
		dst = le.AppendUint16(dst, e.Number)
		dst = le.AppendUint16(dst, uint16(e.Instrument))
		dst = le.AppendUint16(dst, 0)
		for _, n := range [...]int64{int64(e.BidPrice), int64(e.AskPrice), int64(e.BidQty), int64(e.AskQty), int64(e.MaxQty)} {
			dst = le.AppendUint64(dst, uint64(n))
		}
	}
	return dst
}

// Decode decodes what an Assembler has joined. Entries are appended to entries[:0];
// Ref aliases data. Errors wrap ErrInvalid.
func Decode(data []byte, entries []Entry) (q Mass, err error) {
	if len(data) < headerSize || data[0] != version || data[1] >= flagProtect<<1 {
		return q, fmt.Errorf("%w: unknown header in %d bytes", ErrInvalid, len(data))
	}
	le, flags, refEnd := binary.LittleEndian, data[1], headerSize+int(data[6])
	count := int(le.Uint16(data[2:]))
	if count > MaxEntries || len(data) != refEnd+count*entrySize {
		return q, fmt.Errorf("%w: %d entries do not fill %d bytes", ErrInvalid, count, len(data))
	}
	q = Mass{
		Ref: data[headerSize:refEnd], STP: book.STP(data[4]), Response: data[5],
		CancelAll: flags&flagCancelAll != 0, Cancel: flags&flagCancel != 0, Reset: flags&flagReset != 0, Protect: flags&flagProtect != 0,
		FirstID: market.OrderID(le.Uint64(data[8:])), MaxFills: le.Uint32(data[16:]), Window: int64(le.Uint64(data[20:])),
		Entries: entries[:0],
	}
	for rest := data[refEnd:]; len(rest) > 0; rest = rest[entrySize:] {
		number := func(at int) int64 { return int64(le.Uint64(rest[at:])) }
		q.Entries = append(q.Entries, Entry{
			Set: le.Uint16(rest), Number: le.Uint16(rest[2:]), Instrument: market.InstrumentID(le.Uint16(rest[4:])),
			BidPrice: market.Price(number(8)), AskPrice: market.Price(number(16)),
			BidQty: market.Qty(number(24)), AskQty: market.Qty(number(32)), MaxQty: market.Qty(number(40)),
		})
	}
	return q, q.Validate()
}

// PeekRef returns the client's id in an encoding, which may be damaged; nil = none.
func PeekRef(data []byte) []byte {
	const sizeAt = 6
	if len(data) < headerSize || data[sizeAt] == 0 || len(data) < headerSize+int(data[sizeAt]) {
		return nil
	}
	return data[headerSize : headerSize+int(data[sizeAt])]
}

// Order returns one side of an entry as an order without an id.
func (q *Mass) Order(by market.ParticipantID, side market.Side, e *Entry) book.Order {
	o := book.Order{Price: e.BidPrice, Qty: e.BidQty, Participant: by, Side: side, Type: book.Limit, TIF: book.GTC, Flags: book.FlagQuote, STP: q.STP}
	if side == market.Sell {
		o.Price, o.Qty = e.AskPrice, e.AskQty
	}
	return o
}
