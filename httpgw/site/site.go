package site

import (
	"slices"

	"blockdesk/catalog"
	"blockdesk/httpgw/wire"
)

// Options configures the site. For the fields without a comment, see httpgw.Options.
type Options struct {
	About           *wire.Description
	URLs            catalog.URLs
	Specification   []byte
	Downloads       *Downloads
	DemoChain       string
	FeeBps          int
	RedirectTargets []string
	Shards          []BoardShard          // the other shards
	Facts           func() *catalog.Facts // of the wallet page; nil = not served
	Network         func() string         // httpgw.Dependencies.Network, never nil
}

// Endpoints serves the site. It is safe for concurrent use.
type Endpoints struct {
	o         Options
	downloads []download
	board     []download
	reference []download // the API reference
	config    *boardConfigPage
	wallet    *walletPage
}

// New returns the site. An error means that the embedded pages are incomplete.
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

// Routes returns the routes of the surface.
func (e *Endpoints) Routes() []wire.Route {
	table := append(e.specificationRoutes(), e.downloadRoutes()...)
	table = append(table, fileRoutes(e.board)...)
	table = append(table, wire.Get(PathBoardConfig, wire.OnREST, wire.LiveData, wire.Unlimited, "", e.config.serve))
	if e.wallet == nil {
		return table
	}
	wallet := wire.Get(PathWallet, wire.OnBase, wire.LiveData, wire.MarketLimit, "", e.wallet.serve)
	wallet.NotOnFollower = true // browsers do not resend a token after a follower's redirect
	return append(table, wallet)
}
