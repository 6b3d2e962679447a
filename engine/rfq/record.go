package rfq

import (
	"fmt"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// Tag is the type of a record. The numbers are in events and never change.
type Tag uint16

const (
	TagPolicy    Tag = 1
	TagPair      Tag = 2
	TagOperator  Tag = 3
	TagLock      Tag = 4
	TagTicket    Tag = 5 // without its tranches
	TagTranche   Tag = 6
	TagQuote     Tag = 7
	TagClaim     Tag = 8
	TagPayment   Tag = 9
	TagRailPrice Tag = 10
	TagKeyUsed   Tag = 11
	TagOutcome   Tag = 12
	TagRemoved   Tag = 13
)

// version2 is added to the tag of a record in events and stores if a field is set that only
// version 2 encodes.
const version2 Tag = 0x40

func (t Tag) v2() bool { return t&version2 != 0 }

// plain returns the tag without the version.
func (t Tag) plain() Tag { return t &^ version2 }

// TagOf returns the tag of the record that a chunk is part of.
func TagOf(c *event.DeskChunk) Tag { return Tag(c.Tag).plain() }

// encodedTag returns the tag of rec with its version.
func encodedTag(rec Record) Tag {
	if usesV2(rec) {
		return rec.Tag() | version2
	}
	return rec.Tag()
}

// Record is a change of the desk: *Policy, *Pair, *Operator, *Lock, *Ticket,
// *TicketTranche, *Quote, *Claim, *Payment or *RailPrice after the change, or *KeyUsed,
// *Outcome or *Removed. As events it is split into chunks of event.MaxDeskChunk bytes.
type Record interface {
	Tag() Tag
	walk(w *codec)
}

// TicketTranche is the record of one tranche. A new tranche follows the record of its ticket.
type TicketTranche struct {
	Ticket market.TicketID
	Tranche
}

// KeyUsed is the first record of a request with an idempotency key, refused or not.
type KeyUsed struct {
	RequestID uint64
	Key       IdempotencyKey
}

// Outcome is the last record of every request.
type Outcome struct {
	RequestID uint64
	Kind      RequestKind
	Reason    event.Reason // 0 = accepted
	// Limit is the number that the refusal is about: see the package documentation.
	Limit  int64
	At     int64
	Ticket market.TicketID // that the request concerns or created; 0 = none or unknown
}

// Removed says that the machine has forgotten a used or expired quote, a ticket, or a claim
// with its payments.
type Removed struct {
	What Tag // TagQuote, TagTicket or TagClaim
	ID   uint64
	At   int64
}

// Tag returns TagPolicy.
func (*Policy) Tag() Tag { return TagPolicy }

// Tag returns TagPair.
func (*Pair) Tag() Tag { return TagPair }

// Tag returns TagOperator.
func (*Operator) Tag() Tag { return TagOperator }

// Tag returns TagLock.
func (*Lock) Tag() Tag { return TagLock }

// Tag returns TagTicket.
func (*Ticket) Tag() Tag { return TagTicket }

// Tag returns TagTranche.
func (*TicketTranche) Tag() Tag { return TagTranche }

// Tag returns TagQuote.
func (*Quote) Tag() Tag { return TagQuote }

// Tag returns TagClaim.
func (*Claim) Tag() Tag { return TagClaim }

// Tag returns TagPayment.
func (*Payment) Tag() Tag { return TagPayment }

// Tag returns TagRailPrice.
func (*RailPrice) Tag() Tag { return TagRailPrice }

// Tag returns TagKeyUsed.
func (*KeyUsed) Tag() Tag { return TagKeyUsed }

// Tag returns TagOutcome.
func (*Outcome) Tag() Tag { return TagOutcome }

// Tag returns TagRemoved.
func (*Removed) Tag() Tag { return TagRemoved }

func (t *TicketTranche) walk(w *codec) {
	u64(w, &t.Ticket)
	t.Tranche.walk(w)
}

func (k *KeyUsed) walk(w *codec) {
	u64(w, &k.RequestID)
	k.Key.walk(w)
}

func (o *Outcome) walk(w *codec) {
	u64(w, &o.RequestID)
	u8(w, &o.Kind)
	u16(w, &o.Reason)
	w.i64(&o.Limit)
	w.i64(&o.At)
	u64(w, &o.Ticket)
}

func (g *Removed) walk(w *codec) {
	u16(w, &g.What)
	u64(w, &g.ID)
	w.i64(&g.At)
}

// newRecord returns an empty record, or nil for an unknown tag.
func newRecord(t Tag) Record {
	switch t {
	case TagPolicy:
		return new(Policy)
	case TagPair:
		return new(Pair)
	case TagOperator:
		return new(Operator)
	case TagLock:
		return new(Lock)
	case TagTicket:
		return new(Ticket)
	case TagTranche:
		return new(TicketTranche)
	case TagQuote:
		return new(Quote)
	case TagClaim:
		return new(Claim)
	case TagPayment:
		return new(Payment)
	case TagRailPrice:
		return new(RailPrice)
	case TagKeyUsed:
		return new(KeyUsed)
	case TagOutcome:
		return new(Outcome)
	case TagRemoved:
		return new(Removed)
	}
	return nil
}

// Reader joins the chunks of records. The zero Reader starts at the beginning of a command. Not
// for concurrent use.
type Reader struct {
	buf   []byte
	seq   uint64
	tag   uint16
	next  uint16 // index of the next chunk; 0 = a new record
	count uint16
}

// Add takes the next event, ignoring those of other kinds than Desk. When e is the last
// chunk of a record it returns the record, which the caller may keep, with the Seq of its
// command, and true. It panics if the chunks do not form a record, because only a broken
// engine writes such events.
func (r *Reader) Add(e *event.Event) (Record, uint64, bool) {
	c, ok := e.Desk()
	if !ok {
		return nil, 0, false
	}
	if r.next == 0 {
		r.buf, r.seq, r.tag, r.count = r.buf[:0], e.Seq, c.Tag, c.Count
	}
	if c.Index != r.next || c.Index >= c.Count || c.Count != r.count || c.Tag != r.tag || e.Seq != r.seq {
		panic(fmt.Sprintf("desk events: seq %d tag %d piece %d of %d after seq %d tag %d piece %d of %d",
			e.Seq, c.Tag, c.Index, c.Count, r.seq, r.tag, int(r.next)-1, r.count))
	}
	r.buf = append(r.buf, c.Data...)
	if r.next++; r.next < r.count {
		return nil, 0, false
	}
	r.next = 0
	tag := Tag(r.tag)
	rec := newRecord(tag.plain())
	if rec == nil {
		panic(fmt.Sprintf("desk events: seq %d: no record has tag %d", r.seq, r.tag))
	}
	w := codec{buf: r.buf, reading: true, v2: tag.v2()}
	if rec.walk(&w); !w.complete() || usesV2(rec) != w.v2 {
		panic(fmt.Sprintf("desk events: seq %d: damaged record with tag %d", r.seq, r.tag))
	}
	return rec, r.seq, true
}

// writeRecord writes rec as events of the command seq. w is scratch memory.
func writeRecord(rec Record, seq uint64, w *codec, out *event.Sink) {
	tag := encodedTag(rec)
	w.buf, w.v2 = w.buf[:0], tag.v2()
	rec.walk(w)
	rest := w.buf
	c := event.DeskChunk{Tag: uint16(tag), Count: uint16((len(rest) + event.MaxDeskChunk - 1) / event.MaxDeskChunk)}
	for ; c.Index < c.Count; c.Index++ {
		n := min(len(rest), event.MaxDeskChunk)
		c.Data, rest = rest[:n], rest[n:]
		out.Next().SetDesk(seq, c)
	}
}
