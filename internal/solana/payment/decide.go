package payment

import (
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// Reason says why a payment is not acceptable: the reason of PAYMENT_MISMATCH
// (contract C). The words are on the wire: frozen.
type Reason string

const (
	// FailedOnChain: the transaction is in a block and failed.
	FailedOnChain Reason = "failed_on_chain"
	// UnsupportedExtension: the mint could take back or change what it moved.
	UnsupportedExtension Reason = "unsupported_mint_extension"
	// MissingReference: neither the claim's reference nor its memo is there.
	MissingReference Reason = "missing_reference"
	// AmbiguousReference: another claim's memo is there too, and a signature
	// serves one claim. Our choice.
	AmbiguousReference Reason = "ambiguous_reference"
	// TooOld: in a block before the claim was made, or not provably after.
	TooOld Reason = "too_old"
	// WrongMint: the treasury was paid in something else.
	WrongMint Reason = "wrong_mint"
	// WrongDestination: the treasury's account was not paid.
	WrongDestination Reason = "wrong_destination"
	// AmountShort: it was paid less than the claim's amount.
	AmountShort Reason = "amount_short"
	// WrongPayer: not the claim's wallet paid it.
	WrongPayer Reason = "wrong_payer"
)

// Terms are what a claim's payment must meet.
type Terms struct {
	// Payer is the claim's wallet, and Amount what it owes, in atoms.
	Payer  solana.Address
	Amount market.Amount
	// Reference and Memo bind a payment to the claim: one of them must be
	// there. Zero and empty match nothing.
	Reference solana.Address
	Memo      string
	// NotBefore is when the claim was made, in seconds of Unix time, less the
	// clocks' tolerance; NotBeforeSlot the slot then. Zero sets no bound.
	NotBefore     int64
	NotBeforeSlot uint64
	// MintRefused: the rail's mint has an extension that is not allowed.
	MintRefused bool
}

// Verdict is the decision over one payment.
type Verdict struct {
	// Reason is empty when the payment is accepted.
	Reason Reason
	// Surplus is what was paid beyond the amount of an accepted payment.
	Surplus market.Amount
}

// Accepted reports whether the payment settles the claim.
func (v Verdict) Accepted() bool { return v.Reason == "" }

// Decide holds the facts of a payment against a claim's terms. Whether the
// signature has served already, and whether the claim still lives, is not known
// here.
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
	case t.MintRefused:
		return UnsupportedExtension
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

// bound reports whether the payment names the claim.
func namesClaim(f *Facts, t *Terms) bool {
	if t.Reference != (solana.Address{}) && f.Has(t.Reference) {
		return true
	}
	return t.Memo != "" && slices.ContainsFunc(f.Memos, func(m Memo) bool { return m.Text == t.Memo })
}

// namesOther reports whether it names another claim.
func namesOther(f *Facts, t *Terms) bool {
	return slices.ContainsFunc(f.Memos, func(m Memo) bool {
		_, claim := market.ParseClaimID([]byte(m.Text))
		return claim && m.Text != t.Memo
	})
}

// tooOld: each bound that is set and can be tested must hold, and one must have
// been tested.
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
