package quorum

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"blockdesk/persist"
)

// ErrNotReady says that the node should not be used.
var ErrNotReady = errors.New("quorum: the node is not ready to serve")

// DiskLevel is persist's: how full the disk is.
type DiskLevel = persist.DiskLevel

// The levels that a node's status and backups depend on.
const (
	DiskLow      = persist.DiskLow
	DiskCritical = persist.DiskCritical
)

// MaxReadyLag is how many committed entries a ready node may not have applied yet.
const MaxReadyLag = 1000

// counts has the counters that the node itself increments.
type counts struct {
	acks                     persist.WriteCounts
	commits, failed          atomic.Uint64
	elections, terms, rounds atomic.Uint64
}

// Counts counts since the node was opened.
type Counts struct {
	// Commits are the entries that this node has proposed and that were committed and
	// accepted; Failed those that were not, or whose outcome is unknown.
	Commits, Failed uint64
	// Elections are the elections that this node has seen; Terms those that it has won.
	Elections, Terms uint64
	// Frames and Bytes of any leader were committed and accepted here. Refused entries
	// were committed, but are of a term that was over or do not follow the journal's
	// end.
	Frames, Bytes, Refused uint64
	// Snapshots were written, SnapshotsFailed were not; Restores were read, at the
	// start or from a leader.
	Snapshots, SnapshotsFailed, Restores uint64
	// Verifications are the rounds of Term.VerifyLeader.
	Verifications uint64
}

// Counts returns the counters, each read by itself. Any goroutine.
func (n *Node) Counts() Counts {
	c, m := &n.counts, &n.machine.counts
	return Counts{
		Commits: c.commits.Load(), Failed: c.failed.Load(), Elections: c.elections.Load(), Terms: c.terms.Load(),
		Frames: m.frames.Load(), Bytes: m.bytes.Load(), Refused: m.refused.Load(),
		Snapshots: n.snapshotStatus.taken.Load(), SnapshotsFailed: n.snapshotStatus.failures.Load(), Restores: m.restores.Load(),
		Verifications: c.rounds.Load(),
	}
}

// Stats returns the counters of the frames that this node has had acknowledged as a
// leader, over all its terms. Syncs is the duration of each Append: until a majority
// had the frame on disk and this node had applied it.
func (n *Node) Stats() persist.Stats { return n.counts.acks.Stats() }

// Health describes the node as a journal. Mode is Quorum. Appended, Durable and
// HighWaterMark are the same: the last Seq committed and applied here. SnapshotBehind is
// the number of commands that the standby replica is behind. It waits for no disk.
func (n *Node) Health() persist.Health {
	at := n.machine.frames.position()
	h := persist.Health{
		Mode: persist.Quorum, Failed: n.Failed(),
		Appended: at.Last(), Durable: at.Last(), HighWaterMark: at.Last(), Epoch: at.Epoch,
	}
	h.Disk, h.FreePercent = n.disk.Read()
	if snap := n.snapshotStatus.newest.Load(); snap != nil {
		h.SnapshotSeq = snap.Last()
	}
	if err := n.snapshotStatus.failed.Load(); err != nil {
		h.SnapshotFailed = *err
	}
	h.SnapshotBehind = h.Durable - min(n.standby.seq.Load(), h.Durable)
	return h
}

// DiskBytes returns what the log and this node's copy of the stores take, without raft's
// snapshots. It waits for no disk. Any goroutine.
func (n *Node) DiskBytes() map[string]uint64 {
	return map[string]uint64{"journal": n.log.DiskBytes(), "group": n.local.kv.DiskBytes()}
}

// Ready returns nil while this node is a member, knows a leader, and has applied all
// but MaxReadyLag of the entries that it knows to be committed. Else the error wraps
// ErrNotReady. It waits for no disk and no other node.
func (n *Node) Ready() error {
	if err := n.Failed(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	if err := n.Admission(); err != nil {
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
		return fmt.Errorf("%w: %d committed entries are not applied yet: at most %d", ErrNotReady, behind, MaxReadyLag)
	}
	if last := r.LastContact(); r.State() != raft.Leader && time.Since(last) > 2*n.o.Timeout {
		return fmt.Errorf("%w: the leader has sent nothing for too long", ErrNotReady)
	}
	return nil
}

// Health is the node's for this term: Durable is where the term's own frames end, and
// Failed also says that the term is over.
func (t *Term) Health() persist.Health {
	h := t.node.Health()
	at := t.Durable()
	h.Appended, h.Durable, h.HighWaterMark, h.Epoch = at.Last(), at.Last(), at.Last(), at.Epoch
	if err := t.Err(); err != nil && h.Failed == nil {
		h.Failed = err
	}
	return h
}

// Stats returns the node's.
func (t *Term) Stats() persist.Stats { return t.node.Stats() }
