// Package ledger parses a confirmed transaction as getTransaction answers it in base64:
// the transaction's own bytes, and its effect on balances.
//
// The node that answers may be wrong. Facts that are both in the bytes and in the rest
// of the answer must agree, every index must be in range, every balance list must have
// the right length and each account at most once: anything else is an error, never a
// guess. A missing member that matters is an error; null means what the interface
// defines.
//
// It is hand-written because solana-go's types read a missing member as zero and
// compare nothing.
//
// Concurrency: pure functions and values. Cost: see the benchmark.
package ledger

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
)

// Errors, wrapped with the detail.
var (
	// ErrMalformed: not an answer of getTransaction.
	ErrMalformed = errors.New("ledger: the node's answer is malformed")
	// ErrIncomplete: a member that matters is missing, because the node has pruned or
	// never recorded it.
	ErrIncomplete = errors.New("ledger: the node's answer is incomplete")
	// ErrInconsistent: the answer contradicts itself.
	ErrInconsistent = errors.New("ledger: the node's answer contradicts itself")
)

// Limits of one answer. The runtime's own are lower.
const (
	MaxTokenBalances     = tx.MaxKeys
	MaxInnerInstructions = 1024
	MaxLogs              = 1024
	MaxInnerText         = 1024
	maxErrorText         = 256
	// The message's instructions have depth 1. The runtime's limit is far lower.
	minInnerDepth, maxInnerDepth = 2, 64
)

// TokenBalance is a token account's amount before or after the transaction.
type TokenBalance struct {
	// Account indexes [Confirmed.Keys].
	Account              int
	Mint, Owner, Program solana.Address
	Amount               market.Amount
	Decimals             uint8
}

// InnerInstruction is a call made by an instruction of the message.
type InnerInstruction struct {
	// Outer is the index of that instruction.
	Outer int
	// The data of an Instruction is decoded for the memo and the token programs only,
	// and up to MaxInnerText characters of base58.
	tx.Instruction
	// Skipped: its data was not decoded.
	Skipped bool
	// Depth is the call depth: 2 for a call by the message's instruction, one more for
	// each call inside; 0 if the node does not say.
	Depth uint8
}

// Confirmed is a transaction that is in a block.
type Confirmed struct {
	Slot uint64
	// BlockTime is in seconds of Unix time, 0 if the node does not know it.
	BlockTime int64
	// Tx is decoded from the answer's bytes. Its version counts, because some nodes
	// label it wrongly.
	Tx *tx.Transaction
	// A Failed transaction moved nothing but the fee. Error is the runtime's, as JSON,
	// cut to 256 bytes.
	Failed bool
	Error  string
	Fee    market.Amount
	// Keys are all accounts: the message's, then those loaded from tables, the writable
	// ones first.
	Keys []solana.Address
	// Before and After are lamports, by index of Keys.
	Before, After []market.Amount
	// TokensBefore and TokensAfter have each account at most once; an account that did
	// not exist is absent.
	TokensBefore, TokensAfter []TokenBalance
	Inner                     []InnerInstruction
	// Logs are empty on nodes that do not keep them, and may be cut.
	Logs []string
}

// Signature returns the transaction's id.
func (c *Confirmed) Signature() solana.Signature { return c.Tx.Signatures[0] }

// IsSigned reports whether every signer has signed the bytes: a node that invents a
// transaction cannot do that.
func (c *Confirmed) IsSigned() bool {
	signers := c.Tx.Message.Signers()
	if len(signers) == 0 || len(signers) != len(c.Tx.Signatures) {
		return false
	}
	for i, signer := range signers {
		if !ed25519.Verify(signer[:], c.Tx.Signed, c.Tx.Signatures[i][:]) {
			return false
		}
	}
	return true
}

// Program returns the program that an instruction calls. Parse has checked the index.
func (c *Confirmed) Program(in *tx.Instruction) solana.Address { return c.Keys[in.Program] }

// answer is the JSON of the result. Pointers distinguish absent from zero.
type answer struct {
	Slot        *uint64         `json:"slot"`
	BlockTime   *int64          `json:"blockTime"`
	Transaction json.RawMessage `json:"transaction"`
	Meta        *meta           `json:"meta"`
}

type meta struct {
	Err          json.RawMessage `json:"err"`
	Fee          *uint64         `json:"fee"`
	Before       []uint64        `json:"preBalances"`
	After        []uint64        `json:"postBalances"`
	TokensBefore *[]tokenBalance `json:"preTokenBalances"`
	TokensAfter  *[]tokenBalance `json:"postTokenBalances"`
	Inner        *[]inner        `json:"innerInstructions"`
	Logs         []string        `json:"logMessages"`
	Loaded       *struct {
		Writable []string `json:"writable"`
		Readonly []string `json:"readonly"`
	} `json:"loadedAddresses"`
}

type tokenBalance struct {
	Account *int   `json:"accountIndex"`
	Mint    string `json:"mint"`
	Owner   string `json:"owner"`
	Program string `json:"programId"`
	Amount  *struct {
		Amount   string `json:"amount"`
		Decimals *uint8 `json:"decimals"`
	} `json:"uiTokenAmount"`
}

type inner struct {
	Index        *int `json:"index"`
	Instructions []struct {
		Program  *int   `json:"programIdIndex"`
		Accounts []int  `json:"accounts"`
		Data     string `json:"data"`
		Height   *int   `json:"stackHeight"`
	} `json:"instructions"`
}

// Parse parses the result member of getTransaction's answer, which must not be null.
// Errors: [ErrMalformed], [ErrIncomplete], [ErrInconsistent].
func Parse(result []byte) (*Confirmed, error) {
	var a answer
	if err := json.Unmarshal(result, &a); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	switch {
	case a.Slot == nil || a.Transaction == nil:
		return nil, fmt.Errorf("%w: the slot or the transaction is missing", ErrIncomplete)
	case a.Meta == nil:
		return nil, fmt.Errorf("%w: meta is missing", ErrIncomplete)
	}
	c := &Confirmed{Slot: *a.Slot}
	if a.BlockTime != nil {
		c.BlockTime = *a.BlockTime
	}
	transaction, err := decode(a.Transaction)
	if err != nil {
		return nil, err
	}
	c.Tx = transaction
	if err := c.readMeta(a.Meta); err != nil {
		return nil, fmt.Errorf("transaction %s: %w", c.Signature(), err)
	}
	return c, nil
}

// decode decodes ["…", "base64"].
func decode(text json.RawMessage) (*tx.Transaction, error) {
	var pair []string
	if err := json.Unmarshal(text, &pair); err != nil || len(pair) != 2 || pair[1] != "base64" {
		return nil, fmt.Errorf("%w: the transaction is not in base64", ErrMalformed)
	}
	if len(pair[0]) > base64.StdEncoding.EncodedLen(tx.MaxSizeV1) {
		return nil, fmt.Errorf("%w: a transaction of %d characters", ErrMalformed, len(pair[0]))
	}
	raw, err := base64.StdEncoding.DecodeString(pair[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	t, err := tx.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return t, nil
}

func (c *Confirmed) readMeta(m *meta) error {
	if err := c.readLoaded(m); err != nil {
		return err
	}
	if m.Err == nil || m.Fee == nil {
		return fmt.Errorf("%w: meta.err or meta.fee is missing", ErrIncomplete)
	}
	c.Fee = market.Amount(*m.Fee)
	if !bytes.Equal(m.Err, []byte("null")) {
		c.Failed, c.Error = true, string(m.Err[:min(len(m.Err), maxErrorText)])
	}
	if len(m.Before) != len(c.Keys) || len(m.After) != len(c.Keys) {
		return fmt.Errorf("%w: %d and %d balances for %d accounts", ErrInconsistent, len(m.Before), len(m.After), len(c.Keys))
	}
	c.Before, c.After = amounts(m.Before), amounts(m.After)
	var err error
	if c.TokensBefore, err = c.tokens(m.TokensBefore); err != nil {
		return err
	}
	if c.TokensAfter, err = c.tokens(m.TokensAfter); err != nil {
		return err
	}
	if err := c.readInner(m.Inner); err != nil {
		return err
	}
	c.Logs = m.Logs[:min(len(m.Logs), MaxLogs)]
	return nil
}

func amounts(numbers []uint64) []market.Amount {
	list := make([]market.Amount, len(numbers))
	for i, n := range numbers {
		list[i] = market.Amount(n)
	}
	return list
}

// readLoaded appends the keys from tables to the message's own.
func (c *Confirmed) readLoaded(m *meta) error {
	writable, readonly := c.Tx.Message.LookupKeys()
	c.Keys = c.Tx.Message.Keys
	if m.Loaded == nil {
		if writable+readonly > 0 {
			return fmt.Errorf("%w: the loaded addresses are missing", ErrIncomplete)
		}
		return nil
	}
	if len(m.Loaded.Writable) != writable || len(m.Loaded.Readonly) != readonly {
		return fmt.Errorf("%w: %d and %d loaded addresses, the message looks up %d and %d",
			ErrInconsistent, len(m.Loaded.Writable), len(m.Loaded.Readonly), writable, readonly)
	}
	c.Keys = slices.Clip(c.Keys) // append must not write to the message's slice
	for _, list := range [][]string{m.Loaded.Writable, m.Loaded.Readonly} {
		for _, text := range list {
			key, err := solana.ParseAddress(text)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrMalformed, err)
			}
			c.Keys = append(c.Keys, key)
		}
	}
	return c.checkDistinct()
}

// checkDistinct refuses a repeated account: the runtime runs no such transaction.
func (c *Confirmed) checkDistinct() error {
	seen := make(map[solana.Address]struct{}, len(c.Keys))
	for _, k := range c.Keys {
		if _, twice := seen[k]; twice {
			return fmt.Errorf("%w: account %s is listed twice", ErrInconsistent, solana.Base58(k))
		}
		seen[k] = struct{}{}
	}
	return nil
}

func (c *Confirmed) tokens(list *[]tokenBalance) ([]TokenBalance, error) {
	if list == nil {
		return nil, fmt.Errorf("%w: the token balances are missing", ErrIncomplete)
	}
	if len(*list) > MaxTokenBalances {
		return nil, fmt.Errorf("%w: %d token balances", ErrInconsistent, len(*list))
	}
	var seen [tx.MaxKeys]bool
	out := make([]TokenBalance, len(*list))
	for i := range *list {
		b, err := c.token(&(*list)[i])
		if err != nil {
			return nil, err
		}
		if seen[b.Account] {
			return nil, fmt.Errorf("%w: two balances of account %d", ErrInconsistent, b.Account)
		}
		seen[b.Account], out[i] = true, b
	}
	return out, nil
}

func (c *Confirmed) token(b *tokenBalance) (out TokenBalance, err error) {
	switch {
	case b.Account == nil || b.Amount == nil || b.Amount.Decimals == nil || b.Owner == "" || b.Program == "" || b.Mint == "":
		return out, fmt.Errorf("%w: a token balance without account, mint, owner, program or amount", ErrIncomplete)
	case *b.Account < 0 || *b.Account >= len(c.Keys):
		return out, fmt.Errorf("%w: a token balance of account %d of %d", ErrInconsistent, *b.Account, len(c.Keys))
	}
	out = TokenBalance{Account: *b.Account, Decimals: *b.Amount.Decimals}
	var err1, err2, err3 error
	out.Mint, err1 = solana.ParseAddress(b.Mint)
	out.Owner, err2 = solana.ParseAddress(b.Owner)
	out.Program, err3 = solana.ParseAddress(b.Program)
	n, err4 := strconv.ParseUint(b.Amount.Amount, 10, 64)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return out, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	// Each number has one spelling: no sign, no leading zero.
	if strconv.FormatUint(n, 10) != b.Amount.Amount {
		return out, fmt.Errorf("%w: a token amount of %q", ErrMalformed, b.Amount.Amount)
	}
	out.Amount = market.Amount(n)
	return out, nil
}

// readInner reads the inner instructions. It refuses null, the answer of a node that did
// not record them.
func (c *Confirmed) readInner(list *[]inner) error {
	if list == nil {
		return fmt.Errorf("%w: the inner instructions are missing", ErrIncomplete)
	}
	for _, group := range *list {
		if group.Index == nil || *group.Index < 0 || *group.Index >= len(c.Tx.Message.Instructions) {
			return fmt.Errorf("%w: inner instructions belong to none of the %d instructions", ErrInconsistent, len(c.Tx.Message.Instructions))
		}
		for _, in := range group.Instructions {
			if len(c.Inner) == MaxInnerInstructions {
				return fmt.Errorf("%w: more than %d inner instructions", ErrInconsistent, MaxInnerInstructions)
			}
			if in.Program == nil || *in.Program < 0 || *in.Program >= len(c.Keys) || len(in.Accounts) > tx.MaxKeys {
				return fmt.Errorf("%w: an inner instruction names no program", ErrInconsistent)
			}
			read := InnerInstruction{Outer: *group.Index, Instruction: tx.Instruction{Program: uint8(*in.Program)}}
			for _, a := range in.Accounts {
				if a < 0 || a >= len(c.Keys) {
					return fmt.Errorf("%w: an inner instruction names account %d of %d", ErrInconsistent, a, len(c.Keys))
				}
				read.Accounts = append(read.Accounts, uint8(a))
			}
			if h := in.Height; h != nil {
				if *h < minInnerDepth || *h > maxInnerDepth {
					return fmt.Errorf("%w: an inner instruction at stack height %d", ErrInconsistent, *h)
				}
				read.Depth = uint8(*h)
			}
			if err := c.readData(&read, in.Data); err != nil {
				return err
			}
			c.Inner = append(c.Inner, read)
		}
	}
	return nil
}

// readData decodes an inner instruction's data if it may be needed. Decoding base58
// takes quadratic time, so a hostile answer must not make us decode megabytes.
func (c *Confirmed) readData(in *InnerInstruction, text string) error {
	program := c.Program(&in.Instruction)
	if !solana.IsMemoProgram(program) && !solana.IsTokenProgram(program) || len(text) > MaxInnerText {
		in.Skipped = text != ""
		return nil
	}
	if text == "" {
		return nil
	}
	var err error
	if in.Data, err = base58.Decode(text); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}
