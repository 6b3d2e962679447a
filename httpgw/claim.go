package httpgw

import (
	"context"
	"encoding/base64"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// settleTime is how long a request waits for the settlement door.
const settleTime = 3 * time.Second

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

func (g *Gateway) postModularClaim(p *post) (*answer, *problem) { return g.takeClaim(p, rfq.Modular) }

func (g *Gateway) postAtomicClaim(p *post) (*answer, *problem) { return g.takeClaim(p, rfq.Atomic) }

// payerOf are the payers of claims' transactions: the wallet pays for what it
// sends itself, the desk sponsors what it signs too (contract, section D).
var payerOf = map[rfq.Way]desk.FeePayer{rfq.Modular: desk.TakerPays, rfq.Atomic: desk.DeskPays}

// takeClaim reserves a piece of a tranche and tells how to pay for it. What is
// wrong with the request is told even while the chain is unavailable; then
// nothing is reserved.
func (g *Gateway) takeClaim(p *post, way rfq.Way) (*answer, *problem) {
	r, bad := parseClaim(p, g.deskView(), way)
	if bad != nil {
		return nil, bad
	}
	if g.settle == nil || g.settle.Ready() != nil {
		return nil, chainUnavailable("Nothing has been reserved.")
	}
	result, bad := g.ask(r)
	if bad != nil {
		return nil, bad.rename("rail", claimMembers[claimRail].name)
	}
	pack, bad := g.pack(result, payerOf[way])
	if bad != nil {
		return nil, bad
	}
	w, urls := g.terms(), g.URLs()
	return &answer{
		status: 200, body: w.claimPackage(result.Claim, result.Ticket.Label, pack, &urls), replayed: result.Replayed,
	}, nil
}

// pack gets the transaction of a claim that has just been reserved.
func (g *Gateway) pack(result *desk.Result, payer desk.FeePayer) (*desk.Package, *problem) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	pack, err := g.settle.Package(ctx, result.Claim, payer)
	if err != nil {
		return nil, settlementProblem(err, "The claim is reserved. Ask for its transaction with the same "+idempotencyHeader+".")
	}
	return &pack, nil
}

// ask sends a request to the desk and waits for what comes of it.
func (g *Gateway) ask(r rfq.Request) (*desk.Result, *problem) {
	result, err := g.desk.Do(r)
	if err != nil {
		return nil, deskProblem(err)
	}
	if result.Reason != event.ReasonNone {
		bad := refusal(&result.Outcome)
		bad.replayed = result.Replayed
		return nil, bad
	}
	return result, nil
}

// claimStates are the wire words (contract, section D).
var claimStates = map[rfq.ClaimState]string{
	rfq.ClaimReserved: "reserved", rfq.ClaimPaid: "paid", rfq.ClaimDelivering: "delivering",
	rfq.ClaimSettled: "settled", rfq.ClaimExpired: "expired", rfq.ClaimCosigned: "cosigned",
	rfq.ClaimReleased: "released", rfq.ClaimRefundDue: "refund_due",
}

var ways = map[rfq.Way]string{rfq.Modular: "modular", rfq.Atomic: "atomic"}

// claimHead appends what an answer about a claim begins with.
func claimHead(dst []byte, c *rfq.Claim) []byte {
	dst = append(dst, `{"ok":true,"claim_id":"`...)
	dst = market.AppendClaimID(dst, c.ID)
	dst = append(dst, `","state":"`...)
	dst = append(dst, claimStates[c.State]...)
	return append(dst, '"')
}

// claim appends the object with the terms of a claim.
func (w *termsWriter) claim(dst []byte, c *rfq.Claim, label string) []byte {
	dst = append(dst, `{"way":"`...)
	dst = append(dst, ways[c.Way]...)
	dst = append(dst, `","bot_wallet":`...)
	dst = appendAccount(dst, c.Wallet)
	dst = appendQuoteID(append(dst, `,"quote_id":`...), c.Quote)
	dst = w.offer(append(dst, ','), &c.Terms, label)
	dst = w.fee(append(dst, ','), &c.Terms)
	return append(appendMillis(append(dst, `,"reserved_at":`...), c.ReservedAt), '}')
}

// appendQuoteID appends the quote that gave a claim its price, or null.
func appendQuoteID(dst []byte, id market.QuoteID) []byte {
	if id == 0 {
		return append(dst, "null"...)
	}
	return append(market.AppendQuoteID(append(dst, '"'), id), '"')
}

// claimPackage renders the answer to a claim. A payment is best verified on the
// native backend (spec, 1.9); an atomic transaction goes to DvP submit.
func (w *termsWriter) claimPackage(c *rfq.Claim, label string, pack *desk.Package, urls *URLs) []byte {
	dst := make([]byte, 0, 2048+2*len(pack.Transaction))
	dst = append(claimHead(dst, c), `,"claim":`...)
	dst = w.claim(dst, c, label)
	dst = w.boundPayment(append(dst, `,"payment":`...), &c.Terms, pack)
	dst = append(dst, `,"transaction":"`...)
	dst = append(base64.StdEncoding.AppendEncode(dst, pack.Transaction), '"')
	dst = appendMillis(append(dst, `,"expires_at":`...), c.Deadline)
	dst = append(append(dst, `,"verify":{"url":"`...), urls.Native...)
	dst = appendFields(append(dst, pathNativeVerify+`",`...), paymentMembers, paymentOrder, paymentTranche, paymentSignature)
	if c.Way == rfq.Atomic {
		dst = append(append(dst, `},"submit":{"url":"`...), urls.Base...)
		dst = market.AppendBuildID(append(dst, pathSubmit+`","build_id":"`...), c.ID)
		dst = appendFields(append(dst, `",`...), submitMembers, submitBuild, submitTransaction)
	}
	return append(dst, "}}"...)
}

// appendFields appends the names of members of a body.
func appendFields(dst []byte, table []member, places ...int) []byte {
	dst = append(dst, `"fields":[`...)
	for i, at := range places {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), table[at].name...), '"')
	}
	return append(dst, ']')
}

// boundPayment appends the object of what is to be paid, with what binds it to
// its claim.
func (w *termsWriter) boundPayment(dst []byte, t *rfq.Terms, pack *desk.Package) []byte {
	dst = append(w.payment(dst, t), `,"reference":`...)
	dst = append(appendAccount(dst, pack.Reference), `,"memo":`...)
	return append(appendText(dst, pack.Memo), '}')
}
