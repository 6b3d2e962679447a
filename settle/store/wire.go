package store

import "encoding/binary"

// reader decodes the fields of a value. Past the end it is bad, and returns zeros.
type reader struct {
	buf []byte
	bad bool
}

// take returns the next n bytes, zeros if they are not there.
func (r *reader) take(n int) []byte {
	if n > len(r.buf) {
		r.bad, r.buf = true, nil
		return make([]byte, n)
	}
	taken := r.buf[:n]
	r.buf = r.buf[n:]
	return taken
}

func (r *reader) u8() uint8   { return r.take(1)[0] }
func (r *reader) u16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) i64() int64  { return int64(r.u64()) }

func (r *reader) be64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }

func (r *reader) rest() []byte { return r.take(len(r.buf)) }

func (r *reader) version() {
	if r.u8() != valueVersion {
		r.bad = true
	}
}

// complete reports whether every field was there and no byte remains.
func (r *reader) complete() bool { return !r.bad && len(r.buf) == 0 }

var le = binary.LittleEndian
