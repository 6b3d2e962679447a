package catalog

import (
	"fmt"
	"maps"
	"strings"
)

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
		r := manifestRead{Name: row[0], URL: f.URLs.Base + marketPath(row[0]), Files: []string{}}
		if row[1] != "" {
			r.Files = f.URLs.files(row[1])
		}
		d.Reads = append(d.Reads, r)
	}
	return d
}

// files returns the URLs of files; never nil.
func (u *URLs) files(paths ...string) []string {
	all := make([]string, 0, len(paths))
	for _, path := range paths {
		all = append(all, u.Base+path)
	}
	return all
}

func perMinute(n, burst int) string {
	if n == 0 {
		return "no limit"
	}
	return fmt.Sprintf("%d requests a minute and IP, burst %d", n, burst)
}

// Paths of the OpenAPI document and of the SDK (docs/specification.md 2.4 and 4.2).
const (
	specificationFile = "/public-sdk/openapi/svc_public_api_v1.json"
	sdkFolder         = "/public-sdk/"
)

// packs has, for each family of consumers, the facts and files that it needs to
// list the market.
type packs struct {
	header
	Count int    `json:"count"`
	Packs []pack `json:"packs"`
}

type pack struct {
	For             string            `json:"for"`
	Consumers       []string          `json:"consumers"`
	Facts           map[string]string `json:"facts"`
	Files           []string          `json:"files"`
	AutoConsumable  consumable        `json:"auto_consumable"`
	NeedsOnboarding bool              `json:"needs_external_onboarding"`
	Blocker         string            `json:"blocker,omitempty"`
}

// SubmissionPacks returns, for each family of consumers, the answers to a listing form.
func SubmissionPacks(f *Facts, schema string) any {
	return newPacks(f, schema, listingFields)
}

// ProviderPacks returns, for each family, the endpoints that a provider polls.
func ProviderPacks(f *Facts, schema string) any {
	return newPacks(f, schema, func(f *Facts, row *family) map[string]string {
		polled := map[string]string{}
		for _, name := range row.reads {
			polled[name] = f.URLs.Base + marketPath(name)
		}
		return polled
	})
}

func newPacks(f *Facts, schema string, facts func(*Facts, *family) map[string]string) *packs {
	all := records(f, families(), func(f *Facts, row *family) pack {
		return pack{
			For: row.name, Consumers: row.consumers, Facts: facts(f, row), Files: f.URLs.files(row.files...),
			AutoConsumable: row.auto, NeedsOnboarding: row.external, Blocker: row.blocker,
		}
	})
	return &packs{configHeader(f, schema), len(all), all}
}

// listingFields returns the answers to the fields of listing forms, without those
// that are not configured.
func listingFields(f *Facts, _ *family) map[string]string {
	p := f.canonical()
	all := map[string]string{
		"exchange_name": f.Service.Market, "operator": f.Service.Operator, "website": f.Service.Website,
		"github": f.Service.GitHub, "network": f.Service.Network, "program_id": f.Service.ProgramID,
		"pair": p.Symbol, "base_mint": f.token(p.Base).Mint, "quote_mint": f.token(p.Quote).Mint,
		"api": f.URLs.Base + marketPath("status"), "websocket": f.URLs.WS + "/ws/rfq",
		"documentation": f.URLs.Base + specificationFile,
	}
	if p.Pool != nil {
		all["pool_id"] = p.Pool.Address
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

type examples struct {
	header
	Count    int       `json:"count"`
	Examples []example `json:"examples"`
}

type example struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Command     string `json:"command"`
}

// Examples returns command lines that run in a POSIX shell as they are printed.
func Examples(f *Facts, schema string) any {
	symbol := strings.ReplaceAll(f.canonical().Symbol, "/", "%2F")
	read := func(name, says, path string) example {
		return example{Name: name, Description: says, Command: "curl -sS '" + f.URLs.Base + path + "'"}
	}
	d := &examples{header: configHeader(f, schema), Examples: []example{
		read("status", "the market status record", marketPath("status")),
		read("symbols", "what is traded, with tick and lot", marketPath("symbols")),
		read("depth", "the best 20 levels a side", marketPath("depth")+"?symbol="+symbol+"&limit=20"),
		read("trades", "the last 10 trades", marketPath("trades")+"?symbol="+symbol+"&limit=10"),
		read("candles", "hours of trades", marketPath("candles")+"?symbol="+symbol+"&timeframe=1h&limit=120"),
		{
			Name: "stream", Description: "every change as server-sent events, until interrupted",
			Command: "curl -sSN '" + f.URLs.Base + marketPath("stream") + "?symbols=" + symbol + "'",
		},
		read("tickets", "blocks for sale", "/api/v1/rfq/market-tickets"),
	}}
	d.Count = len(d.Examples)
	return d
}

// discovery is a file under /.well-known/ (docs/specification.md 4.2). svc-rfq.json is
// not one of them; the RFQ gateway serves it.
type discovery struct {
	header
	Name     string            `json:"name"`
	Operator string            `json:"operateur"`
	Subject  string            `json:"subject"`
	Links    map[string]string `json:"links"`
	Tokens   []liteToken       `json:"tokens,omitempty"`
	Program  *programRecord    `json:"program,omitempty"`
	Families []string          `json:"families,omitempty"`
}

type programRecord struct {
	ProgramID string   `json:"program_id"`
	Network   string   `json:"execution_network"`
	ChainID   int      `json:"control_chain_id"`
	ChainRole string   `json:"control_chain_role"`
	ChainRPC  bool     `json:"control_chain_rpc_compatible"`
	Pools     []string `json:"pools"`
}

// WellKnown is a file under /.well-known/.
type WellKnown struct {
	File    string
	Schema  string
	subject string
	links   []string // names under /api/v1/market/
	more    func(*Facts, *discovery)
}

// WellKnowns returns the discovery files.
func WellKnowns() []WellKnown {
	return []WellKnown{
		{
			File: "svc-discovery.json", Schema: "svc_discovery_v1", subject: "everything that is served",
			links: []string{"status", "symbols", "pairs", "tokens", "proof", "integration-manifest", "adapters", "stream"},
		},
		{
			File: "svc-program.json", Schema: "svc_program_v1", subject: "where trades execute",
			links: []string{"pools", "pool-registry", "proof"},
			more: func(f *Facts, d *discovery) {
				d.Program = &programRecord{
					ProgramID: f.Service.ProgramID, Network: f.Service.Network, ChainID: ControlChainID,
					ChainRole: ControlChainRole, Pools: f.poolAddresses(),
				}
			},
		},
		{
			File: "svc-ecosystem.json", Schema: "svc_ecosystem_v1", subject: "tokens and pairs",
			links: []string{"tokens", "pairs", "pair-metadata", "tokenlist"},
			more:  func(f *Facts, d *discovery) { d.Tokens = records(f, f.Tokens, newLiteToken) },
		},
		{
			File: "svc-wallets.json", Schema: "svc_wallets_v1", subject: "what wallets show",
			links: []string{"wallet-index", "tokenlist", "metadata", "proof"},
			more: func(f *Facts, d *discovery) {
				d.Tokens = records(f, f.Tokens, newLiteToken)
				d.Links["wallet_page"] = f.URLs.Base + "/wallet"
			},
		},
		{
			File: "svc-integrators.json", Schema: "svc_integrators_v1", subject: "what integrators need",
			links: []string{"integration-manifest", "submission-packs", "provider-packs", "examples", "schemas", "adapters"},
			more: func(_ *Facts, d *discovery) {
				for _, row := range families() {
					d.Families = append(d.Families, row.name)
				}
			},
		},
		{
			File: "svc.json", Schema: "svc_v1", subject: "this service",
			links: []string{"status", "integration-manifest"},
			more: func(f *Facts, d *discovery) {
				for _, file := range []string{
					"svc-discovery.json", "svc-program.json", "svc-ecosystem.json", "svc-wallets.json", "svc-integrators.json", "svc-rfq.json",
				} {
					d.Links[strings.TrimSuffix(file, ".json")] = f.URLs.Base + "/.well-known/" + file
				}
			},
		},
	}
}

// Render returns the file's value for encoding/json.
func (w *WellKnown) Render(f *Facts) any {
	d := &discovery{
		header: configHeader(f, w.Schema), Name: f.Service.Name, Operator: f.Service.Operator, Subject: w.subject,
		Links: map[string]string{
			"service": f.URLs.Base + "/", "specification": f.URLs.Base + specificationFile, "sdk": f.URLs.Base + sdkFolder,
		},
	}
	for _, name := range w.links {
		d.Links[name] = f.URLs.Base + marketPath(name)
	}
	if w.more != nil {
		w.more(f, d)
	}
	return d
}
