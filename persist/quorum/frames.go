package quorum

import (
	"fmt"
	"sort"
	"sync"

	"blockdesk/persist"
)

// maxIndexed is how many frames are known by their entry at most: 16 bytes each.
// Older ones in the log are there and are not found.
const maxIndexed = 1 << 20

// frameIndex tells where in the log the frames are that were committed and judged
// good, so that one can be read again: the log holds refused entries too. The zero
// value is of a journal that has not begun. Safe for concurrent use.
type frameIndex struct {
	mu   sync.Mutex
	list []frameAt        // each frame begins where the one before it ends
	end  persist.Position // behind the last frame; zero = before the first
}

// frameAt is the Seq that a frame begins with and its entry.
type frameAt struct{ first, index uint64 }

// add takes in the next frame, after which the journal is at end. kept is the first
// entry that the log still has.
func (x *frameIndex) add(first, index uint64, end persist.Position, kept uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	gone := 0
	if len(x.list) == maxIndexed {
		gone = maxIndexed / 2
	}
	if len(x.list) > 0 && x.list[len(x.list)/2].index < kept {
		gone = max(gone, sort.Search(len(x.list), func(i int) bool { return x.list[i].index >= kept }))
	}
	if gone > 0 {
		x.list = x.list[:copy(x.list, x.list[gone:])]
	}
	x.list = append(x.list, frameAt{first: first, index: index})
	x.end = end
}

// set begins anew at end, with the frames before it that are known.
func (x *frameIndex) set(list []frameAt, end persist.Position) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list, x.end = list, end
}

// find returns the entry of the frame that begins at Seq first.
func (x *frameIndex) find(first uint64) (index uint64, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := sort.Search(len(x.list), func(i int) bool { return x.list[i].first >= first })
	if i == len(x.list) || x.list[i].first != first {
		return 0, false
	}
	return x.list[i].index, true
}

// place is where the judged frames end.
func (x *frameIndex) position() persist.Position {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.end.Next == 0 {
		return persist.Genesis()
	}
	return x.end
}

// reaches reports whether all that comes after a place is known.
func (x *frameIndex) reaches(at persist.Position) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.list) == 0 || x.list[0].first <= at.Next
}

// framesBefore finds in a log the frames that lead to a place, of entries up to last. The
// chain of their hashes says which entries they are: the log may hold others, of
// leaders whose word did not count.
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
	for i, j := 0, len(found)-1; i < j; i, j = i+1, j-1 {
		found[i], found[j] = found[j], found[i]
	}
	return found, nil
}

// readFrames calls visit with the frames from the one that begins at from on, up to
// Seq before, until it returns false or the log has no more; see persist.Store.Frames.
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
			break // dropped meanwhile
		}
	}
	if next == from && from < before {
		return fmt.Errorf("seq %d: %w", from, persist.ErrNoFrame)
	}
	return nil
}

// Durable is the place up to which everything is acknowledged: committed by a
// majority and judged here. It never moves past the term's own frames, so one that
// was deposed stays where it was. Any goroutine; it waits for no disk.
func (t *Term) Durable() persist.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.durable
}

// SetWake names a channel that is sent to, if it takes it at once, whenever Durable
// has moved. It should have room for one. Any goroutine.
func (t *Term) SetWake(wake chan<- struct{}) { t.wake.Store(&wake) }

// Frames calls visit with each durable frame from the one that begins at seq from
// on, until it returns false or there are no more, as persist.Store.Frames does. It
// has what the log has: at least Options.TrailingEntries entries, where there are
// as many, and all since the newest snapshot. Any goroutine, while the node is open.
// Errors: persist.ErrNoFrame, where something durable comes after from and no frame
// begins there; those of the disk, with the Seq.
func (t *Term) Frames(from uint64, visit func(f *persist.Frame, encoded []byte) bool) error {
	return t.node.readFrames(from, t.Durable().Next, visit)
}

// NewestSnapshot returns the place of the snapshot that ReadSnapshot gives, and
// false while the log begins with the first frame. It is raft's newest one, or that
// of up to snapshotRenew ago. Any goroutine; it waits for no disk.
func (t *Term) NewestSnapshot() (persist.Position, bool) { return t.snapshots.newest() }

// ReadSnapshot fills p from byte offset on with the file of the snapshot that ends
// before seq next, as persist.RestoreSnapshot takes it, and returns how many bytes
// it has put there and how long the file is. The first call reads raft's own file
// whole and keeps the replica's in memory. Any goroutine. Errors:
// persist.ErrNoSnapshot, where it is not there, or no longer; those of the disk.
func (t *Term) ReadSnapshot(next uint64, offset int64, p []byte) (n int, size int64, err error) {
	file, err := t.snapshots.file(next)
	if err != nil {
		return 0, 0, err
	}
	if offset < 0 || offset >= int64(len(file)) {
		return 0, int64(len(file)), nil
	}
	return copy(p, file[offset:]), int64(len(file)), nil
}
