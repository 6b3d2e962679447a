package persist

import (
	"encoding/binary"
	"math/bits"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/market"
)

const (
	// minRecordSize is the fixed part of a command's record.
	minRecordSize = 16
	// maxRecordSize is a command with every field and the longest Ref.
	maxRecordSize = minRecordSize + 8*8 + engine.MaxRef
)

// encoder holds what one record passes to the next.
type encoder struct {
	seq   uint64 // the next command's
	at    int64
	epoch uint64
}

// put writes the commands' records into buf from n on and returns their end. buf must
// have maxRecordSize bytes for each. It reports false if Seq has a gap or At falls.
//
// It writes every word and moves the end only past those that are present, because the
// CPU cannot predict which are, and a mispredicted branch costs more than a store.
func (e *encoder) put(buf []byte, n int, commands []engine.Command) (int, bool) {
	for i := range commands {
		c := &commands[i]
		if c.Seq != e.seq || c.At < e.at {
			return n, false
		}
		if c.Kind == engine.StartEpoch {
			e.epoch = c.Arg
		}
		n += putRecord((*[maxRecordSize]byte)(buf[n:]), c, e.at)
		e.seq++
		e.at = c.At
	}
	return n, true
}

func putRecord(p *[maxRecordSize]byte, c *engine.Command, at int64) int {
	o := &c.Order
	refLen := min(int(c.RefLen), engine.MaxRef)
	n := minRecordSize
	binary.LittleEndian.PutUint64(p[n:], uint64(c.At))
	present := bit(c.At != at)
	n += present * 8
	binary.LittleEndian.PutUint64(p[n:], uint64(o.ID))
	b := bit(o.ID != 0)
	present |= b << 1
	n += b * 8
	binary.LittleEndian.PutUint64(p[n:], uint64(o.Price))
	b = bit(o.Price != 0)
	present |= b << 2
	n += b * 8
	binary.LittleEndian.PutUint64(p[n:], uint64(o.Stop))
	b = bit(o.Stop != 0)
	present |= b << 3
	n += b * 8
	binary.LittleEndian.PutUint64(p[n:], uint64(o.Qty))
	b = bit(o.Qty != 0)
	present |= b << 4
	n += b * 8
	binary.LittleEndian.PutUint64(p[n:], uint64(o.Display))
	b = bit(o.Display != 0)
	present |= b << 5
	n += b * 8
	binary.LittleEndian.PutUint64(p[n:], uint64(o.ExpireAt))
	b = bit(o.ExpireAt != 0)
	present |= b << 6
	n += b * 8
	binary.LittleEndian.PutUint64(p[n:], c.Arg)
	b = bit(c.Arg != 0)
	present |= b << 7
	n += b * 8
	*(*[engine.MaxRef]byte)(p[n:]) = c.Ref
	n += refLen

	p[0] = uint8(n)
	p[1] = uint8(present)
	p[2] = uint8(c.Kind)
	p[3] = c.Status
	p[4] = uint8(o.Side)
	p[5] = uint8(o.Type)
	p[6] = uint8(o.TIF)
	p[7] = uint8(o.Flags)
	p[8] = uint8(o.STP)
	p[9] = uint8(refLen)
	binary.LittleEndian.PutUint16(p[10:], uint16(o.Participant))
	binary.LittleEndian.PutUint16(p[12:], uint16(c.Instrument))
	binary.LittleEndian.PutUint16(p[14:], c.Origin)
	return n
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// decoder holds what one record passes to the next.
type decoder struct {
	at    int64
	epoch uint64
}

// get decodes the record at the start of p into c, all but Seq, and returns its length.
// It returns 0 for anything that the encoder would not write, so that a command has one
// encoding.
func (d *decoder) get(p []byte, c *engine.Command) int {
	if len(p) < minRecordSize {
		return 0
	}
	size, present, refLen := int(p[0]), p[1], int(p[9])
	if refLen > engine.MaxRef || size > len(p) || size != minRecordSize+8*bits.OnesCount8(present)+refLen {
		return 0
	}
	// Words are read without a branch, so the last record needs bytes after it.
	var r *[maxRecordSize]byte
	if len(p) >= maxRecordSize {
		r = (*[maxRecordSize]byte)(p)
	} else {
		var tail [maxRecordSize]byte
		copy(tail[:], p)
		r = &tail
	}
	n := minRecordSize
	at, b1 := word(r, &n, present)
	id, b2 := word(r, &n, present>>1)
	price, b3 := word(r, &n, present>>2)
	stop, b4 := word(r, &n, present>>3)
	qty, b5 := word(r, &n, present>>4)
	display, b6 := word(r, &n, present>>5)
	expire, b7 := word(r, &n, present>>6)
	arg, b8 := word(r, &n, present>>7)
	if !(b1 && b2 && b3 && b4 && b5 && b6 && b7 && b8) {
		return 0
	}
	if present&1 != 0 {
		if int64(at) <= d.at {
			return 0
		}
		d.at = int64(at)
	}
	*c = engine.Command{
		At: d.at,
		Order: book.Order{
			ID: market.OrderID(id), Price: market.Price(price), Stop: market.Price(stop),
			Qty: market.Qty(qty), Display: market.Qty(display), ExpireAt: int64(expire),
			Participant: market.ParticipantID(binary.LittleEndian.Uint16(r[10:])),
			Side:        market.Side(r[4]), Type: book.Type(r[5]), TIF: book.TIF(r[6]),
			Flags: book.Flag(r[7]), STP: book.STP(r[8]),
		},
		Arg: arg, Kind: engine.Kind(r[2]), RefLen: uint8(refLen), Status: r[3],
		Instrument: market.InstrumentID(binary.LittleEndian.Uint16(r[12:])),
		Origin:     binary.LittleEndian.Uint16(r[14:]),
	}
	copy(c.Ref[:], r[n:n+refLen])
	if c.Kind == engine.StartEpoch {
		d.epoch = c.Arg
	}
	return size
}

// word returns the word at n if bit 0 of present is set, else 0, and moves n past it.
// It reports false for a present word that is zero, which the encoder leaves out.
func word(r *[maxRecordSize]byte, n *int, present uint8) (uint64, bool) {
	on := uint64(present & 1)
	v := binary.LittleEndian.Uint64(r[*n:]) & -on
	*n += int(on) * 8
	return v, v != 0 || on == 0
}
