package httpgw

import (
	"context"

	"blockdesk/desk"
	"blockdesk/market"
)

// OperatorMoney is the money that needs an operator: it serves /desk/money on the
// admin address. Any goroutine may call it.
type OperatorMoney interface {
	// Money lists one kind, after a cursor, in the order of the items' cursors; at
	// most limit items.
	Money(kind desk.MoneyKind, after desk.MoneyCursor, limit int) ([]desk.MoneyItem, error)
	// MoneyCounts counts each kind. It must not block.
	MoneyCounts() desk.MoneyCounts
	// Refunded records that a payment was paid back by the transaction with the
	// signature refund. Result.Payment is the payment.
	Refunded(by desk.OperatorAct, payment, refund [64]byte) (*desk.Result, error)
	// Abandon gives up a claim that is paid for and can never be delivered: a refund
	// of its payment is due. Result.Claim is the claim.
	Abandon(by desk.OperatorAct, claim market.ClaimID) (*desk.Result, error)
	// Release ends a transaction that waits on the chain for ever, after an operator
	// has seen that it is not there: an atomic claim is released, the delivery of a
	// paid claim expires. Result.Claim is the claim. Error: desk.ErrNotDoubtful.
	Release(ctx context.Context, by desk.OperatorAct, claim market.ClaimID) (*desk.Result, error)
	// ResolveStray records what an operator has done about an unmatched payment; the
	// first note stands. Error: desk.ErrUnknownStray.
	ResolveStray(by desk.OperatorAct, payment [64]byte, note string) error
}
