package feed

import (
	"sync"

	"blockdesk/market"
)

// ticketsSnapshot returns a newly allocated frame with all tickets of a book.
func ticketsSnapshot(in *market.Instrument, b *ticketBook) []byte {
	size := ticketsHead
	for i := range b.records {
		size += len(b.records[i].text) + 1
	}
	e := encoder{buf: make([]byte, 0, size)}
	e.open(in, tickets, "snapshot", b.position, 0)
	e.records(b.records)
	e.text(`}`)
	return e.end(finText)
}

// ticketsHead is an upper bound of the size of a tickets message without its records, in
// bytes.
const ticketsHead = headRoom + 256

// ticketsUpdate returns the update to p: the records of new and changed tickets, and the
// ids of removed ones.
func (e *encoder) ticketsUpdate(in *market.Instrument, p position, changed []ticketRecord, gone []market.TicketID) []byte {
	e.open(in, tickets, "update", p, p.seq-1)
	e.records(changed)
	e.text(`,"gone":[`)
	for i, id := range gone {
		if i > 0 {
			e.text(`,`)
		}
		e.text(`"`)
		e.buf = market.AppendTicketID(e.buf, id)
		e.text(`"`)
	}
	e.text(`]}`)
	return e.end(finText)
}

func (e *encoder) records(list []ticketRecord) {
	e.text(`,"tickets":[`)
	for i := range list {
		if i > 0 {
			e.text(`,`)
		}
		e.buf = append(e.buf, list[i].text...)
	}
	e.text(`]`)
}

// ticketRecord is one ticket with its JSON record.
type ticketRecord struct {
	id   market.TicketID
	text []byte
}

// ticketBook is the immutable list of an instrument's tickets. Its engineSeq is the Seq
// of the desk's last change of any pair when the book was made.
type ticketBook struct {
	position
	instrument market.InstrumentID
	records    []ticketRecord // by id

	once  sync.Once
	frame []byte // of the snapshot, once it was requested
}

// snapshot returns the frame of the whole book. The first call encodes it for all shards,
// because with the most tickets that a desk can have it is large (see doc.go).
func (b *ticketBook) snapshot(in *market.Instrument) []byte {
	b.once.Do(func() { b.frame = ticketsSnapshot(in, b) })
	return b.frame
}
