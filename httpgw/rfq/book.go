package rfq

import (
	"strconv"

	"blockdesk/httpgw/wire"
)

// appendSeq appends the beginning of a document about the book.
func appendSeq(dst []byte, e *snapshot) []byte {
	dst = append(dst, `{"ok":true,"seq":`...)
	return strconv.AppendUint(dst, e.view.Seq, 10)
}

func appendSeqTime(dst []byte, e *snapshot) []byte {
	dst = append(appendSeq(dst, e), `,"ts":`...)
	return wire.AppendMillis(dst, e.ts)
}

// renderSellable renders the ticket that serves a client who names none.
func (p *pages) renderSellable(e *snapshot) []byte {
	body := append(appendSeq(nil, e), `,"ticket":`...)
	if t := e.view.Sellable; t != nil {
		if n := e.pair(t.Instrument); n != nil {
			body = p.tickets.appendTicket(body, n, t, e.priceOf(n, t).reference)
			return append(body, '}')
		}
	}
	return append(body, "null}"...)
}

// renderTickets renders the book: every ticket that has not been forgotten.
func (p *pages) renderTickets(e *snapshot) []byte {
	return p.renderList(e, `,"tickets":[`, func(t *ticketText) []byte { return t.full })
}

// renderBoard renders the offers, those open for sale.
func (p *pages) renderBoard(e *snapshot) []byte {
	head := []byte(`,"qualification":{"libelle":`)
	head = wire.AppendText(head, p.about.QualificationLabel)
	head = append(head, `,"nature":`...)
	head = wire.AppendText(head, p.about.QualificationNature)
	head = append(head, `},"layers":["guaranteed_by","operator_declared","independently_verified"],"offers":[`...)
	return p.renderList(e, string(head), func(t *ticketText) []byte { return t.offer })
}

// renderList renders a document that ends in a list of tickets.
func (p *pages) renderList(e *snapshot, head string, pick func(*ticketText) []byte) []byte {
	texts := p.tickets.get(e)
	size := 128 + len(head)
	for i := range texts.list {
		size += len(pick(&texts.list[i])) + 1
	}
	body := append(appendSeqTime(make([]byte, 0, size), e), head...)
	first := true
	for i := range texts.list {
		one := pick(&texts.list[i])
		if len(one) == 0 {
			continue
		}
		if !first {
			body = append(body, ',')
		}
		first = false
		body = append(body, one...)
	}
	return append(body, "]}"...)
}

// renderCompact renders rows of order_id, tranche_id, pair, available_usd,
// best_price_usd, expires_unix_ms: the book for bots (see appendCompact). It has
// no ts: only a change of the book or of a price makes other bytes.
func (p *pages) renderCompact(e *snapshot) []byte {
	texts := p.tickets.get(e)
	size := 64
	for i := range texts.list {
		size += len(texts.list[i].rows)
	}
	body := append(appendSeq(make([]byte, 0, size), e), `,"t":[`...)
	for i := range texts.list {
		body = append(body, texts.list[i].rows...)
	}
	if last := len(body) - 1; body[last] == ',' {
		body = body[:last]
	}
	return append(body, "]}"...)
}
