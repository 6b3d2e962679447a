package fixterm

import (
	"fmt"
	"slices"
)

// marketData renders a W or an X: new trades, and the book.
func (t *Terminal) marketData(m message) []Report {
	id := m.get(262)
	if t.ended[id] {
		return nil
	}
	i := slices.IndexFunc(t.books, func(b *book) bool { return b.id == id })
	if i < 0 {
		r := begin(m, "book")
		r.sentence = "of a subscription that is not known here (" + id + ")"
		return one(r)
	}
	k := t.books[i]
	first := 279
	if m.typ() == "W" {
		first = 269
		k.bids, k.asks, k.hasSnapshot = nil, nil, true
	}
	var out []Report
	for _, e := range m.groups(first) {
		switch e.get(269) {
		case "0":
			k.bids = change(k.bids, e, func(a, b string) int { return compare(b, a) })
		case "1":
			k.asks = change(k.asks, e, compare)
		case "2":
			if m.typ() == "W" {
				continue // traded earlier
			}
			r := Report{Event: "traded", Time: m.get(52)}
			r.sentence = fmt.Sprintf("%s %s at %s", short(e.get(271)), k.symbol, short(e.get(270)))
			r.add("msg_type", m.typ())
			r.add("symbol", k.symbol)
			r.add("qty", e.get(271))
			r.add("price", e.get(270))
			out = append(out, r)
		}
	}
	return append(out, k.report(m))
}

// marketRefused renders a MarketDataRequestReject (Y).
func (t *Terminal) marketRefused(m message) Report {
	r := begin(m, "refused")
	r.Refused = true
	r.sentence = "book (" + m.get(262) + ")"
	for _, b := range t.books {
		if b.id == m.get(262) && !b.hasSnapshot {
			r.sentence = "book of " + b.symbol
			r.add("symbol", b.symbol)
		}
	}
	t.books = slices.DeleteFunc(t.books, func(b *book) bool { return b.id == m.get(262) && !b.hasSnapshot })
	r.add("md_req_id", m.get(262))
	r.add("reason", m.get(281))
	return r
}

// Disconnected drops the subscriptions, which end with the connection. It returns the
// commands that make them again.
func (t *Terminal) Disconnected() []string {
	var again []string
	for _, b := range t.books {
		again = append(again, fmt.Sprintf("book %s %d", b.symbol, b.depth))
	}
	t.books = nil
	return again
}
