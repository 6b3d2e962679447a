package market

import (
	"errors"
	"strconv"

	"blockdesk/engine"
	"blockdesk/feed/archive"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// ErrLeaderOnly is what a follower's History says of a past that it has not seen:
// the request is sent to the leader.
var ErrLeaderOnly = errors.New("the leader has it")

// History is what outlives the views: *archive.Archive. Any goroutine may call
// it; it may read a disk.
type History interface {
	// Trades returns an instrument's trades before one (0: the newest), newest
	// first.
	Trades(in market.InstrumentID, before market.TradeID, limit int) ([]engine.Trade, error)
	// Candles returns those that begin before a time in Unix nanoseconds (0: the
	// newest), oldest first.
	Candles(in market.InstrumentID, i archive.Interval, before int64, limit int) ([]archive.Candle, error)
	// Version changes with what either returns.
	Version() uint64
	// Cursor is the Seq up to whose end Trades has everything.
	Cursor() uint64
}

const (
	// MaxCandles is the largest limit of klines and candles (spec, 4.2).
	MaxCandles = archive.MaxCandles
	// defaultKlines and defaultCandles are the limits of a request without one;
	// the description shows 120 with candles.
	defaultKlines, defaultCandles = 500, 120
	// defaultInterval is that of a request without one (our choice).
	defaultInterval = archive.Minute1

	nanosPerMilli = 1_000_000
)

// candleSlots is the number of pages that are kept an instrument and interval:
// the limits people ask for.
const candleSlots = 5

// candlePages keeps pages of newest candles by instrument and interval; pages
// with a cursor are not kept, there is no end to them.
type candlePages struct {
	history History // nil: nothing is kept
	slots   [][archive.Day1]candleSlotPages
}

type candleSlotPages [candleSlots]wire.PageCache[candleSource]

// candleSource is what a page of newest candles depends on.
type candleSource struct {
	version uint64 // of the history
	limit   int
	list    string // the member that holds the candles
}

// serveKlines answers with the candles of one symbol, of one minute where neither
// `interval`, as on other exchanges, nor `timeframe` is there.
func (m *pages) serveKlines(query []byte) (*wire.Page, *wire.Problem) {
	in, bad := m.instrument(query)
	if bad != nil {
		return nil, bad
	}
	return m.serveIntervals(query, in, "klines", defaultKlines)
}

// serveCandles is serveKlines in the description's other words, and with a symbol
// that may be absent: the first instrument then (our choice).
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
	before, bad := cursorParam(query, "before", maxCursorMillis)
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

// serveTradesBefore answers from the archive: trades older than those a view
// holds. The archive follows on its own; where it is behind what the view has shown
// its answer would have a hole that nobody could see, so it is refused.
func (m *pages) serveTradesBefore(in *market.Instrument, before market.TradeID, limit int) (*wire.Page, *wire.Problem) {
	v := m.view(in.ID)
	var trades []engine.Trade
	if h := m.candles.history; h != nil {
		behind, err := historyBehind(h, in.ID, v, before)
		switch {
		case err != nil:
			return nil, historyFailed(err)
		case behind:
			return nil, &wire.Problem{
				Status: 503, Code: wire.CodeOverloaded, Reason: "history_behind", RetryS: 1,
				Text: "The history has not taken in all trades before this one yet.",
			}
		}
		if trades, err = h.Trades(in.ID, before, limit); err != nil {
			return nil, historyFailed(err)
		}
	}
	dst := appendHead(make([]byte, 0, 256+180*len(trades)), in, v, v.TradesSeq)
	return wire.NewPage(appendTradeList(dst, in, trades, m.signaturesOf(in, trades))), nil
}

// historyBehind reports whether h may lack trades before one that a view has shown.
// It takes them in their order, so it lacks none where it has that one itself.
func historyBehind(h History, in market.InstrumentID, v *engine.View, before market.TradeID) (bool, error) {
	if h.Cursor() >= seqBefore(v.Trades, before) {
		return false, nil
	}
	newest, err := h.Trades(in, 0, 1)
	return len(newest) == 0 || newest[0].ID < before, err
}

// seqBefore returns the Seq by whose end every trade before the one with the id
// before has happened, as far as a view's trades tell, newest first.
func seqBefore(trades []engine.Trade, before market.TradeID) (seq uint64) {
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
			Text: "This follower has not seen that past, and no leader is known. Try again in a moment.",
		}
	}
	return &wire.Problem{
		Status: 500, Code: wire.CodeInternal, Text: "The history could not be read. The request_id names the log's entry.", Cause: err,
	}
}

// intervalParam reads the parameter interval or timeframe, whichever there is: a
// client that takes one name for the other must not get minutes for hours.
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
	if i, ok := archive.ParseInterval(text); ok {
		return i, nil
	}
	return 0, &wire.Problem{
		Status: 400, Code: wire.CodeInvalidField, Field: name, Reason: "unknown_interval",
		Text: name + " must be one of 1m, 5m, 15m, 1h, 4h and 1d.",
	}
}

// maxCursorMillis keeps a time in milliseconds within Unix nanoseconds.
const maxCursorMillis = 1<<63/nanosPerMilli - 1

// cursorParam reads a whole number from 1 to most; absent means 0.
func cursorParam(query []byte, name string, most uint64) (uint64, *wire.Problem) {
	text, count := wire.Param(query, name)
	switch {
	case count == 0:
		return 0, nil
	case count > 1:
		return 0, wire.RepeatedField(wire.CodeInvalidField, name)
	}
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil || n < 1 || n > most || text[0] == '+' {
		return 0, &wire.Problem{
			Status: 400, Code: wire.CodeInvalidField, Field: name, Reason: "not_a_cursor",
			Text: name + " must be a whole number, as an answer before has given it.",
		}
	}
	return n, nil
}

// appendCandles renders candles, oldest first. next_before leads to the ones
// before them; null where there are none.
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
