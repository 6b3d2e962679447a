package persist

import (
	"errors"
	"fmt"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/persist/projection"
)

// Recover returns a replica of everything in the journal: it restores the newest valid
// snapshot at or below floor (NewestSnapshot: the newest of all) and replays every
// frame after it. visit gets the events of each replayed command whose Seq is above
// floor, in order; it may be nil and must not keep the slice. A damaged snapshot is
// skipped, with a warning, if an older one and the journal after it are complete.
//
// Call it once, after Open and before Run. Errors: *DamageError, projection.ErrPruned.
func (s *Store) Recover(floor uint64, visit func([]event.Event)) (*engine.Replica, error) {
	r, at, err := s.restore(floor)
	if err != nil {
		return nil, err
	}
	restored := at.Last()
	progress := &progress{report: s.o.Progress, total: s.tail.Last() - restored}
	p := replay{db: s.db, at: at, to: NewestSnapshot, floor: floor, visit: visit, each: func(_ position, count int) error { return progress.add(uint64(count)) }}
	at, err = p.run(r)
	if progress.stopped != nil {
		return nil, progress.stopped
	}
	progress.finish()
	if err == nil && at.Next != s.tail.Next {
		err = fmt.Errorf("replay ended at seq %d, but the journal ended at seq %d when it was opened", at.Last(), s.tail.Last())
	}
	if err != nil {
		return nil, s.layout.damage(s.layout.frames(), err)
	}
	second, err := engine.RestoreReplica(r.AppendSnapshot(nil), s.o.State)
	if err != nil {
		return nil, fmt.Errorf("copying the replica of seq %d: %w", at.Last(), err)
	}
	s.snapshotter = &snapshotter{s: s, replica: second, at: at, lastSnapshot: restored, closeTimeout: s.o.CloseWithin}
	s.snapshots.setReplicaSeq(at.Last())
	s.o.Logger.Info("journal recovered", "snapshot_seq", restored, "replayed", at.Last()-restored, "last_seq", at.Last())
	return r, nil
}

// restore returns the replica that the replay begins with, and its position.
func (s *Store) restore(floor uint64) (*engine.Replica, position, error) {
	list := s.snapshots.get()
	var damage error
	var damaged []uint64 // set aside once another start is found
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].seq > floor || list[i].seq+1 < s.begin.Next {
			continue
		}
		snap, r, err := s.layout.loadSnapshot(list[i].seq, s.o.State)
		if err == nil {
			if damage != nil {
				s.o.Logger.Warn("snapshot is damaged, using an older one", "seq", snap.seq, "damage", damage)
			}
			return r, snap.position(), s.setAside(damaged)
		}
		if !errors.Is(err, errSnapshot) {
			return nil, position{}, fmt.Errorf("snapshot of seq %d: %w", list[i].seq, err)
		}
		damage = errors.Join(damage, s.layout.damage(s.layout.snapshot(list[i].seq), err))
		damaged = append(damaged, list[i].seq)
	}
	if s.begin.Next == 1 {
		if damage != nil {
			s.o.Logger.Warn("snapshot is damaged, replaying the whole journal", "damage", damage)
		}
		return engine.NewReplica(s.o.State), position{Position: Genesis()}, s.setAside(damaged)
	}
	if damage != nil {
		return nil, position{}, damage
	}
	return nil, position{}, fmt.Errorf("%w: its cursor is at seq %d, the journal begins at seq %d", projection.ErrPruned, floor, s.begin.Next)
}

// setAside renames damaged snapshots, so that they are kept but no longer used.
func (s *Store) setAside(damaged []uint64) error {
	for _, seq := range damaged {
		s.snapshots.remove(seq)
		if err := s.layout.setAside(snapshotName(seq)); err != nil {
			return err
		}
	}
	return nil
}
