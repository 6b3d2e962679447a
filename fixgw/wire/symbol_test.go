package wire

import (
	"testing"

	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/market"
)

func TestSymbolsOfOtherGroups(t *testing.T) {
	set := wiretest.Instruments(t).WithOtherShards(map[string]*market.Shard{
		"X/Y": {Name: "us", FIX: "10.0.0.2:9878"}, "V/W": {Name: "us"},
	})
	for symbol, want := range map[string]string{
		"X/Y": "OTHER_GROUP: X/Y is served at 10.0.0.2:9878",
		"V/W": "OTHER_GROUP: V/W is served by group us",
		"A/B": `UNKNOWN_SYMBOL: Symbol (55) "A/B"`,
	} {
		r := OrderRequest{Symbol: []byte(symbol)}
		if in, refusal := r.Instrument(set); in != nil || refusal == nil || refusal.Text != want || refusal.Reason != OrdRejUnknown {
			t.Errorf("order of %s: %+v", symbol, refusal)
		}
		var m MarketDataRequest
		if refusal := m.addSymbol([]byte(symbol), set, 1); refusal == nil || refusal.Text != want || refusal.Reason != '0' {
			t.Errorf("market data of %s: %+v", symbol, refusal)
		}
	}
}
