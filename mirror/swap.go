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
	// ErrVaults: two vaults that cannot be a pool's.
	ErrVaults = errors.New("mirror: not a pair of vaults")
	// ErrOtherMint: a vault holds another mint than it should.
	ErrOtherMint = errors.New("mirror: a vault of another mint")
	// ErrNoBalance: a vault was there, and the answer does not tell what it held. To
	// take that for nothing would invent a swap.
	ErrNoBalance = errors.New("mirror: a vault's balance is not told")
	// ErrUnbalanced: the vaults' balances are not what the instructions add up to,
	// and nothing tells which of several calls the difference belongs to.
	ErrUnbalanced = errors.New("mirror: transfers do not add up to the balances")
)

// Vault is a token account of a pool, and the mint that it holds.
type Vault struct{ Account, Mint solana.Address }

// VaultPair is what a pool trades out of. Whatever program the pool is of, what
// moves these two is all that its swaps are.
type VaultPair struct{ Base, Quote Vault }

// Validate checks the pair. Errors: [ErrVaults].
func (p *VaultPair) Validate() error {
	zero := solana.Address{}
	switch {
	case p.Base.Account == zero || p.Quote.Account == zero || p.Base.Mint == zero || p.Quote.Mint == zero:
		return fmt.Errorf("%w: an account or a mint is missing", ErrVaults)
	case p.Base.Account == p.Quote.Account:
		return fmt.Errorf("%w: %s twice", ErrVaults, solana.Text(p.Base.Account))
	case p.Base.Mint == p.Quote.Mint:
		return fmt.Errorf("%w: both of mint %s", ErrVaults, solana.Text(p.Base.Mint))
	}
	return nil
}

// MovementKind says what a movement of the vaults was.
type MovementKind uint8

const (
	// Swap: one vault gained and the other lost.
	Swap MovementKind = 1
	// Deposit and Withdrawal of liquidity: both vaults gained, or both lost.
	Deposit    MovementKind = 2
	Withdrawal MovementKind = 3
	// OneSided: one vault alone moved, as by a gift or a fee's collection.
	OneSided MovementKind = 4
)

// String returns the word that logs and metrics use.
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

// MovementKey names a movement for ever, on whatever node it is read.
type MovementKey struct {
	Signature solana.Signature
	// Instruction is the number of the message's instruction that led to it.
	// Inner is 0 where that is the call that moved the vaults; else the call's
	// place in the list of what the instruction called, from 1.
	Instruction, Inner uint16
}

// Delta is what a vault gained, or lost if Out. The zero value is no change.
type Delta struct {
	Atoms market.Amount
	Out   bool
}

// Movement is one change of the vaults: what one call did.
type Movement struct {
	Key  MovementKey
	Kind MovementKind
	// Calls is 1, or how many calls of one direction it joins where a transfer
	// fee hides which of them moved how much. Key is the first one's.
	Calls       int
	Base, Quote Delta
}

// Side returns what the taker of a swap did with the base asset, 0 for what is
// not a swap.
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

// kindOf tells the kind, 0 where nothing moved.
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

// Balance is what a vault held before and after a transaction.
type Balance struct {
	// Named: the transaction names the vault. All else is zero if not.
	Named bool
	// Created: the vault did not exist before.
	Created       bool
	Before, After market.Amount
}

// Trace is what a transaction did to a pool's vaults.
type Trace struct {
	Signature solana.Signature
	Slot      uint64
	// Time is the block's in seconds of Unix time, 0 if unknown.
	Time int64
	// Payer paid the fee: the nearest to a trader that does not depend on the
	// pool's program.
	Payer       solana.Address
	Base, Quote Balance
	// Movements in the order in which they were executed. Together they are
	// exactly the balances' changes.
	Movements []Movement
}

// Decode reads a finalized transaction. One that failed, or that does not touch
// the vaults, has no movements. A node that leaves out the calls of swaps that
// cancel out leaves no trace of them in the balances: only other nodes' answers
// tell. Errors: [ErrVaults], [ErrOtherMint],
// [ErrNoBalance], [ErrUnbalanced]; the trace still tells signature, slot, time and
// payer then.
func (p *VaultPair) Decode(c *ledger.Confirmed) (Trace, error) {
	t := Trace{Signature: c.Signature(), Slot: c.Slot, Time: c.BlockTime, Payer: c.Tx.Message.FeePayer()}
	if c.Failed {
		return t, nil
	}
	if err := p.decode(c, &t); err != nil {
		t.Base, t.Quote, t.Movements = Balance{}, Balance{}, nil
		return t, fmt.Errorf("transaction %s: %w", t.Signature, err)
	}
	return t, nil
}

func (p *VaultPair) decode(c *ledger.Confirmed, t *Trace) error {
	if err := p.Validate(); err != nil {
		return err
	}
	s := splitter{confirmed: c}
	for i, v := range []Vault{p.Base, p.Quote} {
		b, key, err := v.balance(c)
		if err != nil {
			return err
		}
		s.keys[i], s.balances[i] = key, b
	}
	t.Base, t.Quote = s.balances[baseSide], s.balances[quoteSide]
	if !t.Base.Named && !t.Quote.Named {
		return nil
	}
	s.walk()
	if err := s.reconcile(); err != nil {
		return err
	}
	var err error
	t.Movements, err = s.movements()
	return err
}

// balance reads what a vault held, and which of the transaction's keys it is, -1
// if none.
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
	before, toldBefore, err1 := v.held(c.TokensBefore, key)
	after, toldAfter, err2 := v.held(c.TokensAfter, key)
	if err := errors.Join(err1, err2); err != nil {
		return b, key, err
	}
	// An account that holds no lamports does not exist.
	if !toldBefore && c.Before[key] != 0 || !toldAfter && c.After[key] != 0 {
		return b, key, fmt.Errorf("%w: %s", ErrNoBalance, solana.Text(v.Account))
	}
	return Balance{Named: true, Created: !toldBefore && toldAfter, Before: before, After: after}, key, nil
}

func (v *Vault) held(list []ledger.TokenBalance, key int) (market.Amount, bool, error) {
	for i := range list {
		if list[i].Account != key {
			continue
		}
		if list[i].Mint != v.Mint {
			return 0, false, fmt.Errorf("%w: %s holds %s", ErrOtherMint, solana.Text(v.Account), solana.Text(list[i].Mint))
		}
		return list[i].Amount, true, nil
	}
	return 0, false, nil
}
