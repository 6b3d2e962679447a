package fixterm

import (
	"fmt"
	"slices"
	"strings"
)

// quoted renders a Quote (S).
func (t *Terminal) quoted(m message) Report {
	q := &quote{
		id: m.get(117), reqID: m.get(131), symbol: m.get(55), security: m.get(48),
		price: m.get(133), size: m.get(135), rail: m.get(15), until: m.get(62), fill: t.fills[m.get(131)],
	}
	if fill := m.get(152); fill != "" {
		q.fill = fill
	}
	t.quotes = slices.DeleteFunc(t.quotes, func(o *quote) bool { return o.id == q.id })
	t.quotes = bounded(t.quotes, q, MaxQuotes)
	r := begin(m, "quoted")
	r.sentence = fmt.Sprintf("%s %s at %s for %s %s, until %s (quote %s)", short(q.size), q.symbol, short(q.price), q.fill, q.rail, clock(q.until), q.id)
	r.add("quote_id", q.id)
	r.add("quote_req_id", q.reqID)
	r.add("symbol", q.symbol)
	r.add("ticket", q.security)
	r.add("price", q.price)
	r.add("qty", q.size)
	r.add("fill_usd", q.fill)
	r.add("rail", q.rail)
	r.add("valid_until", q.until)
	payment(&r, m)
	return r
}

// payment adds the custom fields of a payment, if the session has asked for them.
func payment(r *Report, m message) {
	for _, v := range []struct {
		name string
		tag  int
	}{
		{"payment_amount", 5605},
		{"payment_atoms", 5606},
		{"pay_to", 5607},
		{"payment_mint", 5608},
		{"payment_reference", 5609},
		{"payment_memo", 5610},
	} {
		r.add(v.name, m.get(v.tag))
	}
}

// quoteEnd renders a QuoteStatusReport (AI) or a QuoteCancel (Z).
func quoteEnd(m message) Report {
	r := begin(m, "quote ends")
	why := ""
	switch m.get(297) {
	case "5":
		why = "refused"
		r.Event, r.Refused = "refused", true
	case "6":
		why = "withdrawn"
	case "7":
		why = "expired"
	case "9":
		why = "not known"
		r.Event, r.Refused = "refused", true
	case "11":
		why = "passed"
	}
	if m.typ() == "Z" {
		why = "withdrawn by the desk"
	}
	r.sentence = strings.TrimSuffix(fmt.Sprintf("%s: %s", m.get(117), why), ": ")
	r.add("quote_id", m.get(117))
	r.add("quote_status", m.get(297))
	return r
}

// claimReport renders an ExecutionReport (8) of a claim.
func (t *Terminal) claimReport(m message) Report {
	c, err := t.claim(m.get(37))
	if err != nil {
		c = &claim{id: m.get(37), clOrdID: m.get(11)}
		t.claims = bounded(t.claims, c, MaxClaims)
	}
	c.symbol, c.price, c.qty, c.deadline = m.get(55), m.get(44), m.get(38), m.get(126)
	r := begin(m, "claim")
	switch m.get(150) {
	case "A":
		r.Event, c.state = "claimed", stateReserved
	case "0":
		r.Event, c.state = "paid", "paid"
	case "F":
		r.Event, c.state = "settled", "settled"
	case "C":
		r.Event, c.state = "expired", "expired"
	case "4":
		r.Event, c.state = "ended", "ended: "+m.get(58)
	case "I":
		c.state = statusWord(m.get(39))
	}
	r.sentence = fmt.Sprintf("%s %s at %s (claim %s, %s)", short(c.qty), c.symbol, short(c.price), c.id, m.get(11))
	if m.get(150) == "A" && c.deadline != "" {
		r.sentence += ", pay until " + clock(c.deadline) + "."
	}
	r.add("claim_id", c.id)
	r.add("cl_ord_id", m.get(11))
	r.add("exec_id", m.get(17))
	r.add("symbol", c.symbol)
	r.add("qty", c.qty)
	r.add("price", c.price)
	r.add("deadline", c.deadline)
	r.add("status", statusWord(m.get(39)))
	r.add("claim_state", m.get(5612))
	r.add("signature", m.get(5613))
	return r
}

// news renders a News (B): a claim's package, or a text of the operator.
func (t *Terminal) news(m message) Report {
	head := m.get(148)
	r := begin(m, "news")
	r.Text = ""
	for i := range m {
		if m[i].tag == 58 {
			r.Lines = append(r.Lines, m[i].value)
		}
	}
	r.sentence = head
	r.add("headline", head)
	id, ok := strings.CutPrefix(head, packagePrefix)
	if !ok {
		return r
	}
	r.Event, r.Code = "package", ""
	r.sentence = "of claim " + id
	r.add("claim_id", id)
	payment(&r, m)
	transaction := m.get(96)
	r.add("transaction", transaction)
	if transaction != "" {
		r.Lines = append(r.Lines,
			"pay:  echo '{\"transaction\":\""+transaction+"\"}' | blockdesk wallet pay",
			"then: paid "+id+" SIGNATURE")
	}
	if c, err := t.claim(id); err == nil {
		c.state = statePackage
	}
	return r
}

// tradeCapture renders a TradeCaptureReport (AE): a drop copy of a fill, or a settled
// claim.
func tradeCapture(m message) Report {
	r := begin(m, "trade")
	r.sentence = fmt.Sprintf("%s %s %s at %s (order %s, report %s)", sideWord(m.get(54)), short(m.get(32)), m.get(55), short(m.get(31)), m.get(37), m.get(571))
	r.add("trade_report_id", m.get(571))
	r.add("trade_id", m.get(572))
	r.add("exec_id", m.get(17))
	r.add("order_id", m.get(37))
	r.add("symbol", m.get(55))
	r.add("side", sideWord(m.get(54)))
	r.add("qty", m.get(32))
	r.add("price", m.get(31))
	r.add("signature", m.get(818))
	return r
}

// captureAnswer renders a TradeCaptureReportAck (AR): whether a payment is proven.
func captureAnswer(m message) Report {
	r := begin(m, "proven")
	r.sentence = "payment of claim " + m.get(572)
	if m.get(572) == "" {
		r.sentence = "payment (" + m.get(571) + ")"
	}
	if m.get(939) == "1" {
		r.Event, r.Refused = "refused", true
	}
	r.add("trade_report_id", m.get(571))
	r.add("claim_id", m.get(572))
	r.add("reason", m.get(751))
	return r
}
