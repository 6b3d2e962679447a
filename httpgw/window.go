package httpgw

import (
	"hash/maphash"
	"math"
	"sync"
	"time"
)

// windowSpan is the width of a Window.
const windowSpan = int64(time.Minute)

// windows is a sliding window for each client, exact to the nanosecond: a
// request is granted where fewer than most were in the 60 s before it, and is
// forgotten when it is 60 s old. A token bucket of the same rate would let twice
// as many through in some minute.
//
// The table is that of limiter, with its reasons: a newcomer to a full set takes
// the place of the client whose last request is the oldest, and of those of the
// one with the fewest.
//
// Memory: 48 bytes a place, and 16 for each request of its busiest minute. A
// place keeps what it has grown to.
type windows struct {
	clock func() int64
	most  int
	seed  maphash.Seed
	sets  []windowSet
	locks [limitShards]sync.Mutex // set i is under locks[i % limitShards]
}

type windowSet [limitWays]window

// window of the zero key is free.
type window struct {
	key clientKey
	// at are the moments of grants, oldest first; from is the first that has not
	// left the window.
	at   []int64
	from int
}

func newWindows(w Window, clients int, clock func() int64) *windows {
	return &windows{clock: clock, most: w.PerMinute, seed: maphash.MakeSeed(), sets: make([]windowSet, setsFor(clients))}
}

// take grants a request where the client's window has room; a refusal changes
// nothing.
func (l *windows) take(key clientKey) allowance {
	now := l.clock()
	at := int(maphash.Comparable(l.seed, key) & uint64(len(l.sets)-1))
	lock := &l.locks[at%limitShards]
	lock.Lock()
	defer lock.Unlock()

	w := l.sets[at].find(key)
	w.forget(now)
	if w.count() >= l.most {
		oldest, newest := w.at[w.from], w.at[len(w.at)-1]
		return allowance{resetS: seconds(newest + windowSpan - now), retryS: seconds(oldest + windowSpan - now)}
	}
	w.at = append(w.at, now)
	return allowance{ok: true, remaining: int64(l.most - w.count()), resetS: seconds(windowSpan)}
}

// find returns the client's window, or the place that it may take, emptied.
func (s *windowSet) find(key clientKey) *window {
	victim := &s[0]
	for i := range s {
		w := &s[i]
		if w.key == key {
			return w
		}
		if w.last() < victim.last() || w.last() == victim.last() && w.count() < victim.count() {
			victim = w
		}
	}
	victim.key, victim.at, victim.from = key, victim.at[:0], 0
	return victim
}

// forget lets go of what has left the window. What is left moves to the front
// where that is less than half, so each grant is moved once on average.
func (w *window) forget(now int64) {
	for w.from < len(w.at) && now-w.at[w.from] >= windowSpan {
		w.from++
	}
	if 2*w.from >= len(w.at) {
		w.at, w.from = w.at[:copy(w.at, w.at[w.from:])], 0
	}
}

// last returns the moment of the newest grant; before all moments where there is
// none.
func (w *window) last() int64 {
	if w.count() == 0 {
		return math.MinInt64
	}
	return w.at[len(w.at)-1]
}

func (w *window) count() int { return len(w.at) - w.from }
