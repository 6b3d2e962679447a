package feed

import "blockdesk/market"

// ticketsUpdate returns the update to p: the records of new and changed tickets, and the
// ids of removed ones.
func (e *encoder) ticketsUpdate(in *market.Instrument, p position, changed []deskRecord, removed []market.TicketID) []byte {
	e.open(in, tickets, "update", p, p.seq-1)
	e.records(tickets, changed)
	e.text(`,"gone":[`)
	for i, id := range removed {
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
