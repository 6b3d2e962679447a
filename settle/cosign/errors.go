package cosign

import "errors"

// Errors of countersigning, authorizing and signing, wrapped with the claim and the
// detail.
var (
	// ErrEmptyCounterparty: there is no signature of the taker, or no taker.
	ErrEmptyCounterparty = errors.New("cosign: empty counterparty")
	// ErrMismatch: the submission is not the transaction that was built.
	ErrMismatch = errors.New("cosign: not the transaction that was built")
	// ErrBadSignature: the taker's signature does not verify.
	ErrBadSignature = errors.New("cosign: bad signature")
	// ErrShape: a message that the desk never signs.
	ErrShape = errors.New("cosign: not a message that the desk signs")
	// ErrRefundTerms: a refund that differs from what the desk's record says is due.
	ErrRefundTerms = errors.New("cosign: not the refund that is due")
	// ErrZero: the zero value of a type whose values prove a step, which only a bug of ours
	// can pass.
	ErrZero = errors.New("cosign: internal error: zero value")
	// ErrOutcome: the Authorizer returned the outcome of another request.
	ErrOutcome = errors.New("cosign: the desk returned the outcome of another request")
	// ErrSigner: the signer has another key than the desk's, or its signature does not
	// verify.
	ErrSigner = errors.New("cosign: signature or key is not the desk's")
)
