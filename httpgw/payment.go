package httpgw

import (
	"context"
	"errors"
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
func (g *Gateway) postPayment(p *post) (*answer, *problem) {
	proof, bad := parsePayment(p, g.deskView(), g.settle != nil)
	if bad != nil {
		return nil, bad
	}
	if g.settle == nil {
		return nil, chainUnavailable("The payment has not been looked at; send it again later.")
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	v, err := g.settle.Verify(ctx, proof)
	if err != nil {
		return nil, settlementProblem(err, "The payment has not been verified; send it again later.")
	}
	return g.verified(&v)
}

// settlementProblem says what an error of the settlement is on the wire: a guard
// that has tripped, the desk's own, or that the chain could not be asked; more
// is a sentence for the last.
func settlementProblem(err error, more string) *problem {
	var guard *desk.Refusal
	if errors.As(err, &guard) {
		return guarded(string(guard.Reason))
	}
	if bad := deskProblem(err); bad.cause == nil {
		return bad
	}
	bad := chainUnavailable(more)
	bad.cause = err
	return bad
}

// verified renders what came of a proof.
func (g *Gateway) verified(v *desk.Verdict) (*answer, *problem) {
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
	w := g.terms()
	return &answer{status: 200, body: w.verification(v), replayed: v.Replayed}, nil
}

// verification renders the answer to a payment that pays its claim.
func (w *termsWriter) verification(v *desk.Verdict) []byte {
	dst := make([]byte, 0, 1024)
	dst = append(claimHead(dst, v.Claim), `,"verified":true,"payment":`...)
	dst = appendPayment(dst, v.Payment)
	return append(w.delivery(append(dst, `,"delivery":`...), v.Claim, &v.Delivery), '}')
}

// delivery appends the object of what a claim brings its wallet, and by which
// transaction.
func (w *termsWriter) delivery(dst []byte, c *rfq.Claim, signature *[64]byte) []byte {
	return append(appendSignature(append(w.delivered(dst, c), `,"l1_signature":`...), signature), '}')
}

// delivered appends what a claim brings its wallet, with the brace that opens
// it and not the one that closes it.
func (w *termsWriter) delivered(dst []byte, c *rfq.Claim) []byte {
	dst = append(appendAccount(append(dst, `{"to":`...), c.Wallet), `,"mint":`...)
	dst = append(appendAccount(dst, w.baseMint(c.Terms.Instrument)), ',')
	return appendAmount(dst, "amount", c.Terms.Base, w.baseDecimals(c.Terms.Instrument))
}

// paymentStates are the wire words (our choice).
var paymentStates = map[rfq.PaymentState]string{
	rfq.PaymentApplied: "applied", rfq.PaymentRefundDue: "refund_due", rfq.PaymentRefunded: "refunded",
}

// appendPayment appends the object of a payment.
func appendPayment(dst []byte, p *rfq.Payment) []byte {
	dst = appendSignature(append(dst, `{"l1_signature":`...), &p.Signature)
	dst = append(dst, `,"state":"`...)
	dst = append(dst, paymentStates[p.State]...)
	dst = append(dst, `","reason":`...)
	if p.Why != event.ReasonNone {
		dst = append(append(append(dst, '"'), p.Why.String()...), '"')
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"rail":"`...)
	dst = append(dst, p.Rail.String()...)
	dst = appendAmount(append(dst, `",`...), "amount", p.Amount, p.Rail.Decimals())
	dst = append(dst, `,"payer":`...)
	dst = append(appendAccount(dst, p.Payer), `,"slot":`...)
	dst = strconv.AppendUint(dst, p.Slot, 10)
	return append(appendMillis(append(dst, `,"at":`...), p.At), '}')
}
