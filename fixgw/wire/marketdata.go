package wire

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"blockdesk/engine/marketdata"
	"blockdesk/engine/orders"
	"blockdesk/market"
)

// Values of MDUpdateAction (279).
const (
	mdNew    byte = '0'
	mdChange byte = '1'
	mdDelete byte = '2'
)

// MaxMDReqID is the longest MDReqID (262), in bytes.
const MaxMDReqID = 64

// EntryKinds is a set of MDEntryTypes (269).
type EntryKinds uint8

// MDEntryTypes that there are.
const (
	KindBid   EntryKinds = 1 << 0 // 269=0
	KindOffer EntryKinds = 1 << 1 // 269=1
	KindTrade EntryKinds = 1 << 2 // 269=2
	// KindOpening and KindImbalance are of an auction: the price at which it would trade, and
	// what is left over there.
	KindOpening   EntryKinds = 1 << 3 // 269=4
	KindImbalance EntryKinds = 1 << 4 // 269=A
)

// BookFormat says which market data of its instrument a subscription gets.
type BookFormat struct {
	Instrument *market.Instrument
	Depth      int // levels a side
	Kinds      EntryKinds
	// Orders: an entry is an order, not a level. The views that are encoded must have orders.
	Orders bool
	custom bool // with Epoch (5615) and FeedSeq (5616)
}

// AppendSnapshot appends the body of a W after MDReqID's value: Symbol, one entry a
// level, best first, and the last trade. A level is identified by its side and price.
func (c *BookFormat) AppendSnapshot(dst []byte, v *marketdata.View) []byte {
	trades := v.Trades
	if c.Kinds&KindTrade == 0 {
		trades = nil
	}
	trades = trades[:min(len(trades), 1)]
	if c.Orders {
		return c.appendOrders(dst, v, trades)
	}
	bids, asks := topLevels(v.Bids, c.Depth), topLevels(v.Asks, c.Depth)
	n := 0
	if c.Kinds&KindBid != 0 {
		n += len(bids)
	} else {
		bids = nil
	}
	if c.Kinds&KindOffer != 0 {
		n += len(asks)
	} else {
		asks = nil
	}
	dst = c.appendFeedPosition(dst, v)
	dst = append(append(dst, "\x0155="...), c.Instrument.Symbol...)
	dst = strconv.AppendInt(append(dst, "\x01268="...), int64(n+len(trades)+c.auctionEntries(&v.Auction)), 10)
	for _, l := range bids {
		dst = appendLevel(append(dst, "\x01269=0"...), c.Instrument, l)
	}
	for _, l := range asks {
		dst = appendLevel(append(dst, "\x01269=1"...), c.Instrument, l)
	}
	for i := range trades {
		dst = appendTrade(append(dst, "\x01269=2"...), c.Instrument, &trades[i])
	}
	return c.appendAuction(dst, &v.Auction)
}

// shows returns the price of an auction and its surplus of bids, as far as the format has them
// and there are any.
func (c *BookFormat) shows(a *marketdata.Auction) (price market.Price, imbalance market.Qty) {
	if c.Kinds&KindOpening != 0 {
		price = a.Price
	}
	if c.Kinds&KindImbalance != 0 {
		imbalance = a.Imbalance
	}
	return price, imbalance
}

// auctionEntries returns the number of entries of an auction in a W.
func (c *BookFormat) auctionEntries(a *marketdata.Auction) (n int) {
	price, imbalance := c.shows(a)
	if price != 0 {
		n++
	}
	if imbalance != 0 {
		n++
	}
	return n
}

// appendAuction appends the entries of an auction to a W.
func (c *BookFormat) appendAuction(dst []byte, a *marketdata.Auction) []byte {
	price, imbalance := c.shows(a)
	if price != 0 {
		dst = appendOpening(append(dst, "\x01269=4"...), c.Instrument, a)
	}
	if imbalance != 0 {
		dst = appendImbalance(append(dst, "\x01269=A"...), c.Instrument, imbalance)
	}
	return dst
}

// appendOpening appends the indicative price of an auction, which FIX calls the theoretical
// opening price, and its volume.
func appendOpening(dst []byte, in *market.Instrument, a *marketdata.Auction) []byte {
	return append(appendLevel(dst, in, market.Level{Price: a.Price, Qty: a.Volume}), "\x01286=5"...)
}

// appendImbalance appends a surplus of bids, or if negative of asks.
func appendImbalance(dst []byte, in *market.Instrument, q market.Qty) []byte {
	dst = in.AppendQty(append(dst, "\x01271="...), max(q, -q))
	if q < 0 {
		return append(dst, "\x01277=Q"...)
	}
	return append(dst, "\x01277=P"...)
}

// auction appends the changes from the auction prev to next.
func (e *entries) auction(c *BookFormat, prev, next *marketdata.Auction) {
	was, wasLeft := c.shows(prev)
	is, left := c.shows(next)
	switch {
	case was != 0 && is == 0:
		e.dst = append(e.begin(mdDelete, '4', 0), "\x01286=5"...)
	case is != 0 && (was != is || prev.Volume != next.Volume):
		e.dst = appendOpening(e.begin(changeOf(was == 0), '4', 0), e.in, next)
	}
	switch {
	case wasLeft != 0 && left == 0:
		e.dst = e.begin(mdDelete, 'A', 0)
	case left != wasLeft:
		e.dst = appendImbalance(e.begin(changeOf(wasLeft == 0), 'A', 0), e.in, left)
	}
}

func changeOf(first bool) byte {
	if first {
		return mdNew
	}
	return mdChange
}

// appendFeedPosition appends the position of v in the WebSocket's stream of the same
// instrument: its epoch, and the seq of channel l2, or of trades if the request is for
// trades alone.
func (c *BookFormat) appendFeedPosition(dst []byte, v *marketdata.View) []byte {
	if !c.custom {
		return dst
	}
	seq := v.DepthSeq
	if c.Kinds == KindTrade {
		seq = v.TradesSeq
	}
	dst = strconv.AppendUint(append(AppendTag(dst, TagEpoch), 'e'), v.Epoch, 10)
	return AppendCustomCount(dst, TagFeedSeq, seq)
}

func topLevels(levels []market.Level, depth int) []market.Level {
	return levels[:min(len(levels), depth)]
}

func appendLevel(dst []byte, in *market.Instrument, l market.Level) []byte {
	dst = in.AppendPrice(append(dst, "\x01270="...), l.Price)
	return in.AppendQty(append(dst, "\x01271="...), l.Qty)
}

func appendTrade(dst []byte, in *market.Instrument, t *marketdata.Trade) []byte {
	dst = appendLevel(dst, in, market.Level{Price: t.Price, Qty: t.Qty})
	at := time.Unix(0, t.At).UTC()
	dst = at.AppendFormat(append(dst, "\x01272="...), "20060102")
	return at.AppendFormat(append(dst, "\x01273="...), "15:04:05.000")
}

// AppendIncrement appends the body of an X after MDReqID's value: the changes from prev
// to next that the format shows, then the trades after prev. It also returns the number
// of entries; without any there is nothing to send.
func (c *BookFormat) AppendIncrement(dst []byte, prev, next *marketdata.View, trades []marketdata.Trade) ([]byte, int) {
	e := entries{in: c.Instrument}
	e.dst = append(c.appendFeedPosition(dst, next), "\x01268="...)
	// The number of entries comes first: its digits are reserved, and the unused ones
	// removed at the end.
	at := len(e.dst)
	e.dst = append(e.dst, "0000000"...)
	switch {
	case c.Orders && c.Kinds&KindBid != 0:
		e.orders(market.Buy, orders.TopLevels(prev.Orders.Bids, c.Depth), orders.TopLevels(next.Orders.Bids, c.Depth))
	case c.Kinds&KindBid != 0:
		e.levels(market.Buy, topLevels(prev.Bids, c.Depth), topLevels(next.Bids, c.Depth))
	}
	switch {
	case c.Orders && c.Kinds&KindOffer != 0:
		e.orders(market.Sell, orders.TopLevels(prev.Orders.Asks, c.Depth), orders.TopLevels(next.Orders.Asks, c.Depth))
	case c.Kinds&KindOffer != 0:
		e.levels(market.Sell, topLevels(prev.Asks, c.Depth), topLevels(next.Asks, c.Depth))
	}
	if c.Kinds&KindTrade != 0 {
		for i := range trades {
			if t := &trades[i]; t.Seq > prev.EngineSeq {
				e.dst = appendTrade(e.begin(mdNew, '2', 0), c.Instrument, t)
			}
		}
	}
	e.auction(c, &prev.Auction, &next.Auction)
	var text [8]byte
	count := strconv.AppendInt(text[:0], int64(e.n), 10)
	copy(e.dst[at:], count)
	tail := copy(e.dst[at+len(count):], e.dst[at+7:])
	return e.dst[:at+len(count)+tail], e.n
}

// entries appends the entries of an increment.
type entries struct {
	in  *market.Instrument
	dst []byte
	n   int
}

// begin appends the common fields of an entry; id is that of an order, or 0.
func (e *entries) begin(action, kind byte, id market.OrderID) []byte {
	e.n++
	e.dst = append(append(e.dst, "\x01279="...), action)
	e.dst = append(append(e.dst, "\x01269="...), kind)
	if id != 0 {
		e.dst = strconv.AppendUint(append(e.dst, "\x01278="...), uint64(id), 10)
	}
	return append(append(e.dst, "\x0155="...), e.in.Symbol...)
}

// entryKind returns the MDEntryType (269) of a side.
func entryKind(side market.Side) byte {
	if side == market.Sell {
		return '1'
	}
	return '0'
}

// orders appends the changes from the orders prev to next.
func (e *entries) orders(side market.Side, prev, next []orders.Order) {
	actions := [...]byte{orders.New: mdNew, orders.Update: mdChange, orders.Delete: mdDelete}
	for _, c := range orders.AppendChanges(nil, side, prev, next) {
		e.dst = e.begin(actions[c.Action], entryKind(side), c.ID)
		if c.Action == orders.Delete {
			e.dst = e.in.AppendPrice(append(e.dst, "\x01270="...), c.Price)
		} else {
			e.dst = appendLevel(e.dst, e.in, market.Level{Price: c.Price, Qty: c.Qty})
		}
	}
}

// appendOrders is AppendSnapshot with an entry an order, each price in priority. FIX 4.4 has no
// MDEntryID in a W: the id is in OrderID (37).
func (c *BookFormat) appendOrders(dst []byte, v *marketdata.View, trades []marketdata.Trade) []byte {
	bids, asks := orders.TopLevels(v.Orders.Bids, c.Depth), orders.TopLevels(v.Orders.Asks, c.Depth)
	if c.Kinds&KindBid == 0 {
		bids = nil
	}
	if c.Kinds&KindOffer == 0 {
		asks = nil
	}
	dst = c.appendFeedPosition(dst, v)
	dst = append(append(dst, "\x0155="...), c.Instrument.Symbol...)
	dst = strconv.AppendInt(append(dst, "\x01268="...), int64(len(bids)+len(asks)+len(trades)+c.auctionEntries(&v.Auction)), 10)
	for i, list := range [...][]orders.Order{bids, asks} {
		for _, o := range list {
			dst = append(append(dst, "\x01269="...), '0'+byte(i))
			dst = appendLevel(dst, c.Instrument, market.Level{Price: o.Price, Qty: o.Qty})
			dst = strconv.AppendUint(append(dst, "\x0137="...), uint64(o.ID), 10)
		}
	}
	for i := range trades {
		dst = appendTrade(append(dst, "\x01269=2"...), c.Instrument, &trades[i])
	}
	return c.appendAuction(dst, &v.Auction)
}

// levels appends the changes from the levels prev to next; both best first.
func (e *entries) levels(side market.Side, prev, next []market.Level) {
	kind := entryKind(side)
	for len(prev) > 0 || len(next) > 0 {
		var order int
		switch {
		case len(prev) == 0:
			order = 1
		case len(next) == 0:
			order = -1
		default:
			order = better(side, prev[0].Price, next[0].Price)
		}
		switch {
		case order < 0:
			e.dst = e.in.AppendPrice(append(e.begin(mdDelete, kind, 0), "\x01270="...), prev[0].Price)
			prev = prev[1:]
		case order > 0:
			e.dst = appendLevel(e.begin(mdNew, kind, 0), e.in, next[0])
			next = next[1:]
		default:
			if prev[0].Qty != next[0].Qty {
				e.dst = appendLevel(e.begin(mdChange, kind, 0), e.in, next[0])
			}
			prev, next = prev[1:], next[1:]
		}
	}
}

// MarketDataRequest is a V.
type MarketDataRequest struct {
	ReqID       []byte // aliases the message
	Action      byte   // SubscriptionRequestType (263)
	depth       int    // levels a side, 1..marketdata.MaxDepth
	kinds       EntryKinds
	Orders      bool // AggregatedBook (266) N
	Custom      bool // the session's
	Instruments []*market.Instrument
}

// Format returns the format of the messages on one of its instruments.
func (r *MarketDataRequest) Format(in *market.Instrument) BookFormat {
	return BookFormat{Instrument: in, Depth: r.depth, Kinds: r.kinds, Orders: r.Orders, custom: r.Custom}
}

// DecodeMarketData reads a V that has passed the dictionary. An instrument that is named
// twice counts once; at most `most` may be named. An unsubscription needs its MDReqID
// only: the dictionary requires the other fields, but they mean nothing.
func DecodeMarketData(frame []byte, set *market.Instruments, most int) (r MarketDataRequest, refusal *Refusal) {
	var asked *Refusal // of the fields that an unsubscription does not need
	note := func(n *Refusal) {
		if asked == nil {
			asked = n
		}
	}
	EachField(frame, func(tag int, value []byte) {
		switch tag {
		case 262:
			if r.ReqID = value; len(value) > MaxMDReqID {
				refusal = Refuse(0, CodeInvalidField, "MDReqID (262): at most %d bytes", MaxMDReqID)
			}
		case 263:
			if r.Action = firstByte(value); len(value) != 1 || r.Action < '0' || r.Action > '2' {
				note(Refuse('4', CodeInvalidField, "SubscriptionRequestType (263) %.20q: must be 0, 1 or 2", value))
			}
		case 264:
			n, err := strconv.Atoi(string(value))
			if r.depth = n; err != nil || n < 0 || n > marketdata.MaxDepth {
				note(Refuse('5', CodeInvalidField, "MarketDepth (264) %.20q: must be 0 (all levels) to %d", value, marketdata.MaxDepth))
			}
			if n == 0 {
				r.depth = marketdata.MaxDepth
			}
		case 265:
			if string(value) != "1" {
				note(Refuse('6', CodeUnsupported, "MDUpdateType (265) %.20q: only 1 (incremental)", value))
			}
		case 266:
			if r.Orders = string(value) == "N"; !r.Orders && string(value) != "Y" {
				note(Refuse('7', CodeInvalidField, "AggregatedBook (266) %.20q: must be Y (levels) or N (orders)", value))
			}
		case 269:
			switch string(value) {
			case "0":
				r.kinds |= KindBid
			case "1":
				r.kinds |= KindOffer
			case "2":
				r.kinds |= KindTrade
			case "4":
				r.kinds |= KindOpening
			case "A":
				r.kinds |= KindImbalance
			default:
				note(Refuse('8', CodeUnsupported, "MDEntryType (269) %.20q: only 0, 1, 2, 4 and A", value))
			}
		case 55:
			note(r.addSymbol(value, set, most))
		default:
			note(refuseExtra(tag, value))
		}
	})
	switch {
	case refusal != nil || r.Action == '2':
		return r, refusal
	case asked == nil && (len(r.Instruments) == 0 || r.kinds == 0):
		asked = Refuse(0, CodeMissingField, "Symbol (55) and MDEntryType (269)")
	case asked == nil && r.Orders && r.Action == '0':
		asked = Refuse('7', CodeUnsupported, "AggregatedBook (266) N: only with SubscriptionRequestType (263) 1")
	}
	return r, asked
}

// refuseExtra refuses options that the gateway does not have: not supported, there is only one trading session that
// never closes, one local book whose levels are deleted one by one, and a snapshot always
// replaces what waits for a slow client.
func refuseExtra(tag int, value []byte) *Refusal {
	switch {
	case tag == 336:
		return Refuse('9', CodeUnsupported, "TradingSessionID (336) %.20q: not supported, there is only one trading session", value)
	case tag == 546 && string(value) != "1":
		return Refuse('A', CodeUnsupported, "Scope (546) %.20q: only 1 (local)", value)
	case tag == 286:
		return Refuse('B', CodeUnsupported, "OpenCloseSettlFlag (286) %.20q: trading never opens or closes", value)
	case tag == 547 && string(value) != "N":
		return Refuse('C', CodeUnsupported, "MDImplicitDelete (547) %.20q: only N", value)
	case tag == 812:
		return Refuse(0, CodeUnsupported, "ApplQueueMax (812) %.20q: a limit of the queue is not supported", value)
	case tag == 815 && string(value) != "0":
		return Refuse(0, CodeUnsupported, "ApplQueueAction (815) %.20q: only 0", value)
	}
	return nil
}

func firstByte(value []byte) byte {
	if len(value) == 0 {
		return 0
	}
	return value[0]
}

func (r *MarketDataRequest) addSymbol(symbol []byte, set *market.Instruments, most int) *Refusal {
	in := set.Lookup(symbol)
	if in == nil {
		return RefuseSymbol('0', set, symbol)
	}
	if slices.Contains(r.Instruments, in) {
		return nil
	}
	if len(r.Instruments) >= most {
		return Refuse('2', CodeOverloaded, "more than %d subscriptions of a session", most)
	}
	r.Instruments = append(r.Instruments, in)
	return nil
}

// better compares two prices of a side, the better one first.
func better(side market.Side, a, b market.Price) int {
	if side == market.Buy {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}
