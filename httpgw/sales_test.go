package httpgw

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/feed"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

func get(t *testing.T, w *testWriter, target string) reply {
	t.Helper()
	return do(t, w.handlers[0], "GET "+target+" HTTP/1.1\r\nHost: test\r\n\r\n")
}

// TestRFQTrades: the list of sales has what was sold, by which transaction, and nothing that
// names the client; it pages, and its records are those of the stream.
func TestRFQTrades(t *testing.T) {
	chain := &fakeChain{delivery: [64]byte{5}}
	w := newWriter(t, chain)
	const path = rfqapi.PathTrades + "?symbol=SLUSD%2FUSDC"
	if got := get(t, w, path); string(got.body) != `{"ok":true,"symbol":"SLUSD/USDC","totals":{"trades_total":0,"volume_usd":"0.000000","fees_usd":"0.000000",`+
		`"trades_24h":0,"volume_24h_usd":"0.000000"},"next_before":null,"rfq_trades":[]}` {
		t.Errorf("without sales: %s", got.body)
	}
	for n := uint64(3); n > 0; n-- {
		claim := gatewaytest.Grant(w.desk.Current, &rfq.TakeClaim{Ticket: 7, Tranche: 2, Fill: 1, Rail: market.RailUSDC, Mode: rfq.Atomic, Wallet: gatewaytest.Address(33)}).Claim
		claim.State = rfq.ClaimSettled
		w.desk.Sold = append(w.desk.Sold, desk.Sale{
			Number: n, Seq: 100 + n, Claim: *claim, Totals: desk.SalesTotals{Count: n, VolumeUSD: market.USD(n * 250_000_000), FeesUSD: market.USD(n * 12_500_000)},
		})
	}
	got := get(t, w, path+"&limit=2")
	const sale = `{"trade_id":3,"price_usd":"0.997500000","fill_usd":"250","base_amount":"250.626566","base_amount_atoms":"250626566","rail":"USDC",` +
		`"payment_amount":"250.000001","payment_amount_atoms":"250000001","way":"atomic","discount_bps":25,"fee_bps":500,"ts":"2026-11-20T12:00:04.123Z","l1_signature":"`
	text := string(got.body)
	if got.status != 200 || !strings.Contains(text, `"totals":{"trades_total":3,"volume_usd":"750.000000","fees_usd":"37.500000"`) ||
		!strings.Contains(text, `"next_before":2,"rfq_trades":[`+sale) || strings.Count(text, "trade_id") != 2 {
		t.Errorf("status %d: %s", got.status, text)
	}
	for _, secret := range []string{wire.AddressText(gatewaytest.Address(33)), gatewaytest.ClaimText(78), "T7", "wallet", "claim"} {
		if strings.Contains(text, secret) {
			t.Errorf("the list has %q: %s", secret, text)
		}
	}
	if got := get(t, w, path+"&limit=2&before=2"); strings.Count(string(got.body), "trade_id") != 1 || !strings.Contains(string(got.body), `"next_before":null`) {
		t.Errorf("the last page: %s", got.body)
	}
	var records []string
	all, err := w.g.Sales(0, 1, feed.MaxSales)
	for _, s := range all {
		records = append(records, string(s.Record))
	}
	if err != nil || len(records) != 2 || all[0].Number != 3 || all[0].Seq != 103 || !strings.Contains(text, strings.Join(records, ",")) {
		t.Errorf("the stream's: %v, %v", records, err)
	}
	for query, code := range map[string]string{
		"": wire.CodeMissingField, "?symbol=X/Y": wire.CodeUnknownSymbol, "?symbol=SLUSD/USDC&limit=101": wire.CodeInvalidLimit,
		"?symbol=SLUSD/USDC&limit=0": wire.CodeInvalidLimit, "?symbol=SLUSD/USDC&before=0": wire.CodeInvalidField, "?symbol=SLUSD/USDC&wallet=x": wire.CodeInvalidField,
	} {
		if got := get(t, w, rfqapi.PathTrades+query); got.status != 400 || gatewaytest.DecodeError(t, got.body).Code != code {
			t.Errorf("%q: status %d: %s", query, got.status, got.body)
		}
	}
	chain.lost = errors.New("the store is on fire")
	if got := get(t, w, path); got.status != 500 {
		t.Errorf("a store that cannot be read: status %d: %s", got.status, got.body)
	}
}

// TestSolanaPay holds the URLs of a claim and the transaction request to the specification of
// Solana Pay 1.1 (docs/specification.md C.4).
func TestSolanaPay(t *testing.T) {
	chain := &fakeChain{}
	deps := testDependencies()
	deps.Desk, deps.Settlement = &gatewaytest.ScriptedDesk{Current: gatewaytest.FixedView()}, chain
	for _, base := range []string{"", "https://desk.example"} {
		w := newWriterOf(t, deps, func(o *Options) { o.URLs = catalog.URLs{Base: base} })
		for rail, mint := range map[string]string{"USDC": wire.AddressText(gatewaytest.Address(100)), "SOL": ""} {
			got := w.post(t, rfqapi.PathModular, strings.Replace(claimBody, "}", `,"payment_rail":"`+rail+`"}`, 1))
			var a struct {
				Payment struct {
					PayTo     string `json:"pay_to"`
					Amount    string
					Reference string
					Memo      string
				}
				Pay struct {
					Transfer    string  `json:"transfer_request"`
					Transaction *string `json:"transaction_request"`
				} `json:"solana_pay"`
			}
			if err := json.Unmarshal(got.body, &a); err != nil {
				t.Fatalf("%v: %s", err, got.body)
			}
			u, err := url.Parse(a.Pay.Transfer)
			if err != nil || u.Scheme != "solana" || u.Opaque != a.Payment.PayTo || strings.Contains(a.Pay.Transfer, "+") {
				t.Errorf("%s: %s: %v", rail, a.Pay.Transfer, err)
			}
			q, want := u.Query(), url.Values{
				"amount": {a.Payment.Amount}, "reference": {a.Payment.Reference}, "label": {"spring block"}, "memo": {a.Payment.Memo},
			}
			if mint != "" {
				want["spl-token"] = []string{mint}
			}
			if q.Encode() != want.Encode() {
				t.Errorf("%s: %v; want %v", rail, q, want)
			}
			if base == "" {
				if a.Pay.Transaction != nil {
					t.Errorf("a link that is not https: %s", *a.Pay.Transaction)
				}
				continue
			}
			link, err := url.QueryUnescape(strings.TrimPrefix(*a.Pay.Transaction, "solana:"))
			if want := base + claimsPath + gatewaytest.ClaimText(78) + "/pay"; err != nil || link != want {
				t.Errorf("link %s, want %s", link, want)
			}
		}
	}
	w := newWriterOf(t, deps)
	if got := w.post(t, rfqapi.PathAtomic, claimBody); strings.Contains(string(got.body), "solana_pay") {
		t.Errorf("an atomic claim: %s", got.body)
	}

	path := claimsPath + gatewaytest.ClaimText(78) + "/pay"
	address, _ := wire.ParseAddress([]byte(wallet))
	claim := func(mode rfq.SettlementMode, state rfq.ClaimState) {
		w.desk.History[78] = &desk.History{Claim: rfq.Claim{ID: 78, Mode: mode, State: state, Wallet: address, Terms: rfq.Terms{Ticket: 7}}}
	}
	claim(rfq.Modular, rfq.ClaimReserved)
	if got := get(t, w, path); got.status != 200 || string(got.body) != `{"label":"spring block","icon":"`+w.g.URLs().Base+`/board/icon.svg"}` {
		t.Errorf("GET: status %d: %s", got.status, got.body)
	}
	body := `{"account":"` + wallet + `"}`
	var a struct {
		Transaction []byte
		Message     string
	}
	if got := w.post(t, path, body); got.status != 200 || json.Unmarshal(got.body, &a) != nil || string(a.Transaction) != "transaction of 78" || a.Message == "" {
		t.Errorf("POST: status %d: %s", got.status, got.body)
	}
	for text, reason := range map[string]string{
		`{"account":"` + wire.AddressText(gatewaytest.Address(1)) + `"}`: "other_wallet", `{"account":"x"}`: "not_an_address",
	} {
		if got := w.post(t, path, text); got.status != 400 || gatewaytest.DecodeError(t, got.body).Reason != reason {
			t.Errorf("%s: status %d: %s", text, got.status, got.body)
		}
	}
	if got := w.post(t, claimsPath+gatewaytest.ClaimText(79)+"/pay", body); got.status != 404 {
		t.Errorf("an unknown claim: status %d: %s", got.status, got.body)
	}
	if got := w.post(t, claimsPath+gatewaytest.ClaimText(79)+"/pay", `{"account":"x"}`); got.status != 400 {
		t.Errorf("a wrong body for an unknown claim: status %d: %s", got.status, got.body)
	}
	for _, other := range []rfq.Claim{{Mode: rfq.Atomic, State: rfq.ClaimReserved}, {Mode: rfq.Modular, State: rfq.ClaimPaid}} {
		claim(other.Mode, other.State)
		if got := w.post(t, path, body); got.status != 409 {
			t.Errorf("%+v: status %d: %s", other, got.status, got.body)
		}
	}
	claim(rfq.Modular, rfq.ClaimReserved)
	chain.down = errors.New("no node answers")
	if got := w.post(t, path, body); got.status != 503 {
		t.Errorf("without a chain: status %d: %s", got.status, got.body)
	}
}
