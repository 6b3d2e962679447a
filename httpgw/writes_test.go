package httpgw

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// TestQuote: the answer to a quote, byte for byte, and the request to the desk.
func TestQuote(t *testing.T) {
	w := newWriter(t, &fakeChain{})
	for _, fill := range []string{`"250"`, `250`} {
		got := w.post(t, rfqapi.PathRFQ+"quote", strings.Replace(quoteBody, `"250"`, fill, 1))
		const want = `{"ok":true,"quote_id":"Q000000000002d","order_id":"T7","tranche_id":"T7-2","ticket_label":"spring block",` +
			`"pair":"SLUSD/USDC","fill_usd":"250","rail":"USDC","reference_price_usd":"1.000000000","discount_bps":25,` +
			`"price_usd":"0.997500000","base_amount":"250.626566","base_amount_atoms":"250626566",` +
			`"payment":{"rail":"USDC","mint":"%s","amount":"250.000001","amount_atoms":"250000001","pay_to":"%s"},` +
			`"fee_bps":500,"fee":{"included":true,"amount":"12.500000","amount_atoms":"12500000"},` +
			`"issued_at":"2026-11-20T12:00:04.123Z","valid_until":"2026-11-20T12:00:19.123Z","firm":true}`
		text := func(a market.Address) string { return strings.Trim(string(wire.AppendAddress(nil, a)), `"`) }
		if s := fmt.Sprintf(want, text(gatewaytest.Address(100)), text(gatewaytest.Address(120))); got.status != 200 || string(got.body) != s {
			t.Fatalf("status %d: %s\nwant %s", got.status, got.body, s)
		}
		if got.header.Get("Cache-Control") != "no-store" || got.header.Get("Content-Type") != wire.JSONType || got.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("headers %v", got.header)
		}
		asked := w.desk.Last().(*rfq.RequestQuote)
		if *asked != (rfq.RequestQuote{Ticket: 7, Tranche: 2, Fill: 1, Rail: market.RailUSDC}) {
			t.Errorf("asked %+v", asked)
		}
	}
	got := w.post(t, rfqapi.PathRFQ+"quote", `{"order_id":"T11","tranche_id":"T11-1","fill_usd":1000,"rail":"SOL"}`)
	var q struct {
		Label   string `json:"ticket_label"`
		Payment struct {
			Mint   *string
			Amount string
		}
	}
	if err := json.Unmarshal(got.body, &q); err != nil || q.Label != w.desk.Current.Ticket(11).Label || q.Payment.Mint != nil || q.Payment.Amount != "1.000000001" {
		t.Errorf("a label that tries to break out, and SOL: %v %s", err, got.body)
	}
}

// claimAnswer is the answer to a claim as a client would declare it.
type claimAnswer struct {
	OK      bool   `json:"ok"`
	ClaimID string `json:"claim_id"`
	State   string `json:"state"`
	Claim   struct {
		Way    string  `json:"way"`
		Wallet string  `json:"bot_wallet"`
		Quote  *string `json:"quote_id"`
		Order  string  `json:"order_id"`
		Fill   string  `json:"fill_usd"`
		Base   string  `json:"base_amount_atoms"`
		FeeBps int     `json:"fee_bps"`
	} `json:"claim"`
	Payment struct {
		Rail      string  `json:"rail"`
		Mint      *string `json:"mint"`
		Atoms     string  `json:"amount_atoms"`
		PayTo     string  `json:"pay_to"`
		Reference string  `json:"reference"`
		Memo      string  `json:"memo"`
	} `json:"payment"`
	Transaction []byte    `json:"transaction"`
	ExpiresAt   time.Time `json:"expires_at"`
	Verify      struct {
		URL    string   `json:"url"`
		Fields []string `json:"fields"`
	} `json:"verify"`
	Submit struct { // of an atomic claim
		URL     string   `json:"url"`
		BuildID string   `json:"build_id"`
		Fields  []string `json:"fields"`
	} `json:"submit"`
}

// TestClaim: modular and atomic claims and their aliases, with a settlement.
func TestClaim(t *testing.T) {
	chain := &fakeChain{}
	w := newWriter(t, chain)
	for path, way := range map[string]rfq.SettlementMode{
		rfqapi.PathModular: rfq.Modular, rfqapi.PathNativeModular: rfq.Modular, rfqapi.PathAtomic: rfq.Atomic, rfqapi.PathNativeAtomic: rfq.Atomic,
	} {
		body := strings.Replace(claimBody, "}", `,"payment_rail":"SOL","quote_id":"Q000000000002d"}`, 1)
		got := w.post(t, path, body)
		var a claimAnswer
		if err := json.Unmarshal(got.body, &a); err != nil || got.status != 200 {
			t.Fatalf("%s: status %d %v: %s", path, got.status, err, got.body)
		}
		asked := w.desk.Last().(*rfq.TakeClaim)
		address, _ := wire.ParseAddress([]byte(wallet))
		if *asked != (rfq.TakeClaim{Ticket: 7, Tranche: 2, Fill: 1, Rail: market.RailSOL, Mode: way, Quote: 77, Wallet: address, Client: testClient}) {
			t.Errorf("%s: asked %+v", path, asked)
		}
		if !a.OK || a.ClaimID != gatewaytest.ClaimText(78) || a.State != "reserved" || a.Claim.Way != map[rfq.SettlementMode]string{rfq.Modular: "modular", rfq.Atomic: "atomic"}[way] || a.Claim.Wallet != wallet ||
			*a.Claim.Quote != "Q000000000002d" || a.Claim.Order != "T7" || a.Claim.Fill != "250" || a.Claim.Base != "250626566" {
			t.Errorf("%s: %s", path, got.body)
		}
		if p := a.Payment; p.Rail != "SOL" || p.Mint != nil || p.Atoms != "250000001" || p.Memo != `claim "78" \` || p.Reference == "" || p.PayTo == "" {
			t.Errorf("%s: payment %+v", path, p)
		}
		if string(a.Transaction) != "transaction of 78" || a.ExpiresAt.UnixMilli() != (gatewaytest.ViewTime+120e9)/1e6 {
			t.Errorf("%s: %s", path, got.body)
		}
		if a.Verify.URL != "https://native.example"+rfqapi.PathNativeVerify || !slices.Equal(a.Verify.Fields, []string{"order_id", "tranche_id", "l1_signature"}) {
			t.Errorf("%s: verify %+v", path, a.Verify)
		}
	}
	got := w.post(t, rfqapi.PathAtomic, claimBody)
	var a claimAnswer
	if err := json.Unmarshal(got.body, &a); err != nil || a.Submit.URL != w.g.URLs().Base+terms.PathSubmit ||
		a.Submit.BuildID != "B000000000002e" || !slices.Equal(a.Submit.Fields, []string{"build_id", "transaction"}) {
		t.Errorf("submit: %v %+v", err, a.Submit)
	}
	if payer := chain.payers[len(chain.payers)-1]; payer != desk.DeskPays {
		t.Errorf("the fee of an atomic claim is paid by %d", payer)
	}
	got = w.post(t, rfqapi.PathModular, claimBody)
	if payer := chain.payers[len(chain.payers)-1]; payer != desk.TakerPays || strings.Contains(string(got.body), "submit") {
		t.Errorf("a modular claim: payer %d: %s", payer, got.body)
	}
	if asked := w.desk.Last().(*rfq.TakeClaim); asked.Rail != market.RailUSDC || asked.Quote != 0 {
		t.Errorf("defaults: asked %+v", asked)
	}
}

// TestNoChain: without a ready settlement, valid requests get 503 and reserve nothing,
// and invalid ones get their error.
func TestNoChain(t *testing.T) {
	for name, chain := range map[string]terms.Settlement{"none": nil, "not ready": &fakeChain{down: errors.New("no node answers")}} {
		w := newWriter(t, chain)
		paths := []string{rfqapi.PathModular, rfqapi.PathNativeModular, rfqapi.PathAtomic, rfqapi.PathNativeAtomic}
		bodies := map[string]string{claimBody: wire.CodeChainUnavailable, strings.Replace(claimBody, "T7-2", "T7-9", 1): wire.CodeUnknownTicket, "{}": wire.CodeMissingField}
		if chain == nil {
			for _, path := range []string{rfqapi.PathNativeVerify, rfqapi.PathAliasVerify} {
				got := w.post(t, path, paymentBody)
				if e := gatewaytest.DecodeError(t, got.body); got.status != 503 || e.Code != wire.CodeChainUnavailable || got.header.Get("Retry-After") != "10" {
					t.Errorf("%s: status %d: %s", path, got.status, got.body)
				}
			}
		}
		for _, path := range paths {
			for body, code := range bodies {
				got := w.post(t, path, body)
				e := gatewaytest.DecodeError(t, got.body)
				if e.Code != code || code == wire.CodeChainUnavailable && (got.status != 503 || got.header.Get("Retry-After") != "10") {
					t.Errorf("%s: %s: status %d: %s", name, path, got.status, got.body)
				}
			}
		}
		if len(w.desk.Requests) != 0 {
			t.Errorf("%s: the desk was asked %d times", name, len(w.desk.Requests))
		}
		if got := w.post(t, rfqapi.PathRFQ+"quote", quoteBody); got.status != 200 {
			t.Errorf("%s: a quote: status %d", name, got.status)
		}
	}
	w := newWriter(t, &fakeChain{failing: errors.New("10.0.0.7 refuses")})
	got := w.post(t, rfqapi.PathModular, claimBody)
	if e := gatewaytest.DecodeError(t, got.body); got.status != 503 || e.Code != wire.CodeChainUnavailable || strings.Contains(string(got.body), "10.0.0.7") {
		t.Errorf("a package that fails: status %d: %s", got.status, got.body)
	}
}

// TestWrongMembers: each member with each value that is valid JSON and invalid for it.
func TestWrongMembers(t *testing.T) {
	zeros := strings.Repeat("1", 32)
	for _, c := range []struct {
		path, body, from, to string
		status               int
		code, field, reason  string
	}{
		{rfqapi.PathRFQ + "quote", strings.ReplaceAll(quoteBody, "T7", "T6"), "", "", 404, wire.CodeUnknownTicket, "order_id", "unknown_ticket"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"T7"`, `"T8"`, 404, wire.CodeUnknownTicket, "tranche_id", "unknown_tranche"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"T7"`, `"T07"`, 404, wire.CodeUnknownTicket, "order_id", "unknown_ticket"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"T7"`, `"nope"`, 404, wire.CodeUnknownTicket, "order_id", "unknown_ticket"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"T7-2"`, `"T7-3"`, 404, wire.CodeUnknownTicket, "tranche_id", "unknown_tranche"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"T7-2"`, `"T8-1"`, 404, wire.CodeUnknownTicket, "tranche_id", "unknown_tranche"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"T7-2"`, `"2"`, 404, wire.CodeUnknownTicket, "tranche_id", "unknown_tranche"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"250"`, `"251"`, 400, wire.CodeInvalidField, "fill_usd", "not_on_ladder"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"250"`, `"250.00"`, 400, wire.CodeInvalidField, "fill_usd", "not_on_ladder"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"250"`, `0`, 400, wire.CodeInvalidField, "fill_usd", "not_on_ladder"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"250"`, `250.0`, 400, wire.CodeInvalidField, "fill_usd", "not_whole"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"USDC"`, `"usdc"`, 400, wire.CodeInvalidField, "rail", "unknown_rail"},
		{rfqapi.PathRFQ + "quote", quoteBody, `"USDC"`, `null`, 400, wire.CodeMissingField, "rail", ""},
		{rfqapi.PathRFQ + "quote", quoteBody, `"T7"`, `"` + strings.Repeat("T", 65) + `"`, 400, wire.CodeInvalidField, "order_id", "too_long"},
		{rfqapi.PathModular, claimBody, wallet, base58.Encode([]byte(strings.Repeat("x", 31))), 400, wire.CodeInvalidField, "bot_wallet", "not_an_address"},
		{rfqapi.PathModular, claimBody, wallet, strings.Replace(wallet, wallet[:1], "0", 1), 400, wire.CodeInvalidField, "bot_wallet", "not_an_address"},
		{rfqapi.PathModular, claimBody, wallet, strings.Repeat("z", 44), 400, wire.CodeInvalidField, "bot_wallet", "not_an_address"},
		{rfqapi.PathModular, claimBody, wallet, zeros, 400, wire.CodeInvalidField, "bot_wallet", "not_an_address"},
		{rfqapi.PathModular, claimBody, wallet, wallet + "11", 400, wire.CodeInvalidField, "bot_wallet", "too_long"},
		{rfqapi.PathModular, claimBody, "}", `,"payment_rail":"BTC"}`, 400, wire.CodeInvalidField, "payment_rail", "unknown_rail"},
		{rfqapi.PathModular, claimBody, "}", `,"quote_id":"Q1"}`, 400, wire.CodeInvalidField, "quote_id", "not_an_id"},
		{rfqapi.PathModular, claimBody, "}", `,"rail":"USDC"}`, 400, wire.CodeInvalidField, "rail", "unknown_field"},
		{rfqapi.PathAtomic, claimBody, `"T7"`, `"T99"`, 404, wire.CodeUnknownTicket, "order_id", "unknown_ticket"},
		{rfqapi.PathAliasVerify, paymentBody, signature, signature[3:], 400, wire.CodeInvalidField, "l1_signature", "not_a_signature"},
		{rfqapi.PathAliasVerify, paymentBody, signature, strings.Repeat("1", 64), 400, wire.CodeInvalidField, "l1_signature", "not_a_signature"},
		{rfqapi.PathAliasVerify, paymentBody, "}", `,"claim_id":"C1"}`, 404, wire.CodeUnknownClaim, "claim_id", "unknown_claim"},
		{rfqapi.PathAliasVerify, paymentBody, "}", `,"ticket_label":"autumn block"}`, 400, wire.CodeInvalidField, "ticket_label", "mismatch"},
		{rfqapi.PathAliasVerify, paymentBody, "}", `,"fill_usd":"3"}`, 400, wire.CodeInvalidField, "fill_usd", "not_on_ladder"},
		{rfqapi.PathAliasVerify, paymentBody, "}", `,"payment_rail":"sol"}`, 400, wire.CodeInvalidField, "payment_rail", "unknown_rail"},
		{rfqapi.PathAliasVerify, paymentBody, `"T7"`, `"T8"`, 404, wire.CodeUnknownTicket, "tranche_id", "unknown_tranche"},
		{rfqapi.PathAliasVerify, paymentBody, `"T7-2"`, `"T7-3"`, 404, wire.CodeUnknownTicket, "tranche_id", "unknown_tranche"},
	} {
		w := newWriter(t, &fakeChain{})
		body := strings.Replace(c.body, c.from, c.to, 1)
		got := w.post(t, c.path, body)
		e := gatewaytest.DecodeError(t, got.body)
		if got.status != c.status || e.Code != c.code || e.Field != c.field || e.Reason != c.reason {
			t.Errorf("%s %s: status %d: %s\nwant %d %s %s %s", c.path, body, got.status, got.body, c.status, c.code, c.field, c.reason)
		}
		if w.desk.Last() != nil {
			t.Errorf("%s %s: the desk was asked", c.path, body)
		}
	}
}

// TestRefusalOnTheWire: a refusal of the desk has this route's field name; a replayed
// one is marked.
func TestRefusalOnTheWire(t *testing.T) {
	w := newWriter(t, &fakeChain{})
	for _, c := range []struct {
		path, body          string
		reason              event.Reason
		status              int
		code, field, header string
	}{
		{rfqapi.PathRFQ + "quote", quoteBody, event.ReasonRailNotAccepted, 400, wire.CodeInvalidField, "rail", ""},
		{rfqapi.PathModular, claimBody, event.ReasonRailNotAccepted, 400, wire.CodeInvalidField, "payment_rail", "true"},
		{rfqapi.PathModular, claimBody, event.ReasonCapacityExhausted, 409, wire.CodeCapacityExhausted, "", ""},
		{rfqapi.PathAtomic, claimBody, event.ReasonLocked, 409, wire.CodeRefused, "", "true"},
		{rfqapi.PathAtomic, claimBody, event.ReasonQuoteExpired, 409, wire.CodeClaimExpired, "quote_id", ""},
		{rfqapi.PathAtomic, claimBody, event.ReasonDeskFull, 503, wire.CodeOverloaded, "", ""},
	} {
		w.desk.Result = func(rfq.Request) (*desk.Result, error) {
			return &desk.Result{Outcome: rfq.Outcome{Reason: c.reason}, Replayed: c.header == "true"}, nil
		}
		got := w.post(t, c.path, c.body)
		e := gatewaytest.DecodeError(t, got.body)
		if got.status != c.status || e.Code != c.code || e.Field != c.field || e.Reason != c.reason.String() || got.header.Get("Idempotency-Replayed") != c.header {
			t.Errorf("%s %s: status %d %v: %s", c.path, c.reason, got.status, got.header, got.body)
		}
	}
}

// TestDeskErrors: each error of the desk; none of its texts is published.
func TestDeskErrors(t *testing.T) {
	w := newWriter(t, nil)
	for _, c := range []struct {
		err          error
		status       int
		code, reason string
		retry        string
	}{
		{desk.ErrBusy, 503, wire.CodeOverloaded, "busy", "1"},
		{desk.ErrReadOnly, 503, wire.CodeReadOnly, "", "10"},
		{desk.ErrStopped, 503, wire.CodeOverloaded, "stopping", "1"},
		{desk.ErrTimeout, 503, wire.CodeOverloaded, "outcome_unknown", "1"},
		{fmt.Errorf("%w: %w", desk.ErrReadOnly, desk.ErrUnknown), 503, wire.CodeOverloaded, "outcome_unknown", "1"},
		{desk.ErrConflict, 409, wire.CodeIdempotencyConflict, "", ""},
		{errors.New("secret of the store"), 500, wire.CodeInternal, "", ""},
	} {
		w.desk.Result = func(rfq.Request) (*desk.Result, error) { return nil, fmt.Errorf("wrapped: %w", c.err) }
		got := w.post(t, rfqapi.PathRFQ+"quote", quoteBody)
		e := gatewaytest.DecodeError(t, got.body)
		if got.status != c.status || e.Code != c.code || e.Reason != c.reason || got.header.Get("Retry-After") != c.retry {
			t.Errorf("%v: status %d %v: %s", c.err, got.status, got.header, got.body)
		}
		if strings.Contains(string(got.body), "secret") || strings.Contains(string(got.body), "wrapped") {
			t.Errorf("%v: %s", c.err, got.body)
		}
	}
}

// TestIdempotencyKeys: which requests are the same to the desk.
func TestIdempotencyKeys(t *testing.T) {
	w := newWriter(t, &fakeChain{})
	keyOf := func(path, body, key string) rfq.IdempotencyKey {
		t.Helper()
		if got := w.post(t, path, body, "Idempotency-Key: "+key); got.status != 200 {
			t.Fatalf("%s: status %d: %s", path, got.status, got.body)
		}
		return w.desk.Last().Head().Key
	}
	spaced := "\n{ \"fill_usd\" : 250,\t\"tranche_id\":\"T7-2\", \"order_id\":\"T7\",\"bot_wallet\":\"" + wallet +
		`","payment_rail":"USDC","quote_id":null}`
	one := keyOf(rfqapi.PathModular, claimBody, "k")
	if one == (rfq.IdempotencyKey{}) {
		t.Fatal("no key")
	}
	for _, same := range []rfq.IdempotencyKey{keyOf(rfqapi.PathNativeModular, claimBody, "k"), keyOf(rfqapi.PathModular, spaced, "k")} {
		if same != one {
			t.Errorf("the alias, other white space, 250 for \"250\", a default written out: %x, want %x", same, one)
		}
	}
	if other := keyOf(rfqapi.PathModular, strings.Replace(claimBody, `"250"`, `"1000"`, 1), "k"); other.ID != one.ID || other.Body == one.Body {
		t.Errorf("another body: %x, %x", other, one)
	}
	for name, other := range map[string]rfq.IdempotencyKey{
		"another key": keyOf(rfqapi.PathModular, claimBody, "K"), "another operation": keyOf(rfqapi.PathAtomic, claimBody, "k"),
		"a quote": keyOf(rfqapi.PathRFQ+"quote", quoteBody, "k"),
	} {
		if other.ID == one.ID {
			t.Errorf("%s: the same id", name)
		}
	}
	w.post(t, rfqapi.PathModular, claimBody)
	if none := w.desk.Last().Head().Key; none != (rfq.IdempotencyKey{}) {
		t.Errorf("without the header: %x", none)
	}
	w.desk.Result = func(r rfq.Request) (*desk.Result, error) {
		result := gatewaytest.Grant(w.desk.Current, r)
		result.Replayed = true
		return result, nil
	}
	first := w.post(t, rfqapi.PathModular, claimBody, "Idempotency-Key: k")
	second := w.post(t, rfqapi.PathNativeModular, spaced, "Idempotency-Key: k")
	if first.header.Get("Idempotency-Replayed") != "true" || !reflect.DeepEqual(first.body, second.body) || first.header.Get("X-Request-Id") == second.header.Get("X-Request-Id") {
		t.Errorf("replayed: %v %s\n%v %s", first.header, first.body, second.header, second.body)
	}
}

// TestIdempotencyHeader: valid and invalid values of the header.
func TestIdempotencyHeader(t *testing.T) {
	w := newWriter(t, nil)
	for _, c := range []struct{ lines, reason string }{
		{"Idempotency-Key: a", ""},
		{"idempotency-key: " + strings.Repeat("~", wire.MaxIdempotencyKey), ""},
		{`Idempotency-Key: "quoted-as-the-draft-says"`, ""},
		{"Idempotency-Key: " + strings.Repeat("~", wire.MaxIdempotencyKey+1), "too_long"},
		{"Idempotency-Key:", "empty"},
		{"Idempotency-Key: a b", "not_visible_ascii"},
		{"Idempotency-Key: caf\xc3\xa9", "not_visible_ascii"},
		{"Idempotency-Key: a\tb", "not_visible_ascii"},
		{"Idempotency-Key: a\r\nIdempotency-Key: a", "repeated"},
	} {
		got := w.post(t, rfqapi.PathRFQ+"quote", quoteBody, c.lines)
		if c.reason == "" {
			if got.status != 200 || w.desk.Last().Head().Key == (rfq.IdempotencyKey{}) {
				t.Errorf("%q: status %d: %s", c.lines, got.status, got.body)
			}
			continue
		}
		if e := gatewaytest.DecodeError(t, got.body); got.status != 400 || e.Code != wire.CodeInvalidField || e.Field != "Idempotency-Key" || e.Reason != c.reason {
			t.Errorf("%q: status %d: %s", c.lines, got.status, got.body)
		}
	}
}

// TestMediaTypes: valid and invalid headers of the body.
func TestMediaTypes(t *testing.T) {
	w := newWriter(t, nil)
	for lines, reason := range map[string]string{
		"Content-Type: application/json":                               "",
		"Content-Type: Application/JSON ;charset=UTF-8":                "",
		`content-type: application/json; charset="utf-8"; v=1`:         "",
		"Content-Type: application/json\r\nContent-Encoding: identity": "",
		"X: y":                                           "content_type",
		"Content-Type:":                                  "content_type",
		"Content-Type: text/plain":                       "content_type",
		"Content-Type: application/json5":                "content_type",
		"Content-Type: application/problem+json":         "content_type",
		"Content-Type: application/json; charset=latin1": "content_type",
		"Content-Type: application/json; charset=utf-8; charset=utf-16":      "content_type",
		"Content-Type: application/json; =":                                  "content_type",
		"Content-Type: application/json, text/plain":                         "content_type",
		"Content-Type: application/x-www-form-urlencoded":                    "content_type",
		"Content-Type: application/json\r\nContent-Encoding: gzip":           "content_encoding",
		"Content-Type: application/json\r\nContent-Encoding: identity, gzip": "content_encoding",
	} {
		raw := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: test\r\n%s\r\nContent-Length: %d\r\n\r\n%s", rfqapi.PathRFQ+"quote", lines, len(quoteBody), quoteBody)
		got := do(t, w.handlers[0], raw)
		if reason == "" {
			if got.status != 200 {
				t.Errorf("%q: status %d: %s", lines, got.status, got.body)
			}
			continue
		}
		if e := gatewaytest.DecodeError(t, got.body); got.status != 415 || e.Code != wire.CodeUnsupportedMedia || e.Reason != reason {
			t.Errorf("%q: status %d: %s", lines, got.status, got.body)
		}
	}
}
