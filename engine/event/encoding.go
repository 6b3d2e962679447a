package event

import (
	"encoding/binary"
	"unsafe"
)

// Append appends e to dst as 8 little-endian words, the input of Digest.
func (e *Event) Append(dst []byte) []byte {
	for _, w := range (*[Size / 8]uint64)(unsafe.Pointer(e)) {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst
}

// Decode reads what Append wrote. It accepts any Size bytes.
func (e *Event) Decode(data *[Size]byte) {
	words := (*[Size / 8]uint64)(unsafe.Pointer(e))
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(data[8*i:])
	}
}
