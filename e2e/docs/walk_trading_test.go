package docs

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/tx"
	"blockdesk/service/demo"
)

// walkOfTrading has what a client does: sections 1.2, 1.5 and the POSTs of 4, 5 and 7.
var walkOfTrading = []step{
	{"5.2", []string{"The handshake: read the terms"}, onDesk, func(w *walk) { w.handshake(w.newKey()) }},
	{"3", []string{"A DvP access token is issued by a valid handshake", "a demo gives one a second"}, onDesk, func(w *walk) {
		w.equal("/api/v1/dvp/handshake", "token.issuance.window_s", json.Number("1"))
		w.answer(w.build(w.handshake(w.newKey()), `{}`), http.StatusBadRequest) // its token is admitted
	}},
	{"4.4", []string{"| GET `/api/v1/dvp/handshake` | | the terms |", "| POST `/api/v1/dvp/handshake` | `pubkey` |", "| POST `/api/v1/dvp/handshake` | `pubkey`, `nonce`, `signature` |"}, onDesk, func(w *walk) {
		w.equal("/api/v1/dvp/handshake", "protocol", "svc_dvp_handshake_v1")
		w.equal("/api/v1/dvp/handshake", "token.lifetime_s", json.Number("604800"))
		public, key := w.newKey()
		wrong := w.proof(public, func(nonce string) []byte { return ed25519.Sign(key, []byte(nonce+" ")) })
		w.refused(wrong, http.StatusBadRequest, "INVALID_FIELD")
	}},
	{"7", []string{"DvP requests that succeed are 200 with a detailed JSON body; the one that issues a token is 201."}, onDemo, func(w *walk) { w.deal() }},
	{"1.5", []string{"the service builds an unsigned v0 transaction with both transfers", "`build` never signs; `submit` broadcasts nothing without"}, onDemo, func(w *walk) { w.deal() }},
	{"4.4", []string{"| POST `/api/v1/dvp/build` |", "| POST `/api/v1/dvp/submit` |"}, onDemo, func(w *walk) { w.deal() }},
	{"5.1", []string{"`build` and `submit` need `Authorization: Bearer TOKEN` from the handshake."}, onDemo, func(w *walk) { w.deal() }},
	{"5.4", []string{"At submit the counterparty proves its key again"}, onDemo, func(w *walk) { w.deal() }},
	{"7", []string{"| 409 | `REFUS_DVP` |"}, onDemo, func(w *walk) {
		reserved := w.read(rfqRoot+"status", "open_tickets.reserved_usd")
		body := w.refused(w.build(w.token(), `{"order_id":"T2","tranche_id":"T2-1","fill_usd":"250","rail":"USDC"}`), http.StatusConflict, "REFUS_DVP")
		if body["reason"] != "empty_counterparty" || body["transaction"] != nil {
			w.t.Errorf("%v", body)
		}
		w.equal(rfqRoot+"status", "open_tickets.reserved_usd", reserved...)
	}},
	{"1.2", []string{"RFQ: a client reads tickets, asks for a quote, takes a claim"}, onDemo, func(w *walk) { w.sale() }},
	{"4.1", []string{"| POST `/rfq-native/modular-claim-take`", "| POST `/rfq-native/settlement/verify-payment`"}, onDemo, func(w *walk) { w.sale() }},
	{"4.1", []string{"| POST `/rfq-native/atomic-claim-ticket`"}, onDemo, func(w *walk) {
		for _, path := range []string{"/rfq-native/atomic-claim-ticket", rfqRoot + "atomic-claim-ticket"} {
			body := w.answer(w.post(path, w.order("T3", "T3-1")), http.StatusOK)
			x := w.unsigned(body)
			if signers := x.Message.Signers(); len(signers) != 2 || signers[0] == w.wallet() || !slices.Contains(signers, w.wallet()) {
				w.t.Errorf("signers %v", signers)
			}
		}
	}},
	{"C.1.2", []string{"Without a chain, orders, quotes, market data, FIX and the DvP handshake work; claims, `build` and `submit` answer `CHAIN_UNAVAILABLE`."}, onDown | onLimits, func(w *walk) {
		buyer := demo.Address(demo.Wallet(1))
		claim := `{"bot_wallet":"` + buyer + `","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`
		for _, path := range []string{"/rfq-native/modular-claim-take", "/rfq-native/atomic-claim-ticket"} {
			w.refused(w.post(path, claim), http.StatusServiceUnavailable, "CHAIN_UNAVAILABLE")
		}
		if w.is(onDown) {
			build := `{"order_id":"T1","tranche_id":"T1-1","fill_usd":"250","rail":"USDC","taker":"%s"}`
			public, key := w.newKey()
			w.refused(w.build(w.handshake(public, key), fmt.Sprintf(build, public)), http.StatusServiceUnavailable, "CHAIN_UNAVAILABLE")
		}
		if got := w.answer(w.quote("T1", "T1-1", "250", "USDC"), http.StatusOK); got["firm"] != false {
			w.t.Errorf("the quote is %v", got)
		}
		w.equal(rfqRoot+"status", "accepting", false)
		w.equal(statusPath, "fallback_active", true)
		if got := w.read(marketRoot+"pools", "pools.*.base_vault_balance_atoms"); slices.ContainsFunc(got, func(v any) bool { return v != nil && v != "0" }) {
			w.t.Errorf("pools have %v", got)
		}
	}},
}

// newKey returns a key and its address.
func (w *walk) newKey() (string, ed25519.PrivateKey) {
	w.t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return base58.Encode(public), key
}

// handshake takes the steps of 5.2 and returns the token.
func (w *walk) handshake(public string, key ed25519.PrivateKey) string {
	w.t.Helper()
	w.equal("/api/v1/dvp/handshake", "algorithm", "ed25519")
	grant := w.answer(w.proof(public, func(nonce string) []byte {
		if _, err := base64.StdEncoding.DecodeString(nonce); err != nil {
			w.t.Errorf("nonce %s: %v", nonce, err)
		}
		return ed25519.Sign(key, []byte(nonce))
	}), http.StatusCreated)
	const week = 7 * 24 * time.Hour
	if ends, err := time.Parse(time.RFC3339Nano, fmt.Sprint(grant["expires_at"])); err != nil || grant["expires_in"] != json.Number("604800") || time.Until(ends) > week || time.Until(ends) < week-time.Hour {
		w.t.Errorf("%v, %v", grant, err)
	}
	return grant["access_token"].(string)
}

// proof asks for a nonce and answers it, again while another token is too young.
func (w *walk) proof(public string, sign func(nonce string) []byte) (resp *http.Response) {
	w.t.Helper()
	await.True(w.t, "the second after the last token", func() bool {
		nonce := w.answer(w.post("/api/v1/dvp/handshake", programtest.JSON(map[string]string{"pubkey": public})), http.StatusOK)["nonce"].(string)
		resp = w.post("/api/v1/dvp/handshake", programtest.JSON(map[string]string{"pubkey": public, "nonce": nonce, "signature": base58.Encode(sign(nonce))}))
		return resp.StatusCode != http.StatusTooManyRequests
	})
	return resp
}

// build posts the body of a build with a token.
func (w *walk) build(token, body string) *http.Response {
	w.t.Helper()
	return w.post("/api/v1/dvp/build", body, "Authorization", "Bearer "+token)
}

// once runs a flow of a service once for all steps that speak of it. A step behind one that
// failed fails too.
type once struct {
	sync.Once
	failed bool
}

func (o *once) do(t *testing.T, flow func()) {
	t.Helper()
	o.Do(func() {
		o.failed = true
		flow()
		o.failed = t.Failed()
	})
	if o.failed && !t.Failed() {
		t.Error("the flow that decides it failed")
	}
}

// demoFlows are those of the demo, of which there is one.
var demoFlows struct {
	sale, deal once
	token      sync.Once
	bearer     string
}

// token returns the token of the demo's wallet.
func (w *walk) token() string {
	w.t.Helper()
	demoFlows.token.Do(func() { demoFlows.bearer = w.handshake(solana.Base58(w.wallet()), w.buyer.Key) })
	return demoFlows.bearer
}

// wallet returns the address of the demo's wallet.
func (w *walk) wallet() solana.Address { return solana.Address(w.buyer.Key[ed25519.SeedSize:]) }

// order returns the body of a claim.
func (w *walk) order(order, tranche string) string {
	return programtest.JSON(map[string]string{"bot_wallet": solana.Base58(w.wallet()), "order_id": order, "tranche_id": tranche, "fill_usd": "250"})
}

// unsigned returns the transaction of an answer, which nobody has signed.
func (w *walk) unsigned(body map[string]any) *tx.Transaction {
	w.t.Helper()
	text, _ := body["transaction"].(string)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		w.t.Fatal(err)
	}
	x, err := tx.Decode(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	const v0 = 0x80
	if x.Signed[0] != v0 || slices.ContainsFunc(x.Signatures, func(s solana.Signature) bool { return s != solana.Signature{} }) {
		w.t.Errorf("version %x, signatures %v", x.Signed[0], x.Signatures)
	}
	return x
}

// sale buys by a modular claim: quote, claim, payment, verification, delivery.
func (w *walk) sale() {
	demoFlows.sale.do(w.t, func() {
		quote := w.answer(w.quote("T1", "T1-1", "250", "USDC"), http.StatusOK)
		alias := w.answer(w.post(rfqRoot+"modular-claim-take", w.order("T1", "T1-1")), http.StatusOK)
		resp := w.post("/rfq-native/modular-claim-take", w.order("T1", "T1-1"))
		text := w.reread(resp)
		claim := w.answer(resp, http.StatusOK)
		w.unsigned(claim)
		if claim["state"] != "reserved" || claim["claim_id"] == alias["claim_id"] || quote["price_usd"] == nil {
			w.t.Errorf("claim %v beside %v", claim["claim_id"], alias["claim_id"])
		}
		verify := func(signature string, status int) (all []map[string]any) {
			body := programtest.JSON(map[string]string{"order_id": "T1", "tranche_id": "T1-1", "l1_signature": signature})
			for _, url := range []string{"/rfq-native/settlement/verify-payment", rfqRoot + "native/settlement/verify-payment", w.at.At.API + rfqRoot + "settlement/verify-payment"} {
				all = append(all, w.answer(w.post(url, body), status))
			}
			return all
		}
		for _, body := range verify(base58.Encode(make([]byte, ed25519.SignatureSize-1))+"2", http.StatusAccepted) {
			if body["state"] != "pending" || body["retry_after_ms"] == nil {
				w.t.Errorf("an unknown payment: %v", body)
			}
		}
		signature, err := w.buyer.Pay(w.t.Context(), strings.NewReader(text))
		if err != nil {
			w.t.Fatal(err)
		}
		w.settled(claim["claim_id"].(string))
		for _, body := range verify(signature, http.StatusOK) {
			if body["verified"] != true || body["claim_id"] != claim["claim_id"] {
				w.t.Errorf("the payment: %v", body)
			}
		}
		await.True(w.t, "the sale in the list", func() bool {
			return w.one(rfqRoot+"trades?symbol="+w.canonical(), "totals.trades_total") != json.Number("0")
		})
	})
}

// settled waits until a claim is settled.
func (w *walk) settled(claim string) {
	w.t.Helper()
	await.True(w.t, "claim "+claim+" settled", func() bool { return w.one(rfqRoot+"claims/"+claim, "state") == "settled" })
}

// deal buys by delivery versus payment.
func (w *walk) deal() {
	demoFlows.deal.do(w.t, func() {
		order := programtest.JSON(map[string]string{"order_id": "T2", "tranche_id": "T2-1", "fill_usd": "250", "rail": "USDC", "taker": solana.Base58(w.wallet())})
		w.refused(w.post("/api/v1/dvp/build", order), http.StatusForbidden, "TAKER_NON_ADMIS_JETON")
		resp := w.build(w.token(), order)
		text := w.reread(resp)
		built := w.answer(resp, http.StatusOK)
		if x := w.unsigned(built); len(x.Signatures) != 2 {
			w.t.Errorf("%d signers", len(x.Signatures))
		}
		submit := func(body any) *http.Response {
			return w.post("/api/v1/dvp/submit", programtest.JSON(body), "Authorization", "Bearer "+w.token())
		}
		stranger := base58.Encode(ed25519.Sign(demo.Key("stranger"), []byte("another message")))
		for reason, body := range map[string]any{
			"empty_counterparty": map[string]any{"build_id": built["build_id"], "transaction": built["transaction"]},
			"bad_signature":      map[string]any{"build_id": built["build_id"], "signature": stranger},
		} {
			if got := w.refused(submit(body), http.StatusConflict, "REFUS_DVP"); got["reason"] != reason || got["signature"] != nil {
				w.t.Errorf("want %s: %v", reason, got)
			}
		}
		signed, err := w.buyer.Sign(strings.NewReader(text))
		if err != nil {
			w.t.Fatal(err)
		}
		w.refused(w.post("/api/v1/dvp/submit", programtest.JSON(signed)), http.StatusForbidden, "TAKER_NON_ADMIS_JETON")
		done := w.answer(submit(signed), http.StatusOK)
		raw, err := base64.StdEncoding.DecodeString(fmt.Sprint(done["transaction"]))
		if err != nil {
			w.t.Fatal(err)
		}
		x, err := tx.Decode(raw)
		if err != nil || slices.Contains(x.Signatures, solana.Signature{}) || done["signature"] != base58.Encode(x.Signatures[0][:]) {
			w.t.Errorf("%v: %v", err, done)
		}
		w.settled(done["claim_id"].(string))
	})
}
