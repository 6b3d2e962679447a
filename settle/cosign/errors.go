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
	// ErrZero: the zero value of a type whose values prove something.
	ErrZero = errors.New("cosign: zero value")
	// ErrOutcome: the Authorizer returned the outcome of another request.
	ErrOutcome = errors.New("cosign: outcome of another request")
	// ErrSigner: the signer is not the desk's, or its signature does not verify.
	ErrSigner = errors.New("cosign: not the desk's signer")
)
