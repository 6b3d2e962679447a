package quorum

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/internal/await"
	"blockdesk/persist"
	"blockdesk/persist/journaltest"
)

// smallDisk is a disk whose free space the test sets.
type smallDisk struct {
	vfs.FS
	free *atomic.Int64 // per cent
}

func (d smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: uint64(d.free.Load()) << 30, TotalBytes: 100 << 30}, nil
}

// TestDiskLow: a node reports a full disk as a store does, also while it leads.
func TestDiskLow(t *testing.T) {
	t.Parallel()
	reported := make(chan persist.DiskLevel, 10)
	var free atomic.Int64
	free.Store(9)
	c := newCluster(t, 1, func(o *Options) {
		o.FS = smallDisk{o.FS, &free}
		o.DiskEvery, o.DiskChanged = persist.MinInterval, func(level persist.DiskLevel) { reported <- level }
	})
	if level := <-reported; level != persist.DiskLow {
		t.Errorf("9 %% free: %s", level)
	}
	_, term := c.lead()
	if h := term.Health(); h.Disk != persist.DiskLow || h.FreePercent != 9 || h.Failed != nil {
		t.Errorf("the health of a new leader on a low disk: %+v", h)
	}
	free.Store(10)
	if level := <-reported; level != persist.DiskShed {
		t.Errorf("10 %% free: %s", level)
	}
	if h := term.Health(); h.Disk != persist.DiskShed || h.FreePercent != 10 {
		t.Errorf("with room again: %+v", h)
	}
}

// TestHealth: the health and the counters of a node and a term.
func TestHealth(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	ref := journaltest.NewReference(journaltest.Commands(300, 16))
	id, term := c.lead()
	node := c.members[id].node
	w := newWriter(t, term)
	for at := 0; at < 100; at += 10 {
		if err := w.append(ref.Commands[at : at+10]); err != nil {
			t.Fatal(err)
		}
	}
	if err := node.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	h := term.Health()
	if h.Mode != persist.Quorum || h.Mode.String() != "quorum" || h.Failed != nil || h.SnapshotFailed != nil || h.Interval != 0 ||
		h.Appended != 100 || h.Durable != 100 || h.HighWaterMark != 100 || h.Epoch != 1 || h.SnapshotSeq != 100 {
		t.Errorf("health %+v", h)
	}
	await.True(t, "the standby replica", func() bool { return term.Health().SnapshotBehind == 0 })
	s := term.Stats()
	if s.Frames != 10 || s.Bytes == 0 || s.Syncs.Count != 10 || s.Syncs.Sum <= 0 {
		t.Errorf("stats %+v", s)
	}
	await.True(t, "an election to be seen", func() bool { return node.Counts().Elections == 1 })
	n := node.Counts()
	const formats = 1 // the entry with the format of a new group
	if n.Commits != 11+formats || n.Failed != 0 || n.Frames != 10 || n.Bytes != s.Bytes || n.Refused != 0 || n.Terms != 1 || n.Snapshots != 1 {
		t.Errorf("counts %+v", n)
	}
	term.at.Hash++ // a frame that does not follow
	if err := w.append(ref.Commands[100:101]); !errors.Is(err, ErrDeposed) {
		t.Errorf("a frame that does not follow: %v", err)
	}
	if n := node.Counts(); n.Failed != 1 || n.Refused != 1 || n.Frames != 10 {
		t.Errorf("counts %+v", n)
	}
	if term.Health().Failed == nil || node.Health().Failed != nil {
		t.Error("the term has failed, the node has not")
	}
	if err := c.stop(id); err != nil {
		t.Fatal(err)
	}
	c.start(id)
	_, term = c.lead()
	if h, n := term.Health(), c.members[id].node.Counts(); h.Durable != 100 || h.SnapshotSeq != 100 || h.Epoch != 1 || n.Restores != 1 {
		t.Errorf("after a restart: health %+v, counts %+v", h, n)
	}
}

// TestFollowersHealth: a follower has the leader's frames and acknowledges none.
func TestFollowersHealth(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	id, term := c.lead()
	if err := newWriter(t, term).append(journaltest.Commands(50, 17)[:50]); err != nil {
		t.Fatal(err)
	}
	for other, m := range c.members {
		await.True(t, "all nodes to be ready", func() bool { return m.node.Ready() == nil })
		await.True(t, "an election to be seen", func() bool { return m.node.Counts().Elections > 0 })
		await.True(t, "all nodes to have it", func() bool { return m.node.Health().Durable == 50 && m.node.Counts().Frames == 1 })
		if s := m.node.Stats(); (s.Frames == 1) != (other == id) {
			t.Errorf("%s has acknowledged %d frames", other, s.Frames)
		}
	}
}

// TestNotReady: a node that is cut off, does not run or has failed is not ready.
func TestNotReady(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	id, _ := c.lead()
	c.isolate(id, true)
	node := c.members[id].node
	await.True(t, "a node that is cut off not to be ready", func() bool { return errors.Is(node.Ready(), ErrNotReady) })
	c.isolate(id, false)
	await.True(t, "it to be ready again", func() bool { return node.Ready() == nil })
	m := c.members[id]
	if err := c.stop(id); err != nil {
		t.Fatal(err)
	}
	if err := node.Ready(); !errors.Is(err, ErrNotReady) || !errors.Is(err, ErrStopped) {
		t.Errorf("after the stop: %v", err)
	}
	c.start(id)
	_ = m.node.fail(errors.New("the test says so"))
	if err := m.node.Ready(); !errors.Is(err, ErrNotReady) {
		t.Errorf("failed: %v", err)
	}
	if err := c.stop(id); err == nil {
		t.Error("it ends as if nothing were")
	}
}

// TestSnapshotFailed: a snapshot that cannot be written is reported until one is.
func TestSnapshotFailed(t *testing.T) {
	images := &snapshotStatus{}
	at := persist.Position{Next: 5}
	(&fsmSnapshot{status: images, stores: emptyView(t)}).Release()
	if err := images.failed.Load(); err == nil || !errors.Is(*err, errNoSnapshotFile) || images.failures.Load() != 1 {
		t.Errorf("one that raft did not begin: %v", err)
	}
	images.written(at, nil)
	images.written(at, errStopped) // the node's end is no failure
	if images.failed.Load() != nil || images.taken.Load() != 1 || images.failures.Load() != 1 || *images.newest.Load() != at {
		t.Errorf("after one that was: %d taken", images.taken.Load())
	}
}

func emptyView(t *testing.T) *persist.KVView {
	t.Helper()
	kv, err := persist.OpenKV("kv", vfs.NewMem(), quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kv.Close(); err != nil {
			t.Error(err)
		}
	})
	return kv.View()
}
