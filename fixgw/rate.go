package fixgw

import "time"

// bucket is a token bucket of burst tokens, refilled rate a second. One
// goroutine at a time.
type bucket struct {
	rate, burst int64
	tokens      int64 // in units of 1/second nanoseconds
	at          int64 // Unix nanoseconds of the last refill; 0 = full
}

// newBucket returns a full one.
func newBucket(rate, burst int) bucket { return bucket{rate: int64(rate), burst: int64(burst)} }

// oneToken is a token in the unit of bucket.tokens.
const oneToken = int64(time.Second)

// take uses one token and reports whether there was one. A clock that goes back
// refills nothing.
func (b *bucket) take(now time.Time) bool {
	if !b.has(now) {
		return false
	}
	b.tokens -= oneToken
	return true
}

// has reports whether there is a token.
func (b *bucket) has(now time.Time) bool {
	at, most := now.UnixNano(), b.burst*oneToken
	switch elapsed := at - b.at; {
	case b.at == 0 || elapsed >= most/b.rate:
		b.tokens = most
	case elapsed > 0:
		b.tokens = min(most, b.tokens+elapsed*b.rate)
	}
	b.at = at
	return b.tokens >= oneToken
}
