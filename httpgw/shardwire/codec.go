package shardwire

import (
	"encoding/binary"
	"fmt"

	"blockdesk/catalog"
	"blockdesk/market"
)

// codec encodes or decodes fields, so that one walk function defines the order of a
// value's fields for both directions. Encoding does not write to the value, because
// other goroutines may read it.
type codec struct {
	buf     []byte // encoding: all bytes so far; decoding: the bytes left
	reading bool
	err     error // the first error; nothing is decoded after it
}

func (c *codec) fail(what string, n uint64) {
	if c.err == nil {
		c.err = fmt.Errorf("%s %d: %w", what, n, ErrFormat)
	}
	if c.reading {
		c.buf = nil
	}
}

// take returns the next n bytes, or nil if there are fewer.
func (c *codec) take(n int) []byte {
	if n > len(c.buf) {
		c.fail("bytes are missing:", uint64(n-len(c.buf)))
		return nil
	}
	taken := c.buf[:n]
	c.buf = c.buf[n:]
	return taken
}

func u8[T ~uint8](c *codec, v *T) {
	if !c.reading {
		c.buf = append(c.buf, uint8(*v))
	} else if b := c.take(1); b != nil {
		*v = T(b[0])
	}
}

func u16[T ~uint16](c *codec, v *T) {
	if !c.reading {
		c.buf = binary.LittleEndian.AppendUint16(c.buf, uint16(*v))
	} else if b := c.take(2); b != nil {
		*v = T(binary.LittleEndian.Uint16(b))
	}
}

func u64[T ~uint64](c *codec, v *T) {
	if !c.reading {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, uint64(*v))
	} else if b := c.take(8); b != nil {
		*v = T(binary.LittleEndian.Uint64(b))
	}
}

func i64[T ~int64](c *codec, v *T) {
	u := uint64(*v)
	if u64(c, &u); c.reading {
		*v = T(u)
	}
}

// enum codes a byte of at most most.
func enum[T ~uint8](c *codec, v *T, most T) {
	if u8(c, v); *v > most {
		c.fail("unknown value", uint64(*v))
	}
}

func (c *codec) flag(v *bool) {
	var b uint8
	if *v {
		b = 1
	}
	if enum(c, &b, 1); c.reading {
		*v = b == 1
	}
}

// count codes and returns the length of a list or a text.
func (c *codec) count(n, most int) int {
	if n > most {
		c.fail("length", uint64(n))
		return 0
	}
	n16 := uint16(n)
	if u16(c, &n16); int(n16) > most {
		c.fail("length", uint64(n16))
	}
	if c.err != nil {
		return 0
	}
	return int(n16)
}

func (c *codec) text(v *string) {
	n := c.count(len(*v), MaxText)
	if !c.reading {
		c.buf = append(c.buf, (*v)[:n]...)
	} else if b := c.take(n); b != nil {
		*v = string(b)
	}
}

// decimal codes the units and decimals of v: 17 bytes.
func (c *codec) decimal(v *catalog.Decimal) {
	u64(c, &v.Units.Lo)
	u64(c, &v.Units.Hi)
	decimals := uint8(min(uint(v.Decimals), 255))
	if enum(c, &decimals, market.MaxWideDecimals); c.reading {
		v.Decimals = int(decimals)
	}
}

// level codes a price and a quantity, which must not be negative.
func (c *codec) level(v *market.Level) {
	i64(c, &v.Price)
	if i64(c, &v.Qty); v.Price < 0 || v.Qty < 0 {
		c.fail("negative level", uint64(v.Price))
	}
}

func optional[T any](c *codec, v **T, walk func(*codec, *T)) {
	there := *v != nil
	if c.flag(&there); !there || c.err != nil {
		return
	}
	if c.reading {
		*v = new(T)
	}
	walk(c, *v)
}

// list codes at most most items. Each takes at least a byte, so a decoded list does not
// grow faster than the input is used up.
func list[T any](c *codec, v *[]T, most int, walk func(*codec, *T)) {
	n := c.count(len(*v), most)
	for i := 0; i < n && c.err == nil; i++ {
		if c.reading {
			*v = append(*v, *new(T))
		}
		walk(c, &(*v)[i])
	}
}

// end returns the first error. Trailing bytes are an error.
func (c *codec) end() error {
	if c.reading && len(c.buf) > 0 {
		c.fail("too many bytes:", uint64(len(c.buf)))
	}
	return c.err
}
