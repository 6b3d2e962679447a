package rfq

import (
	"encoding/binary"
	"errors"

	"blockdesk/market"
)

// ErrRequest is returned for bytes that are no request of AppendRequest.
var ErrRequest = errors.New("not an encoded desk request")

// codec encodes or decodes fields. The walk method of a type lists its fields once, for
// both directions: little-endian, fixed widths, texts and lists with a one-byte length. So
// a value has one encoding, and bytes that decode completely encode to the same bytes.
// Encoding changes no value: any number of goroutines may encode one.
type codec struct {
	buf     []byte // encoded bytes, or bytes left to decode
	reading bool
	bad     bool // decoding: the bytes are invalid
	v2      bool // the fields of version 2 are encoded too
}

// usesV2 reports whether a field of v is set that only version 2 encodes. Everything is
// encoded in the lowest version that has all its values, so that what uses nothing new has
// the bytes of 0.1.0.
func usesV2(v any) bool {
	n, ok := v.(interface{ usesV2() bool })
	return ok && n.usesV2()
}

// take returns the next n bytes, or nil if there are fewer.
func (w *codec) take(n int) []byte {
	if n > len(w.buf) {
		w.bad, w.buf = true, nil
		return nil
	}
	taken := w.buf[:n]
	w.buf = w.buf[n:]
	return taken
}

// complete reports whether all bytes were decoded and valid.
func (w *codec) complete() bool { return !w.bad && len(w.buf) == 0 }

func u8[T ~uint8](w *codec, v *T) {
	if !w.reading {
		w.buf = append(w.buf, uint8(*v))
	} else if b := w.take(1); b != nil {
		*v = T(b[0])
	}
}

func u16[T ~uint16](w *codec, v *T) {
	if !w.reading {
		w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(*v))
	} else if b := w.take(2); b != nil {
		*v = T(binary.LittleEndian.Uint16(b))
	}
}

func u32(w *codec, v *uint32) {
	if !w.reading {
		w.buf = binary.LittleEndian.AppendUint32(w.buf, *v)
	} else if b := w.take(4); b != nil {
		*v = binary.LittleEndian.Uint32(b)
	}
}

func u64[T ~uint64](w *codec, v *T) {
	if !w.reading {
		w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(*v))
	} else if b := w.take(8); b != nil {
		*v = T(binary.LittleEndian.Uint64(b))
	}
}

func (w *codec) i64(v *int64) {
	u := uint64(*v)
	if u64(w, &u); w.reading {
		*v = int64(u)
	}
}

func (w *codec) flag(v *bool) {
	var b uint8
	if *v {
		b = 1
	}
	if u8(w, &b); w.reading {
		w.bad = w.bad || b > 1
		*v = b == 1
	}
}

// bytes encodes or decodes len(v) bytes.
func (w *codec) bytes(v []byte) {
	if !w.reading {
		w.buf = append(w.buf, v...)
	} else if b := w.take(len(v)); b != nil {
		copy(v, b)
	}
}

func (w *codec) address(v *market.Address) { w.bytes(v[:]) }

// text encodes or decodes 0..MaxText bytes. A longer text is encoded such that decoding fails.
func (w *codec) text(v *string) {
	n := uint8(min(len(*v), 255))
	u8(w, &n)
	switch {
	case !w.reading:
		w.buf = append(w.buf, (*v)[:n]...)
	case n > MaxText:
		w.bad, w.buf = true, nil
	default:
		if b := w.take(int(n)); string(b) != *v {
			*v = string(b)
		}
	}
}

// amounts encodes or decodes 0..MaxTranches amounts, like text.
func (w *codec) amounts(v *[]market.USD) {
	n := uint8(min(len(*v), 255))
	u8(w, &n)
	if w.reading {
		*v = (*v)[:0]
		if n > MaxTranches || int(n)*8 > len(w.buf) {
			w.bad, w.buf = true, nil
			return
		}
		for range n {
			*v = append(*v, 0)
			u64(w, &(*v)[len(*v)-1])
		}
		return
	}
	for i := range n {
		u64(w, &(*v)[i])
	}
}
