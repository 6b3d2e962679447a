package httpgw

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

const (
	limitShards = 64 // locks
	limitWays   = 8  // clients that share a set of the table
)

// limiter is one token bucket for each client, exact to the nanosecond, in a
// table that does not grow. A bucket is one number, the instant when it is full
// again (the generic cell rate algorithm): nothing is refilled by a timer.
//
// The table is set-associative: a client's hash, seeded at start, picks a set
// of limitWays places. A newcomer to a full set takes the place of a client
// whose bucket is full, which loses nothing, or else of the one whose bucket is
// nearest to full. Whoever commands enough addresses to push others out is not
// bound by a limit per address anyway, and refusing newcomers instead would let
// him lock everybody out.
type limiter struct {
	clock    func() int64
	interval int64 // nanoseconds a token, rounded up: never more than the rate
	depth    int64 // interval × burst
	seed     maphash.Seed
	sets     []limitSet
	locks    [limitShards]sync.Mutex // set i is under locks[i % limitShards]
}

type limitSet [limitWays]bucket

// bucket of the zero key is free.
type bucket struct {
	key  clientKey
	full int64 // when the bucket is full again, on clock
}

// clientKey is an IPv4 address in its IPv6 form, or the /64 of an IPv6 address:
// one subscriber commands all of a /64.
type clientKey [16]byte

func keyOf(addr netip.Addr) clientKey {
	addr = addr.Unmap()
	key := clientKey(addr.As16())
	if addr.Is6() {
		clear(key[8:])
		key[15] = 1 // no client has the zero key, ::1 neither
	}
	return key
}

// allowance is the state of a bucket after a request.
type allowance struct {
	ok        bool
	remaining int64 // whole tokens left
	resetS    int64 // seconds until the bucket is full, rounded up
	retryS    int64 // seconds until the next token, rounded up; 0 where ok
}

func newLimiter(r Rate, clients int, clock func() int64) *limiter {
	interval := (int64(time.Minute) + int64(r.PerMinute) - 1) / int64(r.PerMinute)
	return &limiter{
		clock: clock, interval: interval, depth: interval * int64(r.Burst),
		seed: maphash.MakeSeed(), sets: make([]limitSet, setsFor(clients)),
	}
}

// setsFor returns how many sets a table for so many clients has: a power of two.
func setsFor(clients int) int {
	sets := limitShards
	for sets*limitWays < clients {
		sets *= 2
	}
	return sets
}

// take takes a token of the client's bucket if there is one; a refusal changes
// nothing.
func (l *limiter) take(key clientKey) allowance {
	now := l.clock()
	at := int(maphash.Comparable(l.seed, key) & uint64(len(l.sets)-1))
	lock := &l.locks[at%limitShards]
	lock.Lock()
	defer lock.Unlock()

	b := l.sets[at].find(key, now)
	full := max(b.full, now) + l.interval
	if wait := full - now - l.depth; wait > 0 {
		return allowance{resetS: seconds(b.full - now), retryS: seconds(wait)}
	}
	b.key, b.full = key, full
	return allowance{ok: true, remaining: (l.depth - (full - now)) / l.interval, resetS: seconds(full - now)}
}

// charge takes n tokens more of a client who has just taken one. Those that he
// has not got he owes: until they have come back he is refused.
func (l *limiter) charge(key clientKey, n int64) {
	now := l.clock()
	at := int(maphash.Comparable(l.seed, key) & uint64(len(l.sets)-1))
	lock := &l.locks[at%limitShards]
	lock.Lock()
	defer lock.Unlock()
	b := l.sets[at].find(key, now)
	b.full = max(b.full, now) + n*l.interval
}

// find returns the client's bucket, or the place that it may take, with full
// already at now.
func (s *limitSet) find(key clientKey, now int64) *bucket {
	var victim *bucket
	for i := range s {
		b := &s[i]
		if b.key == key {
			return b
		}
		if victim == nil || b.full < victim.full {
			victim = b
		}
	}
	*victim = bucket{key: key, full: now}
	return victim
}

func seconds(ns int64) int64 { return (ns + int64(time.Second) - 1) / int64(time.Second) }
