package market

import (
	"math"
	"time"

	"blockdesk/engine/marketdata"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// instrumentAt returns the instrument whose ticker is a path's last segment.
func (p *partnerPages) instrumentAt(segment []byte) (*market.Instrument, *wire.Problem) {
	if in := p.tickers[string(segment)]; in != nil {
		return in, nil
	}
	return nil, unknownNamed("market_pair")
}

// coinMarketCapBook serves CoinMarketCap's orderbook: level 1 is the best bid and ask,
// level 2, the default, the levels. depth counts both sides. Level 3, single orders, is
// not published.
func (p *partnerPages) coinMarketCapBook(segment, query []byte) (*wire.Page, *wire.Problem) {
	in, bad := p.instrumentAt(segment)
	if bad != nil {
		return nil, bad
	}
	depth, bad := depthParam(query)
	if bad != nil {
		return nil, bad
	}
	level, bad := numberParam(query, "level", 2, 2)
	if bad != nil {
		return nil, bad
	}
	if level == 1 {
		depth = 1
	}
	v := p.market.view(in.ID)
	dst := appendMillisOf(append(make([]byte, 0, 8192), `{"timestamp":`...), v.At)
	dst = appendLevels(append(dst, `,"bids":`...), in, v.Bids, depth)
	dst = appendLevels(append(dst, `,"asks":`...), in, v.Asks, depth)
	return wire.NewPage(append(dst, '}')), nil
}

// coinMarketCapTrades serves CoinMarketCap's trades, newest first: those of the last 24
// hours, or since a time in Unix seconds or milliseconds, at most limit, of one side if
// type names it. before is a trade_id, for the page of older trades. since and before are
// our choice.
func (p *partnerPages) coinMarketCapTrades(segment, query []byte) (*wire.Page, *wire.Problem) {
	in, bad := p.instrumentAt(segment)
	if bad != nil {
		return nil, bad
	}
	side, bad := sideParam(query)
	if bad != nil {
		return nil, bad
	}
	limit, bad := wire.LimitParamFrom(query, 0, 0, MaxPartnerScan)
	if bad != nil {
		return nil, bad
	}
	if limit == 0 {
		limit = MaxPartnerScan
	}
	since, bad := timeParam(query, "since", p.now()-int64(24*time.Hour), false)
	if bad != nil {
		return nil, bad
	}
	before, bad := wire.CursorParam(query, "before", math.MaxInt64)
	if bad != nil {
		return nil, bad
	}
	dst, read, count := append(make([]byte, 0, 8192), '['), 0, 0
	bad = p.scan(in, market.TradeID(before), "before", func(t *marketdata.Trade) bool {
		if t.At < since {
			return false
		}
		if side == 0 || t.Side == side {
			dst = appendPartnerTrade(appendComma(dst, count == 0), in, t, "quote_volume", "timestamp")
			count++
		}
		read++
		return count < limit && read < MaxPartnerScan
	})
	if bad != nil {
		return nil, bad
	}
	return wire.NewPage(append(dst, ']')), nil
}
