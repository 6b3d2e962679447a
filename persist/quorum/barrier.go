package quorum

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// transport is what raft needs of a transport.
type transport interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// ackTransport records which peers have acknowledged this node as the leader, and in
// which round the acknowledged call was sent. Raft's own VerifyLeader also counts
// answers to earlier heartbeats, which may have waited in a buffer while the process was
// stopped, and those of non-voters.
type ackTransport struct {
	transport
	stall time.Duration // timeout of a pipeline

	mu      sync.Mutex
	round   uint64 // of verification
	acked   map[raft.ServerID]confirmation
	changed chan struct{} // closed and replaced at each confirmation
}

// confirmation: a peer has acknowledged the leader of term, in answer to a call that was
// sent in this round.
type confirmation struct{ term, round uint64 }

func newAckTransport(t transport, stall time.Duration) *ackTransport {
	return &ackTransport{transport: t, stall: stall, acked: map[raft.ServerID]confirmation{}, changed: make(chan struct{})}
}

// AppendEntries implements raft.Transport. Heartbeats use it.
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

// begin starts a round: only answers to calls made from now on count for it.
func (w *ackTransport) begin() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.round++
	return w.round
}

// majority reports whether a majority of the voters, including this node, has
// confirmed; again is closed when that may have changed.
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

// errUnconfirmed: no majority has answered within Options.Timeout.
var errUnconfirmed = errors.New("no majority has confirmed the leadership yet")

// barrier joins concurrent calls of VerifyLeader: one round runs at a time, and all
// calls that arrive meanwhile share the next one.
type barrier struct {
	mu        sync.Mutex
	next      *round
	requested chan struct{}
}

// round is one confirmation of the leadership, for all callers that have joined.
type round struct {
	done chan struct{}
	term uint64 // raft's; confirmed if err is nil
	err  error
}

func newBarrier() *barrier {
	return &barrier{next: &round{done: make(chan struct{})}, requested: make(chan struct{}, 1)}
}

// join returns the next round.
func (b *barrier) join() *round {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.requested <- struct{}{}:
	default:
	}
	return b.next
}

// begin closes the next round to new callers and returns it.
func (b *barrier) begin() *round {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.next
	b.next = &round{done: make(chan struct{})}
	return r
}
