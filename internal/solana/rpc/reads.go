package rpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/gagliardetto/solana-go/rpc"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/market"
)

// Errors of answers that cannot be right, wrapped in an [Error] of kind [WrongAnswer];
// of calls that cannot be made; and of answers that contradict each other.
var (
	errMissing  = errors.New("a JSON field is missing")
	errCount    = errors.New("the answer has a wrong number of values")
	errMismatch = errors.New("the answer does not match the request")
	// ErrTooMany: more in one call than the interface takes.
	ErrTooMany = errors.New("rpc: too many items in one call")
	// ErrDisagree: nodes answer differently about final data.
	ErrDisagree = errors.New("rpc: the nodes disagree")
	// ErrNoMajority: some nodes know a transaction, and too few agree about it.
	ErrNoMajority = errors.New("rpc: no majority of the nodes has the transaction")
)

// object is a JSON object as a parameter.
type object = sdk.M

// contextual is a result with the slot that it is as of.
type contextual[T any] struct {
	Context *struct {
		Slot uint64 `json:"slot"`
	} `json:"context"`
	Value T `json:"value"`
}

// withContext decodes a result that has a context.
func withContext[T any](result json.RawMessage) (v contextual[T], err error) {
	if err := json.Unmarshal(result, &v); err != nil {
		return v, err
	}
	if v.Context == nil {
		return v, fmt.Errorf("context: %w", errMissing)
	}
	return v, nil
}

// number decodes a whole number.
func number(result json.RawMessage) (uint64, error) {
	if bytes.Equal(result, []byte("null")) {
		return 0, errMissing
	}
	return into[uint64](result)
}

// Slot returns the node's slot.
func (c *Client) Slot(ctx context.Context, level Commitment) (uint64, error) {
	return call(ctx, c, true, "getSlot", number, object{"commitment": level})
}

// BlockHeight returns the node's block height, in which a blockhash's life is counted.
func (c *Client) BlockHeight(ctx context.Context, level Commitment) (uint64, error) {
	return call(ctx, c, true, "getBlockHeight", number, object{"commitment": level})
}

// Rent returns the lamports that an account of size bytes must hold.
func (c *Client) Rent(ctx context.Context, size int) (market.Amount, error) {
	n, err := call(ctx, c, true, "getMinimumBalanceForRentExemption", number, size)
	return market.Amount(n), err
}

// Balance returns an account's lamports, 0 if it does not exist, and their slot.
func (c *Client) Balance(ctx context.Context, a solana.Address, level Commitment) (market.Amount, uint64, error) {
	v, err := call(ctx, c, true, "getBalance", withContext[*uint64], solana.Base58(a), object{"commitment": level})
	if err != nil {
		return 0, 0, err
	}
	if v.Value == nil {
		return 0, 0, &Error{Kind: WrongAnswer, Upstream: c.Active(), Method: "getBalance", Err: errMissing}
	}
	return market.Amount(*v.Value), v.Context.Slot, nil
}

// Account is an account of the chain.
type Account struct {
	Address, Owner solana.Address
	Lamports       market.Amount
	Data           []byte
	Executable     bool
}

// wireAccount is an account in base64.
type wireAccount struct {
	Lamports   *uint64  `json:"lamports"`
	Owner      string   `json:"owner"`
	Data       []string `json:"data"`
	Executable bool     `json:"executable"`
}

func (w *wireAccount) read(address solana.Address) (*Account, error) {
	if w.Lamports == nil || len(w.Data) != 2 || w.Data[1] != "base64" {
		return nil, fmt.Errorf("account %s: %w", solana.Base58(address), errMissing)
	}
	owner, err := solana.ParseAddress(w.Owner)
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(w.Data[0])
	if err != nil {
		return nil, fmt.Errorf("account %s: %w", solana.Base58(address), err)
	}
	return &Account{address, owner, market.Amount(*w.Lamports), data, w.Executable}, nil
}

// Accounts reads up to MaxAccountsPerCall accounts as of one slot, which it returns;
// nil: the account does not exist. minSlot, if not 0, refuses a node that is behind it.
// Errors: [Error], [ErrTooMany].
func (c *Client) Accounts(ctx context.Context, list []solana.Address, level Commitment, minSlot uint64) ([]*Account, uint64, error) {
	if len(list) > MaxAccountsPerCall {
		return nil, 0, fmt.Errorf("%w: %d accounts", ErrTooMany, len(list))
	}
	texts, options := accountsAt(list, level, minSlot)
	a, err := call(ctx, c, true, "getMultipleAccounts", accountsOf(list, minSlot), texts, options)
	return a.accounts, a.slot, err
}

// accountsAt returns getMultipleAccounts's parameters.
func accountsAt(list []solana.Address, level Commitment, minSlot uint64) ([]string, object) {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = solana.Base58(list[i])
	}
	options := object{"commitment": level, "encoding": "base64"}
	if minSlot > 0 {
		options["minContextSlot"] = minSlot
	}
	return texts, options
}

// accountsAnswer has accounts as of a slot.
type accountsAnswer struct {
	accounts []*Account
	slot     uint64
}

// accountsOf returns the parser of getMultipleAccounts's result.
func accountsOf(list []solana.Address, minSlot uint64) func(json.RawMessage) (accountsAnswer, error) {
	return func(result json.RawMessage) (a accountsAnswer, err error) {
		v, err := withContext[[]*wireAccount](result)
		if err != nil {
			return a, err
		}
		if len(v.Value) != len(list) || v.Context.Slot < minSlot {
			return a, fmt.Errorf("%d accounts as of slot %d: %w", len(v.Value), v.Context.Slot, errCount)
		}
		a = accountsAnswer{make([]*Account, len(list)), v.Context.Slot}
		for i, w := range v.Value {
			if w == nil {
				continue
			}
			if a.accounts[i], err = w.read(list[i]); err != nil {
				return a, err
			}
		}
		return a, nil
	}
}

// TokenAccounts reads an owner's token accounts of one mint or, if mint is zero, of one
// token program.
func (c *Client) TokenAccounts(ctx context.Context, owner, mint, program solana.Address, level Commitment) ([]*Account, uint64, error) {
	filter := object{"mint": solana.Base58(mint)}
	if mint == (solana.Address{}) {
		filter = object{"programId": solana.Base58(program)}
	}
	a, err := call(ctx, c, true, "getTokenAccountsByOwner", func(result json.RawMessage) (a accountsAnswer, err error) {
		v, err := withContext[[]struct {
			Pubkey  string       `json:"pubkey"`
			Account *wireAccount `json:"account"`
		}](result)
		if err != nil {
			return a, err
		}
		a.slot = v.Context.Slot
		for _, entry := range v.Value {
			address, err := solana.ParseAddress(entry.Pubkey)
			if err != nil {
				return a, err
			}
			if entry.Account == nil {
				return a, errMissing
			}
			account, err := entry.Account.read(address)
			if err != nil {
				return a, err
			}
			a.accounts = append(a.accounts, account)
		}
		return a, nil
	}, solana.Base58(owner), filter, object{"commitment": level, "encoding": "base64"})
	return a.accounts, a.slot, err
}

// Transaction reads a confirmed or finalized transaction. found is false if the node
// does not know it, or not at this level yet, which is normal right after sending.
func (c *Client) Transaction(ctx context.Context, s solana.Signature, level Commitment) (t *ledger.Confirmed, found bool, err error) {
	t, err = call(ctx, c, true, "getTransaction", transactionOf(s), s.String(), transactionAt(level))
	return t, t != nil, err
}

// transactionAt returns the options of getTransaction.
func transactionAt(level Commitment) object {
	return object{"commitment": level, "encoding": "base64", "maxSupportedTransactionVersion": 1}
}

// transactionOf returns the parser of getTransaction's result: nil if the node does not
// know it.
func transactionOf(s solana.Signature) func(json.RawMessage) (*ledger.Confirmed, error) {
	return func(result json.RawMessage) (*ledger.Confirmed, error) {
		if bytes.Equal(result, []byte("null")) {
			return nil, nil
		}
		t, err := ledger.Parse(result)
		if err != nil {
			return nil, err
		}
		if t.Signature() != s {
			return nil, fmt.Errorf("transaction %s: %w", t.Signature(), errMismatch)
		}
		return t, nil
	}
}

// Page selects a part of a list of signatures, newest first: older than Before, newer
// than Until; zero means no bound.
type Page struct {
	Before, Until solana.Signature
	// Limit is 1 to MaxSignaturesPerCall; 0 means the maximum.
	Limit int
	// MinSlot, if not 0, refuses a node that is behind it.
	MinSlot uint64
}

// SignatureInfo is an entry of an account's history.
type SignatureInfo struct {
	Signature solana.Signature
	Slot      uint64
	// BlockTime is in seconds of Unix time, 0 if unknown.
	BlockTime int64
	Failed    bool
	// Memo is the node's text of the memos: a hint, never a proof.
	Memo string
}

// Signatures lists the transactions that contain an account, newest first. Errors:
// [Error], [ErrTooMany].
func (c *Client) Signatures(ctx context.Context, a solana.Address, page Page, level Commitment) ([]SignatureInfo, error) {
	options, err := page.options(level)
	if err != nil {
		return nil, err
	}
	return call(ctx, c, true, "getSignaturesForAddress", signaturesOf(page.limit()), solana.Base58(a), options)
}

// SignaturesInTurn is [Client.Signatures], but each call begins with another of the
// available nodes, so that one that hides a transaction hides it from some calls only.
func (c *Client) SignaturesInTurn(ctx context.Context, a solana.Address, page Page, level Commitment) ([]SignatureInfo, error) {
	options, err := page.options(level)
	if err != nil {
		return nil, err
	}
	return callOn(ctx, c, c.planInTurn(), true, "getSignaturesForAddress", signaturesOf(page.limit()), solana.Base58(a), options)
}

func (p *Page) limit() int { return cmp.Or(p.Limit, MaxSignaturesPerCall) }

// options returns the options of getSignaturesForAddress.
func (p *Page) options(level Commitment) (object, error) {
	if p.Limit < 0 || p.Limit > MaxSignaturesPerCall {
		return nil, fmt.Errorf("%w: %d signatures", ErrTooMany, p.Limit)
	}
	options := object{"commitment": level, "limit": p.limit()}
	if p.Before != (solana.Signature{}) {
		options["before"] = p.Before.String()
	}
	if p.Until != (solana.Signature{}) {
		options["until"] = p.Until.String()
	}
	if p.MinSlot > 0 {
		options["minContextSlot"] = p.MinSlot
	}
	return options, nil
}

// signaturesOf returns the parser of a list of at most limit signatures.
func signaturesOf(limit int) func(json.RawMessage) ([]SignatureInfo, error) {
	return func(result json.RawMessage) ([]SignatureInfo, error) {
		list, err := into[*[]wireSignature](result)
		switch {
		case err != nil:
			return nil, err
		case list == nil:
			return nil, errMissing
		case len(*list) > limit:
			return nil, errCount
		}
		out := make([]SignatureInfo, len(*list))
		for i := range *list {
			if out[i], err = (*list)[i].read(); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
}

type wireSignature struct {
	Signature string          `json:"signature"`
	Slot      *uint64         `json:"slot"`
	BlockTime *int64          `json:"blockTime"`
	Err       json.RawMessage `json:"err"`
	Memo      *string         `json:"memo"`
}

func (w *wireSignature) read() (s SignatureInfo, err error) {
	if w.Slot == nil {
		return s, fmt.Errorf("slot: %w", errMissing)
	}
	s = SignatureInfo{Slot: *w.Slot, Failed: failed(w.Err)}
	if w.BlockTime != nil {
		s.BlockTime = *w.BlockTime
	}
	if w.Memo != nil {
		s.Memo = *w.Memo
	}
	s.Signature, err = solana.ParseSignature(w.Signature)
	return s, err
}

// failed reports whether an err member means failure: null and absent mean success.
func failed(err json.RawMessage) bool { return len(err) > 0 && !bytes.Equal(err, []byte("null")) }
