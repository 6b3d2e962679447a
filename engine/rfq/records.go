package rfq

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrRecord is what is wrong with bytes that AppendRecord cannot have written.
var ErrRecord = errors.New("not a record of the desk")

// recordHeaderSize is what stands before a record in a store: its tag u8, and the size
// of what follows u16, little-endian. What follows is what its events carry.
const recordHeaderSize = 1 + 2

// AppendRecord appends rec's encoding for a store and returns the extended slice.
// Records may follow each other. It changes nothing of rec: any number of
// goroutines may write one at once.
func AppendRecord(dst []byte, rec Record) []byte {
	at := len(dst)
	w := codec{buf: append(dst, uint8(rec.Tag()), 0, 0)}
	rec.walk(&w)
	binary.LittleEndian.PutUint16(w.buf[at+1:], uint16(len(w.buf)-at-recordHeaderSize))
	return w.buf
}

// DecodeRecord reads the first record of data, and returns what comes after it.
// The record shares nothing with data, and would be written the same again.
// Errors: ErrRecord.
func DecodeRecord(data []byte) (rec Record, rest []byte, err error) {
	if len(data) < recordHeaderSize {
		return nil, nil, fmt.Errorf("%w: %d bytes", ErrRecord, len(data))
	}
	size := int(binary.LittleEndian.Uint16(data[1:]))
	if rec = newRecord(Tag(data[0])); rec == nil || len(data)-recordHeaderSize < size {
		return nil, nil, fmt.Errorf("%w: tag %d, %d of %d bytes", ErrRecord, data[0], len(data)-recordHeaderSize, size)
	}
	w := codec{buf: data[recordHeaderSize : recordHeaderSize+size], reading: true}
	if rec.walk(&w); !w.complete() {
		return nil, nil, fmt.Errorf("%w: damaged, tag %d of %d bytes", ErrRecord, data[0], size)
	}
	return rec, data[recordHeaderSize+size:], nil
}
