package site

import (
	"bytes"
	"html/template"

	"blockdesk/catalog"
	"blockdesk/httpgw/wire"
)

// PathWallet is the wallet page (docs/specification.md 4.2).
const PathWallet = "/wallet"

// walletPage renders the wallet page's template from the catalog's facts.
type walletPage struct {
	template *template.Template
	policy   []byte
	facts    func() *catalog.Facts
	cache    wire.PageCache[*catalog.Facts]
}

func newWalletPage(text string, policy []byte, facts func() *catalog.Facts) *walletPage {
	return &walletPage{template: template.Must(template.New("wallet").Parse(text)), policy: policy, facts: facts}
}

func (w *walletPage) serve([]byte) (*wire.Page, *wire.Problem) {
	f := w.facts()
	if p := w.cache.Get(f); p != nil {
		return p, nil
	}
	var out bytes.Buffer
	if err := w.template.Execute(&out, catalog.WalletView(f)); err != nil {
		panic("httpgw: render the wallet page: " + err.Error())
	}
	p := wire.NewPage(out.Bytes())
	p.Media, p.Policy = wire.HTMLType, w.policy
	return w.cache.Put(f, p), nil
}
