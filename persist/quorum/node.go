package quorum

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft"

	"blockdesk/persist"
)

const (
	// maxPending is how many commits of stores may be under way; the next one waits.
	maxPending = 1024
	// cachedEntries is how many of the last log entries are cached in memory.
	cachedEntries = 128
	// stallAfter times Options.Timeout is the longest that a pipeline to a peer may
	// block.
	stallAfter = 10
	// maxAppend is the largest number of entries in one call to a peer.
	maxAppend = 64
)

// Errors of a Node.
var (
	// ErrStopped says that Run has ended, or not begun.
	ErrStopped = errors.New("quorum: the node is not running")
	// ErrDeposed is wrapped by every error of a Term after the node has lost the
	// leadership. See DeposedError.
	ErrDeposed = errors.New("quorum: not the leader")
)

// Node is one member of a group. Call Open, then Run. All other methods may be called
// from any goroutine and return ErrStopped while Run does not run.
type Node struct {
	o              Options
	log            *persist.EntryLog
	local          *localStores
	stream         *stream
	snapshots      *raft.FileSnapshotStore
	standby        *standby
	machine        *machine
	snapshotStatus *snapshotStatus
	acks           *ackTransport
	barrier        *barrier
	disk           *persist.DiskWatch
	counts         counts
	slots          chan struct{}      // has a token for each commit of a store under way
	pending        chan pendingCommit // these commits, in the log's order

	mu       sync.Mutex
	raft     *raft.Raft // nil before Run
	stopping bool
	failure  error
	// admission is why the node takes no part yet, nil once it does.
	admission error
	term      *Term         // the last one
	changed   chan struct{} // closed and replaced at each change of leadership
	broken    chan struct{} // closed at the first failure

	births    sync.Mutex     // one folder gets one birth
	proposals sync.WaitGroup // under way; none begins once stopping
}

// Open opens the node's log and stores, or creates them, and binds its address. Errors:
// those of Options.Validate; *persist.DamageError if the disk does not have what the
// node acknowledged to its peers. Such a node must be removed and come back with an
// empty folder and another ID, because it may have forgotten a vote.
func Open(o Options) (*Node, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	n := &Node{
		o: o.withDefaults(), slots: make(chan struct{}, maxPending), pending: make(chan pendingCommit, maxPending),
		changed: make(chan struct{}), broken: make(chan struct{}), barrier: newBarrier(),
	}
	if err := n.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("node %s: %w", o.ID, err), n.Close())
	}
	return n, nil
}

func (n *Node) open() (err error) {
	persist.ReleaseReserve(n.o.diskWatch())
	n.log, err = persist.OpenEntryLog(persist.EntryLogOptions{
		Dir: n.o.path(logFolder), FS: n.o.FS, MemTableBytes: n.o.MemTableBytes, SpareLogs: n.o.SpareLogs, Logger: n.o.Logger,
		Advice: DamageAdvice,
	})
	if err != nil {
		return err
	}
	if n.local, err = openLocal(&n.o); err != nil {
		return err
	}
	n.snapshots, err = raft.NewFileSnapshotStoreWithLogger(filepath.Join(n.o.Dir, logFolder), n.o.KeepSnapshots, newRaftLog(n.o.Logger))
	if err != nil {
		return err
	}
	if err := n.checkLogStart(); err != nil {
		return err
	}
	n.standby = newStandby(n.o.State, n.o.TailEvents)
	n.snapshotStatus = &snapshotStatus{store: n.snapshots}
	n.machine = &machine{log: n.log, local: n.local, standby: n.standby, snapshotStatus: n.snapshotStatus, fail: n.fail, at: persist.Genesis()}
	if n.disk, err = persist.NewDiskWatch(n.o.diskWatch()); err != nil {
		return err
	}
	n.stream, err = listen(&n.o)
	return err
}

// DamageAdvice is the advice of a node's *persist.DamageError. It does not suggest a
// backup, which would bring back a node that has forgotten its votes.
const DamageAdvice = "restore nothing; start it with an empty folder and another id, and `blockdesk cluster replace` it"

// checkLogStart reports damage if there is a gap between the newest snapshot and the
// log. Raft would continue without the entries of the gap.
func (n *Node) checkLogStart() error {
	first, _ := n.log.Bounds()
	if first <= 1 {
		return nil
	}
	list, err := n.snapshots.List()
	if err != nil {
		return err
	}
	if len(list) > 0 && list[0].Index+1 >= first {
		return nil
	}
	return &persist.DamageError{
		Dir: n.o.Dir, Where: n.o.path(logFolder),
		Err:    fmt.Errorf("%w: the log begins at entry %d, and no snapshot contains those before", errMissing, first),
		Advice: DamageAdvice,
	}
}

// Addr returns the address that the peers dial.
func (n *Node) Addr() string { return n.stream.Addr().String() }

// notifyChange wakes the goroutines that wait for a change of leadership.
func (n *Node) notifyChange() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.changed)
	n.changed = make(chan struct{})
}

// fail latches the first failure and returns err. The node leaves the group, because it
// must not acknowledge what it cannot write or apply.
func (n *Node) fail(err error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failure == nil && !errors.Is(err, errStopped) {
		n.failure = fmt.Errorf("node %s has failed: %w", n.o.ID, err)
		n.o.Logger.Error("node failed, leaving the group", "node", n.o.ID, "error", err)
		close(n.broken)
	}
	return err
}

// Failed returns why the node has left, nil while it is a member.
func (n *Node) Failed() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failure
}

// Close releases what Open has opened. Run must have ended.
func (n *Node) Close() error {
	var errs []error
	if n.stream != nil {
		errs = append(errs, ignoreClosed(n.stream.Close()))
	}
	if n.local != nil {
		errs = append(errs, n.local.kv.Close())
	}
	if n.log != nil {
		errs = append(errs, n.log.Close())
	}
	return errors.Join(errs...)
}

// leads reports whether this node leads in a term and is not stopping.
func (n *Node) leads(term uint64) bool {
	r, err := n.running()
	return err == nil && r.State() == raft.Leader && r.CurrentTerm() == term
}

// running returns raft while the node is a member.
func (n *Node) running() (*raft.Raft, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.raft == nil || n.stopping {
		return nil, ErrStopped
	}
	return n.raft, nil
}

// acquire returns raft and keeps it running until the caller calls proposals.Done.
func (n *Node) acquire() (*raft.Raft, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.raft == nil || n.stopping {
		return nil, ErrStopped
	}
	n.proposals.Add(1)
	return n.raft, nil
}

// propose appends an entry to the log's queue. The caller must wait for the future and
// then call proposals.Done.
func (n *Node) propose(t tag, data []byte) (raft.ApplyFuture, error) {
	r, err := n.acquire()
	if err != nil {
		return nil, err
	}
	return r.ApplyLog(raft.Log{Data: data, Extensions: t.encode()}, 0), nil
}

// commit proposes an entry, waits until it is committed and this node has applied it,
// and returns the machine's result.
func (n *Node) commit(t tag, data []byte) (any, error) {
	f, err := n.propose(t, data)
	if err != nil {
		return nil, err
	}
	defer n.proposals.Done()
	return n.answer(f)
}

// answer waits for an entry. If the machine's result is an error, answer returns that
// error.
func (n *Node) answer(f raft.ApplyFuture) (any, error) {
	err := f.Error()
	if err == nil {
		err, _ = f.Response().(error)
	}
	if err != nil {
		n.counts.failed.Add(1)
		return nil, err
	}
	n.counts.commits.Add(1)
	return f.Response(), nil
}

// Leader returns the current leader, with its client addresses from the configuration;
// without an ID, none is known. It may be out of date by Options.Timeout.
func (n *Node) Leader() Peer {
	r, err := n.running()
	if err != nil {
		return Peer{}
	}
	address, id := r.LeaderWithID()
	if id == "" {
		return Peer{}
	}
	return n.o.peer(string(id), string(address))
}
