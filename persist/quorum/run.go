package quorum

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"
)

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

// snapshotCheckEvery is the interval at which raft checks whether a snapshot is due.
const snapshotCheckEvery = 2 * time.Second

// electionBacklog is how many elections may wait to be counted.
const electionBacklog = 16
