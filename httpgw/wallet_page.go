package httpgw

import (
	"bytes"
	"html/template"

	"blockdesk/catalog"
)

// pathWallet is the page that wallets show of the service (spec, 4.2).
const pathWallet = "/wallet"

const htmlType = "text/html; charset=utf-8"

// walletPage returns what renders the page by its template: the same tokens,
// accounts and addresses as the catalog's documents of these facts. What a wallet
// does here is the page's script.
func walletPage(text string) func(*catalog.Facts) []byte {
	page := template.Must(template.New("wallet").Parse(text))
	return func(f *catalog.Facts) []byte {
		var out bytes.Buffer
		if err := page.Execute(&out, catalog.WalletView(f)); err != nil {
			panic("httpgw: a page that cannot be rendered: " + err.Error())
		}
		return out.Bytes()
	}
}
