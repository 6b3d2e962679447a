package mirror

import (
	"errors"
	"fmt"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/market"
)

// Errors of decoding a transaction, wrapped with its signature.
var (
	// ErrVaults means two vaults that cannot belong to a pool.
	ErrVaults = errors.New("mirror: the pair of vaults is not valid")
	// ErrOtherMint means a vault with another mint than configured.
	ErrOtherMint = errors.New("mirror: a vault holds another mint")
	// ErrNoBalance means that a vault existed and the answer lacks its balance. Assuming
	// zero would invent a swap.
	ErrNoBalance = errors.New("mirror: the node reports no balance of a vault")
	// ErrUnbalanced means that the instructions do not add up to the vaults' balance
	// changes, and that several calls could explain the difference.
	ErrUnbalanced = errors.New("mirror: transfers do not add up to the balances")
)

// Vault is a token account of a pool with its mint.
type Vault struct{ Account, Mint solana.Address }

// VaultPair are the vaults of a pool. Whatever the pool's program is, its swaps are the
// movements of the two.
type VaultPair struct{ Base, Quote Vault }

// Validate checks the pair. Errors: [ErrVaults].
func (p *VaultPair) Validate() error {
	zero := solana.Address{}
	switch {
	case p.Base.Account == zero || p.Quote.Account == zero || p.Base.Mint == zero || p.Quote.Mint == zero:
		return fmt.Errorf("%w: an account or a mint is missing", ErrVaults)
	case p.Base.Account == p.Quote.Account:
		return fmt.Errorf("%w: %s is both vaults", ErrVaults, solana.Base58(p.Base.Account))
	case p.Base.Mint == p.Quote.Mint:
		return fmt.Errorf("%w: both have the mint %s", ErrVaults, solana.Base58(p.Base.Mint))
	}
	return nil
}

// MovementKind is the kind of a movement of the vaults.
type MovementKind uint8

const (
	// Swap: one vault gained and the other lost.
	Swap MovementKind = 1
	// Deposit and Withdrawal of liquidity: both vaults gained, or both lost.
	Deposit    MovementKind = 2
	Withdrawal MovementKind = 3
	// OneSided: only one vault moved, by a gift or a fee collection for example.
	OneSided MovementKind = 4
)

// String returns the name for logs and metrics.
func (k MovementKind) String() string {
	switch k {
	case Swap:
		return "swap"
	case Deposit:
		return "deposit"
	case Withdrawal:
		return "withdrawal"
	case OneSided:
		return "one_sided"
	default:
		return "movement?"
	}
}

// MovementKey identifies a movement on every node.
type MovementKey struct {
	Signature solana.Signature
	// Instruction is the index of the message's instruction. Inner is 0 if that instruction
	// moved the vaults itself, else the number of the inner instruction, from 1.
	Instruction, Inner uint16
}

// Delta is a vault's gain, or its loss if Out. The zero value is no change.
type Delta struct {
	Atoms market.Amount
	Out   bool
}

// Movement is the effect of one call on the vaults.
type Movement struct {
	Key  MovementKey
	Kind MovementKind
	// Calls is 1, or the number of calls in one direction that it joins because a
	// transfer fee hides their parts. Key is the first call's.
	Calls       int
	Base, Quote Delta
}

// Side returns the taker's side in the base asset; 0 unless it is a swap.
func (m *Movement) Side() market.Side {
	switch {
	case m.Kind != Swap:
		return 0
	case m.Base.Out:
		return market.Buy
	default:
		return market.Sell
	}
}

// kindOf returns the kind; 0 if nothing moved.
func kindOf(base, quote Delta) MovementKind {
	switch {
	case base.Atoms == 0 && quote.Atoms == 0:
		return 0
	case base.Atoms == 0 || quote.Atoms == 0:
		return OneSided
	case base.Out != quote.Out:
		return Swap
	case base.Out:
		return Withdrawal
	default:
		return Deposit
	}
}

// Balance is a vault's balance before and after a transaction.
type Balance struct {
	// Named: the transaction names the vault; otherwise the other fields are zero.
	Named bool
	// Created: the vault did not exist before.
	Created       bool
	Before, After market.Amount
}

// Trace is the effect of a transaction on a pool's vaults.
type Trace struct {
	Signature solana.Signature
	Slot      uint64
	// Time is the block's in seconds of Unix time, 0 if unknown.
	Time int64
	// Payer paid the fee: the best estimate of the trader that does not depend on the
	// pool's program.
	Payer       solana.Address
	Base, Quote Balance
	// Movements are in the order of execution. Together they are exactly the balance
	// changes.
	Movements []Movement
}

// balance returns a vault's balance and its index among the transaction's keys, -1 if it
// is not there.
func (v *Vault) balance(c *ledger.Confirmed) (b Balance, key int, err error) {
	key = -1
	for i := range c.Keys {
		if c.Keys[i] == v.Account {
			key = i
		}
	}
	if key < 0 {
		return b, key, nil
	}
	before, hasBefore, err1 := v.held(c.TokensBefore, key)
	after, hasAfter, err2 := v.held(c.TokensAfter, key)
	if err := errors.Join(err1, err2); err != nil {
		return b, key, err
	}
	// An account without lamports does not exist.
	if !hasBefore && c.Before[key] != 0 || !hasAfter && c.After[key] != 0 {
		return b, key, fmt.Errorf("%w: %s", ErrNoBalance, solana.Base58(v.Account))
	}
	return Balance{Named: true, Created: !hasBefore && hasAfter, Before: before, After: after}, key, nil
}

func (v *Vault) held(list []ledger.TokenBalance, key int) (market.Amount, bool, error) {
	for i := range list {
		if list[i].Account != key {
			continue
		}
		if list[i].Mint != v.Mint {
			return 0, false, fmt.Errorf("%w: %s holds %s", ErrOtherMint, solana.Base58(v.Account), solana.Base58(list[i].Mint))
		}
		return list[i].Amount, true, nil
	}
	return 0, false, nil
}
