package feed

import "blockdesk/market"

// deskSnapshot returns a newly allocated frame with all records of a book.
func deskSnapshot(in *market.Instrument, b *deskBook) []byte {
	size := deskHead
	for i := range b.records {
		size += len(b.records[i].text) + 1
	}
	e := encoder{buf: make([]byte, 0, size)}
	e.open(in, b.kind, "snapshot", b.position, 0)
	e.records(b.kind, b.records)
	e.text(`}`)
	return e.end(finText)
}

// deskHead is an upper bound of the size of a message of the desk's channels without its
// records, in bytes.
const deskHead = headRoom + 256

// ticketsUpdate returns the update to p: the records of new and changed tickets, and the
// ids of removed ones.
func (e *encoder) ticketsUpdate(in *market.Instrument, p position, changed []deskRecord, gone []market.TicketID) []byte {
	e.open(in, tickets, "update", p, p.seq-1)
	e.records(tickets, changed)
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

// records appends the records under the name of their channel.
func (e *encoder) records(k kind, list []deskRecord) {
	e.text(`,"`)
	e.text(k.channel())
	e.text(`":[`)
	for i := range list {
		if i > 0 {
			e.text(`,`)
		}
		e.buf = append(e.buf, list[i].text...)
	}
	e.text(`]`)
}
