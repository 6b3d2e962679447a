package rfq

import (
	"net/url"
	"strings"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Solana Pay, version 1.1 (docs/specification.md C.4): a claim as a URL that wallets open or
// scan. The transfer request has everything in it, and the wallet builds the payment; the
// transaction request is a link from which the wallet gets the payment.

// pathPay follows the path of a claim.
const pathPay = "/pay"

// solanaScheme begins both URLs.
const solanaScheme = "solana:"

// appendSolanaPay appends the member solana_pay of a modular claim, with its comma. The
// transaction request is null unless the service's address is https, which the specification
// demands.
func appendSolanaPay(dst []byte, w *terms.Writer, c *rfq.Claim, label string, pack *desk.Package, urls *catalog.URLs) []byte {
	dst = append(dst, `,"solana_pay":{"transfer_request":`...)
	dst = wire.AppendText(dst, transferRequest(w, c, label, pack))
	dst = append(dst, `,"transaction_request":`...)
	if !strings.HasPrefix(urls.Base, "https://") {
		return append(dst, "null}"...)
	}
	link := urls.Base + PathRFQ + "claims/" + string(market.AppendClaimID(nil, c.ID)) + pathPay
	return append(wire.AppendText(dst, solanaScheme+escape(link)), '}')
}

// transferRequest returns the URL of a claim's payment. Its amount is in whole units.
func transferRequest(w *terms.Writer, c *rfq.Claim, label string, pack *desk.Package) string {
	t := &c.Terms
	text := append([]byte(solanaScheme), wire.AddressText(t.PayTo)...)
	text = market.AppendDecimal(append(text, "?amount="...), t.Payment, t.Rail.Decimals())
	if t.Rail == market.RailUSDC {
		text = append(append(text, "&spl-token="...), wire.AddressText(w.View.Policy.USDCMint)...)
	}
	text = append(append(text, "&reference="...), wire.AddressText(pack.Reference)...)
	text = append(append(text, "&label="...), escape(payLabel(label))...)
	text = append(append(text, "&memo="...), escape(pack.Memo)...)
	return string(text)
}

// escape escapes a value of a URL's query, a space as %20, because not every wallet decodes "+".
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// payLabel is what a wallet shows as the source of a request.
func payLabel(label string) string {
	if label == "" {
		return "blockdesk"
	}
	return label
}

// pathIcon is the picture that wallets show beside the label.
const pathIcon = "/board/icon.svg"

// payAccount is the body of the POST of a transaction request.
var payAccount = []wire.Member{{Name: "account", Kind: wire.TextMember, MaxLen: wire.MaxAddressText}}
