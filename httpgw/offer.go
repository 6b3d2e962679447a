package httpgw

import (
	"crypto/sha256"
	"fmt"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Members that several bodies have. An id may be longer than any of ours: it is
// then unknown, not malformed.
var (
	orderMember   = member{name: "order_id", kind: textMember, most: MaxSegment}
	trancheMember = member{name: "tranche_id", kind: textMember, most: MaxSegment}
	fillMember    = member{name: "fill_usd", kind: wholeMember, most: 16}
)

// refuse is a refusal that the desk need not be asked for.
func refuse(reason event.Reason) *problem { return refusal(&rfq.Outcome{Reason: reason}) }

// parseOffer reads the ids of a ticket and of one of its tranches, which the
// view must have. A ticket leaves the view long after it has ended, so what is
// not there cannot be bought; where gone is true, one that the view does not
// have is taken as it is.
func parseOffer(v *rfq.View, order, tranche []byte, gone bool) (market.TicketID, market.TrancheID, *problem) {
	ticket, ok := market.ParseTicketID(order)
	t := v.Ticket(ticket)
	if !ok || t == nil && !gone {
		return 0, 0, refuse(event.ReasonUnknownTicket)
	}
	of, id, ok := market.ParseTrancheID(tranche)
	if !ok || of != ticket || t != nil && t.Tranche(id) == nil {
		return 0, 0, refuse(event.ReasonUnknownTranche)
	}
	return ticket, id, nil
}

// parseFill reads a step of the ladder.
func parseFill(text []byte) (market.FillUSD, *problem) {
	fill, ok := market.ParseFill(text)
	if !ok {
		bad := invalidMember(fillMember.name, "not_on_ladder")
		bad.text = "fill_usd must be one of the fill sizes that /api/v1/rfq/levels lists."
		return 0, bad
	}
	return fill, nil
}

// parseRail reads a rail from the member called name; what was not sent is the
// first of rail_priority (spec, 2.2).
func parseRail(name string, text []byte) (market.Rail, *problem) {
	if text == nil {
		return market.RailUSDC, nil
	}
	rail, ok := market.ParseRail(text)
	if !ok {
		bad := invalidMember(name, "unknown_rail")
		bad.text = name + " must be one of the rails that /api/v1/rfq/rails lists."
		return 0, bad
	}
	return rail, nil
}

// operation names what a POST does, whichever surface it comes to: a key used on
// one alias is used on all.
type operation string

const (
	opQuote         operation = "quote"
	opModularClaim  operation = "modular-claim-take"
	opAtomicClaim   operation = "atomic-claim-ticket"
	opVerifyPayment operation = "verify-payment"
	opBuild         operation = "dvp-build"
	opSubmit        operation = "dvp-submit"
)

// idempotency makes the desk's key of a client's (our choice): the operation and
// the client's key say which request it is; canonical, an encoding of the
// values that the body had, whether it is the same. So white space, the order
// of members, 250 for "250", and a default written out make no other body. The
// key belongs to no address: a client may send it again from anywhere, and so
// must choose one that nobody else chooses. No key gives no key.
func idempotency(op operation, key, canonical []byte) rfq.Key {
	if key == nil {
		return rfq.Key{}
	}
	id := sha256.Sum256(fmt.Appendf(nil, "POST %s %s", op, key))
	body := sha256.Sum256(canonical)
	return rfq.Key{ID: [16]byte(id[:]), Body: [8]byte(body[:])}
}

// setKey gives a request, whose header is empty, its key.
func setKey(r rfq.Request, op operation, key []byte) {
	r.Head().Key = idempotency(op, key, rfq.AppendRequest(nil, r))
}
