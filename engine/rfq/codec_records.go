package rfq

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrRecord is wrapped by errors about bytes that are no record of AppendRecord.
var ErrRecord = errors.New("not an encoded desk record")

// recordHeaderSize is the header of a record in a store: the tag (1 byte), plus version2 if
// that is its version, and the length of the fields (2 bytes, little-endian). The fields are
// those of its events.
const recordHeaderSize = 1 + 2

// AppendRecord appends the encoding of rec for a store and returns the extended slice.
// Records may follow each other. It only reads rec, so any number of goroutines may encode
// one.
func AppendRecord(dst []byte, rec Record) []byte {
	at := len(dst)
	tag := encodedTag(rec)
	w := codec{buf: append(dst, uint8(tag), 0, 0), v2: tag.v2()}
	rec.walk(&w)
	binary.LittleEndian.PutUint16(w.buf[at+1:], uint16(len(w.buf)-at-recordHeaderSize))
	return w.buf
}

// DecodeRecord decodes the first record of data and returns the rest. The record shares no
// memory with data and encodes to the same bytes. Errors: ErrRecord.
func DecodeRecord(data []byte) (rec Record, rest []byte, err error) {
	if len(data) < recordHeaderSize {
		return nil, nil, fmt.Errorf("%w: %d bytes", ErrRecord, len(data))
	}
	size := int(binary.LittleEndian.Uint16(data[1:]))
	tag := Tag(data[0])
	if rec = newRecord(tag.plain()); rec == nil || len(data)-recordHeaderSize < size {
		return nil, nil, fmt.Errorf("%w: tag %d, %d of %d bytes", ErrRecord, data[0], len(data)-recordHeaderSize, size)
	}
	w := codec{buf: data[recordHeaderSize : recordHeaderSize+size], reading: true, v2: tag.v2()}
	if rec.walk(&w); !w.complete() || usesV2(rec) != w.v2 {
		return nil, nil, fmt.Errorf("%w: damaged, tag %d of %d bytes", ErrRecord, data[0], size)
	}
	return rec, data[recordHeaderSize+size:], nil
}
