package ratelimit

import (
	"testing"
	"time"
)

// TestBucket: a burst, then the rate; a clock that goes back gives nothing, and does
// not lock the client out for as long as it went back.
func TestBucket(t *testing.T) {
	var b Bucket
	r, at := NewRate(10, time.Second, 20), time.Unix(100, 0).UnixNano()
	takes := func(n int) (got int) {
		for range n {
			has := b.Has(at, r)
			if b.Take(at, r) != has {
				t.Fatal("Has and Take do not agree")
			}
			if has {
				got++
			}
		}
		return got
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{0, 20}, {500 * time.Millisecond, 5}, {-time.Hour, 0}, {time.Second, 10}, {24 * time.Hour, 20}} {
		at += int64(step.after)
		if got := takes(30); got != step.want {
			t.Errorf("%v later: %d tokens, want %d", step.after, got, step.want)
		}
	}
}

// TestSpend: a cost is taken whole or not at all.
func TestSpend(t *testing.T) {
	var b Bucket
	at, second := int64(1000), int64(time.Second)
	for i := range 20 {
		if !b.Spend(at, second/20, second) {
			t.Fatalf("event %d of a burst of 20", i+1)
		}
	}
	if b.Spend(at, 1, second) {
		t.Error("one nanosecond too much")
	}
	if at += second / 20; !b.Spend(at, second/20, second) || b.Spend(at, 1, second) {
		t.Error("one event an interval later")
	}
}
