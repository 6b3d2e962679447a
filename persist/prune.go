package persist

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// keepers picks the snapshots to keep: the last keep of them, and the newest at
// or below floor, from which the consumers would be served. All stay if there is
// none such.
func snapshotsToKeep(list []snapshot, keep int, floor uint64) []snapshot {
	served := -1
	for i := range list {
		if list[i].seq <= floor {
			served = i
		}
	}
	return list[max(0, min(len(list)-keep, served)):]
}

// prune drops the snapshots that need not be kept, then the frames that only
// they needed. The oldest that stays is read whole first: nothing is dropped on
// the word of a damaged one.
func (s *Store) prune() error {
	s.pruneMu.Lock()
	defer s.pruneMu.Unlock()
	if err := s.fault.err(); err != nil {
		return err
	}
	list := s.snapshots.get()
	floor := s.floorSeq()
	if len(list) < s.o.KeepSnapshots {
		return nil // the genesis is the fallback
	}
	kept := snapshotsToKeep(list, s.o.KeepSnapshots, floor)
	base := kept[0]
	if base.seq > floor || s.begin.next > base.seq {
		return nil
	}
	if _, _, err := readSnapshot(s.o.FS, s.layout.snapshot(base.seq), true); err != nil {
		return fmt.Errorf("nothing pruned: seq %d: %w", base.seq, err)
	}
	dropped := list[:len(list)-len(kept)]
	for i := range dropped {
		if err := s.o.FS.Remove(s.layout.snapshot(dropped[i].seq)); err != nil {
			return fmt.Errorf("dropping the snapshot of seq %d: %w", dropped[i].seq, err)
		}
		s.snapshots.remove(dropped[i].seq)
	}
	// Excise unlinks whole tables; DeleteRange would only write a tombstone, and
	// free nothing until compactions have reached the bottom.
	span := pebble.KeyRange{Start: frameKey(0), End: frameKey(base.seq + 1)}
	if err := s.db.Excise(context.Background(), span); err != nil {
		return fmt.Errorf("pruning up to seq %d: %w", base.seq, err)
	}
	if err := s.fault.err(); err != nil {
		return err
	}
	s.begin = base.chain()
	s.o.Logger.Info("journal pruned", "up_to_seq", base.seq, "snapshots_dropped", len(dropped))
	return nil
}
