package wire

import (
	"crypto/rand"
	"encoding/hex"
	"sync/atomic"
)

// RequestID names one request in its answer and in the log: 8 hexadecimal
// digits drawn at start, a dash, 10 that count. A client's own X-Request-Id is
// not taken over: it would be an echo.
type RequestID [19]byte

// RequestIDs makes request ids. Any goroutine may use it.
type RequestIDs struct {
	prefix [8]byte
	count  atomic.Uint64
}

// NewRequestIDs returns ids with a prefix of their own.
func NewRequestIDs() *RequestIDs {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails, says crypto/rand
	ids := &RequestIDs{}
	hex.Encode(ids.prefix[:], random[:])
	return ids
}

// Next returns the next id.
func (r *RequestIDs) Next() (id RequestID) {
	const digits = "0123456789abcdef"
	copy(id[:], r.prefix[:])
	id[8] = '-'
	n := r.count.Add(1)
	for i := len(id) - 1; i > 8; i-- {
		id[i] = digits[n&15]
		n >>= 4
	}
	return id
}
