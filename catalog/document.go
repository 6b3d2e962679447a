package catalog

import (
	"bytes"
	"encoding/json"
)

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

// header begins the documents whose layout is our choice.
type header struct {
	OK      bool   `json:"ok"`
	Schema  string `json:"schema"`
	Version string `json:"api_version"`
	At      Time   `json:"timestamp_exact"`
	Network string `json:"execution_network"`
}

func newHeader(f *Facts, schema string) header {
	return header{OK: true, Schema: schema, Version: APIVersion, At: f.At, Network: f.Service.Network}
}

// configHeader returns the header of a document that depends on the configuration only.
func configHeader(f *Facts, schema string) header {
	h := newHeader(f, schema)
	h.At = f.Service.ConfiguredAt
	return h
}

// records returns a record of each element of list; never nil, so that JSON has [].
func records[T, R any](f *Facts, list []T, record func(*Facts, *T) R) []R {
	all := make([]R, 0, len(list))
	for i := range list {
		all = append(all, record(f, &list[i]))
	}
	return all
}

// Encode returns the JSON of a document on one line, without HTML escapes. It panics
// if the value cannot be encoded.
func Encode(value any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic("catalog: encode a document: " + err.Error())
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'})
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
