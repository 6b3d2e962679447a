package cosign

import (
	"bytes"
	"context"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/eddsa"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// Job is a transaction for the desk's key, made from an [Authorized] or an
// [AuthorizedRefund], or by a [Server]
// from a frame that passed all checks. The zero value is useless, and no signer signs
// it.
type Job struct{ job *draft }

// Kind returns the kind of the transaction, 0 for the zero value.
func (j Job) Kind() Kind { return j.job.value().Kind }

// Transaction returns the whole transaction: the desk's signature is empty, all others
// are there. Read-only.
func (j Job) Transaction() []byte { return j.job.value().raw }

// Message returns the bytes to sign, a part of Transaction.
func (j Job) Message() []byte { return j.job.message() }

// Signer signs with the desk's key. Any goroutine may call it.
type Signer interface {
	// Address returns the key's address. It never changes.
	Address() solana.Address
	// Sign signs a job's message. The same job gives the same signature.
	Sign(ctx context.Context, j Job) (solana.Signature, error)
}

// Signed is a transaction with all its signatures. Only [Authorized.Sign] makes one.
// The zero value is useless.
type Signed struct {
	signed    *draft
	raw       []byte
	signature solana.Signature
}

// IsZero reports whether nothing is signed.
func (s Signed) IsZero() bool { return s.signed == nil }

// Claim returns the claim, 0 of the zero value.
func (s Signed) Claim() market.ClaimID { return s.signed.value().Claim }

// Kind returns the kind of the transaction, 0 for the zero value.
func (s Signed) Kind() Kind { return s.signed.value().Kind }

// Hash returns the hash of the message, zero of the zero value.
func (s Signed) Hash() solana.Hash { return s.signed.value().hash }

// Signature returns the first signature, which names the transaction on the chain. If
// the taker pays the fee it is the taker's, who can sign the same message again with
// another signature; the chain takes the message once.
func (s Signed) Signature() solana.Signature { return s.signature }

// Bytes returns the whole transaction as it is sent. Read-only.
func (s Signed) Bytes() []byte { return s.raw }

// Sign signs the transaction with s. Repeated, it returns the same signature. It blocks
// as long as s does.
//
// Errors: [ErrZero]; [ErrSigner] if s has another key than the desk's, or the signature does
// not verify; s's own, wrapped.
func (a Authorized) Sign(ctx context.Context, s Signer) (Signed, error) {
	d := a.authorized
	if d == nil {
		return Signed{}, fmt.Errorf("%w of Authorized was used", ErrZero)
	}
	raw, first, err := d.sign(ctx, s)
	if err != nil {
		return Signed{}, fmt.Errorf("claim %s: %w", binding.Memo(d.Claim), err)
	}
	return Signed{d, raw, first}, nil
}

// sign returns the whole transaction with the signature of s, and its first signature.
func (d *draft) sign(ctx context.Context, s Signer) (raw []byte, first solana.Signature, err error) {
	if address := s.Address(); address != d.Desk {
		return nil, first, fmt.Errorf("%w: the transaction needs the signature of %s, the signer's key is %s: check the signer's key file", ErrSigner, solana.Base58(d.Desk), solana.Base58(address))
	}
	signature, err := s.Sign(ctx, Job{d})
	if err != nil {
		return nil, first, err
	}
	if !eddsa.Verify(d.Desk, d.message(), signature) {
		return nil, first, fmt.Errorf("%w: the signature of %s does not verify", ErrSigner, solana.Base58(d.Desk))
	}
	raw = bytes.Clone(d.raw)
	copy(slotOf(raw, d.slot), signature[:])
	return raw, solana.Signature(slotOf(raw, 0)), nil
}
