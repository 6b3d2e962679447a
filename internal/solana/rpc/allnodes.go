package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
)

// Position is the end of the chain at some commitment.
type Position struct {
	Slot uint64
	// Height is the number of blocks below: at most Slot, because slots are skipped.
	Height uint64
}

// position decodes getEpochInfo's result.
func position(result json.RawMessage) (p Position, err error) {
	v, err := into[struct {
		Slot   *uint64 `json:"absoluteSlot"`
		Height *uint64 `json:"blockHeight"`
	}](result)
	if err != nil {
		return p, err
	}
	if v.Slot == nil || v.Height == nil {
		return p, errMissing
	}
	if *v.Height > *v.Slot {
		return p, fmt.Errorf("block height %d at slot %d: %w", *v.Height, *v.Slot, errMismatch)
	}
	return Position{*v.Slot, *v.Height}, nil
}

// Position returns the end of the chain, slot and height as of one moment, from one of the
// available nodes.
func (c *Client) Position(ctx context.Context, level Commitment) (Position, error) {
	return callOn(ctx, c, c.planAtRandom(), true, "getEpochInfo", position, object{"commitment": level})
}

// NodeStatuses is one node's answer about the chain and some transactions.
type NodeStatuses struct {
	// Upstream is the node's name.
	Upstream string
	// Err, if set, is why the node did not answer; all other fields are zero then.
	Err error
	// Finalized was the node's finalized position before it was asked for the statuses,
	// Tip the height of its newest block.
	Finalized Position
	Tip       uint64
	// Slot is the slot of Statuses, which are in the order of the request.
	Slot     uint64
	Statuses []Status
	// First is the first block that it still had after that.
	First FirstBlock
}

// FirstBlock is the oldest block that a node still has. It has all newer ones too, unless
// it began again from a newer snapshot and kept its old blocks, which no node reports.
type FirstBlock struct {
	Slot uint64
	// Height is the number of blocks below it, Time its time in seconds of Unix time; 0 =
	// unknown.
	Height uint64
	Time   int64
}

// All reports whether the node has every block of the chain.
func (f *FirstBlock) All() bool { return f.Slot <= 1 }

// HasLife reports whether the node has every block in which a transaction can be: those
// after the block of its blockhash, life blocks below its last valid height. A slot's
// number says nothing about that, because slots are skipped.
func (f *FirstBlock) HasLife(lastValid, life uint64) bool {
	return f.All() || f.Height > 0 && lastValid >= life && f.Height <= lastValid-life
}

// HasSince reports whether the node has every block since a time, in seconds of Unix time.
func (f *FirstBlock) HasSince(unix int64) bool { return f.All() || f.Time > 0 && f.Time <= unix }

// HasSlot reports whether the node has every block from a slot on.
func (f *FirstBlock) HasSlot(slot uint64) bool { return f.Slot <= max(slot, 1) }

// StatusesFromEach asks every node, concurrently and once, for up to MaxStatusesPerCall
// transactions, old ones too. The results are in the order of the options. An empty
// list asks for positions only. Errors: [ErrTooMany]; the context's once it has ended;
// a node's own is in its result.
func (c *Client) StatusesFromEach(ctx context.Context, list []solana.Signature) ([]NodeStatuses, error) {
	if len(list) > MaxStatusesPerCall {
		return nil, fmt.Errorf("%w: %d signatures", ErrTooMany, len(list))
	}
	e := allNodes[NodeStatuses]{client: c, call: func(ctx context.Context, u *upstream, _ int) NodeStatuses { return c.nodeStatuses(ctx, u, list) }}
	return e.Run(ctx)
}

// nodeStatuses asks one node. The position comes first, so the statuses are at least as
// new if their slot is; the first block comes last, so that the node still had all of them
// when it searched for the statuses.
func (c *Client) nodeStatuses(ctx context.Context, u *upstream, list []solana.Signature) NodeStatuses {
	v := NodeStatuses{Upstream: u.name}
	v.Err = firstError(
		func() (err error) {
			v.Finalized, err = callNode(ctx, c, u, "getEpochInfo", position, object{"commitment": Finalized})
			return err
		},
		func() (err error) {
			v.Tip, err = callNode(ctx, c, u, "getBlockHeight", number, object{"commitment": Processed})
			return err
		},
		func() error {
			if len(list) == 0 {
				return nil
			}
			a, err := callNode(ctx, c, u, "getSignatureStatuses", statusesOf(len(list)), texts(list), object{"searchTransactionHistory": true})
			v.Slot, v.Statuses = a.slot, a.statuses
			return err
		},
		func() (err error) {
			v.First, err = firstBlock(ctx, c, u)
			return err
		},
	)
	if v.Err != nil {
		return NodeStatuses{Upstream: u.name, Err: v.Err}
	}
	return v
}

// firstBlock returns the first block of one node. Its height does not change, so a node is
// asked for it once. A node that does not return the block has an unknown height.
func firstBlock(ctx context.Context, c *Client, u *upstream) (FirstBlock, error) {
	slot, err := callNode(ctx, c, u, "getFirstAvailableBlock", number)
	f := FirstBlock{Slot: slot}
	if err != nil || f.All() {
		return f, err
	}
	if last := u.firstBlock(); last.Slot == slot {
		return last, nil
	}
	options := object{"commitment": Finalized, "transactionDetails": "none", "rewards": false, "maxSupportedTransactionVersion": 1}
	got, err := callNode(ctx, c, u, "getBlock", blockOf(slot), slot, options)
	if err != nil {
		return f, nil //nolint:nilerr // it may have deleted the block meanwhile
	}
	u.setFirstBlock(got)
	return got, nil
}

// blockOf returns the parser of getBlock's result.
func blockOf(slot uint64) func(json.RawMessage) (FirstBlock, error) {
	return func(result json.RawMessage) (f FirstBlock, err error) {
		v, err := into[*struct {
			Height *uint64 `json:"blockHeight"`
			Time   *int64  `json:"blockTime"`
		}](result)
		switch {
		case err != nil:
			return f, err
		case v == nil || v.Height == nil:
			return f, errMissing
		case *v.Height > slot:
			return f, fmt.Errorf("height %d at slot %d: %w", *v.Height, slot, errMismatch)
		}
		f.Slot, f.Height = slot, *v.Height
		if v.Time != nil {
			f.Time = *v.Time
		}
		return f, nil
	}
}

// NodeFirstBlock is one node's answer about its first block.
type NodeFirstBlock struct {
	Upstream string
	// Err, if set, is why First is zero.
	Err   error
	First FirstBlock
}

// FirstBlockFromEach asks every node, concurrently and once, for the first block that it
// still has. The results are in the order of the options. Errors: the context's once it
// has ended; a node's own is in its result.
func (c *Client) FirstBlockFromEach(ctx context.Context) ([]NodeFirstBlock, error) {
	e := allNodes[NodeFirstBlock]{client: c, call: func(ctx context.Context, u *upstream, _ int) NodeFirstBlock {
		first, err := firstBlock(ctx, c, u)
		if err != nil {
			first = FirstBlock{}
		}
		return NodeFirstBlock{u.name, err, first}
	}}
	return e.Run(ctx)
}

// firstError runs the steps until one fails.
func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Upstreams returns the number of nodes.
func (c *Client) Upstreams() int { return len(c.upstreams) }

// NodeGenesis is one node's answer about the first block of its chain.
type NodeGenesis struct {
	Upstream string
	// Err, if set, is why Hash is zero.
	Err  error
	Hash solana.Hash
}

// GenesisFromEach asks every node, concurrently and once, for the hash of the first block,
// which names the network. The results are in the order of the options. Errors: the
// context's once it has ended; a node's own is in its result.
func (c *Client) GenesisFromEach(ctx context.Context) ([]NodeGenesis, error) {
	e := allNodes[NodeGenesis]{client: c, call: func(ctx context.Context, u *upstream, _ int) NodeGenesis {
		hash, err := callNode(ctx, c, u, "getGenesisHash", genesis)
		return NodeGenesis{u.name, err, hash}
	}}
	return e.Run(ctx)
}

// genesis decodes getGenesisHash's result.
func genesis(result json.RawMessage) (solana.Hash, error) {
	text, err := into[string](result)
	if err != nil {
		return solana.Hash{}, err
	}
	return solana.ParseHash(text)
}

// NodeAccounts is one node's answer about some accounts.
type NodeAccounts struct {
	Upstream string
	// Err, if set, is why the node did not answer; all other fields are zero then.
	Err error
	// Slot is the slot of Accounts, which are in the order of the request; nil: the
	// account does not exist.
	Slot     uint64
	Accounts []*Account
}

// AccountsFromEach is [Client.Accounts] without trust in a single node: it asks every
// node, concurrently and once. With one node it is the same as Accounts, with its
// tries. The results are in the order of the options. It takes as long as the slowest
// node, Options.AttemptTimeout at most. Errors: [ErrTooMany]; the context's once it has
// ended; a node's own is in its result.
func (c *Client) AccountsFromEach(ctx context.Context, list []solana.Address, level Commitment, minSlot uint64) ([]NodeAccounts, error) {
	if len(list) > MaxAccountsPerCall {
		return nil, fmt.Errorf("%w: %d accounts", ErrTooMany, len(list))
	}
	if len(c.upstreams) == 1 {
		accounts, slot, err := c.Accounts(ctx, list, level, minSlot)
		return []NodeAccounts{viewOf(c.upstreams[0], accountsAnswer{accounts, slot}, err)}, nil
	}
	texts, options := accountsAt(list, level, minSlot)
	parse := accountsOf(list, minSlot)
	e := allNodes[NodeAccounts]{client: c, call: func(ctx context.Context, u *upstream, _ int) NodeAccounts {
		a, err := callNode(ctx, c, u, "getMultipleAccounts", parse, texts, options)
		return viewOf(u, a, err)
	}}
	return e.Run(ctx)
}

func viewOf(u *upstream, a accountsAnswer, err error) NodeAccounts {
	if err != nil {
		return NodeAccounts{Upstream: u.name, Err: err}
	}
	return NodeAccounts{Upstream: u.name, Slot: a.slot, Accounts: a.accounts}
}

// TransactionByQuorum is [Client.Transaction] without trust in a minority: more than half
// of the configured nodes must have the transaction and agree about it. A node that
// fails, rate-limits us or is silent agrees with nothing. BlockTime is 0 unless as many
// report the same time. found is false if no node that answers knows the transaction.
//
// It asks every node once, concurrently, and does not wait for one that cannot change
// the result. With one node it is the same as Transaction, with its tries. Errors:
// [ErrNoMajority] if some know the transaction and too few agree, joined with a failing
// node's [Error] if there is one; [ErrDisagree] if all that answer know it, and differ;
// the context's once it has ended; the first node's [Error] if none answers.
func (c *Client) TransactionByQuorum(ctx context.Context, s solana.Signature, level Commitment) (t *ledger.Confirmed, found bool, err error) {
	if len(c.upstreams) == 1 {
		return c.Transaction(ctx, s, level)
	}
	list, err := c.transactions(ctx, s, level, nil, isDecided)
	if err != nil {
		return nil, false, err
	}
	return agreed(s, list)
}

// FindTransaction is [Client.TransactionByQuorum] for a signature from outside: it asks
// one node first, another one at each call, and the others only if that node knows the
// transaction. So a signature that somebody invents costs one call, not one of every
// node. A node that fails is replaced by the next one. It takes at most Options.Timeout
// and Options.AttemptTimeout together.
func (c *Client) FindTransaction(ctx context.Context, s solana.Signature, level Commitment) (t *ledger.Confirmed, found bool, err error) {
	if len(c.upstreams) == 1 {
		return c.Transaction(ctx, s, level)
	}
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	asked := make([]*nodeTransaction, len(c.upstreams))
	known := false
	for _, at := range c.rotation() {
		var got nodeTransaction
		got.Confirmed, got.err = callNode(ctx, c, c.upstreams[at], "getTransaction", transactionOf(s), s.String(), transactionAt(level))
		asked[at] = &got
		if err := whole.Err(); err != nil {
			return nil, false, fmt.Errorf("rpc: requesting %s: %w", s, err)
		}
		if got.err == nil {
			known = got.Confirmed != nil
			break
		}
	}
	if !known {
		list := make([]nodeTransaction, len(asked))
		for at, got := range asked {
			if got == nil || got.err == nil {
				return nil, false, nil
			}
			list[at] = *got
		}
		return agreed(s, list) // no node answers
	}
	list, err := c.transactions(whole, s, level, asked, isDecided)
	if err != nil {
		return nil, false, err
	}
	return agreed(s, list)
}

// TransactionByMajority is [Client.TransactionByQuorum] for what is only displayed: more
// than half of the nodes that *answer* must agree about the transaction. found is false
// if none knows it. It does not wait for a node that cannot change the result. Errors:
// [ErrNoMajority] if some know it and no majority does (it may not be final yet on the
// others); [ErrDisagree] if all know it and no majority agrees; the context's once it
// has ended; the first node's [Error] if none answers.
func (c *Client) TransactionByMajority(ctx context.Context, s solana.Signature, level Commitment) (t *ledger.Confirmed, found bool, err error) {
	if len(c.upstreams) == 1 {
		return c.Transaction(ctx, s, level)
	}
	list, err := c.transactions(ctx, s, level, nil, hasMajority)
	if err != nil {
		return nil, false, err
	}
	return byMajority(s, list)
}

// NodeTransaction is one node's answer about a transaction.
type NodeTransaction struct {
	Upstream string
	// Err is why Transaction is nil. If both are nil, the node does not know the
	// transaction, or not at this level yet.
	Err         error
	Transaction *ledger.Confirmed
}

// TransactionFromEach returns what every node reports of a transaction, for a caller that
// weighs the answers itself. It asks every node concurrently and once; with one node it is
// the same as Transaction, with its tries. The results are in the order of the options. It
// takes as long as the slowest node, Options.AttemptTimeout at most. Errors: the context's
// once it has ended; a node's own is in its result.
func (c *Client) TransactionFromEach(ctx context.Context, s solana.Signature, level Commitment) ([]NodeTransaction, error) {
	if len(c.upstreams) == 1 {
		t, _, err := c.Transaction(ctx, s, level)
		return []NodeTransaction{{c.upstreams[0].name, err, t}}, nil
	}
	list, err := c.transactions(ctx, s, level, nil, nil)
	if err != nil {
		return nil, err
	}
	views := make([]NodeTransaction, len(list))
	for i := range list {
		views[i] = NodeTransaction{c.upstreams[i].name, list[i].err, list[i].Confirmed}
	}
	return views, nil
}

// transactions asks every node that asked has no answer of, until enough returns true if
// that is not nil.
func (c *Client) transactions(
	ctx context.Context, s solana.Signature, level Commitment, asked []*nodeTransaction, enough func([]nodeTransaction) bool,
) ([]nodeTransaction, error) {
	name, options, parse := s.String(), transactionAt(level), transactionOf(s)
	e := allNodes[nodeTransaction]{client: c, enough: enough, call: func(ctx context.Context, u *upstream, at int) nodeTransaction {
		if at < len(asked) && asked[at] != nil {
			return *asked[at]
		}
		t, err := callNode(ctx, c, u, "getTransaction", parse, name, options)
		return nodeTransaction{t, err}
	}}
	return e.Run(ctx)
}

// NodeSignatures is one node's list of an account's transactions.
type NodeSignatures struct {
	Upstream string
	// Err is why List is nil.
	Err error
	// List is the requested page, newest first.
	List []SignatureInfo
}

// SignaturePageFromEach is [Client.Signatures] without trust in a single node: it asks
// every node for the same page, concurrently and once. With one node it is the same as
// Signatures, with its tries. The results are in the order of the options. It takes as
// long as the slowest node, Options.AttemptTimeout at most. Errors: [ErrTooMany]; the
// context's once it has ended; a node's own is in its result.
func (c *Client) SignaturePageFromEach(ctx context.Context, a solana.Address, page Page, level Commitment) ([]NodeSignatures, error) {
	options, err := page.options(level)
	if err != nil {
		return nil, err
	}
	if len(c.upstreams) == 1 {
		list, err := c.Signatures(ctx, a, page, level)
		return []NodeSignatures{{c.upstreams[0].name, err, list}}, nil
	}
	text, parse := solana.Base58(a), signaturesOf(page.limit())
	e := allNodes[NodeSignatures]{client: c, call: func(ctx context.Context, u *upstream, _ int) NodeSignatures {
		list, err := callNode(ctx, c, u, "getSignaturesForAddress", parse, text, options)
		return NodeSignatures{u.name, err, list}
	}}
	return e.Run(ctx)
}

// NodeHistory is one node's complete list of an account's transactions.
type NodeHistory struct {
	Upstream string
	// Err is why List is nil: the node failed, is behind the required slot, or has more
	// transactions than the limit ([ErrTooMany]).
	Err error
	// List is all finalized transactions that contain the account, newest first.
	List []SignatureInfo
	// First is the first block that the node still had after it listed them.
	First FirstBlock
}

// SignaturesFromEach asks the nodes of some results, concurrently, for all finalized
// transactions that contain an account, each at its own finalized slot or later. A node
// whose result has an error keeps it; after the context has ended all have its error. A
// node with more than most transactions returns [ErrTooMany].
func (c *Client) SignaturesFromEach(ctx context.Context, a solana.Address, views []NodeStatuses, most int) []NodeHistory {
	e := allNodes[NodeHistory]{client: c, call: func(ctx context.Context, u *upstream, i int) NodeHistory {
		h := NodeHistory{Upstream: u.name}
		switch {
		case i >= len(views) || views[i].Upstream != u.name:
			h.Err = &Error{Kind: Down, Upstream: u.name, Method: "getSignaturesForAddress", Err: errMissing}
		case views[i].Err != nil:
			h.Err = views[i].Err
		default:
			list, err := c.history(ctx, u, a, views[i].Finalized.Slot, most)
			if err == nil {
				h.First, err = firstBlock(ctx, c, u)
			}
			if h.Err = err; err == nil {
				h.List = list
			}
		}
		return h
	}}
	list, err := e.Run(ctx)
	if err != nil {
		for _, u := range c.upstreams {
			list = append(list, NodeHistory{Upstream: u.name, Err: err})
		}
	}
	return list
}

// history reads all pages.
func (c *Client) history(ctx context.Context, u *upstream, a solana.Address, slot uint64, most int) ([]SignatureInfo, error) {
	var list []SignatureInfo
	for {
		options := object{"commitment": Finalized, "limit": MaxSignaturesPerCall, "minContextSlot": slot}
		if len(list) > 0 {
			options["before"] = list[len(list)-1].Signature.String()
		}
		page, err := callNode(ctx, c, u, "getSignaturesForAddress", signaturesOf(MaxSignaturesPerCall), solana.Base58(a), options)
		if err != nil {
			return nil, err
		}
		list = append(list, page...)
		switch {
		case len(list) > most:
			return nil, fmt.Errorf("%w: %s is named more than %d times", ErrTooMany, solana.Base58(a), most)
		case len(page) < MaxSignaturesPerCall:
			return list, nil
		}
	}
}

// allNodes calls all nodes concurrently.
type allNodes[T any] struct {
	client *Client
	call   func(ctx context.Context, u *upstream, i int) T
	// enough, if set, is called after each answer with all answers so far (missing ones
	// are zero), and ends the calls when it returns true.
	enough  func(answers []T) bool
	answers []T
}

// Run returns the answers when all have arrived, enough returns true, or Options.Timeout
// has passed. If the context has ended it returns the context's error, because the answers
// that are missing might have differed, so the others may not be a majority.
func (e *allNodes[T]) Run(whole context.Context) ([]T, error) {
	ctx, cancel := context.WithTimeout(whole, e.client.options.Timeout)
	defer cancel()
	e.answers = make([]T, len(e.client.upstreams))
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, u := range e.client.upstreams {
		wg.Go(func() {
			answer := e.call(ctx, u, i)
			mu.Lock()
			defer mu.Unlock()
			e.answers[i] = answer
			if e.enough != nil && e.enough(e.answers) {
				cancel()
			}
		})
	}
	wg.Wait()
	if err := whole.Err(); err != nil {
		return nil, fmt.Errorf("rpc: calling all nodes: %w", err)
	}
	return e.answers, nil
}

// callNode calls one node once.
func callNode[T any](ctx context.Context, c *Client, u *upstream, method string, parse func(json.RawMessage) (T, error), params ...any) (T, error) {
	q, err := newRequest(c, method, parse, params)
	if err != nil {
		var none T
		return none, err
	}
	return attempt(ctx, c, u, &q)
}
