package quorum

import (
	"fmt"
	"slices"
	"sort"
	"sync"

	"blockdesk/persist"
)

// maxIndexed bounds the frames whose entry is known, 16 bytes each. Older frames in the
// log are not found.
const maxIndexed = 1 << 20

// frameIndex maps each committed and accepted frame to its log entry, so that it can be
// read again: the log also has refused entries. The zero value is that of an empty
// journal. Safe for concurrent use.
type frameIndex struct {
	mu   sync.Mutex
	list []frameAt        // each frame starts where the one before ends
	end  persist.Position // after the last frame; zero: there is none
}

// frameAt is the first Seq of a frame and its entry's index.
type frameAt struct{ first, index uint64 }

// add adds the next frame, which ends at end. kept is the first entry that the log
// still has.
func (x *frameIndex) add(first, index uint64, end persist.Position, firstEntry uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	obsolete := 0
	if len(x.list) == maxIndexed {
		obsolete = maxIndexed / 2
	}
	if len(x.list) > 0 && x.list[len(x.list)/2].index < firstEntry {
		obsolete = max(obsolete, sort.Search(len(x.list), func(i int) bool { return x.list[i].index >= firstEntry }))
	}
	x.list = slices.Delete(x.list, 0, obsolete)
	x.list = append(x.list, frameAt{first: first, index: index})
	x.end = end
}

// set replaces the index: list are the known frames before end.
func (x *frameIndex) set(list []frameAt, end persist.Position) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list, x.end = list, end
}

// find returns the entry of the frame that starts at Seq first.
func (x *frameIndex) find(first uint64) (index uint64, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := sort.Search(len(x.list), func(i int) bool { return x.list[i].first >= first })
	if i == len(x.list) || x.list[i].first != first {
		return 0, false
	}
	return x.list[i].index, true
}

// position returns the position after the last accepted frame.
func (x *frameIndex) position() persist.Position {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.end.Next == 0 {
		return persist.Genesis()
	}
	return x.end
}

// reaches reports whether the entries of all frames after at are known.
func (x *frameIndex) reaches(at persist.Position) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.list) == 0 || x.list[0].first <= at.Next
}

// framesBefore finds in a log, in the entries up to last, the frames that lead to
// position at. The chain of their hashes selects them, because the log may also have
// refused frames.
func framesBefore(log *persist.EntryLog, last uint64, at persist.Position) ([]frameAt, error) {
	var found []frameAt // the newest first
	first, _ := log.Bounds()
	for index := last; index >= max(first, 1) && at.Next > 1 && len(found) < maxIndexed; index-- {
		ok, err := log.Entry(index, func(value []byte) error {
			encoded, is := entryFrame(value)
			if !is || persist.HashFrame(encoded) != at.Hash {
				return nil
			}
			f, err := persist.ParseFrame(encoded)
			if err != nil {
				return fmt.Errorf("entry %d: %w", index, err)
			}
			if f.Last()+1 == at.Next {
				found = append(found, frameAt{first: f.First, index: index})
				at = persist.Position{Next: f.First, Hash: f.Previous}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
	}
	slices.Reverse(found)
	return found, nil
}

// readFrames calls visit with the frames from the one that starts at from on, up to Seq
// before, until visit returns false or the log has no more; see persist.Store.Frames.
func (n *Node) readFrames(from, before uint64, visit func(f *persist.Frame, encoded []byte) bool) error {
	next, more := from, true
	for more && next < before {
		index, ok := n.machine.frames.find(next)
		if !ok {
			break
		}
		ok, err := n.log.Entry(index, func(value []byte) error {
			encoded, is := entryFrame(value)
			if !is {
				return fmt.Errorf("%w %d: not a frame", errEntry, index)
			}
			f, err := persist.ParseFrame(encoded)
			if err == nil && f.First != next {
				err = fmt.Errorf("%w: begins at seq %d", persist.ErrFrame, f.First)
			}
			if err != nil {
				return err
			}
			next, more = f.Last()+1, visit(&f, encoded)
			return nil
		})
		if err != nil {
			return fmt.Errorf("seq %d: %w", next, err)
		}
		if !ok {
			break // deleted meanwhile
		}
	}
	if next == from && from < before {
		return fmt.Errorf("seq %d: %w", from, persist.ErrNoFrame)
	}
	return nil
}

// Durable returns the position up to which everything is acknowledged: committed by a
// majority and applied here. It never moves past the term's own frames, so it stays
// where it was when the node is deposed. Any goroutine; it waits for no disk.
func (t *Term) Durable() persist.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.durable
}

// SetWake sets the channel to which the term sends a value, without blocking, whenever
// Durable moves. It should have capacity 1. Any goroutine.
func (t *Term) SetWake(wake chan<- struct{}) { t.wake.Store(&wake) }

// Frames calls visit with each durable frame from the one that starts at seq from on,
// as persist.Store.Frames does. It has what the log has: at least the last
// Options.TrailingEntries entries, and all since the newest snapshot. Any goroutine,
// while the node is open. Errors: persist.ErrNoFrame if something durable comes after
// from and no frame starts there; those of the disk, with the Seq.
func (t *Term) Frames(from uint64, visit func(f *persist.Frame, encoded []byte) bool) error {
	return t.node.readFrames(from, t.Durable().Next, visit)
}
