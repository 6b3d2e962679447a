package build

import (
	"fmt"

	sdk "github.com/gagliardetto/solana-go"

	"blockdesk/internal/solana"
)

// MaxRefunds bounds the payments that one transaction pays back: so many fit into the
// largest transaction, on either rail.
const MaxRefunds = 5

// Refund pays one payment back.
type Refund struct {
	// Leg is the amount and the wallet that gets it. No account is created: its rent
	// would be the desk's gift to anyone who pays from a wallet without one.
	Leg Leg
	// Memo names the payment, at most MaxRefundMemo bytes; Reference is a key to find
	// the refund by, not zero.
	Memo      string
	Reference solana.Address
}

// MaxRefundMemo bounds the memo of a refund, which contains a signature.
const MaxRefundMemo = 96

// Refunds pays payments back from the desk's wallet, all of them or none. Only the desk
// signs, and pays the fee.
type Refunds struct {
	// Blockhash is a recent one, which limits the transaction's life.
	Blockhash solana.Hash
	Budget    Budget
	Desk      solana.Address
	// Items are 1 to MaxRefunds, all on one rail.
	Items []Refund
}

// Build builds the transaction: for each item a transfer and then its memo. Errors: as
// [Payment.Build].
func (r *Refunds) Build(accounts *solana.AccountCache) (*Unsigned, error) {
	if len(r.Items) == 0 || len(r.Items) > MaxRefunds || r.Blockhash == (solana.Hash{}) || r.Desk == (solana.Address{}) {
		return nil, fmt.Errorf("%w: %d refunds of desk %s", ErrTerms, len(r.Items), solana.Base58(r.Desk))
	}
	if _, err := r.Budget.PriorityLamports(); err != nil {
		return nil, err
	}
	all := r.Budget.instructions()
	for i := range r.Items {
		x := &r.Items[i]
		list, err := r.pay(x, accounts)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return compile(r.Desk, r.Blockhash, all)
}

func (r *Refunds) pay(x *Refund, accounts *solana.AccountCache) ([]sdk.Instruction, error) {
	switch {
	case x.Reference == (solana.Address{}) || x.Reference == r.Desk || x.Reference == x.Leg.To:
		return nil, fmt.Errorf("%w: the reference %s of a refund must be set and no party", ErrTerms, solana.Base58(x.Reference))
	case x.Leg.Rail != r.Items[0].Leg.Rail || x.Leg.Mint.Address() != r.Items[0].Leg.Mint.Address():
		return nil, fmt.Errorf("%w: the refunds are not all on one rail", ErrTerms)
	}
	if err := checkText(x.Memo, MaxRefundMemo); err != nil {
		return nil, err
	}
	list, err := x.Leg.instructions(r.Desk, []solana.Address{x.Reference}, accounts)
	if err != nil {
		return nil, err
	}
	return append(list, memoOf(x.Memo)), nil
}
