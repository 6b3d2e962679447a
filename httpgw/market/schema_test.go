package market

import (
	"testing"

	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
)

// TestPagesMatch: every page of every state conforms to the specification.
func TestPagesMatch(t *testing.T) {
	d := gatewaytest.OpenAPI(t)
	b := gatewaytest.NewBooks(t)
	m := newPages(&Options{Instruments: b.Set, Views: b})
	for _, symbol := range []string{"SLUSD/USDC", "92C/SLUSD", "EMPTY/USDC"} {
		for schema, serve := range map[string]func([]byte) (*wire.Page, *wire.Problem){
			"Depth": m.serveDepth, "Trades": m.serveTrades, "Ticker": m.serveTicker, "Symbols": m.serveSymbols,
		} {
			p, bad := serve([]byte("symbol=" + symbol))
			if bad != nil {
				t.Fatalf("%s of %s: %+v", schema, symbol, bad)
			}
			if err := d.ValidateAs(schema, p.Body); err != nil {
				t.Errorf("%s of %s: %v in %s", schema, symbol, err, p.Body)
			}
		}
	}
}
