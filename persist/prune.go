package persist

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// snapshotsToKeep returns the last keep snapshots, and the newest one at or below
// floor, from which the slowest consumer can be served. It returns all of them if none
// is at or below floor.
func snapshotsToKeep(list []snapshot, keep int, floor uint64) []snapshot {
	newest := -1
	for i := range list {
		if list[i].seq <= floor {
			newest = i
		}
	}
	return list[max(0, min(len(list)-keep, newest)):]
}

// prune removes the snapshots that need not be kept, then the frames before the oldest
// one left. It reads that snapshot whole first, because a damaged snapshot must not be
// the reason to remove frames.
func (s *Store) prune() error {
	s.pruneMu.Lock()
	defer s.pruneMu.Unlock()
	if err := s.fault.err(); err != nil {
		return err
	}
	list := s.snapshots.get()
	floor := s.floorSeq()
	if len(list) < s.o.KeepSnapshots {
		return nil // Genesis is still the fallback
	}
	keep := snapshotsToKeep(list, s.o.KeepSnapshots, floor)
	base := keep[0]
	if base.seq > floor || s.begin.Next > base.seq {
		return nil
	}
	if _, _, err := readSnapshot(s.o.FS, s.layout.snapshot(base.seq), true); err != nil {
		return fmt.Errorf("journal not pruned: the snapshot of seq %d: %w", base.seq, err)
	}
	dropped := list[:len(list)-len(keep)]
	for i := range dropped {
		if err := s.o.FS.Remove(s.layout.snapshot(dropped[i].seq)); err != nil {
			return fmt.Errorf("dropping the snapshot of seq %d: %w", dropped[i].seq, err)
		}
		s.snapshots.remove(dropped[i].seq)
	}
	// Excise unlinks whole tables. DeleteRange would only write a tombstone and free
	// nothing before compactions have reached the bottom level.
	span := pebble.KeyRange{Start: frameKey(0), End: frameKey(base.seq + 1)}
	if err := s.db.Excise(context.Background(), span); err != nil {
		return fmt.Errorf("pruning up to seq %d: %w", base.seq, err)
	}
	if err := s.fault.err(); err != nil {
		return err
	}
	s.begin = base.position()
	s.o.Logger.Info("journal pruned", "up_to_seq", base.seq, "snapshots_dropped", len(dropped))
	return nil
}
