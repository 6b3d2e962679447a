package desk

import (
	"encoding/binary"
	"math/bits"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// codec carries fields to bytes or from bytes: a type says once, in its walk, in
// which order they stand. Whole numbers are varints of the shortest form, signed
// ones zigzag first; texts and lists are a count and what it counts. So whatever
// is read whole would be written the same again. Writing changes no value: one that
// is being written may be in many hands.
type codec struct {
	buf     []byte // writing: all that is written; reading: what is left
	reading bool
	bad     bool // reading: no walk wrote these bytes
}

// whole reports whether all was read and nothing is left.
func (c *codec) whole() bool { return !c.bad && len(c.buf) == 0 }

func (c *codec) fail() { c.bad, c.buf = true, nil }

// take returns the next n bytes, or nil when they are not there.
func (c *codec) take(n int) []byte {
	if n > len(c.buf) {
		c.fail()
		return nil
	}
	taken := c.buf[:n]
	c.buf = c.buf[n:]
	return taken
}

// version carries the byte that every value begins with.
func (c *codec) version(v uint8) {
	if !c.reading {
		c.buf = append(c.buf, v)
	} else if b := c.take(1); b == nil || b[0] != v {
		c.fail()
	}
}

// number carries an unsigned number.
func number[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *codec, v *T) {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, uint64(*v))
		return
	}
	u, n := binary.Uvarint(c.buf)
	if n <= 0 || n != max(1, (bits.Len64(u)+6)/7) || uint64(T(u)) != u {
		c.fail()
		return
	}
	*v, c.buf = T(u), c.buf[n:]
}

// signed carries a number that may be negative: a time, a limit.
func (c *codec) signed(v *int64) {
	u := uint64(*v<<1) ^ uint64(*v>>63)
	if number(c, &u); c.reading {
		*v = int64(u>>1) ^ -int64(u&1)
	}
}

// bytes carries len(v) bytes.
func (c *codec) bytes(v []byte) {
	if !c.reading {
		c.buf = append(c.buf, v...)
	} else if b := c.take(len(v)); b != nil {
		copy(v, b)
	}
}

// hash carries bytes that are often all zero: then one byte says so.
func (c *codec) hash(v *[32]byte) {
	there := uint8(0)
	if *v != ([32]byte{}) {
		there = 1
	}
	number(c, &there)
	switch there {
	case 0:
	case 1:
		c.bytes(v[:])
		c.bad = c.bad || *v == [32]byte{}
	default:
		c.fail()
	}
}

func (c *codec) address(v *market.Address) { c.hash((*[32]byte)(v)) }

// text carries 0..rfq.MaxText bytes.
func (c *codec) text(v *string) {
	n := uint8(len(*v))
	number(c, &n)
	switch {
	case !c.reading:
		c.buf = append(c.buf, *v...)
	case n > rfq.MaxText:
		c.fail()
	default:
		*v = string(c.take(int(n)))
	}
}

func (c *codec) terms(t *rfq.Terms) {
	number(c, &t.Ticket)
	number(c, &t.Tranche)
	number(c, &t.Instrument)
	number(c, &t.Fill)
	number(c, &t.Rail)
	number(c, &t.DiscountBps)
	number(c, &t.FeeBps)
	number(c, &t.Reference)
	number(c, &t.Price)
	number(c, &t.Base)
	number(c, &t.Payment)
	c.address(&t.PayTo)
}

func (c *codec) quote(q *rfq.Quote) {
	number(c, &q.ID)
	c.terms(&q.Terms)
	c.signed(&q.IssuedAt)
	c.signed(&q.ValidUntil)
}

func (c *codec) claim(l *rfq.Claim) {
	number(c, &l.ID)
	number(c, &l.Quote)
	number(c, &l.Way)
	number(c, &l.State)
	c.terms(&l.Terms)
	c.address(&l.Wallet)
	number(c, &l.Participant)
	c.signed(&l.ReservedAt)
	c.signed(&l.Deadline)
	c.signed(&l.ChangedAt)
	number(c, &l.Paid)
	c.hash(&l.Proof)
}

func (c *codec) payment(p *rfq.Payment) {
	c.bytes(p.Signature[:])
	number(c, &p.Claim)
	number(c, &p.Rail)
	number(c, &p.State)
	number(c, &p.Why)
	number(c, &p.Amount)
	c.address(&p.Payer)
	number(c, &p.Slot)
	c.signed(&p.At)
	c.hash(&p.Proof)
}

func (c *codec) ticket(t *rfq.Ticket) {
	number(c, &t.ID)
	c.text(&t.Label)
	number(c, &t.Instrument)
	number(c, &t.Rails)
	number(c, &t.State)
	number(c, &t.Priority)
	number(c, &t.Reference)
	c.signed(&t.CreatedAt)
	c.signed(&t.UpdatedAt)
	c.signed(&t.ExpiresAt)
	number(c, &t.Seq)
	number(c, &t.By)
	n := uint8(len(t.Tranches))
	if number(c, &n); n > rfq.MaxTranches {
		c.fail()
		return
	}
	if c.reading {
		t.Tranches = make([]rfq.Tranche, n)
	}
	for i := range t.Tranches {
		number(c, &t.Tranches[i].ID)
		number(c, &t.Tranches[i].Capacity)
		number(c, &t.Tranches[i].Reserved)
		number(c, &t.Tranches[i].Filled)
	}
}

func (c *codec) outcome(o *rfq.Outcome) {
	number(c, &o.Token)
	number(c, &o.Kind)
	number(c, &o.Reason)
	c.signed(&o.Limit)
	c.signed(&o.At)
	number(c, &o.Ticket)
}

// part carries a value that may be missing; there says whether it is.
func part[T any](c *codec, there bool, v **T, walk func(*T)) {
	if !there {
		return
	}
	if c.reading {
		*v = new(T)
	}
	walk(*v)
}

// Which parts an answer has.
const (
	hasQuote   = 1 << 0
	hasClaim   = 1 << 1
	hasTicket  = 1 << 2
	hasPayment = 1 << 3
)

// result carries a Result without its Replayed.
func (c *codec) result(r *Result) {
	var parts uint8
	for i, there := range [...]bool{r.Quote != nil, r.Claim != nil, r.Ticket != nil, r.Payment != nil} {
		if there {
			parts |= 1 << i
		}
	}
	if number(c, &parts); parts >= 1<<4 {
		c.fail()
		return
	}
	c.outcome(&r.Outcome)
	part(c, parts&hasQuote != 0, &r.Quote, c.quote)
	part(c, parts&hasClaim != 0, &r.Claim, c.claim)
	part(c, parts&hasTicket != 0, &r.Ticket, c.ticket)
	part(c, parts&hasPayment != 0, &r.Payment, c.payment)
}
