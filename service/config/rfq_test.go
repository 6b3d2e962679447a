package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"
)

// loadYAML reads a configuration file of this text.
func loadYAML(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := Load(path, nil, nil)
	return cfg, err
}

// testAddress returns the address number n.
func testAddress(n int) string {
	return base58.Encode(bytes.Repeat([]byte{byte(n + 1)}, 32))
}

const onePair = `rfq:
  pairs:
    - {symbol: SLUSD/USDC, base_mint: PLaceho1derSLUSDmintxxxxxxxxxxxxxxxxxxxxxxx, base_decimals: 6, rails: [USDC],
       price_source: operator, corridor_bps: 1000, max_age_s: 60}
`

// Each of these is refused with the key that is wrong.
func TestRFQConfigurationRefused(t *testing.T) {
	ladder := func(steps string) string { return "rfq:\n  ladder:\n" + steps }
	const six = `    - {fill_usd: 250, discount_bps: 0}
    - {fill_usd: 1000, discount_bps: 25}
    - {fill_usd: 25000, discount_bps: 75}
    - {fill_usd: 250000, discount_bps: 150}
    - {fill_usd: 1000000, discount_bps: 250}
`
	pair := func(old, with string) string { return strings.Replace(onePair, old, with, 1) }
	hash := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"quote ttl":            {"rfq: {quote_ttl_s: 0}", []string{"rfq.quote_ttl_s", "1 to 3600"}},
		"claim ttl":            {"rfq: {claim_ttl_s: 86401}", []string{"rfq.claim_ttl_s"}},
		"late window":          {"rfq: {late_window_s: 2592001}", []string{"rfq.late_window_s", "0 to 2592000"}},
		"fee":                  {"rfq: {fee_bps: 10000}", []string{"rfq.fee_bps"}},
		"wallet claims":        {"rfq: {wallet_claims: 65536}", []string{"rfq.wallet_claims"}},
		"unknown key":          {"rfq: {quote_ttl: 1}", []string{"quote_ttl"}},
		"ladder short":         {ladder(six), []string{"rfq.ladder", "2500000 is missing"}},
		"ladder twice":         {ladder(six + "    - {fill_usd: 250, discount_bps: 500}\n"), []string{"rfq.ladder[5].fill_usd", "twice"}},
		"ladder off":           {ladder(six + "    - {fill_usd: 251, discount_bps: 500}\n"), []string{"rfq.ladder[5].fill_usd", "251"}},
		"ladder falls":         {ladder(six + "    - {fill_usd: 2500000, discount_bps: 249}\n"), []string{"rfq.ladder", "2500000", "1000000"}},
		"ladder gives away":    {ladder(six + "    - {fill_usd: 2500000, discount_bps: 10000}\n"), []string{"rfq.ladder[5].discount_bps"}},
		"mint":                 {"rfq: {usdc_mint: abc}", []string{"rfq.usdc_mint", "32 bytes"}},
		"mint of a bad letter": {"rfq: {usdc_mint: 0Laceho1derUSDCmintxxxxxxxxxxxxxxxxxxxxxxxx}", []string{"rfq.usdc_mint"}},
		"pay to":               {"rfq: {pay_to: {SOL: x}}", []string{"rfq.pay_to.SOL"}},
		"SOL price":            {"rfq: {sol_price_usd: '-1'}", []string{"rfq.sol_price_usd"}},
		"SOL price zero":       {"rfq: {sol_price_usd: '0.0'}", []string{"rfq.sol_price_usd", "greater than zero"}},
		"SOL price fine":       {"rfq: {sol_price_usd: '0.0000000001'}", []string{"rfq.sol_price_usd", "digits"}},
		"SOL price vast":       {"rfq: {sol_price_usd: '1000000000.1'}", []string{"rfq.sol_price_usd"}},
		"SOL age":              {"rfq: {sol_max_age_s: 604801}", []string{"rfq.sol_max_age_s"}},
		"no instrument":        {pair("SLUSD/USDC,", "A/B,"), []string{"rfq.pairs[0].symbol", "A/B"}},
		"pair twice":           {onePair + strings.TrimPrefix(onePair, "rfq:\n  pairs:\n"), []string{"rfq.pairs[1].symbol", "twice"}},
		"base mint":            {pair("PLaceho1der", ""), []string{"rfq.pairs[0].base_mint"}},
		"base decimals":        {pair("base_decimals: 6", "base_decimals: 13"), []string{"rfq.pairs[0].base_decimals"}},
		"no rails":             {pair("[USDC]", "[]"), []string{"rfq.pairs[0].rails"}},
		"rail":                 {pair("[USDC]", "[USD]"), []string{"rfq.pairs[0].rails", "USD"}},
		"rail twice":           {pair("[USDC]", "[SOL, SOL]"), []string{"rfq.pairs[0].rails", "twice"}},
		"source":               {pair("operator", "oracle"), []string{"rfq.pairs[0].price_source", "oracle", "book"}},
		"corridor":             {pair("1000", "0"), []string{"rfq.pairs[0].corridor_bps", "1 to 9999"}},
		"age":                  {pair("60", "-1"), []string{"rfq.pairs[0].max_age_s"}},
		"price":                {pair("max_age_s", "reference_price_usd: one, max_age_s"), []string{"rfq.pairs[0].reference_price_usd"}},
		"inventory":            {pair("max_age_s", "inventory: '0.0000001', max_age_s"), []string{"rfq.pairs[0].inventory"}},
		"via nothing":          {pair("max_age_s", "via: 92C/SLUSD, max_age_s"), []string{"rfq.pairs[0].via", "92C/SLUSD"}},
		"via itself":           {pair("max_age_s", "via: SLUSD/USDC, max_age_s"), []string{"rfq.pairs[0].via"}},
		"operator without name": {
			"operators: [{name: '', token_sha256: " + hash + "}]", []string{"operators[0].name"},
		},
		"operator of ours":   {"operators: [{name: local, token_sha256: " + hash + "}]", []string{"operators[0].name", "local"}},
		"operator with nuts": {"operators: [{name: 'a b', token_sha256: " + hash + "}]", []string{"operators[0].name"}},
		"operator's hash":    {"operators: [{name: a, token_sha256: " + hash[1:] + "}]", []string{"operators[0].token_sha256", "64"}},
		"operator twice": {
			"operators: [{name: a, token_sha256: " + hash + "}, {name: a, token_sha256: " + strings.Repeat("cd", 32) + "}]", []string{"operators[1].name", "twice"},
		},
		"token twice": {
			"operators: [{name: a, token_sha256: " + hash + "}, {name: b, token_sha256: " + hash + "}]", []string{"operators[1].token_sha256", "a has"},
		},
		"writes": {"http: {rfq_writes_per_minute: 60000001}", []string{"http.rfq_writes_per_minute"}},
		"burst":  {"http: {rfq_writes_burst: 0}", []string{"http.rfq_writes_burst"}},
	} {
		_, err := loadYAML(t, c.text)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		for _, word := range c.want {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q does not say %q", name, err, word)
			}
		}
	}
}

// A configuration that names no pairs has the default ones, as far as it has
// their instruments; one that names none on purpose has none.
func TestDefaultPairsFollowTheInstruments(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "SLUSD/USDC 92C/SLUSD",
		"rfq: {pairs: []}":                   "",
		testInstruments("A/B"):               "",
		testInstruments("A/B", "SLUSD/USDC"): "SLUSD/USDC",
		testInstruments("92C/SLUSD"):         "", // its via is not there
		testInstruments("92C/SLUSD", "SLUSD/USDC"):          "SLUSD/USDC 92C/SLUSD",
		testInstruments("SLUSD/USDC") + "rfq: {fee_bps: 1}": "SLUSD/USDC",
	} {
		cfg, err := loadYAML(t, text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var got []string
		for _, p := range cfg.RFQ.Pairs {
			got = append(got, p.Symbol)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: pairs %v, want %s", text, got, want)
		}
	}
}

// testInstruments is a configuration of some.
func testInstruments(symbols ...string) string {
	text := "instruments:\n"
	for _, s := range symbols {
		text += `  - {symbol: ` + s + `, price_decimals: 2, qty_decimals: 2, tick: "0.01", lot: "0.01", ` +
			`min_qty: "0.01", max_qty: "1000", max_price: "1000", book_source: matched}` + "\n"
	}
	return text
}
