package payment

import (
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// Reason says why a payment is refused: the reason of PAYMENT_MISMATCH
// (docs/specification.md C.3). The words are on the wire: frozen.
type Reason string

const (
	// FailedOnChain: the transaction is in a block and failed.
	FailedOnChain Reason = "failed_on_chain"
	// MissingReference: the claim's reference and its memo are both missing.
	MissingReference Reason = "missing_reference"
	// AmbiguousReference: the payment also has another claim's memo, but a signature pays
	// only one claim. Our choice.
	AmbiguousReference Reason = "ambiguous_reference"
	// TooOld: the payment is in a block from before the claim, or not provably after it.
	TooOld Reason = "too_old"
	// WrongMint: the treasury was paid in something else.
	WrongMint Reason = "wrong_mint"
	// WrongDestination: the treasury's account was not credited.
	WrongDestination Reason = "wrong_destination"
	// AmountShort: the treasury was paid less than the claim's amount.
	AmountShort Reason = "amount_short"
	// WrongPayer: the claim's wallet did not pay it.
	WrongPayer Reason = "wrong_payer"
)

// Terms are a claim's terms of payment.
type Terms struct {
	// Payer is the claim's wallet, and Amount what it must pay, in atoms.
	Payer  solana.Address
	Amount market.Amount
	// Reference and Memo bind a payment to the claim: it must have one of them. A zero
	// or empty one matches nothing.
	Reference solana.Address
	Memo      string
	// NotBefore is the time of the claim in Unix seconds, less a tolerance for clocks;
	// NotBeforeSlot is the slot at that time. Zero means no bound.
	NotBefore     int64
	NotBeforeSlot uint64
}

// Verdict is the decision about one payment.
type Verdict struct {
	// Reason is empty when the payment is accepted.
	Reason Reason
	// Surplus is the amount paid beyond that of an accepted payment.
	Surplus market.Amount
}

// Decide compares the facts of a payment with a claim's terms. It does not know whether
// the signature was used before or the claim is still open.
func Decide(f *Facts, t *Terms) Verdict {
	if reason := refuse(f, t); reason != "" {
		return Verdict{Reason: reason}
	}
	return Verdict{Surplus: f.Credited - t.Amount}
}

func refuse(f *Facts, t *Terms) Reason {
	switch {
	case f.Failed:
		return FailedOnChain
	case !namesClaim(f, t):
		return MissingReference
	case namesOther(f, t):
		return AmbiguousReference
	case tooOld(f, t):
		return TooOld
	case f.Credited == 0 && f.Gained == 0 && f.GainedOther:
		return WrongMint
	case f.Credited == 0:
		return WrongDestination
	case f.Credited < t.Amount:
		return AmountShort
	case t.Amount == 0 || f.Lost(t.Payer) < t.Amount:
		return WrongPayer
	}
	return ""
}

// namesClaim reports whether the payment has the claim's reference or memo.
func namesClaim(f *Facts, t *Terms) bool {
	if t.Reference != (solana.Address{}) && f.Has(t.Reference) {
		return true
	}
	return t.Memo != "" && slices.ContainsFunc(f.Memos, func(m Memo) bool { return m.Text == t.Memo })
}

// namesOther reports whether the payment has another claim's memo.
func namesOther(f *Facts, t *Terms) bool {
	return slices.ContainsFunc(f.Memos, func(m Memo) bool {
		_, claim := market.ParseClaimID([]byte(m.Text))
		return claim && m.Text != t.Memo
	})
}

// tooOld checks each bound that is set and can be tested; at least one must have been
// tested.
func tooOld(f *Facts, t *Terms) bool {
	if t.NotBefore == 0 && t.NotBeforeSlot == 0 {
		return false
	}
	byTime, bySlot := t.NotBefore != 0 && f.BlockTime != 0, t.NotBeforeSlot != 0
	if byTime && f.BlockTime < t.NotBefore || bySlot && f.Slot < t.NotBeforeSlot {
		return true
	}
	return !byTime && !bySlot
}
