package site

import (
	"bytes"
	"html/template"

	"blockdesk/catalog"
	"blockdesk/httpgw/wire"
)

// PathWallet is the page that wallets show of the service (spec, 4.2).
const PathWallet = "/wallet"

// walletPage renders the wallet page by its template: the same tokens, accounts and
// addresses as the catalog's documents of the same facts. What a wallet does here is
// the page's script.
type walletPage struct {
	template *template.Template
	policy   []byte
	facts    func() *catalog.Facts
	kept     wire.PageCache[*catalog.Facts]
}

func newWalletPage(text string, policy []byte, facts func() *catalog.Facts) *walletPage {
	return &walletPage{template: template.Must(template.New("wallet").Parse(text)), policy: policy, facts: facts}
}

func (w *walletPage) serve([]byte) (*wire.Page, *wire.Problem) {
	f := w.facts()
	if p := w.kept.Get(f); p != nil {
		return p, nil
	}
	var out bytes.Buffer
	if err := w.template.Execute(&out, catalog.WalletView(f)); err != nil {
		panic("httpgw: a page that cannot be rendered: " + err.Error())
	}
	p := wire.NewPage(out.Bytes())
	p.Media, p.Policy = wire.HTMLType, w.policy
	return w.kept.Put(f, p), nil
}
