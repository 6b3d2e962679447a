package settle

import (
	"errors"
	"fmt"
)

// Errors, wrapped with the claim and the detail.
var (
	// ErrOptions means that an option is invalid.
	ErrOptions = errors.New("settle: invalid options")
	// ErrNotReady means that no transaction package can be built now; the text says what is missing.
	ErrNotReady = errors.New("settle: settlement is not ready")
	// ErrChain means that no node gave a usable answer. Nothing has been signed.
	ErrChain = errors.New("settle: the Solana nodes gave no usable answer")
	// ErrSigner means that the signer gave no valid signature. The desk's permission
	// stands, and the same submission again continues from there.
	ErrSigner = errors.New("settle: the signer did not sign")
	// ErrRefused means that the desk's rules refuse a request; the text has the reason.
	ErrRefused = errors.New("settle: the desk refused the request")
)

var (
	errNoView   = fmt.Errorf("%w: the desk has published no view", ErrNotReady)
	errNoProver = fmt.Errorf("%w: the watch for payments has not started", ErrNotReady)
	// errEngineStopped ends Run when the engine's events end.
	errEngineStopped = errors.New("settle: the engine has stopped")
	// errLater ends a step that must wait for another holder of the claim. It is no failure.
	errLater = errors.New("settle: another request works on the claim: try again later")
	// errOutdated means that the desk would build another transaction for the claim
	// today, because a mint or its key has changed since the build.
	errOutdated = errors.New("settle: the transaction was built for other terms, or expires too soon")
)
