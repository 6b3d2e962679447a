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

// Node is the client of the RPC nodes: [rpc.Client].
type Node interface {
	// Upstreams returns the number of configured nodes.
	Upstreams() int
	// TransactionByQuorum asks all nodes, and FindTransaction all once one knows the
	// signature. Payments are recorded from their results only.
	TransactionByQuorum(ctx context.Context, s solana.Signature, level rpc.Commitment) (t *ledger.Confirmed, found bool, err error)
	FindTransaction(ctx context.Context, s solana.Signature, level rpc.Commitment) (t *ledger.Confirmed, found bool, err error)
	// TransactionFromEach returns each node's own answer.
	TransactionFromEach(ctx context.Context, s solana.Signature, level rpc.Commitment) ([]rpc.NodeTransaction, error)
	SignaturesInTurn(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.SignatureInfo, error)
	SignaturePageFromEach(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.NodeSignatures, error)
	FirstBlockFromEach(ctx context.Context) ([]rpc.NodeFirstBlock, error)
}

// Desk is the part of desk.Desk that a Prover uses. The values that its methods
// return are read-only.
type Desk interface {
	// Do submits r and returns once its outcome is durable. An error means that the
	// request had no effect, or that the outcome is unknown.
	Do(r rfq.Request) (*desk.Result, error)
	// Claim returns the durable state of a claim, with the payments that named it: the
	// newest ones, if there are very many.
	Claim(id market.ClaimID) (*desk.History, bool, error)
	// PaymentClaim returns the claim that a signature was recorded for.
	PaymentClaim(signature [64]byte) (market.ClaimID, bool, error)
}

// Store keeps unmatched payments and cursors, and knows our own transactions:
// [store.Store].
type Store interface {
	AddUnmatched(x *store.UnmatchedPayment) error
	ClaimOf(s solana.Signature) (market.ClaimID, bool, error)
	Cursor(account solana.Address) (solana.Signature, bool, error)
	SetCursor(account solana.Address, s solana.Signature) error
}

// TermsMismatch is the word for a request that names the right claim and wrong terms
// (our choice). The other words are those of package payment.
const TermsMismatch = "terms_mismatch"

// Errors of Verify. Errors of the node and of the desk are wrapped.
var (
	// ErrBusy: Options.MaxReading transactions are being examined.
	ErrBusy = fmt.Errorf("proof: too many payments are being examined: %w", desk.ErrBusy)
	// ErrAnswer: an answer of a node or of the desk that proves nothing, or nodes that
	// contradict each other.
	ErrAnswer = errors.New("proof: the answer of the nodes cannot be used")
	// ErrWallet: a claim's payee is a wallet that the options do not list.
	ErrWallet = errors.New("proof: the wallet that the claim pays is not among settle.treasury")
)

// Prover proves payments: see the package documentation. [New] makes one.
type Prover struct {
	options      Options
	node         Node
	desk         Desk
	store        Store
	ours         []solana.Address
	destinations []destination
	lookups      *sharedCalls[requestKey, result]

	counts counts
	mu     sync.Mutex
	// watches has an element for each of destinations, guarded by mu.
	watches []Watch
}

// requestKey is the key of a shared call. Requests with different idempotency keys share
// no call, because the desk stores an answer for each key.
type requestKey struct {
	signature solana.Signature
	key       rfq.IdempotencyKey
}

// New returns a Prover. It calls nothing. Errors: [ErrOptions].
func New(o Options, node Node, desk Desk, st Store) (*Prover, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	destinations, err := o.destinations()
	if err != nil {
		return nil, err
	}
	watches := make([]Watch, len(destinations))
	for i := range destinations {
		watches[i].Account = destinations[i].target.PayTo
	}
	return &Prover{
		options: o, node: node, desk: desk, store: st, ours: o.ours(), destinations: destinations,
		lookups: newSharedCalls[requestKey, result](o.MaxReading), watches: watches,
	}, nil
}

// Verify examines what the transaction with a signature paid, records it in the desk,
// and returns the verdict for the request. An error decides nothing: the same request
// can be sent again. Errors: [ErrBusy], [ErrAnswer], [ErrWallet], rpc.Error,
// ctx.Err(), errors of packages ledger and payment, of the desk and of the store.
func (p *Prover) Verify(ctx context.Context, r *desk.PaymentProof) (desk.Verdict, error) {
	f, err := p.find(ctx, requestKey{r.Signature, r.Key}, p.node.FindTransaction)
	if err != nil {
		return desk.Verdict{}, err
	}
	return p.judge(r, &f), nil
}

// read is a method of Node that reads a transaction as a majority has it.
type read func(ctx context.Context, s solana.Signature, level rpc.Commitment) (*ledger.Confirmed, bool, error)

// find returns the result for a signature: from the desk's record, or else from the
// chain.
func (p *Prover) find(ctx context.Context, l requestKey, from read) (result, error) {
	if f, ok, err := p.recorded(l.signature); ok && !f.ended || err != nil {
		return f, err
	}
	return p.lookups.do(ctx, l, func() (result, error) {
		// Another call may have ended since recorded was called above.
		known, ok, err := p.recorded(l.signature)
		if ok && !known.ended || err != nil {
			return known, err
		}
		f, err := p.examine(ctx, l, from)
		if err != nil || !ok || f.ended || f.claim != nil {
			return f, err
		}
		known.notFinal, known.undecided = f.pending, f.undecided
		return known, nil
	})
}

// judge compares the result for a signature with the client's request. It is pure:
// the same finding and request have the same verdict.
func (p *Prover) judge(r *desk.PaymentProof, f *result) desk.Verdict {
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

// disagrees returns the reason to refuse a request about a payment that names c. A
// request that names another claim, or no claim and another ticket or tranche, reports the
// payment of another claim; a request that names c, or its tranche, has wrong terms.
func disagrees(r *desk.PaymentProof, c *rfq.Claim) (event.Reason, string) {
	t := &c.Terms
	tranche := (r.Ticket == 0 || r.Ticket == t.Ticket) && (r.Tranche == 0 || r.Tranche == t.Tranche)
	same := tranche && (r.Fill == 0 || r.Fill == t.Fill) && (r.Rail == 0 || r.Rail == t.Rail)
	switch {
	case r.Claim == 0 && !tranche, r.Claim != 0 && r.Claim != c.ID:
		return event.ReasonPaymentUsed, ""
	case !same:
		return event.ReasonPaymentMismatch, TermsMismatch
	}
	return event.ReasonNone, ""
}

type counts struct{ reads, recorded, refused, unmatched, dust, otherMint atomic.Uint64 }

// Stats are totals since the start, each read by itself.
type Stats struct {
	Reads     uint64 // transactions read from the chain
	Recorded  uint64 // payments, applied or refund due
	Refused   uint64 // finalized transactions that were not recorded
	Unmatched uint64 // stored as unmatched, repetitions included
	Dust      uint64 // credits below a rail's Dust
	OtherMint uint64 // transactions that brought tokens of other mints, and nothing else
	Watches   []Watch
}

// Watch is the state of the watch of one account.
type Watch struct {
	Account solana.Address
	// RoundAt is the end of its last round without an error, in Unix nanoseconds; 0 =
	// none yet.
	RoundAt int64
	// Waiting is the number of listed transactions that are retried.
	Waiting int
	// Error is the error of the last round, "" if there was none.
	Error string
}

// Stats returns the current figures.
func (p *Prover) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.counts
	return Stats{c.reads.Load(), c.recorded.Load(), c.refused.Load(), c.unmatched.Load(), c.dust.Load(), c.otherMint.Load(), slices.Clone(p.watches)}
}
