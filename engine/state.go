package engine

import (
	"fmt"
	"math"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// MaxParticipants bounds how many participants one engine knows (our choice).
const MaxParticipants = 4096

// noExpiry is State.nextExpiry while nothing expires.
const noExpiry = math.MaxInt64

// StateOptions says how a State is built.
type StateOptions struct {
	// Naive takes the obvious book instead of the fast one: same events, same
	// hash.
	Naive bool
	// MaxOrders bounds the live orders of one instrument until a StartEpoch
	// says otherwise; 0 is book.DefaultMaxOrders. Snapshots carry their own.
	MaxOrders int
}

// Validate reports the first option that is out of its range.
func (o StateOptions) Validate() error {
	return book.Options{MaxOrders: o.MaxOrders}.Validate()
}

// State is everything that the journal decides: the instruments with their
// books, the participants with their limits, the RFQ desk, the counters. It is a
// function of the commands alone.
//
// Rules, beside those of packages book and rfq:
//  1. A command's events are, in this order: its Reference if it carries a
//     client's own id, what expires by its time (the books by instrument, then
//     the desk), its own effect.
//  2. Every command but Tick and Fragment has an effect or a refusal that names
//     the reason, the limit and the value.
//  3. A halted instrument and a killed participant take cancels and nothing
//     else; the desk gives a killed one no quote and no claim. A mirrored
//     instrument takes no orders at all: its book and its trades are those that
//     MirrorRefresh and MirrorTrade tell, also while it is halted.
//  4. A participant exists once SetRisk has named it; participant 0 is the
//     service: it may cancel anybody's orders and place none.
//  5. Apply ends well for every content of a Command.
//  6. A request to the desk, or a refresh of a mirrored book, of which a piece is
//     missing or stands in another place is dropped whole. It is told by a
//     Rejected event with ReasonInvalidCommand, the number of the piece in Qty and
//     the one wanted in Aux: at the piece that does not fit, or at the StartEpoch
//     that cuts it off, after EpochStarted.
//
// Cost: beside the book's work some 5 ns a command. No allocation, except for
// DefineInstrument, SetRisk, the desk, a refresh and the growth of a book. One
// goroutine at a time.
type State struct {
	seq        uint64
	at         int64
	nextExpiry int64 // when the first order or thing of the desk's expires, or earlier; noExpiry

	instruments  []instrument  // by ID, without holes
	participants []participant // by number, grown to the highest known one

	epoch     uint64
	trades    market.TradeID // last given; the books count it up
	known     int            // participants with a status
	maxOrders int
	naive     bool

	desk   *rfq.Machine
	joiner Assembler // of requests to the desk and refreshes of mirrored books
}

// instrument is what an order needs of its instrument first, then the rest.
type instrument struct {
	book     twin
	minQty   market.Qty
	maxQty   market.Qty
	maxPrice market.Price
	open     bool  // matched and trading
	status   uint8 // StatusTrading or StatusHalted
	def      market.Instrument
	mirror   *mirrored // nil = matched
}

// participant is one line of the cache, limits of single instruments aside.
type participant struct {
	common limits   // where own has none
	own    []limits // by instrument; shorter than the list of instruments
	status uint8    // 0 = unknown, StatusKilled, StatusLive
}

// NewState returns an empty machine: no instruments, no participants, Seq 0.
// It panics on options that do not Validate.
func NewState(o StateOptions) *State {
	if err := o.Validate(); err != nil {
		panic("engine: " + err.Error())
	}
	return &State{
		nextExpiry: noExpiry,
		maxOrders:  book.Options{MaxOrders: o.MaxOrders}.WithDefaults().MaxOrders,
		naive:      o.Naive,
		desk:       rfq.New(),
	}
}

// Seq returns the Seq of the last command applied; 0 = none yet.
func (s *State) Seq() uint64 { return s.seq }

// Epoch returns the last epoch begun; 0 = none yet.
func (s *State) Epoch() uint64 { return s.epoch }

// At returns the latest time seen, in Unix nanoseconds.
func (s *State) At() int64 { return s.at }

// NextExpiry returns when the next order, quote, claim or ticket expires, or a
// moment before; 0 = none does.
func (s *State) NextExpiry() int64 {
	if s.nextExpiry == noExpiry {
		return 0
	}
	return s.nextExpiry
}

// Instruments returns a copy of the instruments defined so far, by ID.
func (s *State) Instruments() []market.Instrument {
	list := make([]market.Instrument, len(s.instruments))
	for i := range s.instruments {
		list[i] = s.instruments[i].def
	}
	return list
}

// Status returns StatusTrading or StatusHalted, or 0 for an instrument that is
// not defined.
func (s *State) Status(in market.InstrumentID) uint8 {
	if int(in) >= len(s.instruments) {
		return 0
	}
	return s.instruments[in].status
}

// LastTrade returns the price of an instrument's last trade; 0 = none yet.
func (s *State) LastTrade(in market.InstrumentID) market.Price {
	if int(in) >= len(s.instruments) {
		return 0
	}
	return s.instruments[in].book.lastTrade()
}

// Orders gives every live order of an instrument in canonical order (book rule
// 9).
func (s *State) Orders(in market.InstrumentID, f func(book.LiveOrder)) {
	if int(in) < len(s.instruments) {
		s.instruments[in].book.export(f)
	}
}

// Apply turns one command into its events. c is stamped: its Seq is Seq()+1 and
// its At is not before At(). A Seq that does not follow changes nothing and is
// told by a Rejected event with ReasonInvalidCommand, the Seq wanted in Aux and
// Seq() as its own; an At in the past counts as At(). c is not kept.
func (s *State) Apply(c *Command, out *event.Sink) {
	if c.Seq != s.seq+1 {
		s.outOfSequence(c, out)
		return
	}
	s.seq = c.Seq
	s.at = max(s.at, c.At)
	if c.Kind.piece() {
		s.piece(c, out)
		return
	}
	if c.RefLen > 0 && c.Kind != DefineInstrument {
		reference(c, out)
	}
	if s.at >= s.nextExpiry {
		s.expire(out)
	}
	switch c.Kind {
	case NewOrder:
		s.newOrder(c, out)
	case CancelOrder:
		s.cancelOrder(c, out)
	case AmendOrder:
		s.amendOrder(c, out)
	case MassCancel:
		s.massCancel(c, out)
	case Tick:
	default:
		s.administer(c, out)
	}
}

func (s *State) outOfSequence(c *Command, out *event.Sink) {
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, OrderID: c.Order.ID, Aux: int64(s.seq + 1), Kind: event.Rejected,
		Instrument: c.Instrument, Participant: c.Order.Participant, Code: uint16(event.ReasonInvalidCommand),
	}
}

func reference(c *Command, out *event.Sink) {
	out.Next().SetReference(c.Seq, event.Ref{
		OrderID: c.Order.ID, Instrument: c.Instrument, Participant: c.Order.Participant,
		Origin: c.Origin, Text: c.RefText(),
	})
}

// expire ends what is due in every book, by instrument, and of the desk's.
func (s *State) expire(out *event.Sink) {
	s.nextExpiry = noExpiry
	for i := range s.instruments {
		b := s.instruments[i].book
		next := b.nextExpiry()
		if next != 0 && next <= s.at {
			b.expire(s.at, s.seq, out)
			next = b.nextExpiry()
		}
		s.expiresAt(next)
	}
	s.expireDesk(out)
}

// expiresAt notes that something ends at t; 0 = nothing does.
func (s *State) expiresAt(t int64) {
	if t != 0 && t < s.nextExpiry {
		s.nextExpiry = t
	}
}

// refuse writes the event that answers c with a reason. limit is that of the
// rule broken. Price and Qty are the order's own; where the stop or the display
// is what is wrong, they are those.
func (s *State) refuse(c *Command, kind event.Kind, side market.Side, why event.Reason, limit int64, out *event.Sink) {
	o := &c.Order
	price, qty := o.Price, o.Qty
	switch why {
	case event.ReasonInvalidStop:
		price = o.Stop
	case event.ReasonInvalidDisplay:
		qty = o.Display
	}
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, OrderID: o.ID, Price: price, Qty: qty, Aux: limit,
		Kind: kind, Side: side, Instrument: c.Instrument, Participant: o.Participant, Code: uint16(why),
	}
}

func (s *State) String() string {
	return fmt.Sprintf("seq %d, epoch %d, %d instruments, %d participants", s.seq, s.epoch, len(s.instruments), s.known)
}
