package quorum

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"blockdesk/persist/journaltest"
)

// lateTransport answers a call when the test says so.
type lateTransport struct {
	transport
	called chan struct{}
	answer chan bool
}

func (l *lateTransport) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, _ *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	l.called <- struct{}{}
	resp.Success = <-l.answer
	return nil
}

// TestAckTransport: an answer counts if it was asked for in the round or later, in the
// term, by a voter that follows.
func TestAckTransport(t *testing.T) {
	late := &lateTransport{called: make(chan struct{}), answer: make(chan bool)}
	w := newAckTransport(late, time.Hour)
	voters := []raft.Server{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "n", Suffrage: raft.Nonvoter}}
	var calls sync.WaitGroup
	call := func(id raft.ServerID, term uint64) {
		calls.Go(func() {
			_ = w.AppendEntries(id, "", &raft.AppendEntriesRequest{Term: term}, &raft.AppendEntriesResponse{})
		})
		<-late.called
	}
	answer := func(success bool) { late.answer <- success; calls.Wait() }
	have := func(c confirmation) bool { ok, _ := w.majority("a", voters, c); return ok }

	call("b", 7) // before the round, answered in it: it lay in a buffer
	c := confirmation{term: 7, round: w.begin()}
	answer(true)
	if have(c) {
		t.Error("an answer to a question of before counts")
	}
	for _, s := range []struct {
		what    string
		id      raft.ServerID
		term    uint64
		success bool
	}{{"a non-voter", "n", 7, true}, {"a voter that does not follow", "b", 7, false}, {"another term", "b", 6, true}} {
		call(s.id, s.term)
		answer(s.success)
		if have(c) {
			t.Errorf("%s counts", s.what)
		}
	}
	_, again := w.majority("a", voters, c)
	call("c", 7)
	answer(true)
	<-again
	if !have(c) {
		t.Error("a majority has answered")
	}
	if ok, _ := w.majority("z", voters, c); ok {
		t.Error("a leader without a voice counts itself")
	}
	if have(confirmation{term: 7, round: w.begin()}) {
		t.Error("the answers of one round count in the next")
	}
}

// blockedPipeline blocks until it is closed.
type blockedPipeline struct {
	raft.AppendPipeline
	closed chan struct{}
	once   sync.Once
}

func (p *blockedPipeline) AppendEntries(*raft.AppendEntriesRequest, *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	<-p.closed
	return nil, raft.ErrPipelineShutdown
}

func (p *blockedPipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (l *lateTransport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return &blockedPipeline{closed: make(chan struct{})}, nil
}

// TestStuckPipeline: a pipeline that blocks is closed, so that raft continues without
// it.
func TestStuckPipeline(t *testing.T) {
	p, err := newAckTransport(&lateTransport{}, time.Millisecond).AppendEntriesPipeline("b", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.AppendEntries(nil, nil); !errors.Is(err, raft.ErrPipelineShutdown) {
		t.Errorf("it ends with %v", err)
	}
}

// TestShare: calls that arrive while a round is under way share the next one.
func TestShare(t *testing.T) {
	b := newBarrier()
	first := b.join()
	if b.join() != first || len(b.requested) != 1 {
		t.Error("two rounds for two calls before the first began")
	}
	<-b.requested
	if b.begin() != first {
		t.Error("another round begins than was joined")
	}
	if next := b.join(); next == first || b.join() != next || len(b.requested) != 1 {
		t.Error("a call after the round began shares it")
	}
}

// TestVerifyMany: concurrent calls, on one node and on three, all succeed; a call ends
// with its own context; a node that has stopped confirms nothing.
func TestVerifyMany(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		c := newCluster(t, n, nil)
		ref := journaltest.NewReference(journaltest.Commands(50, 15))
		id, term := c.lead()
		if err := newWriter(t, term).append(ref.Commands[:20]); err != nil {
			t.Fatal(err)
		}
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				for range 10 {
					if err := term.VerifyLeader(t.Context()); err != nil && (n == 1 || !errors.Is(err, ErrDeposed)) {
						t.Errorf("%d nodes: %v", n, err)
					}
				}
			})
		}
		callers.Wait()
		if got := c.members[id].node.Counts().Verifications; got == 0 || got > 500 && n == 1 {
			t.Errorf("%d nodes: %d rounds for 500 calls", n, got)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := term.VerifyLeader(cancelled); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrDeposed) {
			t.Errorf("%d nodes: for a caller that has gone: %v", n, err)
		}
		if err := c.stop(id); err != nil {
			t.Fatal(err)
		}
		if err := term.VerifyLeader(t.Context()); !errors.Is(err, ErrDeposed) {
			t.Errorf("%d nodes: after the stop: %v", n, err)
		}
	}
}
