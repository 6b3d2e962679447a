package market

import (
	"math"

	"blockdesk/catalog"
	"blockdesk/engine/marketdata"
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
	depth, bad := depthParam(query)
	if bad != nil {
		return nil, bad
	}
	v := p.market.view(in.ID)
	return p.books[in.ID].get(in, v, v.DepthSeq, depth, appendGeckoBook), nil
}

func appendGeckoBook(dst []byte, in *market.Instrument, v *marketdata.View, limit int) []byte {
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

// depthParam returns the levels per side. The parameter depth counts both sides; 0 or
// absent means all, and so does more than there is.
func depthParam(query []byte) (int, *wire.Problem) {
	depth, bad := numberParam(query, "depth", 0, math.MaxInt32)
	if bad != nil || depth == 0 {
		return MaxDepth, bad
	}
	return min(int(depth+1)/2, MaxDepth), nil
}

// geckoTrades serves CoinGecko's historical_trades: the newest trades of a time span, at
// most limit per side; limit 0 returns as many as one answer has. start_time and end_time
// are Unix seconds or milliseconds.
func (p *partnerPages) geckoTrades(query []byte) (*wire.Page, *wire.Problem) {
	q, bad := p.geckoQuery(query)
	if bad != nil {
		return nil, bad
	}
	var sides [market.Sell + 1][]marketdata.Trade
	full := func(s market.Side) bool { return q.side == s.Opposite() || len(sides[s]) == q.limit }
	// end_time makes a search long, because the newest trades are read first.
	bad = p.scan(q.in, 0, "end_time", func(t *marketdata.Trade) bool {
		if t.At < q.from {
			return false
		}
		if t.At <= q.to && !full(t.Side) {
			sides[t.Side] = append(sides[t.Side], *t)
		}
		all := len(sides[market.Buy])+len(sides[market.Sell]) == MaxPartnerScan
		return !all && (!full(market.Buy) || !full(market.Sell))
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
	if q.side, bad = sideParam(query); bad != nil {
		return q, bad
	}
	if q.limit, bad = wire.LimitParamFrom(query, 0, defaultPartnerTrades, MaxPartnerTrades); bad != nil {
		return q, bad
	}
	if q.limit == 0 {
		q.limit = MaxPartnerScan
	}
	if q.from, bad = timeParam(query, "start_time", 0, false); bad != nil {
		return q, bad
	}
	q.to, bad = timeParam(query, "end_time", math.MaxInt64, true)
	return q, bad
}
