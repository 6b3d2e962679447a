package persist

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// errStop ends a walk early without an error.
var errStop = errors.New("stop")

func frameKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// walk calls visit with each frame of db from Seq from on, in key order, with the
// frame's bytes; both are valid only during the call. It checks each frame by itself;
// visit checks the order. An error names the Seq.
func walk(db *pebble.DB, from uint64, visit func(f *Frame, encoded []byte) error) error {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: frameKey(from)})
	if err != nil {
		return fmt.Errorf("reading from seq %d: %w", from, err)
	}
	err = walkOver(it, visit)
	return errors.Join(err, it.Close())
}

func walkOver(it *pebble.Iterator, visit func(f *Frame, encoded []byte) error) error {
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		if len(key) != 8 {
			return fmt.Errorf("%x is not the key of a frame", key)
		}
		seq := binary.BigEndian.Uint64(key)
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("seq %d: %w", seq, err)
		}
		f, err := ParseFrame(value)
		if err == nil && f.First != seq {
			err = fmt.Errorf("%w: it begins at seq %d and is stored under the key of seq %d", ErrFrame, f.First, seq)
		}
		if err != nil {
			return fmt.Errorf("seq %d: %w", seq, err)
		}
		if err := visit(&f, value); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return fmt.Errorf("seq %d: %w", seq, err)
		}
	}
	return it.Error()
}

// verifyFrames reads all frames and returns the positions before the first and after
// the last one. It checks each frame, the chain of their hashes, that they continue a
// snapshot or Genesis, and that they reach the high-water mark.
func verifyFrames(db *pebble.DB, snaps []snapshot, m highWaterMarkRecord) (begin, end position, err error) {
	marked := m.last == 0
	started := false
	err = walk(db, 0, func(f *Frame, encoded []byte) error {
		if !started {
			started = true
			if begin, err = firstPosition(f, snaps); err != nil {
				return err
			}
			end = begin
			marked = marked || m.last <= begin.Last()
		}
		if err := end.advance(f, HashFrame(encoded)); err != nil {
			return err
		}
		for i := range snaps {
			if snaps[i].seq == f.Last() && snaps[i].hash != end.Hash {
				return fmt.Errorf("the snapshot of seq %d follows another frame: hash %016x, want %016x",
					snaps[i].seq, end.Hash, snaps[i].hash)
			}
		}
		if f.Last() == m.last {
			marked = true
			if end.Hash != m.hash || f.First != m.first {
				return fmt.Errorf("the last frame is not the one that the high-water mark names: hash %016x, want %016x", end.Hash, m.hash)
			}
		}
		return nil
	})
	if err != nil {
		return begin, end, err
	}
	if !started {
		begin.Position = Genesis()
		if n := len(snaps); n > 0 {
			begin = snaps[n-1].position()
		}
		end = begin
		marked = marked || end.Last() == m.last && end.Hash == m.hash
	}
	switch {
	case end.Last() < m.last:
		return begin, end, fmt.Errorf("seq %d: the journal ends here, but commands up to seq %d were acknowledged",
			end.Last(), m.last)
	case !marked:
		return begin, end, fmt.Errorf("seq %d: no frame ends here, though the high-water mark names this seq", m.last)
	}
	return begin, end, nil
}

// firstPosition returns the position before the first frame f: Genesis, or that of a
// snapshot.
func firstPosition(f *Frame, snaps []snapshot) (position, error) {
	if f.First == 1 {
		return position{Position: Genesis()}, nil
	}
	for i := range snaps {
		if snaps[i].seq == f.First-1 {
			return snaps[i].position(), nil
		}
	}
	// These frames are older than the oldest snapshot left. Nothing says what they
	// follow, and no replay begins there.
	if n := len(snaps); n > 0 && snaps[n-1].seq >= f.First {
		return position{Position: Position{Next: f.First, Hash: f.Previous}}, nil
	}
	return position{}, fmt.Errorf("the commands before seq %d are missing, and no snapshot contains them", f.First)
}
