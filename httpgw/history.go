package httpgw

import (
	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// serveClaim shows a claim with what has happened to it.
func (e *rfqEndpoints) serveClaim(segment []byte) (*page, *problem) {
	id, ok := market.ParseClaimID(segment)
	if !ok {
		return nil, refuse(event.ReasonUnknownClaim)
	}
	h, ok, err := e.deal.Desk.Claim(id)
	switch {
	case err != nil:
		return nil, deskProblem(err)
	case !ok:
		return nil, refuse(event.ReasonUnknownClaim)
	}
	var delivery [64]byte
	if e.deal.Settlement != nil {
		if delivery, _, err = e.deal.Settlement.Delivery(id); err != nil {
			return nil, deskProblem(err)
		}
	}
	w := e.deal.terms()
	label := ""
	if t := w.view.Ticket(h.Claim.Terms.Ticket); t != nil {
		label = t.Label
	}
	return hashPage(appendHistory(&w, h, label, &delivery)), nil
}

// appendHistory renders a claim: as it is now, the transaction that delivers, each
// state with its time, oldest first, and each payment that named it.
func appendHistory(w *termsWriter, h *desk.History, label string, delivery *[64]byte) []byte {
	c := &h.Claim
	dst := make([]byte, 0, 2048)
	dst = append(claimHead(dst, c), `,"claim":`...)
	dst = w.claim(dst, c, label)
	dst = append(dst, `,"payment":`...)
	dst = append(w.payment(dst, &c.Terms), `},"paid_atoms":"`...)
	dst = market.AppendDecimal(dst, c.Paid, 0)
	dst = appendMillis(append(dst, `","expires_at":`...), c.Deadline)
	dst = appendMillis(append(dst, `,"changed_at":`...), c.ChangedAt)
	dst = w.delivery(append(dst, `,"delivery":`...), c, delivery)
	dst = append(dst, `,"history":[`...)
	for i := range h.States {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, `{"state":"`...), claimStates[h.States[i].State]...)
		dst = append(appendMillis(append(dst, `","at":`...), h.States[i].ChangedAt), '}')
	}
	dst = append(dst, `],"payments":[`...)
	for i := range h.Payments {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendPayment(dst, &h.Payments[i])
	}
	return append(dst, "]}"...)
}
