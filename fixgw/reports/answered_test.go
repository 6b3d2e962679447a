package reports

import (
	"context"
	"fmt"
	"testing"
	"time"

	"blockdesk/persist/kv/kvtest"
)

// TestAnswered: the filter contains every answered ClOrdID, also those from before a
// restart, and almost no other.
func TestAnswered(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	today := DayOf(now.UnixNano())
	store := kvtest.New()
	err := store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		for day := today - 3; day <= today+1; day++ {
			set(answerKey(nil, day, 7, []byte("old")), []byte("x"))
		}
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	q := NewRequests(store, func() time.Time { return now })
	a := &q.answers.filter
	if !a.mayContain(today, 7, []byte("new")) {
		t.Error("denied before the store was read")
	}
	if err := q.FillFilter(context.Background()); err != nil {
		t.Fatal(err)
	}
	for day := today - 1; day <= today+1; day++ {
		if !a.mayContain(day, 7, []byte("old")) {
			t.Errorf("day %d: an answer of a life before is denied", day)
		}
	}
	if a.mayContain(today-3, 7, []byte("old")) || a.mayContain(today, 8, []byte("old")) {
		t.Error("an old day, or another session's")
	}
	const n = 100_000
	for i := range n {
		a.add(today, 7, fmt.Appendf(nil, "o%d", i))
	}
	wrong := 0
	for i := range n {
		if !a.mayContain(today, 7, fmt.Appendf(nil, "o%d", i)) {
			t.Fatalf("o%d is denied", i)
		}
		if a.mayContain(today, 7, fmt.Appendf(nil, "p%d", i)) {
			wrong++
		}
	}
	if wrong > n/1000 {
		t.Errorf("%d of %d were taken for answered", wrong, n)
	}
	// Four days on the slot is another day's; an answer of the day before it is
	// not looked for any more.
	a.add(today+4, 7, []byte("z"))
	a.add(today, 7, []byte("y"))
	if a.mayContain(today, 7, []byte("o1")) || a.mayContain(today+4, 7, []byte("y")) || !a.mayContain(today+4, 7, []byte("z")) {
		t.Error("days mix")
	}
	if got := testing.AllocsPerRun(100, func() { a.mayContain(today+4, 7, []byte("q")) }); got != 0 {
		t.Errorf("a look allocates %v times", got)
	}
}
