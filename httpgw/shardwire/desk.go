package shardwire

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Desk is a shard's desk and the best prices of its books. Instruments have the
// shard's own numbers: 0 to len(Books)-1.
type Desk struct {
	Enabled bool          // false: the shard has no desk, and only Books is set
	At      int64         // Unix ns of the desk's last change
	Pairs   []rfq.Pair    // by Instrument
	Locks   []rfq.Lock    // by Scope, Instrument, Rail
	Tickets []*rfq.Ticket // by ID, with 1 to rfq.MaxTranches tranches each
	Books   []Book        // by InstrumentID
}

// Book is the status of an instrument and its best prices. A zero level means none.
type Book struct {
	Status   uint8 // engine.StatusTrading, StatusHalted or StatusAuction
	Bid, Ask market.Level
}

const bookSize = 1 + 4*8

// AppendDesk appends d's encoding and returns the extended slice.
func AppendDesk(dst []byte, d *Desk) []byte {
	dst = appendHead(dst, kindDesk)
	enabled := byte(0)
	if d.Enabled {
		enabled = 1
	}
	le := binary.LittleEndian
	dst = le.AppendUint64(append(dst, enabled), uint64(d.At))
	dst = le.AppendUint16(dst, uint16(len(d.Books)))
	for i := range d.Books {
		b := &d.Books[i]
		dst = append(dst, b.Status)
		for _, n := range [...]uint64{uint64(b.Bid.Price), uint64(b.Bid.Qty), uint64(b.Ask.Price), uint64(b.Ask.Qty)} {
			dst = le.AppendUint64(dst, n)
		}
	}
	records := len(d.Pairs) + len(d.Locks) + len(d.Tickets)
	for _, t := range d.Tickets {
		records += len(t.Tranches)
	}
	dst = le.AppendUint32(dst, uint32(records))
	for i := range d.Pairs {
		dst = rfq.AppendRecord(dst, &d.Pairs[i])
	}
	for i := range d.Locks {
		dst = rfq.AppendRecord(dst, &d.Locks[i])
	}
	for _, t := range d.Tickets {
		dst = rfq.AppendRecord(dst, t)
		for _, tranche := range t.Tranches {
			dst = rfq.AppendRecord(dst, &rfq.TicketTranche{Ticket: t.ID, Tranche: tranche})
		}
	}
	return dst
}

// DecodeDesk decodes a document of a shard with this many instruments. The result does
// not alias data. Errors: ErrFormat, VersionError.
func DecodeDesk(data []byte, instruments int) (*Desk, error) {
	rest, err := body(data, kindDesk)
	if err != nil {
		return nil, err
	}
	c := codec{buf: rest, reading: true}
	d := &Desk{}
	c.flag(&d.Enabled)
	i64(&c, &d.At)
	if books := c.count(0, MaxBooks); c.err == nil && (books != instruments || len(c.buf) < books*bookSize) {
		c.fail("instruments:", uint64(books))
	}
	if c.err == nil {
		d.Books = make([]Book, instruments)
	}
	for i := range d.Books {
		b := &d.Books[i]
		u8(&c, &b.Status)
		c.level(&b.Bid)
		c.level(&b.Ask)
	}
	head := c.take(4)
	if c.err != nil {
		return nil, c.err
	}
	if err := d.records(c.buf, binary.LittleEndian.Uint32(head)); err != nil {
		return nil, err
	}
	return d, nil
}

// records adds the count records in rest.
func (d *Desk) records(rest []byte, count uint32) error {
	for i := range count {
		rec, after, err := rfq.DecodeRecord(rest)
		if err != nil {
			return fmt.Errorf("record %d: %w: %w", i, ErrFormat, err)
		}
		if !d.add(rec) {
			return fmt.Errorf("record %d, %T: %w", i, rec, ErrFormat)
		}
		rest = after
	}
	for _, t := range d.Tickets {
		if len(t.Tranches) == 0 {
			return fmt.Errorf("ticket %d has no tranche: %w", t.ID, ErrFormat)
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d trailing bytes: %w", len(rest), ErrFormat)
	}
	return nil
}

// add adds a record and reports whether it is valid and in order.
func (d *Desk) add(rec rfq.Record) bool {
	switch r := rec.(type) {
	case *rfq.Pair:
		if len(d.Locks)+len(d.Tickets) > 0 || !d.pairOK(r) {
			return false
		}
		d.Pairs = append(d.Pairs, *r)
	case *rfq.Lock:
		if len(d.Tickets) > 0 || !d.lockOK(r) {
			return false
		}
		d.Locks = append(d.Locks, *r)
	case *rfq.Ticket:
		if !d.ticketOK(r) {
			return false
		}
		d.Tickets = append(d.Tickets, r)
	case *rfq.TicketTranche:
		if len(d.Tickets) == 0 {
			return false
		}
		t := d.Tickets[len(d.Tickets)-1]
		if r.Ticket != t.ID || int(r.ID) != len(t.Tranches)+1 || r.ID > rfq.MaxTranches || r.Capacity > rfq.MaxCapacity ||
			r.Filled > r.Capacity || r.Reserved > r.Capacity-r.Filled {
			return false
		}
		t.Tranches = append(t.Tranches, r.Tranche)
	default:
		return false
	}
	return true
}

func (d *Desk) has(in market.InstrumentID) bool { return int(in) < len(d.Books) }

func (d *Desk) pairOK(p *rfq.Pair) bool {
	return d.has(p.Instrument) && (p.Via == rfq.NoInstrument || d.has(p.Via)) &&
		(len(d.Pairs) == 0 || d.Pairs[len(d.Pairs)-1].Instrument < p.Instrument) &&
		p.BaseDecimals <= market.MaxDecimals && p.Rails&^market.AllRails == 0 && p.Anchor <= market.MaxUSDPrice
}

// lockOK reports whether a lock is in order and has the fields that its scope requires.
func (d *Desk) lockOK(l *rfq.Lock) bool {
	ok := false
	switch l.Scope {
	case rfq.LockAll, rfq.LockDeliveries, rfq.LockClock:
		ok = l.Instrument == 0 && l.Rail == 0
	case rfq.LockPair:
		ok = d.has(l.Instrument) && l.Rail == 0
	case rfq.LockRail:
		ok = l.Instrument == 0 && l.Rail.Valid()
	}
	if !ok || len(d.Locks) == 0 {
		return ok
	}
	last := &d.Locks[len(d.Locks)-1]
	return cmp.Or(cmp.Compare(last.Scope, l.Scope), cmp.Compare(last.Instrument, l.Instrument), cmp.Compare(last.Rail, l.Rail)) < 0
}

func (d *Desk) ticketOK(t *rfq.Ticket) bool {
	if n := len(d.Tickets); n == rfq.MaxTickets || n > 0 && d.Tickets[n-1].ID >= t.ID {
		return false
	}
	return t.ID != 0 && d.has(t.Instrument) && t.State >= rfq.TicketOpen && t.State <= rfq.TicketExpired &&
		t.Rails&^market.AllRails == 0 && t.Reference <= market.MaxUSDPrice
}
