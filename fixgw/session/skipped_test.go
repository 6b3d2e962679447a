package session

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/persist/kv/kvtest"
)

// TestSkippedNumbers compares the arithmetic of skipped numbers with a count one by one.
func TestSkippedNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Uint64Range(1, 50).Draw(t, "from")
		var s skipped
		isSkipped := map[uint64]bool{}
		next := from
		for range rapid.IntRange(0, 8).Draw(t, "lives") {
			next += rapid.Uint64Range(0, 30).Draw(t, "used")
			to := next + rapid.Uint64Range(1, 20).Draw(t, "skipped")
			for n := next; n < to; n++ {
				isSkipped[n] = true
			}
			s = s.add(numbers{next, to})
			next = to
		}
		again, err := parseSkipped(s.append(nil))
		if err != nil || len(again) != len(s) {
			t.Fatalf("%v came back as %v: %v", s, again, err)
		}
		keep := rapid.Uint64Range(0, 100).Draw(t, "keep")
		begin, first := s.keepFrom(from, next, keep)
		count := func(a, b uint64) (used uint64) {
			for n := a; n < b; n++ {
				if !isSkipped[n] {
					used++
				}
			}
			return used
		}
		if want := count(from, next); first != want-min(want, keep) || count(from, begin) != first || count(begin, next) != want-first {
			t.Fatalf("from %d to %d, %v: keeps %d of %d numbers from %d on, %d before", from, next, s, keep, want, begin, first)
		}
		rest, total := s.from(begin), uint64(0)
		for _, n := range rest {
			total += n.to - n.from
		}
		if total != next-begin-count(begin, next) {
			t.Fatalf("%v from %d on", rest, begin)
		}
	})
}

// TestSkippedRangesAreBounded: a session that crashes for ever has a bounded record, and
// counts as many skipped numbers as before.
func TestSkippedRangesAreBounded(t *testing.T) {
	t.Parallel()
	var s skipped
	for n := range uint64(2 * maxSkipped) {
		s = s.add(numbers{100 * n, 100*n + 10})
	}
	total := uint64(0)
	for _, n := range s {
		total += n.to - n.from
	}
	if len(s) != maxSkipped || total != 10*2*maxSkipped {
		t.Errorf("%d ranges with %d numbers", len(s), total)
	}
	if got := (skipped{{5, 9}, {20, 30}, {40, 60}}).between(6, 50); len(got) != 1 || got[0] != (numbers{20, 30}) {
		t.Errorf("between 6 and 50: %v", got)
	}
	for _, damaged := range [][]byte{make([]byte, 15), make([]byte, 16), make([]byte, 16*(maxSkipped+1)), skipped{{9, 12}, {11, 20}}.append(nil)} {
		if _, err := parseSkipped(damaged); !errors.Is(err, ErrLayout) {
			t.Errorf("%d bytes: %v", len(damaged), err)
		}
	}
}

// TestCrashesTakeNoMessages: a report that a client has not fetched is there after more
// crashes than the kept numbers are reservations.
func TestCrashesTakeNoMessages(t *testing.T) {
	t.Parallel()
	disk := kvtest.New()
	o := storeOptions(func(o *Options) { o.KeepMessages, o.ReserveSeqs = 10_000, 1_000 })
	s := openStore(t, disk, o)
	sendOne(t, s, "8")
	for range 30 {
		s = openStore(t, disk, o) // nothing was closed
		sendOne(t, s, "8")
	}
	if next := s.NextSenderMsgSeqNum(); next < 30*1_000 {
		t.Fatalf("the next number is %d", next)
	}
	if got := numbersOf(t, s, 1, 1); got != "81" {
		t.Errorf("the first report: %q", got)
	}
	for range 10_000 + 2*pruneStep {
		sendOne(t, s, "8")
	}
	count := 0
	disk.Scan([]byte{keyMessage}, []byte{keyMessage + 1}, func(_, _ []byte) bool { count++; return true })
	if count < 10_000 || count > 10_000+pruneStep {
		t.Errorf("%d messages are kept, want 10000 to %d", count, 10_000+pruneStep)
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	if again := openStore(t, disk, o); len(again.skipped) != 1 || again.skipped[0].from != 1 {
		t.Errorf("after a reset and a crash: %v", again.skipped)
	}
}
