package config

import "testing"

// Whatever a configuration file holds, it is taken or refused; what is taken
// makes instruments.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("listen: {fix: '127.0.0.1:0'}\n"))
	f.Add([]byte("instruments:\n  - {symbol: A/B, tick: '0.01', lot: '1', price_decimals: 2, qty_decimals: 0, min_qty: '1', max_qty: '10', max_price: '5', book_source: matched}\n"))
	f.Add([]byte("unknown: 1\n"))
	f.Add([]byte("a: &a [*a, *a]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg := Default()
		if Decode(text, &cfg) != nil || cfg.Validate() != nil {
			return
		}
		list, err := cfg.MarketInstruments()
		if err != nil || len(list) == 0 {
			t.Fatalf("a valid configuration makes no instruments: %v", err)
		}
	})
}
