package docs

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/service/demo"
	"blockdesk/service/servicetest"
)

// walk reads a running service as the sentences of docs/specification.md say.
type walk struct {
	t     *testing.T
	at    *programtest.Service
	chain bool // it has a chain
}

// step is a sentence of the specification, or the part of it that decides, and what a
// reader of the running service finds.
type step struct {
	point, sentence string
	check           func(w *walk)
}

// The walk has the sentences of sections 1 to 8 that a reader of one service can see by
// itself. Settlement, books on chain, the WebSocket, limits and clusters have tests of
// their own; docs/safety.md names those of money.
var walkSteps = []step{
	{"1.3", "A fill has one of the sizes of a public ladder: 250, 1000, 25000, 250000, 1000000 or 2500000 USD, each with a discount.", func(w *walk) {
		w.equal("/api/v1/rfq/levels", "levels.*.fill_usd", "250", "1000", "25000", "250000", "1000000", "2500000")
		if got := w.read("/api/v1/rfq/levels", "levels.*.discount_bps"); len(got) != 6 {
			w.t.Errorf("discounts: %v", got)
		}
	}},
	{"1.7", "`control_chain_rpc_compatible` is false", func(w *walk) {
		w.equal(statusPath, "control_chain_rpc_compatible", false)
		w.equal(statusPath, "control_chain_id", json.Number("1492"))
	}},
	{"1.7", "`degradation_state.reasons` has `not_mainnet`", func(w *walk) {
		if !w.chain {
			return
		}
		w.equal(statusPath, "execution_network", "solana-local")
		if got := w.read(statusPath, "degradation_state.reasons.*"); !slices.Contains(got, any("not_mainnet")) {
			w.t.Errorf("reasons %v", got)
		}
	}},
	{"1.8", "There are four surfaces", func(w *walk) {
		roles, _ := w.json(statusPath)["service_roles"].(map[string]any)
		if got := slices.Sorted(maps.Keys(roles)); !slices.Equal(got, []string{"native_backend", "public_frontend", "public_mirror", "registry_backend"}) {
			w.t.Errorf("surfaces %v", got)
		}
	}},
	{"1.10", "`montant_verifie_independamment` is always false", func(w *walk) {
		text := w.body("/api/v1/exchange/board")
		if !strings.Contains(text, `"montant_verifie_independamment":false`) || strings.Contains(text, `"montant_verifie_independamment":true`) {
			w.t.Errorf("the board says %.300s", text)
		}
	}},
	{"1.11", "The fee is 5 percent: `fee_bps` 500, `fee_rate` 0.05, `fee_model` `fixed_5_percent`.", func(w *walk) {
		for _, path := range []string{statusPath, marketRoot + "fees", marketRoot + "lite/latest-fees"} {
			w.equal(path, "fee_bps", json.Number("500"))
			w.equal(path, "fee_rate", json.Number("0.05"))
			w.equal(path, "fee_model", "fixed_5_percent")
		}
	}},
	{"1.12", "JSON is UTF-8, with `Content-Type: application/json; charset=utf-8`.", func(w *walk) {
		for _, d := range w.documents() {
			if got := w.get(d.URL).Header.Get("Content-Type"); got != "application/json; charset=utf-8" {
				w.t.Errorf("%s: %s", d.URL, got)
			}
		}
	}},
	{"2.2", "`active_rails` and `rail_priority` list `USDC` before `SOL`.", func(w *walk) {
		for _, path := range []string{"/api/v1/rfq/rails", "/api/v1/rfq/status", "/api/v1/rfq/robot-manifest"} {
			w.equal(path, "active_rails.*", "USDC", "SOL")
			w.equal(path, "rail_priority.*", "USDC", "SOL")
		}
	}},
	{"2.2", "`partial_fill_sizes_usd` lists the sizes of 1.3 as strings, in ascending order.", func(w *walk) {
		for _, path := range []string{"/api/v1/rfq/status", "/api/v1/rfq/robot-manifest"} {
			w.equal(path, "partial_fill_sizes_usd.*", "250", "1000", "25000", "250000", "1000000", "2500000")
		}
	}},
	{"2.3", "`required_fields` (`order_id`, `tranche_id`, `ticket_label`, `fill_usd`, `payment_rail`, `l1_signature`)", func(w *walk) {
		const path = "/api/v1/rfq/robot-manifest"
		w.equal(path, "schema", "svc_rfq_robot_manifest_v1")
		w.equal(path, "required_fields.*", "order_id", "tranche_id", "ticket_label", "fill_usd", "payment_rail", "l1_signature")
		w.members(path, "", "ok", "schema", "name", "updated_at", "truth_rule", "active_rails", "rail_priority", "partial_fill_sizes_usd",
			"read_endpoints", "claim_endpoints", "signature_submission", "required_fields", "examples")
		w.members(path, "read_endpoints", "public_mirror_8012", "registry_backend_8000", "native_backend_1492")
		w.members(path, "claim_endpoints", "preferred_modular_claim", "preferred_atomic_claim", "public_alias_modular_claim", "public_alias_atomic_claim")
		w.members(path, "signature_submission", "primary_1492", "public_alias_1492", "fallback_8000")
		w.members(path, "examples", "read_book", "read_levels", "build_claim", "verify_signature")
	}},
	{"2.4", "`GET /`: `ok`, `service`, `version`, `mise_a_jour`, `operateur`", func(w *walk) {
		w.members("/", "", "ok", "service", "version", "mise_a_jour", "operateur", "contacts", "encodage", "specification_openapi",
			"sdk_public", "github", "endpoints", "qualification", "erreur_route_inconnue")
		w.members("/", "qualification", "libelle", "nature")
	}},
	{"2.5", "Counts are integers, money is decimal strings, `fee_rate` is a number and `delta_24h_percent` a number or null", func(w *walk) {
		s := w.json(statusPath)
		for _, name := range []string{"swaps_total", "traders_estimated_total"} {
			if n, ok := s[name].(json.Number); !ok || strings.ContainsAny(n.String(), ".eE") {
				w.t.Errorf("%s is %v", name, s[name])
			}
		}
		for _, name := range []string{"volume_24h_usd", "volume_7d_usd", "volume_cumulative_usd", "fees_cumulative_usd", "visible_liquidity_usd"} {
			if text, ok := s[name].(string); !ok || !isAmount(text) {
				w.t.Errorf("%s is %v", name, s[name])
			}
		}
		if _, ok := s["delta_24h_percent"].(json.Number); !ok && s["delta_24h_percent"] != nil {
			w.t.Errorf("delta_24h_percent is %v", s["delta_24h_percent"])
		}
		if s["delta_24h_percent"] == nil && s["delta_24h_status"] != "no_indexed_reference_trade_in_24h_window" {
			w.t.Errorf("without a change the status is %v", s["delta_24h_status"])
		}
	}},
	{"2.5", "| `selection_rule` | `latest_snapshot_by_timestamp` |", func(w *walk) {
		w.equal(statusPath, "snapshot_hierarchy.selection_rule", "latest_snapshot_by_timestamp")
	}},
	{"2.5", "`canonical_settlement_rail`; the settlement asset is USDC", func(w *walk) {
		w.equal(statusPath, "settlement_role", "canonical_settlement_rail")
		w.equal(statusPath, "settlement_asset_symbol", "USDC")
	}},
	{"2.6", "A window that cannot be proved has volume 0 and a status word; nothing is estimated.", func(w *walk) {
		rolling, _ := w.json(statusPath)["rolling_windows"].(map[string]any)
		for window, status := range map[string]string{"exact_24h_volume_usd": "status_24h", "exact_7d_volume_usd": "status_7d"} {
			word, volume := rolling[status], rolling[window]
			if word == "" || word == nil || word != "exact" && volume != nil && strings.Trim(fmt.Sprint(volume), "0.") != "" {
				w.t.Errorf("%s %v with %s %v", window, volume, status, word)
			}
		}
	}},
	{"2.7", "an envelope with `count` and `tokens`: the base token, the quote token and USDC", func(w *walk) {
		const path = marketRoot + "tokens"
		roles := map[any]any{}
		symbols, words := w.read(path, "tokens.*.symbol"), w.read(path, "tokens.*.role")
		for i := range symbols {
			roles[symbols[i]] = words[i]
		}
		if w.json(path)["count"] != json.Number(fmt.Sprint(len(symbols))) || roles["USDC"] != "settlement" || roles["92C"] != "base" || roles["SLUSD"] != "quote" {
			w.t.Errorf("count %v of %v", w.json(path)["count"], roles)
		}
	}},
	{"2.7", "the accounts that the service observes for it", func(w *walk) {
		got := w.read(marketRoot+"tokens", "tokens.*.observed_accounts.*.role")
		if w.chain != slices.Contains(got, any("guarantee_reserve")) || !w.chain && len(got) > 0 {
			w.t.Errorf("with a chain %v: %v", w.chain, got)
		}
	}},
	{"2.8", "lists five families: `chart_and_dex_discovery`, `explorer_and_metadata`, `wallet_and_user_access`, `aggregation_and_routing`, `analytics_and_revenue`", func(w *walk) {
		w.equal(marketRoot+"adapters", "families.*", "chart_and_dex_discovery", "explorer_and_metadata", "wallet_and_user_access",
			"aggregation_and_routing", "analytics_and_revenue")
	}},
	{"3", "Without a valid token a request is 403 `TAKER_NON_ADMIS_JETON`.", func(w *walk) {
		for _, path := range []string{"/api/v1/dvp/build", "/api/v1/dvp/submit"} {
			w.refused(w.post(path, `{}`), http.StatusForbidden, "TAKER_NON_ADMIS_JETON")
		}
	}},
	{"4.1", "| GET `/rfq-native/market-tickets.json`, `/rfq-native/current-sellable-ticket.json` | the native backend's book and ticket |", func(w *walk) {
		for _, path := range []string{
			"/rfq-native/market-tickets.json", "/rfq-native/current-sellable-ticket.json", "/api/v1/rfq/market-tickets", "/api/v1/rfq/market-tickets.compact",
			"/api/v1/rfq/current-sellable-ticket", "/api/v1/rfq/pairs", "/api/v1/rfq/tokens", "/api/v1/rfq/trades?symbol=SLUSD/USDC", "/.well-known/svc-rfq.json",
		} {
			w.json(path)
		}
		w.json(w.at.At.API + "/api/v1/rfq/market-tickets")
		w.json(w.at.At.API + "/api/v1/rfq/current-sellable-ticket")
	}},
	{"4.2", "`depth` (`symbol`, `limit` ≤ 100), `klines` (`symbol`, `limit` ≤ 1440)", func(w *walk) {
		for path, most := range map[string]int{"depth": 100, "klines": 1440, "trades": 100} {
			path = marketRoot + path + "?symbol=SLUSD/USDC&limit="
			w.json(path + fmt.Sprint(most))
			w.refused(w.get(path+fmt.Sprint(most+1)), http.StatusBadRequest, "INVALID_LIMIT")
		}
	}},
	{"4.2", "Static files, the same documents", func(w *walk) { w.sameBytes() }},
	{"4.4", "| GET `/api/v1/dvp/handshake` | | the terms |", func(w *walk) {
		w.equal("/api/v1/dvp/handshake", "protocol", "svc_dvp_handshake_v1")
	}},
	{"4.5", "Health: GET `{api_url}/ws/rfq/health`.", func(w *walk) { w.json(w.at.At.API + "/ws/rfq/health") }},
	{"4.6", "An undefined route is 404 with the body of part 7.", func(w *walk) {
		body := w.refused(w.get("/no/such-route_1.x"), http.StatusNotFound, "ROUTE_INCONNUE")
		if body["path"] != "/no/such-route_1.x" || body["service"] != "/" || body["specification"] != "/public-sdk/openapi/svc_public_api_v1.json" {
			w.t.Errorf("%v", body)
		}
	}},
	{"5.2", "sign the UTF-8 bytes of the nonce's base64 text with the ed25519 key; POST `pubkey`, `nonce`, `signature` for a token of 7 days", func(w *walk) { w.handshake() }},
	{"6.2", "GET `/api/v1/market/oracle/heartbeat` returns each pair's price with its source and age", func(w *walk) {
		const path = marketRoot + "oracle/heartbeat"
		w.equal(path, "pairs.*.symbol", "SLUSD/USDC", "92C/SLUSD", demo.PoolSymbol)
		for _, member := range []string{"price_source", "price_usd_source", "data_freshness_seconds"} {
			if got := w.read(path, "pairs.*."+member); len(got) != 3 {
				w.t.Errorf("%s: %v", member, got)
			}
		}
	}},
	{"7", "Otherwise `path` is `(chemin non standard - non reproduit)`.", func(w *walk) {
		for _, path := range []string{"/caf%C3%A9", "/" + strings.Repeat("a", 160), "/a+b"} {
			if body := w.refused(w.get(path), http.StatusNotFound, "ROUTE_INCONNUE"); body["path"] != "(chemin non standard - non reproduit)" {
				w.t.Errorf("%s: %v", path, body["path"])
			}
		}
	}},
	{"C.1", "Without a chain, orders, quotes, market data and FIX work, and claims and DvP answer `CHAIN_UNAVAILABLE`.", func(w *walk) {
		if w.chain {
			return
		}
		w.refused(w.post("/rfq-native/modular-claim-take", `{"bot_wallet":"`+demo.Address(demo.Wallet(1))+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`),
			http.StatusServiceUnavailable, "CHAIN_UNAVAILABLE")
		w.equal("/api/v1/rfq/status", "accepting", false)
		w.equal(statusPath, "fallback_active", true)
		w.equal(marketRoot+"pools", "count", json.Number("0"))
	}},
	{"C.6", "All documents of one cycle are made from the same facts.", func(w *walk) { w.agree() }},
}

const (
	marketRoot = "/api/v1/market/"
	statusPath = marketRoot + "status"
)

// TestSpecificationWalk: each sentence of the walk stands in docs/specification.md, and
// holds on a demo with its chain and pool, and on one whose chain cannot run.
func TestSpecificationWalk(t *testing.T) {
	text := readTracked(t, "docs/specification.md")
	for _, s := range walkSteps {
		if !strings.Contains(text, s.sentence) {
			t.Errorf("%s is not in the specification any more: %s", s.point, s.sentence)
		}
	}
	more := append(slices.Clone(documentLimits), "--set", "mirror.every_ms=1000")
	for name, chain := range map[string]bool{"demo": true, "without a chain": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := more
			if chain {
				set = append(slices.Clone(more), "--set", programtest.WithChain(servicetest.LocalChain(t)))
			}
			w := &walk{t, programtest.StartDemo(t, set...), chain}
			if chain {
				await.True(t, "a swap of the pool in the documents", func() bool {
					return len(w.read(marketRoot+"trades?symbol="+demo.PoolSymbol, "trades.*.signature")) > 0 &&
						slices.Contains(w.read(marketRoot+"tokens", "tokens.*.observed_accounts.*.role"), any("guarantee_reserve"))
				})
			}
			for _, s := range walkSteps {
				t.Run(s.point+" "+s.sentence[:min(40, len(s.sentence))], func(t *testing.T) {
					one := *w
					one.t = t
					s.check(&one)
				})
			}
		})
	}
}

// get requests a path of the base address, or a URL.
func (w *walk) get(path string) *http.Response {
	w.t.Helper()
	return w.send(http.MethodGet, path, "")
}

func (w *walk) post(path, body string) *http.Response {
	w.t.Helper()
	return w.send(http.MethodPost, path, body)
}

func (w *walk) send(method, path, body string) *http.Response {
	w.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = w.at.At.Base + path
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		w.t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(all))
	return resp
}

// refused returns the body of an answer that must have this status and code.
func (w *walk) refused(resp *http.Response, status int, code string) map[string]any {
	w.t.Helper()
	var body map[string]any
	err := json.NewDecoder(resp.Body).Decode(&body)
	if err != nil || resp.StatusCode != status || body["code"] != code || body["ok"] != false {
		w.t.Errorf("%s: status %d, %v, %v, want %d %s", resp.Request.URL, resp.StatusCode, body, err, status, code)
	}
	return body
}

// body returns what a path answers with 200.
func (w *walk) body(path string) string {
	w.t.Helper()
	resp := w.get(path)
	all, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.t.Fatalf("%s: status %d: %.300s: %v", path, resp.StatusCode, all, err)
	}
	return string(all)
}

func (w *walk) decoded(path string) (v any) {
	w.t.Helper()
	d := json.NewDecoder(strings.NewReader(w.body(path)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
	return v
}

// json returns the object that a path answers with.
func (w *walk) json(path string) map[string]any {
	w.t.Helper()
	v, ok := w.decoded(path).(map[string]any)
	if !ok {
		w.t.Fatalf("%s is no object", path)
	}
	return v
}

// read returns the values at a place of a document, such as tokens.*.symbol.
func (w *walk) read(path, place string) []any {
	w.t.Helper()
	return valuesAt(w.decoded(path), strings.Split(place, "."))
}

func valuesAt(v any, place []string) (out []any) {
	if len(place) == 0 {
		return []any{v}
	}
	if list, ok := v.([]any); ok && place[0] == "*" {
		for _, element := range list {
			out = append(out, valuesAt(element, place[1:])...)
		}
	} else if members, ok := v.(map[string]any); ok {
		if member, ok := members[place[0]]; ok {
			out = valuesAt(member, place[1:])
		}
	}
	return out
}

// equal checks the values at a place of a document.
func (w *walk) equal(path, place string, want ...any) {
	w.t.Helper()
	if got := w.read(path, place); !slices.Equal(got, want) {
		w.t.Errorf("%s: %s is %v, want %v", path, place, got, want)
	}
}

// members checks that an object of a document has these members.
func (w *walk) members(path, place string, names ...string) {
	w.t.Helper()
	v := w.json(path)
	if place != "" {
		v, _ = v[place].(map[string]any)
	}
	for _, name := range names {
		if _, ok := v[name]; !ok {
			w.t.Errorf("%s: %s has no %s", path, place, name)
		}
	}
}

// isAmount reports whether a text is a decimal number of digits.
func isAmount(text string) bool {
	whole, fraction, _ := strings.Cut(text, ".")
	return whole != "" && strings.Trim(whole+fraction, "0123456789") == ""
}

// listedDocument is a row of the integration manifest.
type listedDocument struct {
	Name, URL string
	Files     []string
}

func (w *walk) documents() []listedDocument {
	w.t.Helper()
	var manifest struct{ Documents []listedDocument }
	if err := json.Unmarshal([]byte(w.body(marketRoot+"integration-manifest")), &manifest); err != nil || len(manifest.Documents) < 30 {
		w.t.Fatalf("%d documents, %v", len(manifest.Documents), err)
	}
	return manifest.Documents
}

// sameBytes checks that a document has the same bytes under all its paths. The cycle may
// turn over between two reads, so differing ones are read again.
func (w *walk) sameBytes() {
	w.t.Helper()
	for _, d := range w.documents() {
		for _, file := range d.Files {
			api := strings.Replace(d.URL, w.at.At.Base, w.at.At.API, 1)
			await.True(w.t, d.Name+" under all paths", func() bool {
				first := w.body(d.URL)
				return w.body(file) == first && w.body(api) == first && w.body(d.URL) == first
			})
		}
	}
}

// agree reads the documents of one cycle and compares what several of them say.
func (w *walk) agree() {
	w.t.Helper()
	paths := []string{"status", "price", "pairs", "tokens", "marketcap", "pools", "lite/latest-price", "lite/market-summary", "wallet-index"}
	read := map[string]any{}
	await.True(w.t, "all documents of one cycle", func() bool {
		at := map[any]bool{}
		for _, path := range paths {
			read[path] = w.decoded(marketRoot + path)
			for _, time := range valuesAt(read[path], []string{"timestamp_exact"}) {
				at[time] = true
			}
		}
		return len(at) == 1
	})
	values := func(path, place string) []any { return valuesAt(read[path], strings.Split(place, ".")) }
	same := func(what string, all ...[]any) {
		w.t.Helper()
		for _, one := range all[1:] {
			if len(one) == 0 || !slices.Equal(one, all[0]) {
				w.t.Errorf("%s: %v", what, all)
				return
			}
		}
	}
	same("symbols", values("pairs", "pairs.*.symbol"), values("price", "prices.*.symbol"))
	same("prices", values("pairs", "pairs.*.price_usd"), values("price", "prices.*.price_usd"))
	same("the canonical price", values("status", "spot_price_usd"), values("lite/latest-price", "price_usd"), values("price", "prices.*.price_usd")[:1])
	same("mints", values("tokens", "tokens.*.mint"), values("marketcap", "tokens.*.mint"))
	if w.chain { // without it nothing is observed
		same("observed accounts", values("tokens", "tokens.*.observed_accounts.*.address"), values("wallet-index", "wallets.*.address"))
		same("the pool's price", values("pools", "pools.*.spot_price_usd"), values("pairs", "pairs.*.price_usd")[2:])
		same("the pool", values("pools", "pools.*.pool_id"), values("pairs", "pairs.*.pool_id")[2:])
	}
}

// handshake takes the steps of 5.2 with a new key.
func (w *walk) handshake() {
	w.t.Helper()
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	ask := func(body map[string]string, status int, into any) {
		w.t.Helper()
		resp := w.post("/api/v1/dvp/handshake", programtest.JSON(body))
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != status {
			w.t.Fatalf("status %d, %v", resp.StatusCode, err)
		}
	}
	var challenge struct{ Nonce string }
	ask(map[string]string{"pubkey": base58.Encode(public)}, http.StatusOK, &challenge)
	var grant struct {
		Token     string `json:"access_token"`
		ExpiresIn int64  `json:"expires_in"`
	}
	ask(map[string]string{
		"pubkey": base58.Encode(public), "nonce": challenge.Nonce, "signature": base58.Encode(ed25519.Sign(key, []byte(challenge.Nonce))),
	}, http.StatusCreated, &grant)
	if grant.Token == "" || grant.ExpiresIn != 7*24*3600 {
		w.t.Errorf("%+v", grant)
	}
}
