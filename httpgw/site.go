package httpgw

import (
	"slices"

	"blockdesk/catalog"
)

// siteOptions are what the site is made of.
type siteOptions struct {
	About *Description
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
	// Elsewhere are URLs that pages for people may follow a redirect to.
	Elsewhere []string
	// Groups are the other groups that instruments are split over.
	Groups []boardGroup
	// Facts are what the wallet page is made of; nil: it is not served.
	Facts func() *catalog.Facts
}

// siteEndpoints are the site: the board, the wallet page, the specification with the
// page that shows it, the downloads and the description of the service. Any
// goroutine may use it.
type siteEndpoints struct {
	o         siteOptions
	downloads []download
	board     []download
	reference []download // of the page that shows the specification
	config    *page      // of the board
	wallet    *walletPage
}

func newSite(o siteOptions) (*siteEndpoints, error) {
	e := &siteEndpoints{o: o, config: newBoardConfig(&o)}
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
func (e *siteEndpoints) Routes() []route {
	table := append(e.specificationRoutes(), e.downloadRoutes()...)
	table = append(table, fileRoutes(e.board)...)
	table = append(table, route{
		path: pathBoardConfig, method: methodGet, surfaces: onBase | onAPI, cache: liveData, limit: unlimited,
		read: func([]byte) (*page, *problem) { return e.config, nil },
	})
	if e.wallet != nil {
		table = append(table, route{
			path: pathWallet, method: methodGet, surfaces: onBase, cache: liveData, limit: marketLimit,
			facts: true, // browsers take no token along to where a follower sends them
			read:  e.wallet.serve,
		})
	}
	return table
}
