package httpgw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// marker is a text of requests that no answer may contain.
const marker = "zqMARKERqz"

// FuzzPost sends any body, media type and key to the writing routes: no panic, a known
// status and code, no echo, and the desk gets the values that encoding/json decodes.
func FuzzPost(f *testing.F) {
	for i, seed := range []struct{ media, key, body string }{
		{"application/json", "", quoteBody},
		{"application/json; charset=utf-8", "k", claimBody},
		{"application/json", marker, paymentBody},
		{"text/" + marker, "\x7f", `{"` + marker + `":"` + marker + `"}`},
		{"application/json", "", strings.Replace(quoteBody, "T7-2", marker, 1)},
		{"application/json", "", strings.Replace(claimBody, wallet, marker, 1)},
		{"application/json", "", strings.Replace(paymentBody, "}", `,"ticket_label":"`+marker+`"}`, 1)},
		{"application/json", "", `{"fill_usd":` + strings.Repeat("9", 100) + `,"rail":[[{"a":null}]]}`},
		{"", "", ""},
	} {
		f.Add(uint8(i), seed.media, seed.key, []byte(seed.body))
	}
	w := newWriter(f, &fakeChain{verdict: desk.Verdict{Pending: time.Second}})
	paths := []string{rfqapi.PathRFQ + "quote", rfqapi.PathModular, rfqapi.PathAliasVerify, rfqapi.PathAtomic, rfqapi.PathNativeAtomic, rfqapi.PathNativeVerify, rfqapi.PathNativeModular}
	f.Fuzz(func(t *testing.T, at uint8, media, key string, body []byte) {
		path := paths[int(at)%len(paths)]
		ctx := gatewaytest.RequestFrom("192.0.2.1")
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.SetRequestURI(path)
		ctx.Request.Header.Set("Content-Type", media)
		if key != "" {
			ctx.Request.Header.Set("Idempotency-Key", key)
		}
		ctx.Request.SetBody(body)
		w.desk.Requests = nil
		w.handlers[0].serve(ctx)
		status, answer := ctx.Response.StatusCode(), ctx.Response.Body()
		if bytes.Contains(answer, []byte(marker)) || bytes.Contains(ctx.Response.Header.Header(), []byte(marker)) {
			t.Fatalf("an echo: %s", answer)
		}
		switch status {
		case 200:
			checkAsked(t, w.desk.Last(), body)
		case 202:
		case 400, 404, 415:
			e := gatewaytest.DecodeError(t, answer)
			switch e.Code {
			case wire.CodeInvalidJSON, wire.CodeInvalidField, wire.CodeMissingField, wire.CodeUnknownTicket, wire.CodeUnknownClaim, wire.CodeUnsupportedMedia:
			default:
				t.Fatalf("code %s", e.Code)
			}
			if w.desk.Last() != nil {
				t.Fatalf("status %d, and the desk was asked", status)
			}
		default:
			t.Fatalf("status %d: %s", status, answer)
		}
	})
}

// checkAsked compares the request to the desk with the body as encoding/json decodes
// it.
func checkAsked(t *testing.T, asked rfq.Request, body []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var want struct {
		Order   string `json:"order_id"`
		Tranche string `json:"tranche_id"`
		Fill    any    `json:"fill_usd"`
		Rail    string `json:"rail"`
		Payment string `json:"payment_rail"`
		Wallet  string `json:"bot_wallet"`
	}
	if err := d.Decode(&want); err != nil {
		t.Fatalf("took %q: %v", body, err)
	}
	var ticket market.TicketID
	var tranche market.TrancheID
	var fill market.FillUSD
	var rail market.Rail
	switch r := asked.(type) {
	case *rfq.RequestQuote:
		ticket, tranche, fill, rail = r.Ticket, r.Tranche, r.Fill, r.Rail
	case *rfq.TakeClaim:
		ticket, tranche, fill, rail = r.Ticket, r.Tranche, r.Fill, r.Rail
		if base58.Encode(r.Wallet[:]) != want.Wallet {
			t.Fatalf("wallet of %q", body)
		}
		if want.Rail = want.Payment; want.Rail == "" {
			want.Rail = "USDC"
		}
	}
	order := string(market.AppendTicketID(nil, ticket))
	if order != want.Order || string(market.AppendTrancheID(nil, ticket, tranche)) != want.Tranche ||
		fill.String() != fmt.Sprint(want.Fill) || rail.String() != want.Rail {
		t.Fatalf("asked %+v for %q", asked, body)
	}
}
