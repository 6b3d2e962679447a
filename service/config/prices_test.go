package config

import (
	"strings"
	"testing"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/prices"
)

const pricesChain = "chain: {rpc_urls: 'http://127.0.0.1:1'}\n"

func loadPrices(t *testing.T, text string) (Config, error) {
	t.Helper()
	cfg := Default()
	if err := Decode([]byte(text), &cfg); err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate()
}

// TestPriceDefaults: an entry without keys has Pyth's feed of SOL on mainnet, and the
// operator behind it.
func TestPriceDefaults(t *testing.T) {
	for _, text := range []string{"prices: {SOL: {}}\n", "prices:\n  SOL:\n    max_age_s: 60\n"} {
		cfg, err := loadPrices(t, pricesChain+text)
		if err != nil {
			t.Fatal(err)
		}
		assets, err := cfg.PriceAssets()
		if err != nil || len(assets) != 1 {
			t.Fatalf("%+v, %v", assets, err)
		}
		a := assets[0]
		if a.Name != "SOL" || solana.Base58(a.Account) != "7UVimffxr9ow1uXYxsr4LHAcV58mLzhmwaeKvJ1pjLiE" || a.Rule.MaxAge != int64(time.Minute) ||
			len(a.Rule.Sources) != 2 || a.Rule.Sources[0] != prices.Pyth || a.Rule.Sources[1] != prices.Operator || a.Window != 5*time.Minute {
			t.Errorf("%+v", a)
		}
		if err := a.Rule.Validate(); err != nil {
			t.Error(err)
		}
		if cfg.SolMaxAge() != int64(time.Minute) {
			t.Errorf("SOL may be %d ns old", cfg.SolMaxAge())
		}
	}
}

// TestPriceRules: rules that cannot work are refused with their key.
func TestPriceRules(t *testing.T) {
	const (
		mints  = "base_mint: So11111111111111111111111111111111111111112, base_decimals: 9, quote_mint: EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v, quote_decimals: 6"
		pool   = "pool: {layout: raydium_cpmm, address: 7UVimffxr9ow1uXYxsr4LHAcV58mLzhmwaeKvJ1pjLiE}"
		common = "tick: '0.000001', lot: '0.000001', min_qty: '0.01', max_qty: '1000', max_price: '1000', price_decimals: 6, qty_decimals: 6"
	)
	mirrored := func(symbol, more string) string {
		return "instruments:\n  - {symbol: SLUSD/USDC, " + common + ", book_source: matched}\n  - {symbol: 92C/SLUSD, " + common + ", book_source: matched}\n" +
			"  - {symbol: " + symbol + ", " + common + ", book_source: mirrored}\nmirror: {pairs: [{symbol: " + symbol + ", " + mints + ", " + more + "}]}\n"
	}
	const poolRule = "prices: {SOL: {sources: [pool], pool: SOL/USDC}}\n"
	for name, c := range map[string]struct{ text, want string }{
		"none":                           {"prices: {}\n", ""},
		"SOL":                            {pricesChain + "prices: {SOL: {}}\n", ""},
		"a pair's base":                  {pricesChain + "prices: {SLUSD: {feed_id: " + strings.Repeat("ab", 32) + "}}\n", ""},
		"operator alone, without chain":  {"prices: {SOL: {sources: [operator], max_age_s: 3600}}\n", ""},
		"not sold":                       {pricesChain + "prices: {BTC: {feed_id: " + strings.Repeat("ab", 32) + "}}\n", "prices.BTC: not a priced asset"},
		"no feed":                        {pricesChain + "prices: {SLUSD: {}}\n", "prices.SLUSD.feed_id: missing"},
		"no chain":                       {"prices: {SOL: {}}\n", "prices.SOL.sources: pyth is read from the chain"},
		"an unknown source":              {pricesChain + "prices: {SOL: {sources: [oracle]}}\n", "prices.SOL.sources: \"oracle\""},
		"an unknown key":                 {pricesChain + "prices: {SOL: {age: 5}}\n", "unknown field"},
		"a source twice":                 {pricesChain + "prices: {SOL: {sources: [pyth, pyth]}}\n", "prices.SOL.sources: pyth appears twice"},
		"no source":                      {pricesChain + "prices: {SOL: {sources: []}}\n", "prices.SOL.sources"},
		"an operator's price, no source": {pricesChain + "rfq: {sol_price_usd: '150'}\nprices: {SOL: {sources: [pyth]}}\n", "rfq.sol_price_usd: set, but prices.SOL.sources has no operator"},
		"a pool":                         {pricesChain + mirrored("SOL/USDC", pool) + poolRule, ""},
		"a pool of another pair":         {pricesChain + mirrored("SOL/USDT", pool) + poolRule, "prices.SOL.pool: \"SOL/USDC\" is not one of mirror.pairs"},
		"a pool that is none":            {pricesChain + mirrored("SOL/USDC", "book: {layout: manifest, market: 7UVimffxr9ow1uXYxsr4LHAcV58mLzhmwaeKvJ1pjLiE}") + poolRule, "prices.SOL.pool"},
		"a pool in another token":        {pricesChain + mirrored("SOL/USDT", pool) + "prices: {SOL: {sources: [pool], pool: SOL/USDT}}\n", "prices.SOL.pool: \"SOL/USDT\" must be SOL/USDC"},
		"a pool that is not a source":    {pricesChain + mirrored("SOL/USDC", pool) + "prices: {SOL: {pool: SOL/USDC}}\n", "prices.SOL.pool: set, but"},
		"younger than two readings":      {pricesChain + mirrored("SOL/USDC", pool) + "prices: {SOL: {sources: [pool], pool: SOL/USDC, max_age_s: 19}}\n", "prices.SOL.max_age_s"},
	} {
		_, err := loadPrices(t, c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestPricedByHand: assets without a rule are named, so that the service can warn.
func TestPricedByHand(t *testing.T) {
	cfg := Default()
	cfg.RFQ.PayTo.SOL = "7UVimffxr9ow1uXYxsr4LHAcV58mLzhmwaeKvJ1pjLiE"
	if got := strings.Join(cfg.PricedByOperator(), " "); got != "SOL SLUSD" {
		t.Errorf("%s", got)
	}
	cfg.Prices["SOL"] = DefaultPriceRule()
	if got := strings.Join(cfg.PricedByOperator(), " "); got != "SLUSD" {
		t.Errorf("%s", got)
	}
}
