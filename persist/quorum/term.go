package quorum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/persist"
)

// ErrRecoverAfterAppend refuses a Recover after the first Append.
var ErrRecoverAfterAppend = errors.New("quorum: Recover was called after the term's first Append")

// DeposedError says that a term is over and which node leads. It wraps ErrDeposed and,
// in Err, what ended the term. Commands under way then may be committed or not; the
// next leader's state decides.
type DeposedError struct {
	// Leader is the current leader; without an ID this node knows none.
	Leader Peer
	Err    error
}

// Error names the leader.
func (e *DeposedError) Error() string {
	if e.Leader.ID == "" {
		return fmt.Sprintf("%v, no leader is known: %v", ErrDeposed, e.Err)
	}
	return fmt.Sprintf("%v, the leader is %s at %s: %v", ErrDeposed, e.Leader.ID, e.Leader.Address, e.Err)
}

// Unwrap returns ErrDeposed and Err.
func (e *DeposedError) Unwrap() []error { return []error{ErrDeposed, e.Err} }

// Term is one node's time as the leader: a journal that continues after all committed
// frames, the state there, and the replicated stores. Use it like persist.Store:
// Recover, then an engine with the term as its journal. When the term ends, the caller
// must discard the engine and all that was built on it; the next Term starts from what is
// committed.
type Term struct {
	// Number is raft's term, which grows from leader to leader. Two terms of one node
	// have the same number if no other node led between them.
	Number uint64

	node   *Node
	start  uint64 // index of the term's first entry
	format uint16
	check  engine.FormatCheck // of the commands, in a format before the newest

	wake      atomic.Pointer[chan<- struct{}]
	snapshots *snapshotCache

	mu      sync.Mutex
	over    error // set once
	done    chan struct{}
	stores  map[string]*Store
	durable persist.Position // after the last acknowledged frame

	// Used by Append alone.
	at       persist.Position
	appended bool
	frames   []byte
}

var _ engine.Journal = (*Term)(nil)

// AwaitTerm waits until this node leads and its previous term is over, and starts a
// term. When it returns, everything that earlier leaders have acknowledged is in this
// node's log, and nothing of theirs can follow. Errors: ctx's; ErrStopped; the node's
// failure.
func (n *Node) AwaitTerm(ctx context.Context) (*Term, error) {
	// A failed transfer leaves this node the leader without a notification.
	again := time.NewTicker(n.o.Timeout)
	defer again.Stop()
	for {
		n.mu.Lock()
		changed, r, failure, term := n.changed, n.raft, n.failure, n.term
		stopping := n.stopping
		n.mu.Unlock()
		switch {
		case failure != nil:
			return nil, failure
		case stopping:
			return nil, ErrStopped
		}
		if r != nil && r.State() == raft.Leader && (term == nil || term.Err() != nil) {
			if t, err := n.begin(r); err == nil {
				return t, nil
			} else if !deposed(err) {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		case <-again.C:
		case <-n.broken:
		}
	}
}

// deposed reports whether err says that another node leads, or may lead.
func deposed(err error) bool {
	for _, is := range []error{
		raft.ErrNotLeader, raft.ErrLeadershipLost, raft.ErrLeadershipTransferInProgress, raft.ErrAbortedByRestore, raft.ErrRaftShutdown, errStale,
	} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// begin commits the entry that starts a term. This leader commits it, so everything
// before it in the log is committed too.
func (n *Node) begin(r *raft.Raft) (*Term, error) {
	number := r.CurrentTerm()
	got, err := n.commit(tag{kind: termStartKind}, nil)
	if err != nil {
		return nil, err
	}
	b, ok := got.(termStarted)
	if !ok {
		return nil, fmt.Errorf("quorum: the entry that starts a term returned %T, want termStarted", got)
	}
	if err := n.beginFormat(b); err != nil {
		return nil, err
	}
	t := &Term{Number: number, node: n, start: b.index, format: n.Format(), at: b.at, durable: b.at, done: make(chan struct{}), stores: map[string]*Store{}}
	t.snapshots = &snapshotCache{status: n.snapshotStatus, frames: &n.machine.frames, now: time.Now}
	n.mu.Lock()
	n.term = t
	n.mu.Unlock()
	if r.State() != raft.Leader || r.CurrentTerm() != number {
		t.end(ErrDeposed) // watch may have checked before this term existed
	}
	n.counts.terms.Add(1)
	n.o.Logger.Info("this node became the leader", "node", n.o.ID, "term", number, "last_seq", b.at.Last(), "epoch", b.at.Epoch)
	return t, nil
}

// Done returns a channel that is closed when the term ends.
func (t *Term) Done() <-chan struct{} { return t.done }

// Err returns nil while the term lasts, then a *DeposedError.
func (t *Term) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over == nil {
		return nil
	}
	return &DeposedError{Leader: t.node.Leader(), Err: t.over}
}

// fail ends the term, if it lasts, and returns its error.
func (t *Term) fail(why error) error {
	t.end(why)
	return t.Err()
}

// end ends the term, if it lasts, and wakes the callers that wait in its stores. The
// caller must hold no lock of a store.
func (t *Term) end(why error) {
	var stores []*Store
	t.mu.Lock()
	if t.over == nil {
		t.over = why
		close(t.done)
		for _, s := range t.stores {
			stores = append(stores, s)
		}
	}
	t.mu.Unlock()
	for _, s := range stores {
		s.wake()
	}
	t.snapshots.close()
	t.node.notifyChange()
}

// Recover returns the replica of everything committed, after it has called visit, which
// may be nil and must not keep the slice, with the events of each command above floor,
// in order. It may be called again, with another floor, before the first Append. The
// error wraps projection.ErrPruned if this node does not have all of these events, or
// ErrDeposed.
func (t *Term) Recover(floor uint64, visit func([]event.Event)) (*engine.Replica, error) {
	if t.appended {
		return nil, ErrRecoverAfterAppend
	}
	give := make(chan handover, 1)
	call := func(w *standby) error { return w.handOver(floor, visit, give) }
	if err := t.node.standby.enqueue(job{call: call}); err != nil {
		return nil, t.fail(ErrStopped)
	}
	select {
	case got := <-give:
		if got.err == nil && got.next != t.at.Next {
			return nil, t.fail(fmt.Errorf("seq %d: the replica is not where the term began, at seq %d: %w", got.next-1, t.at.Next-1, errStale))
		}
		return got.replica, got.err
	case <-t.node.standby.stopped:
		return nil, t.fail(ErrStopped)
	}
}

// Append implements engine.Journal. The frame is one entry of the log. Append returns
// when a majority has it on disk and this node has accepted it. Every error wraps
// ErrDeposed and is final; whether the frame is committed is known from the next
// leader.
func (t *Term) Append(prior uint64, a, b []engine.Command) error {
	if err := t.Err(); err != nil {
		return err
	}
	t.appended = true
	if err := t.checkFormat(a, b); err != nil {
		return t.fail(err)
	}
	f := persist.Frame{Epoch: t.at.Epoch, Previous: t.at.Hash, EventHash: prior}
	var err error
	if t.frames, err = persist.AppendFrame(t.frames[:0], &f, a, b); err != nil {
		return t.fail(err)
	}
	after := t.at
	if err := after.Advance(&f, persist.HashFrame(t.frames)); err != nil {
		return t.fail(err)
	}
	began := time.Now()
	// Raft keeps the bytes.
	if _, err := t.node.commit(tag{kind: frameKind, termStart: t.start}, bytes.Clone(t.frames)); err != nil {
		return t.fail(err)
	}
	t.node.counts.acks.Wrote(len(t.frames))
	t.node.counts.acks.Synced(began)
	t.at = after
	t.acknowledge(after)
	return nil
}

// acknowledge moves Durable and wakes the reader of the frames.
func (t *Term) acknowledge(at persist.Position) {
	t.mu.Lock()
	t.durable = at
	t.mu.Unlock()
	if wake := t.wake.Load(); wake != nil {
		select {
		case *wake <- struct{}{}:
		default:
		}
	}
}

// Store returns the replicated store of a name of 1 to MaxStoreName letters a to z; the
// same one for the same name. It panics on another name, and above MaxStores.
func (t *Term) Store(name string) *Store {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stores[name]
	if s == nil {
		if !validStoreName(name) {
			panic("quorum: invalid store name " + strconv.Quote(name))
		}
		if len(t.stores) == MaxStores {
			panic("quorum: too many stores")
		}
		s = newStore(t, name)
		t.stores[name] = s
	}
	return s
}

// NewestSnapshot returns the position of the snapshot that ReadSnapshot returns, and
// false while the log starts with the first frame. It is raft's newest snapshot, or the
// one of up to snapshotRenew ago. Any goroutine; it waits for no disk.
func (t *Term) NewestSnapshot() (persist.Position, bool) { return t.snapshots.newest() }

// ReadSnapshot reads into p, from byte offset on, the file of the snapshot that ends
// before seq next, as persist.RestoreSnapshot takes it, and returns the number of bytes
// read and the length of the file. The first call reads raft's own file and keeps the
// result in memory. Any goroutine. Errors: persist.ErrNoSnapshot if the snapshot is not
// there, or no longer; those of the disk.
func (t *Term) ReadSnapshot(next uint64, offset int64, p []byte) (n int, size int64, err error) {
	file, err := t.snapshots.file(next)
	if err != nil {
		return 0, 0, err
	}
	if offset < 0 || offset >= int64(len(file)) {
		return 0, int64(len(file)), nil
	}
	return copy(p, file[offset:]), int64(len(file)), nil
}
