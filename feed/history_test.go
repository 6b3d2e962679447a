package feed

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// The ring returns exactly the newest entries, as a plain list would: at most MaxResume,
// and at least all that fit half of its bytes.
func TestHistoryAgainstList(t *testing.T) {
	zeros := make([]byte, 40_000)
	rapid.Check(t, func(t *rapid.T) {
		h := &history{}
		var list [][]byte
		epoch, first := uint64(1), uint64(1) // seq of list[0]
		biggest := rapid.SampledFrom([]int{20, 3000, 40_000}).Draw(t, "biggest")
		for range rapid.IntRange(1, 8).Draw(t, "bursts") {
			if rapid.IntRange(0, 9).Draw(t, "break") == 0 {
				epoch++
				list, first = nil, rapid.Uint64Range(1, 100).Draw(t, "first")
			}
			for range rapid.SampledFrom([]int{1, 7, 30, 300}).Draw(t, "burst") {
				seq := first + uint64(len(list))
				frame := zeros[:1+int(seq*2654435761%uint64(biggest))]
				frame = append([]byte{byte(seq)}, frame...)
				h.add(position{}, position{epoch: epoch, seq: seq}, frame)
				list = append(list, frame)
			}
			last := first + uint64(len(list)) - 1
			from := last - min(last, rapid.Uint64Range(0, 1200).Draw(t, "back"))
			got, ok := h.since(nil, epoch, from, last, 1<<30)
			if from < first-1 {
				if ok {
					t.Fatal("returned an update that it never stored")
				}
				continue
			}
			want := bytes.Join(list[from+1-first:], nil)
			switch {
			case ok && !bytes.Equal(got, want):
				t.Fatal("gave something else")
			case ok && (last-from > MaxResume || len(want) > maxResumeBytes):
				t.Fatal("holds more than its limit")
			case !ok && last-from <= MaxResume && len(want) <= maxResumeBytes/2-2*biggest:
				t.Fatalf("lost %d entries of %d bytes", last-from, len(want))
			}
			if len(want) > 0 && ok {
				if _, ok := h.since(nil, epoch, from, last, len(want)-1); ok {
					t.Fatal("more than asked for")
				}
			}
		}
		if len(h.ring) > maxResumeBytes {
			t.Fatalf("a ring of %d bytes", len(h.ring))
		}
	})
}

// A frame larger than the ring is not stored, and empties the history.
func TestHistoryOversize(t *testing.T) {
	h := &history{}
	h.add(position{}, position{epoch: 1, seq: 1}, []byte("a"))
	h.add(position{}, position{epoch: 1, seq: 2}, make([]byte, maxResumeBytes+1))
	if _, ok := h.since(nil, 1, 0, 2, 1<<30); ok {
		t.Error("kept")
	}
	h.add(position{}, position{epoch: 1, seq: 3}, make([]byte, maxResumeBytes))
	if got, ok := h.since(nil, 1, 2, 3, 1<<30); !ok || len(got) != maxResumeBytes {
		t.Error("a frame of exactly the limit was not kept")
	}
	if _, ok := h.since(nil, 1, 1, 3, 1<<30); ok {
		t.Error("went back over a hole")
	}
}
