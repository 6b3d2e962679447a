package httpgw

import (
	"bytes"
	_ "embed"
	"html/template"

	"blockdesk/httpgw/catalog"
)

// pathWallet is the page that wallets show of the service (spec, 4.2).
const pathWallet = "/wallet"

const htmlType = "text/html; charset=utf-8"

// walletHTML is the page's template. The page has no script, fetches nothing and
// sets nothing, and tells the browser so.
//
//go:embed wallet.html
var walletHTML string

// walletPage returns what renders the page: the same tokens, accounts and
// addresses as the catalog's documents of these facts.
func walletPage() func(*catalog.Facts) []byte {
	page := template.Must(template.New("wallet").Parse(walletHTML))
	return func(f *catalog.Facts) []byte {
		var out bytes.Buffer
		if err := page.Execute(&out, catalog.WalletView(f)); err != nil {
			panic("httpgw: a page that cannot be rendered: " + err.Error())
		}
		return out.Bytes()
	}
}
