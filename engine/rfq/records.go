package rfq

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrRecord is what is wrong with bytes that AppendRecord cannot have written.
var ErrRecord = errors.New("not a record of the desk")

// recordHead is what stands before a record in a store: its tag u8, and the size
// of what follows u16, little-endian. What follows is what its events carry.
const recordHead = 1 + 2

// AppendRecord appends rec's encoding for a store and returns the extended slice.
// Records may follow each other. It changes nothing of rec: any number of
// goroutines may write one at once.
func AppendRecord(dst []byte, rec Record) []byte {
	at := len(dst)
	w := wire{buf: append(dst, uint8(rec.Tag()), 0, 0)}
	rec.walk(&w)
	binary.LittleEndian.PutUint16(w.buf[at+1:], uint16(len(w.buf)-at-recordHead))
	return w.buf
}

// DecodeRecord reads the first record of data, and returns what comes after it.
// The record shares nothing with data, and would be written the same again.
// Errors: ErrRecord.
func DecodeRecord(data []byte) (rec Record, rest []byte, err error) {
	if len(data) < recordHead {
		return nil, nil, fmt.Errorf("%w: %d bytes", ErrRecord, len(data))
	}
	size := int(binary.LittleEndian.Uint16(data[1:]))
	if rec = newRecord(Tag(data[0])); rec == nil || len(data)-recordHead < size {
		return nil, nil, fmt.Errorf("%w: tag %d, %d of %d bytes", ErrRecord, data[0], len(data)-recordHead, size)
	}
	w := wire{buf: data[recordHead : recordHead+size], reading: true}
	if rec.walk(&w); !w.whole() {
		return nil, nil, fmt.Errorf("%w: damaged, tag %d of %d bytes", ErrRecord, data[0], size)
	}
	return rec, data[recordHead+size:], nil
}
