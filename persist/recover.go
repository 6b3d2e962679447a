package persist

import (
	"errors"
	"fmt"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/persist/projection"
)

// Recover returns a replica of everything in the journal: the newest whole
// snapshot at or below floor (NewestSnapshot: the newest of all), then every
// frame after it. visit gets the events of each replayed command whose Seq is
// above floor, in order; it may be nil and must not keep the slice. A snapshot
// that is damaged is passed over for an older one, with a warning, as long as
// the journal from there on is complete.
//
// It is called once, after Open and before Run. Errors: *DamageError, projection.ErrPruned.
func (s *Store) Recover(floor uint64, visit func([]event.Event)) (*engine.Replica, error) {
	r, at, err := s.restore(floor)
	if err != nil {
		return nil, err
	}
	taken := at.last()
	told := &progress{report: s.o.Progress, total: s.tail.last() - taken}
	p := replay{db: s.db, at: at, to: NewestSnapshot, floor: floor, visit: visit, each: func(_ position, count int) error { return told.add(uint64(count)) }}
	at, err = p.run(r)
	if told.stopped != nil {
		return nil, told.stopped
	}
	told.finish()
	if err == nil && at.next != s.tail.next {
		err = fmt.Errorf("seq %d: the journal ended at seq %d when it was opened", at.last(), s.tail.last())
	}
	if err != nil {
		return nil, s.layout.damage(s.layout.frames(), err)
	}
	second, err := engine.RestoreReplica(r.AppendSnapshot(nil), s.o.State)
	if err != nil {
		return nil, fmt.Errorf("copying the replica of seq %d: %w", at.last(), err)
	}
	s.snapshotter = &snapshotter{s: s, replica: second, at: at, taken: taken, patience: s.o.CloseWithin}
	s.snapshots.setReplicaSeq(at.last())
	s.o.Logger.Info("journal recovered", "snapshot_seq", taken, "replayed", at.last()-taken, "last_seq", at.last())
	return r, nil
}

// restore finds where the replay begins.
func (s *Store) restore(floor uint64) (*engine.Replica, position, error) {
	list := s.snapshots.get()
	var passed error
	var damaged []uint64 // to set aside, once it is known that there is a way without
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].seq > floor || list[i].seq+1 < s.begin.next {
			continue
		}
		snap, r, err := s.layout.loadSnapshot(list[i].seq, s.o.State)
		if err == nil {
			if passed != nil {
				s.o.Logger.Warn("an older snapshot takes the place of a damaged one", "seq", snap.seq, "damage", passed)
			}
			return r, snap.chain(), s.setAside(damaged)
		}
		if !errors.Is(err, errSnapshot) {
			return nil, position{}, fmt.Errorf("snapshot of seq %d: %w", list[i].seq, err)
		}
		passed = errors.Join(passed, s.layout.damage(s.layout.snapshot(list[i].seq), err))
		damaged = append(damaged, list[i].seq)
	}
	if s.begin.next == 1 {
		if passed != nil {
			s.o.Logger.Warn("the whole journal takes the place of a damaged snapshot", "damage", passed)
		}
		return engine.NewReplica(s.o.State), genesis(), s.setAside(damaged)
	}
	if passed != nil {
		return nil, position{}, passed
	}
	return nil, position{}, fmt.Errorf("%w: seq %d; the oldest snapshot that is left serves from seq %d on", projection.ErrPruned, floor, s.begin.next)
}

// loadSnapshot reads a snapshot and restores its replica, which must be what the
// header says.
func (l layout) loadSnapshot(seq uint64, o engine.StateOptions) (snapshot, *engine.Replica, error) {
	snap, data, err := readSnapshot(l.fs, l.snapshot(seq), true)
	if err != nil {
		return snap, nil, err
	}
	r, err := engine.RestoreReplica(data, o)
	if errors.Is(err, engine.ErrVersion) {
		return snap, nil, err
	} else if err != nil {
		return snap, nil, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	if snap.seq != seq || r.State.Seq() != seq || r.Digest != snap.digest {
		return snap, nil, fmt.Errorf("%w: holds seq %d and digest %016x, should be %d and %016x",
			errSnapshot, r.State.Seq(), r.Digest, seq, snap.digest)
	}
	return snap, r, nil
}

// setAside takes damaged snapshots out of service without deleting them.
func (s *Store) setAside(damaged []uint64) error {
	for _, seq := range damaged {
		s.snapshots.remove(seq)
		if err := s.layout.setAside(snapshotName(seq)); err != nil {
			return err
		}
	}
	return nil
}

func (l layout) setAside(name string) error {
	path := l.fs.PathJoin(l.snapshots(), name)
	if err := l.fs.Rename(path, path+damagedSuffix); err != nil {
		return fmt.Errorf("setting a damaged snapshot aside: %w", err)
	}
	return nil
}
