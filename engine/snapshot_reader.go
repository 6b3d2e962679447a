package engine

import (
	"encoding/binary"
	"errors"

	"blockdesk/market"
)

// ErrSnapshot is wrapped by the errors of RestoreState and RestoreReplica about a damaged
// snapshot.
var ErrSnapshot = errors.New("damaged snapshot")

// snapReader decodes the fields of a snapshot. Past the end it returns zeros and sets short.
type snapReader struct {
	data  []byte
	short bool
}

func (r *snapReader) take(n int) []byte {
	if n > len(r.data) {
		r.short = true
		r.data = nil
		return make([]byte, n)
	}
	taken := r.data[:n]
	r.data = r.data[n:]
	return taken
}

func (r *snapReader) u8() uint8 { return r.take(1)[0] }

func (r *snapReader) u16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }

func (r *snapReader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }

func (r *snapReader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

func (r *snapReader) levels(n int) []market.Level {
	levels := make([]market.Level, n)
	for i := range levels {
		levels[i] = market.Level{Price: market.Price(r.u64()), Qty: market.Qty(r.u64())}
	}
	return levels
}

func appendLevels(dst []byte, levels []market.Level) []byte {
	for _, l := range levels {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(l.Price))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(l.Qty))
	}
	return dst
}
