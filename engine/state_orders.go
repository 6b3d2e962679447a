package engine

import (
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
)

func (s *State) newOrder(c *Command, out *event.Sink) {
	o := &c.Order
	in, trader, reason, limit := s.admit(c)
	if reason == event.ReasonNone {
		reason, limit = checkShape(o, in, s.at)
	}
	if reason == event.ReasonNone {
		reason, limit = checkRisk(o, in, trader.limitsOn(c.Instrument))
	}
	if reason != event.ReasonNone {
		s.reject(c, event.Rejected, o.Side, reason, limit, out)
		return
	}
	switch b := in.book.ladder; {
	case !in.acceptsOrders:
		if reason = s.submitGuarded(in, o, out); reason != event.ReasonNone {
			s.reject(c, event.Rejected, o.Side, reason, 0, out)
		}
	case b != nil:
		b.Submit(o, s.at, s.seq, out)
	default:
		in.book.naive.Submit(o, s.at, s.seq, out)
	}
	s.orderExpiresAt(o.ExpireAt)
}

// admit returns the instrument and participant of an order or amend, or the reason why the
// participant may not trade the instrument.
func (s *State) admit(c *Command) (*instrument, *participant, event.Reason, int64) {
	if int(c.Instrument) >= len(s.instruments) {
		return nil, nil, event.ReasonUnknownInstrument, 0
	}
	if int(c.Order.Participant) >= len(s.participants) {
		return nil, nil, event.ReasonUnknownParticipant, 0
	}
	in, trader := &s.instruments[c.Instrument], &s.participants[c.Order.Participant]
	reason := event.ReasonNone
	if !in.acceptsOrders || trader.status != StatusLive {
		reason = tradeRejection(in, trader)
	}
	return in, trader, reason, 0
}

func tradeRejection(in *instrument, trader *participant) event.Reason {
	switch {
	case trader.status == StatusKilled:
		return event.ReasonKilled
	case trader.status != StatusLive:
		return event.ReasonUnknownParticipant
	case in.def.Source != market.Matched:
		return event.ReasonNotMatched
	case in.status == StatusHalted:
		return event.ReasonHalted
	case in.call.phase != gathering:
		return event.ReasonAuction
	}
	return event.ReasonNone
}

func (s *State) amendOrder(c *Command, out *event.Sink) {
	o := &c.Order
	in, trader, reason, limit := s.admit(c)
	side := o.Side
	if reason == event.ReasonNone {
		r, ok := in.book.get(o.ID)
		if !ok || r.Participant != o.Participant {
			in.book.stored().TakeOut(o.ID, s.at, s.seq, out)
			reason = event.ReasonUnknownOrder
		} else {
			side = r.Side
			reason, limit = checkAmend(o, &r, in, trader.limitsOn(c.Instrument), s.at)
		}
	}
	if reason != event.ReasonNone {
		s.reject(c, event.AmendRejected, side, reason, limit, out)
		return
	}
	s.amend(in, o, out)
	if o.Flags&book.FlagAmendTerms != 0 {
		s.orderExpiresAt(o.ExpireAt)
	}
}

func (s *State) cancelOrder(c *Command, out *event.Sink) {
	if int(c.Instrument) >= len(s.instruments) {
		s.rejectCancel(c, event.ReasonUnknownInstrument, out)
		return
	}
	in := &s.instruments[c.Instrument]
	if b := in.book.ladder; b != nil {
		b.Cancel(c.Order.ID, c.Order.Participant, s.at, s.seq, out)
	} else {
		in.book.naive.Cancel(c.Order.ID, c.Order.Participant, s.at, s.seq, out)
	}
}

func (s *State) rejectCancel(c *Command, reason event.Reason, out *event.Sink) {
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, OrderID: c.Order.ID, Kind: event.CancelRejected,
		Instrument: c.Instrument, Participant: c.Order.Participant, Code: uint16(reason),
	}
}

func (s *State) massCancel(c *Command, out *event.Sink) {
	participant, side := c.Order.Participant, c.Order.Side
	switch {
	case c.Instrument != AllInstruments && int(c.Instrument) >= len(s.instruments):
		s.rejectCancel(c, event.ReasonUnknownInstrument, out)
		return
	case side > market.Sell:
		s.rejectCancel(c, event.ReasonInvalidSide, out)
		return
	}
	cancelled := s.cancelAll(participant, c.Instrument, side, event.ReasonMassCancel, out)
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, Qty: market.Qty(cancelled), Kind: event.MassCancelled, Side: side,
		Instrument: c.Instrument, Participant: participant,
	}
}

// cancelAll cancels the participant's orders (0 = everybody's) on one instrument or all, by
// instrument, or makes them ending, and returns their number.
func (s *State) cancelAll(participant market.ParticipantID, on market.InstrumentID, side market.Side, reason event.Reason, out *event.Sink) int {
	first, end := 0, len(s.instruments)
	if on != AllInstruments {
		first, end = int(on), int(on)+1
	}
	if n := s.endLater(participant, first, end, side, reason, out); n > 0 {
		return n
	}
	cancelled := 0
	for i := first; i < end; i++ {
		if b := s.instruments[i].book.stored(); b.Open(participant, side) > 0 {
			cancelled += b.MassCancel(participant, side, reason, s.at, s.seq, out)
		}
	}
	return cancelled
}

// tifOfType is the set of times in force of each order type: bit 8×type + tif. A market order
// never rests, so it has no expiry date.
const tifOfType uint64 = (1<<book.GTC|1<<book.IOC|1<<book.FOK|1<<book.GTD|1<<book.Day)<<(8*book.Limit) |
	(1<<book.GTC|1<<book.IOC|1<<book.FOK)<<(8*book.Market) |
	(1<<book.GTC|1<<book.IOC|1<<book.FOK|1<<book.GTD|1<<book.Day)<<(8*book.Stop) |
	(1<<book.GTC|1<<book.IOC|1<<book.FOK|1<<book.GTD|1<<book.Day)<<(8*book.StopLimit)

// checkShape returns the first rule of form that a new order breaks, and its limit. Common
// orders pass with a few comparisons; explainShape checks every rule.
func checkShape(o *book.Order, in *instrument, at int64) (event.Reason, int64) {
	if o.Type == book.Limit && o.Flags == 0 &&
		o.TIF-book.GTC <= book.FOK-book.GTC && o.Side-market.Buy <= market.Sell-market.Buy &&
		o.STP-book.STPCancelNewest <= book.STPDecrement-book.STPCancelNewest && o.ID != 0 &&
		uint64(o.Price-1) < uint64(in.maxPrice) && o.Qty >= in.minQty && o.Qty <= in.maxQty &&
		int64(o.Stop)|int64(o.Display)|o.ExpireAt == 0 {
		return event.ReasonNone, 0
	}
	return explainShape(o, in, at)
}

func explainShape(o *book.Order, in *instrument, at int64) (event.Reason, int64) {
	hasPrice := o.Type == book.Limit || o.Type == book.StopLimit
	hasStop := o.Type == book.Stop || o.Type == book.StopLimit
	dated := o.TIF == book.GTD || o.TIF == book.Day
	stays := hasPrice && o.TIF != book.IOC && o.TIF != book.FOK
	switch {
	case o.ID == 0:
		return event.ReasonInvalidCommand, 0
	case !o.Side.Valid():
		return event.ReasonInvalidSide, 0
	case o.Type < book.Limit || o.Type > book.StopLimit:
		return event.ReasonInvalidType, 0
	case o.TIF < book.GTC || o.TIF > book.Day:
		return event.ReasonInvalidTIF, 0
	case o.STP < book.STPCancelNewest || o.STP > book.STPDecrement:
		return event.ReasonInvalidCommand, 0
	case hasPrice && o.Price < 1 || !hasPrice && o.Price != 0:
		return event.ReasonInvalidPrice, 0
	case o.Price > in.maxPrice:
		return event.ReasonMaxPrice, int64(in.maxPrice)
	case hasStop && (o.Stop < 1 || o.Stop > in.maxPrice) || !hasStop && o.Stop != 0:
		return event.ReasonInvalidStop, stopLimit(hasStop, in)
	case o.Qty < 1:
		return event.ReasonInvalidQty, 0
	case o.Qty < in.minQty:
		return event.ReasonMinQty, int64(in.minQty)
	case o.Qty > in.maxQty:
		return event.ReasonMaxQty, int64(in.maxQty)
	case o.Display < 0 || o.Display > o.Qty:
		return event.ReasonInvalidDisplay, int64(o.Qty)
	case tifOfType>>(8*o.Type+book.Type(o.TIF))&1 == 0:
		return event.ReasonInvalidCombination, 0
	case dated && o.ExpireAt <= at:
		return event.ReasonInvalidExpiry, at
	case !dated && o.ExpireAt != 0:
		return event.ReasonInvalidExpiry, 0
	case o.Flags&^(book.FlagPostOnly|book.FlagMinQty|book.FlagTerms) != 0:
		return event.ReasonInvalidCombination, 0
	case o.Flags&book.FlagMinQty != 0:
		if stays || hasStop || o.TIF == book.FOK || o.Flags&book.FlagPostOnly != 0 || o.Display == 0 {
			return event.ReasonInvalidCombination, 0
		}
	case !stays && (o.Flags&book.FlagPostOnly != 0 || o.Display != 0):
		return event.ReasonInvalidCombination, 0
	}
	return event.ReasonNone, 0
}

func stopLimit(hasStop bool, in *instrument) int64 {
	if hasStop {
		return int64(in.maxPrice)
	}
	return 0
}

// checkAmend returns the first rule that an amend of r breaks: form first, then risk.
func checkAmend(o *book.Order, r *book.LiveOrder, in *instrument, l *limits, at int64) (event.Reason, int64) {
	done := r.Qty - r.Open // traded, or lost to self-trade prevention
	total := o.Qty
	switch {
	case o.Qty < 0:
		return event.ReasonInvalidQty, 0
	case o.Qty > in.maxQty:
		return event.ReasonMaxQty, int64(in.maxQty)
	case o.Qty == 0:
		total = r.Qty
	case o.Flags&book.FlagOpenQty != 0:
		total += done
	}
	away := total <= done
	switch {
	case o.Flags&^(book.FlagOpenQty|book.FlagTerms|book.FlagAmendTerms) != 0:
		return event.ReasonInvalidCombination, 0
	case o.Price < 0 || o.Price != 0 && r.Type == book.Stop:
		return event.ReasonInvalidPrice, 0
	case o.Price > in.maxPrice:
		return event.ReasonMaxPrice, int64(in.maxPrice)
	case o.Stop < 0 || o.Stop != 0 && r.Stop == 0 || o.Stop > in.maxPrice:
		return event.ReasonInvalidStop, stopLimit(r.Stop != 0, in)
	case total > in.maxQty:
		return event.ReasonMaxQty, int64(in.maxQty)
	case total < in.minQty && total < r.Qty && !away:
		return event.ReasonMinQty, int64(in.minQty)
	case away:
		return event.ReasonNone, 0
	}
	if o.Flags&book.FlagAmendTerms != 0 {
		if reason, limit := checkAmendTerms(o, r, total, at); reason != event.ReasonNone {
			return reason, limit
		}
	}
	changed := r.Order
	changed.Qty = total
	if o.Price != 0 {
		changed.Price = o.Price
	}
	if o.Stop != 0 {
		changed.Stop = o.Stop
	}
	return checkAmendRisk(&changed, &r.Order, in, l)
}

// checkAmendTerms returns the first rule that an amend of r to the quantity total breaks with
// its time in force, its expiry or its display.
func checkAmendTerms(o *book.Order, r *book.LiveOrder, total market.Qty, at int64) (event.Reason, int64) {
	dated := o.TIF == book.GTD || o.TIF == book.Day
	wanted := o.Amended(r.Order)
	stays := r.Type != book.Stop && wanted.TIF != book.IOC && wanted.TIF != book.FOK
	switch {
	case r.Flags&book.FlagQuote != 0:
		return event.ReasonInvalidCombination, 0
	case o.TIF > book.Day || r.Type == book.Limit && !stays:
		return event.ReasonInvalidTIF, 0
	case tifOfType>>(8*r.Type+book.Type(wanted.TIF))&1 == 0:
		return event.ReasonInvalidCombination, 0
	case dated && o.ExpireAt <= at:
		return event.ReasonInvalidExpiry, at
	case !dated && o.ExpireAt != 0:
		return event.ReasonInvalidExpiry, 0
	case o.Display < 0 || o.Display != market.MaxQty && o.Display > total:
		return event.ReasonInvalidDisplay, int64(total)
	case !stays && (r.Flags&book.FlagPostOnly != 0 || wanted.Display != 0):
		return event.ReasonInvalidCombination, 0
	}
	return event.ReasonNone, 0
}
