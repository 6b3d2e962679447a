package quorum

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"blockdesk/persist"
)

// ErrNotReady is why a node should not be relied on.
var ErrNotReady = errors.New("quorum: the node is not ready")

// MaxReadyLag is how many committed entries a node that is ready may not have
// judged yet.
const MaxReadyLag = 1000

// counts are a node's own.
type counts struct {
	acks                     persist.WriteCounts
	commits, failed          atomic.Uint64
	elections, terms, rounds atomic.Uint64
}

// Counts are what a node has done since it was opened.
type Counts struct {
	// Commits are the entries that this node has proposed and that were committed and
	// judged good; Failed those that were not, or nobody knows.
	Commits, Failed uint64
	// Elections are the leaders that this node has seen come up; Terms those of them
	// that it was itself.
	Elections, Terms uint64
	// Frames and Bytes were committed by any leader and judged good here; Refused
	// entries were committed and judged to have come too late or not to follow.
	Frames, Bytes, Refused uint64
	// Snapshots were written, SnapshotsFailed were not; Restores are those that were
	// read, at the start or sent by a leader.
	Snapshots, SnapshotsFailed, Restores uint64
	// Verifications are the rounds of Term.VerifyLeader.
	Verifications uint64
}

// Counts may be called at any time, by anybody. Its figures are each read by
// themselves.
func (n *Node) Counts() Counts {
	c, m := &n.counts, &n.machine.counts
	return Counts{
		Commits: c.commits.Load(), Failed: c.failed.Load(), Elections: c.elections.Load(), Terms: c.terms.Load(),
		Frames: m.frames.Load(), Bytes: m.bytes.Load(), Refused: m.refused.Load(),
		Snapshots: n.snapshotStatus.taken.Load(), SnapshotsFailed: n.snapshotStatus.failures.Load(), Restores: m.restores.Load(),
		Verifications: c.rounds.Load(),
	}
}

// Stats are of the frames that this node has had acknowledged as a leader, over all
// its terms; Syncs is how long each Append took, until a majority had the frame on
// disk and this node had judged it.
func (n *Node) Stats() persist.Stats { return n.counts.acks.Stats() }

// Health is what the node says of itself, in the words of a store. Mode is Quorum.
// Appended, Durable and Marked are one: the last Seq committed and judged here.
// SnapshotBehind is how far the warm replica is behind it. It waits for no disk.
func (n *Node) Health() persist.Health {
	at := n.machine.frames.position()
	h := persist.Health{
		Mode: persist.Quorum, Failed: n.Failed(),
		Appended: at.Next - 1, Durable: at.Next - 1, Watermark: at.Next - 1, Epoch: at.Epoch,
	}
	h.DiskLow, h.FreePercent = n.disk.Read()
	if snap := n.snapshotStatus.newest.Load(); snap != nil {
		h.SnapshotSeq = snap.Next - 1
	}
	if err := n.snapshotStatus.failed.Load(); err != nil {
		h.SnapshotFailed = *err
	}
	h.SnapshotBehind = h.Durable - min(n.standby.seq.Load(), h.Durable)
	return h
}

// Ready returns nil while this node takes part, knows a leader, and has judged all
// but MaxReadyLag of what it knows to be committed. Else it wraps ErrNotReady. It
// waits for no disk and no other node.
func (n *Node) Ready() error {
	if err := n.Failed(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	r, err := n.running()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	if _, leader := r.LeaderWithID(); leader == "" {
		return fmt.Errorf("%w: no leader is known", ErrNotReady)
	}
	if behind := int64(r.CommitIndex()) - int64(r.AppliedIndex()); behind > MaxReadyLag {
		return fmt.Errorf("%w: %d committed entries to judge, at most %d", ErrNotReady, behind, MaxReadyLag)
	}
	if last := r.LastContact(); r.State() != raft.Leader && time.Since(last) > 2*n.o.Timeout {
		return fmt.Errorf("%w: the leader is silent", ErrNotReady)
	}
	return nil
}

// Health is the node's, as of this term: Durable is where its own frames end, and
// Failed also says that the term is over.
func (t *Term) Health() persist.Health {
	h := t.node.Health()
	at := t.Durable()
	h.Appended, h.Durable, h.Watermark, h.Epoch = at.Next-1, at.Next-1, at.Next-1, at.Epoch
	if err := t.Err(); err != nil && h.Failed == nil {
		h.Failed = err
	}
	return h
}

// Stats are the node's.
func (t *Term) Stats() persist.Stats { return t.node.Stats() }
