// Package ratelimit limits the rate of requests: a Bucket for one client; Buckets (token
// buckets) and Windows (exact sliding minutes) for many clients in a table of fixed size.
// A request costs no allocation and no timer.
//
// A client is an IPv4 address or an IPv6 /64. When the table is full, a new client
// replaces the one that loses least, so the memory is bounded, and many new clients can
// evict others but not lock them out. Tables are safe for concurrent use; a Bucket is for
// one goroutine. All times are nanoseconds of a clock that the caller passes, so tests
// need no real time.
package ratelimit

import "time"

// Rate is a number of tokens per time, and how many may be taken at once.
type Rate struct {
	interval int64 // nanoseconds a token, rounded up, so that the rate is never exceeded
	depth    int64 // interval × burst
}

// NewRate returns the rate of tokens per time, of which burst may be taken at once. All
// three are above 0.
func NewRate(tokens int, per time.Duration, burst int) Rate {
	interval := (int64(per) + int64(tokens) - 1) / int64(tokens)
	return Rate{interval: interval, depth: interval * int64(burst)}
}

// Bucket is a token bucket in one number: the time when it is full again (the generic
// cell rate algorithm). The zero value is full. One goroutine at a time.
type Bucket struct{ full int64 }

// Take takes a token if there is one and reports whether there was.
func (b *Bucket) Take(now int64, r Rate) bool { return b.Spend(now, r.interval, r.depth) }

// Has reports whether there is a token.
func (b *Bucket) Has(now int64, r Rate) bool { return b.level(now, r.depth)+r.interval-now <= r.depth }

// Spend takes the tokens that refill in cost nanoseconds from a bucket that refills in
// depth, if it has that many, and reports whether it had.
func (b *Bucket) Spend(now, cost, depth int64) bool {
	full := b.level(now, depth) + cost
	if full-now > depth {
		return false
	}
	b.full = full
	return true
}

// level returns when the bucket is full again. A clock that goes back refills nothing,
// and leaves the bucket empty at worst.
func (b *Bucket) level(now, depth int64) int64 {
	b.full = min(max(b.full, now), now+depth)
	return b.full
}
