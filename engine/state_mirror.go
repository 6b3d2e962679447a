package engine

import (
	"blockdesk/engine/event"
	"blockdesk/market"
)

// mirrorState is the on-chain book and trades of a mirrored instrument.
type mirrorState struct {
	slot       uint64 // of the last refresh; 0 = none
	bids, asks []market.Level
	ordinal    uint64 // of the last trade; 0 = none
	tradedAt   int64  // on-chain time of the last trade, Unix nanoseconds
}

// MirrorPosition returns the slot of a mirrored instrument's book and the ordinal of its last
// trade, or zeros.
func (s *State) MirrorPosition(in market.InstrumentID) (slot, ordinal uint64) {
	if m, why := s.mirror(in); why == event.ReasonNone {
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
// chain trades on. The largest refresh, with every level new, takes about 15 µs.
func (s *State) mirrorRefresh(c *Command, data []byte, out *event.Sink) {
	b, err := DecodeMirrorBook(data)
	m, why := s.mirror(c.Instrument)
	var limit int64
	switch {
	case err != nil:
		why = event.ReasonInvalidCommand
	case why == event.ReasonNone && b.Slot <= m.slot:
		why, limit = event.ReasonStaleSlot, int64(m.slot)
	}
	if why != event.ReasonNone {
		s.rejectAdmin(c, why, limit, out)
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

// mirrorTrade applies the trade after the instrument's last one.
func (s *State) mirrorTrade(c *Command, out *event.Sink) (event.Reason, int64) {
	o := &c.Order
	m, why := s.mirror(c.Instrument)
	switch {
	case why != event.ReasonNone:
		return why, 0
	case uint64(o.ID) != m.ordinal+1:
		return event.ReasonOutOfTurn, int64(m.ordinal + 1)
	case !o.Side.Valid():
		return event.ReasonInvalidSide, 0
	case !validTrade(o.Price, o.Qty) || o.ExpireAt < 1:
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
