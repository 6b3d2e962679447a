package persist

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"blockdesk/engine"
)

// Store is the journal of one node, open for writing.
//
// Append belongs to one goroutine; call Recover before it, run Run beside it and Close
// after both. Health, Stats, SetFloor and Backup may be called from any goroutine
// between Open and Close.
type Store struct {
	folder

	buf []byte
	key [8]byte

	ackMu   sync.Mutex // one acknowledge at a time
	mu      sync.Mutex
	tail    position // after the last frame that was written
	durable position // after the last frame that is on disk

	unsynced *unsynced // in mode Interval

	begin   position // before the first frame
	floor   atomic.Pointer[func() uint64]
	wake    atomic.Pointer[chan<- struct{}]
	pruneMu sync.Mutex // pruning against Backup

	snapshots   snapshotList
	snapshotter *snapshotter // made by Recover
	counts      WriteCounts
	disk        *DiskWatch
}

var _ engine.Journal = (*Store)(nil)

// Open opens the store in o.Dir, or creates one in an empty folder. It reads and checks
// every frame. Errors: *DamageError if the folder does not have what was acknowledged;
// those of Options.Validate; those of the disk.
func Open(o Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	ReleaseReserve(o)
	o = o.withDefaults()
	s := &Store{
		folder: folder{o: o, layout: layout{fs: o.FS, dir: o.Dir}, fault: fault{log: o.Logger}, highWaterMarkDue: make(chan struct{}, 1)},
		disk:   newDiskWatch(o),
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (s *Store) open() error {
	var found verified
	m, err := s.openToWrite(func(m highWaterMarkRecord) (err error) {
		found, err = s.verifyFrames(m)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.adopt(&found, m); err != nil {
		return err
	}
	if s.highWaterMark, err = openHighWaterMark(s.o.FS, s.layout.highWaterMark(), s.resumed(m)); err != nil {
		return err
	}
	s.batch = s.db.NewBatch(pebble.WithMaxRetainedSizeBytes(MaxFrameBytes))
	if err := s.fault.err(); err != nil {
		return s.refusal(err)
	}
	return s.adoptUnsynced()
}

// resumed returns the high-water mark of a store that was just verified. All frames
// found are durable, because Pebble flushes what it replays.
func (s *Store) resumed(m highWaterMarkRecord) highWaterMarkRecord {
	r := s.durable.highWaterMark(open)
	r.count, r.slot = m.count, m.slot
	return r
}

// verified is what a store has.
type verified struct {
	snaps      []snapshot
	damaged    []string // snapshots whose header is damaged
	begin, end position
}

// verifyFrames checks the frames and snapshots against the high-water mark.
func (s *Store) verifyFrames(m highWaterMarkRecord) (v verified, err error) {
	if v.snaps, v.damaged, err = listSnapshots(s.o.FS, s.layout.snapshots()); err != nil {
		return v, err
	}
	v.begin, v.end, err = verifyFrames(s.db, v.snaps, m)
	if err = errors.Join(err, s.fault.err()); err != nil {
		err = s.refusal(err)
	}
	return v, err
}

// adopt continues at the end of what was verified.
func (s *Store) adopt(v *verified, m highWaterMarkRecord) error {
	begin, end, snaps := v.begin, v.end, v.snaps
	for _, name := range v.damaged {
		s.o.Logger.Warn("damaged snapshot was set aside", "file", name)
		if err := s.layout.setAside(name); err != nil {
			return err
		}
	}
	if err := sweepSnapshots(s.o.FS, s.layout.snapshots()); err != nil {
		return err
	}
	s.begin, s.tail, s.durable = begin, end, end
	s.snapshots.set(snaps)
	if m.phase == closed {
		s.o.Logger.Info("journal opened", "mode", s.o.Mode.String(), "last_seq", end.Last(), "epoch", end.Epoch)
	} else {
		s.o.Logger.Warn("journal was not closed cleanly, cut at the last complete frame",
			"mode", s.o.Mode.String(), "last_seq", end.Last(), "marked_seq", m.last, "epoch", end.Epoch)
	}
	if s.o.Mode == Interval {
		s.o.Logger.Warn("durability mode interval: a power failure may lose the last commands", "interval", s.o.Interval)
	}
	return nil
}

// adoptUnsynced continues the journal with the frames that a process in mode Interval had
// acknowledged when it died, and begins new files if the mode is still Interval.
func (s *Store) adoptUnsynced() error {
	frames, err := readUnsynced(s.layout)
	if err != nil {
		return err
	}
	from := s.tail.Last()
	for {
		encoded, ok := frames[s.tail.Hash]
		if !ok {
			break
		}
		f, err := ParseFrame(encoded)
		after := s.tail
		if err != nil || after.advance(&f, HashFrame(encoded)) != nil {
			break // of another journal
		}
		s.buf = append(s.buf[:0], encoded...)
		if err := s.commit(&f, true); err != nil {
			return err
		}
		s.tail = after
		if err := s.acknowledge(after); err != nil {
			return err
		}
	}
	if last := s.tail.Last(); last > from {
		s.o.Logger.Info("journal continued with frames that were not synced yet", "commands", last-from, "last_seq", last)
	}
	if err := s.layout.removeUnsynced(); err != nil {
		return err
	}
	if s.o.Mode == Interval {
		s.unsynced, err = openUnsynced(s.layout)
	}
	return err
}

// Append implements engine.Journal. In mode Sync it returns when the frame is on disk;
// in mode Interval when the operating system has it. A frame that begins an epoch is synced in any
// mode, because ids contain the epoch and an epoch that was seen must not begin again.
// It blocks for the disk. Every error wraps ErrFailed and is final.
func (s *Store) Append(prior uint64, a, b []engine.Command) error {
	if err := s.fault.err(); err != nil {
		return err
	}
	f := Frame{Epoch: s.tail.Epoch, Previous: s.tail.Hash, EventHash: prior}
	var err error
	if s.buf, err = AppendFrame(s.buf[:0], &f, a, b); err != nil {
		return s.fault.set(err)
	}
	after := s.tail
	if err := after.advance(&f, HashFrame(s.buf)); err != nil {
		return s.fault.set(err)
	}
	synced := s.o.Mode == Sync || after.Epoch != s.tail.Epoch
	if err := s.commit(&f, synced); err != nil {
		return err
	}
	if !synced {
		if err := s.unsynced.write(s.buf); err != nil {
			return s.fault.set(err)
		}
	}
	s.mu.Lock()
	s.tail = after
	s.mu.Unlock()
	if synced {
		return s.acknowledge(after)
	}
	return nil
}

// commit writes the frame in s.buf; with synced it returns when the frame and all
// before it are on disk.
func (s *Store) commit(f *Frame, synced bool) (err error) {
	defer s.fault.catch(&s.poisoned, &err)
	binary.BigEndian.PutUint64(s.key[:], f.First)
	s.batch.Reset()
	if err := s.batch.Set(s.key[:], s.buf, nil); err != nil {
		return s.fault.set(err)
	}
	how := pebble.NoSync
	var began time.Time
	if synced {
		how, began = pebble.Sync, time.Now()
	}
	if err := s.db.Apply(s.batch, how); err != nil {
		return s.fault.set(err)
	}
	if synced {
		s.counts.Synced(began)
	}
	s.counts.Wrote(len(s.buf))
	// Apply returns nil after a failed sync if the logger's Fatalf returns.
	return s.fault.err()
}

// acknowledge moves the high-water mark and Durable to at, which is on disk. Nothing
// before at is published earlier. In mode Interval two goroutines call it, so it
// ignores a position that is behind.
func (s *Store) acknowledge(at position) error {
	s.ackMu.Lock()
	defer s.ackMu.Unlock()
	if durable := s.durablePosition(); at.Next <= durable.Next {
		return nil
	}
	if err := s.highWaterMark.write(at.highWaterMark(open)); err != nil {
		return s.fault.set(err)
	}
	if s.o.SyncHighWaterMark {
		if err := s.highWaterMark.sync(); err != nil {
			return s.fault.set(err)
		}
	} else {
		s.highWaterMarkMoved()
	}
	s.mu.Lock()
	s.durable = at
	s.mu.Unlock()
	if wake := s.wake.Load(); wake != nil {
		select {
		case *wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// syncTail makes everything written so far durable. Mode Interval calls it every
// Interval.
func (s *Store) syncTail() (err error) {
	if err := s.fault.err(); err != nil {
		return err
	}
	s.mu.Lock()
	tail, durable := s.tail, s.durable
	s.mu.Unlock()
	if tail.Next == durable.Next {
		return nil
	}
	if err := s.unsynced.switchFiles(); err != nil {
		return s.fault.set(err)
	}
	defer s.fault.catch(&s.poisoned, &err)
	began := time.Now()
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		return s.fault.set(err)
	}
	s.counts.Synced(began)
	if err := s.fault.err(); err != nil {
		return err
	}
	return s.acknowledge(tail)
}

// durablePosition returns the position up to which everything is on disk.
func (s *Store) durablePosition() position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.durable
}

// SetFloor sets the function that returns the Seq up to which every consumer has
// durably taken the events. Pruning keeps everything that Recover needs to start from
// there. Run's goroutine calls it.
func (s *Store) SetFloor(floor func() uint64) { s.floor.Store(&floor) }

// floorSeq returns NewestSnapshot until a floor is set.
func (s *Store) floorSeq() uint64 {
	if f := s.floor.Load(); f != nil {
		return (*f)()
	}
	return NewestSnapshot
}

// Health is the state of a journal.
type Health struct {
	Mode     Mode
	Interval time.Duration // what a crash may lose; 0 except in mode Interval
	// Failed is why the store is read-only; nil while it works.
	Failed error
	// Appended, Durable and HighWaterMark are the last Seq written, on disk, and covered by
	// the synced high-water mark.
	Appended, Durable, HighWaterMark uint64
	Epoch                            uint64
	// Disk is the level of FreePercent; DiskOK and 100 before the first check.
	Disk        DiskLevel
	FreePercent int
	// SnapshotSeq is the newest snapshot's. SnapshotBehind is the number of commands
	// that the snapshot replica is behind Durable. SnapshotFailed is why the last
	// snapshot failed.
	SnapshotSeq    uint64
	SnapshotBehind uint64
	SnapshotFailed error
}

// Health never waits for the disk. Any goroutine.
func (s *Store) Health() Health {
	h := Health{Mode: s.o.Mode, Failed: s.fault.err()}
	if s.o.Mode == Interval {
		h.Interval = s.o.Interval
	}
	_, h.HighWaterMark = s.highWaterMark.read()
	s.mu.Lock()
	h.Appended, h.Durable, h.Epoch = s.tail.Last(), s.durable.Last(), s.tail.Epoch
	s.mu.Unlock()
	h.Disk, h.FreePercent = s.disk.Read()
	var at uint64
	h.SnapshotSeq, at, h.SnapshotFailed = s.snapshots.health()
	h.SnapshotBehind = h.Durable - min(at, h.Durable)
	return h
}

// DiskBytes returns what the frames and the snapshots take. It waits for no disk. Any
// goroutine.
func (s *Store) DiskBytes() uint64 {
	n := s.db.Metrics().DiskSpaceUsage()
	for _, snap := range s.snapshots.get() {
		n += snap.length
	}
	return n
}

// Close makes everything durable, takes a last snapshot and releases the folder. Append
// and Run must have ended. After a failure it writes nothing and returns the failure.
func (s *Store) Close() error {
	var err error
	if err = s.fault.err(); err == nil && s.o.Mode == Interval {
		err = s.syncTail()
	}
	if err == nil && s.snapshotter != nil {
		err = s.snapshotter.finish()
	}
	if err == nil {
		err = s.markClosed()
	}
	if s.unsynced != nil {
		err = errors.Join(err, s.unsynced.close())
		if err == nil {
			err = s.layout.removeUnsynced()
		}
	}
	return errors.Join(err, s.release())
}
