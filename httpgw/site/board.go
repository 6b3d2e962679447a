package site

import (
	"encoding/json"
	"net/url"
	"strings"

	"blockdesk/catalog"
	"blockdesk/httpgw/board"
	"blockdesk/httpgw/wire"
)

const (
	PathBoardPage   = "/board"
	PathBoardFolder = PathBoardPage + "/"
	PathBoardConfig = PathBoardFolder + "config.json"

	// refreshSeconds is the cycle of market data (spec, 1.4).
	refreshSeconds = 10
)

// boardConfig is /board/config.json (our choice): what the pages for people must
// know of the service that sends them.
type boardConfig struct {
	Service  string `json:"service"`
	Operator string `json:"operator"`
	Network  string `json:"network"`
	Base     string `json:"base_url"`
	API      string `json:"api_url"`
	WS       string `json:"ws_url"`
	Refresh  int    `json:"refresh_s"`
	// Groups are the other groups that instruments are split over.
	Shards []BoardShard `json:"groups"`
	// DemoChain is where the demo's own chain is; null where there is none.
	DemoChain *string `json:"demo_chain_url"`
}

// BoardShard is another group: the board reads its feed at WS, and its own board is
// at Base.
type BoardShard struct {
	Name    string   `json:"name"`
	Base    string   `json:"base_url"`
	WS      string   `json:"ws_url"`
	Symbols []string `json:"symbols"`
}

// newBoard reads the built files: the board's, and the template of the wallet page.
func newBoard(policy []byte) (files []download, wallet string, err error) {
	built, err := board.Files()
	if err != nil {
		return nil, "", err
	}
	for _, f := range built {
		if f.Name == board.Wallet {
			wallet = string(f.Body)
			continue
		}
		p := wire.NewPage(f.Body)
		p.Media = f.Media
		at := PathBoardFolder + f.Name
		if f.Name == board.Page {
			at, p.Policy = PathBoardPage, policy
		}
		files = append(files, download{path: at, page: p})
	}
	return files, wallet, nil
}

func newBoardConfig(o *Options) *wire.Page {
	c := boardConfig{
		Service: o.About.Service, Operator: o.About.Operator, Network: catalog.ExecutionNetwork,
		Base: o.URLs.Base, API: o.URLs.API, WS: o.URLs.WS, Refresh: refreshSeconds,
		Shards: append([]BoardShard{}, o.Shards...),
	}
	if o.DemoChain != "" {
		c.DemoChain = &o.DemoChain
	}
	body, err := json.Marshal(&c)
	if err != nil {
		panic("httpgw: a configuration that cannot be encoded: " + err.Error())
	}
	return wire.NewPage(body)
}

// contentPolicy allows the pages their own files, the service's addresses, where it
// sends requests on to, other groups' feeds and, in a demo, its chain.
func contentPolicy(o *Options) []byte {
	connect := "'self'"
	all := append([]string{o.URLs.Base, o.URLs.WS, o.DemoChain}, o.RedirectTargets...)
	for _, other := range o.Shards {
		all = append(all, other.WS)
	}
	for _, at := range all {
		if origin := originOf(at); origin != "" {
			connect += " " + origin
		}
	}
	return []byte("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src " + connect +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
}

// originOf returns scheme and host of a URL; empty where it has none, or one that
// is no name in a policy.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(u.Host, " ;,'\"\\") {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// fileRoutes are a page and its files. They cost no token: a page that cannot load
// its script says nothing.
func fileRoutes(files []download) []wire.Route {
	table := make([]wire.Route, 0, len(files))
	for _, f := range files {
		var in wire.Group // the files are the page's own
		if f.page.Policy != nil {
			in = wire.GroupBoard
		}
		table = append(table, wire.Get(f.path, wire.OnREST, wire.LiveData, wire.Unlimited, in, f.page.Serve))
	}
	return table
}
