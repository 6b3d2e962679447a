package session

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// maxSkipped bounds the ranges of a session; above it the two lowest are joined.
const maxSkipped = 256

// numbers are the outgoing numbers from..to-1.
type numbers struct{ from, to uint64 }

// skipped are the outgoing numbers that starts after a crash have left out, in ascending
// order. They do not count among the numbers whose messages are kept: crashes must not take
// the place of messages that a client has not fetched yet. On disk: 16 bytes a range, both
// ends big-endian.
type skipped []numbers

func parseSkipped(value []byte) (skipped, error) {
	if len(value)%16 != 0 || len(value) > 16*maxSkipped {
		return nil, fmt.Errorf("%w: the record of skipped numbers has %d bytes", ErrLayout, len(value))
	}
	var s skipped
	last := uint64(0)
	for ; len(value) > 0; value = value[16:] {
		n := numbers{binary.BigEndian.Uint64(value), binary.BigEndian.Uint64(value[8:])}
		if n.from < last || n.to <= n.from {
			return nil, fmt.Errorf("%w: skipped numbers %d to %d after %d", ErrLayout, n.from, n.to, last)
		}
		last = n.to
		s = append(s, n)
	}
	return s, nil
}

func (s skipped) append(dst []byte) []byte {
	for _, n := range s {
		dst = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, n.from), n.to)
	}
	return dst
}

// add returns s with n, which comes after all of s.
func (s skipped) add(n numbers) skipped {
	if last := len(s) - 1; last >= 0 && s[last].to >= n.from {
		s[last].to = max(s[last].to, n.to)
		return s
	}
	if len(s) == maxSkipped {
		s[1].from -= s[0].to - s[0].from // as many numbers
		s = slices.Delete(s, 0, 1)
	}
	return append(s, n)
}

// between returns the ranges of s that lie between from and next. Others are of a life of the
// session that release 0.1.0 has reset.
func (s skipped) between(from, next uint64) skipped {
	return slices.DeleteFunc(s, func(n numbers) bool { return n.from < from || n.to > next })
}

// from returns s without the numbers below limit.
func (s skipped) from(limit uint64) skipped {
	for len(s) > 0 && s[0].to <= limit {
		s = s[1:]
	}
	if len(s) > 0 {
		s[0].from = max(s[0].from, limit)
	}
	return s
}

// keepFrom returns the number from which on keep numbers, skipped ones aside, come before
// next; at least from. first reports how many lie between from and it.
func (s skipped) keepFrom(from, next, keep uint64) (begin, first uint64) {
	used := next - from
	for _, n := range s {
		used -= n.to - n.from
	}
	if used <= keep {
		return from, 0
	}
	first, begin = used-keep, from
	left := first
	for _, n := range s {
		if left < n.from-begin {
			break
		}
		left -= n.from - begin
		begin = n.to
	}
	return begin + left, first
}
