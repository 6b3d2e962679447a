package httpgw

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
)

// Members of the body of a proof of payment, by their place in paymentMembers.
// Three are enforced (contract, section D).
const (
	paymentOrder = iota
	paymentTranche
	paymentSignature
	paymentClaim
	paymentLabel
	paymentFill
	paymentRail
)

var paymentMembers = []member{
	paymentOrder: orderMember, paymentTranche: trancheMember,
	paymentSignature: {name: "l1_signature", kind: textMember, most: maxSignatureText},
	paymentClaim:     {name: "claim_id", kind: textMember, most: MaxSegment, optional: true},
	paymentLabel:     {name: "ticket_label", kind: textMember, most: rfq.MaxText, optional: true},
	paymentFill:      {name: fillMember.name, kind: wholeMember, most: 16, optional: true},
	paymentRail:      {name: "payment_rail", kind: textMember, most: 8, optional: true},
}

// parsePayment reads the body of a proof of payment. gone: see parseOffer.
func parsePayment(p *post, v *rfq.View, gone bool) (*desk.PaymentProof, *problem) {
	var m members
	if bad := decodeObject(p.body, paymentMembers, &m); bad != nil {
		return nil, bad
	}
	proof, label := new(desk.PaymentProof), string(m.get(paymentLabel))
	var ok bool
	var bad *problem
	if proof.Signature, ok = parseSignature(m.get(paymentSignature)); !ok {
		return nil, invalidMember(paymentMembers[paymentSignature].name, "not_a_signature")
	}
	if text := m.get(paymentFill); text != nil {
		if proof.Fill, bad = parseFill(text); bad != nil {
			return nil, bad
		}
	}
	if text := m.get(paymentRail); text != nil {
		if proof.Rail, bad = parseRail(paymentMembers[paymentRail].name, text); bad != nil {
			return nil, bad
		}
	}
	if proof.Ticket, proof.Tranche, bad = parseOffer(v, m.get(paymentOrder), m.get(paymentTranche), gone); bad != nil {
		return nil, bad
	}
	if t := v.Ticket(proof.Ticket); t != nil && label != "" && label != t.Label {
		return nil, invalidMember(paymentMembers[paymentLabel].name, "mismatch")
	}
	if text := m.get(paymentClaim); text != nil {
		if proof.Claim, ok = market.ParseClaimID(text); !ok {
			return nil, refuse(event.ReasonUnknownClaim)
		}
	}
	proof.Key = idempotency(opVerifyPayment, p.key, fmt.Appendf(nil, "%d %d %x %d %q %d %d",
		proof.Ticket, proof.Tranche, proof.Signature, proof.Claim, label, proof.Fill, proof.Rail))
	return proof, nil
}

// postPayment has a payment verified. A ticket that has left the view may have
// had a claim whose payment comes late: what becomes of that is for the
// settlement to say.
func (e *rfqEndpoints) postPayment(p *post) (*answer, *problem) {
	proof, bad := parsePayment(p, e.deal.view(), e.deal.Settlement != nil)
	if bad != nil {
		return nil, bad
	}
	if e.deal.Settlement == nil {
		return nil, chainUnavailable("The payment has not been looked at; send it again later.")
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	v, err := e.deal.Settlement.Verify(ctx, proof)
	if err != nil {
		return nil, settlementProblem(err, "The payment has not been verified; send it again later.")
	}
	return e.verified(&v)
}

// verified renders what came of a proof.
func (e *rfqEndpoints) verified(v *desk.Verdict) (*answer, *problem) {
	switch {
	case v.Pending > 0:
		ms := (v.Pending + time.Millisecond - 1).Milliseconds()
		body := append([]byte(`{"ok":true,"state":"pending","retry_after_ms":`), strconv.FormatInt(ms, 10)...)
		return &answer{status: 202, body: append(body, '}'), retryS: int(ratelimit.Seconds(int64(v.Pending)))}, nil
	case v.Refused != event.ReasonNone:
		bad := refuse(v.Refused)
		if v.Mismatch != "" {
			bad.reason = v.Mismatch
		}
		bad.replayed = v.Replayed
		return nil, bad
	}
	w := e.deal.terms()
	return &answer{status: 200, body: appendVerification(&w, v), replayed: v.Replayed}, nil
}

// appendVerification renders the answer to a payment that pays its claim.
func appendVerification(w *termsWriter, v *desk.Verdict) []byte {
	dst := make([]byte, 0, 1024)
	dst = append(claimHead(dst, v.Claim), `,"verified":true,"payment":`...)
	dst = appendPayment(dst, v.Payment)
	return append(w.delivery(append(dst, `,"delivery":`...), v.Claim, &v.Delivery), '}')
}
