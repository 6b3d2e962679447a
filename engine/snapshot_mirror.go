package engine

import (
	"encoding/binary"
	"fmt"
	"math"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// mirroredCount returns the number of mirrored instruments with data.
func (s *State) mirroredCount() (n int) {
	for i := range s.instruments {
		if m := s.instruments[i].mirror; m != nil && m.hasData() {
			n++
		}
	}
	return n
}

func (m *mirrorState) hasData() bool { return m.slot != 0 || m.ordinal != 0 }

// appendMirrored appends the mirrored instruments with data.
func (s *State) appendMirrored(dst []byte, told int) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint16(dst, uint16(told))
	for i := range s.instruments {
		m := s.instruments[i].mirror
		if m == nil || !m.hasData() {
			continue
		}
		dst = le.AppendUint16(dst, uint16(i))
		dst = le.AppendUint16(dst, uint16(len(m.bids)))
		dst = le.AppendUint16(dst, uint16(len(m.asks)))
		dst = le.AppendUint16(dst, 0)
		dst = le.AppendUint64(dst, m.slot)
		dst = le.AppendUint64(dst, m.ordinal)
		dst = le.AppendUint64(dst, uint64(m.tradedAt))
		dst = appendLevels(appendLevels(dst, m.bids), m.asks)
	}
	return dst
}

func appendLevels(dst []byte, levels []market.Level) []byte {
	for _, l := range levels {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(l.Price))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(l.Qty))
	}
	return dst
}

// restoreMirrored decodes the mirrored instruments, if the version has them.
func (s *State) restoreMirrored(r *snapReader, version uint16) error {
	count := 0
	if version == stateVersion {
		count = int(r.u16())
	}
	next := 0
	for range count {
		id := market.InstrumentID(r.u16())
		m, why := s.mirror(id)
		if why != event.ReasonNone || int(id) < next || !m.restore(r, s.at) {
			return fmt.Errorf("instrument %d: what the chain told of it: %w", id, ErrSnapshot)
		}
		next = int(id) + 1
	}
	for i := range s.instruments {
		in := &s.instruments[i]
		if in.mirror != nil && (in.mirror.ordinal != 0) != (in.book.lastTrade() != 0) {
			return fmt.Errorf("instrument %d: its last trade: %w", i, ErrSnapshot)
		}
	}
	return nil
}

// restore decodes what follows the instrument's id, and reports whether it is valid at time
// latest.
func (m *mirrorState) restore(r *snapReader, latest int64) bool {
	bids, asks := int(r.u16()), int(r.u16())
	r.u16()
	m.slot, m.ordinal, m.tradedAt = r.u64(), r.u64(), int64(r.u64())
	if bids > MaxMirrorLevels || asks > MaxMirrorLevels || m.slot == 0 && bids+asks > 0 ||
		m.ordinal > math.MaxInt64 || m.ordinal == 0 && m.tradedAt != 0 || m.tradedAt < 0 || m.tradedAt > latest {
		return false
	}
	m.bids, m.asks = r.levels(bids), r.levels(asks)
	return checkLevels(m.bids, -1) == nil && checkLevels(m.asks, +1) == nil
}

func (r *snapReader) levels(n int) []market.Level {
	levels := make([]market.Level, n)
	for i := range levels {
		levels[i] = market.Level{Price: market.Price(r.u64()), Qty: market.Qty(r.u64())}
	}
	return levels
}
