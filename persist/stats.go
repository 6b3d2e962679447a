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

// Stats counts since the store was opened.
type Stats struct {
	Frames uint64 // written
	Bytes  uint64 // of those frames, before compression
	Syncs  SyncTimes
}

// SyncTimes says how long the writes took that put frames on disk: one a frame in mode
// Sync; one an interval, and one at the start of an epoch, in mode Interval. In mode
// Quorum it is the time until a majority had the frame on disk.
type SyncTimes struct {
	Count uint64
	Sum   time.Duration
	// Within[b] is the number of writes that took at most b.
	Within map[time.Duration]uint64
}

// WriteCounts counts for Stats. One goroutine writes, any reads. The zero value is
// ready to use.
type WriteCounts struct {
	frames, bytes atomic.Uint64
	took          [len(syncBounds) + 1]atomic.Uint64 // by bound; the last counter has those longer than all bounds
	sum           atomic.Int64
}

// Wrote counts a frame of that many bytes.
func (c *WriteCounts) Wrote(bytes int) {
	c.frames.Add(1)
	c.bytes.Add(uint64(bytes))
}

// Synced counts a write to the disk that began at since.
func (c *WriteCounts) Synced(since time.Time) { c.syncTook(time.Since(since)) }

func (c *WriteCounts) syncTook(took time.Duration) {
	at, _ := slices.BinarySearch(syncBounds[:], took)
	c.took[at].Add(1)
	c.sum.Add(int64(took))
}

// Stats returns the counters, each read by itself.
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

// Stats returns the counters, each read by itself. Any goroutine; it never waits for
// the disk.
func (s *Store) Stats() Stats { return s.counts.Stats() }
