package httpgw

import (
	"context"
	"errors"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// OperatorMoney is the money that needs a person: what is behind /desk/money on
// the admin address. Any goroutine may call it.
type OperatorMoney interface {
	// Money lists one kind, from behind a cursor, in the order of the items'
	// cursors; at most limit items.
	Money(ctx context.Context, kind MoneyKind, after MoneyCursor, limit int) ([]MoneyItem, error)
	// Counts tells how many there are of each kind. It must not block.
	Counts() MoneyCounts
	// Refunded notes that a payment was paid back by the transaction with the
	// signature refund. Result.Payment is the payment.
	Refunded(ctx context.Context, by OperatorAct, payment, refund [64]byte) (*desk.Result, error)
	// Abandon gives up a claim that is paid for and can never be delivered: its
	// payment is due for refund. Result.Claim is the claim.
	Abandon(ctx context.Context, by OperatorAct, claim market.ClaimID) (*desk.Result, error)
	// Release ends what waits on the chain for ever, on the word of an operator who
	// has seen that the claim's transaction is not there: an atomic claim is
	// released, the delivery of a paid one lapses. Result.Claim is the claim.
	// ErrNotDoubtful where nothing of it is in doubt.
	Release(ctx context.Context, by OperatorAct, claim market.ClaimID) (*desk.Result, error)
	// Resolve notes what a person has done about a stray; the first note stands.
	// ErrUnknownStray where there is none.
	Resolve(ctx context.Context, by OperatorAct, payment [64]byte, note string) error
}

// ErrUnknownStray means that no stray has this signature.
var ErrUnknownStray = errors.New("httpgw: unknown stray")

// ErrNotDoubtful means that the claim has no transaction which waits for an
// operator's word.
var ErrNotDoubtful = errors.New("httpgw: nothing of the claim is in doubt")

// OperatorAct says who does something, and under which Idempotency-Key.
type OperatorAct struct {
	Operator market.OperatorID
	Name     string
	Key      rfq.Key // zero = none
}

// MoneyKind says why money needs a person.
type MoneyKind uint8

const (
	MoneyRefund MoneyKind = 1 // arrived, and cannot be served: it is owed back
	MoneyStuck  MoneyKind = 2 // paid for, and the delivery does not get through
	MoneyStray  MoneyKind = 3 // arrived, and the desk cannot book it at all
	// MoneyDoubtful: its transaction was signed, can land no more, and the nodes
	// cannot tell whether it has landed.
	MoneyDoubtful MoneyKind = 4
)

// MoneyCursor is a place in a list: the last item that was seen. What is stuck or
// doubtful goes by its claim, the rest by its signature, as bytes. Zero is the
// beginning.
type MoneyCursor struct {
	Signature [64]byte
	Claim     market.ClaimID
}

// MoneyItem is one sum. What it does not have is zero.
type MoneyItem struct {
	Signature [64]byte       // of the payment
	Claim     market.ClaimID // that it is for, or names
	Rail      market.Rail
	Amount    uint64 // atoms of the rail's asset
	Payer     market.Address
	Slot      uint64
	At        int64 // Unix nanoseconds: when the desk booked it, or first saw it
	// Reason is a machine word: why it cannot be served, booked or delivered.
	Reason string
	// Attempts are the deliveries that were signed for a stuck claim, Delivery the
	// signature of the newest, or of the transaction in doubt.
	Attempts int
	Delivery [64]byte
}

// MoneyCounts are the lengths of the lists.
type MoneyCounts struct{ Refunds, Stuck, Strays, Doubtful int }
