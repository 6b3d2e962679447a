package httpgw

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// FuzzDvP sends any body and Authorization to the DvP routes: no panic, a known status
// and code, no echo, and the calls behind them have the values that encoding/json
// decodes.
func FuzzDvP(f *testing.F) {
	for i, body := range []string{
		challengeBody, issueBody, buildBody, submitBody, "{}", `{"signature":"` + proofText + `","build_id":"B000000000002e"}`,
		strings.Replace(buildBody, taker, marker, 1), strings.Replace(submitBody, signedTx, marker, 1), `{"taker":"","` + marker + `":1}`,
		strings.Replace(buildBody, "}", `,"fee_payer":"taker","quote_id":"Q000000000002d"}`, 1),
	} {
		f.Add(uint8(i), "Bearer "+secret, []byte(body))
	}
	f.Add(uint8(1), "Bearer "+marker, []byte(buildBody))
	rig := newDvPRig(f)
	paths := []string{terms.PathHandshake, terms.PathBuild, terms.PathSubmit}
	f.Fuzz(func(t *testing.T, at uint8, authorization string, body []byte) {
		path := paths[int(at)%len(paths)]
		ctx := gatewaytest.RequestFrom("192.0.2.1")
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.SetRequestURI(path)
		ctx.Request.Header.Set("Content-Type", "application/json")
		ctx.Request.Header.Set("Authorization", authorization)
		ctx.Request.SetBody(body)
		rig.desk.Requests, rig.dvp.sent, rig.keys.issues = nil, nil, nil
		rig.handlers[0].serve(ctx)
		status, answer := ctx.Response.StatusCode(), ctx.Response.Body()
		if bytes.Contains(answer, []byte(marker)) || bytes.Contains(ctx.Response.Header.Header(), []byte(marker)) {
			t.Fatalf("an echo: %s", answer)
		}
		asked := rig.desk.Last() != nil || len(rig.dvp.sent) > 0 || len(rig.keys.issues) > 0
		switch status {
		case 200, 201:
			checkDvP(t, rig, path, body)
		case 400, 403, 404, 409:
			switch e := gatewaytest.DecodeError(t, answer); e.Code {
			case wire.CodeInvalidJSON, wire.CodeInvalidField, wire.CodeMissingField, wire.CodeUnknownTicket, wire.CodeUnknownClaim, wire.CodeTokenRefused, wire.CodeRefused:
			default:
				t.Fatalf("code %s", e.Code)
			}
			if asked {
				t.Fatalf("status %d, and the desk or the settlement was called", status)
			}
		default:
			t.Fatalf("status %d: %s", status, answer)
		}
		if asked && path != terms.PathHandshake && !strings.HasSuffix(string(ctx.Request.Header.Peek("Authorization")), secret) {
			t.Fatalf("admitted by %q", authorization)
		}
	})
}

// checkDvP compares the calls behind the routes with the body as encoding/json decodes
// it.
func checkDvP(t *testing.T, rig *dvpRig, path string, body []byte) {
	t.Helper()
	var want struct {
		Pubkey, Nonce, Signature, Taker, Transaction string
		Order                                        string `json:"order_id"`
		Tranche                                      string `json:"tranche_id"`
		Build                                        string `json:"build_id"`
		Quote                                        string `json:"quote_id"`
		Payer                                        string `json:"fee_payer"`
	}
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatalf("took %q: %v", body, err)
	}
	sameSignature := func(s [64]byte) bool {
		return want.Signature == base58.Encode(s[:]) || want.Signature == base64.StdEncoding.EncodeToString(s[:])
	}
	switch path {
	case terms.PathHandshake:
		for _, call := range rig.keys.issues {
			if base58.Encode(call.key[:]) != want.Pubkey || call.nonce != want.Nonce || !sameSignature(call.proof) {
				t.Fatalf("issued to %+v for %q", call, body)
			}
		}
		if issued := len(rig.keys.issues) == 1; issued != (want.Signature != "") {
			t.Fatalf("issued: %v for %q", issued, body)
		}
	case terms.PathBuild:
		r := rig.desk.Last().(*rfq.TakeClaim)
		quote := ""
		if r.Quote != 0 {
			quote = string(market.AppendQuoteID(nil, r.Quote))
		}
		if base58.Encode(r.Wallet[:]) != want.Taker || want.Taker != taker || string(market.AppendTicketID(nil, r.Ticket)) != want.Order ||
			string(market.AppendTrancheID(nil, r.Ticket, r.Tranche)) != want.Tranche || quote != want.Quote || r.Mode != rfq.Atomic {
			t.Fatalf("asked %+v for %q", r, body)
		}
		if payer := rig.chain.payers[len(rig.chain.payers)-1]; (payer == desk.TakerPays) != (want.Payer == "taker") {
			t.Fatalf("payer %d for %q", payer, body)
		}
	case terms.PathSubmit:
		s := &rig.dvp.sent[0]
		if string(market.AppendBuildID(nil, s.Claim)) != want.Build || s.By != takerKey() {
			t.Fatalf("sent %+v for %q", s, body)
		}
		if whole := s.Transaction != nil; whole != (want.Transaction != "") || base64.StdEncoding.EncodeToString(s.Transaction) != want.Transaction ||
			!whole && !sameSignature(s.Signature) || len(s.Transaction) > wire.MaxTransaction || !whole && s.Signature == [64]byte{} {
			t.Fatalf("sent %+v for %q", s, body)
		}
	}
}
