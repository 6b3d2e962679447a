package httpgw

import (
	"encoding/base64"
	"strings"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Members of the body of a claim (spec, 4.1; contract, section D), by their
// place in claimMembers.
const (
	claimWallet = iota
	claimOrder
	claimTranche
	claimFill
	claimRail
	claimQuote
)

var claimMembers = []member{
	claimWallet: {name: "bot_wallet", kind: textMember, most: maxAddressText},
	claimOrder:  orderMember, claimTranche: trancheMember, claimFill: fillMember,
	claimRail:  {name: "payment_rail", kind: textMember, most: 8, optional: true},
	claimQuote: {name: "quote_id", kind: textMember, most: MaxSegment, optional: true},
}

// parseClaim reads the body of a claim of either way.
func parseClaim(p *post, v *rfq.View, way rfq.Way) (*rfq.TakeClaim, *problem) {
	var m members
	if bad := decodeObject(p.body, claimMembers, &m); bad != nil {
		return nil, bad
	}
	r := &rfq.TakeClaim{Way: way}
	var ok bool
	var bad *problem
	if r.Wallet, ok = parseAddress(m.get(claimWallet)); !ok {
		return nil, invalidMember(claimMembers[claimWallet].name, "not_an_address")
	}
	if r.Fill, bad = parseFill(m.get(claimFill)); bad != nil {
		return nil, bad
	}
	if r.Rail, bad = parseRail(claimMembers[claimRail].name, m.get(claimRail)); bad != nil {
		return nil, bad
	}
	if text := m.get(claimQuote); text != nil {
		if r.Quote, ok = market.ParseQuoteID(text); !ok {
			return nil, invalidMember(claimMembers[claimQuote].name, "not_an_id")
		}
	}
	if r.Ticket, r.Tranche, bad = parseOffer(v, m.get(claimOrder), m.get(claimTranche), false); bad != nil {
		return nil, bad
	}
	op := opModularClaim
	if way == rfq.Atomic {
		op = opAtomicClaim
	}
	setKey(r, op, p.key)
	return r, nil
}

func (e *rfqEndpoints) postModularClaim(p *post) (*answer, *problem) { return e.takeClaim(p, rfq.Modular) }

func (e *rfqEndpoints) postAtomicClaim(p *post) (*answer, *problem) { return e.takeClaim(p, rfq.Atomic) }

// payerOf are the payers of claims' transactions: the wallet pays for what it
// sends itself, the desk sponsors what it signs too (contract, section D).
var payerOf = map[rfq.Way]desk.FeePayer{rfq.Modular: desk.TakerPays, rfq.Atomic: desk.DeskPays}

// takeClaim reserves a piece of a tranche and answers how to pay for it. What is
// wrong with the request is answered even while the chain is unavailable; then
// nothing is reserved.
func (e *rfqEndpoints) takeClaim(p *post, way rfq.Way) (*answer, *problem) {
	r, bad := parseClaim(p, e.deal.view(), way)
	if bad != nil {
		return nil, bad
	}
	result, pack, bad := e.deal.reserve(r, payerOf[way], "rail", claimMembers[claimRail].name)
	if bad != nil {
		return nil, bad
	}
	w := e.deal.terms()
	return &answer{
		status: 200, body: appendClaimPackage(&w, result.Claim, result.Ticket.Label, pack, &e.urls), replayed: result.Replayed,
	}, nil
}

// appendClaimPackage renders the answer to a claim. A payment is best verified on the
// native backend (spec, 1.9); an atomic transaction goes to DvP submit.
func appendClaimPackage(w *termsWriter, c *rfq.Claim, label string, pack *desk.Package, urls *catalog.URLs) []byte {
	dst := make([]byte, 0, 2048+2*len(pack.Transaction))
	dst = append(claimHead(dst, c), `,"claim":`...)
	dst = w.claim(dst, c, label)
	dst = w.boundPayment(append(dst, `,"payment":`...), &c.Terms, pack)
	dst = append(dst, `,"transaction":"`...)
	dst = append(base64.StdEncoding.AppendEncode(dst, pack.Transaction), '"')
	dst = appendMillis(append(dst, `,"expires_at":`...), c.Deadline)
	dst = append(append(dst, `,"verify":{"url":"`...), urls.Native...)
	dst = appendFields(append(dst, pathNativeVerify+`",`...), paymentFields[:])
	if c.Way == rfq.Atomic {
		dst = append(append(dst, `},"submit":{"url":"`...), urls.Base...)
		dst = market.AppendBuildID(append(dst, pathSubmit+`","build_id":"`...), c.ID)
		dst = appendFields(append(dst, `",`...), submitFields[:])
	}
	return append(dst, "}}"...)
}

// paymentFields are the members of a proof of payment that a client must send.
var paymentFields = [...]string{paymentMembers[paymentOrder].name, paymentMembers[paymentTranche].name, paymentMembers[paymentSignature].name}

// appendFields appends the names of members of a body.
func appendFields(dst []byte, names []string) []byte {
	dst = append(dst, `"fields":["`...)
	dst = append(dst, strings.Join(names, `","`)...)
	return append(dst, `"]`...)
}
