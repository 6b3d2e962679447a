package persist

import (
	"testing"
	"time"
)

// TestStatsCountSyncs: writes and their durations are counted: a frame's sync in mode Sync,
// an interval's in mode Interval, each at its own bound and all above it.
func TestStatsCountSyncs(t *testing.T) {
	var s Store
	s.counts.Wrote(100)
	s.counts.Wrote(28)
	long := time.Hour
	for _, took := range []time.Duration{0, 3 * time.Millisecond, long} {
		s.counts.syncTook(took)
	}
	s.counts.Synced(time.Now().Add(-long))
	got := s.Stats()
	if got.Frames != 2 || got.Bytes != 128 || got.Syncs.Count != 4 || got.Syncs.Sum < 2*long {
		t.Errorf("%+v", got)
	}
	for bound, want := range map[time.Duration]uint64{time.Millisecond: 1, 10 * time.Second: 2} {
		if got.Syncs.Within[bound] != want {
			t.Errorf("%d within %v, want %d", got.Syncs.Within[bound], bound, want)
		}
	}
	before := uint64(0)
	for _, bound := range syncBounds {
		if n := got.Syncs.Within[bound]; n < before {
			t.Errorf("%d within %v, and %d within less", n, bound, before)
		} else {
			before = n
		}
	}
}
