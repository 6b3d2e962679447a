package site

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"blockdesk/httpgw/board"
	"blockdesk/httpgw/wire"
)

const (
	PathBoardPage   = "/board"
	PathBoardFolder = PathBoardPage + "/"
	PathBoardConfig = PathBoardFolder + "config.json"

	// refreshSeconds is the cycle of market data (docs/specification.md 1.4).
	refreshSeconds = 10
)

// boardConfig is /board/config.json (our choice): what the pages need to know about the
// service.
type boardConfig struct {
	Service  string `json:"service"`
	Operator string `json:"operator"`
	Network  string `json:"network"` // execution_network
	Base     string `json:"base_url"`
	API      string `json:"api_url"`
	WS       string `json:"ws_url"`
	Refresh  int    `json:"refresh_s"`
	FeeBps   int    `json:"fee_bps"` // included in every payment
	// Shards are the other shards.
	Shards    []BoardShard `json:"groups"`
	DemoChain *string      `json:"demo_chain_url"` // URL of the demo's chain; null = none
}

// BoardShard is another shard: the board reads its feed at WS and links to its board at
// Base.
type BoardShard struct {
	Name    string   `json:"name"`
	Base    string   `json:"base_url"`
	WS      string   `json:"ws_url"`
	Symbols []string `json:"symbols"`
}

// newBoard returns the built files of the board, and the template of the wallet page.
func newBoard(policy []byte) (files []download, wallet string, err error) {
	built, err := board.Files()
	if err != nil {
		return nil, "", err
	}
	for _, f := range built {
		if f.Name == board.Desk || f.Name == board.DeskScript {
			continue
		}
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

// boardConfigPage renders boardConfig for the network of the nodes.
type boardConfigPage struct {
	document boardConfig // without the network
	network  func() string
	cache    wire.PageCache[string]
}

func newBoardConfig(o *Options) *boardConfigPage {
	c := boardConfig{
		Service: o.About.Service, Operator: o.About.Operator,
		Base: o.URLs.Base, API: o.URLs.API, WS: o.URLs.WS, Refresh: refreshSeconds, FeeBps: o.FeeBps,
		Shards: append([]BoardShard{}, o.Shards...),
	}
	if o.DemoChain != "" {
		c.DemoChain = &o.DemoChain
	}
	return &boardConfigPage{document: c, network: o.Network}
}

func (b *boardConfigPage) serve([]byte) (*wire.Page, *wire.Problem) {
	network := b.network()
	if p := b.cache.Get(network); p != nil {
		return p, nil
	}
	c := b.document
	c.Network = network
	return b.cache.Put(network, wire.NewPage(marshal(&c))), nil
}

// marshal encodes a document that encoding/json can always encode.
func marshal(document any) []byte {
	body, err := json.Marshal(document)
	if err != nil {
		panic(fmt.Sprintf("httpgw: encode %T: %v", document, err))
	}
	return body
}

// contentPolicy returns the Content-Security-Policy of the pages. It allows their own
// files, the service's addresses and redirect targets, the feeds of other shards and, in
// a demo, the chain.
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

// originOf returns the origin of a URL, or "" if it has none that is valid in a policy.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(u.Host, " ;,'\"\\") {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// fileRoutes returns the routes of a page and its files. They are not limited, because a
// page without its script cannot show an error.
func fileRoutes(files []download) []wire.Route {
	table := make([]wire.Route, 0, len(files))
	for _, f := range files {
		var in wire.Group // only the page is listed
		if f.page.Policy != nil {
			in = wire.GroupBoard
		}
		table = append(table, wire.Get(f.path, wire.OnREST, wire.LiveData, wire.Unlimited, in, f.page.Serve))
	}
	return table
}
