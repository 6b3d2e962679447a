package terms

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// Members that several bodies have. An id may be longer than any that exists; it is
// then unknown, not invalid.
var (
	OrderMember   = wire.Member{Name: "order_id", Kind: wire.TextMember, MaxLen: wire.MaxSegment}
	TrancheMember = wire.Member{Name: "tranche_id", Kind: wire.TextMember, MaxLen: wire.MaxSegment}
	FillMember    = wire.Member{Name: "fill_usd", Kind: wire.IntegerMember, MaxLen: 16}
)

// ParseOffer parses the ids of a ticket and of one of its tranches. The view must have
// the ticket, unless removed is true: a ticket is removed from the view long after it
// has ended, and nobody can buy it then.
func ParseOffer(v *rfq.View, order, tranche []byte, removed bool) (market.TicketID, market.TrancheID, *wire.Problem) {
	ticket, ok := market.ParseTicketID(order)
	t := v.Ticket(ticket)
	if !ok || t == nil && !removed {
		return 0, 0, Refusal(event.ReasonUnknownTicket)
	}
	of, id, ok := market.ParseTrancheID(tranche)
	if !ok || of != ticket || t != nil && t.Tranche(id) == nil {
		return 0, 0, Refusal(event.ReasonUnknownTranche)
	}
	return ticket, id, nil
}

// ParseFill parses a fill size of the ladder.
func ParseFill(text []byte) (market.FillUSD, *wire.Problem) {
	fill, ok := market.ParseFill(text)
	if !ok {
		problem := wire.InvalidMember(FillMember.Name, "not_on_ladder")
		problem.Text = "fill_usd must be a fill size from /api/v1/rfq/levels."
		return 0, problem
	}
	return fill, nil
}

// ParseRail parses the value of the member name. An absent value means the first rail
// of rail_priority (docs/specification.md 2.2).
func ParseRail(name string, text []byte) (market.Rail, *wire.Problem) {
	if text == nil {
		return market.RailUSDC, nil
	}
	rail, ok := market.ParseRail(text)
	if !ok {
		problem := wire.InvalidMember(name, "unknown_rail")
		problem.Text = name + " must be a rail from /api/v1/rfq/rails."
		return 0, problem
	}
	return rail, nil
}

// ClientAddress returns the client whose unproven claims count together: an IPv4 address or
// the /64 of an IPv6 address. Addresses whose upper half is zero, such as ::1, count as one
// client, because zero means that the client is unknown.
func ClientAddress(c ratelimit.Client) rfq.ClientAddress {
	upper, lower := binary.BigEndian.Uint64(c[:8]), binary.BigEndian.Uint64(c[8:])
	switch {
	case upper == 0 && lower>>32 == 0xffff: // IPv4
		return rfq.ClientAddress(lower)
	case upper == 0:
		return 1
	}
	return rfq.ClientAddress(upper)
}

// Operation names what a POST does. Aliases of a route share it, so a key that is used
// on one alias is used on all of them.
type Operation string

const (
	OpQuote         Operation = "quote"
	OpModularClaim  Operation = "modular-claim-take"
	OpAtomicClaim   Operation = "atomic-claim-ticket"
	OpVerifyPayment Operation = "verify-payment"
	OpBuild         Operation = "dvp-build"
	OpSubmit        Operation = "dvp-submit"
)

// IdempotencyKey derives the desk's key from a client's key (our choice). The operation and
// the client's key identify the request. canonical encodes the values of the body and
// decides whether a repeated request is the same, so white space, the order of members,
// 250 for "250" and explicit defaults do not matter. A key is not tied to a client
// address: the client must choose one that nobody else chooses. A nil key gives the
// zero key.
func IdempotencyKey(op Operation, key, canonical []byte) rfq.IdempotencyKey {
	if key == nil {
		return rfq.IdempotencyKey{}
	}
	id := sha256.Sum256(fmt.Appendf(nil, "POST %s %s", op, key))
	body := sha256.Sum256(canonical)
	return rfq.IdempotencyKey{ID: [16]byte(id[:]), Body: [8]byte(body[:])}
}

// SetIdempotencyKey sets the key of a request, whose header must be empty.
func SetIdempotencyKey(r rfq.Request, op Operation, key []byte) {
	r.Head().Key = IdempotencyKey(op, key, rfq.AppendRequest(nil, r))
}
