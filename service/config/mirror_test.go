package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/mirror"
)

const mirroredYAML = `
instruments:
  - {symbol: SOL/USDC, price_decimals: 6, qty_decimals: 9, tick: "0.0001", lot: "0.001", min_qty: "0.001",
     max_qty: "1000000", max_price: "100000", book_source: mirrored}
chain: {rpc_urls: "https://a.example"}
`

// documentedMirror is the documentation's example.
func documentedMirror(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n## Mirrored instruments\n")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/configuration.md has no example of a mirror")
	}
	return example
}

// TestUnreadMirror: a mirrored instrument that no pair names is reported at the start.
func TestUnreadMirror(t *testing.T) {
	for text, want := range map[string]string{
		mirroredYAML:                       "[SOL/USDC]",
		mirroredYAML + documentedMirror(t): "[]",
		"":                                 "[]", // all are matched
	} {
		cfg, err := loadYAML(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(cfg.UnreadInstruments()); got != want {
			t.Errorf("unread are %s, want %s", got, want)
		}
	}
}

func TestDocumentedMirror(t *testing.T) {
	cfg, err := loadYAML(t, mirroredYAML+documentedMirror(t))
	if err != nil {
		t.Fatal(err)
	}
	instruments, err := cfg.MarketInstruments()
	if err != nil {
		t.Fatal(err)
	}
	o, err := cfg.MirrorOptions(instruments)
	if err != nil {
		t.Fatal(err)
	}
	p := &o.Pairs[0]
	if p.Book.Layout != mirror.Manifest || p.Book.Program != solana.ManifestProgram || p.Pool.Program != solana.RaydiumCPMMProgram ||
		p.Base.Decimals != 9 || p.Instrument != &instruments[0] || len(p.Observed) != 1 {
		t.Errorf("%+v", p)
	}
	if o.Every != 10*time.Second || o.Lookback != 8*24*time.Hour || o.MaxAhead != time.Minute || o.SnapshotEvery != 6*time.Hour {
		t.Errorf("%+v", o)
	}
	cfg.Mirror.ReachDays = 0
	if o, err = cfg.MirrorOptions(instruments); err != nil || o.Lookback >= 0 {
		t.Errorf("the whole history: %v, %v", o.Lookback, err)
	}
}

// Each of these changes the documentation's example and is refused with the key
// that is wrong.
func TestMirrorConfigurationRefused(t *testing.T) {
	example := documentedMirror(t)
	const key = "mirror.pairs[0]."
	for name, c := range map[string]struct{ from, to, want string }{
		"symbol":           {"symbol: SOL/USDC", "symbol: SLUSD/USDC", key + "symbol"},
		"base mint":        {"base_mint: So1", "base_mint: 0o1", key + "base_mint"},
		"quote mint":       {"quote_mint: EPj", "quote_mint: 0", key + "quote_mint"},
		"decimals":         {"base_decimals: 9", "base_decimals: 20", key + "base_decimals"},
		"book's layout":    {"layout: manifest", "layout: phoenix", key + "book.layout"},
		"no layout":        {"layout: manifest", `layout: ""`, key + "book.layout"},
		"market":           {"market: ENh", "market: 0", key + "book.market"},
		"no market":        {"market: ENhU8LsaR7vDD2G1CsWcsuSGNrih9Cv5WZEk7q9kPapQ", `market: ""`, key + "book.market"},
		"book's program":   {"program: \"\"              # empty: mainnet's program", "program: x #", key + "book.program"},
		"pool's layout":    {"layout: raydium_cpmm", "layout: orca", key + "pool.layout"},
		"no vault":         {"layout: raydium_cpmm", "layout: vault_pair", key + "pool.base_vault"},
		"vaults of a CPMM": {`lp_mint: ""`, "base_vault: ENhU8LsaR7vDD2G1CsWcsuSGNrih9Cv5WZEk7q9kPapQ", key + "pool.base_vault"},
		"LP mint":          {`lp_mint: ""`, "lp_mint: x", key + "pool.lp_mint"},
		"address":          {"address: 7Juw", "address: 0", key + "pool.address"},
		"observed":         {"{address: AKj", "{address: 0", key + "observed[0]."},
		"role":             {"role: guarantee_reserve", "role: pool_vault", key + "observed[0].role"},
		"label":            {"label: Reserve", "label: " + strings.Repeat("x", maxLabel+1), key + "observed[0].label"},
		"pace":             {"mirror:\n", "mirror:\n  every_ms: 99\n", "mirror.every_ms"},
		"staleness":        {"mirror:\n", "mirror:\n  stale_after_ms: 9999\n", "mirror.stale_after_ms"},
		"reach":            {"mirror:\n", "mirror:\n  reach_days: 7\n", "mirror.reach_days"},
		"negative reach":   {"mirror:\n", "mirror:\n  reach_days: -1\n", "mirror.reach_days"},
		"snapshots":        {"mirror:\n", "mirror:\n  record_every_s: 0\n", "mirror.record_every_s"},
		"clock":            {"mirror:\n", "mirror:\n  clock_tolerance_s: 0\n", "mirror.clock_tolerance_s"},
		"nodes":            {"mirror:\n", "mirror:\n  rpc_urls: 'https://a.example, s3cr3t'\n", "mirror.rpc_urls"},
	} {
		if !strings.Contains(example, c.from) {
			t.Errorf("%s: the example has no %q", name, c.from)
			continue
		}
		_, err := loadYAML(t, mirroredYAML+strings.Replace(example, c.from, c.to, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestMirrorNeedsNodes(t *testing.T) {
	text := strings.Replace(mirroredYAML, "https://a.example", "", 1) + documentedMirror(t)
	if _, err := loadYAML(t, text); err == nil || !strings.Contains(err.Error(), "mirror.rpc_urls") {
		t.Errorf("without a node: %v", err)
	}
	cfg, err := loadYAML(t, strings.Replace(text, "mirror:\n", "mirror:\n  rpc_urls: http://127.0.0.1:1\n", 1))
	if err != nil {
		t.Fatal(err)
	}
	if nodes, err := cfg.MirrorNodes(); err != nil || len(nodes) != 1 || cfg.Settles() {
		t.Errorf("%d nodes, %v; settles %v", len(nodes), err, cfg.Settles())
	}
}

// The desk prices nothing by a mirrored book.
func TestMirroredBookPricesNothing(t *testing.T) {
	text := mirroredYAML + documentedMirror(t) + `
rfq:
  pairs:
    - {symbol: SOL/USDC, base_mint: PLaceho1derSLUSDmintxxxxxxxxxxxxxxxxxxxxxxx, base_decimals: 9, rails: [USDC],
       price_source: %s, corridor_bps: 1000, max_age_s: 3600}
`
	if _, err := loadYAML(t, fmt.Sprintf(text, "book")); err == nil || !strings.Contains(err.Error(), "rfq.pairs[0].price_source") {
		t.Errorf("by its book: %v", err)
	}
	if _, err := loadYAML(t, fmt.Sprintf(text, "operator")); err != nil {
		t.Errorf("by an operator: %v", err)
	}
}
