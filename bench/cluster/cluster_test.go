package cluster

import (
	"slices"
	"testing"
	"time"

	"blockdesk/engine/marketdata"
)

func TestSaid(t *testing.T) {
	t.Parallel()
	const log = `{"time":"2026-01-02T03:04:05.1Z","level":"INFO","msg":"serving as leader","term":1}
not JSON
{"time":"2026-01-02T03:04:06.2Z","level":"INFO","msg":"leads elsewhere"}
{"time":"2026-01-02T03:04:07.3Z","level":"INFO","msg":"serving as leader","term":2}
{"time":"2026-01-02T03:04:08.4Z","level":"INFO","msg":"serving as leader","term":3}
`
	after := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	for _, c := range []struct {
		until time.Duration
		want  []time.Duration
	}{
		{time.Second, nil},
		{2 * time.Second, []time.Duration{1300 * time.Millisecond}},
		{time.Hour, []time.Duration{1300 * time.Millisecond, 2400 * time.Millisecond}},
	} {
		var got []time.Duration
		for _, at := range loggedAt(log, "serving as leader", after, after.Add(c.until)) {
			got = append(got, at.Sub(after))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("said within %v at %v, want %v", c.until, got, c.want)
		}
	}
}

// TestViewsAreWatched: a command counts when a view first shows it or a later one,
// and none counts twice or beyond the lap.
func TestViewsAreWatched(t *testing.T) {
	t.Parallel()
	w := &viewWatch{}
	see := func(seq uint64) { w.MarketUpdate(nil, &marketdata.View{EngineSeq: seq}, nil) }
	see(5) // before the lap
	w.begin(10, 4, time.Now().Add(-time.Second))
	lap := w.lap.Load()
	for _, step := range []struct {
		seq   uint64
		shown int64
	}{{10, 0}, {12, 2}, {11, 2}, {13, 3}, {99, 4}, {100, 4}} {
		see(step.seq)
		if got := lap.shown.Load(); got != step.shown {
			t.Errorf("after seq %d %d are shown, want %d", step.seq, got, step.shown)
		}
	}
	if !slices.IsSorted(lap.at) || lap.at[0] < int64(time.Second) || lap.at[0] != lap.at[1] {
		t.Errorf("shown at %v", lap.at)
	}
}

func TestBothMeans(t *testing.T) {
	t.Parallel()
	if got := bothMeans([]float64{1, 2, 9}, []float64{3, 6}); !slices.Equal(got, []float64{2, 4}) {
		t.Error(got)
	}
}
