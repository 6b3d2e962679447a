package persist

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"blockdesk/engine"
)

// snapshotList is the list of valid snapshots and the progress of the next one. Safe
// for concurrent use.
type snapshotList struct {
	mu     sync.Mutex
	list   []snapshot // valid ones, oldest first
	at     uint64     // last command that the snapshot replica has applied
	failed error      // why the last snapshot failed
}

func (s *snapshotList) set(list []snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
}

func (s *snapshotList) get() []snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

func (s *snapshotList) setReplicaSeq(at uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = at
}

func (s *snapshotList) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = err
}

func (s *snapshotList) remove(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(slices.Clone(s.list), func(v snapshot) bool { return v.seq == seq })
}

func (s *snapshotList) health() (newest, at uint64, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.list); n > 0 {
		newest = s.list[n-1].seq
	}
	return newest, s.at, s.failed
}

// snapshotter makes the snapshots from a replica of its own, to which it applies the
// durable frames out of Pebble, in its own goroutine. The live engine never stops for a
// snapshot.
type snapshotter struct {
	s        *Store
	replica  *engine.Replica
	at       position // after the last frame applied
	commands []engine.Command

	lastSnapshot uint64        // Seq
	bytes        uint64        // of the frames after it
	closeTimeout time.Duration // of finish
	deadline     time.Time     // catchUp stops then; zero: never
}

// catchUp applies the durable frames up to the next snapshot and takes it if it is due.
// more reports whether frames may be left.
func (w *snapshotter) catchUp() (more bool, err error) {
	durable := w.s.durablePosition()
	if w.at.Next >= durable.Next {
		return false, nil
	}
	due := w.lastSnapshot + w.s.o.SnapshotEvery
	it, err := w.s.db.NewIter(&pebble.IterOptions{LowerBound: frameKey(w.at.Next), UpperBound: frameKey(durable.Next)})
	if err != nil {
		return false, err
	}
	err = walkOver(it, func(f *Frame, encoded []byte) error {
		if err := w.apply(f, encoded); err != nil {
			return err
		}
		if w.bytes += uint64(len(encoded)); w.due(due) || w.pastDeadline() {
			return errStop
		}
		return nil
	})
	if err = errors.Join(err, it.Close()); err != nil {
		return false, fmt.Errorf("snapshot replica: %w", err)
	}
	w.s.snapshots.setReplicaSeq(w.at.Last())
	if w.due(due) {
		w.s.snapshots.fail(w.snapshot())
		return true, nil
	}
	if w.at.Next < durable.Next && !w.pastDeadline() {
		return false, fmt.Errorf("snapshot replica: the durable frames from seq %d to seq %d are missing", w.at.Next, durable.Last())
	}
	return false, nil
}

// due reports whether a snapshot is due: at Seq at, or because of Options.MaxBytes.
func (w *snapshotter) due(at uint64) bool {
	limit := w.s.o.MaxBytes / uint64(w.s.o.KeepSnapshots+1)
	return w.at.Last() >= at || limit > 0 && w.bytes >= limit
}

func (w *snapshotter) catchUpToEnd() error {
	for {
		if more, err := w.catchUp(); !more || err != nil {
			return err
		}
	}
}

// apply applies one frame, after checking that it is the next one and that the replica
// has made the same events as the live engine.
func (w *snapshotter) apply(f *Frame, encoded []byte) (err error) {
	if err := w.at.advance(f, HashFrame(encoded)); err != nil {
		return err
	}
	if w.replica.Digest != f.EventHash {
		return digestError(w.replica.Digest, f.EventHash)
	}
	if w.commands, err = f.AppendCommands(w.commands[:0]); err != nil {
		return err
	}
	for i := range w.commands {
		w.replica.Apply(&w.commands[i], nil)
	}
	return nil
}

// snapshot writes a snapshot of the replica and prunes. A failure loses no data,
// because the journal has it all.
func (w *snapshotter) snapshot() error {
	if err := w.s.fault.err(); err != nil {
		return err
	}
	// The high-water mark must not be behind a snapshot: the frame that it names may be
	// pruned.
	if err := w.s.highWaterMark.sync(); err != nil {
		return w.s.fault.set(err)
	}
	snap := snapshot{
		seq: w.at.Last(), epoch: w.at.Epoch, hash: w.at.Hash,
		digest: w.replica.Digest, state: w.replica.State.Hash(),
	}
	w.lastSnapshot, w.bytes = snap.seq, 0
	if err := writeSnapshot(w.s.o.FS, w.s.layout.snapshots(), &snap, w.replica.AppendSnapshot(nil)); err != nil {
		w.s.o.Logger.Error("snapshot failed, the journal is not pruned", "seq", snap.seq, "error", err)
		return err
	}
	w.s.snapshots.set(append(w.s.snapshots.get(), snap))
	w.s.o.Logger.Info("snapshot taken", "seq", snap.seq, "bytes", snap.length)
	return w.s.prune()
}

func (w *snapshotter) pastDeadline() bool {
	return !w.deadline.IsZero() && time.Now().After(w.deadline)
}

// finish catches up and takes the snapshot of a clean close. If the replica is far
// behind it takes none, and the next start replays the journal instead.
func (w *snapshotter) finish() error {
	w.deadline = time.Now().Add(w.closeTimeout)
	if err := w.catchUpToEnd(); err != nil {
		return err
	}
	if behind := w.s.durablePosition().Next - w.at.Next; behind > 0 {
		w.s.o.Logger.Warn("no snapshot at shutdown, the snapshot replica is behind", "commands", behind)
		return nil
	}
	if w.at.Last() == w.lastSnapshot {
		return nil
	}
	return w.snapshot()
}
