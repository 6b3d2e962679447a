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
		if in, no := r.Instrument(set); in != nil || no == nil || no.Text != want || no.Reason != OrdRejUnknown {
			t.Errorf("order of %s: %+v", symbol, no)
		}
		var m MarketDataRequest
		if no := m.addSymbol([]byte(symbol), set, 1); no == nil || no.Text != want || no.Reason != '0' {
			t.Errorf("market data of %s: %+v", symbol, no)
		}
	}
}
