// Package event defines the 64-byte record of everything that is seen: what a command did
// to a book, an instrument or the RFQ desk. The same record serves the journal's digest,
// FIX reports, the market-data feed and views.
//
// Invariants:
//  1. A record has no pointer and is exactly 64 bytes; its meaning depends only
//     on Kind, as the table below says.
//  2. Events are written in the order in which they happened; Seq never falls.
//  3. The events of a command are a function of the commands up to it.
//
// The fields of each kind, beside Seq, At, Kind and Instrument. "L2" is its
// effect on the displayed quantity of the level (Side, Price); summing it over
// all events gives the displayed book.
//
//	Kind           OrderID  Other      Price        Qty              Aux             L2      Code
//	Reference      order    –          the client's id as text, and its session: see Reference; always the first of its command
//	Terms          order    Arg        stop         display or min   ExpireAt        –       flags | TIF<<8
//	Accepted       new      0          limit or 0   total            rests displayed +Aux    order type | TIF<<8
//	Rejected       refused  0          value price  value quantity   the rule's limit –      Reason
//	Traded         taker    maker      maker's      traded           TradeID         −Qty    maker's participant
//	                                                                          (on the side opposite to Side = the taker's)
//	Rested         order    0          limit        open             displayed       +Aux    0
//	Cancelled      order    0          limit or 0   open, cancelled  was displayed   −Aux    Reason
//	Reduced        order    0          limit or 0   open afterwards  display less by −Aux    Reason (amend, self-trade or auction trade)
//	Unrested       order    0          old limit    open             was displayed   −Aux    0
//	Amended        order    0          new limit    open afterwards  rests displayed +Aux    0
//	AmendRejected  order    0          value price  value quantity   the rule's limit –      Reason
//	CancelRejected order    0          0            0                0               –       Reason
//	Replenished    order    0          limit        open             newly displayed +Aux    0
//	Triggered      order    0          limit or 0   open             trade price     –       0
//	MassCancelled  0        0          0            cancelled        0               –       0, or MoreCancels
//	InstrumentSet  0        0          0            0                0               –       status
//	AuctionTraded  younger  older      auction's    traded           TradeID         –       older's participant; Side is the younger's
//	Auction        0        ends at    price or 0   volume           surplus of bids –       0 indicative, 1 uncrossing
//	ParticipantSet 0        0          0            0                0               –       1 killed, 2 live
//	EpochStarted   0        epoch      0            0                0               –       0
//	MirrorLevel    0        0          level's      displayed now    grown by        +Aux    0
//	Mirrored       0        slot       0            levels changed   0               –       0
//	MirrorTraded   time     ordinal    traded       traded           TradeID         –       0
//	Quoted         0        set        0            entry's number   0               –       0
//	QuoteRejected  0        set        0            entry's number   the rule's limit –      Reason
//	MassQuoted     0        response   0            accepted entries refused entries –       0, or what was cancelled: QuotesCancelled…
//	Listed         first    0          0            orders           0               –       0, or the first Reason of a refused list
//	Desk           –        –          a piece of a record of the RFQ desk: see SetDesk and package rfq; it has no At
//
// All events with one Seq belong to one command; its Reference, if any, comes first, then its
// Terms: what a new order or an amend asks for and no other event has. It is written only
// where the command asks for it (book.FlagTerms); Other is the command's Arg.
//
// The entries of a mass quote share its Seq. Each begins with its Quoted, the events of its
// orders follow, and a refused one ends with its QuoteRejected; MassQuoted ends them all. Then
// come the orders that a quote protection pulls.
//
// The orders of a list share its Seq. The list's Reference comes first; then each order has its
// Reference, its Terms and its events, and the list's Reference comes again before the Listed
// that ends them all. The ids of the orders are consecutive.
//
// An Auction has what an auction would trade now, or trades; its end is 0 if a command ends
// it, its Aux is negative for a surplus of asks. An AuctionTraded has no effect on the displayed
// book: a resting order's Reduced with ReasonAuctionTrade follows it, and Qty 0 in it means that
// the order has traded completely.
//
// Only the three Mirror kinds change a mirrored instrument. The MirrorLevels of a refresh
// share the Seq of the Mirrored that ends it; between them the book is in a state that never
// existed on the chain. OrderID of a MirrorTraded is the on-chain time of the trade in Unix
// nanoseconds, At the time of the command.
package event

import (
	"unsafe"

	"blockdesk/market"
)

// Kind is the kind of an event. The numbers are on disk in digests and never change.
type Kind uint8

const (
	Accepted       Kind = 1
	Rejected       Kind = 2
	Traded         Kind = 3
	Rested         Kind = 4
	Cancelled      Kind = 5
	Reduced        Kind = 6
	Unrested       Kind = 7
	Amended        Kind = 8
	AmendRejected  Kind = 9
	CancelRejected Kind = 10
	Replenished    Kind = 11
	Triggered      Kind = 12
	MassCancelled  Kind = 13
	Reference      Kind = 14
	InstrumentSet  Kind = 15
	ParticipantSet Kind = 16
	EpochStarted   Kind = 17
	Desk           Kind = 18
	MirrorLevel    Kind = 19
	Mirrored       Kind = 20
	MirrorTraded   Kind = 21
	Terms          Kind = 22
	Quoted         Kind = 23
	QuoteRejected  Kind = 24
	MassQuoted     Kind = 25
	Listed         Kind = 26
	AuctionTraded  Kind = 27
	Auction        Kind = 28
)

// MoreCancels is the Code of a MassCancelled that a further one of the same request follows.
const MoreCancels uint16 = 1

// Values of Code in an InstrumentSet.
const (
	StatusTrading uint8 = 1 // the instrument takes orders
	StatusHalted  uint8 = 2 // it takes only cancels
	StatusAuction uint8 = 3 // orders gather, or trade at the price of an auction
)

// Values of Code in an Auction.
const (
	AuctionIndicative uint16 = 0 // what would trade now
	AuctionUncrossing uint16 = 1 // what trades now
)

// Values of Code in a MassQuoted that only cancels.
const (
	QuotesCancelled    uint16 = 1 // those of some instruments
	QuotesCancelledAll uint16 = 4
)

// Event is one record. The package table says what its fields mean for each Kind.
type Event struct {
	Seq         uint64 // of the command that caused it
	At          int64  // Unix nanoseconds, the command's At
	OrderID     market.OrderID
	Other       uint64
	Price       market.Price
	Qty         market.Qty
	Aux         int64
	Kind        Kind
	Side        market.Side
	Instrument  market.InstrumentID
	Participant market.ParticipantID
	Code        uint16
}

// Size of an Event in bytes.
const Size = 64

var _ [Size]byte = [unsafe.Sizeof(Event{})]byte{}

// MaxText is the longest text of a Reference event, in bytes.
const MaxText = 40

// refRecord is the layout of a Reference event: the client's id (FIX ClOrdID) of the command
// Seq. Kind and the fields after it are at the same offsets as in Event.
type refRecord struct {
	Seq         uint64
	OrderID     market.OrderID
	Text        [MaxText]byte
	Kind        Kind
	Len         uint8
	Instrument  market.InstrumentID
	Participant market.ParticipantID
	Origin      uint16
}

var _ [Size]byte = [unsafe.Sizeof(refRecord{})]byte{}

// Ref is the content of a Reference event: the session that sent the command, and the client's
// id of that command.
type Ref struct {
	OrderID     market.OrderID
	Instrument  market.InstrumentID
	Participant market.ParticipantID
	Origin      uint16 // session number of the gateway; 0 = none
	Text        []byte // aliases the event, or the command it comes from
}

// SetReference makes e the Reference event of the command seq. It truncates Text to MaxText
// bytes, the most that a command carries.
func (e *Event) SetReference(seq uint64, ref Ref) {
	r := (*refRecord)(unsafe.Pointer(e))
	*r = refRecord{
		Seq: seq, OrderID: ref.OrderID, Kind: Reference,
		Instrument: ref.Instrument, Participant: ref.Participant, Origin: ref.Origin,
	}
	r.Len = uint8(copy(r.Text[:], ref.Text))
}

// Reference returns the content of a Reference event; ok is false for other kinds.
func (e *Event) Reference() (ref Ref, ok bool) {
	if e.Kind != Reference {
		return Ref{}, false
	}
	r := (*refRecord)(unsafe.Pointer(e))
	return Ref{
		OrderID: r.OrderID, Instrument: r.Instrument, Participant: r.Participant, Origin: r.Origin,
		Text: r.Text[:min(int(r.Len), MaxText)],
	}, true
}
