// Package search finds the desk's own transactions on the chain by a reference that they
// contain. It is for transactions whose record the desk has lost, for example with the
// journal after the restore of an old backup: nothing is signed again while one may be
// there.
//
// No single node is trusted. A node that hides a transaction is outvoted, one that invents
// a transaction cannot sign it, one that lists a transaction that no node returns delays
// nothing, and one that no longer has the blocks, or was begun from a snapshot after them,
// has no vote.
//
// Cost: one list of signatures and the first block from each node, and a transaction for each
// that is not known; at most Max of a node's list are read. A search has no state of its own.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
)

// Max bounds the transactions that are read of each node's list, the newest first. A
// stranger can name a reference more often. Each costs us one read of every node.
const Max = 32

var (
	// ErrNodes says that too few of the configured nodes answer. It wraps the error of one
	// that does not, if there is one.
	ErrNodes = errors.New("search: no majority of the nodes answered")
	// ErrHistory says that too few of the nodes that answer have every block since
	// Search.Since.
	ErrHistory = errors.New("search: too few nodes have the blocks")
	// ErrUnread says that a majority lists a transaction that no node returns.
	ErrUnread = errors.New("search: no node returned a transaction that is listed")
)

// Node asks each configured node; *rpc.Client is one.
type Node interface {
	SignaturePageFromEach(ctx context.Context, a solana.Address, page rpc.Page, level rpc.Commitment) ([]rpc.NodeSignatures, error)
	TransactionFromEach(ctx context.Context, s solana.Signature, level rpc.Commitment) ([]rpc.NodeTransaction, error)
	FirstBlockFromEach(ctx context.Context) ([]rpc.NodeFirstBlock, error)
}

// Search is a search for one transaction.
type Search struct {
	// Reference is an account that the transaction contains.
	Reference solana.Address
	// Since is a slot before which the transaction cannot be: that of a payment that it
	// follows. 0 means unknown: then only a node with all blocks has a vote.
	Since uint64
	// Known are signatures that are not searched for.
	Known []solana.Signature
	// Ours reports whether a message has the form of what is searched for, and has our
	// key among its signers. The signatures are verified before.
	Ours func(message []byte) bool
}

// Result is what a search has found.
type Result struct {
	// Found is a confirmed transaction that has not failed, as one node reports it: only
	// its signatures and its message are certain. Nil if there is none.
	Found *ledger.Confirmed
	// More: there were more than Max transactions, and not all were read.
	More bool
}

// Run searches the chain. It reports that there is no such transaction only if a majority
// of the configured nodes has answered every question, none of them has it, and each still
// had every block since Since after that; one is enough to find it. A transaction has
// failed only if a majority says so. Errors: [ErrNodes], [ErrHistory], [ErrUnread], the
// context's.
func (s *Search) Run(ctx context.Context, n Node) (Result, error) {
	pages, err := n.SignaturePageFromEach(ctx, s.Reference, rpc.Page{Limit: min(Max+1+len(s.Known), rpc.MaxSignaturesPerCall)}, rpc.Confirmed)
	if err != nil {
		return Result{}, err
	}
	listed, more, err := s.count(pages)
	if err != nil {
		return Result{}, err
	}
	majority := len(pages)/2 + 1
	answered := make([]bool, len(pages))
	for i := range pages {
		answered[i] = pages[i].Err == nil
	}
	for i := range listed {
		x := &listed[i]
		if x.failed >= majority {
			continue
		}
		t, err := s.read(ctx, n, x, answered)
		if err != nil || t != nil {
			return Result{Found: t, More: more}, err
		}
	}
	return Result{More: more}, s.confirm(ctx, n, answered)
}

// confirm returns nil if a majority of the nodes has answered everything and has the
// blocks in which the transaction could be.
func (s *Search) confirm(ctx context.Context, n Node, answered []bool) error {
	firsts, err := n.FirstBlockFromEach(ctx)
	if err != nil {
		return err
	}
	votes, pruned := 0, 0
	var failure error
	for i := range firsts {
		f := &firsts[i]
		switch {
		case f.Err != nil:
			failure = f.Err
		case i >= len(answered) || !answered[i]:
		case f.First.HasSlot(s.Since):
			votes++
		default:
			pruned++
		}
	}
	switch majority := len(answered)/2 + 1; {
	case votes >= majority:
		return nil
	case votes+pruned >= majority:
		return fmt.Errorf("%w since slot %d: %d of %d", ErrHistory, s.Since, votes, len(answered))
	default:
		return errors.Join(fmt.Errorf("%w: %d of %d", ErrNodes, votes, len(answered)), failure)
	}
}

// listing is how many nodes list a transaction, and as one that has failed.
type listing struct {
	signature      solana.Signature
	listed, failed int
}

// count returns the transactions that at least one node lists, without the known ones.
func (s *Search) count(pages []rpc.NodeSignatures) (all []listing, more bool, err error) {
	answered := 0
	var failure error
	for i := range pages {
		if failed := pages[i].Err; failed != nil {
			failure = failed
			continue
		}
		answered++
		list := slices.DeleteFunc(slices.Clone(pages[i].List), func(x rpc.SignatureInfo) bool { return slices.Contains(s.Known, x.Signature) })
		more = more || len(list) > Max
		for k := range list[:min(len(list), Max)] {
			at := slices.IndexFunc(all, func(x listing) bool { return x.signature == list[k].Signature })
			if at < 0 {
				at, all = len(all), append(all, listing{signature: list[k].Signature})
			}
			all[at].listed++
			if list[k].Failed {
				all[at].failed++
			}
		}
	}
	if answered < len(pages)/2+1 {
		return nil, false, errors.Join(fmt.Errorf("%w: %d of %d nodes returned the list", ErrNodes, answered, len(pages)), failure)
	}
	return all, more, nil
}

// read returns a listed transaction if it is ours and has not failed, else nil. It clears
// answers of nodes that do not answer.
func (s *Search) read(ctx context.Context, n Node, x *listing, answers []bool) (ours *ledger.Confirmed, err error) {
	views, err := n.TransactionFromEach(ctx, x.signature, rpc.Confirmed)
	if err != nil {
		return nil, err
	}
	majority := len(views)/2 + 1
	answered, known, failed := 0, 0, 0
	var failure error
	for i := range views {
		t := views[i].Transaction
		invented := t != nil && !t.IsSigned()
		if views[i].Err != nil || invented {
			failure = cmp.Or(views[i].Err, failure)
			answers[i] = false
			continue
		}
		answered++
		if t == nil {
			continue
		}
		known++
		if t.Failed {
			failed++
		}
		if s.Ours(t.Tx.Signed) && (ours == nil || !t.Failed) {
			ours = t
		}
	}
	switch {
	case ours != nil && failed < majority:
		return ours, nil
	case answered < majority:
		return nil, errors.Join(fmt.Errorf("%w: %d of %d nodes answered about transaction %s", ErrNodes, answered, len(views), x.signature), failure)
	case known == 0 && x.listed >= majority:
		return nil, fmt.Errorf("%w: %s", ErrUnread, x.signature)
	}
	return nil, nil
}
