package catalog

import (
	"maps"
	"strings"
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
			if path, ok := f.readPath(name); ok {
				polled[name] = f.URLs.Base + path
			}
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
	read := func(name, description, path string) example {
		return example{Name: name, Description: description, Command: "curl -sS '" + f.URLs.Base + path + "'"}
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
	}}
	if f.Desk.Enabled {
		d.Examples = append(d.Examples, read("tickets", "blocks for sale", "/api/v1/rfq/market-tickets"))
	}
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
				files := []string{"svc-discovery.json", "svc-program.json", "svc-ecosystem.json", "svc-wallets.json", "svc-integrators.json"}
				if f.Desk.Enabled {
					files = append(files, "svc-rfq.json")
				}
				for _, file := range files {
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
