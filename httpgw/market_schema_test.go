package httpgw

import "testing"

// TestPagesMatch: every page of every state of the market.
func TestMarketPagesMatch(t *testing.T) {
	d := described(t)
	b := newBooks(t)
	m := newMarketPages(&marketOptions{Instruments: b.set, Views: b})
	for _, symbol := range []string{"SLUSD/USDC", "92C/SLUSD", "EMPTY/USDC"} {
		for schema, serve := range map[string]func([]byte) (*page, *problem){
			"Depth": m.serveDepth, "Trades": m.serveTrades, "Ticker": m.serveTicker, "Symbols": m.serveSymbols,
		} {
			p, bad := serve([]byte("symbol=" + symbol))
			if bad != nil {
				t.Fatalf("%s of %s: %+v", schema, symbol, bad)
			}
			if err := d.ValidateAs(schema, p.body); err != nil {
				t.Errorf("%s of %s: %v in %s", schema, symbol, err, p.body)
			}
		}
	}
}
