package persist

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"blockdesk/engine"
)

// snapshotList is which snapshots there are, and how the next one comes along.
// Safe for concurrent use.
type snapshotList struct {
	mu     sync.Mutex
	list   []snapshot // whole ones, oldest first
	at     uint64     // the second engine's place
	failed error      // of the last attempt
}

func (s *snapshotList) set(list []snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
}

func (s *snapshotList) get() []snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]snapshot(nil), s.list...)
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

// remove takes one off the list.
func (s *snapshotList) remove(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept []snapshot
	for _, v := range s.list {
		if v.seq != seq {
			kept = append(kept, v)
		}
	}
	s.list = kept
}

func (s *snapshotList) health() (newest, at uint64, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.list); n > 0 {
		newest = s.list[n-1].seq
	}
	return newest, s.at, s.failed
}

// follower is the second engine: it applies what is durable, in its own
// goroutine and out of Pebble, and makes the snapshots, so that the live engine
// never stops for one.
type snapshotter struct {
	s        *Store
	replica  *engine.Replica
	at       position // after the last frame applied
	taken    uint64
	patience time.Duration // of finish
	until    time.Time     // follow stops then; zero = it does not
	commands []engine.Command
}

// follow applies every durable frame that it has not, up to the next snapshot,
// which it takes. It reports whether there is more.
func (w *snapshotter) catchUp() (more bool, err error) {
	durable := w.s.durableChain()
	if w.at.next >= durable.next {
		return false, nil
	}
	due := w.taken + w.s.o.SnapshotEvery
	it, err := w.s.db.NewIter(&pebble.IterOptions{LowerBound: frameKey(w.at.next), UpperBound: frameKey(durable.next)})
	if err != nil {
		return false, err
	}
	err = walkOver(it, func(f *Frame, encoded []byte) error {
		if err := w.apply(f, encoded); err != nil {
			return err
		}
		if w.at.last() >= due || w.late() {
			return errStop
		}
		return nil
	})
	if err = errors.Join(err, it.Close()); err != nil {
		return false, fmt.Errorf("the second engine: %w", err)
	}
	w.s.snapshots.setReplicaSeq(w.at.last())
	if w.at.last() >= due {
		w.s.snapshots.fail(w.snapshot())
		return true, nil
	}
	if w.at.next < durable.next && !w.late() {
		return false, fmt.Errorf("the second engine: seq %d: durable frames are missing up to seq %d", w.at.next, durable.last())
	}
	return false, nil
}

// catchUpToEnd follows until there is no more.
func (w *snapshotter) catchUpToEnd() error {
	for {
		if more, err := w.catchUp(); !more || err != nil {
			return err
		}
	}
}

// apply applies one frame, after checking that it is the next and that both
// engines have seen the same events.
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

// snapshot writes one of where the second engine is, and drops what it makes
// superfluous. A failure costs no data: the journal has it all.
func (w *snapshotter) snapshot() error {
	if err := w.s.fault.err(); err != nil {
		return err
	}
	// The mark must not be behind a snapshot, or the frame it names may be gone.
	if err := w.s.watermark.sync(); err != nil {
		return w.s.fault.set(err)
	}
	snap := snapshot{
		seq: w.at.last(), epoch: w.at.epoch, hash: w.at.hash,
		digest: w.replica.Digest, state: w.replica.State.Hash(),
	}
	w.taken = snap.seq
	if err := writeSnapshot(w.s.o.FS, w.s.layout.snapshots(), &snap, w.replica.AppendSnapshot(nil)); err != nil {
		w.s.o.Logger.Error("snapshot failed: the journal keeps growing", "seq", snap.seq, "error", err)
		return err
	}
	w.s.snapshots.set(append(w.s.snapshots.get(), snap))
	w.s.o.Logger.Info("snapshot taken", "seq", snap.seq, "bytes", snap.length)
	return w.s.prune()
}

func (w *snapshotter) late() bool { return !w.until.IsZero() && time.Now().After(w.until) }

// finish catches up and takes the snapshot of a clean close. A second engine that
// is far behind takes none: the next start replays the journal instead.
func (w *snapshotter) finish() error {
	w.until = time.Now().Add(w.patience)
	if err := w.catchUpToEnd(); err != nil {
		return err
	}
	if behind := w.s.durableChain().next - w.at.next; behind > 0 {
		w.s.o.Logger.Warn("no snapshot at the close: the second engine is behind", "commands", behind)
		return nil
	}
	if w.at.last() == w.taken {
		return nil
	}
	return w.snapshot()
}
