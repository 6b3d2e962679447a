package site

import (
	"slices"

	"blockdesk/catalog"
	"blockdesk/httpgw/wire"
)

// Options are what the site is made of.
type Options struct {
	About *wire.Description
	URLs  catalog.URLs
	// Specification is the OpenAPI document, JSON that names the default addresses; see
	// publish. Empty: it is not served.
	Specification []byte
	// Downloads are the files below /public-sdk/. The AsyncAPI document among them is
	// published as the Specification is. nil: there are none.
	Downloads *Downloads
	// DemoChain is the URL of the local chain of a demo, where the pages for people
	// fund their sandbox wallet. Empty: there is none.
	DemoChain string
	// RedirectTargets are URLs that pages for people may follow a redirect to.
	RedirectTargets []string
	// Groups are the other groups that instruments are split over.
	Shards []BoardShard
	// Facts are what the wallet page is made of; nil: it is not served.
	Facts func() *catalog.Facts
}

// Endpoints are the site: the board, the wallet page, the specification with the
// page that shows it, the downloads and the description of the service. Any
// goroutine may use it.
type Endpoints struct {
	o         Options
	downloads []download
	board     []download
	reference []download // of the page that shows the specification
	config    *wire.Page // of the board
	wallet    *walletPage
}

// New returns the site. An error means that the built pages in the program are not
// whole.
func New(o Options) (*Endpoints, error) {
	e := &Endpoints{o: o, config: newBoardConfig(&o)}
	if o.Downloads != nil {
		e.downloads = slices.Clone(o.Downloads.all)
	}
	e.downloads = append(e.downloads, indexDownloads(e.downloads, len(o.Specification) > 0 && o.Downloads != nil)...)
	policy := contentPolicy(&o)
	files, wallet, err := newBoard(policy)
	if err != nil {
		return nil, err
	}
	e.board = files
	if o.Facts != nil {
		e.wallet = newWalletPage(wallet, policy, o.Facts)
	}
	e.reference, err = newReference()
	return e, err
}

// Routes returns the rows of the surface.
func (e *Endpoints) Routes() []wire.Route {
	table := append(e.specificationRoutes(), e.downloadRoutes()...)
	table = append(table, fileRoutes(e.board)...)
	table = append(table, wire.Get(PathBoardConfig, wire.OnREST, wire.LiveData, wire.Unlimited, "", e.config.Serve))
	if e.wallet == nil {
		return table
	}
	wallet := wire.Get(PathWallet, wire.OnBase, wire.LiveData, wire.MarketLimit, "", e.wallet.serve)
	wallet.NotOnFollower = true // browsers take no token along to where a follower sends them
	return append(table, wallet)
}
