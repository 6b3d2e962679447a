package engine

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/book"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

const (
	// MaxPiece is how many bytes of a request one command carries.
	MaxPiece = pieceWords + MaxRef
	// MaxPieces is the most commands of one request to the desk or one refresh of
	// a mirrored book.
	MaxPieces = (max(rfq.MaxRequestBytes, maxMirrorBytes) + MaxPiece - 1) / MaxPiece

	pieceWords = 7 * 8
	tokenAt    = 2 // where a request has its Token
)

// flagRelief in Order.Flags of a Desk command: AdmitCancels lets the request
// in. DeskCommands sets it, so that Submit has nothing to decode.
const flagRelief book.Flag = 1

// DeskCommands appends to dst the 1..MaxPieces commands that carry r, for one
// SubmitAll, and returns the extended slice. Origin and Order.Participant of the
// last one are the caller's to set: they go into the Reference event of a
// request with a Ref. Errors wrap rfq.ErrRequest: the desk could not read r.
//
// A request's encoding (rfq.AppendRequest) is cut into pieces of MaxPiece bytes.
// All but the last travel in Fragment commands, the last in a Desk command; their
// Seqs follow each other. A piece lies in the words of its command, little-endian,
// then in its Ref; what it does not fill is zero:
//
//	 0          8             16           24          32              40               48    56    96
//	┌──────────┬─────────────┬────────────┬───────────┬───────────────┬────────────────┬─────┬─────┐
//	│ Order.ID │ Order.Price │ Order.Stop │ Order.Qty │ Order.Display │ Order.ExpireAt │ Arg │ Ref │
//	└──────────┴─────────────┴────────────┴───────────┴───────────────┴────────────────┴─────┴─────┘
//	Status       the piece's bytes: 1..96, 96 in a Fragment
//	RefLen       Status - 56, or 0
//	Order.Side   the piece's number in its request, from 0
//	Instrument   the low 16 bits of the request's Token
//	Order.Flags  1 in a Desk that AdmitCancels lets in
func DeskCommands(dst []Command, r rfq.Request) ([]Command, error) {
	var buf [rfq.MaxRequestBytes]byte
	data := rfq.AppendRequest(buf[:0], r)
	if _, err := rfq.DecodeRequest(data); err != nil {
		return dst, fmt.Errorf("request %d of kind %d: %w", r.Head().Token, r.Kind(), err)
	}
	dst = appendPieces(dst, data, Desk, r.Head().Token)
	if bringsRelief(r) {
		dst[len(dst)-1].Order.Flags = flagRelief
	}
	return dst, nil
}

// appendPieces cuts data, which is not empty, into commands, the last one of a
// kind of its own. token is what data has at tokenAt.
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

// bringsRelief reports whether r takes risk away or says what has happened.
func bringsRelief(r rfq.Request) bool {
	switch r := r.(type) {
	case *rfq.SetLock:
		return r.Locked
	case *rfq.WithdrawTicket, *rfq.ProvePayment, *rfq.ExpireDelivery, *rfq.SettleClaim, *rfq.ReleaseClaim, *rfq.RefundPayment,
		*rfq.AbandonDelivery:
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

// appendPiece appends the piece that the command carries.
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

// wellCut reports whether the command holds a piece as appendPieces makes them.
// It looks at nothing that the journal does not keep as it is.
func (c *Command) wellCut() bool {
	size := int(c.Status)
	return size >= 1 && size <= MaxPiece && len(c.RefText()) == max(size, pieceWords)-pieceWords &&
		(c.Kind != Fragment || size == MaxPiece && c.Order.Side < MaxPieces-1)
}

// An Assembler puts requests to the desk and refreshes of mirrored books together
// from their commands, in the order of the journal. The zero value is ready. What
// is not whole is torn: it is dropped, as soon as a piece shows it.
type Assembler struct {
	data [MaxPieces * MaxPiece]byte
	size int    // bytes gathered, of whole pieces
	next uint64 // Seq at which the next piece must come
}

// Add takes the next command that IsPiece. It returns a request or a refresh once
// it is whole, which aliases the Assembler until the next Add; the kind of the last
// command says which. torn says that this piece or those before it were dropped;
// pieces that a command of another kind cut off are forgotten without it.
func (j *Assembler) Add(c *Command) (request []byte, torn bool) {
	number := int(c.Order.Side)
	if number == 0 && j.NextPiece(c.Seq) > 0 {
		torn, j.size = true, 0
	}
	if number != j.NextPiece(c.Seq) || !c.wellCut() {
		j.size = 0
		return nil, true
	}
	whole := c.appendPiece(j.data[:number*MaxPiece])
	j.size, j.next = 0, c.Seq+1
	if binary.LittleEndian.Uint16(j.data[tokenAt:]) != uint16(c.Instrument) {
		return nil, true
	}
	if c.Kind != Fragment {
		return whole, torn
	}
	j.size = len(whole)
	return nil, torn
}

// Wants returns the number of the piece that the command seq would have to
// carry: 0 when no request is under way there.
func (j *Assembler) NextPiece(seq uint64) int {
	if j.next != seq {
		return 0
	}
	return j.size / MaxPiece
}

// pending returns what has been gathered of a request that the command seq may
// go on with.
func (j *Assembler) pending(seq uint64) []byte { return j.data[:j.NextPiece(seq)*MaxPiece] }

// restore undoes pending, and reports whether data can be that.
func (j *Assembler) restore(data []byte, seq uint64) bool {
	if len(data)%MaxPiece != 0 || len(data) > (MaxPieces-1)*MaxPiece {
		return false
	}
	j.size, j.next = copy(j.data[:], data), seq
	return true
}
