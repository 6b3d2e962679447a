package rfq

import (
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine/event"
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

// servePay answers the GET of a transaction request: who asks for the payment.
func (e *Endpoints) servePay(segment []byte) (*wire.Page, *wire.Problem) {
	h, problem := e.findClaim(segment)
	if problem != nil {
		return nil, problem
	}
	label := ""
	if t := e.backend.View().Ticket(h.Claim.Terms.Ticket); t != nil {
		label = t.Label
	}
	dst := wire.AppendText([]byte(`{"label":`), payLabel(label))
	dst = wire.AppendText(append(dst, `,"icon":`...), e.urls.Base+pathIcon)
	return wire.NewPage(append(dst, '}')), nil
}

// pathIcon is the picture that wallets show beside the label.
const pathIcon = "/board/icon.svg"

// payAccount is the body of the POST of a transaction request.
var payAccount = []wire.Member{{Name: "account", Kind: wire.TextMember, MaxLen: wire.MaxAddressText}}

// postPay answers the POST of a transaction request: the payment, with a fresh blockhash, for
// the wallet that has taken the claim and no other.
func (e *Endpoints) postPay(p *wire.Post) (*wire.Answer, *wire.Problem) {
	h, problem := e.findClaim(p.Segment)
	if problem != nil {
		return nil, problem
	}
	var m wire.Members
	if bad := wire.DecodeObject(p.Body, payAccount, &m); bad != nil {
		return nil, bad
	}
	switch account, ok := wire.ParseAddress(m.Get(0)); {
	case !ok:
		return nil, wire.InvalidMember(payAccount[0].Name, "not_an_address")
	case account != h.Claim.Wallet:
		return nil, wire.InvalidMember(payAccount[0].Name, "other_wallet")
	case h.Claim.Mode != rfq.Modular || h.Claim.State != rfq.ClaimReserved:
		return nil, terms.Refusal(event.ReasonClaimState)
	}
	pack, bad := e.freshPackage(h.Claim.ID)
	if bad != nil {
		return nil, bad
	}
	dst := append(make([]byte, 0, 256+2*len(pack.Transaction)), `{"transaction":"`...)
	dst = append(base64.StdEncoding.AppendEncode(dst, pack.Transaction), `","message":`...)
	return &wire.Answer{Status: 200, Body: append(wire.AppendText(dst, "Claim "+pack.Memo), '}')}, nil
}

// freshPackage returns a fresh transaction of a reserved claim.
func (e *Endpoints) freshPackage(id market.ClaimID) (*desk.Package, *wire.Problem) {
	const later = "Ask again later."
	if e.backend.Settlement == nil || e.backend.Settlement.Ready() != nil {
		return nil, terms.ChainUnavailable(later)
	}
	ctx, cancel := context.WithTimeout(context.Background(), terms.SettlementTimeout)
	defer cancel()
	pack, err := e.backend.Settlement.FreshPackage(ctx, id)
	switch {
	case errors.Is(err, desk.ErrUnknownBuild):
		return nil, terms.Refusal(event.ReasonUnknownClaim)
	case err != nil:
		return nil, terms.SettlementProblem(err, later)
	}
	return &pack, nil
}
