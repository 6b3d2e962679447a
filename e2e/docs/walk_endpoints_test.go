package docs

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/e2e/feedtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/demo"
)

// walkOfStates has section 3; walkOfTrading and walkOfLimits have the rest of it.
var walkOfStates = []step{
	{"3", []string{"Without a valid token a request is 403 `TAKER_NON_ADMIS_JETON`."}, onDesk, func(w *walk) {
		for _, path := range []string{"/api/v1/dvp/build", "/api/v1/dvp/submit"} {
			w.refused(w.post(path, `{}`), http.StatusForbidden, "TAKER_NON_ADMIS_JETON")
		}
	}},
	{"3", []string{"`degradation_state.degraded` is true while the live price comes from a verified vault snapshot."}, onMirror, func(w *walk) {
		w.equal(statusPath, "degradation_state.degraded", true)
		w.equal(statusPath, "price_truth_mode", "verified_vault_snapshot")
	}},
	{"3", []string{"`rpc_failover_active` is true while a fallback node is in use."}, onAll, func(w *walk) {
		w.equal(statusPath, "degradation_state.rpc_failover_active", false) // there is one node
	}},
}

// marketNames are the documents of 4.2 that take no parameter.
var marketNames = strings.Fields(`symbols status price marketcap oracle/heartbeat pools pairs fees claims debt tokens metadata pair-metadata proof
	integration-manifest submission-packs provider-packs openapi.json schemas tokenlist wallet-index pool-registry examples adapters
	lite/market-summary lite/pair-metadata lite/tokenlist lite/pool-registry lite/latest-price lite/latest-candle lite/latest-trade lite/latest-fees`)

// staticFiles are the files of 4.2, without .json.
var staticFiles = strings.Fields(`integration-manifest submission-packs provider-packs proof market metadata openapi schemas tokenlist wallet-index
	pool-registry examples adapters market-summary pair-metadata-lite tokenlist-lite pool-registry-lite latest-price latest-candle latest-trade
	latest-fees pair price candles trades fees wallets pair-metadata`)

// walkOfEndpoints has the reads of section 4.
var walkOfEndpoints = []step{
	{"4", []string{"Requests and answers are JSON, except pages, downloads and the stream."}, onAll, func(w *walk) {
		for path, kind := range map[string]string{"/wallet": "text/html", "/docs": "text/html", "/": "application/json"} {
			if got := w.get(path); got.StatusCode != http.StatusOK || !strings.HasPrefix(got.Header.Get("Content-Type"), kind) {
				w.t.Errorf("%s: %d %s", path, got.StatusCode, got.Header.Get("Content-Type"))
			}
		}
	}},
	{"4.1", []string{"| GET `/api/v1/rfq/status` |"}, onDesk, func(w *walk) {
		w.equal(rfqRoot+"status", "accepting", w.is(onDemo))
		w.equal(rfqRoot+"status", "tickets.open", json.Number(fmt.Sprint(demo.Tickets)))
		w.equal(rfqRoot+"status", "recommended.read.surface", "public_mirror")
	}},
	{"4.1", []string{
		"| GET `/api/v1/rfq/current-sellable-ticket` |", "| GET `/api/v1/rfq/market-tickets` |", "| GET `/rfq-native/market-tickets.json`", "| GET `{api_url}/api/v1/rfq/market-tickets`",
	}, onDesk, func(w *walk) {
		w.equal(rfqRoot+"market-tickets", "tickets.*.order_id", "T1", "T2", "T3", "T4")
		w.equal("/rfq-native/market-tickets.json", "tickets.*.order_id", "T1", "T2", "T3", "T4")
		w.equal(w.at.At.API+rfqRoot+"market-tickets", "tickets.*.order_id", "T1", "T2", "T3", "T4")
		for _, path := range []string{rfqRoot + "current-sellable-ticket", "/rfq-native/current-sellable-ticket.json", w.at.At.API + rfqRoot + "current-sellable-ticket"} {
			w.equal(path, "ticket.order_id", "T4") // the one with the priority
		}
		w.answer(w.quote("T4", "T4-1", "250", "USDC"), http.StatusOK)
	}},
	{"4.1", []string{"| GET `/api/v1/rfq/market-tickets.compact` |"}, onDesk, func(w *walk) {
		tranches := w.read(rfqRoot+"market-tickets", "tickets.*.tranches.*.tranche_id")
		rows := w.read(rfqRoot+"market-tickets.compact", "t.*")
		if len(rows) == 0 || len(rows) != len(tranches) {
			w.t.Errorf("%d rows of %d tranches: %.300s", len(rows), len(tranches), w.body(rfqRoot+"market-tickets.compact"))
		}
	}},
	{"4.1", []string{"| GET `/api/v1/rfq/levels`, `pairs`, `tokens`, `rails`, `robot-manifest` |", "| GET `/api/v1/rfq/trades` |"}, onDesk, func(w *walk) {
		w.answers("", within(rfqRoot, "levels", "rails", "robot-manifest", "trades?symbol="+w.canonical())...)
		w.equal(rfqRoot+"pairs", "pairs.*.pair", w.symbols[0], w.symbols[1])
		w.equal(rfqRoot+"tokens", "rails.*.rail", "USDC", "SOL")
	}},
	{"4.1", []string{"| POST `/api/v1/rfq/quote` |"}, onDesk, func(w *walk) {
		body := w.answer(w.quote("T1", "T1-1", "250", "SOL"), http.StatusOK)
		if id, _ := body["quote_id"].(string); !strings.HasPrefix(id, "Q") || body["order_id"] != "T1" || body["tranche_id"] != "T1-1" || body["fill_usd"] != "250" || body["rail"] != "SOL" || body["firm"] != w.is(onDemo) {
			w.t.Errorf("%v", body)
		}
	}},
	{"4.1", []string{"| GET `/.well-known/svc-rfq.json` |"}, onDesk, func(w *walk) {
		w.equal("/.well-known/svc-rfq.json", "signature_submission.priority.*", "primary_1492", "public_alias_1492", "fallback_8000")
		w.equal("/.well-known/svc-rfq.json", "signature_submission.primary_1492", w.at.At.Base+"/rfq-native/settlement/verify-payment")
	}},
	{"4.2", []string{
		"Every path below is a GET on `{base_url}` and `{api_url}`.", "Without, under `/api/v1/market/` too", "Discovery: `/.well-known/svc-discovery.json`",
		"Page, on `{base_url}`: `/wallet`.", "Legacy paths on `{api_url}`", "Specification: `/public-sdk/openapi/svc_public_api_v1.json`.",
	}, onAll, func(w *walk) {
		for _, address := range []string{w.at.At.Base, w.at.At.API} {
			w.answers(address, within(marketRoot, marketNames...)...)
			for _, name := range staticFiles {
				w.decoded(address + "/" + name + ".json")
			}
			w.answers(address, within("/.well-known/", "svc-discovery.json", "svc-program.json", "svc-ecosystem.json", "svc-wallets.json", "svc-integrators.json", "svc.json")...)
			w.answers(address, "/public-sdk/openapi/svc_public_api_v1.json")
		}
		w.answers(w.at.At.API, "/status", "/proof", "/pairs")
		w.body("/wallet")
	}},
	{"4.2", []string{"`symbol` is `SLUSD/USDC` or `92C/SLUSD`"}, onAll, func(w *walk) {
		for _, symbol := range w.symbols {
			w.equal(marketRoot+"ticker?symbol="+symbol, "symbol", symbol)
		}
		w.refused(w.get(marketRoot+"ticker?symbol=NO/SUCH"), http.StatusBadRequest, "UNKNOWN_SYMBOL")
	}},
	{"4.2", []string{"`depth` (`symbol`, `limit` ≤ 100), `klines` (`symbol`, `limit` ≤ 1440)"}, onAll, func(w *walk) {
		for path, most := range map[string]int{"depth": 100, "klines": 1440, "trades": 100} {
			path = marketRoot + path + "?symbol=" + w.canonical() + "&limit="
			w.json(path + fmt.Sprint(most))
			w.refused(w.get(path+fmt.Sprint(most+1)), http.StatusBadRequest, "INVALID_LIMIT")
		}
		w.equal(marketRoot+"candles?timeframe=1h&limit=120", "interval", "1h")
		for _, id := range w.read(marketRoot+"pools", "pools.*.pool_id") {
			w.equal(marketRoot+"pools/"+id.(string), "pool_id", id)
		}
		if w.is(onChain) != (len(w.read(marketRoot+"pools", "pools.*.base_vault_balance")) == 1) {
			w.t.Errorf("pools: %s", w.body(marketRoot+"pools"))
		}
	}},
	{"4.2", []string{"Static files, the same documents", "`/api/v1/market/integration-manifest` lists every document with all its paths."}, onAll, func(w *walk) {
		w.sameBytes()
		listed := w.body(marketRoot + "integration-manifest")
		for _, name := range staticFiles {
			if !strings.Contains(listed, `/`+name+`.json"`) {
				w.t.Errorf("/%s.json is not listed", name)
			}
		}
	}},
	{"4.3", []string{"GET `/api/v1/exchange/board` returns the offers"}, onDesk, func(w *walk) {
		w.equal("/api/v1/exchange/board", "layers.*", "guaranteed_by", "operator_declared", "independently_verified")
		for _, layer := range []string{"guaranteed_by", "operator_declared", "independently_verified"} {
			if got := w.read("/api/v1/exchange/board", "offers.*."+layer); len(got) != demo.Tickets {
				w.t.Errorf("%s: %v", layer, got)
			}
		}
	}},
	{"4.3", []string{"GET `/api/v1/dvp/status` returns locks"}, onDesk, func(w *walk) {
		const path = "/api/v1/dvp/status"
		w.has(path, "locks.*.name", "deliveries")
		w.equal(path, "price_policy.pairs.*.pair", w.symbols[0], w.symbols[1])
		if got := w.read(path, "discount_corridor.*.fill_usd"); len(got) != 6*2 {
			w.t.Errorf("the corridor has %v", got)
		}
	}},
	{"4.5", []string{"`{ws_url}/ws/rfq`.", "A client subscribes with `action` `SUBSCRIBE_MARKET`"}, onAll, func(w *walk) {
		for _, address := range []string{w.at.At.WS, strings.Replace(w.at.At.Base, "http", "ws", 1)} {
			w.subscribed(address, "l2", w.canonical())
		}
	}},
	{"4.5", []string{"Health: GET `{api_url}/ws/rfq/health`."}, onAll, func(w *walk) { w.equal(w.at.At.API+"/ws/rfq/health", "status", "up") }},
	{"4.6", []string{"An undefined route is 404 with the body of part 7."}, onAll, func(w *walk) {
		body := w.refused(w.get("/no/such-route_1.x"), http.StatusNotFound, "ROUTE_INCONNUE")
		if body["path"] != "/no/such-route_1.x" || body["service"] != "/" || body["specification"] != "/public-sdk/openapi/svc_public_api_v1.json" {
			w.t.Errorf("%v", body)
		}
	}},
}

// subscribed subscribes to a channel of some symbols and waits for a message of each.
func (w *walk) subscribed(address, channel string, symbols ...string) {
	w.t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(address+"/ws/rfq", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	request := fmt.Sprintf(`{"action":"SUBSCRIBE_MARKET","channels":[%q],"symbols":["%s"]}`, channel, strings.Join(symbols, `","`))
	if err := conn.WriteMessage(websocket.TextMessage, []byte(request)); err != nil {
		w.t.Fatal(err)
	}
	waiting := map[string]bool{}
	for _, symbol := range symbols {
		waiting[symbol] = true
	}
	feedtest.FeedUntil(w.t, conn, channel, func(m *feedtest.FeedMessage) bool {
		delete(waiting, m.Symbol)
		return len(waiting) == 0
	})
}

// walkOfTheRest has sections 5.5 to 7 and 9, as far as one reader sees them.
var walkOfTheRest = []step{
	{"5.5", []string{"need no authentication"}, onAll, func(w *walk) { // as the whole walk; nor does a wrong one matter
		for _, d := range w.documents() {
			if got := w.send(http.MethodGet, d.URL, "", "Authorization", "Bearer nobody's"); got.StatusCode != http.StatusOK {
				w.t.Errorf("%s: %d", d.URL, got.StatusCode)
			}
		}
		if w.is(onDesk) {
			w.answer(w.quote("T1", "T1-1", "250", "USDC"), http.StatusOK)
		}
	}},
	{"6.1", []string{"The WebSocket streams `ticker`, `l2` and `trades` of each symbol."}, onAll, func(w *walk) {
		for _, channel := range []string{"ticker", "l2"} {
			w.subscribed(w.at.At.WS, channel, w.symbols...)
		}
		traded := w.symbols[:min(2, len(w.symbols))] // by the bots, or on the mirror's pool
		w.subscribed(w.at.At.WS, "trades", traded...)
	}},
	{"6.2", []string{"GET `/api/v1/market/stream` is a stream too"}, onAll, func(w *walk) {
		const path = marketRoot + "oracle/heartbeat"
		symbols := make([]any, len(w.symbols))
		for i := range symbols {
			symbols[i] = w.symbols[i]
		}
		w.equal(path, "pairs.*.symbol", symbols...)
		for _, member := range []string{"price", "price_usd", "price_source", "price_usd_source", "data_freshness_seconds"} {
			if got := w.read(path, "pairs.*."+member); len(got) != len(w.symbols) {
				w.t.Errorf("%s: %v", member, got)
			}
		}
		w.streamed("event: l2")
	}},
	{"6.4", []string{"There are no webhooks (our choice)."}, onAll, func(w *walk) {
		w.refused(w.post("/api/v1/webhooks", "{}"), http.StatusNotFound, "ROUTE_INCONNUE")
		text := w.body("/public-sdk/openapi/svc_public_api_v1.json")
		for _, keyword := range []string{`"webhooks"`, `"callbacks"`} {
			if strings.Contains(text, keyword) {
				w.t.Errorf("the specification has %s", keyword)
			}
		}
	}},
	{"7", []string{"| 400 | by the fault: C.3 |"}, onAll, func(w *walk) {
		for query, want := range map[string][2]string{
			"": {"MISSING_FIELD", "symbol"}, "?symbol=" + w.canonical() + "&limit=x": {"INVALID_LIMIT", "limit"}, "?symbol=" + w.canonical() + "&colour=red": {"INVALID_FIELD", "colour"},
		} {
			if got := w.refused(w.get(marketRoot+"depth"+query), http.StatusBadRequest, want[0]); got["field"] != want[1] || got["error"] == "" {
				w.t.Errorf("%s: %v", query, got)
			}
		}
		if w.is(onDesk) {
			w.refused(w.post(rfqRoot+"quote", `{"order_id"`), http.StatusBadRequest, "INVALID_JSON")
			if got := w.refused(w.post(rfqRoot+"quote", `{"order_id":"T1","colour":"red"}`), http.StatusBadRequest, "INVALID_FIELD"); got["field"] != "colour" || got["reason"] != "unknown_field" {
				w.t.Errorf("%v", got)
			}
		}
	}},
	{"7", []string{"| 403 | `TAKER_NON_ADMIS_JETON` |"}, onDesk, func(w *walk) {
		w.refused(w.post("/api/v1/dvp/build", "{}", "Authorization", "Bearer "+strings.Repeat("A", 43)), http.StatusForbidden, "TAKER_NON_ADMIS_JETON")
	}},
	{"7", []string{"| 404 | `ROUTE_INCONNUE` |", "A 404 repeats the path only if"}, onAll, func(w *walk) {
		for _, path := range []string{"/a_b-c.d/E9", "/" + strings.Repeat("a", 159)} {
			if body := w.refused(w.get(path), http.StatusNotFound, "ROUTE_INCONNUE"); body["path"] != path || body["service"] != "/" || body["specification"] == "" {
				w.t.Errorf("%s: %v", path, body)
			}
		}
	}},
	{"7", []string{"Otherwise `path` is `(chemin non standard - non reproduit)`."}, onAll, func(w *walk) {
		for _, path := range []string{"/caf%C3%A9", "/" + strings.Repeat("a", 160), "/a+b"} {
			if body := w.refused(w.get(path), http.StatusNotFound, "ROUTE_INCONNUE"); body["path"] != "(chemin non standard - non reproduit)" {
				w.t.Errorf("%s: %v", path, body["path"])
			}
		}
	}},
	{"9", []string{"RFQ, market, DvP and exchange paths begin with `/api/v1/`."}, onAll, func(w *walk) {
		for _, d := range w.documents() {
			if !strings.HasPrefix(d.URL, w.at.At.Base+"/api/v1/") {
				w.t.Errorf("%s is at %s", d.Name, d.URL)
			}
		}
	}},
	{"9", []string{"The RFQ specification has version 1.0.0", "Schemas: `svc_rfq_robot_manifest_v1`"}, onAll, func(w *walk) {
		w.equal("/public-sdk/openapi/svc_public_api_v1.json", "openapi", "3.1.0")
		w.equal("/", "version", "1.1.0")
		for _, name := range []string{"status", "tokens", "adapters"} {
			w.equal(marketRoot+name, "api_version", "1.1.0")
			w.equal(marketRoot+name, "schema", "svc_market_"+name+"_v1")
		}
		if w.is(onDesk) {
			w.equal(rfqRoot+"status", "version", "1.0.0")
			w.equal(rfqRoot+"status", "api_version", "1.1.0")
			w.equal(rfqRoot+"robot-manifest", "schema", "svc_rfq_robot_manifest_v1")
		}
	}},
	{"9", []string{"`updated_at` and `mise_a_jour` say when a document changed."}, onAll, func(w *walk) {
		if _, err := time.Parse(time.DateOnly, fmt.Sprint(w.one("/", "mise_a_jour"))); err != nil {
			w.t.Error(err)
		}
		path := statusPath
		if w.is(onDesk) {
			path = rfqRoot + "robot-manifest"
		}
		if at := w.one(path, "updated_at"); !isTime(at) {
			w.t.Errorf("updated_at is %v", at)
		}
	}},
	{"C.6.4", []string{"All documents of one cycle are made from the same facts."}, onAll, func(w *walk) { w.agree() }},
	{"C.6.7", []string{"| DEX Screener | pair: `createdAtBlockNumber`"}, onAll, func(w *walk) {
		for _, symbol := range w.symbols {
			pair, _ := w.one(marketRoot+"adapters/dexscreener/pair?id="+strings.ReplaceAll(symbol, "/", "_"), "pair").(map[string]any)
			block, at := fmt.Sprint(pair["createdAtBlockNumber"]), fmt.Sprint(pair["createdAtBlockTimestamp"])
			created, err := strconv.ParseInt(at, 10, 64)
			if age := time.Since(time.Unix(created, 0)); err != nil || age < -time.Minute || age > time.Hour || block == "0" || pair["createdAtTxnId"] != block {
				w.t.Errorf("%s was created in block %s at %s: %v", symbol, block, at, pair)
			}
		}
	}},
	{"C.6.12", []string{"A pair of our own book has no vaults"}, onDesk, func(w *walk) {
		w.equal(statusPath, "onchain_pool_state", nil)
		w.equal(statusPath, "current_active_snapshot", nil)
		w.equal(statusPath, "historical_snapshots.*")
		s := w.json(statusPath)
		if got := valuesAt(s, []string{"activity_totals", "matched_exact", "trades_total"}); len(got) != 1 || got[0] != s["swaps_total"] || got[0] == json.Number("0") {
			w.t.Errorf("swaps_total is %v, trades of the book %v", s["swaps_total"], got)
		}
	}},
	{"C.6.10", []string{"A link in a discovery document answers as it is printed"}, onAll, func(w *walk) { walkLinks(w.t, w.at.At.Base, w.at.At.API) }},
}

// streamed waits for a line of the stream of server-sent events.
func (w *walk) streamed(line string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), runtest.HangTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.at.At.Base+marketRoot+"stream", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := walkClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if lines.Text() == line {
			return
		}
	}
	w.t.Errorf("the stream, %s, ended without %q: %v", resp.Header.Get("Content-Type"), line, lines.Err())
}

// agree reads all documents of one cycle and compares what several of them say.
func (w *walk) agree() {
	w.t.Helper()
	paths := []string{
		"status", "price", "pairs", "tokens", "marketcap", "pools", "fees", "claims", "debt", "proof", "wallet-index",
		"lite/latest-price", "lite/market-summary", "lite/latest-fees", "lite/latest-trade", "lite/latest-candle",
	}
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
			if len(one) == 0 || fmt.Sprint(one) != fmt.Sprint(all[0]) {
				w.t.Errorf("%s: %v", what, all)
				return
			}
		}
	}
	same("networks", values("status", "execution_network"), values("pools", "execution_network"), values("debt", "execution_network"), values("proof", "execution_network"))
	same("symbols", values("pairs", "pairs.*.symbol"), values("price", "prices.*.symbol"), values("lite/market-summary", "pairs.*.symbol"), values("fees", "pairs.*.symbol"))
	same("prices", values("pairs", "pairs.*.price_usd"), values("price", "prices.*.price_usd"), values("lite/market-summary", "pairs.*.price_usd"), values("proof", "subject.prices.*.price_usd"))
	same("last trades", values("price", "prices.*.last"), values("lite/market-summary", "pairs.*.last"))
	same("changes", values("price", "prices.*.delta_24h_percent"), values("lite/market-summary", "pairs.*.delta_24h_percent"))
	same("the canonical price", values("status", "spot_price_usd"), values("lite/latest-price", "price_usd"), values("price", "prices.*.price_usd")[:1])
	same("the canonical last price", values("lite/latest-trade", "trade.price"), values("lite/latest-price", "last"))
	same("the last trade's time", values("status", "last_trade_ts"), values("lite/latest-price", "last_trade_ts"))
	same("fees", values("status", "fees_cumulative_usd"), values("lite/latest-fees", "fees_cumulative_usd"))
	same("fees of claims", values("status", "fees_paid_cumulative_usd"), values("fees", "fees_of_settled_claims_usd"))
	same("sales", values("status", "activity_totals.rfq_settled.fees_usd"), values("fees", "fees_of_settled_claims_usd"))
	same("claims under way", values("claims", "transactions_under_way"), values("debt", "transactions_under_way"))
	same("mints", values("tokens", "tokens.*.mint"), values("marketcap", "tokens.*.mint"))
	if w.is(onChain) { // elsewhere nothing is observed
		same("observed accounts", values("tokens", "tokens.*.observed_accounts.*.address"), values("wallet-index", "wallets.*.address"))
		same("the pool's price", values("pools", "pools.*.spot_price_usd"), values("pairs", "pairs.*.price_usd")[len(w.symbols)-1:])
		same("the pool", values("pools", "pools.*.pool_id"), values("pairs", "pairs.*.pool_id")[len(w.symbols)-1:], values("proof", "subject.pools.*.pool_id"))
		same("the slot", values("pools", "pools.*.slot"), values("proof", "subject.pools.*.slot"))
	}
}
