package demo

import (
	"log/slog"
	"math/rand/v2"
	"testing"

	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/servicetest"
)

// TestPoolInstrument: a demo has the pool's instrument behind the usual ones, with or
// without a chain. A configuration that has instruments of its own stays as it is.
func TestPoolInstrument(t *testing.T) {
	usual := len(config.Default().Instruments)
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"demo":    {"demo: true\n", usual + 1},
		"no demo": {"", usual},
		"own instruments": {"demo: true\nrfq: {pairs: []}\ninstruments:\n  - {symbol: AAA/USDC, price_decimals: 2, qty_decimals: 2, tick: '0.01', lot: '0.01', " +
			"min_qty: '0.01', max_qty: '1000', max_price: '1000', book_source: matched}\n", 1},
	} {
		cfg, err := servicetest.Load(t, c.text)
		if err != nil {
			t.Fatal(name, err)
		}
		Fill(&cfg)
		Fill(&cfg) // adds nothing more
		if len(cfg.Instruments) != c.want {
			t.Errorf("%s: %d instruments, want %d", name, len(cfg.Instruments), c.want)
		}
		if last := cfg.Instruments[len(cfg.Instruments)-1]; (last.Symbol == PoolSymbol) != (c.want > usual) {
			t.Errorf("%s: the last instrument is %s", name, last.Symbol)
		}
	}
}

// TestPool: the pool is made once, the configuration mirrors it, and swaps move its vaults
// by a constant product, which its fee makes grow.
func TestPool(t *testing.T) {
	t.Parallel()
	node := startManual(t)
	open := func() *Pool {
		cfg := config.Default()
		cfg.Demo = true
		Fill(&cfg)
		p, err := OpenPool(t.Context(), &cfg, node, slog.New(slog.DiscardHandler))
		if err != nil || p == nil {
			t.Fatal(p, err)
		}
		t.Cleanup(p.Close)
		cfg.Chain.RPCURLs = node.URL()
		if err := cfg.Validate(); err != nil || len(cfg.Mirror.Pairs) != 1 || len(cfg.UnreadInstruments()) != 0 {
			t.Fatalf("%v, %+v", err, cfg.Mirror.Pairs)
		}
		return p
	}
	p := open()
	base, quote, err := p.reserves(t.Context())
	if err != nil || base != poolBase || quote != poolQuote {
		t.Fatalf("the first liquidity is %d and %d, %v", base, quote, err)
	}
	for i := range 8 {
		if i == 4 {
			p = open() // it is there
		}
		if err := p.Swap(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, q, err := p.reserves(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if (b > base) != (q < quote) || b == base || q == quote {
			t.Fatalf("swap %d: from %d and %d to %d and %d", i, base, quote, b, q)
		}
		if market.Mul(uint64(b), uint64(q)).Cmp(market.Mul(uint64(base), uint64(quote))) <= 0 {
			t.Fatalf("swap %d: the product shrinks", i)
		}
		base, quote = b, q
	}
	// A configuration without the instrument gets no pool.
	cfg := config.Default()
	if p, err := OpenPool(t.Context(), &cfg, node, slog.New(slog.DiscardHandler)); p != nil || err != nil || cfg.Mirrors() {
		t.Errorf("%v, %v", p, err)
	}
}

// TestPoolPrice: over a month of swaps the price moves, and stays near its home.
func TestPoolPrice(t *testing.T) {
	p := &Pool{random: rand.New(rand.NewPCG(23, 0))}
	base, quote := market.Amount(poolBase), market.Amount(poolQuote)
	low, high := uint64(poolHome), uint64(poolHome)
	for range 30 * 24 * 60 * 2 {
		buys, in, out, err := p.terms(base, quote)
		if err != nil {
			t.Fatal(err)
		}
		if buys {
			base, quote = base-out, quote+in
		} else {
			base, quote = base+in, quote-out
		}
		spot, err := market.MulDivFloor(uint64(quote), million, uint64(base))
		if err != nil {
			t.Fatal(err)
		}
		low, high = min(low, spot), max(high, spot)
	}
	if low < poolHome*95/100 || high > poolHome*105/100 || high-low < poolHome/1000 {
		t.Errorf("from %d to %d", low, high)
	}
}
