package cosign

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// RefundSummary describes everything that a message of refunds does.
type RefundSummary struct {
	// Desk pays all of them, and the fee.
	Desk solana.Address
	// Mint is what is paid back, and Program its token program; both are zero for SOL.
	Mint, Program solana.Address
	// Items are 1 to build.MaxRefunds, each of another payment.
	Items []RefundItem
}

// RefundItem is the refund of one payment.
type RefundItem struct {
	// Payment is the signature of the payment that is paid back.
	Payment solana.Signature
	// To gets the refund: a wallet for SOL, a token account otherwise.
	To     solana.Address
	Amount market.Amount
}

// Total returns the sum of all items; ok is false if it does not fit.
func (s *RefundSummary) Total() (sum market.Amount, ok bool) {
	for i := range s.Items {
		if sum+s.Items[i].Amount < sum {
			return 0, false
		}
		sum += s.Items[i].Amount
	}
	return sum, true
}

// CheckRefund decodes the message of refunds, and refuses any other. It has these
// instructions, in this order, and nothing else:
//
//	compute limit, compute price
//	for each payment: the desk pays lamports, or tokens of one mint from its associated
//	                  account; memo: the payment
//
// Only the desk signs. Each transfer names its payment's reference. No account is created,
// and none has a privilege that no instruction needs. Errors: [ErrShape].
func CheckRefund(message []byte, desk solana.Address) (RefundSummary, error) {
	m, err := decode(message, desk, deskSignsAlone)
	if err != nil {
		return RefundSummary{}, err
	}
	s := RefundSummary{Desk: desk}
	r := reader{m: m, summary: &Summary{Kind: Refund, Desk: desk}}
	r.budget()
	for first := true; first || r.err == nil && r.next < len(m.Instructions); first = false {
		r.refund(&s)
	}
	if err := r.check(); err != nil {
		return RefundSummary{}, err
	}
	return s, nil
}

// refund reads the refund of one payment.
func (r *reader) refund(s *RefundSummary) {
	var t transfer
	if program, _ := r.program(); program == solana.SystemProgram {
		t = r.lamports()
	} else {
		t = r.tokens(true)
		r.associated(t.from, s.Desk, &t)
	}
	if len(s.Items) == 0 {
		s.Mint, s.Program = t.mint, t.program
	}
	r.require(t.mint == s.Mint && t.program == s.Program, "it pays back more than one asset")
	r.require(t.owner == s.Desk && t.to != t.from && t.to != s.Desk, "the desk's wallet is not the one that pays")
	r.require(t.amount > 0, "nothing is paid back")
	payment, ok := binding.PaymentOfMemo(r.text())
	r.require(ok, "the memo names no payment")
	r.require(r.reference == binding.RefundReference(payment), "the reference is not that of the payment")
	r.require(len(s.Items) < build.MaxRefunds, "it has too many refunds")
	r.require(!slices.ContainsFunc(s.Items, func(x RefundItem) bool { return x.Payment == payment }), "a payment is paid back twice")
	if r.err == nil {
		s.Items = append(s.Items, RefundItem{payment, t.to, t.amount})
	}
}

// RefundRefused is a refusal of the desk to pay one payment back. Nothing is signed after
// it; refunds of payments before it in the message have begun.
type RefundRefused struct {
	Payment solana.Signature
	Outcome rfq.Outcome
}

// Error contains the reason's machine word.
func (r *RefundRefused) Error() string {
	return fmt.Sprintf("cosign: refund of %s: refused: %s", r.Payment, r.Outcome.Reason)
}

// AuthorizedRefund is a transaction of refunds that the desk may sign: for each of its
// payments the desk's record that exactly this message pays it back is durable, with the
// payer and the amount that are due. Only [AuthorizeRefund] makes one. The zero value is
// useless.
type AuthorizedRefund struct{ refund *draft }

// Hash returns the hash of the message, zero of the zero value.
func (a AuthorizedRefund) Hash() solana.Hash { return a.refund.value().hash }

// AuthorizeRefund asks the desk to pay payments back: a BeginRefund for each of them, by an
// operator, with the message's hash as proof. raw are the bytes of the unsigned
// transaction; they are copied. The message is compared with the desk's record:
// the payer of the payment, the amount that is due, the asset. It blocks as
// long as a.Do.
//
// Errors: *[RefundRefused]; [ErrRefundTerms] if the message pays something else than the
// desk has recorded; [ErrShape]; [ErrOutcome]; errors of a, wrapped. After an error some of the
// refunds may have begun: either the same call succeeds later, or each of them expires.
func AuthorizeRefund(a Authorizer, operator market.OperatorID, raw []byte, usdc solana.Address) (AuthorizedRefund, error) {
	d, err := unsignedRefund(raw)
	if err != nil {
		return AuthorizedRefund{}, err
	}
	for i := range d.refund.Items {
		x := &d.refund.Items[i]
		request := &rfq.BeginRefund{Header: rfq.Header{Operator: operator}, Signature: x.Payment, Proof: d.hash}
		result, err := a.Do(request)
		switch {
		case err != nil:
			return AuthorizedRefund{}, fmt.Errorf("refund of %s: message %s: %w", x.Payment, d.hash, err)
		case result.Kind != request.Kind():
			return AuthorizedRefund{}, fmt.Errorf("refund of %s: %w: request kind %d, want %d", x.Payment, ErrOutcome, result.Kind, request.Kind())
		case result.Reason != 0:
			return AuthorizedRefund{}, &RefundRefused{x.Payment, result.Outcome}
		}
		if err := d.refund.checkDue(x, result, d.hash, usdc); err != nil {
			return AuthorizedRefund{}, err
		}
	}
	return AuthorizedRefund{d}, nil
}

// checkDue compares an item with the desk's record of its payment.
func (s *RefundSummary) checkDue(x *RefundItem, result *desk.Result, proof solana.Hash, usdc solana.Address) error {
	p := result.Payment
	if p == nil || p.Signature != x.Payment || p.State != rfq.PaymentRefunding || p.Proof != proof {
		return fmt.Errorf("refund of %s: %w: the desk has no such refund on record", x.Payment, ErrOutcome)
	}
	to, mint := p.Payer, solana.Address{}
	if p.Rail == market.RailUSDC {
		mint = usdc
		var err error
		if to, err = solana.TokenAccount(p.Payer, s.Mint, s.Program); err != nil {
			return fmt.Errorf("refund of %s: %w: %w", x.Payment, ErrRefundTerms, err)
		}
	}
	if p.Payer == (solana.Address{}) || s.Mint != mint || x.To != to || uint64(x.Amount) != p.RefundAtoms() {
		return fmt.Errorf("refund of %s: %w: it pays %d atoms to %s", x.Payment, ErrRefundTerms, x.Amount, solana.Base58(x.To))
	}
	return nil
}

// unsignedRefund decodes the unsigned transaction of refunds.
func unsignedRefund(raw []byte) (*draft, error) {
	t, err := tx.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrShape, err)
	}
	shape, err := CheckRefund(t.Signed, t.Message.FeePayer())
	if err != nil {
		return nil, err
	}
	if t.Signatures[0] != (solana.Signature{}) {
		return nil, fmt.Errorf("%w: it is signed already", ErrShape)
	}
	return refundDraft(&shape, bytes.Clone(raw), tx.MessageHash(t.Signed)), nil
}

func refundDraft(s *RefundSummary, raw []byte, hash solana.Hash) *draft {
	return &draft{Summary: Summary{Kind: Refund, Desk: s.Desk}, refund: s, raw: raw, hash: hash}
}

// SignedRefund is a transaction of refunds with the desk's signature. Only
// [AuthorizedRefund.Sign] makes one. The zero value is useless.
type SignedRefund struct {
	refunded  *draft
	raw       []byte
	signature solana.Signature
}

// IsZero reports whether nothing is signed.
func (s SignedRefund) IsZero() bool { return s.refunded == nil }

// Hash returns the hash of the message, zero of the zero value.
func (s SignedRefund) Hash() solana.Hash { return s.refunded.value().hash }

// Signature returns the desk's signature, which names the transaction on the chain.
func (s SignedRefund) Signature() solana.Signature { return s.signature }

// Bytes returns the whole transaction as it is sent. Read-only.
func (s SignedRefund) Bytes() []byte { return s.raw }

// Sign signs the transaction with s. Repeated, it returns the same signature. It blocks as
// long as s does. Errors: as [Authorized.Sign].
func (a AuthorizedRefund) Sign(ctx context.Context, s Signer) (SignedRefund, error) {
	d := a.refund
	if d == nil {
		return SignedRefund{}, fmt.Errorf("%w of AuthorizedRefund was used", ErrZero)
	}
	raw, signature, err := d.sign(ctx, s)
	if err != nil {
		return SignedRefund{}, fmt.Errorf("refund %s: %w", d.hash, err)
	}
	return SignedRefund{d, raw, signature}, nil
}
