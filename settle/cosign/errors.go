package cosign

import "errors"

// Errors of the way to a signature, wrapped with the claim and the detail.
var (
	// ErrEmptyCounterparty: no signature of the taker came, or there is no taker.
	ErrEmptyCounterparty = errors.New("cosign: empty counterparty")
	// ErrMismatch: what came is not the transaction that was built.
	ErrMismatch = errors.New("cosign: not the transaction that was built")
	// ErrBadSignature: the taker's signature does not verify.
	ErrBadSignature = errors.New("cosign: bad signature")
	// ErrShape: a message that the desk does not sign, whoever asks.
	ErrShape = errors.New("cosign: not a message that the desk signs")
	// ErrZero: the zero value of a type whose values prove something.
	ErrZero = errors.New("cosign: zero value")
	// ErrOutcome: the Authorizer answered with the outcome of another request.
	ErrOutcome = errors.New("cosign: outcome of another request")
	// ErrSigner: the signer is not the desk's, or what it gave does not verify.
	ErrSigner = errors.New("cosign: not the desk's signer")
)
