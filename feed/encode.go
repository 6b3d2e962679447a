package feed

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/orders"
	"blockdesk/market"
)

// kind is a message type of an instrument: an order book of one depth, the trades, the
// ticker, the orders, the desk's tickets or its sales.
type kind uint8

const (
	l2Depth10 kind = iota
	l2Depth25
	l2Depth50
	l2Depth100
	trades
	ticker
	l3 // orders; a position is that of the order books
	tickets
	sales
	numKinds // their number

	// marketKinds is the number of the kinds before it, which an marketdata.View contains. The
	// others are the desk's, and a deskBook contains them.
	marketKinds = tickets
	deskKinds   = numKinds - marketKinds
)

// depths are the numbers of levels a side of the four l2 kinds.
var depths = [trades]int{10, 25, 50, 100}

// defaultDepth is the depth of a subscription without one.
const defaultDepth = l2Depth50

// depthKind returns the kind of an order book of that depth.
func depthKind(depth int) (kind, bool) {
	for k, d := range depths {
		if d == depth {
			return kind(k), true
		}
	}
	return 0, false
}

// channel returns k's channel in JSON.
func (k kind) channel() string {
	switch k {
	case trades:
		return "trades"
	case ticker:
		return "ticker"
	case tickets:
		return "tickets"
	case sales:
		return "rfq_trades"
	case l3:
		return "l3"
	default:
		return "l2"
	}
}

// sameChannel reports whether k and other are of one channel, as the depths of l2 are.
func (k kind) sameChannel(other kind) bool { return k == other || k < trades && other < trades }

// seq returns the sequence number of the market kind k in v. All depths and l3 share one.
func (k kind) seq(v *marketdata.View) uint64 {
	switch k {
	case trades:
		return v.TradesSeq
	case ticker:
		return v.TickerSeq
	default:
		return v.DepthSeq
	}
}

// resumes reports whether a client may resume k: its sequence numbers are the same on every
// machine, and its updates are kept.
func (k kind) resumes() bool { return k < ticker || k == l3 }

// position is a topic's position, as its messages name it.
type position struct {
	epoch, seq uint64
	engineSeq  uint64 // last command that may have contributed
	at         int64  // time of that command, Unix ns
}

// position returns the position of the market kind k in v.
func (k kind) position(v *marketdata.View) position {
	return position{epoch: v.Epoch, seq: k.seq(v), engineSeq: v.EngineSeq, at: v.At}
}

const (
	headRoom   = 10 // longest header of an unmasked frame, in bytes
	finText    = 0x81
	finClose   = 0x88
	finPong    = 0x8a
	bookLevels = 10 // levels a side in the checksum
)

// encoder encodes messages as whole WebSocket frames without allocation. The result of a
// method is valid until the next call. The zero value is ready. It is not safe for
// concurrent use.
type encoder struct {
	buf     []byte
	deltas  []marketdata.LevelChange
	digits  []byte
	changed []orders.Change
	books   []*bookText // by instrument; nil = not encoded yet
	// second and clock cache the text of a timestamp up to its fraction.
	second int64
	clock  []byte
}

// bookText is the cached text of one instrument's last encoded book: its levels as in
// snapshots, and its first levels as in the checksum.
type bookText struct {
	bids, asks           sideText
	bidDigits, askDigits sideText
}

func (e *encoder) bookText(in *market.Instrument) *bookText {
	for len(e.books) <= int(in.ID) {
		e.books = append(e.books, nil)
	}
	if e.books[in.ID] == nil {
		e.books[in.ID] = &bookText{}
	}
	return e.books[in.ID]
}

func (e *encoder) begin() {
	var header [headRoom]byte
	e.buf = append(e.buf[:0], header[:]...)
}

// end writes the frame's header before the payload and returns the frame.
func (e *encoder) end(opcode byte) []byte {
	n := len(e.buf) - headRoom
	start := headRoom - headerLen(n)
	putHeader(e.buf[start:], opcode, n)
	return e.buf[start:]
}

func headerLen(payload int) int {
	switch {
	case payload < 126:
		return 2
	case payload < 1<<16:
		return 4
	default:
		return headRoom
	}
}

func putHeader(dst []byte, opcode byte, payload int) {
	dst[0] = opcode
	switch headerLen(payload) {
	case 2:
		dst[1] = byte(payload)
	case 4:
		dst[1] = 126
		binary.BigEndian.PutUint16(dst[2:], uint16(payload))
	default:
		dst[1] = 127
		binary.BigEndian.PutUint64(dst[2:], uint64(payload))
	}
}

func (e *encoder) text(s string)   { e.buf = append(e.buf, s...) }
func (e *encoder) number(n uint64) { e.buf = strconv.AppendUint(e.buf, n, 10) }
func (e *encoder) bool(b bool)     { e.buf = strconv.AppendBool(e.buf, b) }

// ts appends Unix nanoseconds as a JSON string, RFC 3339 in UTC with
// microseconds, rounded down.
func (e *encoder) ts(at int64) {
	second, micro := at/1e9, at%1e9/1e3
	if micro < 0 {
		second, micro = second-1, micro+1e6
	}
	if second != e.second || len(e.clock) == 0 {
		e.clock = time.Unix(second, 0).UTC().AppendFormat(append(e.clock[:0], '"'), "2006-01-02T15:04:05.")
		e.second = second
	}
	e.buf = append(e.buf, e.clock...)
	for unit := int64(1e5); unit > 0; unit /= 10 {
		e.buf = append(e.buf, byte('0'+micro/unit%10))
	}
	e.buf = append(e.buf, `Z"`...)
}

// open begins a market-data message, up to and including its ts.
func (e *encoder) open(in *market.Instrument, k kind, form string, p position, prevSeq uint64) {
	e.begin()
	e.text(`{"channel":"`)
	e.text(k.channel())
	e.text(`","type":"`)
	e.text(form)
	e.text(`","symbol":"`)
	e.text(in.Symbol)
	e.text(`","epoch":"e`)
	e.number(p.epoch)
	e.text(`","seq":`)
	e.number(p.seq)
	if k != ticker {
		e.text(`,"prev_seq":`)
		e.number(prevSeq)
	}
	e.text(`,"engine_seq":`)
	e.number(p.engineSeq)
	e.text(`,"ts":`)
	e.ts(p.at)
}

// snapshot returns the snapshot of a market kind.
func (e *encoder) snapshot(in *market.Instrument, v *marketdata.View, k kind) []byte {
	switch k {
	case trades:
		return e.tradesSnapshot(in, v)
	case ticker:
		return e.ticker(in, v, "snapshot")
	case l3:
		return e.l3Snapshot(in, v)
	}
	book := e.bookText(in)
	book.bids.set(in, v.Bids, -1, pairFormat)
	book.asks.set(in, v.Asks, +1, pairFormat)
	e.open(in, k, "snapshot", k.position(v), 0)
	e.text(`,"bids":[`)
	e.pairs(book.bids.firstLevels(depths[k]))
	e.text(`],"asks":[`)
	e.pairs(book.asks.firstLevels(depths[k]))
	e.text(`],"checksum":`)
	e.number(uint64(e.checksum(in, v)))
	e.text(`}`)
	return e.end(finText)
}

// pairs appends levels without the last comma.
func (e *encoder) pairs(text []byte) {
	if len(text) > 0 {
		e.buf = append(e.buf, text[:len(text)-1]...)
	}
}

// l2Update returns the update from prev to next of the first levels. sum is next's
// checksum.
func (e *encoder) l2Update(in *market.Instrument, prev, next *marketdata.View, k kind, sum uint32) []byte {
	depth := depths[k]
	e.open(in, k, "update", k.position(next), k.seq(prev))
	e.text(`,"bids":`)
	e.deltas = marketdata.AppendDepthDelta(e.deltas[:0], prev.Bids, next.Bids, depth)
	e.changes(in)
	e.text(`,"asks":`)
	e.deltas = marketdata.AppendDepthDelta(e.deltas[:0], prev.Asks, next.Asks, depth)
	e.changes(in)
	e.text(`,"checksum":`)
	e.number(uint64(sum))
	e.text(`}`)
	return e.end(finText)
}

func (e *encoder) changes(in *market.Instrument) {
	e.text(`[`)
	for i, l := range e.deltas {
		if i > 0 {
			e.text(`,`)
		}
		e.text(`["`)
		e.buf = in.AppendPrice(e.buf, l.Price)
		e.text(`","`)
		if l.Qty == 0 {
			e.text(`0`)
		} else {
			e.buf = in.AppendQty(e.buf, l.Qty)
		}
		e.text(`"]`)
	}
	e.text(`]`)
}

// checksum returns the checksum that Kraken uses: CRC-32 (IEEE) over the first ten
// asks and then the first ten bids, best first, each as the digits of its price and
// quantity without the point and leading zeros.
func (e *encoder) checksum(in *market.Instrument, v *marketdata.View) uint32 {
	book := e.bookText(in)
	book.askDigits.set(in, v.Asks[:min(bookLevels, len(v.Asks))], +1, digitFormat)
	book.bidDigits.set(in, v.Bids[:min(bookLevels, len(v.Bids))], -1, digitFormat)
	e.digits = append(append(e.digits[:0], book.askDigits.text...), book.bidDigits.text...)
	return crc32.ChecksumIEEE(e.digits)
}

// tradesUpdate returns the update with new trades, oldest first.
func (e *encoder) tradesUpdate(in *market.Instrument, prev, next *marketdata.View, fresh []marketdata.Trade) []byte {
	e.open(in, trades, "update", trades.position(next), prev.TradesSeq)
	e.text(`,"trades":[`)
	for i := range fresh {
		e.trade(in, &fresh[i], i > 0)
	}
	e.text(`]}`)
	return e.end(finText)
}

// tradesSnapshot returns the snapshot of the last trades, oldest first.
func (e *encoder) tradesSnapshot(in *market.Instrument, v *marketdata.View) []byte {
	e.open(in, trades, "snapshot", trades.position(v), 0)
	e.text(`,"trades":[`)
	for i := len(v.Trades) - 1; i >= 0; i-- {
		e.trade(in, &v.Trades[i], i < len(v.Trades)-1)
	}
	e.text(`]}`)
	return e.end(finText)
}

func (e *encoder) trade(in *market.Instrument, t *marketdata.Trade, more bool) {
	if more {
		e.text(`,`)
	}
	e.text(`{"trade_id":`)
	e.number(uint64(t.ID))
	e.text(`,"price":"`)
	e.buf = in.AppendPrice(e.buf, t.Price)
	e.text(`","qty":"`)
	e.buf = in.AppendQty(e.buf, t.Qty)
	e.text(`","side":"`)
	e.text(t.Side.String())
	e.text(`","ts":`)
	e.ts(t.At)
	e.text(`}`)
}

// ticker returns the ticker of v. A price that does not exist is null.
func (e *encoder) ticker(in *market.Instrument, v *marketdata.View, form string) []byte {
	t := &v.Ticker
	e.open(in, ticker, form, ticker.position(v), 0)
	e.price(in, `,"last":`, t.Last)
	e.qty(in, `,"last_qty":`, t.LastQty, t.Last != 0)
	e.text(`,"last_ts":`)
	if t.Last == 0 {
		e.text(`null`)
	} else {
		e.ts(t.LastAt)
	}
	var bid, ask market.Level
	if len(v.Bids) > 0 {
		bid = v.Bids[0]
	}
	if len(v.Asks) > 0 {
		ask = v.Asks[0]
	}
	e.price(in, `,"bid":`, bid.Price)
	e.qty(in, `,"bid_qty":`, bid.Qty, bid.Price != 0)
	e.price(in, `,"ask":`, ask.Price)
	e.qty(in, `,"ask_qty":`, ask.Qty, ask.Price != 0)
	e.mid(in, bid.Price, ask.Price)
	e.price(in, `,"open_24h":`, t.Open24h)
	e.price(in, `,"high_24h":`, t.High24h)
	e.price(in, `,"low_24h":`, t.Low24h)
	e.qty(in, `,"volume_24h":`, t.Volume24h, true)
	e.text(`,"quote_volume_24h":"`)
	e.buf = in.AppendTickLots(e.buf, t.QuoteVolume24h)
	e.text(`","trades_24h":`)
	e.number(t.Trades24h)
	switch v.Status {
	case engine.StatusHalted:
		e.text(`,"status":"halted"}`)
	case engine.StatusAuction:
		e.text(`,"status":"auction"`)
		e.auction(in, &v.Auction)
		e.text(`}`)
	default:
		e.text(`,"status":"trading"}`)
	}
	return e.end(finText)
}

// auction writes the member auction of a ticker.
func (e *encoder) auction(in *market.Instrument, a *marketdata.Auction) {
	e.text(`,"auction":{`)
	e.price(in, `"indicative_price":`, a.Price)
	e.qty(in, `,"indicative_volume":`, a.Volume, true)
	e.qty(in, `,"imbalance":`, max(a.Imbalance, -a.Imbalance), true)
	e.text(`,"imbalance_side":`)
	e.text(a.ImbalanceSide())
	e.text(`,"ends_at":`)
	if a.Until == 0 {
		e.text(`null`)
	} else {
		e.ts(a.Until)
	}
	e.text(`,"uncrossing":`)
	e.buf = strconv.AppendBool(e.buf, a.Uncrossing)
	e.text(`}`)
}

func (e *encoder) price(in *market.Instrument, name string, p market.Price) {
	e.text(name)
	if p == 0 {
		e.text(`null`)
		return
	}
	e.text(`"`)
	e.buf = in.AppendPrice(e.buf, p)
	e.text(`"`)
}

func (e *encoder) qty(in *market.Instrument, name string, q market.Qty, known bool) {
	e.text(name)
	if !known {
		e.text(`null`)
		return
	}
	e.text(`"`)
	e.buf = in.AppendQty(e.buf, q)
	e.text(`"`)
}

// mid appends the mid price, with one digit more than a price so that it is exact, and
// the spread.
func (e *encoder) mid(in *market.Instrument, bid, ask market.Price) {
	if bid == 0 || ask == 0 {
		e.text(`,"mid":null,"spread":null`)
		return
	}
	e.text(`,"mid":"`)
	e.buf = market.Mul(uint64(bid+ask)*5, in.Tick).AppendDecimal(e.buf, int(in.PriceDecimals)+1)
	e.text(`","spread":"`)
	e.buf = in.AppendPrice(e.buf, ask-bid)
	e.text(`"`)
}

// l3Snapshot returns the snapshot of v's orders.
func (e *encoder) l3Snapshot(in *market.Instrument, v *marketdata.View) []byte {
	e.open(in, l3, "snapshot", l3.position(v), 0)
	e.text(`,"bids":[`)
	e.orders(in, v.Orders.Bids)
	e.text(`],"asks":[`)
	e.orders(in, v.Orders.Asks)
	e.text(`],"checksum":`)
	e.number(uint64(e.orderChecksum(in, v.Orders)))
	e.text(`}`)
	return e.end(finText)
}

func (e *encoder) orders(in *market.Instrument, list []orders.Order) {
	for i := range list {
		e.order(in, &list[i], i > 0, list[i].Qty)
	}
}

// order appends an order; a quantity of 0 deletes it.
func (e *encoder) order(in *market.Instrument, o *orders.Order, more bool, qty market.Qty) {
	if more {
		e.text(`,`)
	}
	e.text(`["`)
	e.number(uint64(o.ID))
	e.text(`","`)
	e.buf = in.AppendPrice(e.buf, o.Price)
	e.text(`","`)
	if qty == 0 {
		e.text(`0`)
	} else {
		e.buf = in.AppendQty(e.buf, qty)
	}
	e.text(`"]`)
}

// l3Update returns the update from prev to next; nil if one of them has no orders.
func (e *encoder) l3Update(in *market.Instrument, prev, next *marketdata.View) []byte {
	if prev.Orders == nil || next.Orders == nil {
		return nil
	}
	e.open(in, l3, "update", l3.position(next), prev.DepthSeq)
	e.text(`,"bids":[`)
	e.orderChanges(in, market.Buy, prev.Orders.Bids, next.Orders.Bids)
	e.text(`],"asks":[`)
	e.orderChanges(in, market.Sell, prev.Orders.Asks, next.Orders.Asks)
	e.text(`],"checksum":`)
	e.number(uint64(e.orderChecksum(in, next.Orders)))
	e.text(`}`)
	return e.end(finText)
}

func (e *encoder) orderChanges(in *market.Instrument, side market.Side, prev, next []orders.Order) {
	e.changed = orders.AppendChanges(e.changed[:0], side, prev, next)
	for i := range e.changed {
		c := &e.changed[i]
		qty := c.Qty
		if c.Action == orders.Delete {
			qty = 0
		}
		e.order(in, &c.Order, i > 0, qty)
	}
}

// orderChecksum returns the CRC-32 (IEEE) over the first ten asks and then the first ten bids,
// each as its id and the digits of its price and quantity without the point and leading zeros.
func (e *encoder) orderChecksum(in *market.Instrument, s *orders.Sides) uint32 {
	e.digits = e.digits[:0]
	for _, list := range [...][]orders.Order{s.Asks, s.Bids} {
		for i := range list[:min(bookLevels, len(list))] {
			o := &list[i]
			e.digits = market.Mul(uint64(o.ID), 1).AppendDecimal(e.digits, 0)
			e.digits = appendLevel(e.digits, in, market.Level{Price: o.Price, Qty: o.Qty}, digitFormat)
		}
	}
	return crc32.ChecksumIEEE(e.digits)
}

// records appends the records under the name of their channel.
func (e *encoder) records(k kind, list []deskRecord) {
	e.text(`,"`)
	e.text(k.channel())
	e.text(`":[`)
	for i := range list {
		if i > 0 {
			e.text(`,`)
		}
		e.buf = append(e.buf, list[i].text...)
	}
	e.text(`]`)
}
