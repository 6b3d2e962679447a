package engine

import (
	"encoding/binary"
	"fmt"
	"math"

	"blockdesk/engine/codec"
	"blockdesk/engine/event"
	"blockdesk/market"
)

// MirrorPosition returns the slot of a mirrored instrument's book and the ordinal of its last
// trade, or zeros.
func (s *State) MirrorPosition(in market.InstrumentID) (slot, ordinal uint64) {
	if m, reason := s.mirror(in); reason == event.ReasonNone {
		return m.slot, m.ordinal
	}
	return 0, 0
}

func (s *State) mirror(in market.InstrumentID) (*mirrorState, event.Reason) {
	switch {
	case int(in) >= len(s.instruments):
		return nil, event.ReasonUnknownInstrument
	case s.instruments[in].mirror == nil:
		return nil, event.ReasonNotMirrored
	}
	return s.instruments[in].mirror, event.ReasonNone
}

// mirrorRefresh applies a whole refresh, even while the instrument is halted, because the
// market on chain is not halted. The largest refresh, with every level new, takes about 15 µs.
func (s *State) mirrorRefresh(c *Command, data []byte, out *event.Sink) {
	b, err := DecodeMirrorBook(data)
	m, reason := s.mirror(c.Instrument)
	var limit int64
	switch {
	case err != nil:
		reason = event.ReasonInvalidCommand
	case reason == event.ReasonNone && b.Slot <= m.slot:
		reason, limit = event.ReasonStaleSlot, int64(m.slot)
	}
	if reason != event.ReasonNone {
		s.rejectAdmin(c, reason, limit, out)
		return
	}
	changed := s.emitLevels(c.Instrument, market.Buy, m.bids, b.Bids, out) +
		s.emitLevels(c.Instrument, market.Sell, m.asks, b.Asks, out)
	m.slot, m.bids, m.asks = b.Slot, b.Bids, b.Asks
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, Other: b.Slot, Qty: market.Qty(changed), Kind: event.Mirrored, Instrument: c.Instrument,
	}
}

// emitLevels writes the changes that turn one side of a book into another, best first, and
// returns their number.
func (s *State) emitLevels(in market.InstrumentID, side market.Side, was, is []market.Level, out *event.Sink) (changed int) {
	for len(was)+len(is) > 0 {
		var old, now market.Level
		switch {
		case len(is) == 0 || len(was) > 0 && better(side, was[0].Price, is[0].Price):
			old, was = was[0], was[1:]
			now.Price = old.Price
		case len(was) == 0 || better(side, is[0].Price, was[0].Price):
			now, is = is[0], is[1:]
		default:
			old, now = was[0], is[0]
			was, is = was[1:], is[1:]
		}
		if old.Qty == now.Qty {
			continue
		}
		changed++
		*out.Next() = event.Event{
			Seq: s.seq, At: s.at, Price: now.Price, Qty: now.Qty, Aux: int64(now.Qty - old.Qty),
			Kind: event.MirrorLevel, Side: side, Instrument: in,
		}
	}
	return changed
}

// better reports whether price a ranks before b on a side of a book.
func better(side market.Side, a, b market.Price) bool {
	if side == market.Buy {
		return a > b
	}
	return a < b
}

// mirrorTrade applies an on-chain trade, which must have the next ordinal of its instrument.
func (s *State) mirrorTrade(c *Command, out *event.Sink) (event.Reason, int64) {
	o := &c.Order
	m, reason := s.mirror(c.Instrument)
	switch {
	case reason != event.ReasonNone:
		return reason, 0
	case uint64(o.ID) != m.ordinal+1:
		return event.ReasonOutOfSequence, int64(m.ordinal + 1)
	case !o.Side.Valid():
		return event.ReasonInvalidSide, 0
	case !market.ValidTrade(o.Price, o.Qty) || o.ExpireAt < 1:
		return event.ReasonInvalidCommand, 0
	}
	m.ordinal = uint64(o.ID)
	m.tradedAt = max(m.tradedAt, min(o.ExpireAt, s.at))
	s.trades++
	s.instruments[c.Instrument].book.stored().SetLastTrade(o.Price)
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, OrderID: market.OrderID(m.tradedAt), Other: m.ordinal, Price: o.Price, Qty: o.Qty,
		Aux: int64(s.trades), Kind: event.MirrorTraded, Side: o.Side, Instrument: c.Instrument,
	}
	return event.ReasonNone, 0
}

// mirroredCount returns the number of mirrored instruments with data.
func (s *State) mirroredCount() (n int) {
	for i := range s.instruments {
		if m := s.instruments[i].mirror; m != nil && m.hasData() {
			n++
		}
	}
	return n
}

// appendMirrored appends the mirrored instruments with data.
func (s *State) appendMirrored(dst []byte, count int) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint16(dst, uint16(count))
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

// restoreMirrored decodes the mirrored instruments, if the version has them.
func (s *State) restoreMirrored(r *codec.Reader, version uint16) error {
	count := 0
	if version >= stateVersion3 {
		count = int(r.U16())
	}
	next := 0
	for range count {
		id := market.InstrumentID(r.U16())
		m, reason := s.mirror(id)
		if reason != event.ReasonNone || int(id) < next || !m.restore(r, s.at) {
			return fmt.Errorf("instrument %d: mirrored data: %w", id, codec.ErrSnapshot)
		}
		next = int(id) + 1
	}
	for i := range s.instruments {
		in := &s.instruments[i]
		if in.mirror != nil && (in.mirror.ordinal != 0) != (in.book.lastTrade() != 0) {
			return fmt.Errorf("instrument %d: last trade: %w", i, codec.ErrSnapshot)
		}
	}
	return nil
}

// restore decodes what follows the instrument's id, and reports whether it is valid at time
// latest.
func (m *mirrorState) restore(r *codec.Reader, latest int64) bool {
	bids, asks := int(r.U16()), int(r.U16())
	r.U16()
	m.slot, m.ordinal, m.tradedAt = r.U64(), r.U64(), int64(r.U64())
	if bids > MaxMirrorLevels || asks > MaxMirrorLevels || m.slot == 0 && bids+asks > 0 ||
		m.ordinal > math.MaxInt64 || m.ordinal == 0 && m.tradedAt != 0 || m.tradedAt < 0 || m.tradedAt > latest {
		return false
	}
	m.bids, m.asks = takeLevels(r, bids), takeLevels(r, asks)
	return checkLevels(m.bids, -1) == nil && checkLevels(m.asks, +1) == nil
}
