// Package payment extracts what a confirmed transaction paid, and decides whether that
// pays a claim.
//
// It does not trust instructions: transfers hide in inner calls, in batches and behind
// hooks, and with a transfer fee less arrives than was sent. A payment is the change of
// balances: those of all accounts that match by mint, owner and program, looked-up
// accounts included, netted over everything that the treasury owns.
//
// Invariants:
//  1. [Facts] depend on the answer alone, not on a claim.
//  2. [Decide] is a pure function of facts and terms, and returns one reason.
//  3. Credited is what the account to be paid gained, and never more than the whole
//     treasury gained: a loop through it pays nothing.
//  4. Sums are exact; one that overflows is an error.
//
// Concurrency: pure functions and values.
package payment

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// Errors, wrapped with the detail.
var (
	// ErrOverflow: the balances exceed any mint's supply.
	ErrOverflow = errors.New("payment: the balances overflow")
	// ErrUnknownBalance: a token account of ours existed before, and the answer has no
	// balance for it. Counting it as zero would invent a payment.
	ErrUnknownBalance = errors.New("payment: the answer lacks a balance before the transaction")
	// ErrTarget: the target is incomplete.
	ErrTarget = errors.New("payment: what to look for is incomplete")
)

// Target defines a payment to us.
type Target struct {
	Rail market.Rail
	// Mint and Program are the rail's mint and its token program; zero for SOL.
	Mint, Program solana.Address
	// PayTo is the account to be paid: the treasury's token account, or its
	// wallet for SOL.
	PayTo solana.Address
	// Treasury are all our wallets. A transfer between them is no payment.
	Treasury []solana.Address
}

func (t *Target) check() error {
	zero := solana.Address{}
	tokens := t.Rail == market.RailUSDC
	switch {
	case !t.Rail.Valid(), t.PayTo == zero, len(t.Treasury) == 0, tokens != (t.Mint != zero), tokens != (t.Program != zero):
		return fmt.Errorf("%w: %+v", ErrTarget, *t)
	case !tokens && !slices.Contains(t.Treasury, t.PayTo):
		return fmt.Errorf("%w: %s is not in the treasury", ErrTarget, solana.Base58(t.PayTo))
	}
	return nil
}

func (t *Target) owns(wallet solana.Address) bool { return slices.Contains(t.Treasury, wallet) }

// Loss is what one owner lost.
type Loss struct {
	Owner  solana.Address
	Amount market.Amount
}

// Memo is a text passed to a memo program.
type Memo struct {
	Text string
	// Outer is the index of the message's instruction; Inner: it called the memo
	// program through another program.
	Outer int
	Inner bool
}

// Facts are the effects of a transaction that matter for a payment to a [Target].
type Facts struct {
	Signature solana.Signature
	Slot      uint64
	// BlockTime is in seconds of Unix time, 0 if unknown.
	BlockTime int64
	Version   tx.Version
	// A Failed transaction paid nothing; Error is the runtime's.
	Failed bool
	Error  string
	// Signers has the fee payer first.
	Signers []solana.Address
	// Credited is what the account to be paid gained, at most Gained. Gained is what
	// the treasury gained on the rail in all, 0 if it lost.
	Credited, Gained market.Amount
	// GainedOther: the treasury gained another mint, or lamports on a token rail.
	GainedOther bool
	// Losses are the payers, the largest loss first, in atoms of the rail, without the
	// fee and without us.
	Losses []Loss
	Memos  []Memo
	// Keys are all accounts of the transaction, looked-up ones included.
	Keys []solana.Address
	// Lookups: some keys are from address tables. Nonce: it uses a durable nonce.
	Lookups, Nonce bool
}

// Payer returns the owner who lost most, or the zero address.
func (f *Facts) Payer() solana.Address {
	if len(f.Losses) == 0 {
		return solana.Address{}
	}
	return f.Losses[0].Owner
}

// Lost returns what an owner lost.
func (f *Facts) Lost(owner solana.Address) market.Amount {
	for _, l := range f.Losses {
		if l.Owner == owner {
			return l.Amount
		}
	}
	return 0
}

// Has reports whether an account, such as a reference, is in the transaction.
func (f *Facts) Has(account solana.Address) bool { return slices.Contains(f.Keys, account) }

// Extract returns the facts. Errors: [ErrTarget], [ErrOverflow], [ErrUnknownBalance].
func Extract(c *ledger.Confirmed, t *Target) (*Facts, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	m := &c.Tx.Message
	f := &Facts{
		Signature: c.Signature(), Slot: c.Slot, BlockTime: c.BlockTime, Version: m.Version, Failed: c.Failed, Error: c.Error,
		Signers: m.Signers(), Keys: c.Keys, Lookups: m.UsesLookups(), Nonce: m.UsesNonce(), Memos: memos(c),
	}
	if c.Failed {
		return f, nil
	}
	var b balances
	var paid sums
	if t.Rail == market.RailSOL {
		paid = b.addLamports(c, t)
	} else {
		if err := checkBalancesBefore(c, t); err != nil {
			return nil, fmt.Errorf("transaction %s: %w", f.Signature, err)
		}
		paid = b.addTokens(c, t)
	}
	f.GainedOther = gainedOther(c, t)
	if b.overflow {
		return nil, fmt.Errorf("transaction %s: %w", f.Signature, ErrOverflow)
	}
	var treasury sums
	for i := range b.owners {
		o := &b.owners[i]
		if t.owns(o.owner) {
			b.merge(&treasury, o.sums)
		} else if loss := o.loss(); loss > 0 {
			f.Losses = append(f.Losses, Loss{o.owner, loss})
		}
	}
	if b.overflow {
		return nil, fmt.Errorf("transaction %s: %w", f.Signature, ErrOverflow)
	}
	slices.SortFunc(f.Losses, func(x, y Loss) int {
		if x.Amount != y.Amount {
			return cmp.Compare(y.Amount, x.Amount)
		}
		return bytes.Compare(x.Owner[:], y.Owner[:])
	})
	f.Gained = treasury.gain()
	f.Credited = min(paid.gain(), f.Gained)
	return f, nil
}

// sums are balances before and after.
type sums struct{ before, after uint64 }

func (s sums) gain() market.Amount {
	if s.after <= s.before {
		return 0
	}
	return market.Amount(s.after - s.before)
}

func (s sums) loss() market.Amount { return sums{s.after, s.before}.gain() }

// balances sums balances by owner.
type balances struct {
	owners   []ownerBalance
	overflow bool
}

type ownerBalance struct {
	owner solana.Address
	sums
}

func (b *balances) add(owner solana.Address, s sums) {
	for i := range b.owners {
		if b.owners[i].owner == owner {
			b.merge(&b.owners[i].sums, s)
			return
		}
	}
	b.owners = append(b.owners, ownerBalance{owner, s})
}

func (b *balances) merge(into *sums, s sums) {
	var c1, c2 uint64
	into.before, c1 = bits.Add64(into.before, s.before, 0)
	into.after, c2 = bits.Add64(into.after, s.after, 0)
	b.overflow = b.overflow || c1|c2 != 0
}

// checkBalancesBefore checks that each of our token accounts that existed before has a
// balance before. An account that did not exist held no lamports.
func checkBalancesBefore(c *ledger.Confirmed, t *Target) error {
	for i := range c.TokensAfter {
		after := &c.TokensAfter[i]
		if !t.owns(after.Owner) || c.Before[after.Account] == 0 {
			continue
		}
		if !slices.ContainsFunc(c.TokensBefore, func(b ledger.TokenBalance) bool { return b.Account == after.Account }) {
			return fmt.Errorf("%w: that of %s", ErrUnknownBalance, solana.Base58(c.Keys[after.Account]))
		}
	}
	return nil
}

// addTokens sums the target's mint by owner, before and after by the owner at that
// time, and returns what the account to be paid held.
func (b *balances) addTokens(c *ledger.Confirmed, t *Target) (paid sums) {
	ours := func(tb *ledger.TokenBalance) bool { return tb.Mint == t.Mint && tb.Program == t.Program }
	for i := range c.TokensBefore {
		tb := &c.TokensBefore[i]
		if !ours(tb) {
			continue
		}
		b.add(tb.Owner, sums{before: uint64(tb.Amount)})
		if c.Keys[tb.Account] == t.PayTo {
			paid.before = uint64(tb.Amount)
		}
	}
	for i := range c.TokensAfter {
		tb := &c.TokensAfter[i]
		if !ours(tb) {
			continue
		}
		b.add(tb.Owner, sums{after: uint64(tb.Amount)})
		if c.Keys[tb.Account] == t.PayTo && t.owns(tb.Owner) {
			paid.after = uint64(tb.Amount)
		}
	}
	return paid
}

// addLamports sums lamports by owner: a token account's are its owner's, so that
// unwrapping counts as paying. It adds the fee back, which is no payment.
func (b *balances) addLamports(c *ledger.Confirmed, t *Target) (paid sums) {
	owners := slices.Clone(c.Keys)
	for _, list := range [][]ledger.TokenBalance{c.TokensAfter, c.TokensBefore} {
		for i := range list {
			owners[list[i].Account] = list[i].Owner
		}
	}
	for i := range c.Keys {
		s := sums{uint64(c.Before[i]), uint64(c.After[i])}
		if i == 0 {
			b.merge(&s, sums{after: uint64(c.Fee)})
		}
		// The treasury is paid in its wallet, not in wrapped SOL.
		if t.owns(owners[i]) && owners[i] != c.Keys[i] {
			continue
		}
		b.add(owners[i], s)
		if c.Keys[i] == t.PayTo {
			paid = s
		}
	}
	return paid
}

// gainedOther reports whether the treasury gained anything but the target's asset.
func gainedOther(c *ledger.Confirmed, t *Target) bool {
	tokens := t.Rail == market.RailUSDC
	for i := range c.TokensAfter {
		after := &c.TokensAfter[i]
		if !t.owns(after.Owner) || tokens && after.Mint == t.Mint && after.Program == t.Program {
			continue
		}
		var before market.Amount
		for j := range c.TokensBefore {
			if c.TokensBefore[j].Account == after.Account {
				before = c.TokensBefore[j].Amount
			}
		}
		if after.Amount > before {
			return true
		}
	}
	if tokens {
		for i, key := range c.Keys {
			if t.owns(key) && c.After[i] > c.Before[i] {
				return true
			}
		}
	}
	return false
}

// memos returns the memos in the order of the message: only texts passed to a memo
// program.
func memos(c *ledger.Confirmed) (list []Memo) {
	for i := range c.Tx.Message.Instructions {
		in := &c.Tx.Message.Instructions[i]
		if solana.IsMemoProgram(c.Program(in)) {
			list = append(list, Memo{Text: string(in.Data), Outer: i})
		}
	}
	for i := range c.Inner {
		in := &c.Inner[i]
		if solana.IsMemoProgram(c.Program(&in.Instruction)) && !in.Skipped {
			list = append(list, Memo{Text: string(in.Data), Outer: in.Outer, Inner: true})
		}
	}
	slices.SortStableFunc(list, func(x, y Memo) int { return x.Outer - y.Outer })
	return list
}
