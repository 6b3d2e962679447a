package httpgw

import (
	"encoding/json"
	"net/url"
	"strings"
	"sync"

	"blockdesk/httpgw/board"
)

const (
	pathBoardPage   = "/board"
	pathBoardFolder = pathBoardPage + "/"
	pathBoardConfig = pathBoardFolder + "config.json"

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
	// DemoChain is where the demo's own chain is; null where there is none.
	DemoChain *string `json:"demo_chain_url"`
}

// humanPages are the pages for people, with what depends on the public URLs: they
// are known when the addresses are listened on, hence the functions.
type humanPages struct {
	files  []download
	wallet string // the template of the wallet page
	config func() *page
	// policy is the Content-Security-Policy of the pages.
	policy func() []byte
}

// newHumanPages reads the built files.
func newHumanPages(g *Gateway) (*humanPages, error) {
	files, err := board.Files()
	if err != nil {
		return nil, err
	}
	h := &humanPages{
		config: sync.OnceValue(func() *page { return g.boardConfig() }),
		policy: sync.OnceValue(func() []byte { return contentPolicy(g.URLs(), g.opts.DemoChain) }),
	}
	for _, f := range files {
		if f.Name == board.Wallet {
			h.wallet = string(f.Body)
			continue
		}
		p := hashPage(f.Body)
		p.media = f.Media
		at := pathBoardFolder + f.Name
		if f.Name == board.Page {
			at, p.policy = pathBoardPage, h.policy
		}
		h.files = append(h.files, download{at, p})
	}
	return h, nil
}

func (g *Gateway) boardConfig() *page {
	urls, about := g.URLs(), &g.opts.Description
	c := boardConfig{
		Service: about.Service, Operator: about.Operator, Network: ExecutionNetwork,
		Base: urls.Base, API: urls.API, WS: urls.WS, Refresh: refreshSeconds,
	}
	if chain := g.opts.DemoChain; chain != "" {
		c.DemoChain = &chain
	}
	body, err := json.Marshal(&c)
	if err != nil {
		panic("httpgw: a configuration that cannot be encoded: " + err.Error())
	}
	return hashPage(body)
}

// contentPolicy allows the pages their own files, the service's addresses and,
// in a demo, its chain.
func contentPolicy(urls URLs, demoChain string) []byte {
	connect := "'self'"
	for _, at := range []string{urls.Base, urls.WS, demoChain} {
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

// routes are the board and its files. They cost no token: a page that cannot load
// its script says nothing.
func (h *humanPages) routes() []route {
	table := []route{{
		path: pathBoardConfig, method: methodGet, surfaces: onBase | onAPI, cache: liveData, limit: unlimited,
		read: func([]byte) (*page, *problem) { return h.config(), nil },
	}}
	for _, f := range h.files {
		var in group // the files are the page's own
		if f.path == pathBoardPage {
			in = groupBoard
		}
		table = append(table, route{
			path: f.path, method: methodGet, surfaces: onBase | onAPI, cache: liveData, limit: unlimited, group: in,
			read: func([]byte) (*page, *problem) { return f.page, nil },
		})
	}
	return table
}
