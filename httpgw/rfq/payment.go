package rfq

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// Members of the body of a proof of payment (docs/specification.md C.4), as indexes of
// paymentMembers.
const (
	paymentOrder = iota
	paymentTranche
	paymentSignature
	paymentClaim
	paymentLabel
	paymentFill
	paymentRail
)

var paymentMembers = []wire.Member{
	paymentOrder: terms.OrderMember, paymentTranche: terms.TrancheMember,
	paymentSignature: {Name: "l1_signature", Kind: wire.TextMember, MaxLen: wire.MaxSignatureText},
	paymentClaim:     {Name: "claim_id", Kind: wire.TextMember, MaxLen: wire.MaxSegment, Optional: true},
	paymentLabel:     {Name: "ticket_label", Kind: wire.TextMember, MaxLen: rfq.MaxText, Optional: true},
	paymentFill:      {Name: terms.FillMember.Name, Kind: wire.IntegerMember, MaxLen: 16, Optional: true},
	paymentRail:      {Name: "payment_rail", Kind: wire.TextMember, MaxLen: 8, Optional: true},
}

// parsePayment parses the body of a proof of payment. For removed, see terms.ParseOffer.
func parsePayment(p *wire.Post, v *rfq.View, removed bool) (*desk.PaymentProof, *wire.Problem) {
	var m wire.Members
	if problem := wire.DecodeObject(p.Body, paymentMembers, &m); problem != nil {
		return nil, problem
	}
	proof, label := new(desk.PaymentProof), string(m.Get(paymentLabel))
	var ok bool
	var problem *wire.Problem
	if proof.Signature, ok = wire.ParseSignature(m.Get(paymentSignature)); !ok {
		return nil, wire.InvalidMember(paymentMembers[paymentSignature].Name, "not_a_signature")
	}
	if text := m.Get(paymentFill); text != nil {
		if proof.Fill, problem = terms.ParseFill(text); problem != nil {
			return nil, problem
		}
	}
	if text := m.Get(paymentRail); text != nil {
		if proof.Rail, problem = terms.ParseRail(paymentMembers[paymentRail].Name, text); problem != nil {
			return nil, problem
		}
	}
	if proof.Ticket, proof.Tranche, problem = terms.ParseOffer(v, m.Get(paymentOrder), m.Get(paymentTranche), removed); problem != nil {
		return nil, problem
	}
	if t := v.Ticket(proof.Ticket); t != nil && label != "" && label != t.Label {
		return nil, wire.InvalidMember(paymentMembers[paymentLabel].Name, "mismatch")
	}
	if text := m.Get(paymentClaim); text != nil {
		if proof.Claim, ok = market.ParseClaimID(text); !ok {
			return nil, terms.Refusal(event.ReasonUnknownClaim)
		}
	}
	proof.Key = terms.IdempotencyKey(terms.OpVerifyPayment, p.Key, fmt.Appendf(nil, "%d %d %x %d %q %d %d",
		proof.Ticket, proof.Tranche, proof.Signature, proof.Claim, label, proof.Fill, proof.Rail))
	return proof, nil
}

// postPayment verifies a payment. The ticket may have been removed from the view, because
// the payment of a claim may be late; the settlement decides about it.
func (e *Endpoints) postPayment(p *wire.Post) (*wire.Answer, *wire.Problem) {
	proof, problem := parsePayment(p, e.backend.View(), e.backend.Settlement != nil)
	if problem != nil {
		return nil, problem
	}
	if e.backend.Settlement == nil {
		return nil, terms.ChainUnavailable("The payment was not verified. Send it again later.")
	}
	ctx, cancel := context.WithTimeout(context.Background(), terms.SettlementTimeout)
	defer cancel()
	v, err := e.backend.Settlement.Verify(ctx, proof)
	if err != nil {
		return nil, terms.SettlementProblem(err, "The payment was not verified. Send it again later.")
	}
	return e.verified(&v)
}

// verified renders the verdict on a proof.
func (e *Endpoints) verified(v *desk.Verdict) (*wire.Answer, *wire.Problem) {
	switch {
	case v.Pending > 0:
		ms := (v.Pending + time.Millisecond - 1).Milliseconds()
		body := append([]byte(`{"ok":true,"state":"pending","retry_after_ms":`), strconv.FormatInt(ms, 10)...)
		return &wire.Answer{Status: 202, Body: append(body, '}'), RetryS: int(ratelimit.Seconds(int64(v.Pending)))}, nil
	case v.Refused != event.ReasonNone:
		problem := terms.Refusal(v.Refused)
		if v.Mismatch != "" {
			problem.Reason = v.Mismatch
		}
		problem.Replayed = v.Replayed
		return nil, problem
	}
	w := e.backend.Writer()
	return &wire.Answer{Status: 200, Body: appendVerification(&w, v), Replayed: v.Replayed}, nil
}

// appendVerification renders the answer to an accepted payment.
func appendVerification(w *terms.Writer, v *desk.Verdict) []byte {
	dst := make([]byte, 0, 1024)
	dst = append(terms.AppendClaimHead(dst, v.Claim), `,"verified":true,"payment":`...)
	dst = terms.AppendPayment(dst, v.Payment)
	return append(w.Delivery(append(dst, `,"delivery":`...), v.Claim, &v.Delivery), '}')
}

// servePay answers the GET of a transaction request: who asks for the payment.
func (e *Endpoints) servePay(segment []byte) (*wire.Page, *wire.Problem) {
	h, problem := e.findClaim(segment)
	if problem != nil {
		return nil, problem
	}
	label := ""
	if t := e.backend.View().Ticket(h.Claim.Terms.Ticket); t != nil {
		label = t.Label
	}
	dst := wire.AppendText([]byte(`{"label":`), payLabel(label))
	dst = wire.AppendText(append(dst, `,"icon":`...), e.urls.Base+pathIcon)
	return wire.NewPage(append(dst, '}')), nil
}

// postPay answers the POST of a transaction request: the payment, with a fresh blockhash, for
// the wallet that has taken the claim and no other. A body that is wrong is refused before
// the claim is looked for, as everywhere.
func (e *Endpoints) postPay(p *wire.Post) (*wire.Answer, *wire.Problem) {
	var m wire.Members
	if bad := wire.DecodeObject(p.Body, payAccount, &m); bad != nil {
		return nil, bad
	}
	account, ok := wire.ParseAddress(m.Get(0))
	if !ok {
		return nil, wire.InvalidMember(payAccount[0].Name, "not_an_address")
	}
	h, problem := e.findClaim(p.Segment)
	if problem != nil {
		return nil, problem
	}
	switch {
	case account != h.Claim.Wallet:
		return nil, wire.InvalidMember(payAccount[0].Name, "other_wallet")
	case h.Claim.Mode != rfq.Modular || h.Claim.State != rfq.ClaimReserved:
		return nil, terms.Refusal(event.ReasonClaimState)
	}
	pack, bad := e.freshPackage(h.Claim.ID)
	if bad != nil {
		return nil, bad
	}
	dst := append(make([]byte, 0, 256+2*len(pack.Transaction)), `{"transaction":"`...)
	dst = append(base64.StdEncoding.AppendEncode(dst, pack.Transaction), `","message":`...)
	return &wire.Answer{Status: 200, Body: append(wire.AppendText(dst, "Claim "+pack.Memo), '}')}, nil
}
