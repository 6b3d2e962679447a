package httpgw

import (
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Members of the body of a quote (spec, 4.1), by their place in quoteMembers.
const (
	quoteOrder = iota
	quoteTranche
	quoteFill
	quoteRail
)

var quoteMembers = []member{
	quoteOrder: orderMember, quoteTranche: trancheMember, quoteFill: fillMember,
	quoteRail: {name: "rail", kind: textMember, most: 8},
}

// parseQuote reads the body of a quote.
func parseQuote(p *post, v *rfq.View) (*rfq.RequestQuote, *problem) {
	var m members
	if bad := decodeObject(p.body, quoteMembers, &m); bad != nil {
		return nil, bad
	}
	r := &rfq.RequestQuote{}
	var bad *problem
	if r.Fill, bad = parseFill(m.get(quoteFill)); bad != nil {
		return nil, bad
	}
	if r.Rail, bad = parseRail("rail", m.get(quoteRail)); bad != nil {
		return nil, bad
	}
	if r.Ticket, r.Tranche, bad = parseOffer(v, m.get(quoteOrder), m.get(quoteTranche), false); bad != nil {
		return nil, bad
	}
	setKey(r, opQuote, p.key)
	return r, nil
}

// postQuote gives a firm price for one claim.
func (e *rfqEndpoints) postQuote(p *post) (*answer, *problem) {
	r, bad := parseQuote(p, e.deal.view())
	if bad != nil {
		return nil, bad
	}
	result, bad := e.deal.ask(r)
	if bad != nil {
		return nil, bad
	}
	w := e.deal.terms()
	return &answer{status: 200, body: appendQuote(&w, result.Quote, result.Ticket.Label), replayed: result.Replayed}, nil
}

// appendQuote renders the answer.
func appendQuote(w *termsWriter, q *rfq.Quote, label string) []byte {
	dst := make([]byte, 0, 1024)
	dst = append(dst, `{"ok":true,"quote_id":"`...)
	dst = market.AppendQuoteID(dst, q.ID)
	dst = append(dst, `",`...)
	dst = w.offer(dst, &q.Terms, label)
	dst = append(dst, `,"payment":`...)
	dst = append(w.payment(dst, &q.Terms), `},`...)
	dst = w.fee(dst, &q.Terms)
	dst = appendMillis(append(dst, `,"issued_at":`...), q.IssuedAt)
	dst = appendMillis(append(dst, `,"valid_until":`...), q.ValidUntil)
	return append(dst, `,"firm":true}`...)
}
