package cosign

import "errors"

// Errors of countersigning, authorizing and signing, wrapped with the claim and the
// detail.
var (
	// ErrEmptyCounterparty: there is no signature of the taker, or no taker.
	ErrEmptyCounterparty = errors.New("cosign: the taker has not signed")
	// ErrMismatch: the submission is not the transaction that was built.
	ErrMismatch = errors.New("cosign: the submitted transaction is not the one that was built")
	// ErrBadSignature: the taker's signature does not verify.
	ErrBadSignature = errors.New("cosign: the taker's signature does not verify")
	// ErrShape: a message that the desk never signs.
	ErrShape = errors.New("cosign: the message has not the form of what the desk signs")
	// ErrRefundTerms: a refund that differs from what the desk's record says is due.
	ErrRefundTerms = errors.New("cosign: the transaction pays back something else than the refund that is due")
	// ErrZero: the zero value of a type whose values prove a step, which only a bug of ours
	// can pass.
	ErrZero = errors.New("cosign: internal error: the zero value")
	// ErrOutcome: the Authorizer returned the outcome of another request.
	ErrOutcome = errors.New("cosign: the desk returned the outcome of another request")
	// ErrSigner: the signer has another key than the desk's, or its signature does not
	// verify.
	ErrSigner = errors.New("cosign: the signer's key is not the desk's")
)
