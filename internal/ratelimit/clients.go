package ratelimit

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

const (
	shards = 64 // locks of a table
	ways   = 8  // clients that share a set of a table
)

// Client is an IPv4 address in its IPv6 form, or the /64 of an IPv6 address, because a
// subscriber owns a whole /64. The zero value is not a client.
type Client [16]byte

// ClientOf returns the client that an address belongs to.
func ClientOf(addr netip.Addr) Client {
	addr = addr.Unmap()
	key := Client(addr.As16())
	if addr.Is6() {
		clear(key[8:])
		key[15] = 1 // distinguishes the /64 of ::1 from the zero value
	}
	return key
}

// Allowance is the result of a request for a token.
type Allowance struct {
	OK        bool
	Remaining int64 // whole tokens left
	ResetS    int64 // seconds until all tokens are back, rounded up
	RetryS    int64 // seconds until the next token, rounded up; 0 if OK
}

// table has one T for each client, in a fixed number of slots. It is set-associative: a
// client's hash, seeded at start, selects a set of slots. A new client in a full set
// replaces the one that loses least. That lets a client with many addresses evict others,
// but a limit per address does not stop such a client anyway, and refusing new clients
// would let it lock out all of them.
type table[T any] struct {
	seed  maphash.Seed
	sets  []set[T]
	locks [shards]sync.Mutex // set i is under locks[i % shards]
}

type set[T any] [ways]slot[T]

type slot[T any] struct {
	client Client // zero: the slot is free
	state  T
}

// newTable returns a table for at least that many clients, with a power of two of sets.
func newTable[T any](clients int) table[T] {
	sets := shards
	for sets*ways < clients {
		sets *= 2
	}
	return table[T]{seed: maphash.MakeSeed(), sets: make([]set[T], sets)}
}

// lock returns the client's set with its lock held.
func (t *table[T]) lock(c Client) (*set[T], *sync.Mutex) {
	at := int(maphash.Comparable(t.seed, c) & uint64(len(t.sets)-1))
	lock := &t.locks[at%shards]
	lock.Lock()
	return &t.sets[at], lock
}

// find returns the client's slot, or the slot that it may take, and whether it was the
// client's. loses reports whether a loses less than b if it is replaced.
func (s *set[T]) find(c Client, loses func(a, b *T) bool) (p *slot[T], known bool) {
	victim := &s[0]
	for i := range s {
		switch p := &s[i]; {
		case p.client == c:
			return p, true
		case loses(&p.state, &victim.state):
			victim = p
		}
	}
	return victim, false
}

// Buckets is a token bucket for each client. Safe for concurrent use.
type Buckets struct {
	rate  Rate
	clock func() int64
	table[Bucket]
}

// NewBuckets returns full buckets for at least that many clients. clock returns
// nanoseconds that never fall.
func NewBuckets(r Rate, clients int, clock func() int64) *Buckets {
	return &Buckets{rate: r, clock: clock, table: newTable[Bucket](clients)}
}

// fuller reports whether a was full before b: a full bucket loses nothing.
func fuller(a, b *Bucket) bool { return a.full < b.full }

// Take takes a token of the client's bucket if there is one; a refusal changes
// nothing.
func (l *Buckets) Take(c Client) Allowance {
	now := l.clock()
	places, lock := l.lock(c)
	defer lock.Unlock()
	b := bucketFor(places, c, now)
	full := max(b.full, now) + l.rate.interval
	if wait := full - now - l.rate.depth; wait > 0 {
		return Allowance{ResetS: Seconds(b.full - now), RetryS: Seconds(wait)}
	}
	b.full = full
	return Allowance{OK: true, Remaining: (l.rate.depth - (full - now)) / l.rate.interval, ResetS: Seconds(full - now)}
}

// Charge takes n more tokens of a client that has just taken one. If it has too few, it
// is refused until they have refilled.
func (l *Buckets) Charge(c Client, n int64) {
	now := l.clock()
	places, lock := l.lock(c)
	defer lock.Unlock()
	b := bucketFor(places, c, now)
	b.full = max(b.full, now) + n*l.rate.interval
}

// bucketFor returns the client's bucket; a new one is full at now.
func bucketFor(s *set[Bucket], c Client, now int64) *Bucket {
	p, known := s.find(c, fuller)
	if !known {
		p.client, p.state = c, Bucket{full: now}
	}
	return &p.state
}

// Seconds rounds nanoseconds up to whole seconds.
func Seconds(ns int64) int64 { return (ns + int64(time.Second) - 1) / int64(time.Second) }
