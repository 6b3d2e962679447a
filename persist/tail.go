package persist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"

	"blockdesk/engine"
)

// ErrNoFrame says that no durable frame begins at a Seq: the frame was pruned, or the
// Seq is inside one.
var ErrNoFrame = errors.New("no durable frame begins at this seq")

// ErrNoSnapshot says that there is no snapshot of a Seq, or no longer.
var ErrNoSnapshot = errors.New("the journal has no snapshot at this seq")

// SnapshotChunk is a good number of bytes to ask ReadSnapshot for.
const SnapshotChunk = snapshotChunk

// MaxSnapshotFile is the longest file of a snapshot.
const MaxSnapshotFile = snapshotHeaderSize + MaxSnapshotBytes + 8*(MaxSnapshotBytes/snapshotChunk)

// Durable returns the position up to which everything is acknowledged. Any goroutine;
// it never waits for the disk.
func (s *Store) Durable() Position { return s.durablePosition().Position }

// SetWake sets the channel to which the store sends a value, without blocking, whenever
// Durable moves. It should have capacity 1. Any goroutine.
func (s *Store) SetWake(wake chan<- struct{}) { s.wake.Store(&wake) }

// Frames calls visit with each durable frame from the one that begins at seq from on,
// until visit returns false or there are no more. The frame and its bytes are valid
// only during the call. Pebble cannot free its buffers and tables during the call, so a
// caller reads many frames in several calls. Any goroutine, between Open and Close.
// Errors: ErrNoFrame if something durable comes after from and no frame begins there;
// those of the disk, with the Seq.
func (s *Store) Frames(from uint64, visit func(f *Frame, encoded []byte) bool) error {
	durable := s.durablePosition()
	if from >= durable.Next {
		return nil
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: frameKey(from), UpperBound: frameKey(durable.Next)})
	if err != nil {
		return fmt.Errorf("reading from seq %d: %w", from, err)
	}
	next := from
	err = walkOver(it, func(f *Frame, encoded []byte) error {
		if f.First != next {
			return errStop
		}
		next = f.Last() + 1
		if !visit(f, encoded) {
			return errStop
		}
		return nil
	})
	if err = errors.Join(err, it.Close()); err != nil {
		return err
	}
	if next == from {
		return fmt.Errorf("seq %d: %w", from, ErrNoFrame)
	}
	return nil
}

// NewestSnapshot returns the position of the newest snapshot, and false if there is none.
// Any goroutine.
func (s *Store) NewestSnapshot() (Position, bool) {
	list := s.snapshots.get()
	if len(list) == 0 {
		return Position{}, false
	}
	return list[len(list)-1].position().Position, true
}

// ReadSnapshot reads into p, from byte offset on, the file of the snapshot that ends
// before seq next, and returns the number of bytes read and the length of the file.
// RestoreSnapshot takes the whole file. Any goroutine. Errors: ErrNoSnapshot if the
// snapshot is not there (it may be pruned between two calls); those of the disk.
func (s *Store) ReadSnapshot(next uint64, offset int64, p []byte) (n int, size int64, err error) {
	if !slices.ContainsFunc(s.snapshots.get(), func(v snapshot) bool { return v.seq+1 == next }) {
		return 0, 0, fmt.Errorf("seq %d: %w", next, ErrNoSnapshot)
	}
	f, err := s.o.FS.Open(s.layout.snapshot(next - 1))
	if oserror.IsNotExist(err) {
		return 0, 0, fmt.Errorf("seq %d: %w", next, ErrNoSnapshot)
	} else if err != nil {
		return 0, 0, fmt.Errorf("opening a snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, fmt.Errorf("reading the snapshot of seq %d: %w", next-1, err)
	}
	if offset < 0 || offset >= info.Size() {
		return 0, info.Size(), nil
	}
	n, err = f.ReadAt(p, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, fmt.Errorf("reading the snapshot of seq %d: %w", next-1, err)
	}
	return n, info.Size(), nil
}

// RestoreSnapshot verifies all checksums of a snapshot's whole file and returns its
// replica and the position where the journal continues. It treats data as untrusted.
// Errors: engine.ErrVersion, engine.ErrSnapshot, those of a damaged file.
func RestoreSnapshot(data []byte, o engine.StateOptions) (*engine.Replica, Position, error) {
	snap, body, err := decodeSnapshot(bytes.NewReader(data), uint64(len(data)), true)
	if err != nil {
		return nil, Position{}, err
	}
	r, err := engine.RestoreReplica(body, o)
	if err != nil {
		return nil, Position{}, err
	}
	if r.State.Seq() != snap.seq || r.Digest != snap.digest || r.State.Hash() != snap.state {
		return nil, Position{}, fmt.Errorf("%w: holds seq %d and digest %016x, should be %d and %016x, or has another state",
			errSnapshot, r.State.Seq(), r.Digest, snap.seq, snap.digest)
	}
	return r, snap.position().Position, nil
}
