package terms

import (
	"crypto/sha256"
	"fmt"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Members that several bodies have. An id may be longer than any of ours: it is
// then unknown, not malformed.
var (
	OrderMember   = wire.Member{Name: "order_id", Kind: wire.TextMember, MaxLen: wire.MaxSegment}
	TrancheMember = wire.Member{Name: "tranche_id", Kind: wire.TextMember, MaxLen: wire.MaxSegment}
	FillMember    = wire.Member{Name: "fill_usd", Kind: wire.IntegerMember, MaxLen: 16}
)

// Refuse is a refusal that the desk need not be asked for.
func Refuse(reason event.Reason) *wire.Problem { return Refusal(&rfq.Outcome{Reason: reason}) }

// ParseOffer reads the ids of a ticket and of one of its tranches, which the
// view must have. A ticket leaves the view long after it has ended, so what is
// not there cannot be bought; where gone is true, one that the view does not
// have is taken as it is.
func ParseOffer(v *rfq.View, order, tranche []byte, gone bool) (market.TicketID, market.TrancheID, *wire.Problem) {
	ticket, ok := market.ParseTicketID(order)
	t := v.Ticket(ticket)
	if !ok || t == nil && !gone {
		return 0, 0, Refuse(event.ReasonUnknownTicket)
	}
	of, id, ok := market.ParseTrancheID(tranche)
	if !ok || of != ticket || t != nil && t.Tranche(id) == nil {
		return 0, 0, Refuse(event.ReasonUnknownTranche)
	}
	return ticket, id, nil
}

// ParseFill reads a step of the ladder.
func ParseFill(text []byte) (market.FillUSD, *wire.Problem) {
	fill, ok := market.ParseFill(text)
	if !ok {
		bad := wire.InvalidMember(FillMember.Name, "not_on_ladder")
		bad.Text = "fill_usd must be one of the fill sizes that /api/v1/rfq/levels lists."
		return 0, bad
	}
	return fill, nil
}

// ParseRail reads a rail from the member called name; what was not sent is the
// first of rail_priority (spec, 2.2).
func ParseRail(name string, text []byte) (market.Rail, *wire.Problem) {
	if text == nil {
		return market.RailUSDC, nil
	}
	rail, ok := market.ParseRail(text)
	if !ok {
		bad := wire.InvalidMember(name, "unknown_rail")
		bad.Text = name + " must be one of the rails that /api/v1/rfq/rails lists."
		return 0, bad
	}
	return rail, nil
}

// Operation names what a POST does, whichever surface it comes to: a key used on
// one alias is used on all.
type Operation string

const (
	OpQuote         Operation = "quote"
	OpModularClaim  Operation = "modular-claim-take"
	OpAtomicClaim   Operation = "atomic-claim-ticket"
	OpVerifyPayment Operation = "verify-payment"
	OpBuild         Operation = "dvp-build"
	OpSubmit        Operation = "dvp-submit"
)

// IdempotencyKey makes the desk's key of a client's (our choice): the operation and
// the client's key say which request it is; canonical, an encoding of the
// values that the body had, whether it is the same. So white space, the order
// of members, 250 for "250", and a default written out make no other body. The
// key belongs to no address: a client may send it again from anywhere, and so
// must choose one that nobody else chooses. No key gives no key.
func IdempotencyKey(op Operation, key, canonical []byte) rfq.IdempotencyKey {
	if key == nil {
		return rfq.IdempotencyKey{}
	}
	id := sha256.Sum256(fmt.Appendf(nil, "POST %s %s", op, key))
	body := sha256.Sum256(canonical)
	return rfq.IdempotencyKey{ID: [16]byte(id[:]), Body: [8]byte(body[:])}
}

// SetIdempotencyKey gives a request, whose header is empty, its key.
func SetIdempotencyKey(r rfq.Request, op Operation, key []byte) {
	r.Head().Key = IdempotencyKey(op, key, rfq.AppendRequest(nil, r))
}
