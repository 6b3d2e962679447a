package rfq

import (
	"bytes"
	"strconv"
	"sync/atomic"

	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// ticketText is a ticket's JSON in the three documents that list tickets. Most changes
// affect one ticket, and the texts of all others are reused.
type ticketText struct {
	ticket *rfq.Ticket
	price  ticketPrice

	full  []byte // in market-tickets
	rows  []byte // in market-tickets.compact, each with a comma; empty = nothing to sell
	offer []byte // on the board; empty = nothing to sell
}

// ticketTexts are the texts of all tickets of a view, by ID.
type ticketTexts struct {
	snapshot *snapshot
	list     []ticketText
	// common has the ladder and the pairs. If it changes, all texts are invalid.
	common []byte
}

// ticketCache caches the texts of the newest snapshot. It is safe for concurrent use.
type ticketCache struct {
	about  *wire.Description
	newest atomic.Pointer[ticketTexts]
}

// get returns the texts of a snapshot. It reuses those of unchanged tickets, whose
// pointers are the same in successive views.
func (c *ticketCache) get(e *snapshot) *ticketTexts {
	old := c.newest.Load()
	if old != nil && old.snapshot == e {
		return old
	}
	fresh := &ticketTexts{snapshot: e, list: make([]ticketText, 0, len(e.view.Tickets)), common: appendCommon(nil, e)}
	var reusable []ticketText
	if old != nil && bytes.Equal(old.common, fresh.common) {
		reusable = old.list
	}
	scratch := make([]byte, 0, 8<<10)
	for _, t := range e.view.Tickets {
		n := e.pair(t.Instrument)
		if n == nil {
			continue
		}
		price := e.priceOf(n, t)
		for len(reusable) > 0 && reusable[0].ticket.ID < t.ID {
			reusable = reusable[1:]
		}
		if len(reusable) > 0 && reusable[0].ticket == t && reusable[0].price == price {
			fresh.list = append(fresh.list, reusable[0])
			continue
		}
		fresh.list = append(fresh.list, c.render(scratch, e, n, t, price))
	}
	c.newest.Store(fresh)
	return fresh
}

// appendCommon appends what ticketTexts.common holds.
func appendCommon(dst []byte, e *snapshot) []byte {
	for _, bps := range e.view.Policy.Discounts {
		dst = strconv.AppendUint(dst, uint64(bps), 10)
		dst = append(dst, ' ')
	}
	for i := range e.pairs {
		dst = append(dst, e.pairs[i].base...)
	}
	return dst
}

// render renders one ticket in scratch, which it overwrites, and returns the three texts
// in a single allocation.
func (c *ticketCache) render(scratch []byte, e *snapshot, n *pairState, t *rfq.Ticket, price ticketPrice) ticketText {
	text := c.appendTicket(scratch[:0], n, t, price.reference)
	full := len(text)
	text = appendCompact(text, e.view, n, t, price)
	rows := len(text)
	text = c.appendOffer(text, e.view, n, t, price)
	text = bytes.Clone(text)
	return ticketText{
		ticket: t, price: price,
		full: text[:full:full], rows: text[full:rows:rows], offer: text[rows:],
	}
}

// appendTicket appends a ticket record (docs/specification.md C.4).
func (c *ticketCache) appendTicket(dst []byte, n *pairState, t *rfq.Ticket, reference market.USDPrice) []byte {
	dst = append(dst, `{"order_id":"`...)
	dst = market.AppendTicketID(dst, t.ID)
	dst = append(dst, `","ticket_label":`...)
	dst = wire.AppendText(dst, t.Label)
	dst = append(dst, `,"pair":"`...)
	dst = append(dst, n.in.Symbol...)
	dst = append(dst, `","side":"sell","state":"`...)
	dst = append(dst, terms.TicketStates[t.State]...)
	dst = append(dst, '"')
	dst = append(dst, n.base...)
	dst = append(dst, `,"rails":`...)
	dst = wire.AppendRails(dst, t.Rails)
	dst = append(dst, `,"tranches":[`...)
	for i := range t.Tranches {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendTranche(dst, t, &t.Tranches[i])
	}
	dst = append(dst, `],"reference_price_usd":`...)
	dst = wire.AppendUSDPrice(dst, reference)
	dst = append(dst, `,"guarantee":{"libelle":`...)
	dst = wire.AppendText(dst, c.about.QualificationLabel)
	dst = append(dst, `,"montant_verifie_independamment":false},"created_at":`...)
	dst = wire.AppendMillis(dst, t.CreatedAt)
	dst = append(dst, `,"updated_at":`...)
	dst = wire.AppendMillis(dst, t.UpdatedAt)
	dst = append(dst, `,"expires_at":`...)
	dst = wire.AppendMillis(dst, t.ExpiresAt)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendUint(dst, t.Seq, 10)
	return append(dst, '}')
}

func appendTranche(dst []byte, t *rfq.Ticket, tranche *rfq.Tranche) []byte {
	dst = append(dst, `{"tranche_id":"`...)
	dst = market.AppendTrancheID(dst, t.ID, tranche.ID)
	dst = append(dst, `","capacity_usd":`...)
	dst = wire.AppendUSD(dst, tranche.Capacity)
	dst = append(dst, `,"available_usd":`...)
	dst = wire.AppendUSD(dst, tranche.Available())
	dst = append(dst, `,"reserved_usd":`...)
	dst = wire.AppendUSD(dst, tranche.Reserved)
	dst = append(dst, `,"filled_usd":`...)
	dst = wire.AppendUSD(dst, tranche.Filled)
	dst = append(dst, `,"state":"`...)
	state := t.State
	if state == rfq.TicketOpen && !sellable(tranche) {
		state = rfq.TicketExhausted
	}
	dst = append(dst, terms.TicketStates[state]...)
	return append(dst, `"}`...)
}

// sellable reports whether a tranche has capacity for the smallest fill.
func sellable(t *rfq.Tranche) bool { return t.Available() >= market.FillUSD(1).USD() }

// appendCompact appends one row for each tranche that can be claimed:
//
//	[order_id, tranche_id, pair, available_usd, best_price_usd, expires_unix_ms],
//
// best_price_usd is the price of the largest discount among the fill sizes that fit into
// the tranche and the free inventory, or null while there are no quotes. expires_unix_ms is null for a ticket
// that does not expire.
func appendCompact(dst []byte, v *rfq.View, n *pairState, t *rfq.Ticket, price ticketPrice) []byte {
	if t.State != rfq.TicketOpen {
		return dst
	}
	for i := range t.Tranches {
		tranche := &t.Tranches[i]
		if !sellable(tranche) {
			continue
		}
		dst = append(dst, `["`...)
		dst = market.AppendTicketID(dst, t.ID)
		dst = append(dst, `","`...)
		dst = market.AppendTrancheID(dst, t.ID, tranche.ID)
		dst = append(dst, `","`...)
		dst = append(dst, n.in.Symbol...)
		dst = append(dst, `",`...)
		dst = wire.AppendUSD(dst, tranche.Available())
		dst = append(dst, ',')
		dst = wire.AppendUSDPrice(dst, price.bestPrice(v, tranche))
		dst = append(dst, ',')
		if t.ExpiresAt == 0 {
			dst = append(dst, "null"...)
		} else {
			dst = strconv.AppendInt(dst, t.ExpiresAt/1e6, 10)
		}
		dst = append(dst, "],"...)
	}
	return dst
}

// appendOffer appends an open ticket as an offer of the board: what guarantees it, what
// the operator declares, and that nothing is independently verified
// (docs/specification.md 1.10).
func (c *ticketCache) appendOffer(dst []byte, v *rfq.View, n *pairState, t *rfq.Ticket, price ticketPrice) []byte {
	if t.State != rfq.TicketOpen {
		return dst
	}
	var capacity, available market.USD
	largest := &rfq.Tranche{}
	for i := range t.Tranches {
		tranche := &t.Tranches[i]
		capacity += tranche.Capacity
		available += tranche.Available()
		if tranche.Available() > largest.Available() {
			largest = tranche
		}
	}
	dst = append(dst, `{"order_id":"`...)
	dst = market.AppendTicketID(dst, t.ID)
	dst = append(dst, `","ticket_label":`...)
	dst = wire.AppendText(dst, t.Label)
	dst = append(dst, `,"pair":"`...)
	dst = append(dst, n.in.Symbol...)
	dst = append(dst, `","side":"sell","rails":`...)
	dst = wire.AppendRails(dst, t.Rails)
	dst = append(dst, `,"available_usd":`...)
	dst = wire.AppendUSD(dst, available)
	dst = append(dst, `,"best_price_usd":`...)
	dst = wire.AppendUSDPrice(dst, price.bestPrice(v, largest))
	dst = append(dst, `,"guaranteed_by":{"libelle":`...)
	dst = wire.AppendText(dst, c.about.QualificationLabel)
	dst = append(dst, `},"operator_declared":{"operateur":`...)
	dst = wire.AppendText(dst, c.about.Operator)
	dst = append(dst, `,"nature":`...)
	dst = wire.AppendText(dst, c.about.QualificationNature)
	dst = append(dst, `,"capacity_usd":`...)
	dst = wire.AppendUSD(dst, capacity)
	dst = append(dst, `,"reference_price_usd":`...)
	dst = wire.AppendUSDPrice(dst, price.reference)
	dst = append(dst, `},"independently_verified":false,"montant_verifie_independamment":false,"expires_at":`...)
	dst = wire.AppendMillis(dst, t.ExpiresAt)
	return append(dst, '}')
}
