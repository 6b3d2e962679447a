package market

import (
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

// coinMarketCapBook serves CoinMarketCap's orderbook: all levels, at most MaxDepth a side.
func (p *partnerPages) coinMarketCapBook(segment []byte) (*wire.Page, *wire.Problem) {
	in, bad := p.instrumentAt(segment)
	if bad != nil {
		return nil, bad
	}
	v := p.market.view(in.ID)
	dst := appendMillisOf(append(make([]byte, 0, 8192), `{"timestamp":`...), v.At)
	dst = appendLevels(append(dst, `,"bids":`...), in, v.Bids, MaxDepth)
	dst = appendLevels(append(dst, `,"asks":`...), in, v.Asks, MaxDepth)
	return wire.NewPage(append(dst, '}')), nil
}

// coinMarketCapTrades serves CoinMarketCap's trades: the last MaxTrades, newest first.
func (p *partnerPages) coinMarketCapTrades(segment []byte) (*wire.Page, *wire.Problem) {
	in, bad := p.instrumentAt(segment)
	if bad != nil {
		return nil, bad
	}
	v := p.market.view(in.ID)
	dst := append(make([]byte, 0, 8192), '[')
	for i := range v.Trades {
		dst = appendPartnerTrade(appendComma(dst, i == 0), in, &v.Trades[i], "quote_volume", "timestamp")
	}
	return wire.NewPage(append(dst, ']')), nil
}
