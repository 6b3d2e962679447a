package settle

import (
	"errors"
)

// Errors, wrapped with what they concern.
var (
	// ErrOptions: options that cannot work.
	ErrOptions = errors.New("settle: invalid options")
	// ErrNotReady: no package can be built now; the text says what is missing.
	ErrNotReady = errors.New("settle: not ready")
	// ErrChain: the chain could not be asked. Nothing has been signed.
	ErrChain = errors.New("settle: the chain could not be asked")
	// ErrSigner: the signer gave no signature that is good. The desk's promise
	// stands, and the same submission again goes on from there.
	ErrSigner = errors.New("settle: the signer gave no signature")
	// ErrRefused: an operator's request that the desk's rules refuse; the text
	// has the reason's word.
	ErrRefused = errors.New("settle: refused by the desk")
)
