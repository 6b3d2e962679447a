// Package codec decodes snapshots of the engine's state and of its market data: fields of
// fixed size, little-endian, one after the other.
//
// A Reader returns zeros past the end and sets Short, so that a caller decodes a whole
// structure and checks once. Callers bound counts by what is left before they allocate,
// and check values themselves. ErrSnapshot is a damaged snapshot, ErrVersion an intact one
// of another version; both are wrapped by the callers' errors.
package codec

import (
	"encoding/binary"
	"errors"
)

var (
	// ErrSnapshot is wrapped by errors about a damaged snapshot.
	ErrSnapshot = errors.New("damaged snapshot")
	// ErrVersion is wrapped by errors about an intact snapshot of another program version.
	ErrVersion = errors.New("written by another version of the program")
)

// Reader decodes the fields of a snapshot. Past the end it returns zeros and sets Short.
type Reader struct {
	Data  []byte // what is left
	Short bool
}

// Take returns the next n bytes.
func (r *Reader) Take(n int) []byte {
	if n > len(r.Data) {
		r.Short = true
		r.Data = nil
		return make([]byte, n)
	}
	taken := r.Data[:n]
	r.Data = r.Data[n:]
	return taken
}

// U8 returns the next byte.
func (r *Reader) U8() uint8 { return r.Take(1)[0] }

// U16 returns the number in the next two bytes.
func (r *Reader) U16() uint16 { return binary.LittleEndian.Uint16(r.Take(2)) }

// U32 returns the number in the next four bytes.
func (r *Reader) U32() uint32 { return binary.LittleEndian.Uint32(r.Take(4)) }

// U64 returns the number in the next eight bytes.
func (r *Reader) U64() uint64 { return binary.LittleEndian.Uint64(r.Take(8)) }
