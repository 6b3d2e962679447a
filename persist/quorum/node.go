package quorum

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"

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

// Run makes the node a member of the group until ctx ends or the node fails, and returns
// the failure. After it the group continues without the node. A node with an empty folder
// first asks its peers (Admission) and takes no part until they have answered.
func (n *Node) Run(ctx context.Context) error {
	// The stores outlive raft, and raft outlives the callers that propose.
	storesCtx, stopStores := context.WithCancel(context.WithoutCancel(ctx))
	var stores, machine errgroup.Group
	stores.Go(func() error { return n.log.Run(storesCtx) })
	stores.Go(func() error { return n.local.kv.Run(storesCtx) })
	stores.Go(func() error { return n.disk.Run(storesCtx) })
	end := make(chan struct{})
	machine.Go(func() error {
		err := n.standby.run(end)
		if err != nil {
			err = n.fail(err)
		}
		return err
	})
	machine.Go(func() error { n.completeCommits(end); return nil })
	machine.Go(func() error { n.runVerifications(end); return nil })
	machine.Go(func() error { n.stream.run(n.answerProbe); return nil })
	err := n.admit(ctx)
	if err == nil {
		err = n.takePart(ctx, func(work func(<-chan struct{})) {
			machine.Go(func() error { work(end); return nil })
		})
	}
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		n.stop(nil)
		err = nil
	case err != nil:
		err = n.fail(err)
	}
	err = errors.Join(err, ignoreClosed(n.stream.Close()))
	close(end)
	_ = machine.Wait() // n.failure keeps the error
	stopStores()
	return errors.Join(err, n.Failed(), stores.Wait())
}

// takePart runs raft until ctx ends or the node fails.
func (n *Node) takePart(ctx context.Context, run func(func(end <-chan struct{}))) error {
	r, err := n.start(run)
	if err == nil {
		n.watch(ctx, r)
		n.stop(r)
	}
	return err
}

// start bootstraps the group if this is the first start of one of its first nodes, and
// starts raft. run starts a goroutine that ends with the node.
func (n *Node) start(run func(func(end <-chan struct{}))) (*raft.Raft, error) {
	log := newRaftLog(n.o.Logger)
	c := raft.DefaultConfig()
	c.LocalID, c.Logger = raft.ServerID(n.o.ID), log
	c.HeartbeatTimeout, c.ElectionTimeout = n.o.Timeout, n.o.Timeout
	c.LeaderLeaseTimeout = n.o.Timeout * 3 / 4
	c.CommitTimeout = n.o.Timeout / 5
	c.MaxAppendEntries, c.BatchApplyCh = maxAppend, true
	c.SnapshotThreshold, c.SnapshotInterval = n.o.SnapshotEvery, snapshotCheckEvery
	c.TrailingLogs, c.NoLegacyTelemetry = n.o.TrailingEntries, true
	entries := raftStore{logStore: logStore{n.log}, fail: n.fail}
	transport := n.o.transport
	if transport == nil {
		retry := newTransport(n.stream, log, stallAfter*n.o.Timeout, n.leads)
		run(retry.run)
		transport = retry
	}
	n.acks = newAckTransport(transport, stallAfter*n.o.Timeout)
	if err := n.bootstrap(c, entries, n.acks); err != nil {
		return nil, err
	}
	cache, err := raft.NewLogCache(cachedEntries, entries)
	if err != nil {
		return nil, err
	}
	r, err := raft.NewRaft(c, n.machine, cache, entries, n.snapshots, n.acks)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	n.raft = r
	n.mu.Unlock()
	close(n.stream.raft)
	return r, nil
}

// snapshotCheckEvery is the interval at which raft checks whether a snapshot is due.
const snapshotCheckEvery = 2 * time.Second

func (n *Node) bootstrap(c *raft.Config, entries raftStore, transport raft.Transport) error {
	used, err := raft.HasExistingState(entries, entries, n.snapshots)
	if err != nil || used || n.o.Join {
		return err
	}
	var servers raft.Configuration
	for _, p := range n.o.Peers {
		servers.Servers = append(servers.Servers, raft.Server{ID: raft.ServerID(p.ID), Address: raft.ServerAddress(p.Address)})
	}
	return raft.BootstrapCluster(c, entries, entries, n.snapshots, transport, servers)
}

// electionBacklog is how many elections may wait to be counted.
const electionBacklog = 16

// watch reports each change of leadership until ctx ends or the node fails.
func (n *Node) watch(ctx context.Context, r *raft.Raft) {
	elected := make(chan raft.Observation, electionBacklog)
	observer := raft.NewObserver(elected, false, func(o *raft.Observation) bool { _, ok := o.Data.(raft.LeaderObservation); return ok })
	r.RegisterObserver(observer)
	defer r.DeregisterObserver(observer)
	look := time.NewTicker(n.o.Timeout)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.broken:
			return
		case o := <-elected:
			if o.Data.(raft.LeaderObservation).LeaderID != "" {
				n.counts.elections.Add(1)
			}
		case <-look.C:
			// Raft steps down when its log fails, and would try again.
			if err := n.log.Failed(); err != nil {
				_ = n.fail(err) // which ends the loop
			}
		case <-r.LeaderCh():
			// A quick loss and gain arrive as one change: the old term is over in both
			// cases.
			n.mu.Lock()
			term := n.term
			n.mu.Unlock()
			if term != nil && (r.State() != raft.Leader || r.CurrentTerm() != term.Number) {
				term.end(ErrDeposed)
			}
			n.notifyChange()
		}
	}
}

// notifyChange wakes the goroutines that wait for a change of leadership.
func (n *Node) notifyChange() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.changed)
	n.changed = make(chan struct{})
}

// stop refuses new proposals, waits for those under way, which raft answers as long as
// it runs, and shuts raft down; r is nil if it has not started.
func (n *Node) stop(r *raft.Raft) {
	n.mu.Lock()
	n.stopping = true
	term := n.term
	n.mu.Unlock()
	if term != nil {
		term.end(ErrStopped)
	}
	n.notifyChange()
	n.proposals.Wait()
	if r != nil {
		_ = r.Shutdown().Error() // always nil
	}
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

// completeCommits waits for the stores' commits, in the order of their proposals, until
// end is closed.
func (n *Node) completeCommits(end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case p := <-n.pending:
			_, err := n.answer(p.future)
			n.proposals.Done()
			p.store.complete(&p, err)
			<-n.slots
		}
	}
}
