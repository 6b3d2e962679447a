package docs

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/e2e/programtest"
)

// walkOfLimits has section 8, and what a limit refuses.
var walkOfLimits = []step{
	{"8", []string{"token issuance | 1 per client address and hour", "These are the defaults; an operator may configure other rates"}, onLimits, func(w *walk) {
		terms := w.json("/api/v1/dvp/handshake")
		for place, want := range map[string]json.Number{"token.issuance.window_s": "3600", "token.issuance.per_ip": "1", "token.lifetime_s": "604800", "limits.build_submit.per_ip": "3"} {
			if got := valuesAt(terms, strings.Split(place, ".")); len(got) != 1 || got[0] != want {
				w.t.Errorf("%s is %v", place, got)
			}
		}
	}},
	{"3", []string{"A client address gets one token an hour; a second request in that hour is 429"}, onLimits, func(w *walk) { w.secondToken() }},
	{"5.3", []string{"One token per client address and hour."}, onLimits, func(w *walk) { w.secondToken() }},
	{"7", []string{"| 429 | `EMISSION_PAR_IP_TROP_RECENTE` |"}, onLimits, func(w *walk) { w.secondToken() }},
	{"8", []string{"| DvP build and submit | 3 requests a minute per client address |"}, onLimits, func(w *walk) {
		w.limited(8, 3, time.Minute/3, func() *http.Response { return w.build(w.limitsToken(), "{}") })
	}},
	{"8", []string{"| market data REST | 60 requests a minute per client address, burst 20 |"}, onLimits, func(w *walk) {
		w.limited(150, 20, time.Second, func() *http.Response { return w.get(marketRoot + "symbols") })
	}},
	{"7", []string{"| 429 | `RATE_LIMITED` | a limit of part 8 |"}, onLimits, func(w *walk) {
		for range 100 {
			if resp := w.get(marketRoot + "symbols"); resp.StatusCode == http.StatusTooManyRequests {
				w.refused(resp, http.StatusTooManyRequests, "RATE_LIMITED")
				if resp.Header.Get("Retry-After") == "" {
					w.t.Error("without Retry-After")
				}
				return
			}
		}
		w.t.Error("a hundred requests are not too many")
	}},
	{"8", []string{"| `limit` of depth, of klines | 100, 1440 |"}, onAll, func(w *walk) {
		for path, most := range map[string]string{"depth": "100", "klines": "1440"} {
			w.json(marketRoot + path + "?symbol=" + w.canonical() + "&limit=" + most)
			w.refused(w.get(marketRoot+path+"?symbol="+w.canonical()+"&limit="+most+"1"), http.StatusBadRequest, "INVALID_LIMIT")
		}
	}},
	{"8", []string{"| fill sizes | 1.3 |"}, onDesk, func(w *walk) {
		w.refused(w.quote("T1", "T1-1", "251", "USDC"), http.StatusBadRequest, "INVALID_FIELD")
	}},
}

// limitsFlow is the handshake of the service with limits, of which there is one.
var limitsFlow struct {
	first, second once
	token         string
}

// limitsToken returns the only token of the hour.
func (w *walk) limitsToken() string {
	w.t.Helper()
	limitsFlow.first.do(w.t, func() { limitsFlow.token = w.handshake(w.newKey()) })
	return limitsFlow.token
}

// secondToken asks for another one, with another key.
func (w *walk) secondToken() {
	w.t.Helper()
	w.limitsToken()
	limitsFlow.second.do(w.t, func() {
		public, key := w.newKey()
		nonce := w.answer(w.post("/api/v1/dvp/handshake", programtest.JSON(map[string]string{"pubkey": public})), http.StatusOK)["nonce"].(string)
		proof := map[string]string{"pubkey": public, "nonce": nonce, "signature": base58.Encode(ed25519.Sign(key, []byte(nonce)))}
		body := w.refused(w.post("/api/v1/dvp/handshake", programtest.JSON(proof)), http.StatusTooManyRequests, "EMISSION_PAR_IP_TROP_RECENTE")
		if body["access_token"] != nil {
			w.t.Errorf("%v", body)
		}
	})
}

// limited sends requests, of which a burst is admitted, and one more each interval that the
// requests take.
func (w *walk) limited(requests, burst int, interval time.Duration, send func() *http.Response) {
	w.t.Helper()
	began := time.Now()
	admitted := 0
	for range requests {
		if send().StatusCode != http.StatusTooManyRequests {
			admitted++
		}
	}
	most := burst + int(time.Since(began)/interval) + 1
	if admitted > most || admitted == 0 || most < requests && admitted == requests {
		w.t.Errorf("%d of %d requests are admitted in %v, at most %d may be", admitted, requests, time.Since(began), most)
	}
}

// reread returns the body of an answer, which can be read again.
func (w *walk) reread(resp *http.Response) string {
	w.t.Helper()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(all))
	return string(all)
}
