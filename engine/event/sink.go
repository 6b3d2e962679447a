package event

import (
	"math/bits"
	"unsafe"
)

// Sink is a window of a ring of events that a book writes to. The writer gets a slot from
// Next and fills all of it. When the window is full, Next calls MakeRoom once: the engine's
// egress ring then waits for its slowest consumer, a replay or test grows the buffer. Not
// for concurrent use.
type Sink struct {
	Buf      []Event // length is a power of two
	Pos      uint64  // position of the next event, from 0 without end
	Limit    uint64  // first position that may not be written
	MakeRoom func(*Sink)
}

// Next returns the slot of the next event, with its old content.
func (s *Sink) Next() *Event {
	if s.Pos >= s.Limit {
		s.MakeRoom(s)
	}
	e := &s.Buf[s.Pos&uint64(len(s.Buf)-1)]
	s.Pos++
	return e
}

// At returns the event at position pos, which must still be in the buffer.
func (s *Sink) At(pos uint64) *Event { return &s.Buf[pos&uint64(len(s.Buf)-1)] }

// NewGrowingSink returns a Sink that keeps everything written since the last Reset, for
// replays and tests.
func NewGrowingSink(capacity int) *Sink {
	n := 1 << bits.Len(uint(max(capacity, 2)-1))
	return &Sink{Buf: make([]Event, n), Limit: uint64(n), MakeRoom: grow}
}

func grow(s *Sink) {
	buf := make([]Event, 2*len(s.Buf))
	copy(buf, s.Buf)
	s.Buf, s.Limit = buf, uint64(len(buf))
}

// Events returns the content of a growing Sink. It aliases the buffer.
func (s *Sink) Events() []Event { return s.Buf[:s.Pos] }

// Reset empties a growing Sink and keeps its memory.
func (s *Sink) Reset() { s.Pos = 0 }

// Digest adds e to the digest of an event stream. The digest depends only on the events and
// their order, not on batches. It detects divergence, not an adversary who chooses the
// events.
func Digest(sum uint64, e *Event) uint64 {
	w := (*[8]uint64)(unsafe.Pointer(e))
	a := mix(w[0]^0xa0761d6478bd642f, w[1]^0xe7037ed1a0b428db)
	b := mix(w[2]^0x8ebc6af09c88c6e3, w[3]^0x589965cc75374cc3)
	c := mix(w[4]^0x1d8e4e27c47d124f, w[5]^0xeb44accab455d165)
	d := mix(w[6]^0x9e3779b97f4a7c15, w[7]^0xbf58476d1ce4e5b9)
	return mix(sum^a^bits.RotateLeft64(c, 21), b^bits.RotateLeft64(d, 43)^0x94d049bb133111eb)
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
