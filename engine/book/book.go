// Package book defines one limit order book: the order, its rules, and the
// method set that both implementations have. The fast one is book/ladder, the
// obvious one that checks it is book/naive; the suite in this folder holds them
// to the same events on the same input.
//
// # Method set
//
// Both implementations are concrete types (the engine calls them directly, no
// interface on the order path) with:
//
//	Submit(o *Order, at int64, seq uint64, out *event.Sink)
//	Amend(o *Order, at int64, seq uint64, out *event.Sink)   // o.ID names the order; Price, Qty, Stop are wanted values
//	Cancel(id market.OrderID, who market.ParticipantID, at int64, seq uint64, out *event.Sink)
//	MassCancel(who market.ParticipantID, side market.Side, why event.Reason, at int64, seq uint64, out *event.Sink) int
//	                                                         // who 0 = everybody, side 0 = both; no summary event
//	Expire(at int64, seq uint64, out *event.Sink)            // every order with 0 < ExpireAt <= at
//	NextExpiry() int64                                       // 0 = none; may be earlier than the true one, never later
//	OpenOrders(who market.ParticipantID) int                 // live orders (resting + stops) of a participant
//	OrderCount() int                                         // live orders
//	Get(id market.OrderID) (LiveOrder, bool)                   // a live order as Export would give it
//	Best(side market.Side) (market.Price, market.Qty)        // displayed; 0, 0 when empty
//	LastTrade() market.Price                                 // 0 = none yet
//	Depth(side market.Side, dst []market.Level) []market.Level // displayed levels, best first, from dst[0] up to cap(dst)
//	Export(func(LiveOrder))                                    // canonical order, see below
//	Import(LiveOrder) error                                    // in the order that Export gave; see CheckLiveOrder
//	SetLastTrade(market.Price)                               // restore
//	SetMaxOrders(n int)                                      // from now on; a book that has more keeps them
//
// An Order given to Submit is well formed (the engine refuses any other):
// ID not 0; Side, Type, TIF and STP one of their constants; Qty 1..market.MaxQty;
// Display 0..MaxQty; Price 1..market.MaxPrice for Limit and StopLimit, else 0;
// Stop likewise for Stop and StopLimit; ExpireAt above 0 for GTD and Day, else 0;
// FlagPostOnly only on an order that may rest. In an Amend ID, Participant,
// Price, Qty, Stop and FlagOpenQty count, in the same ranges or 0; the rest of
// an order never changes. Seq grows from command to command.
//
// Accepted.Other, the command's reference, is left 0 for the engine to fill in.
// Traded.Aux counts up from Options.Trades.
//
// # Rules
//
//  1. Price-time priority; a trade prints at the maker's price.
//  2. Submit: a duplicate live ID, an iceberg of more than MaxSlices slices, a
//     full book, a level whose quantity would pass MaxLevelQty, a post-only
//     that would take, or an unfillable FOK is Rejected (the first of these
//     that holds; Aux is, in turn: 0, MaxSlices, MaxOrders, MaxLevelQty, the
//     best opposite price, the quantity that can be filled) and changes
//     nothing, LastTrade included. A full book refuses what could stay in it: a
//     stop, or a limit order that is neither IOC nor FOK.
//     Otherwise Accepted, then trades, then Rested or Cancelled. An order that
//     crosses nothing and rests has its displayed quantity in Accepted.Aux and
//     no Rested event. To cross is to reach the best opposite price, whoever
//     owns it.
//  3. A market order and an IOC never rest: the remainder is Cancelled with
//     ReasonIOCRemainder. A market order may be FOK; its TIF is IOC otherwise,
//     whatever it says.
//  4. Iceberg (0 < Display < Qty): at most Display is shown; when the shown part
//     is consumed, the next slice goes to the back of its level's queue with
//     Replenished. Trades happen against shown parts only. A taker trades its
//     whole quantity, its slice is cut from what then rests. Display stays as
//     it was given when Qty is amended.
//  5. Self-trade prevention acts when taker and maker have the same Participant
//     (and it is not 0), by the taker's STP:
//     CancelNewest: the taker's remainder is Cancelled; CancelOldest: the maker
//     is Cancelled, the taker goes on; CancelBoth: maker then taker Cancelled;
//     Decrement: both lose the smaller of taker's remainder and maker's shown
//     quantity: the maker first (Reduced, Replenished where a slice is used up,
//     or Cancelled when nothing is left), then the taker (Reduced with Aux 0, or
//     Cancelled). All with ReasonSelfTrade; a Cancelled here has in Qty what was
//     lost by it.
//     A FOK counts as fillable only what it can take before meeting its owner's
//     order (with CancelOldest: everybody else's quantity). Hidden quantity
//     counts, except that at the level where the owner's order waits only the
//     shown parts ahead of it do, since their next slices queue behind it.
//  6. Stop orders wait outside the book. A buy stop triggers when a trade prints
//     at or above Stop, a sell stop at or below. After an active order has been
//     processed whole, the stops that its prints triggered are elected: buys by
//     lowest Stop then oldest, then sells by highest Stop then oldest; they join
//     a FIFO and are processed one by one (Triggered, then as a market or limit
//     order: trades, Rested or Cancelled); their prints elect more, at the back
//     of the FIFO, until nothing is elected. Triggered.Aux is the highest of the
//     prints that elected a buy, the lowest for a sell. A stop that LastTrade
//     already satisfies is elected when accepted or amended, with LastTrade as
//     Aux. An elected post-only that would take is Cancelled with
//     ReasonPostOnly; an elected FOK that cannot fill with ReasonFOK; one whose
//     level is full with ReasonLevelFull. An elected stop is from then on a
//     Limit (or Market) order with Stop 0, and rests like any order.
//  7. Amend: o.Qty is the wanted total quantity (or, with FlagOpenQty, the wanted
//     open quantity); the total is what is open, has traded, and was lost by
//     Decrement. Price 0 or Qty 0 or Stop 0 in an Amend mean "as it is".
//     The first that holds:
//     An unknown order or another participant's (an Amend of participant 0, the
//     service, may touch any): AmendRejected with ReasonUnknownOrder.
//     Open quantity wanted <= 0: Cancelled with ReasonAmendedAway.
//     A total above market.MaxQty: AmendRejected with ReasonMaxQty; more than
//     MaxSlices slices: with ReasonInvalidDisplay.
//     A stop that waits: its Price (if it has one), Stop and Qty change, it goes
//     behind equals, Amended with Aux 0.
//     Same price and open quantity not larger: keeps its place, Reduced (an
//     iceberg loses hidden quantity first; Aux 0 when nothing shown is lost).
//     A level that would pass MaxLevelQty or a post-only that would take:
//     AmendRejected, nothing changes.
//     Anything else: Unrested, Amended, and matched like a new order at the back
//     of the queue (Amended.Aux is what rests at once, as with Accepted).
//     AmendRejected has the command's Price and Qty, Aux as in rule 2 (MaxQty:
//     market.MaxQty).
//  8. Cancel: an unknown order or another participant's (participant 0 may cancel
//     any): CancelRejected with ReasonUnknownOrder. Expire and MassCancel go in
//     canonical order (Expire: by ExpireAt, then ID).
//  9. Canonical order: bids best price first, each level in priority; asks best
//     first; then buy stops by lowest Stop then oldest; then sell stops by
//     highest Stop then oldest.
//
// Side and Participant of an event are the order's own (of Traded the taker's);
// an order that is unknown has in AmendRejected those of the command, in
// CancelRejected side 0 and the asking participant.
//
// Cost: no allocation once the slab has grown to the number of live orders. One
// command may trade with every order it reaches and elect every stop that
// waits; the risk limits on open orders are what bounds it.
// Not for concurrent use.
package book

import (
	"cmp"
	"fmt"

	"blockdesk/market"
)

// Type of an order. Numbers are on disk: frozen.
type Type uint8

const (
	Limit     Type = 1
	Market    Type = 2
	Stop      Type = 3 // becomes Market
	StopLimit Type = 4 // becomes Limit
)

// TIF is an order's time in force. Numbers are on disk: frozen.
type TIF uint8

const (
	GTC TIF = 1
	IOC TIF = 2
	FOK TIF = 3
	GTD TIF = 4 // until ExpireAt
	Day TIF = 5 // until ExpireAt, the end of the UTC day that the gateway set
)

// STP is a self-trade prevention mode. Numbers are on disk: frozen.
type STP uint8

const (
	STPCancelNewest STP = 1
	STPCancelOldest STP = 2
	STPCancelBoth   STP = 3
	STPDecrement    STP = 4
)

// Flag bits of an Order.
type Flag uint8

const (
	FlagPostOnly Flag = 1 << 0
	// FlagOpenQty, on an Amend: Qty is the open quantity wanted, not the total.
	FlagOpenQty Flag = 1 << 1
)

// Order is what a participant asks for. 56 bytes, no pointers; part of a
// Command and so of the journal's format.
type Order struct {
	ID          market.OrderID
	Price       market.Price // 0 for Market and Stop
	Stop        market.Price // trigger; 0 unless Stop or StopLimit
	Qty         market.Qty   // total
	Display     market.Qty   // shown part of an iceberg; 0 = all
	ExpireAt    int64        // Unix ns; 0 = never
	Participant market.ParticipantID
	Side        market.Side
	Type        Type
	TIF         TIF
	Flags       Flag
	STP         STP
	_           uint8
}

// LiveOrder is one live order as Export gives it: all that a snapshot needs, the
// same for both implementations. Flags holds FlagPostOnly alone.
type LiveOrder struct {
	Order            // Qty is the total (as amended), Price the limit it has now
	Open  market.Qty // not yet traded
	Shown market.Qty // displayed now; 0 for a waiting stop
	// Stop orders that still wait have Waiting set.
	Waiting bool
	// EnteredSeq orders waiting stops of equal trigger: the Seq that placed it.
	// 0 for what rests.
	EnteredSeq uint64
}

// MaxLevelQty bounds the summed open quantity of one price level, hidden parts
// included, so that sums of levels never overflow.
const MaxLevelQty market.Qty = 1 << 60

// MaxSlices bounds open quantity / Display, so that one taker cannot be made to
// trade with one iceberg without end. Our choice.
const MaxSlices = 100

// TooManySlices reports whether an order that shows display (0 = all) would
// need more than MaxSlices slices for its open quantity.
func TooManySlices(open, display market.Qty) bool {
	return display != 0 && open > display*MaxSlices
}

const (
	// MaxMaxOrders is the largest Options.MaxOrders.
	MaxMaxOrders = 1 << 24
	// DefaultMaxOrders stands for an Options.MaxOrders of 0.
	DefaultMaxOrders = 1 << 20
)

// Options of a book.
type Options struct {
	Instrument market.InstrumentID
	MaxOrders  int // live orders, 1..MaxMaxOrders; 0 = DefaultMaxOrders
	// Trades holds the last TradeID given. The books of one engine share one;
	// nil = the book counts for itself from 1.
	Trades *market.TradeID
}

// WithDefaults returns o with every zero field that has a default set to it.
func (o Options) WithDefaults() Options {
	o.MaxOrders = cmp.Or(o.MaxOrders, DefaultMaxOrders)
	if o.Trades == nil {
		o.Trades = new(market.TradeID)
	}
	return o
}

// Validate reports the first field that is out of its range.
func (o Options) Validate() error {
	if o.MaxOrders < 0 || o.MaxOrders > MaxMaxOrders {
		return fmt.Errorf("max_orders %d: must be 1 to %d", o.MaxOrders, MaxMaxOrders)
	}
	return nil
}
