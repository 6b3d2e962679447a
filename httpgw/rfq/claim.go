package rfq

import (
	"encoding/base64"
	"strings"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
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

var claimMembers = []wire.Member{
	claimWallet: {Name: "bot_wallet", Kind: wire.TextMember, Most: wire.MaxAddressText},
	claimOrder:  terms.OrderMember, claimTranche: terms.TrancheMember, claimFill: terms.FillMember,
	claimRail:  {Name: "payment_rail", Kind: wire.TextMember, Most: 8, Optional: true},
	claimQuote: {Name: "quote_id", Kind: wire.TextMember, Most: wire.MaxSegment, Optional: true},
}

// parseClaim reads the body of a claim of either way.
func parseClaim(p *wire.Post, v *rfq.View, way rfq.Way) (*rfq.TakeClaim, *wire.Problem) {
	var m wire.Members
	if bad := wire.DecodeObject(p.Body, claimMembers, &m); bad != nil {
		return nil, bad
	}
	r := &rfq.TakeClaim{Way: way}
	var ok bool
	var bad *wire.Problem
	if r.Wallet, ok = wire.ParseAddress(m.Get(claimWallet)); !ok {
		return nil, wire.InvalidMember(claimMembers[claimWallet].Name, "not_an_address")
	}
	if r.Fill, bad = terms.ParseFill(m.Get(claimFill)); bad != nil {
		return nil, bad
	}
	if r.Rail, bad = terms.ParseRail(claimMembers[claimRail].Name, m.Get(claimRail)); bad != nil {
		return nil, bad
	}
	if text := m.Get(claimQuote); text != nil {
		if r.Quote, ok = market.ParseQuoteID(text); !ok {
			return nil, wire.InvalidMember(claimMembers[claimQuote].Name, "not_an_id")
		}
	}
	if r.Ticket, r.Tranche, bad = terms.ParseOffer(v, m.Get(claimOrder), m.Get(claimTranche), false); bad != nil {
		return nil, bad
	}
	op := terms.OpModularClaim
	if way == rfq.Atomic {
		op = terms.OpAtomicClaim
	}
	terms.SetKey(r, op, p.Key)
	return r, nil
}

func (e *Endpoints) postModularClaim(p *wire.Post) (*wire.Answer, *wire.Problem) {
	return e.takeClaim(p, rfq.Modular)
}

func (e *Endpoints) postAtomicClaim(p *wire.Post) (*wire.Answer, *wire.Problem) {
	return e.takeClaim(p, rfq.Atomic)
}

// payerOf are the payers of claims' transactions: the wallet pays for what it
// sends itself, the desk sponsors what it signs too (contract, section D).
var payerOf = map[rfq.Way]desk.FeePayer{rfq.Modular: desk.TakerPays, rfq.Atomic: desk.DeskPays}

// takeClaim reserves a piece of a tranche and answers how to pay for it. What is
// wrong with the request is answered even while the chain is unavailable; then
// nothing is reserved.
func (e *Endpoints) takeClaim(p *wire.Post, way rfq.Way) (*wire.Answer, *wire.Problem) {
	r, bad := parseClaim(p, e.deal.View(), way)
	if bad != nil {
		return nil, bad
	}
	result, pack, bad := e.deal.Reserve(r, payerOf[way], "rail", claimMembers[claimRail].Name)
	if bad != nil {
		return nil, bad
	}
	w := e.deal.Writer()
	return &wire.Answer{
		Status: 200, Body: appendClaimPackage(&w, result.Claim, result.Ticket.Label, pack, &e.urls), Replayed: result.Replayed,
	}, nil
}

// appendClaimPackage renders the answer to a claim. A payment is best verified on the
// native backend (spec, 1.9); an atomic transaction goes to Cosigner submit.
func appendClaimPackage(w *terms.Writer, c *rfq.Claim, label string, pack *desk.Package, urls *catalog.URLs) []byte {
	dst := make([]byte, 0, 2048+2*len(pack.Transaction))
	dst = append(terms.AppendClaimHead(dst, c), `,"claim":`...)
	dst = w.Claim(dst, c, label)
	dst = w.BoundPayment(append(dst, `,"payment":`...), &c.Terms, pack)
	dst = append(dst, `,"transaction":"`...)
	dst = append(base64.StdEncoding.AppendEncode(dst, pack.Transaction), '"')
	dst = wire.AppendMillis(append(dst, `,"expires_at":`...), c.Deadline)
	dst = append(append(dst, `,"verify":{"url":"`...), urls.Native...)
	dst = appendFields(append(dst, PathNativeVerify+`",`...), paymentFields[:])
	if c.Way == rfq.Atomic {
		dst = append(append(dst, `},"submit":{"url":"`...), urls.Base...)
		dst = market.AppendBuildID(append(dst, terms.PathSubmit+`","build_id":"`...), c.ID)
		dst = appendFields(append(dst, `",`...), terms.SubmitFields[:])
	}
	return append(dst, "}}"...)
}

// paymentFields are the members of a proof of payment that a client must send.
var paymentFields = [...]string{paymentMembers[paymentOrder].Name, paymentMembers[paymentTranche].Name, paymentMembers[paymentSignature].Name}

// appendFields appends the names of members of a body.
func appendFields(dst []byte, names []string) []byte {
	dst = append(dst, `"fields":["`...)
	dst = append(dst, strings.Join(names, `","`)...)
	return append(dst, `"]`...)
}
