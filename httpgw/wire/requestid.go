package wire

import (
	"crypto/rand"
	"encoding/hex"
	"sync/atomic"
)

// RequestID identifies a request in its answer and in the log: 8 random hexadecimal
// digits per process, a dash, and a counter of 10 digits. A client's own X-Request-Id
// is ignored, because answers repeat nothing that a client sent.
type RequestID [19]byte

// RequestIDs generates request ids. It is safe for concurrent use.
type RequestIDs struct {
	prefix [8]byte
	count  atomic.Uint64
}

// NewRequestIDs returns a generator with a random prefix.
func NewRequestIDs() *RequestIDs {
	var random [4]byte
	_, _ = rand.Read(random[:]) // crypto/rand never fails
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
