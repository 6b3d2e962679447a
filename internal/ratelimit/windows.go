package ratelimit

import (
	"math"
	"time"
)

// Span is the width of a window.
const Span = time.Minute

const span = int64(Span)

// Windows is a sliding window for each client, exact to the nanosecond: it grants a
// request if fewer than most were granted in the Span before. A token bucket of the
// same rate could grant twice as many in one minute.
//
// A new client in a full set of the table replaces the client whose last grant is the
// oldest; if several are equally old, the one with the fewest grants.
//
// Memory: 48 bytes a slot, and 16 for each request of its busiest minute, which it does
// not free. Safe for concurrent use.
type Windows struct {
	most  int
	clock func() int64
	table[window]
}

type window struct {
	// at has the times of grants, oldest first; from is the first one inside the
	// window.
	at   []int64
	from int
}

// NewWindows returns empty windows for at least clients clients, which grant each of them
// most requests a Span. clock returns nanoseconds that never decrease.
func NewWindows(most, clients int, clock func() int64) *Windows {
	return &Windows{most: most, clock: clock, table: newTable[window](clients)}
}

// Take grants a request if the client's window has room; a refusal changes nothing.
func (l *Windows) Take(c Client) Allowance {
	now := l.clock()
	places, lock := l.lock(c)
	defer lock.Unlock()
	w := windowFor(places, c)
	w.forget(now)
	if w.count() >= l.most {
		oldest, newest := w.at[w.from], w.at[len(w.at)-1]
		return Allowance{ResetS: Seconds(newest + span - now), RetryS: Seconds(oldest + span - now)}
	}
	w.at = append(w.at, now)
	return Allowance{OK: true, Remaining: int64(l.most - w.count()), ResetS: Seconds(span)}
}

// windowFor returns the client's window; a new one is empty.
func windowFor(s *set[window], c Client) *window {
	p, known := s.find(c, older)
	if !known {
		p.client, p.state.at, p.state.from = c, p.state.at[:0], 0
	}
	return &p.state
}

// older reports whether a's last grant is before b's, or at the same time and a has fewer
// grants.
func older(a, b *window) bool {
	return a.last() < b.last() || a.last() == b.last() && a.count() < b.count()
}

// forget removes the grants that have left the window. It moves the remaining grants to
// the front only if they are at most half of the slice, so each is moved once on average.
func (w *window) forget(now int64) {
	for w.from < len(w.at) && now-w.at[w.from] >= span {
		w.from++
	}
	if 2*w.from >= len(w.at) {
		w.at, w.from = w.at[:copy(w.at, w.at[w.from:])], 0
	}
}

// last returns the time of the newest grant, or the earliest time if there is none.
func (w *window) last() int64 {
	if w.count() == 0 {
		return math.MinInt64
	}
	return w.at[len(w.at)-1]
}

func (w *window) count() int { return len(w.at) - w.from }
