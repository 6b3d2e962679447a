package broadcast

import (
	"context"
	"errors"
	"sync"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/tx"
)

func (t *Tracker) examineAll(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.examineWake:
		}
		for batch := t.takeUnexamined(); len(batch) > 0 && ctx.Err() == nil; batch = t.takeUnexamined() {
			t.examine(ctx, batch)
		}
	}
}

func (t *Tracker) takeUnexamined() []examination {
	t.mu.Lock()
	defer t.mu.Unlock()
	var batch []examination
	for len(t.unexamined) > 0 && len(batch) < rpc.MaxStatusesPerCall {
		e := t.unexamined[0]
		t.unexamined[0], t.unexamined = nil, t.unexamined[1:]
		if e.result.End != 0 {
			continue // a poll has found its end
		}
		batch = append(batch, examination{
			entry: e, signature: e.signature, lastValid: e.lastValid, lastValidEstimated: e.lastValidEstimated, deskPaysFee: e.deskPaysFee, at: -1,
			madeAt: e.madeAt, life: t.options.BlockhashLife,
		})
	}
	return batch
}

// examine asks every node about the signatures of a batch, and then about the
// references of those that no node knows by a signature.
func (t *Tracker) examine(ctx context.Context, batch []examination) {
	var signatures []solana.Signature
	for i := range batch {
		if x := &batch[i]; x.signature != (solana.Signature{}) {
			x.at = len(signatures)
			signatures = append(signatures, x.signature)
		}
	}
	views, err := t.node.StatusesFromEach(ctx, signatures)
	quorum := t.options.quorum(len(views))
	var searches []search
	for i := range batch {
		x := &batch[i]
		if err != nil {
			t.applyVerdict(x, verdict{is: verdictWait, problem: problemOf(err)})
			continue
		}
		if x.lastValidEstimated {
			x.estimateLastValid(views, quorum)
		}
		v := x.judge(views, quorum)
		if v.is == verdictAbsent || x.at < 0 {
			searches = append(searches, search{x, v})
		} else {
			t.applyVerdict(x, v)
		}
	}
	e := each[search]{list: searches, most: maxSearching, do: func(ctx context.Context, s search) {
		// A search can find the message, but not turn a wait into absence.
		if v := t.search(ctx, s.examination, views, quorum); s.verdict.is == verdictAbsent {
			v.past = s.verdict.past
			s.verdict = v
		}
		t.applyVerdict(s.examination, s.verdict)
	}}
	e.Run(ctx)
}

// search is an examination whose reference is to be searched, and its verdict so far.
type search struct {
	*examination
	verdict verdict
}

// applyVerdict applies a verdict, unless the entry has changed since the nodes were
// asked.
func (t *Tracker) applyVerdict(x *examination, v verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := x.entry
	e.examining = false
	switch {
	case e.result.End != 0:
	case e.signature != x.signature || e.lastValidEstimated != x.lastValidEstimated:
		t.pollIn(e, 0) // it was found, or has got its bytes
	case v.is == verdictFinalized:
		t.end(e, Finalized, v.status.Slot, "")
	case v.is == verdictFailed:
		t.end(e, Failed, v.status.Slot, v.status.Error)
	case v.is == verdictAbsent:
		t.end(e, Expired, 0, "")
	default:
		e.problem, e.lastValid, e.past = v.problem, x.lastValid, v.past
		t.pollIn(e, max(t.options.PollEvery, t.options.ResendEvery))
	}
}

// maxDoubted bounds the transactions that one search reads although enough nodes do not
// list them, because one node may list any number of inventions (our choice).
const maxDoubted = 32

// histories are the nodes' lists of the transactions that name a reference.
type histories struct {
	// votes are the nodes that list a transaction, of those that count in answered; order
	// has all that are listed, as the first node lists them.
	votes map[solana.Signature]int
	order []solana.Signature
	// answered have listed all and have every block that matters; pruned do not have those,
	// and tooMany have more than MaxHistory.
	answered, pruned, tooMany int
}

// listed asks the nodes for their histories. If the desk pays the fee, a history that is too
// long counts as an answer, because strangers' transactions do not matter then.
func (t *Tracker) listed(ctx context.Context, x *examination, views []rpc.NodeStatuses) histories {
	all := histories{votes: map[solana.Signature]int{}}
	for i, h := range t.node.SignaturesFromEach(ctx, x.reference, views, MaxHistory) {
		long := errors.Is(h.Err, rpc.ErrTooMany)
		first := &h.First
		switch {
		case long && !x.deskPaysFee:
			all.tooMany++
			continue
		case long:
			first = &views[i].First
		case h.Err != nil:
			continue
		}
		vote := 0
		if x.covers(first) {
			vote = 1
			all.answered++
		} else {
			all.pruned++
		}
		once := make(map[solana.Signature]bool, len(h.List))
		for k := range h.List {
			sig := h.List[k].Signature
			if once[sig] {
				continue
			}
			once[sig] = true
			if _, known := all.votes[sig]; !known {
				all.order = append(all.order, sig)
			}
			all.votes[sig] += vote
		}
	}
	return all
}

// search looks for the message among the transactions that name its reference;
// verdictAbsent means that enough nodes, which have every block that matters, do not have
// it there either. If it is found, its signature is looked for from now on. One node is
// enough to find it, but a transaction that enough nodes do not list and that no node
// returns is an invention. If the desk pays the fee, no other transaction is read, so that
// strangers, who may name the reference as often as they pay for it, do not delay the end.
func (t *Tracker) search(ctx context.Context, x *examination, views []rpc.NodeStatuses, quorum int) verdict {
	all := t.listed(ctx, x, views)
	doubted := 0
	for _, sig := range all.order {
		own := sig == x.signature
		doubt := all.answered-all.votes[sig] >= quorum
		switch {
		case own && !doubt:
			return verdict{is: verdictWait, problem: ProblemLanding}
		case !own && x.deskPaysFee:
			continue
		case doubt && doubted == maxDoubted:
			continue
		case doubt:
			doubted++
		}
		hash, found := t.message(ctx, sig)
		switch {
		case found && hash == x.hash:
			t.setSignature(x, sig)
			return verdict{is: verdictWait, problem: ProblemLanding}
		case !found && !doubt:
			return verdict{is: verdictWait, problem: ProblemUnread}
		}
	}
	switch {
	case all.answered >= quorum:
		return verdict{is: verdictAbsent}
	case all.tooMany > 0 && all.answered+all.tooMany >= quorum:
		return verdict{is: verdictWait, problem: ProblemHistoryLong}
	case all.pruned > 0 && all.answered+all.pruned >= quorum:
		return verdict{is: verdictWait, problem: ProblemTooOld}
	}
	return verdict{is: verdictWait, problem: ProblemNodesDown}
}

// message returns the hash of the message that has a signature. One honest node is enough,
// because a signature fits only one message.
func (t *Tracker) message(ctx context.Context, s solana.Signature) (hash solana.Hash, found bool) {
	views, err := t.node.TransactionFromEach(ctx, s, rpc.Finalized)
	if err != nil {
		return hash, false
	}
	for i := range views {
		if c := views[i].Transaction; c != nil && c.Signature() == s && c.IsSigned() {
			return tx.MessageHash(c.Tx.Signed), true
		}
	}
	return hash, false
}

// setSignature stores the signature under which the message is on the chain.
func (t *Tracker) setSignature(x *examination, sig solana.Signature) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.result.End == 0 {
		x.entry.signature = sig
		t.bySignature[sig] = x.entry
		t.markPast(x.entry) // only a search finds old ones
	}
}

// Run sends, polls, examines and reports until ctx ends, and returns nil after the
// last call has returned. It is called once.
func (t *Tracker) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for range t.options.MaxSending {
		wg.Go(func() { t.sendAll(ctx) })
	}
	for range t.options.MaxReporting {
		wg.Go(func() { t.reportAll(ctx) })
	}
	wg.Go(func() { t.pace(ctx) })
	wg.Go(func() { t.examineAll(ctx) })
	ticker := time.NewTicker(t.options.PollEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			t.pollDue(ctx)
		}
	}
	wg.Wait()
	return nil
}
