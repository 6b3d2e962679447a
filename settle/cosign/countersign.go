package cosign

import (
	"bytes"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/eddsa"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// Kind is one of the three transactions that the desk signs. The numbers are on the wire
// and on disk: frozen.
type Kind uint8

const (
	// Cosign is the atomic transaction that its taker has signed.
	Cosign Kind = 1
	// Deliver is the delivery of a paid claim.
	Deliver Kind = 2
	// Refund pays payments back.
	Refund Kind = 3
)

// String returns the machine word.
func (k Kind) String() string {
	switch k {
	case Cosign:
		return "cosign"
	case Deliver:
		return "deliver"
	case Refund:
		return "refund"
	default:
		return "kind?"
	}
}

// draft is a transaction on its way to the desk's key. Its shape has been checked. A
// draft and its bytes are immutable once made, so that they are shared.
type draft struct {
	Summary
	refund *RefundSummary // of refunds; Summary has only Kind and Desk then
	slot   int            // of the desk's signature, which is still empty
	raw    []byte         // the whole transaction, with the taker's signature if there is one
	hash   solana.Hash
}

// signatureSize is the size of a signature slot. The count of slots before them is one
// byte: there are at most two.
const signatureSize = len(solana.Signature{})

func slotOf(raw []byte, slot int) []byte {
	at := 1 + slot*signatureSize
	return raw[at : at+signatureSize : at+signatureSize]
}

func (d *draft) value() draft {
	if d == nil {
		return draft{}
	}
	return *d
}

// message returns the bytes to sign: those after the slots.
func (d *draft) message() []byte {
	if d == nil {
		return nil
	}
	return d.raw[1+int(d.raw[0])*signatureSize:]
}

// Submission is a taker's submission; exactly one of the two fields is set.
type Submission struct {
	// Transaction is the whole transaction as it was built, with the taker's
	// signature in its slot and nothing else changed.
	Transaction []byte
	// Signature is only the taker's signature.
	Signature solana.Signature
}

// Countersigned is an atomic transaction that its taker has signed. Only [Countersign]
// makes one. The zero value is useless.
type Countersigned struct {
	// The fields of these types have different names, because Go would let any package
	// convert one type into the next.
	countersigned *draft
}

// Claim returns the claim, 0 of the zero value.
func (c Countersigned) Claim() market.ClaimID { return c.countersigned.value().Claim }

// Hash returns the hash of the message, zero of the zero value.
func (c Countersigned) Hash() solana.Hash { return c.countersigned.value().hash }

// Summary returns what the message does, the zero Summary of the zero value.
func (c Countersigned) Summary() Summary { return c.countersigned.value().Summary }

// Countersign verifies that the taker signed the atomic transaction of a claim. raw
// are its exact unsigned bytes as they were built and stored; they are copied. Every
// byte of a submitted transaction but the taker's signature must be raw's, so the
// desk's slot is empty; the signature is verified strictly (package eddsa).
//
// Errors: [ErrEmptyCounterparty] if the taker's signature is missing, or the taker
// is the zero address; [ErrMismatch] if another transaction was submitted, or the
// taker is not a signer of raw; [ErrBadSignature]; [ErrShape] if raw is not a
// transaction that the desk signs for this claim.
func Countersign(claim market.ClaimID, raw []byte, taker solana.Address, s Submission) (Countersigned, error) {
	d, err := countersign(claim, raw, taker, s)
	if err != nil {
		return Countersigned{}, fmt.Errorf("claim %s: %w", binding.Memo(claim), err)
	}
	return Countersigned{d}, nil
}

func countersign(claim market.ClaimID, raw []byte, taker solana.Address, s Submission) (*draft, error) {
	if taker == (solana.Address{}) {
		return nil, fmt.Errorf("%w: the taker is the zero address", ErrEmptyCounterparty)
	}
	d, slot, err := unsigned(claim, raw, taker)
	if err != nil {
		return nil, err
	}
	signature, err := s.of(d.raw, slot)
	switch {
	case err != nil:
		return nil, err
	case signature == (solana.Signature{}):
		return nil, fmt.Errorf("%w: the signature of %s is missing", ErrEmptyCounterparty, solana.Base58(taker))
	case !eddsa.Verify(taker, d.message(), signature):
		return nil, fmt.Errorf("%w: it must be that of %s over message %s", ErrBadSignature, solana.Base58(taker), d.hash)
	}
	copy(slotOf(d.raw, slot), signature[:])
	return d, nil
}

// unsigned decodes the stored bytes of an atomic transaction, and returns the taker's
// slot.
func unsigned(claim market.ClaimID, raw []byte, taker solana.Address) (*draft, int, error) {
	t, err := tx.Decode(raw)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrShape, err)
	}
	slot, ok := t.Message.Slot(taker)
	switch {
	case len(t.Signatures) != atomicSigners:
		return nil, 0, fmt.Errorf("%w: %d signers, want %d", ErrShape, len(t.Signatures), atomicSigners)
	case !ok:
		return nil, 0, fmt.Errorf("%w: %s is not one of its signers", ErrMismatch, solana.Base58(taker))
	}
	for i, signature := range t.Signatures {
		if signature != (solana.Signature{}) {
			return nil, 0, fmt.Errorf("%w: the stored transaction has a signature in slot %d already", ErrShape, i)
		}
	}
	desk := atomicSigners - 1 - slot
	shape, err := CheckAtomic(t.Signed, t.Message.Keys[desk])
	if err != nil {
		return nil, 0, err
	}
	if shape.Claim != claim {
		return nil, 0, fmt.Errorf("%w: it is for claim %s", ErrShape, binding.Memo(shape.Claim))
	}
	return &draft{Summary: shape, slot: desk, raw: bytes.Clone(raw), hash: tx.MessageHash(t.Signed)}, slot, nil
}

// of returns the submitted signature, which may be zero. A submitted transaction may
// differ from the stored bytes only in the taker's slot.
func (s *Submission) of(raw []byte, slot int) (solana.Signature, error) {
	switch {
	case len(s.Transaction) == 0:
		return s.Signature, nil
	case s.Signature != (solana.Signature{}):
		return solana.Signature{}, fmt.Errorf("%w: both a transaction and a signature were submitted: submit one of them", ErrMismatch)
	case len(s.Transaction) != len(raw):
		return solana.Signature{}, fmt.Errorf("%w: it has %d bytes, want %d", ErrMismatch, len(s.Transaction), len(raw))
	}
	start := 1 + slot*signatureSize
	for i := range raw {
		if raw[i] != s.Transaction[i] && (i < start || i >= start+signatureSize) {
			return solana.Signature{}, fmt.Errorf("%w: byte %d differs from the stored transaction", ErrMismatch, i)
		}
	}
	return solana.Signature(slotOf(s.Transaction, slot)), nil
}
