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

// Desk has the methods of the RFQ desk that the routes need; see package desk. Implementations are
// safe for concurrent use.
type Desk interface {
	View() *rfq.View // nil before the first one
	Do(r rfq.Request) (*desk.Result, error)
	Answered(key rfq.IdempotencyKey) (bool, error)
	Claim(id market.ClaimID) (*desk.History, bool, error)
	// Sales returns an instrument's sales before a number (0: the newest), newest first.
	Sales(in market.InstrumentID, before uint64, limit int) ([]desk.Sale, error)
	// SalesSummary returns the totals of all sales, and of those after a time in Unix ns.
	SalesSummary(in market.InstrumentID, after int64) (all, since desk.SalesTotals, err error)
}

// Settlement talks to the chain. Implementations are safe for concurrent use. Clients
// see its results, and of its errors only a *desk.Refusal.
type Settlement interface {
	// Ready returns nil if a transaction package can be built now. It must not block.
	Ready() error
	// Package returns what the client needs to pay for a reserved claim. It returns the
	// same transaction package for every call with the same claim, so the payer of the first call counts.
	// A *desk.Refusal says why there is none.
	Package(ctx context.Context, c *rfq.Claim, payer desk.FeePayer) (desk.Package, error)
	// FreshPackage replaces the transaction package of a reserved claim by one with a newer blockhash.
	// Errors: desk.ErrUnknownBuild if the claim has none; a *desk.Refusal if it has
	// ended or moved on.
	FreshPackage(ctx context.Context, id market.ClaimID) (desk.Package, error)
	// Verify looks for a payment on the chain and, if it is final, books it at the desk.
	// An error means that the chain or the desk did not answer; errors of package desk
	// distinguish the two.
	Verify(ctx context.Context, p *desk.PaymentProof) (desk.Verdict, error)
	// Delivery returns the first signature of the desk's newest delivery transaction of
	// a claim. ok is false if the desk has signed none.
	Delivery(id market.ClaimID) (signature [64]byte, ok bool, err error)
}

// SettlementTimeout is how long a request waits for the settlement.
const SettlementTimeout = 3 * time.Second

// Backend is what the selling endpoints call: the desk, and the settlement of its
// claims.
type Backend struct {
	Desk        Desk
	Settlement  Settlement // nil = the chain is unavailable
	Instruments *market.Instruments
}

// View returns the newest view of the desk, or an empty one before the first.
func (b *Backend) View() *rfq.View {
	if v := b.Desk.View(); v != nil {
		return v
	}
	return &rfq.View{}
}

// Writer returns a writer that uses the newest view.
func (b *Backend) Writer() Writer { return Writer{b.Instruments, b.View()} }

// Do sends a request to the desk and waits for its outcome.
func (b *Backend) Do(r rfq.Request) (*desk.Result, *wire.Problem) {
	result, err := b.Desk.Do(r)
	if err != nil {
		return nil, DeskProblem(err)
	}
	if result.Reason != event.ReasonNone {
		problem := RefusalOf(&result.Outcome, &b.View().Policy)
		problem.Replayed = result.Replayed
		return nil, problem
	}
	return result, nil
}

// Reserve takes a claim and builds the transaction that pays for it. It reserves nothing
// if no transaction can be built now. In a refusal, the field from is called to.
func (b *Backend) Reserve(r *rfq.TakeClaim, payer desk.FeePayer, from, to string) (*desk.Result, *desk.Package, *wire.Problem) {
	if b.Settlement == nil || b.Settlement.Ready() != nil {
		return nil, nil, ChainUnavailable("Nothing was reserved.")
	}
	result, problem := b.Do(r)
	if problem != nil {
		return nil, nil, problem.RenameField(from, to)
	}
	ctx, cancel := context.WithTimeout(context.Background(), SettlementTimeout)
	defer cancel()
	pack, err := b.Settlement.Package(ctx, result.Claim, payer)
	if err != nil {
		return nil, nil, SettlementProblem(err, "The claim is reserved. To get its transaction, repeat the request with the same "+wire.IdempotencyHeader+".")
	}
	return result, &pack, nil
}
