package main

import (
	"blockdesk/catalog"
	"blockdesk/feed/archive"
	"blockdesk/market"
)

// matched are the totals of a pair with a book of our own, at the present price
// of the quote asset, rounded down: those of the last archive.MaxCandles days with
// a trade, which is all that one read of the history gives. Where it cannot be
// read they are zero, as its readiness says.
func (m *pairFacts) matched(in *market.Instrument, quote market.USDPrice) (t catalog.Totals) {
	days, err := m.history.Candles(in.ID, archive.Day1, 0, archive.MaxCandles)
	if err != nil {
		return t
	}
	trades, sum := uint64(0), market.Uint128{}
	for i := range days {
		if sum, err = sum.Add(days[i].Quote); err != nil {
			return t
		}
		trades += days[i].Trades
	}
	volume, ok := worthUSD(in, sum, quote)
	if !ok {
		return t
	}
	t.MatchedTrades, t.MatchedUSD = trades, volume
	return t
}
