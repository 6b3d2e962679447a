package quorum

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// runVerifications runs rounds until end is closed.
func (n *Node) runVerifications(end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case <-n.barrier.requested:
		}
		r := n.barrier.begin()
		r.term, r.err = n.verifyOnce()
		n.counts.rounds.Add(1)
		close(r.done)
	}
}

// verifyOnce runs one round: it sends heartbeats and waits until a majority has
// confirmed.
func (n *Node) verifyOnce() (term uint64, err error) {
	r, err := n.acquire()
	if err != nil {
		return 0, err
	}
	defer n.proposals.Done()
	term = r.CurrentTerm()
	c := confirmation{term: term, round: n.acks.begin()}
	if err := r.VerifyLeader().Error(); err != nil { // which sends heartbeats at once
		return 0, err
	}
	timeout := time.NewTimer(n.o.Timeout)
	defer timeout.Stop()
	for {
		members := r.GetConfiguration()
		if err := members.Error(); err != nil {
			return 0, err
		}
		ok, again := n.acks.majority(raft.ServerID(n.o.ID), members.Configuration().Servers, c)
		if ok {
			break
		}
		select {
		case <-again:
		case <-timeout.C:
			return 0, errUnconfirmed
		}
	}
	if r.State() != raft.Leader || r.CurrentTerm() != term {
		return 0, raft.ErrNotLeader
	}
	return term, nil
}

// VerifyLeader returns nil when a majority has confirmed, after the call, that this
// node still leads in this term. Then this node's state has everything that any leader
// acknowledged before the call, so a read that follows is linearizable; a reader of a
// view that is behind the engine also waits with engine.Consumer.Await. It costs a
// heartbeat to each peer and no disk; concurrent calls share one. Errors: ctx's; else
// it wraps ErrDeposed.
func (t *Term) VerifyLeader(ctx context.Context) error {
	for {
		if err := t.Err(); err != nil {
			return err
		}
		r := t.node.barrier.join()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.done:
			return t.Err()
		case <-r.done:
		}
		switch {
		case errors.Is(r.err, errUnconfirmed):
			continue
		case errors.Is(r.err, raft.ErrLeadershipTransferInProgress):
			return &DeposedError{Leader: t.node.Leader(), Err: r.err}
		case r.err != nil:
			return t.fail(r.err)
		case r.term != t.Number:
			return t.fail(ErrDeposed)
		}
		return t.Err()
	}
}
