// Package book defines a limit order book: the order, its rules, and the method set of
// both implementations. book/ladder is the fast one, book/naive the simple one that checks
// it; the tests of this package hold both to the same events on the same input.
//
// # Method set
//
// Both implementations are concrete types, because the engine calls them without an
// interface on the order path:
//
//	Submit(o *Order, at int64, seq uint64, out *event.Sink)
//	Amend(o *Order, at int64, seq uint64, out *event.Sink)     // o.ID names the order; Price, Qty, Stop are the wanted values
//	Cancel(id market.OrderID, participant market.ParticipantID, at int64, seq uint64, out *event.Sink)
//	CancelFor(id market.OrderID, reason event.Reason, at int64, seq uint64, out *event.Sink) bool
//	                                                           // by the engine: false and no event if the order is not live
//	MassCancel(participant market.ParticipantID, side market.Side, reason event.Reason, at int64, seq uint64, out *event.Sink) int
//	                                                           // participant 0 = everybody, side 0 = both; no summary event
//	Expire(at int64, seq uint64, out *event.Sink)              // every order with 0 < ExpireAt <= at
//	NextExpiry() int64                                         // 0 = none; may be earlier than the true one, never later
//	Open(participant market.ParticipantID, side market.Side) int // orders (0 = everybody's; side 0 = both) that a mass cancel has not ended
//	EndLater(participant market.ParticipantID, side market.Side, reason event.Reason, at int64, seq uint64, out *event.Sink) int
//	                                                           // makes them ending, see rule 10
//	Sweep(at int64, n int, seq uint64, out *event.Sink) int    // takes up to n ending orders out
//	Sweeping() bool                                            // there may be ending orders
//	Check(o *Order, more int, at int64, seq uint64, out *event.Sink) (event.Reason, int64)
//	                                                           // why Submit would reject o if the book had more other orders, and the limit
//	TakeOut(id market.OrderID, at int64, seq uint64, out *event.Sink) // the order, if it is ending
//	OpenOrders(participant market.ParticipantID) int           // Open on both sides
//	OrderCount() int                                           // live and ending orders
//	Get(id market.OrderID) (LiveOrder, bool)                   // an order that is not ending, as Export passes it
//	Best(side market.Side) (market.Price, market.Qty)          // displayed by orders that are not ending; 0, 0 = none
//	LastTrade() market.Price                                   // 0 = none
//	Depth(side market.Side, dst []market.Level) []market.Level // displayed levels, best first, to dst[:0] up to cap(dst)
//	Export(func(LiveOrder))                                    // in canonical order, see below
//	Import(LiveOrder) error                                    // in the order of Export; see CheckLiveOrder
//	SetLastTrade(market.Price)                                 // for a restore
//	Gather(o *Order, at int64, seq uint64, out *event.Sink)    // Submit in a call, see rule 11; o may rest or is a stop
//	AmendGathered(o *Order, at int64, seq uint64, out *event.Sink) // Amend in a call
//	Gathered(side market.Side) market.Qty                      // open quantity of the gathered orders
//	NextLevel(side market.Side, after market.Price) (market.Price, market.Qty) // best first: open quantity of orders, resting or gathered, that are not ending
//	Uncross(price market.Price, n int, at int64, seq uint64, out *event.Sink) int // trades up to n pairs, see rule 12
//	Release(n int, at int64, seq uint64, out *event.Sink) int  // rests up to n gathered orders
//	Elect(at int64, seq uint64, out *event.Sink)               // triggers the stops that LastTrade satisfies
//	SetMaxOrders(n int)                                        // from now on; a book with more orders keeps them
//
// An Order for Submit must be well formed (the engine rejects any other):
// ID not 0; Side, Type, TIF and STP one of their constants; Qty 1..market.MaxQty;
// Display 0..MaxQty; Price 1..market.MaxPrice for Limit and StopLimit, else 0;
// Stop likewise for Stop and StopLimit; ExpireAt above 0 for GTD and Day, else 0;
// FlagPostOnly only on an order that may rest; FlagQuote only on a GTC limit order; FlagMinQty only on an IOC limit order or a
// market order that is not FOK, with Display 1..Qty. In an Amend ID, Participant,
// Price, Qty, Stop and FlagOpenQty are used, in the same ranges or 0, and with FlagAmendTerms
// TIF with its ExpireAt, and Display; the rest of an order never changes. The TIF of an Amend
// must fit the order: GTC, GTD or Day for one that rests, and no quote has terms to amend.
// Seq grows from command to command.
//
// Traded.Aux counts up from Options.Trades. Each trade of an order with FlagQuote, on either
// side, is appended to Options.Fills.
//
// # Rules
//
//  1. Price-time priority; a trade prints at the maker's price.
//  2. Submit: a duplicate live ID, an iceberg of more than MaxSlices slices, a
//     full book, a level whose quantity would pass MaxLevelQty, a post-only
//     that would take, an unfillable FOK, or an order that could not trade its
//     minimum (FlagMinQty) is Rejected (the first of these that applies; Aux is,
//     in turn: 0, MaxSlices, MaxOrders, MaxLevelQty, the best opposite price, the
//     quantity that can be filled, twice) and changes nothing, LastTrade
//     included. A full book rejects orders that could stay in it: a stop, or a
//     limit order that is neither IOC nor FOK.
//     Otherwise Accepted, then trades, then Rested or Cancelled. An order that
//     crosses nothing and rests has its displayed quantity in Accepted.Aux and
//     no Rested event. An order crosses if it reaches the best opposite price,
//     even of its own participant.
//  3. A market order and an IOC never rest: the remainder is Cancelled with
//     ReasonIOCRemainder. A market order may be FOK; any other TIF of it counts
//     as IOC.
//  4. Iceberg (0 < Display < Qty): at most Display is shown; when the shown part
//     is consumed, the next slice goes to the back of its level's queue with
//     Replenished. Only shown parts trade. A taker trades its whole quantity;
//     its slice is cut from what then rests. Amending Qty does not change Display.
//  5. Self-trade prevention acts when taker and maker have the same Participant
//     (and it is not 0), by the taker's STP:
//     CancelNewest: the taker's remainder is Cancelled; CancelOldest: the maker
//     is Cancelled, the taker goes on; CancelBoth: maker then taker Cancelled;
//     Decrement: both lose the smaller of taker's remainder and maker's shown
//     quantity: the maker first (Reduced, Replenished where a slice is used up,
//     or Cancelled when nothing is left), then the taker (Reduced with Aux 0, or
//     Cancelled). All with ReasonSelfTrade; the Qty of such a Cancelled is the
//     quantity that it loses.
//     A FOK or a minimum counts as fillable only what it can take before it meets an order of
//     its participant (with CancelOldest: everybody else's quantity). Hidden
//     quantity counts, but at the level of that order only the shown parts ahead
//     of it do, because their next slices queue behind it.
//  6. Stop orders wait outside the book. A trade at or above Stop triggers a buy
//     stop, one at or below a sell stop. Once an active order is processed
//     completely, the stops that its trades triggered are elected: buys by
//     lowest Stop then oldest, then sells by highest Stop then oldest; they join
//     a FIFO and are processed one by one (Triggered, then as a market or limit
//     order: trades, Rested or Cancelled); their trades elect more, at the back
//     of the FIFO, until nothing is elected. Triggered.Aux is the highest price
//     that elected a buy, the lowest for a sell. A stop that LastTrade already
//     satisfies is elected when accepted or amended, with LastTrade as Aux. An
//     elected post-only that would take is Cancelled with
//     ReasonPostOnly; an elected FOK that cannot fill with ReasonFOK; one whose
//     level is full with ReasonLevelFull. An elected stop is from then on a
//     Limit (or Market) order with Stop 0, and rests like any order.
//  7. Amend: o.Qty is the wanted total quantity (or, with FlagOpenQty, the wanted
//     open quantity); the total is what is open, has traded, and was lost by
//     Decrement. Price 0, Qty 0 or Stop 0 in an Amend mean "unchanged".
//     The first case that applies:
//     An unknown order or another participant's (an Amend of participant 0, the
//     service, may touch any): AmendRejected with ReasonUnknownOrder.
//     Open quantity wanted <= 0: Cancelled with ReasonAmendedAway.
//     A total above market.MaxQty: AmendRejected with ReasonMaxQty; more than
//     MaxSlices slices: with ReasonInvalidDisplay.
//     A waiting stop: its Price (if it has one), Stop, Qty and terms change, it
//     goes behind equals, Amended with Aux 0.
//     Same price, open quantity and Display not larger: keeps its place, Reduced (an
//     iceberg loses hidden quantity first, then what is shown above a smaller
//     Display becomes hidden; Aux 0 when nothing shown is lost).
//     A level that would pass MaxLevelQty or a post-only that would take:
//     AmendRejected, nothing changes.
//     Anything else: Unrested, Amended, and matched like a new order at the back
//     of the queue (Amended.Aux is what rests at once, as with Accepted).
//     With FlagAmendTerms a TIF other than 0 replaces TIF and ExpireAt, which
//     keeps the place, and a Display other than 0 replaces Display; market.MaxQty
//     shows the whole quantity.
//     AmendRejected has the command's Price and Qty, Aux as in rule 2 (MaxQty:
//     market.MaxQty).
//  8. Cancel: an unknown order or another participant's (participant 0 may cancel
//     any): CancelRejected with ReasonUnknownOrder. Expire and MassCancel go in
//     canonical order (Expire: by ExpireAt, then ID).
//  9. Canonical order: bids best price first, each level in priority; asks best
//     first; then buy stops by lowest Stop then oldest; then sell stops by
//     highest Stop then oldest; then gathered bids and asks like resting ones.
//  10. Ending orders: EndLater ends the orders of a participant, and from the first Sweep at or
//     after its ExpireAt on an order is overdue, at once and for good; each is still in the book,
//     and displayed, until it is taken out with Cancelled (the reason of EndLater, ReasonExpired).
//     An ending order never trades, triggers or changes. It counts neither as liquidity (Best,
//     post-only, FOK, minimum, self-trade prevention) nor, if EndLater ended it, as an open order;
//     it does count for MaxOrders and MaxLevelQty. It is taken out when an active order meets it,
//     before the other events if it is the best one in reach; when its trigger elects it; when a
//     Cancel or Amend names it, which is then refused with ReasonUnknownOrder; when Submit gives its ID to a
//     new order; and by Sweep, in canonical order. EndLater for orders of a participant and side that
//     has ending ones already takes all ending ones out first.
//  11. Call: Gather and AmendGathered trade nothing. A limit order waits beside the book, so that
//     the book never crosses, in price-time priority behind the resting orders of its price, and
//     shows nothing (Accepted.Aux 0). A stop waits even if LastTrade satisfies it. Gather rejects
//     as rule 2 does; MaxLevelQty bounds all gathered orders of a side with what rests at the
//     price. AmendGathered is rule 7, but an order that loses its place is gathered (Unrested if
//     it rested, then Amended with Aux 0); a post-only one is refused with ReasonAuction. Until
//     the orders are released, no order may enter or change in another way.
//  12. Uncross, while nothing is ending: the first bid and the first ask at or better than the
//     price trade at the price (AuctionTraded: the taker is the younger order, a gathered one is
//     younger than a resting one, and of two that entered at once the ask), until a side has
//     none. A resting order trades its shown part and then has a Reduced with
//     ReasonAuctionTrade, and maybe Replenished; a gathered iceberg trades whole (our choice).
//     Self-trade prevention is that of the younger order (rule 5), between the two that meet.
//     Release then rests the gathered orders, bids first, best price and oldest first, each
//     with Rested; they must not cross.
//
// Side and Participant of an event are those of the order (of Traded the taker's). For
// an unknown order, AmendRejected has those of the command, CancelRejected side 0 and the
// command's participant.
//
// Cost: no allocation once the slab has grown to the number of live orders. One command
// may trade with every order that it reaches and elect every waiting stop; the risk limits
// on open orders bound that.
// Not for concurrent use.
package book

import (
	"cmp"
	"fmt"

	"blockdesk/market"
)

// Type is the type of an order. The numbers are on disk and never change.
type Type uint8

const (
	Limit     Type = 1
	Market    Type = 2
	Stop      Type = 3 // becomes Market
	StopLimit Type = 4 // becomes Limit
)

// TIF is an order's time in force. The numbers are on disk and never change.
type TIF uint8

const (
	GTC TIF = 1
	IOC TIF = 2
	FOK TIF = 3
	GTD TIF = 4 // until ExpireAt
	Day TIF = 5 // until ExpireAt, the end of the UTC day that the gateway set
)

// STP is a self-trade prevention mode. The numbers are on disk and never change.
type STP uint8

const (
	STPCancelNewest STP = 1
	STPCancelOldest STP = 2
	STPCancelBoth   STP = 3
	STPDecrement    STP = 4
)

// Flag is a set of flags of an Order.
type Flag uint8

const (
	FlagPostOnly Flag = 1 << 0
	// FlagOpenQty in an Amend: Qty is the open quantity wanted, not the total.
	FlagOpenQty Flag = 1 << 1
	// FlagMinQty in an order that never rests, and is not a FOK: Display is the least
	// quantity that must trade at once, 1..Qty.
	FlagMinQty Flag = 1 << 2
	// FlagTerms in a command: the engine writes event.Terms. The books ignore it.
	FlagTerms Flag = 1 << 3
	// FlagQuote: the order is one side of a market maker's quote.
	FlagQuote Flag = 1 << 4
	// FlagMassCancelled and FlagKilled in a LiveOrder: it is ending, with ReasonMassCancel or
	// ReasonKilled.
	FlagMassCancelled Flag = 1 << 5
	FlagKilled        Flag = 1 << 6
	// FlagAmendTerms in an Amend: TIF with ExpireAt, and Display, are wanted where they are not
	// 0; a Display of market.MaxQty shows the whole quantity.
	FlagAmendTerms Flag = 1 << 7
)

// Order is an order as its participant sends it. 56 bytes, no pointers; part of a Command
// and so of the journal's format.
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

// LiveOrder is a live order as Export passes it: what a snapshot needs, the same for both
// implementations. Flags holds only FlagPostOnly, FlagQuote,
// FlagMassCancelled and FlagKilled.
type LiveOrder struct {
	Order            // Qty is the total and Price the limit, as amended
	Open  market.Qty // not yet traded
	Shown market.Qty // displayed now; 0 for a waiting order
	// Waiting: a stop order that has not triggered, or a limit order gathered for an auction.
	Waiting bool
	// EnteredSeq is the Seq that placed a waiting order; it orders those of equal trigger or
	// price. 0 for resting orders.
	EnteredSeq uint64
}

// MaxLevelQty bounds the total open quantity of one price level, hidden parts included, so
// that sums over levels never overflow.
const MaxLevelQty market.Qty = 1 << 60

// MaxSlices bounds open quantity / Display, so that a taker cannot be made to trade
// endlessly with one iceberg. Our choice.
const MaxSlices = 100

// Amended returns what the Amend a makes of the terms of an order; of its fields only TIF,
// ExpireAt and Display change.
func (a *Order) Amended(o Order) Order {
	if a.Flags&FlagAmendTerms == 0 {
		return o
	}
	if a.TIF != 0 {
		o.TIF, o.ExpireAt = a.TIF, a.ExpireAt
	}
	switch a.Display {
	case 0:
	case market.MaxQty:
		o.Display = 0
	default:
		o.Display = a.Display
	}
	return o
}

// ShowsMore reports whether an order with display now shows more of its quantity than one with
// display was; 0 = all.
func ShowsMore(now, was market.Qty) bool { return was != 0 && (now == 0 || now > was) }

// TooManySlices reports whether an order that displays display (0 = all) would need more than
// MaxSlices slices for its open quantity.
func TooManySlices(open, display market.Qty) bool {
	return display != 0 && open > display*MaxSlices
}

const (
	// MaxMaxOrders is the largest Options.MaxOrders.
	MaxMaxOrders = 1 << 24
	// DefaultMaxOrders replaces an Options.MaxOrders of 0.
	DefaultMaxOrders = 1 << 20
)

// Options of a book.
type Options struct {
	Instrument market.InstrumentID
	MaxOrders  int // live orders, 1..MaxMaxOrders; 0 = DefaultMaxOrders
	// Trades holds the last TradeID issued. All books of an engine share one; nil = the
	// book counts from 1.
	Trades *market.TradeID
	// Fills takes the trades of quotes; the owner empties it after each command. All books of
	// an engine share one; nil = the book has its own, which only grows.
	Fills *[]QuoteFill
	// Due is the time up to which what expires is ending, once Sweep has found it; the
	// owner may advance it before a command, Sweep sets it. nil = the book has its own.
	Due *int64
}

// QuoteFill is one trade of an order with FlagQuote.
type QuoteFill struct {
	ID          market.OrderID
	Qty         market.Qty
	Participant market.ParticipantID
	Instrument  market.InstrumentID
}

// WithDefaults returns o with its defaults filled in.
func (o Options) WithDefaults() Options {
	o.MaxOrders = cmp.Or(o.MaxOrders, DefaultMaxOrders)
	if o.Trades == nil {
		o.Trades = new(market.TradeID)
	}
	if o.Due == nil {
		o.Due = new(int64)
	}
	if o.Fills == nil {
		o.Fills = new([]QuoteFill)
	}
	return o
}

// Validate returns an error that names the first field out of its range.
func (o Options) Validate() error {
	if o.MaxOrders < 0 || o.MaxOrders > MaxMaxOrders {
		return fmt.Errorf("max_orders %d: must be 1 to %d", o.MaxOrders, MaxMaxOrders)
	}
	return nil
}
