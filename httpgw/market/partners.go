package market

import (
	"math"
	"strconv"

	"blockdesk/catalog"
	"blockdesk/engine/marketdata"
	"blockdesk/feed/archive"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

const (
	PathCoinGecko     = PathMarket + "adapters/coingecko/"
	PathCoinMarketCap = PathMarket + "adapters/coinmarketcap/"
	PathDEXScreener   = PathMarket + "adapters/dexscreener/"
	PairSegment       = "{market_pair}"

	// MaxPartnerTrades is the largest limit of historical_trades.
	MaxPartnerTrades     = 1000
	defaultPartnerTrades = 100
	// MaxPartnerScan bounds the trades of an instrument that are searched for one
	// answer, and the trades of an answer. A search that would need more is
	// refused, not truncated; a limit of 0 means as many as this.
	MaxPartnerScan = 10_000
	// MaxPartnerEvents is the largest number of events of an answer.
	MaxPartnerEvents = 5000
	// MaxBlockEvents is the same of a single block, which cannot be asked for in parts.
	MaxBlockEvents = 50_000
	// secondsBelow separates the two units of a time parameter: as milliseconds it is
	// the year 1973, as seconds the year 5138.
	secondsBelow = 100_000_000_000
	// scanGrowth is the growth of the pages of a search, which begin small because most
	// searches end soon.
	scanGrowth = 8
)

// partnerPages serves the public formats of aggregators that take a query; package
// catalog has the documents without one. Errors have our own format, because aggregators
// do not parse them.
type partnerPages struct {
	market  *pages
	facts   func() *catalog.Facts
	history History      // nil: the trades come from views
	swaps   Swaps        // nil = none
	now     func() int64 // Unix nanoseconds
	books   []pageSlots  // by InstrumentID
	tickers map[string]*market.Instrument
}

// ticker returns the instrument whose ticker is the parameter name.
func (p *partnerPages) ticker(query []byte, name string) (*market.Instrument, *wire.Problem) {
	text, bad := textParam(query, name)
	if bad != nil {
		return nil, bad
	}
	if in := p.tickers[text]; in != nil {
		return in, nil
	}
	return nil, unknownNamed(name)
}

// textParam returns the value of a required parameter.
func textParam(query []byte, name string) (string, *wire.Problem) {
	raw, count := wire.Param(query, name)
	switch {
	case count == 0 || len(raw) == 0:
		return "", wire.MissingField(name)
	case count > 1:
		return "", wire.RepeatedField(wire.CodeInvalidField, name)
	}
	var buf [wire.MaxQueryValue]byte
	text, ok := wire.AppendUnescaped(buf[:0], raw)
	if !ok {
		return "", unknownNamed(name)
	}
	return string(text), nil
}

func unknownNamed(field string) *wire.Problem {
	bad := wire.UnknownSymbol()
	bad.Field = field
	return bad
}

// numberParam parses a whole number up to most; absent means byDefault.
func numberParam(query []byte, name string, byDefault, most uint64) (uint64, *wire.Problem) {
	text, count := wire.Param(query, name)
	switch {
	case count == 0:
		return byDefault, nil
	case count > 1:
		return 0, wire.RepeatedField(wire.CodeInvalidField, name)
	}
	var buf [wire.MaxQueryValue]byte
	text = wire.Decoded(buf[:], text)
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil || n > most || text[0] == '+' {
		return 0, &wire.Problem{
			Status: 400, Code: wire.CodeInvalidField, Field: name, Reason: "not_whole",
			Text: name + " must be a whole number, at most " + strconv.FormatUint(most, 10) + ".",
		}
	}
	return n, nil
}

// timeParam parses a time in Unix seconds or milliseconds, which its size tells apart, and
// returns the first or, for the end of a span, the last nanosecond of it.
func timeParam(query []byte, name string, byDefault int64, end bool) (int64, *wire.Problem) {
	if _, count := wire.Param(query, name); count == 0 {
		return byDefault, nil
	}
	n, bad := numberParam(query, name, 0, maxCursorMillis)
	if bad != nil {
		return 0, bad
	}
	unit := int64(nanosPerMilli)
	if n < secondsBelow {
		// Beyond 2262 nanoseconds overflow.
		n, unit = min(n, math.MaxInt64/nanosPerSecond-1), nanosPerSecond
	}
	at := min(int64(n)*unit, math.MaxInt64-unit)
	if end {
		at += unit - 1
	}
	return at, nil
}

// sideParam parses the parameter type; absent means 0, both sides.
func sideParam(query []byte) (market.Side, *wire.Problem) {
	text, count := wire.Param(query, "type")
	switch {
	case count > 1:
		return 0, wire.RepeatedField(wire.CodeInvalidField, "type")
	case count == 0:
		return 0, nil
	case string(text) == market.Buy.String():
		return market.Buy, nil
	case string(text) == market.Sell.String():
		return market.Sell, nil
	}
	return 0, &wire.Problem{
		Status: 400, Code: wire.CodeInvalidField, Field: "type", Reason: "unknown_side", Text: "type must be buy or sell.",
	}
}

// scan calls each with the trades of an instrument before one (0: all), newest first,
// until it returns false or no trade is left. It refuses to read more than MaxPartnerScan;
// field is the parameter to blame.
func (p *partnerPages) scan(in *market.Instrument, before market.TradeID, field string, each func(*marketdata.Trade) bool) *wire.Problem {
	return p.scanUpTo(MaxPartnerScan, in, before, field, each)
}

// scanUpTo is scan with another limit.
func (p *partnerPages) scanUpTo(most int, in *market.Instrument, before market.TradeID, field string, each func(*marketdata.Trade) bool) *wire.Problem {
	if p.history == nil {
		v := p.market.view(in.ID)
		for i := range v.Trades {
			if (before == 0 || v.Trades[i].ID < before) && !each(&v.Trades[i]) {
				break
			}
		}
		return nil
	}
	size := scanGrowth
	for read := 0; read < most; read += size {
		size = min(size*scanGrowth, archive.MaxTrades, most-read)
		trades, err := p.history.Trades(in.ID, before, size)
		if err != nil {
			return historyFailed(err)
		}
		for i := range trades {
			if !each(&trades[i]) {
				return nil
			}
		}
		if len(trades) < size {
			return nil
		}
		before = trades[len(trades)-1].ID
	}
	switch more, err := p.history.Trades(in.ID, before, 1); {
	case err != nil:
		return historyFailed(err)
	case len(more) == 0:
		return nil
	}
	return &wire.Problem{
		Status: 400, Code: wire.CodeInvalidField, Field: field, Reason: "too_far_back",
		Text: field + " is too far back for one answer. Page with /api/v1/market/trades instead.",
	}
}

// appendPartnerTrade appends a trade as CoinGecko and CoinMarketCap do. They differ in the
// names of the quote volume and of the time.
func appendPartnerTrade(dst []byte, in *market.Instrument, t *marketdata.Trade, quote, at string) []byte {
	dst = strconv.AppendUint(append(dst, `{"trade_id":`...), uint64(t.ID), 10)
	dst = in.AppendPrice(append(dst, `,"price":"`...), t.Price)
	dst = in.AppendQty(append(dst, `","base_volume":"`...), t.Qty)
	dst = append(append(dst, `","`...), quote...)
	dst = appendQuoteAmount(append(dst, `":"`...), in, t)
	dst = append(append(dst, `","`...), at...)
	dst = appendMillisOf(append(dst, `":`...), t.At)
	return append(append(append(dst, `,"type":"`...), t.Side.String()...), `"}`...)
}

// appendQuoteAmount appends price × qty exactly.
func appendQuoteAmount(dst []byte, in *market.Instrument, t *marketdata.Trade) []byte {
	return in.AppendTickLots(dst, market.Mul(uint64(t.Price), uint64(t.Qty)))
}

// appendMillisOf appends Unix nanoseconds as Unix milliseconds.
func appendMillisOf(dst []byte, at int64) []byte { return strconv.AppendInt(dst, at/nanosPerMilli, 10) }

// appendComma appends a comma before every item of a list but the first.
func appendComma(dst []byte, first bool) []byte {
	if first {
		return dst
	}
	return append(dst, ',')
}
