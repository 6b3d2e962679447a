package httpgw

import (
	"encoding/json"
	"net/url"
	"slices"
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
	// Groups are the other groups that instruments are split over.
	Groups []boardGroup `json:"groups"`
	// DemoChain is where the demo's own chain is; null where there is none.
	DemoChain *string `json:"demo_chain_url"`
}

// boardGroup is another group: the board reads its feed at WS, and its own board is
// at Base.
type boardGroup struct {
	Name    string   `json:"name"`
	Base    string   `json:"base_url"`
	WS      string   `json:"ws_url"`
	Symbols []string `json:"symbols"`
}

// boardGroups returns the other groups at the first node of each, where clients are
// sent.
func boardGroups(o *Groups) []boardGroup {
	others := []boardGroup{}
	if o == nil {
		return others
	}
	for i := range o.All {
		g := &o.All[i]
		if g.Number == o.Own {
			continue
		}
		one := boardGroup{Name: g.Name, Base: g.Nodes[0].Base, WS: g.Nodes[0].WS}
		for j := range g.Instruments {
			one.Symbols = append(one.Symbols, g.Instruments[j].Symbol)
		}
		others = append(others, one)
	}
	return others
}

// humanPages are the pages for people, with what depends on the public URLs: they
// are known when the addresses are listened on, hence the functions.
type humanPages struct {
	files []download
	// reference are the files of the page that shows the specification.
	reference []download
	wallet    string // the template of the wallet page
	config    func() *page
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
		policy: sync.OnceValue(func() []byte {
			reached := slices.Clone(g.opts.Elsewhere)
			for _, other := range boardGroups(g.opts.Groups) {
				reached = append(reached, other.WS)
			}
			return contentPolicy(g.URLs(), g.opts.DemoChain, reached)
		}),
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
		h.files = append(h.files, download{path: at, page: p})
	}
	h.reference, err = newReference()
	return h, err
}

func (g *Gateway) boardConfig() *page {
	urls, about := g.URLs(), &g.opts.Description
	c := boardConfig{
		Service: about.Service, Operator: about.Operator, Network: ExecutionNetwork,
		Base: urls.Base, API: urls.API, WS: urls.WS, Refresh: refreshSeconds,
		Groups: boardGroups(g.opts.Groups),
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

// contentPolicy allows the pages their own files, the service's addresses, where it
// sends requests on to, other groups' feeds and, in a demo, its chain.
func contentPolicy(urls URLs, demoChain string, elsewhere []string) []byte {
	connect := "'self'"
	for _, at := range append([]string{urls.Base, urls.WS, demoChain}, elsewhere...) {
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

// routes are the board and its files.
func (h *humanPages) routes() []route {
	return append(fileRoutes(h.files), route{
		path: pathBoardConfig, method: methodGet, surfaces: onBase | onAPI, cache: liveData, limit: unlimited,
		read: func([]byte) (*page, *problem) { return h.config(), nil },
	})
}

// fileRoutes are a page and its files. They cost no token: a page that cannot load
// its script says nothing.
func fileRoutes(files []download) []route {
	table := make([]route, 0, len(files))
	for _, f := range files {
		var in group // the files are the page's own
		if f.page.policy != nil {
			in = groupBoard
		}
		table = append(table, route{
			path: f.path, method: methodGet, surfaces: onBase | onAPI, cache: liveData, limit: unlimited, group: in,
			read: func([]byte) (*page, *problem) { return f.page, nil },
		})
	}
	return table
}
