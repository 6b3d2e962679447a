package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"blockdesk/desk"
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
	// TransactionFromAll is for what is booked, and asks all nodes.
	TransactionFromAll(ctx context.Context, s solana.Signature, level rpc.Commitment) (t *ledger.Confirmed, found bool, err error)
	Transaction(ctx context.Context, s solana.Signature, level rpc.Commitment) (t *ledger.Confirmed, found bool, err error)
	Signatures(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.SignatureInfo, error)
}

// Desk is what proofs use of the desk: desk.Desk. What its methods return nobody may
// change.
type Desk interface {
	// Do submits r and returns once its outcome is durable. An error means that
	// nothing has happened, or that what has happened is not known.
	Do(r rfq.Request) (*desk.Result, error)
	// Claim returns a claim as it is in what is durable, with the payments that
	// named it: the newest ones, where there are very many.
	Claim(id market.ClaimID) (*desk.History, bool, error)
	// PaymentClaim returns the claim that a signature was booked for.
	PaymentClaim(signature [64]byte) (market.ClaimID, bool, error)
}

// Strays keeps what the desk cannot book, and knows our own transactions:
// [store.Store].
type Store interface {
	AddUnmatched(x *store.UnmatchedPayment) error
	ClaimOf(s solana.Signature) (market.ClaimID, bool, error)
	Cursor(account solana.Address) (solana.Signature, bool, error)
	SetCursor(account solana.Address, s solana.Signature) error
}

// TermsMismatch is the word for a request that names the right claim and tells
// something wrong of it. Our choice, beside the words of package payment.
const TermsMismatch = "terms_mismatch"

// Errors of Verify beside those of the node and of the desk, which are wrapped.
var (
	// ErrBusy: as many transactions as are allowed are being looked at.
	ErrBusy = fmt.Errorf("proof: too many payments are being looked at: %w", desk.ErrBusy)
	// ErrAnswer: a node's answer, or the desk's, that nothing can be concluded
	// from; or answers of nodes that contradict each other.
	ErrAnswer = errors.New("proof: an answer that proves nothing")
	// ErrWallet: a claim is to be paid to a wallet that the options lack.
	ErrWallet = errors.New("proof: the claim is to be paid to a wallet that is not configured")
)

// Prover proves payments: see the package. Make one with [New].
type Prover struct {
	options      Options
	node         Node
	desk         Desk
	store        Store
	ours         []solana.Address
	destinations []destination
	lookups      *sharedCalls[lookup, finding]

	counts counts
	mu     sync.Mutex
	// watches are of the places, guarded by mu.
	watches []Watch
}

// look is what one flight is about. A request with a key has one of its own: the
// desk's answer to a key is nobody else's.
type lookup struct {
	signature solana.Signature
	key       rfq.IdempotencyKey
}

// New makes a prover. It asks nobody. Errors: [ErrOptions].
func New(o Options, node Node, desk Desk, strays Store) (*Prover, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	places, err := o.destinations()
	if err != nil {
		return nil, err
	}
	watches := make([]Watch, len(places))
	for i := range places {
		watches[i].Account = places[i].target.PayTo
	}
	return &Prover{
		options: o, node: node, desk: desk, store: strays, ours: o.ours(), destinations: places,
		lookups: newSharedCalls[lookup, finding](o.MaxReading), watches: watches,
	}, nil
}

// Verify finds out what a signature paid, has the desk book it, and says what
// that is worth for the request. An error means that the chain, the desk or the
// strays could not be asked, or that an answer was no use: nothing is decided,
// and the same request can be sent again. Errors: [ErrBusy], [ErrAnswer],
// [ErrWallet], rpc.Error, those of packages ledger and payment, of the desk and
// of the store, and the context's.
func (p *Prover) Verify(ctx context.Context, r *desk.PaymentProof) (desk.Verdict, error) {
	f, err := p.find(ctx, lookup{r.Signature, r.Key})
	if err != nil {
		return desk.Verdict{}, err
	}
	return p.judge(r, &f), nil
}

// find returns what there is to know of a signature: from the record where it is
// known, else from the chain.
func (p *Prover) find(ctx context.Context, l lookup) (finding, error) {
	if f, ok, err := p.recorded(l.signature); ok && !f.ended || err != nil {
		return f, err
	}
	return p.lookups.do(ctx, l, func() (finding, error) {
		// Between the look above and this one another's may have ended.
		known, ok, err := p.recorded(l.signature)
		if ok && !known.ended || err != nil {
			return known, err
		}
		f, err := p.examine(ctx, l)
		if err != nil || !ok || f.ended || f.claim != nil {
			return f, err
		}
		known.notFinal = f.pending
		return known, nil
	})
}

// judge holds what is known of a signature against what a client says of it. It
// asks nobody: the same finding and request have the same verdict.
func (p *Prover) judge(r *desk.PaymentProof, f *finding) desk.Verdict {
	v := desk.Verdict{Claim: f.claim, Payment: f.payment, Replayed: f.replayed}
	if f.claim != nil {
		v.Refused, v.Mismatch = disagrees(r, f.claim)
	}
	switch {
	case v.Refused != event.ReasonNone:
	case f.pending:
		v.Pending = p.options.Retry
	default:
		v.Refused, v.Mismatch = f.refused, f.mismatch
	}
	return v
}

// disagrees says what is wrong with a request about a payment that names c. Who
// does not name the claim, or names another one, asks with the payment of another
// claim; who names it has told something else wrong.
func disagrees(r *desk.PaymentProof, c *rfq.Claim) (event.Reason, string) {
	t := &c.Terms
	same := (r.Ticket == 0 || r.Ticket == t.Ticket) && (r.Tranche == 0 || r.Tranche == t.Tranche) &&
		(r.Fill == 0 || r.Fill == t.Fill) && (r.Rail == 0 || r.Rail == t.Rail)
	switch {
	case r.Claim == 0 && !same, r.Claim != 0 && r.Claim != c.ID:
		return event.ReasonPaymentUsed, ""
	case !same:
		return event.ReasonPaymentMismatch, TermsMismatch
	}
	return event.ReasonNone, ""
}

// counts are figures since the start.
type counts struct{ reads, booked, refused, unmatched, dust atomic.Uint64 }

// Stats are figures since the start, each read by itself.
type Stats struct {
	Reads     uint64 // transactions asked of the chain
	Booked    uint64 // payments that the desk took, applied or due for refund
	Refused   uint64 // final transactions that it did not
	Unmatched uint64 // given to Strays, some perhaps again
	Dust      uint64 // credits below a rail's Dust, and worthless tokens past store.ErrFull
	Watches   []Watch
}

// Watch tells how the watch of one account does.
type Watch struct {
	Account solana.Address
	// RoundAt is the end of its last round without an error, Unix ns; 0: none yet.
	RoundAt int64
	// Waiting is how many listed transactions are tried again and again.
	Waiting int
	// Error is of the last round, "" where it met none.
	Error string
}

// Stats returns the figures.
func (p *Prover) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.counts
	return Stats{c.reads.Load(), c.booked.Load(), c.refused.Load(), c.unmatched.Load(), c.dust.Load(), slices.Clone(p.watches)}
}
