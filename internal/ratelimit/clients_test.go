package ratelimit

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// manualClock is a clock that a test sets.
type manualClock struct{ now int64 }

func (c *manualClock) read() int64 { return c.now }

// TestBucketExact: the description's limit, to the nanosecond.
func TestBucketExact(t *testing.T) {
	clock := &manualClock{now: 12345}
	l := NewBuckets(NewRate(60, time.Minute, 20), 100, clock.read)
	key := ClientOf(netip.MustParseAddr("192.0.2.1"))
	for i := int64(1); i <= 20; i++ {
		if a := l.Take(key); !a.OK || a.Remaining != 20-i || a.ResetS != i || a.RetryS != 0 {
			t.Fatalf("request %d of the burst: %+v", i, a)
		}
	}
	// Refusals cost nothing: however many, the next token comes on time.
	for range 1000 {
		if a := l.Take(key); a.OK || a.Remaining != 0 || a.RetryS != 1 || a.ResetS != 20 {
			t.Fatalf("request 21: %+v", a)
		}
	}
	clock.now += int64(time.Second) - 1
	if a := l.Take(key); a.OK || a.RetryS != 1 {
		t.Fatalf("a nanosecond early: %+v", a)
	}
	clock.now++
	if a := l.Take(key); !a.OK || a.Remaining != 0 {
		t.Fatalf("on time: %+v", a)
	}
	if a := l.Take(key); a.OK {
		t.Fatalf("two for one token: %+v", a)
	}
	// A long rest fills the bucket to its burst and not beyond.
	clock.now += int64(time.Hour)
	granted := 0
	for l.Take(key).OK {
		granted++
	}
	if granted != 20 {
		t.Errorf("%d after an hour, want 20", granted)
	}
	if !l.Take(ClientOf(netip.MustParseAddr("192.0.2.2"))).OK {
		t.Error("another client must have a bucket of its own")
	}
}

// TestBucketLaw: over any window, a client gets at most burst + rate × window,
// and one that asks at every instant gets exactly that.
func TestBucketLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perMinute, burst := rapid.IntRange(1, 100_000).Draw(t, "per minute"), rapid.IntRange(1, 50).Draw(t, "burst")
		r := NewRate(perMinute, time.Minute, burst)
		clock := &manualClock{}
		l := NewBuckets(r, 100, clock.read)
		granted := int64(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			clock.now += rapid.Int64Range(0, 2*r.interval).Draw(t, "step")
			for l.Take(Client{1}).OK {
				granted++
			}
			most := int64(burst) + clock.now*int64(perMinute)/int64(time.Minute)
			if granted > most {
				t.Fatalf("%d granted in %d ns, at most %d", granted, clock.now, most)
			}
		}
	})
}

func TestClientKeys(t *testing.T) {
	key := func(text string) Client { return ClientOf(netip.MustParseAddr(text)) }
	if key("192.0.2.1") != key("::ffff:192.0.2.1") {
		t.Error("an IPv4 address and its mapped form are one client")
	}
	if key("192.0.2.1") == key("192.0.2.2") {
		t.Error("two IPv4 addresses are two clients")
	}
	if key("2001:db8:1:2::1") != key("2001:db8:1:2:ffff:ffff:ffff:ffff") {
		t.Error("a /64 is one client")
	}
	if key("2001:db8:1:2::1") == key("2001:db8:1:3::1") {
		t.Error("two /64 are two clients")
	}
	if key("::1") == (Client{}) {
		t.Error("no client may have the key of a free slot")
	}
}

// TestTableIsBounded: one client more than the table holds evicts one, not the
// one that has used most.
func TestTableIsBounded(t *testing.T) {
	clock := &manualClock{}
	l := NewBuckets(NewRate(60, time.Minute, 20), 1, clock.read)
	if n := len(l.sets) * ways; n != shards*ways {
		t.Fatalf("%d places for one client", n)
	}
	client := func(i int) Client { return Client{1, byte(i >> 16), byte(i >> 8), byte(i)} }
	// Fill one set: find ways + 1 clients that share it.
	var same []Client
	setOf := func(key Client) *set[Bucket] {
		for i := range l.sets {
			for j := range l.sets[i] {
				if l.sets[i][j].client == key {
					return &l.sets[i]
				}
			}
		}
		return nil
	}
	l.Take(client(0))
	home := setOf(client(0))
	same = append(same, client(0))
	for i := 1; len(same) < ways+1; i++ {
		probe := bucketsLike(l)
		probe.Take(client(i))
		if probe.sets[indexOf(l, home)].has(client(i)) {
			same = append(same, client(i))
		}
	}
	// The first spends its whole burst, each other one token.
	for range 19 {
		l.Take(same[0])
	}
	for _, key := range same[1:] {
		l.Take(key)
	}
	if !home.has(same[0]) || !home.has(same[ways]) {
		t.Error("the newcomer must be let in, and the busiest client must stay")
	}
	if l.Take(same[0]).OK {
		t.Error("the busiest client got its bucket back")
	}
}

// bucketsLike returns empty buckets that hash as l does.
func bucketsLike(l *Buckets) *Buckets {
	return &Buckets{rate: l.rate, clock: l.clock, table: table[Bucket]{seed: l.seed, sets: make([]set[Bucket], len(l.sets))}}
}

func indexOf(l *Buckets, s *set[Bucket]) int {
	for i := range l.sets {
		if &l.sets[i] == s {
			return i
		}
	}
	return -1
}

func (s *set[T]) has(c Client) bool {
	for i := range s {
		if s[i].client == c {
			return true
		}
	}
	return false
}
