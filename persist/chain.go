package persist

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// chain is a place between two frames: what the next one must be.
type position struct {
	next  uint64 // Seq that comes next
	hash  uint64 // HashFrame of the frame before; 0 before the first
	epoch uint64 // in force
	first uint64 // first Seq of the frame before; 0 = unknown or none
}

// genesis is the chain before the first frame.
func genesis() position { return position{next: 1} }

// last is the Seq of the last command before the place.
func (c *position) last() uint64 { return c.next - 1 }

// follow checks that f is the next frame and moves past it.
func (c *position) advance(f *Frame, hash uint64) error {
	switch {
	case f.First != c.next:
		return fmt.Errorf("frame begins at seq %d, want %d", f.First, c.next)
	case f.Previous != c.hash:
		return fmt.Errorf("frame follows one of hash %016x, the one before it has %016x", f.Previous, c.hash)
	case f.Epoch < c.epoch:
		return fmt.Errorf("epoch %d after epoch %d", f.Epoch, c.epoch)
	}
	c.next, c.hash, c.epoch, c.first = f.Last()+1, hash, f.Epoch, f.First
	return nil
}

// mark is what the high-water mark says at this place.
func (c *position) watermark(p phase) watermarkRecord {
	return watermarkRecord{phase: p, last: c.last(), first: c.first, hash: c.hash, epoch: c.epoch}
}

func frameKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// errStop ends a walk early without an error.
var errStop = errors.New("stop")

// walk visits the whole frames of db from the one that begins at from, in key
// order, with their bytes, both valid only during the call. It checks each frame
// by itself; the visitor checks their order. An error names the Seq.
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
			return fmt.Errorf("key %x is not a seq", key)
		}
		seq := binary.BigEndian.Uint64(key)
		value, err := it.ValueAndErr()
		if err != nil {
			return fmt.Errorf("seq %d: %w", seq, err)
		}
		f, err := ParseFrame(value)
		if err == nil && f.First != seq {
			err = fmt.Errorf("%w: begins at seq %d under the key of %d", ErrFrame, f.First, seq)
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

// survey walks all frames and returns the chain before the first and after the
// last of them. It checks each frame, their chain, that it joins the snapshots,
// and that it reaches the mark.
func verifyFrames(db *pebble.DB, snaps []snapshot, m watermarkRecord) (begin, end position, err error) {
	marked := m.last == 0
	started := false
	err = walk(db, 0, func(f *Frame, encoded []byte) error {
		if !started {
			started = true
			if begin, err = firstPosition(f, snaps); err != nil {
				return err
			}
			end = begin
			marked = marked || m.last <= begin.last()
		}
		if err := end.advance(f, HashFrame(encoded)); err != nil {
			return err
		}
		for i := range snaps {
			if snaps[i].seq == f.Last() && snaps[i].hash != end.hash {
				return fmt.Errorf("the snapshot of seq %d follows another frame: hash %016x, want %016x",
					snaps[i].seq, end.hash, snaps[i].hash)
			}
		}
		if f.Last() == m.last {
			marked = true
			if end.hash != m.hash || f.First != m.first {
				return fmt.Errorf("not the frame that the high-water mark names: hash %016x, want %016x", end.hash, m.hash)
			}
		}
		return nil
	})
	if err != nil {
		return begin, end, err
	}
	if !started {
		begin = genesis()
		if n := len(snaps); n > 0 {
			begin = snaps[n-1].chain()
		}
		end = begin
		marked = marked || end.last() == m.last && end.hash == m.hash
	}
	switch {
	case end.last() < m.last:
		return begin, end, fmt.Errorf("seq %d: the journal ends here, but commands up to seq %d were acknowledged",
			end.last(), m.last)
	case !marked:
		return begin, end, fmt.Errorf("seq %d: no frame ends here, where the high-water mark is", m.last)
	}
	return begin, end, nil
}

// joint is the chain before the first frame there is: the genesis or a snapshot.
func firstPosition(f *Frame, snaps []snapshot) (position, error) {
	if f.First == 1 {
		return genesis(), nil
	}
	for i := range snaps {
		if snaps[i].seq == f.First-1 {
			return snaps[i].chain(), nil
		}
	}
	// Frames of before the oldest snapshot that is left: nothing says what they
	// follow, and nothing will be replayed from there.
	if n := len(snaps); n > 0 && snaps[n-1].seq >= f.First {
		return position{next: f.First, hash: f.Previous}, nil
	}
	return position{}, fmt.Errorf("the commands before seq %d are missing, and no snapshot stands for them", f.First)
}
