package desk

import (
	"errors"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// ErrNotUnmatched means that no unmatched payment has this signature.
var ErrNotUnmatched = errors.New("desk: no unmatched payment has this signature")

// ErrOutcomeKnown means that no transaction of the claim waits for an operator's decision.
var ErrOutcomeKnown = errors.New("desk: no transaction of the claim has an unknown outcome")

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
}

// MoneyCounts are the lengths of the lists.
type MoneyCounts struct{ RefundsDue, DeliveriesFailing, Unmatched, OutcomesUnknown int }
