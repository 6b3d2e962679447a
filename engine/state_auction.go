package engine

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"blockdesk/engine/auction"
	"blockdesk/engine/book"
	"blockdesk/engine/codec"
	"blockdesk/engine/event"
	"blockdesk/market"
)

const (
	// MaxCall is the longest call with an end.
	MaxCall = 24 * time.Hour
	// indicativeEvery is how often the indicative price of a call is computed.
	indicativeEvery = int64(250 * time.Millisecond)
)

// AuctionRules are the auctions of an instrument. The zero value has none but those that
// SetInstrument begins.
type AuctionRules struct {
	// BandBps is the volatility band in basis points of the reference price: an order that
	// would trade outside begins an auction of Call instead. 0 = off.
	BandBps uint16
	Call    time.Duration
	// Opening is how long orders gather when a halted instrument is resumed; 0 = it trades
	// at once.
	Opening time.Duration
	// Reference is the reference price while nothing has traded; 0 = none.
	Reference market.Price
}

// Validate returns an error that names the first rule out of its range.
func (r AuctionRules) Validate() error {
	switch {
	case r.BandBps > MaxBandBps:
		return fmt.Errorf("volatility band_bps %d: at most %d", r.BandBps, MaxBandBps)
	case r.Call < 0 || r.Call > MaxCall || (r.Call == 0) != (r.BandBps == 0):
		return fmt.Errorf("volatility call %v: must be 0 without a band, else up to %v", r.Call, MaxCall)
	case r.Opening < 0 || r.Opening > MaxCall:
		return fmt.Errorf("opening call %v: must be 0 to %v", r.Opening, MaxCall)
	case r.Reference < 0 || r.Reference > market.MaxPrice:
		return fmt.Errorf("reference price %d: must be 0 to %d ticks", r.Reference, market.MaxPrice)
	}
	return nil
}

// call is the state of an instrument's auction.
type call struct {
	phase     uint8
	until     int64        // end of gathering; 0 = a command ends it
	publishAt int64        // when the next indicative price is due
	price     market.Price // uncrossing: of the trades
	shown     auction.Result
	search    auction.Search // for the price; a slice continues it
}

// Phases of a call. The numbers are in snapshots and never change.
const (
	gathering  uint8 = 0
	uncrossing uint8 = 1
	releasing  uint8 = 2
	pricing    uint8 = 3 // between gathering and uncrossing
)

// due returns when the call has something to do.
func (c *call) due() int64 {
	switch {
	case c.phase != gathering:
		return overdue
	case c.until != 0:
		return min(c.publishAt, c.until)
	}
	return c.publishAt
}

// setAuctions sets the rules of later auctions.
func (s *State) setAuctions(c *Command, out *event.Sink) (event.Reason, int64) {
	rules, err := auctionRulesOf(c)
	switch {
	case int(c.Instrument) >= len(s.instruments):
		return event.ReasonUnknownInstrument, 0
	case err != nil:
		return event.ReasonInvalidCommand, 0
	case s.instruments[c.Instrument].mirror != nil:
		return event.ReasonNotMatched, 0
	}
	in := &s.instruments[c.Instrument]
	in.auctions = rules
	in.setStatus(in.status)
	s.emitInstrumentSet(c.Instrument, out)
	return event.ReasonNone, 0
}

// AuctionRules returns the auction rules of an instrument.
func (s *State) AuctionRules(id market.InstrumentID) AuctionRules {
	if int(id) >= len(s.instruments) {
		return AuctionRules{}
	}
	return s.instruments[id].auctions
}

// resume makes an instrument trade: at once, or after an auction.
func (s *State) resume(in *instrument, out *event.Sink) {
	b := in.book.stored()
	switch {
	case in.status == StatusAuction:
		if in.call.phase == gathering {
			in.call.until = s.at
			s.emitAuction(in, event.AuctionIndicative, out)
			s.callDue(s.at)
		}
	case in.status == StatusHalted && (in.auctions.Opening != 0 || b.Gathered(market.Buy)+b.Gathered(market.Sell) != 0):
		s.startCall(in, s.at+int64(in.auctions.Opening), out)
	default:
		in.setStatus(StatusTrading)
	}
}

// halt stops an instrument. Gathered orders stay for the next auction.
func (s *State) halt(in *instrument) {
	if in.status == StatusAuction {
		s.endCall(in)
	}
	in.setStatus(StatusHalted)
}

// beginAuction begins an auction on command, or changes the end of its call.
func (s *State) beginAuction(in *instrument, gather uint64, out *event.Sink) event.Reason {
	until := int64(0)
	if gather != 0 {
		until = s.at + int64(gather)
	}
	switch {
	case in.mirror != nil:
		return event.ReasonNotMatched
	case gather > uint64(MaxCall):
		return event.ReasonInvalidCommand
	case in.status != StatusAuction:
		s.startCall(in, until, out)
	case in.call.phase != gathering:
		return event.ReasonAuction
	default:
		in.call.until = until
		s.emitAuction(in, event.AuctionIndicative, out)
		s.callDue(in.call.due())
	}
	return event.ReasonNone
}

// startCall begins to gather orders. The caller emits the InstrumentSet.
func (s *State) startCall(in *instrument, until int64, out *event.Sink) {
	in.setStatus(StatusAuction)
	in.call = call{until: until, publishAt: s.at + indicativeEvery}
	if at, ok := slices.BinarySearch(s.calls, in.def.ID); !ok {
		s.calls = slices.Insert(s.calls, at, in.def.ID)
	}
	s.callDue(in.call.due())
	s.emitAuction(in, event.AuctionIndicative, out)
}

func (s *State) endCall(in *instrument) {
	in.call = call{}
	if at, ok := slices.BinarySearch(s.calls, in.def.ID); ok {
		s.calls = slices.Delete(s.calls, at, at+1)
	}
}

// callDue makes runCalls run at time t.
func (s *State) callDue(t int64) {
	s.nextCall = min(s.nextCall, t)
	s.expiresAt(t)
}

func (s *State) emitAuction(in *instrument, code uint16, out *event.Sink) {
	r := &in.call.shown
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, Other: uint64(in.call.until), Price: r.Price, Qty: r.Volume, Aux: int64(r.Imbalance),
		Kind: event.Auction, Instrument: in.def.ID, Code: code,
	}
}

// runCalls takes a slice of the auctions: rule 10. A slice of 256 pairs, or of 256 levels a side, takes about
// 50 µs.
func (s *State) runCalls(k Kind, out *event.Sink) {
	left := commandSlice
	if k == Tick {
		left = tickSlice
	}
	s.nextCall = noExpiry
	for i := 0; i < len(s.calls); {
		in := &s.instruments[s.calls[i]]
		left = s.runCall(in, left, out)
		if in.status == StatusAuction {
			s.nextCall = min(s.nextCall, in.call.due())
			i++
		}
	}
	if len(s.fills) > 0 {
		s.protectQuotes(out)
	}
}

// runCall does what is due in one auction, at most left steps, and returns how many are left.
func (s *State) runCall(in *instrument, left int, out *event.Sink) int {
	c, b := &in.call, in.book.stored()
	switch {
	case b.Sweeping(): // first the ending orders go, by the slices of rule 8
		if c.search = (auction.Search{}); c.phase == gathering {
			c.publishAt = max(c.publishAt, s.at)
		}
		return left
	case c.phase == gathering && c.until != 0 && s.at >= c.until:
		c.phase, c.search = pricing, auction.Search{}
	case c.phase == gathering && s.at >= c.publishAt:
		return s.publishIndicative(in, left, out)
	}
	for left > 0 && (c.phase == pricing || c.phase == uncrossing) {
		if c.phase == pricing {
			left = s.beginUncrossing(in, left, out)
			continue
		}
		n := b.Uncross(c.price, left, s.at, s.seq, out)
		if n < left {
			c.phase = pricing
		}
		left -= n
	}
	if left > 0 && c.phase == releasing {
		n := b.Release(left, s.at, s.seq, out)
		if n < left {
			s.endAuction(in, out)
		}
		left -= n
	}
	return left
}

// searchPrice continues the search for the price. It returns what is left of the steps, 0 = the
// search has not ended.
func (in *instrument) searchPrice(left int) (auction.Result, int) {
	c, b := &in.call, in.book.stored()
	if left = c.search.Step(b, left); left == 0 {
		return auction.Result{}, 0
	}
	r := c.search.Result(b, in.reference())
	c.search = auction.Search{}
	return r, left
}

func (s *State) publishIndicative(in *instrument, left int, out *event.Sink) int {
	r, left := in.searchPrice(left)
	if left == 0 {
		return 0
	}
	in.call.publishAt = s.at + indicativeEvery
	if r != in.call.shown {
		in.call.shown = r
		s.emitAuction(in, event.AuctionIndicative, out)
	}
	return left
}

// beginUncrossing fixes the price at which the orders that cross trade; if none do, what is
// left can rest.
func (s *State) beginUncrossing(in *instrument, left int, out *event.Sink) int {
	r, left := in.searchPrice(left)
	switch {
	case left == 0:
	case r.Volume == 0:
		in.call.phase, in.call.price = releasing, 0
	default:
		in.call.phase, in.call.price, in.call.shown = uncrossing, r.Price, r
		s.emitAuction(in, event.AuctionUncrossing, out)
	}
	return left
}

// endAuction begins continuous trading.
func (s *State) endAuction(in *instrument, out *event.Sink) {
	s.endCall(in)
	in.setStatus(StatusTrading)
	s.emitInstrumentSet(in.def.ID, out)
	in.book.stored().Elect(s.at, s.seq, out)
}

// reference returns the reference price of auctions and of the volatility band; 0 = none.
func (in *instrument) reference() market.Price {
	if last := in.book.lastTrade(); last != 0 {
		return last
	}
	return in.auctions.Reference
}

// submitGuarded enters a new order in an auction, or under a volatility band. It returns why
// the order cannot gather. An order that cannot gather, or that the book refuses, begins no
// auction: nobody can stop an instrument at no risk.
func (s *State) submitGuarded(in *instrument, o *book.Order, out *event.Sink) event.Reason {
	rests := o.Type == book.Limit && o.TIF != book.IOC && o.TIF != book.FOK && o.Flags&book.FlagPostOnly == 0
	if in.status == StatusTrading {
		if !in.leavesBand(o, o.Qty) || in.book.refuses(o, s.at, s.seq, out) {
			in.book.submit(o, s.at, s.seq, out)
			return event.ReasonNone
		}
		if rests {
			s.interrupt(in, out)
		}
	}
	if !rests && o.Type != book.Stop && o.Type != book.StopLimit {
		return event.ReasonAuction
	}
	in.book.gather(o, s.at, s.seq, out)
	return event.ReasonNone
}

// interrupt begins the auction of a volatility band.
func (s *State) interrupt(in *instrument, out *event.Sink) {
	s.startCall(in, s.at+int64(in.auctions.Call), out)
	s.emitInstrumentSet(in.def.ID, out)
}

// submit enters an order that may rest, in any status.
func (s *State) submit(in *instrument, o *book.Order, out *event.Sink) {
	if in.acceptsOrders {
		in.book.submit(o, s.at, s.seq, out)
		return
	}
	s.submitGuarded(in, o, out)
}

// amend changes an order in any status.
func (s *State) amend(in *instrument, o *book.Order, out *event.Sink) {
	if in.trades() && !in.acceptsOrders && s.amendLeavesBand(in, o) {
		s.interrupt(in, out)
	}
	if in.status == StatusAuction {
		in.book.amendGathered(o, s.at, s.seq, out)
		return
	}
	in.book.amend(o, s.at, s.seq, out)
}

// amendLeavesBand reports whether an amend would trade outside the volatility band.
func (s *State) amendLeavesBand(in *instrument, o *book.Order) bool {
	r, ok := in.book.get(o.ID)
	if !ok || r.Waiting || o.Price == 0 || o.Price == r.Price {
		return false
	}
	wanted := o.Qty
	switch {
	case o.Qty == 0:
		wanted = r.Open
	case o.Flags&book.FlagOpenQty == 0:
		wanted -= r.Qty - r.Open
	}
	changed := r.Order
	if o.Flags&book.FlagAmendTerms != 0 {
		changed.Display = o.Amended(r.Order).Display
	}
	if book.TooManySlices(wanted, changed.Display) {
		return false // the book refuses it
	}
	changed.Price = o.Price
	return in.leavesBand(&changed, wanted)
}

// leavesBand reports whether an order of qty would trade at once at a price further than the
// volatility band from the reference. It reads the levels that the order would trade with.
func (in *instrument) leavesBand(o *book.Order, qty market.Qty) bool {
	reference := in.reference()
	if reference == 0 || o.Type == book.Stop || o.Type == book.StopLimit || o.Flags&book.FlagPostOnly != 0 {
		return false
	}
	width := reference * market.Price(in.auctions.BandBps) / MaxBandBps
	opposite := o.Side.Opposite()
	for p, q := in.book.nextLevel(opposite, 0); p != 0 && qty > 0; p, q = in.book.nextLevel(opposite, p) {
		switch {
		case o.Type == book.Limit && (o.Side == market.Buy && p > o.Price || o.Side == market.Sell && p < o.Price):
			return false
		case q > 0 && (p > reference+width || p < reference-width):
			return true
		}
		qty -= q
	}
	return false
}

// auctionSize is the size of an instrument's auctions in a snapshot.
const auctionSize = 128

// hasAuctions reports whether a snapshot must name the instrument's auctions.
func (in *instrument) hasAuctions() bool {
	return in.auctions != AuctionRules{} || in.status == StatusAuction
}

// needsAuctions reports whether a snapshot needs the version with auctions.
func (s *State) needsAuctions() bool {
	for i := range s.instruments {
		in := &s.instruments[i]
		b := in.book.stored()
		if in.hasAuctions() || b.Gathered(market.Buy)+b.Gathered(market.Sell) > 0 {
			return true
		}
	}
	return false
}

func (s *State) appendAuctions(dst []byte) []byte {
	le := binary.LittleEndian
	start := len(dst)
	dst = le.AppendUint16(dst, 0)
	n := uint16(0)
	for i := range s.instruments {
		in := &s.instruments[i]
		if !in.hasAuctions() {
			continue
		}
		n++
		r, c := &in.auctions, &in.call
		dst = le.AppendUint16(dst, uint16(i))
		f, begun := &c.search, byte(0)
		if f.Begun {
			begun = 1
		}
		dst = append(dst, c.phase, begun)
		dst = le.AppendUint16(dst, r.BandBps)
		dst = le.AppendUint16(dst, 0)
		for _, v := range [...]int64{
			int64(r.Call), int64(r.Opening), int64(r.Reference), c.until, c.publishAt,
			int64(c.shown.Price), int64(c.shown.Volume), int64(c.shown.Imbalance),
			int64(f.Bid.Price), int64(f.Bid.Qty), int64(f.Ask.Price), int64(f.Ask.Qty), int64(f.Volume), int64(f.Low), int64(f.High),
		} {
			dst = le.AppendUint64(dst, uint64(v))
		}
	}
	le.PutUint16(dst[start:], n)
	return dst
}

// restoreAuctions decodes the auctions, if the version has them.
func (s *State) restoreAuctions(r *codec.Reader, version uint16) error {
	if version < stateVersion {
		return nil
	}
	for range r.U16() {
		id := int(r.U16())
		var rules AuctionRules
		var c call
		c.phase = r.U8()
		begun := r.U8()
		rules.BandBps = r.U16()
		r.U16()
		rules.Call, rules.Opening = time.Duration(r.U64()), time.Duration(r.U64())
		rules.Reference = market.Price(r.U64())
		c.until, c.publishAt = int64(r.U64()), int64(r.U64())
		c.shown = auction.Result{Price: market.Price(r.U64()), Volume: market.Qty(r.U64()), Imbalance: market.Qty(r.U64())}
		f := auction.Search{
			Bid: market.Level{Price: market.Price(r.U64()), Qty: market.Qty(r.U64())}, Ask: market.Level{Price: market.Price(r.U64()), Qty: market.Qty(r.U64())},
			Volume: market.Qty(r.U64()), Low: market.Price(r.U64()), High: market.Price(r.U64()), Begun: begun == 1,
		}
		c.search = f
		if id >= len(s.instruments) || rules.Validate() != nil || s.instruments[id].mirror != nil ||
			c.phase > pricing || begun > 1 || !f.Valid() || c.until < 0 || c.publishAt < 0 || c.shown.Price < 0 || c.shown.Price > market.MaxPrice ||
			c.phase == uncrossing && c.shown.Price == 0 {
			return fmt.Errorf("auctions of instrument %d: %w", id, codec.ErrSnapshot)
		}
		in := &s.instruments[id]
		in.auctions = rules
		if in.setStatus(in.status); in.status != StatusAuction {
			continue
		}
		if c.phase == uncrossing {
			c.price = c.shown.Price
		}
		in.call = c
		s.calls = append(s.calls, in.def.ID)
		s.callDue(c.due())
	}
	return nil
}
