package persist

import (
	"slices"
	"sync/atomic"
	"time"
)

// syncBounds are the upper bounds of SyncTimes.Within.
var syncBounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
}

// Stats are what a store has done since it was opened.
type Stats struct {
	Frames uint64 // written
	Bytes  uint64 // of those frames, before compression
	Syncs  SyncTimes
}

// SyncTimes is how long the writes took that put frames on disk: in mode Sync one
// a frame, in mode Interval one a beat, and one at the begin of an epoch. In mode
// Quorum: until a majority had them on disk.
type SyncTimes struct {
	Count uint64
	Sum   time.Duration
	// Within[b] are those that took b at most.
	Within map[time.Duration]uint64
}

// WriteCounts are what Stats come of: whoever writes counts, anybody reads. The
// zero value is ready to use.
type WriteCounts struct {
	frames, bytes atomic.Uint64
	took          [len(syncBounds) + 1]atomic.Uint64 // each in its own bound's; the last is longer than all
	sum           atomic.Int64
}

// Wrote counts a frame of so many bytes.
func (c *WriteCounts) Wrote(bytes int) {
	c.frames.Add(1)
	c.bytes.Add(uint64(bytes))
}

// Synced counts a write to the disk that began then.
func (c *WriteCounts) Synced(since time.Time) {
	c.syncTook(time.Since(since))
}

func (c *WriteCounts) syncTook(took time.Duration) {
	at, _ := slices.BinarySearch(syncBounds[:], took)
	c.took[at].Add(1)
	c.sum.Add(int64(took))
}

// Stats returns the figures, each read by itself.
func (c *WriteCounts) Stats() Stats {
	st := Stats{Frames: c.frames.Load(), Bytes: c.bytes.Load()}
	st.Syncs = SyncTimes{Sum: time.Duration(c.sum.Load()), Within: make(map[time.Duration]uint64, len(syncBounds))}
	for i, bound := range syncBounds {
		st.Syncs.Count += c.took[i].Load()
		st.Syncs.Within[bound] = st.Syncs.Count
	}
	st.Syncs.Count += c.took[len(syncBounds)].Load()
	return st
}

// Stats may be called at any time, by anybody; it never waits for the disk. Its
// figures are each read by themselves.
func (s *Store) Stats() Stats { return s.counts.Stats() }
