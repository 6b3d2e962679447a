package httpgw

import (
	"crypto/rand"
	"encoding/hex"
	"sync/atomic"
)

// requestID names one request in its answer and in the log: 8 hexadecimal
// digits drawn at start, a dash, 10 that count. A client's own X-Request-Id is
// not taken over: it would be an echo.
type requestID [19]byte

type requestIDs struct {
	prefix [8]byte
	count  atomic.Uint64
}

func newRequestIDs() *requestIDs {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails, says crypto/rand
	ids := &requestIDs{}
	hex.Encode(ids.prefix[:], random[:])
	return ids
}

func (r *requestIDs) next() (id requestID) {
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
