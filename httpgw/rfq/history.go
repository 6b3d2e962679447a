package rfq

import (
	"context"
	"encoding/base64"
	"errors"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// findClaim returns the claim that a segment of a path names.
func (e *Endpoints) findClaim(segment []byte) (*desk.History, *wire.Problem) {
	id, ok := market.ParseClaimID(segment)
	if !ok {
		return nil, terms.Refusal(event.ReasonUnknownClaim)
	}
	h, ok, err := e.backend.Desk.Claim(id)
	switch {
	case err != nil:
		return nil, terms.DeskProblem(err)
	case !ok:
		return nil, terms.Refusal(event.ReasonUnknownClaim)
	}
	return h, nil
}

// serveClaim serves a claim with its history.
func (e *Endpoints) serveClaim(segment []byte) (*wire.Page, *wire.Problem) {
	h, problem := e.findClaim(segment)
	if problem != nil {
		return nil, problem
	}
	var delivery [64]byte
	if e.backend.Settlement != nil {
		var err error
		if delivery, _, err = e.backend.Settlement.Delivery(h.Claim.ID); err != nil {
			return nil, terms.DeskProblem(err)
		}
	}
	w := e.backend.Writer()
	label := ""
	if t := w.View.Ticket(h.Claim.Terms.Ticket); t != nil {
		label = t.Label
	}
	return wire.NewPage(appendHistory(&w, h, label, &delivery)), nil
}

// serveTransaction serves a fresh unsigned transaction of a modular claim, because the
// blockhash of the first one expires sooner than the claim. An atomic claim keeps its first
// one: anybody who knows the claim's id could otherwise replace what its taker is signing.
func (e *Endpoints) serveTransaction(segment []byte) (*wire.Page, *wire.Problem) {
	h, problem := e.findClaim(segment)
	if problem != nil {
		return nil, problem
	}
	if h.Claim.Mode != rfq.Modular || h.Claim.State != rfq.ClaimReserved {
		return nil, terms.Refusal(event.ReasonClaimState)
	}
	pack, problem := e.freshPackage(h.Claim.ID)
	if problem != nil {
		return nil, problem
	}
	return &wire.Page{Body: appendTransaction(&h.Claim, pack)}, nil
}

// freshPackage returns a fresh transaction of a reserved claim.
func (e *Endpoints) freshPackage(id market.ClaimID) (*desk.Package, *wire.Problem) {
	const later = "Ask again later."
	if e.backend.Settlement == nil || e.backend.Settlement.Ready() != nil {
		return nil, terms.ChainUnavailable(later)
	}
	ctx, cancel := context.WithTimeout(context.Background(), terms.SettlementTimeout)
	defer cancel()
	pack, err := e.backend.Settlement.FreshPackage(ctx, id)
	switch {
	case errors.Is(err, desk.ErrUnknownBuild):
		return nil, terms.Refusal(event.ReasonUnknownClaim)
	case err != nil:
		return nil, terms.SettlementProblem(err, later)
	}
	return &pack, nil
}

// appendTransaction renders a fresh transaction.
func appendTransaction(c *rfq.Claim, pack *desk.Package) []byte {
	dst := make([]byte, 0, 512+2*len(pack.Transaction))
	dst = append(terms.AppendClaimHead(dst, c), `,"transaction":"`...)
	dst = append(base64.StdEncoding.AppendEncode(dst, pack.Transaction), '"')
	dst = terms.AppendBlockhash(dst, pack)
	return append(wire.AppendMillis(append(dst, `,"expires_at":`...), c.Deadline), '}')
}

// appendHistory renders a claim: its present state, its delivery transaction, its states
// with their times, oldest first, and the payments that named it.
func appendHistory(w *terms.Writer, h *desk.History, label string, delivery *[64]byte) []byte {
	c := &h.Claim
	dst := make([]byte, 0, 2048)
	dst = append(terms.AppendClaimHead(dst, c), `,"claim":`...)
	dst = w.Claim(dst, c, label)
	dst = append(dst, `,"payment":`...)
	dst = append(w.OpenPayment(dst, &c.Terms), `},"paid_atoms":"`...)
	dst = market.AppendDecimal(dst, c.Paid, 0)
	dst = wire.AppendMillis(append(dst, `","expires_at":`...), c.Deadline)
	dst = wire.AppendMillis(append(dst, `,"changed_at":`...), c.ChangedAt)
	dst = w.Delivery(append(dst, `,"delivery":`...), c, delivery)
	dst = append(dst, `,"history":[`...)
	for i := range h.States {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, `{"state":"`...), h.States[i].State.Word()...)
		dst = append(wire.AppendMillis(append(dst, `","at":`...), h.States[i].ChangedAt), '}')
	}
	dst = append(dst, `],"payments":[`...)
	for i := range h.Payments {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = terms.AppendPayment(dst, &h.Payments[i])
	}
	return append(dst, "]}"...)
}
