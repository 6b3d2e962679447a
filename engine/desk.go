package engine

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/engine/quotes"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

const (
	// MaxPiece is the most bytes of a request in one command.
	MaxPiece = pieceWords + MaxRef
	// MaxPieces is the most commands of one desk request, mirror refresh, mass quote or list.
	MaxPieces = (max(rfq.MaxRequestBytes, maxMirrorBytes, quotes.MaxBytes) + MaxPiece - 1) / MaxPiece

	pieceWords = 7 * 8
	tokenAt    = 2 // offset of the Token in a request
)

// flagReducesRisk in Order.Flags of a Desk, QuoteMass or OrderList command: AdmitCancels admits
// the request. DeskCommands, MassQuoteCommands and ListCommands set it, so that Submit has nothing to decode.
const flagReducesRisk book.Flag = 1

// DeskCommands appends to dst the 1..MaxPieces commands that carry r, for one SubmitAll,
// and returns the extended slice. The caller sets Origin and Order.Participant of the last
// one, for the Reference event of a request with a Ref. Errors wrap rfq.ErrRequest: the
// desk could not decode r.
//
// The encoded request (rfq.AppendRequest) is split into pieces of MaxPiece bytes. All but
// the last travel in Fragment commands, the last in a Desk command, with consecutive Seqs.
// A piece fills the words of its command, little-endian, then its Ref, and zeros:
//
//	 0          8             16           24          32              40               48    56    96
//	┌──────────┬─────────────┬────────────┬───────────┬───────────────┬────────────────┬─────┬─────┐
//	│ Order.ID │ Order.Price │ Order.Stop │ Order.Qty │ Order.Display │ Order.ExpireAt │ Arg │ Ref │
//	└──────────┴─────────────┴────────────┴───────────┴───────────────┴────────────────┴─────┴─────┘
//	Status       length of the piece: 1..96, 96 in a Fragment
//	RefLen       Status - 56, or 0
//	Order.Side   number of the piece in its request, from 0
//	Instrument   the low 16 bits of the request's Token
//	Order.Flags  1 in a Desk that AdmitCancels admits
func DeskCommands(dst []Command, r rfq.Request) ([]Command, error) {
	var buf [rfq.MaxRequestBytes]byte
	data := rfq.AppendRequest(buf[:0], r)
	if _, err := rfq.DecodeRequest(data); err != nil {
		return dst, fmt.Errorf("request %d of kind %d: %w", r.Head().RequestID, r.Kind(), err)
	}
	dst = appendPieces(dst, data, Desk, r.Head().RequestID)
	if requestReducesRisk(r) {
		dst[len(dst)-1].Order.Flags = flagReducesRisk
	}
	return dst, nil
}

// appendPieces splits data, which must not be empty, into commands, the last of kind last.
// token is the word at tokenAt of data.
func appendPieces(dst []Command, data []byte, last Kind, token uint64) []Command {
	for number := 0; len(data) > 0; number++ {
		piece := data[:min(len(data), MaxPiece)]
		data = data[len(piece):]
		c := Command{Kind: Fragment, Instrument: market.InstrumentID(token)}
		if len(data) == 0 {
			c.Kind = last
		}
		c.Order.Side = market.Side(number)
		c.setPiece(piece)
		dst = append(dst, c)
	}
	return dst
}

// requestReducesRisk reports whether r only reduces risk or records a fact.
func requestReducesRisk(r rfq.Request) bool {
	switch r := r.(type) {
	case *rfq.SetLock:
		return r.Locked
	case *rfq.SetAnchor:
		return r.Withdrawn
	case *rfq.SetRailPrice:
		return r.Withdrawn
	case *rfq.WithdrawTicket, *rfq.ProvePayment, *rfq.SeePayment, *rfq.ExpireDelivery, *rfq.SettleClaim, *rfq.ReleaseClaim,
		*rfq.ReleaseUnbuilt, *rfq.RefundPayment, *rfq.ExpireRefund, *rfq.AbandonDelivery, *rfq.SetBalance:
		return true
	}
	return false
}

// setPiece stores 1..MaxPiece bytes.
func (c *Command) setPiece(piece []byte) {
	var all [MaxPiece]byte
	c.Status = uint8(copy(all[:], piece))
	le, o := binary.LittleEndian, &c.Order
	o.ID = market.OrderID(le.Uint64(all[0:]))
	o.Price, o.Stop = market.Price(le.Uint64(all[8:])), market.Price(le.Uint64(all[16:]))
	o.Qty, o.Display = market.Qty(le.Uint64(all[24:])), market.Qty(le.Uint64(all[32:]))
	o.ExpireAt = int64(le.Uint64(all[40:]))
	c.Arg = le.Uint64(all[48:])
	if len(piece) > pieceWords {
		c.SetRef(piece[pieceWords:])
	}
}

// appendPiece appends the piece that c carries.
func (c *Command) appendPiece(dst []byte) []byte {
	le, o := binary.LittleEndian, &c.Order
	end := len(dst) + int(c.Status)
	for _, word := range [...]uint64{
		uint64(o.ID), uint64(o.Price), uint64(o.Stop), uint64(o.Qty), uint64(o.Display), uint64(o.ExpireAt), c.Arg,
	} {
		dst = le.AppendUint64(dst, word)
	}
	return append(dst, c.RefText()...)[:end]
}

// validPiece reports whether c carries a piece in the form of setPiece. It checks only fields
// that the journal keeps unchanged.
func (c *Command) validPiece() bool {
	size := int(c.Status)
	return size >= 1 && size <= MaxPiece && len(c.RefText()) == max(size, pieceWords)-pieceWords &&
		(c.Kind != Fragment || size == MaxPiece && c.Order.Side < MaxPieces-1)
}

// Assembler joins the pieces of desk requests, mirror refreshes, mass quotes and lists in journal order. The zero
// value is ready. An incomplete request is dropped as soon as a later command shows that it
// is incomplete.
type Assembler struct {
	data [MaxPieces * MaxPiece]byte
	size int    // bytes of the pieces so far
	next uint64 // Seq that the next piece must have
}

// Add takes the next command that IsPiece. It returns a request or refresh once that is
// complete; the kind of the last command says which, and the slice is valid until the next
// Add. incomplete reports that this piece or earlier ones were dropped, but not pieces cut off
// by a command of another kind.
func (a *Assembler) Add(c *Command) (request []byte, incomplete bool) {
	number := int(c.Order.Side)
	if number == 0 && a.NextPiece(c.Seq) > 0 {
		incomplete, a.size = true, 0
	}
	if number != a.NextPiece(c.Seq) || !c.validPiece() {
		a.size = 0
		return nil, true
	}
	joined := c.appendPiece(a.data[:number*MaxPiece])
	a.size, a.next = 0, c.Seq+1
	if binary.LittleEndian.Uint16(a.data[tokenAt:]) != uint16(c.Instrument) {
		return nil, true
	}
	if c.Kind != Fragment {
		return joined, incomplete
	}
	a.size = len(joined)
	return nil, incomplete
}

// NextPiece returns the number of the piece that the command seq must carry; 0 = the first of
// a new request.
func (a *Assembler) NextPiece(seq uint64) int {
	if a.next != seq {
		return 0
	}
	return a.size / MaxPiece
}

// pending returns the pieces so far of a request that the command seq may continue.
func (a *Assembler) pending(seq uint64) []byte { return a.data[:a.NextPiece(seq)*MaxPiece] }

// restore undoes pending. It reports whether data is valid.
func (a *Assembler) restore(data []byte, seq uint64) bool {
	if len(data)%MaxPiece != 0 || len(data) > (MaxPieces-1)*MaxPiece {
		return false
	}
	a.size, a.next = copy(a.data[:], data), seq
	return true
}
