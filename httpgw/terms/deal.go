package terms

import (
	"context"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Desk is the RFQ desk as the routes need it; see package desk. Any goroutine
// may call it.
type Desk interface {
	View() *rfq.View // nil before the first one
	Do(r rfq.Request) (*desk.Result, error)
	Claim(id market.ClaimID) (*desk.History, bool, error)
}

// Settlement talks to the chain. Any goroutine may call it.
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

// SettlementTimeout is how long a request waits for the settlement.
const SettlementTimeout = 3 * time.Second

// Deal is what the endpoints that sell reach: the desk, and the settlement that its
// claims end with.
type Backend struct {
	Desk        Desk
	Settlement  Settlement // nil = the chain is unavailable
	Instruments *market.Instruments
}

// View returns the newest View; before the first one, an empty one.
func (d *Backend) View() *rfq.View {
	if v := d.Desk.View(); v != nil {
		return v
	}
	return &rfq.View{}
}

// Writer returns a writer of Writer under the newest view.
func (d *Backend) Writer() Writer { return Writer{d.Instruments, d.View()} }

// Ask sends a request to the desk and waits for its outcome.
func (d *Backend) Do(r rfq.Request) (*desk.Result, *wire.Problem) {
	result, err := d.Desk.Do(r)
	if err != nil {
		return nil, DeskProblem(err)
	}
	if result.Reason != event.ReasonNone {
		bad := Refusal(&result.Outcome)
		bad.Replayed = result.Replayed
		return nil, bad
	}
	return result, nil
}

// Reserve takes a claim and gets the transaction that pays for it. Where no
// transaction can be built now, it reserves nothing. A refusal of the desk that is
// about the field from names the field to.
func (d *Backend) Reserve(r *rfq.TakeClaim, payer desk.FeePayer, from, to string) (*desk.Result, *desk.Package, *wire.Problem) {
	if d.Settlement == nil || d.Settlement.Ready() != nil {
		return nil, nil, ChainUnavailable("Nothing has been reserved.")
	}
	result, bad := d.Do(r)
	if bad != nil {
		return nil, nil, bad.RenameField(from, to)
	}
	ctx, cancel := context.WithTimeout(context.Background(), SettlementTimeout)
	defer cancel()
	pack, err := d.Settlement.Package(ctx, result.Claim, payer)
	if err != nil {
		return nil, nil, SettlementProblem(err, "The claim is reserved. Ask for its transaction with the same "+wire.IdempotencyHeader+".")
	}
	return result, &pack, nil
}
