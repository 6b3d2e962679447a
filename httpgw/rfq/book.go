package rfq

import (
	"strconv"

	"blockdesk/httpgw/wire"
)

// appendSeq appends the first members of a document of the book.
func appendSeq(dst []byte, e *snapshot) []byte {
	dst = append(dst, `{"ok":true,"seq":`...)
	return strconv.AppendUint(dst, e.view.Seq, 10)
}

// appendAccepting appends whether claims are accepted now, as in the status document.
func appendAccepting(dst []byte, e *snapshot) []byte {
	ok, whyNot := e.accepting()
	dst = strconv.AppendBool(append(dst, `,"accepting":`...), ok)
	dst = append(dst, `,"accepting_reason":`...)
	if whyNot == nil {
		return append(dst, "null"...)
	}
	return wire.AppendText(dst, *whyNot)
}

func appendSeqTime(dst []byte, e *snapshot) []byte {
	dst = append(appendSeq(dst, e), `,"ts":`...)
	return wire.AppendMillis(dst, e.ts)
}

// renderSellable renders the current sellable ticket.
func (p *pages) renderSellable(e *snapshot) []byte {
	body := append(appendAccepting(appendSeq(nil, e), e), `,"ticket":`...)
	if t := e.sellable; t != nil {
		if n := e.pair(t.Instrument); n != nil {
			body = p.tickets.appendTicket(body, n, t, e.priceOf(n, t).reference)
			return append(body, '}')
		}
	}
	return append(body, "null}"...)
}

// renderTickets renders all tickets of the view.
func (p *pages) renderTickets(e *snapshot) []byte {
	return p.renderList(e, `,"tickets":[`, func(t *ticketText) []byte { return t.full })
}

// renderBoard renders the open tickets as offers.
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
	body := append(appendAccepting(appendSeqTime(make([]byte, 0, size), e), e), head...)
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

// renderCompact renders the compact book for programs (see appendCompact). It has no ts,
// so that its bytes change only with the book, a price, or whether claims are accepted.
func (p *pages) renderCompact(e *snapshot) []byte {
	texts := p.tickets.get(e)
	size := 128
	for i := range texts.list {
		size += len(texts.list[i].rows)
	}
	body := append(appendAccepting(appendSeq(make([]byte, 0, size), e), e), `,"t":[`...)
	for i := range texts.list {
		body = append(body, texts.list[i].rows...)
	}
	if last := len(body) - 1; body[last] == ',' {
		body = body[:last]
	}
	return append(body, "]}"...)
}
