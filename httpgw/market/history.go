package market

import (
	"errors"
	"strconv"

	"blockdesk/engine/marketdata"
	"blockdesk/feed/archive"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// ErrLeaderOnly is returned by a follower's History for data from before the follower
// began. The request is redirected to the leader.
var ErrLeaderOnly = errors.New("only the leader has this history")

// History has trades and candles that are older than a view: *archive.Archive. It is safe
// for concurrent use and may read a disk.
type History interface {
	// Trades returns an instrument's trades before one (0: the newest), newest first.
	Trades(in market.InstrumentID, before market.TradeID, limit int) ([]marketdata.Trade, error)
	// Candles returns candles that open before a time in Unix nanoseconds (0: the
	// newest), oldest first.
	Candles(in market.InstrumentID, i archive.Interval, before int64, limit int) ([]archive.Candle, error)
	// Version changes whenever Trades or Candles may return something else.
	Version() uint64
	// Cursor returns the Seq of the last command whose trades are all stored.
	Cursor() uint64
}

const (
	// MaxCandles is the largest limit of klines and candles (docs/specification.md 8).
	MaxCandles = archive.MaxCandles

	defaultKlines, defaultCandles = 500, 120
	defaultInterval               = archive.Minute1 // our choice

	nanosPerMilli = 1_000_000
)

// candleSlots is the number of cached pages per instrument and interval: enough for the
// usual limits.
const candleSlots = 5

// candlePages caches pages of the newest candles by instrument and interval. Pages with a
// cursor are not cached, because there are too many.
type candlePages struct {
	history History // nil = none
	slots   [][archive.Day1]candleSlotPages
}

type candleSlotPages [candleSlots]wire.PageCache[candleSource]

// candleSource is the input of a page of the newest candles.
type candleSource struct {
	version uint64 // of the history
	limit   int
	list    string // the member that holds the candles
}

// serveKlines serves the candles of a symbol. The parameter is `interval`, as on other
// exchanges, or `timeframe`.
func (m *pages) serveKlines(query []byte) (*wire.Page, *wire.Problem) {
	in, bad := m.instrument(query)
	if bad != nil {
		return nil, bad
	}
	return m.serveIntervals(query, in, "klines", defaultKlines)
}

// serveCandles is serveKlines with another member name and an optional symbol, which
// defaults to the first instrument (our choice).
func (m *pages) serveCandles(query []byte) (*wire.Page, *wire.Problem) {
	in := m.set.Get(0)
	if _, count := wire.Param(query, "symbol"); count > 0 {
		var bad *wire.Problem
		if in, bad = m.instrument(query); bad != nil {
			return nil, bad
		}
	}
	return m.serveIntervals(query, in, "candles", defaultCandles)
}

func (m *pages) serveIntervals(query []byte, in *market.Instrument, list string, byDefault int) (*wire.Page, *wire.Problem) {
	interval, bad := intervalParam(query)
	if bad != nil {
		return nil, bad
	}
	limit, bad := wire.LimitParam(query, byDefault, MaxCandles)
	if bad != nil {
		return nil, bad
	}
	before, bad := wire.CursorParam(query, "before", maxCursorMillis)
	if bad != nil {
		return nil, bad
	}
	h := m.candles.history
	if h == nil {
		return wire.NewPage(appendCandles(nil, in, interval, list, nil, limit)), nil
	}
	if before > 0 {
		return candlesOf(h, in, interval, list, int64(before)*nanosPerMilli, limit)
	}
	slot := &m.candles.slots[in.ID][interval-1][limit%candleSlots]
	source := candleSource{h.Version(), limit, list}
	if p := slot.Get(source); p != nil {
		return p, nil
	}
	p, bad := candlesOf(h, in, interval, list, 0, limit)
	if bad != nil {
		return nil, bad
	}
	return slot.Put(source, p), nil
}

func candlesOf(h History, in *market.Instrument, i archive.Interval, list string, before int64, limit int) (*wire.Page, *wire.Problem) {
	candles, err := h.Candles(in.ID, i, before, limit)
	if err != nil {
		return nil, historyFailed(err)
	}
	return wire.NewPage(appendCandles(make([]byte, 0, 256+120*len(candles)), in, i, list, candles, limit)), nil
}

// serveTradesBefore serves trades from the archive. The archive follows the engine
// asynchronously. If it lags behind the view, its answer would have an invisible gap, so
// the request is refused.
func (m *pages) serveTradesBefore(in *market.Instrument, before market.TradeID, limit int) (*wire.Page, *wire.Problem) {
	v := m.view(in.ID)
	var trades []marketdata.Trade
	if h := m.candles.history; h != nil {
		behind, err := historyBehind(h, in.ID, v, before)
		switch {
		case err != nil:
			return nil, historyFailed(err)
		case behind:
			return nil, &wire.Problem{
				Status: 503, Code: wire.CodeOverloaded, Reason: "history_behind", RetryS: 1,
				Text: "The history does not have all earlier trades yet. Try again in a moment.",
			}
		}
		if trades, err = h.Trades(in.ID, before, limit); err != nil {
			return nil, historyFailed(err)
		}
	}
	dst := appendHead(make([]byte, 0, 256+180*len(trades)), in, v, v.TradesSeq)
	return wire.NewPage(appendTradeList(dst, in, trades, m.signaturesOf(in, trades), limit)), nil
}

// historyBehind reports whether h may lack trades that precede a trade of the view.
// Trades are stored in order, so none is missing if h has that trade itself.
func historyBehind(h History, in market.InstrumentID, v *marketdata.View, before market.TradeID) (bool, error) {
	if h.Cursor() >= seqBefore(v.Trades, before) {
		return false, nil
	}
	newest, err := h.Trades(in, 0, 1)
	return len(newest) == 0 || newest[0].ID < before, err
}

// seqBefore returns a Seq by which all trades before the trade with the id before have
// happened, from a view's trades, newest first.
func seqBefore(trades []marketdata.Trade, before market.TradeID) (seq uint64) {
	for i := range trades {
		if seq = trades[i].Seq; trades[i].ID < before {
			break
		}
	}
	return seq
}

func historyFailed(err error) *wire.Problem {
	if errors.Is(err, ErrLeaderOnly) {
		return &wire.Problem{
			Status: 503, Code: wire.CodeLeaderChanged, RetryS: wire.RetryLeaderS, RedirectToLeader: true,
			Text: "This follower does not have that history, and the leader is unknown. Try again in a moment.",
		}
	}
	return &wire.Problem{
		Status: 500, Code: wire.CodeInternal, Text: "The history could not be read. The log has details under the request_id.", Cause: err,
	}
}

// intervalParam parses the parameter interval or timeframe. It accepts both names, so
// that a client that confuses them does not get minutes instead of hours.
func intervalParam(query []byte) (archive.Interval, *wire.Problem) {
	name := "interval"
	text, count := wire.Param(query, name)
	if other, more := wire.Param(query, "timeframe"); more > 0 {
		name, text, count = "timeframe", other, count+more
	}
	switch {
	case count == 0:
		return defaultInterval, nil
	case count > 1:
		return 0, wire.RepeatedField(wire.CodeInvalidField, name)
	}
	var buf [wire.MaxQueryValue]byte
	if i, ok := archive.ParseInterval(wire.Decoded(buf[:], text)); ok {
		return i, nil
	}
	return 0, &wire.Problem{
		Status: 400, Code: wire.CodeInvalidField, Field: name, Reason: "unknown_interval",
		Text: name + " must be one of 1m, 5m, 15m, 1h, 4h and 1d.",
	}
}

// maxCursorMillis is the largest time in milliseconds that fits into Unix nanoseconds.
const maxCursorMillis = 1<<63/nanosPerMilli - 1

// appendCandles renders candles, oldest first. next_before is the cursor of the previous
// page, or null if there is none.
func appendCandles(dst []byte, in *market.Instrument, i archive.Interval, list string, candles []archive.Candle, limit int) []byte {
	dst = append(append(dst, `{"ok":true,"symbol":"`...), in.Symbol...)
	dst = append(append(dst, `","interval":"`...), i.String()...)
	dst = append(append(append(dst, `","source":"`...), in.Source.String()...), `","next_before":`...)
	if len(candles) == limit {
		dst = strconv.AppendInt(dst, candles[0].OpenAt/nanosPerMilli, 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(append(append(dst, `,"`...), list...), `":[`...)
	for n := range candles {
		c := &candles[n]
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, '['), c.OpenAt/nanosPerMilli, 10)
		for _, p := range [...]market.Price{c.Open, c.High, c.Low, c.Close} {
			dst = in.AppendPrice(append(dst, `,"`...), p)
			dst = append(dst, '"')
		}
		dst = in.AppendQty(append(dst, `,"`...), c.Volume)
		dst = in.AppendTickLots(append(dst, `","`...), c.Quote)
		dst = strconv.AppendUint(append(dst, `",`...), c.Trades, 10)
		dst = append(dst, ']')
	}
	return append(dst, "]}"...)
}
