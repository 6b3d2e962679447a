package rfq

import (
	"encoding/base64"
	"strconv"
	"strings"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Members of the body of a quote (docs/specification.md 4.1), as indexes of quoteMembers.
const (
	quoteOrder = iota
	quoteTranche
	quoteFill
	quoteRail
)

var quoteMembers = []wire.Member{
	quoteOrder: terms.OrderMember, quoteTranche: terms.TrancheMember, quoteFill: terms.FillMember,
	quoteRail: {Name: "rail", Kind: wire.TextMember, MaxLen: 8},
}

// parseQuote parses the body of a quote.
func parseQuote(p *wire.Post, v *rfq.View) (*rfq.RequestQuote, *wire.Problem) {
	var m wire.Members
	if problem := wire.DecodeObject(p.Body, quoteMembers, &m); problem != nil {
		return nil, problem
	}
	r := &rfq.RequestQuote{}
	var problem *wire.Problem
	if r.Fill, problem = terms.ParseFill(m.Get(quoteFill)); problem != nil {
		return nil, problem
	}
	if r.Rail, problem = terms.ParseRail("rail", m.Get(quoteRail)); problem != nil {
		return nil, problem
	}
	if r.Ticket, r.Tranche, problem = terms.ParseOffer(v, m.Get(quoteOrder), m.Get(quoteTranche), false); problem != nil {
		return nil, problem
	}
	terms.SetIdempotencyKey(r, terms.OpQuote, p.Key)
	return r, nil
}

// postQuote returns a firm price for one claim.
func (e *Endpoints) postQuote(p *wire.Post) (*wire.Answer, *wire.Problem) {
	r, problem := parseQuote(p, e.backend.View())
	if problem != nil {
		return nil, problem
	}
	r.Indicative = e.own.chainState() != chainReady
	result, problem := e.backend.Do(r)
	if problem != nil {
		return nil, problem
	}
	w := e.backend.Writer()
	return &wire.Answer{Status: 200, Body: appendQuote(&w, result.Quote, result.Ticket.Label), Replayed: result.Replayed}, nil
}

// appendQuote renders the answer to a quote.
func appendQuote(w *terms.Writer, q *rfq.Quote, label string) []byte {
	dst := make([]byte, 0, 1024)
	dst = append(dst, `{"ok":true,"quote_id":"`...)
	dst = market.AppendQuoteID(dst, q.ID)
	dst = append(dst, `",`...)
	dst = w.Offer(dst, &q.Terms, label)
	dst = append(dst, `,"payment":`...)
	dst = append(w.OpenPayment(dst, &q.Terms), `},`...)
	dst = w.Fee(dst, &q.Terms)
	dst = wire.AppendMillis(append(dst, `,"issued_at":`...), q.IssuedAt)
	dst = wire.AppendMillis(append(dst, `,"valid_until":`...), q.ValidUntil)
	return append(strconv.AppendBool(append(dst, `,"firm":`...), !q.Indicative), '}')
}

// Members of the body of a claim (docs/specification.md 4.1 and C.4), as indexes of
// claimMembers.
const (
	claimWallet = iota
	claimOrder
	claimTranche
	claimFill
	claimRail
	claimQuote
	claimSignature
)

var claimMembers = []wire.Member{
	claimWallet: {Name: "bot_wallet", Kind: wire.TextMember, MaxLen: wire.MaxAddressText},
	claimOrder:  terms.OrderMember, claimTranche: terms.TrancheMember, claimFill: terms.FillMember,
	claimRail:  {Name: "payment_rail", Kind: wire.TextMember, MaxLen: 8, Optional: true},
	claimQuote: {Name: "quote_id", Kind: wire.TextMember, MaxLen: wire.MaxSegment, Optional: true},
	// Base64 has as many characters as the longest base58.
	claimSignature: {Name: "wallet_signature", Kind: wire.TextMember, MaxLen: wire.MaxSignatureText, Optional: true},
}

// parseClaim parses the body of a modular or atomic claim. Its key does not depend on the
// client's address and proof, so that a client may repeat a request from another address
// and with a fresh signature.
func (e *Endpoints) parseClaim(p *wire.Post, v *rfq.View, way rfq.SettlementMode) (*rfq.TakeClaim, *wire.Problem) {
	var m wire.Members
	if problem := wire.DecodeObject(p.Body, claimMembers, &m); problem != nil {
		return nil, problem
	}
	r := &rfq.TakeClaim{Mode: way}
	var ok bool
	var problem *wire.Problem
	if r.Wallet, ok = wire.ParseAddress(m.Get(claimWallet)); !ok {
		return nil, wire.InvalidMember(claimMembers[claimWallet].Name, "not_an_address")
	}
	if problem = e.checkWallet(v, r.Wallet); problem != nil {
		return nil, problem
	}
	if r.Fill, problem = terms.ParseFill(m.Get(claimFill)); problem != nil {
		return nil, problem
	}
	if r.Rail, problem = terms.ParseRail(claimMembers[claimRail].Name, m.Get(claimRail)); problem != nil {
		return nil, problem
	}
	if text := m.Get(claimQuote); text != nil {
		if r.Quote, ok = market.ParseQuoteID(text); !ok {
			return nil, wire.InvalidMember(claimMembers[claimQuote].Name, "not_an_id")
		}
	}
	if r.Ticket, r.Tranche, problem = terms.ParseOffer(v, m.Get(claimOrder), m.Get(claimTranche), false); problem != nil {
		return nil, problem
	}
	op := terms.OpModularClaim
	if way == rfq.Atomic {
		op = terms.OpAtomicClaim
	}
	terms.SetIdempotencyKey(r, op, p.Key)
	return r, e.proveClaim(p, r, m.Get(claimSignature))
}

func (e *Endpoints) postModularClaim(p *wire.Post) (*wire.Answer, *wire.Problem) {
	return e.takeClaim(p, rfq.Modular)
}

func (e *Endpoints) postAtomicClaim(p *wire.Post) (*wire.Answer, *wire.Problem) {
	return e.takeClaim(p, rfq.Atomic)
}

// payerOf has the fee payer of a claim's transaction: the wallet for a modular claim,
// which it sends itself, and the desk for an atomic one, which it co-signs
// (docs/specification.md C.4).
var payerOf = map[rfq.SettlementMode]desk.FeePayer{rfq.Modular: desk.TakerPays, rfq.Atomic: desk.DeskPays}

// takeClaim reserves part of a tranche and returns how to pay for it. While the chain is
// unavailable it reserves nothing, but still reports errors of the request.
func (e *Endpoints) takeClaim(p *wire.Post, way rfq.SettlementMode) (*wire.Answer, *wire.Problem) {
	r, problem := e.parseClaim(p, e.backend.View(), way)
	if problem != nil {
		return nil, problem
	}
	result, pack, problem := e.backend.Reserve(r, payerOf[way], "rail", claimMembers[claimRail].Name)
	if problem != nil {
		return nil, problem
	}
	w := e.backend.Writer()
	return &wire.Answer{
		Status: 200, Body: appendClaimPackage(&w, result.Claim, result.Ticket.Label, pack, &e.urls), Replayed: result.Replayed,
	}, nil
}

// appendClaimPackage renders the answer to a claim. It directs the proof of payment to
// the native backend (docs/specification.md 1.9) and an atomic transaction to DvP submit.
func appendClaimPackage(w *terms.Writer, c *rfq.Claim, label string, pack *desk.Package, urls *catalog.URLs) []byte {
	dst := make([]byte, 0, 2048+2*len(pack.Transaction))
	dst = append(terms.AppendClaimHead(dst, c), `,"claim":`...)
	dst = w.Claim(dst, c, label)
	dst = w.BoundPayment(append(dst, `,"payment":`...), &c.Terms, pack)
	dst = append(dst, `,"transaction":"`...)
	dst = append(base64.StdEncoding.AppendEncode(dst, pack.Transaction), '"')
	dst = terms.AppendBlockhash(dst, pack)
	dst = wire.AppendMillis(append(dst, `,"expires_at":`...), c.Deadline)
	dst = append(append(dst, `,"verify":{"url":"`...), urls.Native...)
	dst = appendFields(append(dst, PathNativeVerify+`",`...), paymentFields[:])
	if c.Mode == rfq.Modular {
		return append(appendSolanaPay(append(dst, '}'), w, c, label, pack, urls), '}')
	}
	dst = append(append(dst, `},"submit":{"url":"`...), urls.Base...)
	dst = market.AppendBuildID(append(dst, terms.PathSubmit+`","build_id":"`...), c.ID)
	return append(appendFields(append(dst, `",`...), terms.SubmitFields[:]), "}}"...)
}

// paymentFields are the required members of a proof of payment.
var paymentFields = [...]string{paymentMembers[paymentOrder].Name, paymentMembers[paymentTranche].Name, paymentMembers[paymentSignature].Name}

// appendFields appends the member fields: the names of a body's members.
func appendFields(dst []byte, names []string) []byte {
	dst = append(dst, `"fields":["`...)
	dst = append(dst, strings.Join(names, `","`)...)
	return append(dst, `"]`...)
}
