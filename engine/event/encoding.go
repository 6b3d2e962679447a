package event

import (
	"encoding/binary"
	"unsafe"
)

// Append appends the record's bytes to dst: its 8 words, little-endian. Digest is
// a function of the same words.
func (e *Event) Append(dst []byte) []byte {
	for _, w := range (*[Size / 8]uint64)(unsafe.Pointer(e)) {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst
}

// Decode reads what Append wrote. It takes any Size bytes for a record; which
// fields mean what is Kind's business.
func (e *Event) Decode(data *[Size]byte) {
	words := (*[Size / 8]uint64)(unsafe.Pointer(e))
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(data[8*i:])
	}
}
