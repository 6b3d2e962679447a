package market

import (
	"strconv"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/marketdata"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

const (
	// MaxDepth and MaxTrades are the largest limits of depth (docs/specification.md 8)
	// and of trades (our choice: all that a view has).
	MaxDepth  = marketdata.MaxDepth
	MaxTrades = marketdata.MaxTape

	defaultDepth  = 50
	defaultTrades = 50
)

// timeLayout has microseconds, rounded down, as on the WebSocket.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// appendTime appends Unix nanoseconds as a JSON string, or null for 0.
func appendTime(dst []byte, ns int64) []byte {
	if ns == 0 {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = time.Unix(0, ns).UTC().AppendFormat(dst, timeLayout)
	return append(dst, '"')
}

// appendHead appends the first members of every answer about one instrument.
func appendHead(dst []byte, in *market.Instrument, v *marketdata.View, seq uint64) []byte {
	dst = append(dst, `{"ok":true,"symbol":"`...)
	dst = append(dst, in.Symbol...)
	dst = append(dst, `","epoch":"e`...)
	dst = strconv.AppendUint(dst, v.Epoch, 10)
	dst = append(dst, `","seq":`...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, `,"engine_seq":`...)
	dst = strconv.AppendUint(dst, v.EngineSeq, 10)
	dst = append(dst, `,"ts":`...)
	return appendTime(dst, v.At)
}

func appendDepth(dst []byte, in *market.Instrument, v *marketdata.View, limit int) []byte {
	dst = appendHead(dst, in, v, v.DepthSeq)
	dst = append(dst, `,"bids":`...)
	dst = appendLevels(dst, in, v.Bids, limit)
	dst = append(dst, `,"asks":`...)
	dst = appendLevels(dst, in, v.Asks, limit)
	dst = append(dst, `,"source":"`...)
	dst = append(dst, in.Source.String()...)
	dst = append(dst, `","slot":`...)
	if v.Slot == 0 {
		return append(dst, `null}`...)
	}
	return append(strconv.AppendUint(dst, v.Slot, 10), '}')
}

func appendLevels(dst []byte, in *market.Instrument, levels []market.Level, limit int) []byte {
	dst = append(dst, '[')
	for i, level := range levels[:min(limit, len(levels))] {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `["`...)
		dst = in.AppendPrice(dst, level.Price)
		dst = append(dst, `","`...)
		dst = in.AppendQty(dst, level.Qty)
		dst = append(dst, `"]`...)
	}
	return append(dst, ']')
}

// appendTradeList appends the trades after the head of an answer to a request for limit
// trades. next_before is the cursor of the page of older trades, or null if there is none.
// signatures are those of their transactions in the same order, zeros if unknown; nil means
// not on a chain.
func appendTradeList(dst []byte, in *market.Instrument, trades []marketdata.Trade, signatures [][64]byte, limit int) []byte {
	dst = append(dst, `,"next_before":`...)
	if n := len(trades); n == limit {
		dst = strconv.AppendUint(dst, uint64(trades[n-1].ID), 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"trades":[`...)
	for i := range trades {
		t := &trades[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"trade_id":`...)
		dst = strconv.AppendUint(dst, uint64(t.ID), 10)
		dst = append(dst, `,"price":"`...)
		dst = in.AppendPrice(dst, t.Price)
		dst = append(dst, `","qty":"`...)
		dst = in.AppendQty(dst, t.Qty)
		dst = append(dst, `","side":"`...)
		dst = append(dst, t.Side.String()...)
		dst = append(dst, `","ts":`...)
		dst = appendTime(dst, t.At)
		dst = append(dst, `,"signature":`...)
		if signatures == nil || signatures[i] == ([64]byte{}) {
			dst = append(dst, "null"...)
		} else {
			dst = wire.AppendSignature(dst, &signatures[i])
		}
		dst = append(dst, `,"source":"`...)
		dst = append(dst, in.Source.String()...)
		dst = append(dst, `"}`...)
	}
	return append(dst, "]}"...)
}

// appendTicker renders the ticker. A price that does not exist (no trade, an empty side)
// is null; a volume without trades is zero.
func appendTicker(dst []byte, in *market.Instrument, v *marketdata.View, _ int) []byte {
	dst = appendHead(dst, in, v, v.TickerSeq)
	t := &v.Ticker
	dst = appendPrice(dst, `,"last":`, in, t.Last)
	dst = appendQty(dst, `,"last_qty":`, in, t.LastQty, t.Last == 0)
	dst = append(dst, `,"last_ts":`...)
	dst = appendTime(dst, t.LastAt)

	bid, ask := best(v.Bids), best(v.Asks)
	dst = appendPrice(dst, `,"bid":`, in, bid.Price)
	dst = appendQty(dst, `,"bid_qty":`, in, bid.Qty, bid.Price == 0)
	dst = appendPrice(dst, `,"ask":`, in, ask.Price)
	dst = appendQty(dst, `,"ask_qty":`, in, ask.Qty, ask.Price == 0)
	dst = appendMid(dst, in, bid.Price, ask.Price)

	dst = appendPrice(dst, `,"open_24h":`, in, t.Open24h)
	dst = appendPrice(dst, `,"high_24h":`, in, t.High24h)
	dst = appendPrice(dst, `,"low_24h":`, in, t.Low24h)
	dst = appendQty(dst, `,"volume_24h":`, in, t.Volume24h, false)
	dst = append(dst, `,"quote_volume_24h":`...)
	dst = append(in.AppendTickLots(append(dst, '"'), t.QuoteVolume24h), '"')
	dst = append(dst, `,"trades_24h":`...)
	dst = strconv.AppendUint(dst, t.Trades24h, 10)
	dst = append(dst, `,"source":"`...)
	dst = append(dst, in.Source.String()...)
	dst = append(dst, `","status":"`...)
	dst = append(dst, statusWord(v.Status)...)
	dst = append(dst, '"')
	if v.Status == engine.StatusAuction {
		dst = appendAuction(dst, in, &v.Auction)
	}
	return append(dst, '}')
}

// appendAuction appends the member auction of a ticker.
func appendAuction(dst []byte, in *market.Instrument, a *marketdata.Auction) []byte {
	dst = appendPrice(append(dst, `,"auction":{`...), `"indicative_price":`, in, a.Price)
	dst = appendQty(dst, `,"indicative_volume":`, in, a.Volume, false)
	dst = appendQty(dst, `,"imbalance":`, in, max(a.Imbalance, -a.Imbalance), false)
	dst = append(append(dst, `,"imbalance_side":`...), a.ImbalanceSide()...)
	dst = append(dst, `,"ends_at":`...)
	dst = appendTime(dst, a.Until)
	dst = append(dst, `,"uncrossing":`...)
	return append(strconv.AppendBool(dst, a.Uncrossing), '}')
}

func best(levels []market.Level) market.Level {
	if len(levels) == 0 {
		return market.Level{}
	}
	return levels[0]
}

func appendPrice(dst []byte, name string, in *market.Instrument, p market.Price) []byte {
	dst = append(dst, name...)
	if p == 0 {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = in.AppendPrice(dst, p)
	return append(dst, '"')
}

func appendQty(dst []byte, name string, in *market.Instrument, q market.Qty, absent bool) []byte {
	dst = append(dst, name...)
	if absent {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	dst = in.AppendQty(dst, q)
	return append(dst, '"')
}

// appendMid appends mid and spread.
func appendMid(dst []byte, in *market.Instrument, bid, ask market.Price) []byte {
	if bid == 0 || ask == 0 {
		return append(dst, `,"mid":null,"spread":null`...)
	}
	dst = append(dst, `,"mid":"`...)
	dst = appendMiddle(dst, in, bid, ask)
	dst = append(dst, `","spread":"`...)
	dst = in.AppendPrice(dst, ask-bid)
	return append(dst, '"')
}

// appendMiddle appends the middle of two prices. It always has one more decimal than a
// price, so that it is exact: (bid + ask) × 5 tenths.
func appendMiddle(dst []byte, in *market.Instrument, bid, ask market.Price) []byte {
	return market.Mul(uint64(bid+ask)*5, in.Tick).AppendDecimal(dst, int(in.PriceDecimals)+1)
}

func appendSymbols(dst []byte, set *market.Instruments, status []uint8) []byte {
	dst = append(dst, `{"ok":true,"symbols":[`...)
	for i := range set.Len() {
		in := set.Get(market.InstrumentID(i))
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"symbol":"`...)
		dst = append(dst, in.Symbol...)
		dst = append(dst, `","base":"`...)
		dst = append(dst, in.Base...)
		dst = append(dst, `","quote":"`...)
		dst = append(dst, in.Quote...)
		dst = append(dst, `","price_decimals":`...)
		dst = strconv.AppendUint(dst, uint64(in.PriceDecimals), 10)
		dst = append(dst, `,"qty_decimals":`...)
		dst = strconv.AppendUint(dst, uint64(in.QtyDecimals), 10)
		dst = appendPrice(dst, `,"tick_size":`, in, 1)
		dst = appendQty(dst, `,"lot_size":`, in, 1, false)
		dst = appendQty(dst, `,"min_qty":`, in, in.MinQty, false)
		dst = appendQty(dst, `,"max_qty":`, in, in.MaxQty, false)
		dst = appendPrice(dst, `,"max_price":`, in, in.MaxPrice)
		dst = append(dst, `,"book_source":"`...)
		dst = append(dst, in.Source.String()...)
		dst = append(dst, `","status":"`...)
		dst = append(dst, statusWord(status[i])...)
		dst = append(dst, `"}`...)
	}
	return append(dst, "]}"...)
}

func statusWord(status uint8) string {
	switch status {
	case engine.StatusHalted:
		return "halted"
	case engine.StatusAuction:
		return "auction"
	case StatusUnknown:
		return "unknown"
	default:
		return "trading"
	}
}
