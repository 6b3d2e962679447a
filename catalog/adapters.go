package catalog

import (
	"slices"
	"strconv"
)

// adapterCatalog is the answer of market/adapters (docs/specification.md 2.8).
type adapterCatalog struct {
	OK       bool                     `json:"ok"`
	Version  string                   `json:"api_version"`
	Schema   string                   `json:"schema"`
	At       Time                     `json:"timestamp_exact"`
	Count    int                      `json:"count"`
	Families []string                 `json:"families"`
	Adapters map[string]adapterFamily `json:"adapters"`
}

type adapterFamily struct {
	Consumers []string          `json:"consumers"`
	Input     []string          `json:"expected_input_format"`
	Provided  []string          `json:"already_provided"`
	Auto      consumable        `json:"auto_consumable"`
	External  bool              `json:"needs_external_onboarding"`
	Files     []string          `json:"public_files"`
	Endpoints map[string]string `json:"endpoint_mapping"`
	Example   string            `json:"example_request"`
	Notes     string            `json:"notes,omitempty"`
	Blocker   string            `json:"blocker,omitempty"`
}

// consumable says whether a family's consumers need only the public files.
type consumable uint8

const (
	fully consumable = iota + 1
	partially
)

// MarshalJSON writes true, or "partially" (docs/specification.md 2.8).
func (c consumable) MarshalJSON() ([]byte, error) {
	if c == partially {
		return []byte(`"partially"`), nil
	}
	return strconv.AppendBool(nil, c == fully), nil
}

// family is a family of consumers with the reads and pages that it uses
// (docs/specification.md 4.2).
type family struct {
	name      string
	consumers []string
	input     []string
	auto      consumable
	external  bool
	files     []string
	reads     []string          // names under /api/v1/market/
	pages     map[string]string // other names, by path
	example   string
	notes     string
	blocker   string
}

// families returns the families in the order of docs/specification.md 2.8.
func families() []family {
	return []family{
		{
			name:      "chart_and_dex_discovery",
			consumers: []string{"chart sites", "DEX screeners", "market-data terminals"},
			input:     []string{"JSON over HTTPS", "pairs with base and quote mints", "trades with signatures", "OHLCV candles"},
			auto:      partially, external: true,
			files:   []string{"/pair.json", "/market.json", "/candles.json", "/trades.json", "/proof.json"},
			reads:   []string{"pairs", "pools", "trades", "candles", "proof"},
			example: "candles",
			notes:   "adapters in the public formats of CoinGecko, CoinMarketCap and DEX Screener are served under /api/v1/market/adapters/, TradingView's UDF under /udf",
			blocker: "each site lists an exchange by its own form",
		},
		{
			name:      "explorer_and_metadata",
			consumers: []string{"block explorers", "token directories"},
			input:     []string{"JSON over HTTPS", "Metaplex token metadata"},
			auto:      fully,
			files:     []string{"/metadata.json", "/pair-metadata.json", "/.well-known/svc-discovery.json"},
			reads:     []string{"tokens", "metadata", "pair-metadata"},
			pages:     map[string]string{"discovery": "/.well-known/svc-discovery.json"},
			example:   "tokens",
		},
		{
			name:      "wallet_and_user_access",
			consumers: []string{"wallets", "portfolio trackers"},
			input:     []string{"JSON over HTTPS", "Uniswap token list", "Wallet Standard"},
			auto:      fully,
			files:     []string{"/wallet-index.json", "/tokenlist.json", "/wallets.json", "/proof.json"},
			reads:     []string{"wallet-index", "tokenlist", "proof"},
			pages:     map[string]string{"wallet_page": "/wallet"},
			example:   "tokenlist",
		},
		{
			name:      "aggregation_and_routing",
			consumers: []string{"routers", "aggregators", "solvers"},
			input:     []string{"JSON over HTTPS", "pool addresses with vaults", "fees in basis points"},
			auto:      partially,
			files:     []string{"/pool-registry.json", "/pair-metadata.json", "/trades.json"},
			reads:     []string{"pool-registry", "pair-metadata", "trades", "claims", "debt"},
			example:   "pool-registry",
			notes:     "blocks are bought over the RFQ endpoints; the pool is read-only here",
		},
		{
			name:      "analytics_and_revenue",
			consumers: []string{"analytics sites", "revenue dashboards", "auditors"},
			input:     []string{"JSON over HTTPS", "cumulative totals", "fees with their coherence"},
			auto:      fully,
			files:     []string{"/fees.json", "/market-summary.json", "/latest-fees.json"},
			reads:     []string{"status", "fees", "claims", "debt"},
			example:   "status",
		},
	}
}

// Adapters returns the families of integration adapters.
func Adapters(f *Facts, schema string) any {
	c := &adapterCatalog{
		OK: true, Version: APIVersion, Schema: schema, At: f.Service.ConfiguredAt, Adapters: map[string]adapterFamily{},
	}
	for _, row := range families() {
		c.Families = append(c.Families, row.name)
		c.Adapters[row.name] = row.record(f)
	}
	c.Count = len(c.Families)
	return c
}

func (row *family) record(f *Facts) adapterFamily {
	a := adapterFamily{
		Consumers: row.consumers, Input: row.input, Auto: row.auto, External: row.external, Files: row.files,
		Endpoints: map[string]string{}, Example: f.URLs.Base + marketPath(row.example), Notes: row.notes, Blocker: row.blocker,
	}
	for _, name := range row.reads {
		path, ok := f.readPath(name)
		if !ok {
			continue
		}
		a.Endpoints[name] = "GET " + path
		a.Provided = append(a.Provided, name)
	}
	for name, path := range row.pages {
		a.Endpoints[name] = "GET " + path
		a.Provided = append(a.Provided, name)
	}
	slices.Sort(a.Provided)
	return a
}
