package main

import (
	"testing"
	"time"

	"blockdesk/catalog"
	"blockdesk/feed/archive"
	"blockdesk/market"
)

// TestMatchedTotals: the trades of all days count, at the quote asset's present
// price, and nothing where it has none; those of a window are among them.
func TestMatchedTotals(t *testing.T) {
	s := newFactsScene(t)
	day := func(ago int, dollars uint64) archive.Candle {
		return archive.Candle{
			OpenAt: factsNow - int64(ago)*int64(24*time.Hour), Quote: market.Mul(1_000_000, dollars*1_000_000), Trades: dollars,
		}
	}
	s.candles = map[archive.Interval][]archive.Candle{archive.Day1: {day(400, 3), day(9, 2), day(0, 1)}}
	if got := s.pairs(nil)[0].Totals; got != (catalog.Totals{}) {
		t.Errorf("without the quote asset's price: %+v", got)
	}
	s.views[1] = quoted(1, 2_000_000, 2_000_000) // SLUSD is two dollars
	if got := s.pairs(nil)[0].Totals; got.MatchedTrades != 6 || got.MatchedUSD != 12_000_000 || got.OnchainSwaps != 0 {
		t.Errorf("six SLUSD in six trades: %+v", got)
	}
	if got := s.pairs(nil)[1].Totals; got.MatchedTrades != 0 || got.MatchedUSD != 0 {
		t.Errorf("a pair without trades: %+v", got)
	}
}
