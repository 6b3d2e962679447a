package catalog

import "fmt"

// Document is one published document, served under one or more paths.
type Document struct {
	// Name is the path below /api/v1/market/.
	Name string
	// Schema names the document's JSON Schema.
	Schema string
	// Files are its other paths, on the main and the API address.
	Files []string
	// Legacy is a path on the API address only; may be empty.
	Legacy string
	// Fixed: the document depends on the configuration only.
	Fixed bool
	// Partner: aggregators poll the document, so their rate limit applies.
	Partner bool
	// Render returns a value for encoding/json. It must not change the facts.
	// schema is the Schema that the document names.
	Render func(f *Facts, schema string) any
}

// Documents returns all documents with their paths. Paths that depend on a query, such
// as trades, are not among them.
func Documents() []Document {
	return []Document{
		{Name: "status", Schema: "svc_market_status_v1", Legacy: "/status", Files: []string{"/market.json"}, Render: Status},
		{Name: "tokens", Schema: "svc_market_tokens_v1", Render: Tokens},
		{Name: "adapters", Schema: "svc_market_adapters_v1", Fixed: true, Files: []string{"/adapters.json"}, Render: Adapters},
		{Name: "price", Schema: "svc_market_price_v1", Files: []string{"/price.json"}, Render: Prices},
		{Name: "marketcap", Schema: "svc_market_marketcap_v1", Render: MarketCaps},
		{Name: "pairs", Schema: "svc_market_pairs_v1", Legacy: "/pairs", Files: []string{"/pair.json"}, Render: Pairs},
		{Name: "pools", Schema: "svc_market_pools_v1", Render: Pools},
		{Name: "fees", Schema: "svc_market_fees_v1", Files: []string{"/fees.json"}, Render: Fees},
		{Name: "claims", Schema: "svc_market_claims_v1", Render: Claims},
		{Name: "debt", Schema: "svc_market_debt_v1", Render: Debt},
		{Name: "metadata", Schema: "svc_market_metadata_v1", Fixed: true, Files: []string{"/metadata.json"}, Render: Metadata},
		{
			Name: "pair-metadata", Schema: "svc_market_pair_metadata_v1", Files: []string{"/pair-metadata.json"},
			Render: PairMetadata,
		},
		{Name: "tokenlist", Schema: "uniswap_token_list", Fixed: true, Files: []string{"/tokenlist.json"}, Render: TokenList},
		{
			Name: "wallet-index", Schema: "svc_market_wallet_index_v1", Files: []string{"/wallet-index.json", "/wallets.json"},
			Render: WalletIndex,
		},
		{
			Name: "pool-registry", Schema: "svc_market_pool_registry_v1", Fixed: true, Files: []string{"/pool-registry.json"},
			Render: PoolRegistry,
		},
		{Name: "proof", Schema: "svc_market_proof_v1", Legacy: "/proof", Files: []string{"/proof.json"}, Render: Proof},
		{
			Name: "integration-manifest", Schema: "svc_market_integration_manifest_v1", Fixed: true,
			Files: []string{"/integration-manifest.json"}, Render: IntegrationManifest,
		},
		{
			Name: "submission-packs", Schema: "svc_market_submission_packs_v1", Fixed: true, Files: []string{"/submission-packs.json"},
			Render: SubmissionPacks,
		},
		{
			Name: "provider-packs", Schema: "svc_market_provider_packs_v1", Fixed: true, Files: []string{"/provider-packs.json"},
			Render: ProviderPacks,
		},
		{Name: "examples", Schema: "svc_market_examples_v1", Fixed: true, Files: []string{"/examples.json"}, Render: Examples},
		lite("market-summary", "summary", "/market-summary.json", LiteSummary),
		fixed(lite("pair-metadata", "pair_metadata", "/pair-metadata-lite.json", LitePairs)),
		fixed(lite("tokenlist", "tokenlist", "/tokenlist-lite.json", LiteTokens)),
		fixed(lite("pool-registry", "pool_registry", "/pool-registry-lite.json", LitePools)),
		lite("latest-price", "latest_price", "/latest-price.json", LatestPrice),
		lite("latest-candle", "latest_candle", "/latest-candle.json", LatestCandle),
		lite("latest-trade", "latest_trade", "/latest-trade.json", LatestTrade),
		lite("latest-fees", "latest_fees", "/latest-fees.json", LatestFees),
		partner("coingecko/tickers", "coingecko_tickers", CoinGeckoTickers),
		partner("coinmarketcap/summary", "coinmarketcap_summary", CoinMarketCapSummary),
		partner("coinmarketcap/assets", "coinmarketcap_assets", CoinMarketCapAssets),
		partner("coinmarketcap/ticker", "coinmarketcap_ticker", CoinMarketCapTicker),
	}
}

func partner(name, schema string, render func(f *Facts, schema string) any) Document {
	return Document{Name: "adapters/" + name, Schema: schema, Partner: true, Render: render}
}

func fixed(d Document) Document {
	d.Fixed = true
	return d
}

func lite(name, schema, file string, render func(f *Facts, schema string) any) Document {
	return Document{
		Name: "lite/" + name, Schema: "svc_market_lite_" + schema + "_v1", Files: []string{file}, Render: render,
	}
}

type integrationManifest struct {
	header
	Name          string                       `json:"name"`
	Operator      string                       `json:"operateur"`
	Market        string                       `json:"market_name"`
	Canonical     string                       `json:"canonical_pair_id"`
	Specification string                       `json:"specification_openapi"`
	SDK           string                       `json:"sdk_public"`
	Endpoints     map[string]map[string]string `json:"endpoint_sets"`
	Roles         map[string]serviceRole       `json:"service_roles"`
	Documents     []manifestDocument           `json:"documents"`
	Reads         []manifestRead               `json:"reads"`
	FIX           string                       `json:"fix_documents"`
	Limits        map[string]string            `json:"limits"`
}

type manifestDocument struct {
	Name   string   `json:"name"`
	URL    string   `json:"url"`
	Files  []string `json:"files"`
	Schema string   `json:"schema"`
}

// manifestRead is a read that is not in Documents; most take a query.
type manifestRead struct {
	Name  string   `json:"name"`
	URL   string   `json:"url"`
	Files []string `json:"files"`
}

// reads returns the reads below /api/v1/market/ that are not in Documents, each with its
// static file; "" = none.
func reads() [][2]string {
	return [][2]string{
		{"symbols", ""},
		{"ticker", ""},
		{"depth", ""},
		{"klines", ""},
		{"candles", "/candles.json"},
		{"trades", "/trades.json"},
		{"pools/{pool_address}", ""},
		{"oracle/heartbeat", ""},
		{"stream", ""},
		{"schemas", "/schemas.json"},
		{"openapi.json", "/openapi.json"},
		{"adapters/coingecko/orderbook", ""},
		{"adapters/coingecko/historical_trades", ""},
		{"adapters/coinmarketcap/orderbook/{market_pair}", ""},
		{"adapters/coinmarketcap/trades/{market_pair}", ""},
		{"adapters/dexscreener/latest-block", ""},
		{"adapters/dexscreener/asset", ""},
		{"adapters/dexscreener/pair", ""},
		{"adapters/dexscreener/events", ""},
		{"udf/config", ""},
		{"udf/symbols", ""},
		{"udf/search", ""},
		{"udf/history", ""},
		{"udf/time", ""},
	}
}

// IntegrationManifest lists the URLs, files and limits of everything that integrators
// read.
func IntegrationManifest(f *Facts, schema string) any {
	d := &integrationManifest{
		header: configHeader(f, schema), Name: f.Service.Name, Operator: f.Service.Operator, Market: f.Service.Market,
		Canonical: f.canonical().Symbol, Specification: f.URLs.Base + specificationFile, SDK: f.URLs.Base + sdkFolder,
		Endpoints: endpointSets(f), Roles: serviceRoles(f), FIX: f.URLs.Base + sdkFolder + "fix/",
		Limits: map[string]string{
			"market_data":  perMinute(f.Service.Limits.Market, f.Service.Limits.MarketBurst),
			"adapters":     perMinute(f.Service.Limits.Partner, f.Service.Limits.PartnerBurst),
			"data_refresh": "10 s cycle; the streams are live",
			"depth":        "limit 1 to 100", "klines": "limit 1 to 1440",
		},
	}
	for _, row := range Documents() {
		d.Documents = append(d.Documents, manifestDocument{row.Name, f.URLs.Base + marketPath(row.Name), f.URLs.files(row.Files...), row.Schema})
	}
	for _, row := range reads() {
		path, ok := f.readPath(row[0])
		if !ok {
			continue
		}
		r := manifestRead{Name: row[0], URL: f.URLs.Base + path, Files: []string{}}
		if row[1] != "" {
			r.Files = f.URLs.files(row[1])
		}
		d.Reads = append(d.Reads, r)
	}
	return d
}

func perMinute(n, burst int) string {
	if n == 0 {
		return "no limit"
	}
	return fmt.Sprintf("%d requests a minute and IP, burst %d", n, burst)
}
