package market

import (
	"math"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// geckoBook serves CoinGecko's orderbook. depth counts both sides; 0 or absent means
// maxPartnerDepth.
func (p *partnerPages) geckoBook(query []byte) (*wire.Page, *wire.Problem) {
	in, bad := p.ticker(query, "ticker_id")
	if bad != nil {
		return nil, bad
	}
	depth, bad := numberParam(query, "depth", 0, maxPartnerDepth)
	if bad != nil {
		return nil, bad
	}
	if depth == 0 {
		depth = maxPartnerDepth
	}
	v := p.market.view(in.ID)
	return p.books[in.ID].get(in, v, v.DepthSeq, int(depth+1)/2, appendGeckoBook), nil
}

func appendGeckoBook(dst []byte, in *market.Instrument, v *engine.View, limit int) []byte {
	dst = append(append(dst, `{"ticker_id":"`...), catalog.Ticker(in.Symbol)...)
	dst = appendMillisOf(append(dst, `","timestamp":`...), v.At)
	dst = appendLevels(append(dst, `,"bids":`...), in, v.Bids, limit)
	return append(appendLevels(append(dst, `,"asks":`...), in, v.Asks, limit), '}')
}

// geckoQuery has the parameters of historical_trades.
type geckoQuery struct {
	in       *market.Instrument
	side     market.Side // 0 = both
	limit    int         // per side
	from, to int64       // Unix nanoseconds
}

// geckoTrades serves CoinGecko's historical_trades: the newest trades of a time span, at
// most limit per side. start_time and end_time are Unix milliseconds, as trade_timestamp
// is (our choice).
func (p *partnerPages) geckoTrades(query []byte) (*wire.Page, *wire.Problem) {
	q, bad := p.geckoQuery(query)
	if bad != nil {
		return nil, bad
	}
	var sides [market.Sell + 1][]engine.Trade
	full := func(s market.Side) bool { return q.side == s.Opposite() || len(sides[s]) == q.limit }
	// end_time makes a search long, because the newest trades are read first.
	bad = p.scan(q.in, "end_time", func(t *engine.Trade) bool {
		if t.At < q.from {
			return false
		}
		if t.At <= q.to && !full(t.Side) {
			sides[t.Side] = append(sides[t.Side], *t)
		}
		return !full(market.Buy) || !full(market.Sell)
	})
	if bad != nil {
		return nil, bad
	}
	dst := []byte{'{'}
	for _, side := range []market.Side{market.Buy, market.Sell} {
		if q.side != 0 && q.side != side {
			continue
		}
		dst = append(append(append(appendComma(dst, len(dst) == 1), '"'), side.String()...), `":[`...)
		for i := range sides[side] {
			dst = appendPartnerTrade(appendComma(dst, i == 0), q.in, &sides[side][i], "target_volume", "trade_timestamp")
		}
		dst = append(dst, ']')
	}
	return wire.NewPage(append(dst, '}')), nil
}

func (p *partnerPages) geckoQuery(query []byte) (q geckoQuery, bad *wire.Problem) {
	if q.in, bad = p.ticker(query, "ticker_id"); bad != nil {
		return q, bad
	}
	switch text, count := wire.Param(query, "type"); {
	case count > 1:
		return q, wire.RepeatedField(wire.CodeInvalidField, "type")
	case count == 0:
	case string(text) == market.Buy.String():
		q.side = market.Buy
	case string(text) == market.Sell.String():
		q.side = market.Sell
	default:
		return q, &wire.Problem{
			Status: 400, Code: wire.CodeInvalidField, Field: "type", Reason: "unknown_side", Text: "type must be buy or sell.",
		}
	}
	if q.limit, bad = wire.LimitParam(query, defaultPartnerTrades, MaxPartnerTrades); bad != nil {
		return q, bad
	}
	from, bad := numberParam(query, "start_time", 0, maxCursorMillis)
	if bad != nil {
		return q, bad
	}
	to, bad := numberParam(query, "end_time", maxCursorMillis, maxCursorMillis)
	q.from = int64(from) * nanosPerMilli
	// Include the whole last millisecond.
	q.to = min(int64(to)*nanosPerMilli, math.MaxInt64-nanosPerMilli) + nanosPerMilli - 1
	return q, bad
}
