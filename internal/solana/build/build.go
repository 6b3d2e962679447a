// Package build builds our four transactions from plain values: a claim's payment, its
// delivery, delivery versus payment in one, and refunds. All are unsigned version 0 transactions
// without address tables and durable nonces, so that their bytes show everything they
// do and they expire at a block height.
//
// Invariants:
//  1. Nothing here can sign: no type has a key. Every signature slot of the result is
//     empty.
//  2. The same values give the same bytes.
//  3. Only a mint that token.Mint.Check passed can be transferred, with its own
//     token program and decimals in the instruction.
//  4. In the atomic transaction the desk signs its own leg, pays the fee and the rent
//     only if the options say so, and its tokens move once. In a delivery it signs alone
//     and pays everything, and its tokens move once. In refunds it signs alone, and pays
//     each payment back once.
//  5. The compute limit and price are always set, and capped.
//
// The instructions are solana-go's. The result is not trusted: settle/binding decodes
// the bytes strictly and compares them with the terms before anything is signed.
//
// Concurrency: pure functions, except for the cache of token accounts, which is safe
// for concurrent use. Cost: see the benchmark.
package build

import (
	"errors"
	"fmt"

	sdk "github.com/gagliardetto/solana-go"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

// Errors, wrapped with the detail.
var (
	ErrBudget  = errors.New("build: the compute budget is out of range")
	ErrTerms   = errors.New("build: the terms are not valid")
	ErrMemo    = errors.New("build: the memo is not printable ASCII, or is too long")
	ErrUnknown = errors.New("build: unknown rail or party")
)

// Unsigned is a transaction without signatures.
type Unsigned struct {
	raw, message []byte
	hash         solana.Hash
	signers      []solana.Address
}

// Bytes returns the whole transaction, its signature slots zero. The caller must not
// modify it.
func (u *Unsigned) Bytes() []byte { return u.raw }

// Message returns the bytes to sign. The caller must not modify them.
func (u *Unsigned) Message() []byte { return u.message }

// Hash returns the SHA-256 of Message.
func (u *Unsigned) Hash() solana.Hash { return u.hash }

// Signers returns the required signers in the order of the slots; the first one pays
// the fee. The caller must not modify the slice.
func (u *Unsigned) Signers() []solana.Address { return u.signers }

// The caps of a [Budget].
const (
	// MaxUnits is far above the use of any of the transactions, and far below a block's
	// share.
	MaxUnits = 400_000
	// MaxPriorityLamports bounds the total priority fee: 0.001 SOL.
	MaxPriorityLamports = 1_000_000
)

// Budget is a transaction's compute limit and price. The zero value is refused.
type Budget struct {
	// Units is the limit, 1 to MaxUnits.
	Units uint32
	// MicroLamports is the price of a unit, in 10^-6 lamports.
	MicroLamports uint64
}

// PriorityLamports returns the priority fee if the limit is used up, rounded up as the
// chain does. Errors: [ErrBudget].
func (b Budget) PriorityLamports() (market.Amount, error) {
	fee, err := market.MulDivCeil(uint64(b.Units), b.MicroLamports, 1_000_000)
	if err != nil || b.Units < 1 || b.Units > MaxUnits || fee > MaxPriorityLamports {
		return 0, fmt.Errorf("%w: %d units at %d micro-lamports", ErrBudget, b.Units, b.MicroLamports)
	}
	return market.Amount(fee), nil
}

// MaxMemo bounds a memo's bytes.
const MaxMemo = 64

func checkMemo(text string) error { return checkText(text, MaxMemo) }

// checkText requires printable ASCII, so that every explorer and decoder shows the
// same.
func checkText(text string, most int) error {
	if text == "" || len(text) > most {
		return fmt.Errorf("%w: it has %d bytes", ErrMemo, len(text))
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return fmt.Errorf("%w: it has the byte %#x", ErrMemo, text[i])
		}
	}
	return nil
}

// Common are the fields of all transactions.
type Common struct {
	// Blockhash is a recent one, which limits the transaction's life.
	Blockhash solana.Hash
	Budget    Budget
	// Memo is a text that binds the transaction to a claim.
	Memo string
	// Reference binds it too: a key to find the transaction by. Zero: none.
	Reference solana.Address
}

func (c *Common) check() error {
	if c.Blockhash == (solana.Hash{}) {
		return fmt.Errorf("%w: the blockhash is missing", ErrTerms)
	}
	if _, err := c.Budget.PriorityLamports(); err != nil {
		return err
	}
	return checkMemo(c.Memo)
}

func (c *Common) references() []solana.Address {
	if c.Reference == (solana.Address{}) {
		return nil
	}
	return []solana.Address{c.Reference}
}

// Leg is an amount to pay on a rail.
type Leg struct {
	Rail market.Rail
	// Mint is the rail's mint; none for SOL.
	Mint token.Checked
	// Amount is in atoms of the rail, at least 1.
	Amount market.Amount
	// To is the wallet to pay; tokens go to its associated account, which must exist.
	To solana.Address
}

// instructions returns the instructions that pay the leg from a wallet.
func (l *Leg) instructions(from solana.Address, references []solana.Address, accounts *solana.AccountCache) ([]sdk.Instruction, error) {
	if l.Amount == 0 || l.To == from || l.To == (solana.Address{}) {
		return nil, fmt.Errorf("%w: a transfer of %d atoms from %s to %s", ErrTerms, l.Amount, solana.Base58(from), solana.Base58(l.To))
	}
	switch l.Rail {
	case market.RailSOL:
		if !l.Mint.IsZero() {
			return nil, fmt.Errorf("%w: the SOL rail has no mint", ErrTerms)
		}
		return []sdk.Instruction{transferLamports(from, l.To, l.Amount, references)}, nil
	case market.RailUSDC:
		return transfer(l.Mint, from, l.To, l.Amount, solana.Address{}, references, accounts)
	default:
		return nil, fmt.Errorf("%w: rail %d", ErrUnknown, l.Rail)
	}
}

// transfer transfers tokens between the associated accounts of two wallets. rentPayer
// creates the receiving one if it is missing; zero: it must exist.
func transfer(mint token.Checked, from, to solana.Address, amount market.Amount, rentPayer solana.Address, references []solana.Address, accounts *solana.AccountCache) ([]sdk.Instruction, error) {
	if mint.IsZero() {
		return nil, fmt.Errorf("%w: the mint is missing", ErrTerms)
	}
	source, err := accounts.TokenAccount(from, mint.Address(), mint.Program())
	if err != nil {
		return nil, err
	}
	target, err := accounts.TokenAccount(to, mint.Address(), mint.Program())
	if err != nil {
		return nil, err
	}
	transfer := transferTokens(mint, source, target, from, amount, references)
	if rentPayer == (solana.Address{}) {
		return []sdk.Instruction{transfer}, nil
	}
	return []sdk.Instruction{createTokenAccount(mint, rentPayer, to, target), transfer}, nil
}

// Payment is a claim's payment, to be signed and sent by the payer.
type Payment struct {
	Common
	// Wallet pays the leg and the fee, and is the only signer.
	Wallet solana.Address
	Leg    Leg
}

// Build builds the transaction. Errors: [ErrTerms], [ErrBudget], [ErrMemo],
// [ErrUnknown].
func (p *Payment) Build(accounts *solana.AccountCache) (*Unsigned, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Reference == (solana.Address{}) || p.Wallet == (solana.Address{}) || p.Reference == p.Wallet || p.Reference == p.Leg.To {
		return nil, fmt.Errorf("%w: the reference %s must be set and no party, wallet %s", ErrTerms, solana.Base58(p.Reference), solana.Base58(p.Wallet))
	}
	pay, err := p.Leg.instructions(p.Wallet, p.references(), accounts)
	if err != nil {
		return nil, err
	}
	// The memo is right before the transfer, which is last: Solana Pay's order.
	last := len(pay) - 1
	all := append(p.Budget.instructions(), pay[:last]...)
	return compile(p.Wallet, p.Blockhash, append(all, memoOf(p.Memo), pay[last]))
}

// Party is a side of the atomic transaction.
type Party uint8

const (
	Desk  Party = 1
	Taker Party = 2
)

// Atomic is delivery versus payment in one transaction: both legs happen or
// neither. The desk and the taker sign.
type Atomic struct {
	Common
	Taker, Desk solana.Address
	// Payment is paid by the taker.
	Payment Leg
	// Base is delivered by the desk from its associated account to the taker's, which
	// is created if it is missing.
	Base       token.Checked
	BaseAmount market.Amount
	// FeePayer pays the fee; RentPayer pays for the taker's token account if it is
	// missing, and the taker can take that rent back later.
	FeePayer, RentPayer Party
}

// Build makes the transaction. Errors: as [Payment.Build].
func (a *Atomic) Build(accounts *solana.AccountCache) (*Unsigned, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	feePayer, rentPayer := a.wallet(a.FeePayer), a.wallet(a.RentPayer)
	zero := solana.Address{}
	switch {
	case feePayer == zero || rentPayer == zero:
		return nil, fmt.Errorf("%w: fee payer %d, rent payer %d", ErrUnknown, a.FeePayer, a.RentPayer)
	case a.Desk == a.Taker || a.Desk == zero || a.Taker == zero:
		return nil, fmt.Errorf("%w: desk %s and taker %s must be set and differ", ErrTerms, solana.Base58(a.Desk), solana.Base58(a.Taker))
	case a.BaseAmount == 0 || a.Base.Address() == a.Payment.Mint.Address():
		return nil, fmt.Errorf("%w: a delivery of %d atoms of mint %s", ErrTerms, a.BaseAmount, solana.Base58(a.Base.Address()))
	case a.Reference != zero && (a.Reference == a.Desk || a.Reference == a.Taker || a.Reference == a.Payment.To):
		return nil, fmt.Errorf("%w: the reference %s must be set and no party", ErrTerms, solana.Base58(a.Reference))
	}
	pay, err := a.Payment.instructions(a.Taker, a.references(), accounts)
	if err != nil {
		return nil, err
	}
	deliver, err := transfer(a.Base, a.Desk, a.Taker, a.BaseAmount, rentPayer, nil, accounts)
	if err != nil {
		return nil, err
	}
	all := append(a.Budget.instructions(), pay...)
	all = append(all, deliver...)
	return compile(feePayer, a.Blockhash, append(all, memoOf(a.Memo)))
}

func (a *Atomic) wallet(p Party) solana.Address {
	switch p {
	case Desk:
		return a.Desk
	case Taker:
		return a.Taker
	default:
		return solana.Address{}
	}
}

// Delivery delivers the base asset of a paid claim to the associated account of its
// wallet, which the desk creates if it is missing. Only the desk signs.
type Delivery struct {
	Common
	// Desk delivers and pays the fee and the rent; Wallet, the claim's, receives and
	// does not sign.
	Desk, Wallet solana.Address
	Base         token.Checked
	// Amount is in atoms of the base asset, at least 1.
	Amount market.Amount
}

// Build makes the transaction. Errors: as [Payment.Build].
func (d *Delivery) Build(accounts *solana.AccountCache) (*Unsigned, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	zero := solana.Address{}
	switch {
	case d.Desk == d.Wallet || d.Desk == zero || d.Wallet == zero:
		return nil, fmt.Errorf("%w: desk %s and wallet %s must be set and differ", ErrTerms, solana.Base58(d.Desk), solana.Base58(d.Wallet))
	case d.Amount == 0:
		return nil, fmt.Errorf("%w: the amount for wallet %s is 0", ErrTerms, solana.Base58(d.Wallet))
	case d.Reference == zero || d.Reference == d.Desk || d.Reference == d.Wallet:
		return nil, fmt.Errorf("%w: the reference %s must be set and no party, wallet %s", ErrTerms, solana.Base58(d.Reference), solana.Base58(d.Wallet))
	}
	deliver, err := transfer(d.Base, d.Desk, d.Wallet, d.Amount, d.Desk, d.references(), accounts)
	if err != nil {
		return nil, err
	}
	all := append(d.Budget.instructions(), deliver...)
	return compile(d.Desk, d.Blockhash, append(all, memoOf(d.Memo)))
}
