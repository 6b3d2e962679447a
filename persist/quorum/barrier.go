package quorum

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// transport is what raft is given: its own, with what it looks for beside it.
type transport interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// witness listens to the calls that this node's raft makes to its peers, and notes
// who has taken this node for the leader, and when it was asked. Raft's own
// VerifyLeader counts answers of before it was asked, which may lie in a buffer for
// as long as the process did not run, and those of nodes without a voice.
type ackTransport struct {
	transport
	stall time.Duration // a pipeline's patience

	mu      sync.Mutex
	round   uint64 // counts the rounds of verification
	acked   map[raft.ServerID]confirmation
	changed chan struct{} // closed, and made anew, at each confirmation
}

// confirmation: a peer has followed the leader of term when asked at round or
// later.
type confirmation struct{ term, round uint64 }

func newAckTransport(t transport, stall time.Duration) *ackTransport {
	return &ackTransport{transport: t, stall: stall, acked: map[raft.ServerID]confirmation{}, changed: make(chan struct{})}
}

// AppendEntries implements raft.Transport: heartbeats come this way.
func (w *ackTransport) AppendEntries(
	id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	w.mu.Lock()
	round := w.round
	w.mu.Unlock()
	err := w.transport.AppendEntries(id, to, args, resp)
	if err == nil && resp.Success {
		w.confirm(id, confirmation{term: args.Term, round: round})
	}
	return err
}

// AppendEntriesPipeline implements raft.Transport.
func (w *ackTransport) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := w.transport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return &pipeline{AppendPipeline: p, timeout: w.stall}, nil
}

func (w *ackTransport) confirm(id raft.ServerID, c confirmation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.acked[id]
	if c.term < was.term || c.term == was.term && c.round <= was.round {
		return
	}
	w.acked[id] = c
	close(w.changed)
	w.changed = make(chan struct{})
}

// begin begins a round: what is asked from now on counts for it.
func (w *ackTransport) begin() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.round++
	return w.round
}

// majority reports whether most of the voters have confirmed, the node itself
// counted, and when to look again.
func (w *ackTransport) majority(self raft.ServerID, voters []raft.Server, c confirmation) (ok bool, again <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	have, all := 0, 0
	for i := range voters {
		if voters[i].Suffrage != raft.Voter {
			continue
		}
		all++
		if h := w.acked[voters[i].ID]; voters[i].ID == self || h.term == c.term && h.round >= c.round {
			have++
		}
	}
	return 2*have > all, w.changed
}

// errUnconfirmed: a majority has not answered within Options.Timeout.
var errUnconfirmed = errors.New("no majority has confirmed it yet")

// barrier gathers who waits for a confirmation: one round is under way at a time,
// and all who came meanwhile share the next one.
type barrier struct {
	mu        sync.Mutex
	next      *round
	requested chan struct{}
}

// round is one confirmation of the leadership, for many.
type round struct {
	done chan struct{}
	term uint64 // raft's, confirmed where err is nil
	err  error
}

func newBarrier() *barrier {
	return &barrier{next: &round{done: make(chan struct{})}, requested: make(chan struct{}, 1)}
}

// join returns the round that has not begun.
func (b *barrier) join() *round {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.requested <- struct{}{}:
	default:
	}
	return b.next
}

// begin closes the round to who comes later.
func (b *barrier) begin() *round {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.next
	b.next = &round{done: make(chan struct{})}
	return r
}

// Verify returns nil when a majority has confirmed, after the call, that this node
// still leads in this term: what was acknowledged by any leader before the call is
// then in this node's state, and nobody else has acknowledged anything, so a read that
// comes after is linearizable; who reads a view behind the engine also waits for that
// one (engine.Consumer.Await). It costs a heartbeat to the others and no disk; many
// callers share one. Errors: ctx's; else it wraps ErrDeposed.
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

// confirm runs rounds until end is closed.
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

// verifyOnce asks the others once.
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
	patience := time.NewTimer(n.o.Timeout)
	defer patience.Stop()
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
		case <-patience.C:
			return 0, errUnconfirmed
		}
	}
	if r.State() != raft.Leader || r.CurrentTerm() != term {
		return 0, raft.ErrNotLeader
	}
	return term, nil
}
