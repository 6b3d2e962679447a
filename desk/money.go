package desk

import (
	"errors"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// ErrNotUnmatched means that no unmatched payment has this signature.
var ErrNotUnmatched = errors.New("desk: no unmatched payment has this signature")

// ErrOutcomeKnown means that no transaction of the claim waits for an operator's decision.
var ErrOutcomeKnown = errors.New("desk: the claim has no transaction with an unknown outcome")

// ErrNoRefundDue means that no refund is due of this payment.
var ErrNoRefundDue = errors.New("desk: no refund of this payment is due")

// RefundSelection selects payments whose refund is due. A zero field selects all.
type RefundSelection struct {
	Payment [64]byte
	Claim   market.ClaimID
	Rail    market.Rail
	// Under selects refunds worth less than this; SOL counts at the desk's price.
	Under market.USD
	// DryRun orders nothing.
	DryRun bool
}

// RefundsOrdered says what was ordered, by rail: the number of payments, and the atoms that
// go back. Before counts selected payments that were ordered before.
type RefundsOrdered struct {
	Count, Atoms [market.RailCount]uint64
	Before       int
}

// OperatorRequest is an operator and the idempotency key of the request.
type OperatorRequest struct {
	Operator market.OperatorID
	Name     string             // printable ASCII
	Key      rfq.IdempotencyKey // zero = none
}

// MoneyKind is the reason why an amount needs an operator.
type MoneyKind uint8

const (
	// MoneyRefundDue: a payment that cannot be served; a refund is due.
	MoneyRefundDue MoneyKind = 1
	// MoneyDeliveryFailing: a paid claim whose delivery fails.
	MoneyDeliveryFailing MoneyKind = 2
	// MoneyUnmatched: a payment that the desk cannot match to a claim.
	MoneyUnmatched MoneyKind = 3
	// MoneyOutcomeUnknown: the claim's signed transaction can no longer land, and the
	// nodes cannot tell whether it has landed.
	MoneyOutcomeUnknown MoneyKind = 4
	// MoneyRefunding: a payment whose refund is signed, or about to be, and not final.
	MoneyRefunding MoneyKind = 5
	// MoneyRefunded: a payment that the desk has paid back.
	MoneyRefunded MoneyKind = 6
)

// MoneyCursor is a position in a list: the last item that the caller has. Failing
// deliveries and unknown outcomes are ordered by claim, the others by signature. Zero is the
// beginning.
type MoneyCursor struct {
	Signature [64]byte
	Claim     market.ClaimID
}

// MoneyItem is one amount. A field that does not apply is zero.
type MoneyItem struct {
	Signature [64]byte       // of the payment
	Claim     market.ClaimID // the claim that the payment is for, or names
	Rail      market.Rail
	Amount    uint64 // atoms of the rail's asset
	Payer     market.Address
	Slot      uint64
	At        int64  // Unix nanoseconds: when the desk booked it, or first saw it
	Reason    string // machine word: why it cannot be served, matched or delivered
	// Attempts is the number of deliveries signed for the claim. Delivery is the
	// signature of the newest one, or of the transaction with the unknown outcome.
	Attempts int
	Delivery [64]byte
	// Refund is the signature of the transaction that pays the payment back. OrderedBy is the
	// operator of its order, and Problem the machine word for why it waits.
	Refund             [64]byte
	OrderedBy, Problem string
}

// SignerLimit is how much of a ceiling of the signer's process is used, in atoms: of a
// token, of refunds, or of fees.
type SignerLimit struct {
	Name                       string
	Hour, MaxHour, Day, MaxDay uint64
}

// MoneyCounts are the lengths of the lists.
type MoneyCounts struct {
	RefundsDue, DeliveriesFailing, Unmatched, OutcomesUnknown int
	// Refunding are not final yet; Ordered are to be paid back and still due.
	Refunding, Ordered int
	// Dropped are unmatched payments that made room for larger ones at the limit of the list,
	// ever. Dust and Foreign are counted since the start and never listed: amounts below a
	// rail's limit, and tokens of mints that are not ours.
	Dropped, Dust, Foreign uint64
}
