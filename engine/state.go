package engine

import (
	"fmt"
	"math"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/lists"
	"blockdesk/engine/quotes"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// MaxParticipants is the most participants of one engine: every number but 0.
const MaxParticipants = 1<<16 - 1

// noExpiry is State.nextExpiry while nothing expires.
const noExpiry = math.MaxInt64

// StateOptions configures a State.
type StateOptions struct {
	// Naive selects the book of package naive instead of ladder: same events, same hash.
	Naive bool
	// MaxOrders bounds the live orders of one instrument until a StartEpoch changes it; 0 is
	// book.DefaultMaxOrders. A snapshot has its own.
	MaxOrders int
}

// Validate returns an error that names the first option out of its range.
func (o StateOptions) Validate() error {
	return book.Options{MaxOrders: o.MaxOrders}.Validate()
}

// State is everything that the journal determines: instruments with their books,
// participants with their limits, the RFQ desk, counters. It is a function of the commands.
//
// Rules, in addition to those of packages book and rfq:
//  1. The events of a command are, in this order: its Reference, if it carries a client's
//     id, and its Terms, if it asks for them; what expires at its time (books by instrument, then auctions, then the desk); its own effect.
//  2. Every command but Tick and Fragment has an effect or a reject with the reason, the
//     limit and the value.
//  3. A halted instrument and a killed participant accept only cancels, and the desk gives a
//     killed participant no quote and no claim. A mirrored instrument accepts no orders; its
//     book and trades come from MirrorRefresh and MirrorTrade, even while it is halted.
//  4. A participant exists once SetRisk has named it. Participant 0 is the service: it may
//     cancel all orders and place none.
//  5. Apply never panics, whatever the Command contains.
//  6. A desk request, mirror refresh, mass quote or list with a missing or misplaced piece is dropped as a
//     whole. The reject has ReasonInvalidCommand, the number of the piece in Qty and the
//     expected number in Aux; it is emitted at the piece that does not fit, or after the
//     EpochStarted that interrupts the request.
//  7. A mass quote sets quotes of one session: in each of its quote sets an instrument has one,
//     with a GTC order for each side. Its entries are applied in their order, each whole: an
//     order keeps its place if only its quantity falls. A refused entry leaves no quote, because
//     the old one is a price that its owner no longer wants. After the command that made a set's
//     trades reach its protection, all quotes of the set are cancelled, and it takes none until a
//     reset. The window of a protection begins with its first trade.
//  8. After a StartEpoch with StatusInSlices a mass cancel or kill of more than 256 orders, and
//     every expiry, only make the orders ending (book rule 10); MassCancelled has their number.
//     Each later command first takes ending orders out: by instrument, up to 256 a Tick and 16
//     any other command.
//  9. A list of new orders is accepted whole or refused whole: each order is checked against the
//     state before the list, with the list's orders before it as open ones, and if one breaks a
//     rule all are Rejected, those that break none with ReasonListRefused. In an accepted list
//     each order is then entered in turn. An order that the book would refuse by now, because
//     of the orders before it, is Accepted and Cancelled. Listed ends the list. A list of cancels
//     cancels those of its orders that are still live, and MassCancelled ends it.
//  10. Auction: orders gather (book rule 11) until the time of the call, or a StatusTrading. Its
//     indicative price is published with an event.Auction 4 times a second if it has changed.
//     Then the orders trade at the price of package auction (book rule 12); the reference is the
//     last trade, or that of the rules. That too is done in slices of rule 8, by each later
//     command, and so is the search for a price, which has each level as it is when it is read;
//     after the call cancels count for what has not traded, and new orders and amends are
//     refused. If orders still cross then, because some ended meanwhile, they trade at a new
//     price. The rest of them rests, the instrument trades again, and the price triggers stops.
//     Orders that cannot gather are refused with ReasonAuction: market, IOC, FOK, post-only.
//     A halt leaves the orders gathered for the next auction, and a StatusTrading after it is
//     an auction, at once or after AuctionRules.Opening. In an instrument with a volatility
//     band, an order or amend that would trade outside begins an auction, and gathers; one that
//     cannot gather is refused and begins none, so that nobody can stop an instrument at no
//     risk. An order of a list never gathers: a list is refused in a call, and an order of one
//     that would trade outside is Accepted and Cancelled with ReasonAuction (our choices).
//
// Cost: about 5 ns a command plus the book's work. It allocates only for DefineInstrument,
// SetRisk, the desk, a refresh, a new quote set and the growth of a book. One goroutine at a time.
type State struct {
	seq        uint64
	at         int64
	nextExpiry int64 // not after the next expiry of the books and the desk, nor nextCall; noExpiry
	bookExpiry int64 // not after that of the books; noExpiry
	nextCall   int64 // when an auction has something to do; noExpiry

	instruments  []instrument  // by ID, without gaps
	participants []participant // by number, up to the highest known

	epoch            uint64
	trades           market.TradeID // last issued; the books increment it
	participantCount int            // participants with a status
	maxOrders        int
	naive            bool

	desk      *rfq.Machine
	assembler Assembler // of desk requests, mirror refreshes and mass quotes

	inSlices bool                  // rule 8
	sweeps   []market.InstrumentID // whose books may have ending orders, ascending
	calls    []market.InstrumentID // in an auction, ascending: rule 10

	quotes       quotes.Sets
	fills        []book.QuoteFill // of quotes, by the command
	quoteEntries []quotes.Entry   // of the mass quote being applied
	listEntries  []lists.Entry    // of the list being applied
	listReasons  []listReason     // of its entries
}

// instrument begins with the fields that every order needs.
type instrument struct {
	book          instrumentBook
	minQty        market.Qty
	maxQty        market.Qty
	maxPrice      market.Price
	acceptsOrders bool  // matched and trading, without a volatility band
	status        uint8 // StatusTrading, StatusHalted or StatusAuction
	call          call  // of StatusAuction
	auctions      AuctionRules
	def           market.Instrument
	mirror        *mirrorState // nil = matched
}

// participant fits a cache line, without its limits on single instruments.
type participant struct {
	common limits   // of instruments beyond own
	own    []limits // by instrument
	status uint8    // 0 = unknown, StatusKilled, StatusLive
}

// mirrorState is the on-chain book and trades of a mirrored instrument.
type mirrorState struct {
	slot       uint64 // of the last refresh; 0 = none
	bids, asks []market.Level
	ordinal    uint64 // of the last trade; 0 = none
	tradedAt   int64  // on-chain time of the last trade, Unix nanoseconds
}

// limits is Limits with the largest value for "no limit", so that the order path only
// compares. 32 bytes.
type limits struct {
	maxQty      market.Qty
	maxNotional market.Uint128
	maxOpen     int32
	bandBps     uint16
}

var unlimited = market.Uint128{Hi: math.MaxUint64, Lo: math.MaxUint64}

func (m *mirrorState) hasData() bool { return m.slot != 0 || m.ordinal != 0 }

// NewState returns a state without instruments and participants, at Seq 0. It panics on
// invalid options.
func NewState(o StateOptions) *State {
	if err := o.Validate(); err != nil {
		panic("engine: " + err.Error())
	}
	return &State{
		nextExpiry: noExpiry,
		nextCall:   noExpiry,
		bookExpiry: noExpiry,
		maxOrders:  book.Options{MaxOrders: o.MaxOrders}.WithDefaults().MaxOrders,
		naive:      o.Naive,
		desk:       rfq.New(),
	}
}

// Seq returns the Seq of the last command applied; 0 = none.
func (s *State) Seq() uint64 { return s.seq }

// Epoch returns the current epoch; 0 = none.
func (s *State) Epoch() uint64 { return s.epoch }

// At returns the latest time of a command, in Unix nanoseconds.
func (s *State) At() int64 { return s.at }

// NextExpiry returns when the next order, quote, claim or ticket expires, or an earlier time,
// 1 while orders are ending; 0 = nothing expires.
func (s *State) NextExpiry() int64 {
	if s.nextExpiry == noExpiry {
		return 0
	}
	return s.nextExpiry
}

// Instruments returns a copy of the defined instruments, by ID.
func (s *State) Instruments() []market.Instrument {
	list := make([]market.Instrument, len(s.instruments))
	for i := range s.instruments {
		list[i] = s.instruments[i].def
	}
	return list
}

// Orders calls f with every live order of an instrument in canonical order (book rule 9).
func (s *State) Orders(in market.InstrumentID, f func(book.LiveOrder)) {
	if int(in) < len(s.instruments) {
		s.instruments[in].book.stored().Export(f)
	}
}

// orderExpiresAt lowers bookExpiry and nextExpiry to t; 0 = no expiry.
func (s *State) orderExpiresAt(t int64) {
	if t != 0 && t < s.bookExpiry {
		s.bookExpiry = t
		s.expiresAt(t)
	}
}

// expiresAt lowers nextExpiry to t; 0 = no expiry.
func (s *State) expiresAt(t int64) {
	if t != 0 && t < s.nextExpiry {
		s.nextExpiry = t
	}
}

// reject writes the reject event of an order command. limit is that of the broken rule. Price
// and Qty are those of the order, or the stop or display if that is what is wrong.
func (s *State) reject(c *Command, kind event.Kind, side market.Side, reason event.Reason, limit int64, out *event.Sink) {
	o := &c.Order
	price, qty := o.Price, o.Qty
	switch reason {
	case event.ReasonInvalidStop:
		price = o.Stop
	case event.ReasonInvalidDisplay:
		qty = o.Display
	}
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, OrderID: o.ID, Price: price, Qty: qty, Aux: limit,
		Kind: kind, Side: side, Instrument: c.Instrument, Participant: o.Participant, Code: uint16(reason),
	}
}

// rejectAdmin writes the reject of a command of the service.
func (s *State) rejectAdmin(c *Command, reason event.Reason, limit int64, out *event.Sink) {
	*out.Next() = event.Event{
		Seq: s.seq, At: s.at, Aux: limit, Kind: event.Rejected, Instrument: c.Instrument,
		Participant: c.Order.Participant, Code: uint16(reason),
	}
}

func (s *State) String() string {
	return fmt.Sprintf("seq %d, epoch %d, %d instruments, %d participants", s.seq, s.epoch, len(s.instruments), s.participantCount)
}
