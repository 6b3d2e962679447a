package httpgw

import (
	"context"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// Desk is the RFQ desk as the routes need it; see package desk. Any goroutine
// may call it.
type Desk interface {
	View() *rfq.View // nil before the first one
	Do(r rfq.Request) (*desk.Result, error)
	Claim(id market.ClaimID) (*desk.History, bool, error)
}

// Settlement is the room that talks to the chain. Any goroutine may call it.
// Whatever it returns goes out: no error of it does, but a *desk.Refusal.
type Settlement interface {
	// Ready returns nil where a package can be built now. It must not block.
	Ready() error
	// Package returns what the client needs to pay for a claim that has just been
	// reserved, and for the same claim the same package for ever:
	// the payer of the first one stands. A *desk.Refusal says why there is none.
	Package(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (desk.Package, error)
	// Verify looks for a payment on the chain and, where it is final, has the desk
	// take it. An error means that the chain or the desk could not be asked; those
	// of package desk say which.
	Verify(ctx context.Context, p *desk.PaymentProof) (desk.Verdict, error)
	// Delivery returns the first signature of the newest transaction of ours that
	// delivers what a claim bought; ok is false where the desk has signed none.
	Delivery(id market.ClaimID) (signature [64]byte, ok bool, err error)
}

// settleTime is how long a request waits for the settlement door.
const settleTime = 3 * time.Second

// deal is what the endpoints that sell reach: the desk, and the settlement that its
// claims end with.
type deal struct {
	Desk        Desk
	Settlement  Settlement // nil = the chain is unavailable
	Instruments *market.Instruments
}

// view returns the newest view; before the first one, an empty one.
func (d *deal) view() *rfq.View {
	if v := d.Desk.View(); v != nil {
		return v
	}
	return &rfq.View{}
}

// terms returns a writer of terms under the newest view.
func (d *deal) terms() termsWriter { return termsWriter{d.Instruments, d.view()} }

// ask sends a request to the desk and waits for its outcome.
func (d *deal) ask(r rfq.Request) (*desk.Result, *problem) {
	result, err := d.Desk.Do(r)
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

// reserve takes a claim and gets the transaction that pays for it. Where no
// transaction can be built now, it reserves nothing. A refusal of the desk that is
// about the field from names the field to.
func (d *deal) reserve(r *rfq.TakeClaim, payer desk.FeePayer, from, to string) (*desk.Result, *desk.Package, *problem) {
	if d.Settlement == nil || d.Settlement.Ready() != nil {
		return nil, nil, chainUnavailable("Nothing has been reserved.")
	}
	result, bad := d.ask(r)
	if bad != nil {
		return nil, nil, bad.rename(from, to)
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	pack, err := d.Settlement.Package(ctx, result.Claim, payer)
	if err != nil {
		return nil, nil, settlementProblem(err, "The claim is reserved. Ask for its transaction with the same "+idempotencyHeader+".")
	}
	return result, &pack, nil
}
