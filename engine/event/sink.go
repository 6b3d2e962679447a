package event

import (
	"math/bits"
	"unsafe"
)

// Sink is where a book writes its events: a window on a ring of records. The
// writer asks Next for a slot and fills it whole. When the window is full, Next
// calls Room once, which either moves the limit (the engine's egress ring waits
// for its slowest consumer) or grows the buffer (a replay, a test). Not for
// concurrent use.
type Sink struct {
	Buf      []Event // length is a power of two
	Pos      uint64  // position of the next event, from 0 for ever
	Limit    uint64  // first position that may not be written yet
	MakeRoom func(*Sink)
}

// Next returns the slot of the next event. Its old content is not cleared.
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

// NewGrowingSink returns a Sink that keeps everything written since the last Reset,
// growing as needed: for replays and tests, not for the live engine.
func NewGrowingSink(capacity int) *Sink {
	n := 1 << bits.Len(uint(max(capacity, 2)-1))
	return &Sink{Buf: make([]Event, n), Limit: uint64(n), MakeRoom: grow}
}

func grow(s *Sink) {
	buf := make([]Event, 2*len(s.Buf))
	copy(buf, s.Buf)
	s.Buf, s.Limit = buf, uint64(len(buf))
}

// Events returns what a growing Sink holds. It aliases the buffer.
func (s *Sink) Events() []Event { return s.Buf[:s.Pos] }

// Reset empties a growing Sink and keeps its memory.
func (s *Sink) Reset() { s.Pos = 0 }

// Digest folds e into the running digest of an event stream. It depends on the
// events and their order alone, not on how they were batched. It finds
// divergence; it is no defence against an adversary who picks the events.
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
