package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/service/config"
	"blockdesk/service/demo"
)

// walkOfTheService has section 1.
var walkOfTheService = []step{
	{"1.1", []string{"It is a public API"}, onAll, func(w *walk) {
		groups := []string{"market_data_rest", "discovery", "websocket"}
		if w.is(onDesk) {
			groups = append(groups, "handshake", "dvp_build_submit", "desk_status", "public_board")
		}
		have, _ := w.json("/")["endpoints"].(map[string]any)
		for _, group := range groups {
			if list, _ := have[group].([]any); len(list) == 0 {
				w.t.Errorf("no %s in %v", group, slices.Sorted(maps.Keys(have)))
			}
		}
	}},
	{"1.3", []string{"A fill has one of the sizes of a public ladder: 250, 1000, 25000, 250000, 1000000 or 2500000 USD, each with a discount."}, onDesk, func(w *walk) {
		w.equal(rfqRoot+"levels", "levels.*.fill_usd", "250", "1000", "25000", "250000", "1000000", "2500000")
		if got := w.read(rfqRoot+"levels", "levels.*.discount_bps"); len(got) != 6 {
			w.t.Errorf("discounts: %v", got)
		}
	}},
	{"1.4", []string{"Market data over REST and WebSocket is read-only."}, onAll, func(w *walk) {
		for _, d := range w.documents() {
			if got := w.post(d.URL, "{}"); got.StatusCode != http.StatusMethodNotAllowed || strings.Contains(got.Header.Get("Allow"), http.MethodPost) {
				w.t.Errorf("POST %s: %d, Allow %s", d.URL, got.StatusCode, got.Header.Get("Allow"))
			}
		}
	}},
	{"1.4", []string{"refreshed in a 10-second cycle"}, onChain, func(w *walk) {
		if got := config.Default().Mirror.EveryMS; got != 10_000 {
			w.t.Errorf("mirror.every_ms is %d", got)
		}
		slot := func() string { return fmt.Sprint(w.read(marketRoot+"pools", "pools.*.slot")) }
		first := slot()
		await.True(w.t, "a later slot of the pool", func() bool { return slot() != first })
	}},
	{"1.4", []string{"a book may also be the service's own, which changes with every order"}, onDesk, func(w *walk) {
		w.equal(marketRoot+"symbols", "symbols.*.book_source", "matched", "matched", "mirrored")
		depth := func() string { return w.body(marketRoot + "depth?symbol=" + w.canonical()) }
		first := depth()
		await.True(w.t, "a book that the bots change", func() bool { return depth() != first })
	}},
	{"1.6", []string{"Documents for charts, explorers, wallets, routers and analytics"}, onAll, func(w *walk) {
		for _, family := range w.json(marketRoot + "adapters")["adapters"].(map[string]any) {
			example, _ := family.(map[string]any)["example_request"].(string)
			w.decoded(example)
		}
	}},
	{"1.7", []string{"`control_chain_rpc_compatible` is false"}, onAll, func(w *walk) {
		w.equal(statusPath, "control_chain_rpc_compatible", false)
		w.equal(statusPath, "control_chain_id", json.Number("1492"))
	}},
	{"1.7", []string{"If the first block of the nodes shows another network"}, onAll, func(w *walk) {
		want := "not_mainnet"
		if w.is(onChain) {
			w.equal(statusPath, "execution_network", "solana-local")
			w.equal(marketRoot+"pools", "execution_network", "solana-local")
		} else {
			want = "network_unknown"
		}
		w.has(statusPath, "degradation_state.reasons.*", want)
		w.equal(statusPath, "degradation_state.degraded", true)
	}},
	{"1.8", []string{"There are four surfaces"}, onAll, func(w *walk) {
		roles, _ := w.json(statusPath)["service_roles"].(map[string]any)
		want := []string{"public_frontend", "public_mirror", "registry_backend"}
		if w.is(onDesk) {
			want = append([]string{"native_backend"}, want...)
		}
		if got := slices.Sorted(maps.Keys(roles)); !slices.Equal(got, want) {
			w.t.Errorf("surfaces %v", got)
		}
		for _, check := range w.read(statusPath, "service_roles.registry_backend.health_checks.*") {
			if !strings.HasPrefix(check.(string), w.at.At.API) {
				w.t.Errorf("the registry backend is at %v", check)
			}
		}
		for _, name := range want {
			for _, check := range w.read(statusPath, "service_roles."+name+".health_checks.*") {
				w.decoded(check.(string))
			}
		}
	}},
	{"1.9", []string{"Truth rule for programs"}, onDesk, func(w *walk) {
		rule := w.one(rfqRoot+"robot-manifest", "truth_rule").(string)
		at := 0
		for _, part := range []string{"public mirror", "registry backend", "native surface", "fallback"} {
			i := strings.Index(rule, part)
			if i < at {
				w.t.Errorf("%q comes too early in %q", part, rule)
			}
			at = i
		}
		const advice = rfqRoot + "status"
		w.equal(advice, "recommended.read.url", w.at.At.Base+"/api/v1/rfq/market-tickets")
		w.equal(advice, "recommended.confirm.url", w.at.At.API+"/api/v1/rfq/market-tickets")
		w.equal(advice, "recommended.submit.url", w.at.At.Base+"/rfq-native/settlement/verify-payment")
	}},
	{"1.10", []string{"The board labels offers as guaranteed by a staking asset.", "`montant_verifie_independamment` is always false"}, onDesk, func(w *walk) {
		text := w.body("/api/v1/exchange/board")
		if !strings.Contains(text, `"montant_verifie_independamment":false`) || strings.Contains(text, `"montant_verifie_independamment":true`) {
			w.t.Errorf("the board says %.300s", text)
		}
		labels := w.read("/api/v1/exchange/board", "offers.*.guaranteed_by.libelle")
		if len(labels) != demo.Tickets || slices.ContainsFunc(labels, func(l any) bool { return l != "offers guaranteed by a staking asset" }) {
			w.t.Errorf("labels %v", labels)
		}
	}},
	{"1.11", []string{"The fee is 5 percent: `fee_bps` 500, `fee_rate` 0.05, `fee_model` `fixed_5_percent`."}, onAll, func(w *walk) {
		w.fee("500", "0.05", "fixed_5_percent")
	}},
	{"1.11", []string{"An operator may configure another one"}, onLimits, func(w *walk) {
		for member, want := range map[string]any{"fee_bps": json.Number("300"), "fee_rate": json.Number("0.03"), "fee_model": "fixed_3_percent"} {
			w.equal(marketRoot+"lite/latest-fees", member, want)
		}
	}},
	{"1.12", []string{"JSON is UTF-8, with `Content-Type: application/json; charset=utf-8`."}, onAll, func(w *walk) {
		for _, d := range w.documents() {
			if got := w.get(d.URL).Header.Get("Content-Type"); got != "application/json; charset=utf-8" {
				w.t.Errorf("%s: %s", d.URL, got)
			}
		}
	}},
}

// fee checks the fee in the documents that have it.
func (w *walk) fee(bps, rate json.Number, model string) {
	w.t.Helper()
	for _, path := range []string{statusPath, marketRoot + "fees", marketRoot + "lite/latest-fees"} {
		w.equal(path, "fee_bps", bps)
		w.equal(path, "fee_rate", rate)
		w.equal(path, "fee_model", model)
	}
}

// walkOfResources has sections 2.1 to 2.4.
var walkOfResources = []step{
	{"2.1", []string{"`order_id` names a ticket"}, onDesk, func(w *walk) {
		ids := w.read(rfqRoot+"market-tickets", "tickets.*.order_id")
		labels := w.read(rfqRoot+"market-tickets", "tickets.*.ticket_label")
		tranches := w.read(rfqRoot+"market-tickets", "tickets.*.tranches.*.tranche_id")
		if len(ids) != demo.Tickets || len(labels) != demo.Tickets || len(tranches) < demo.Tickets {
			w.t.Errorf("tickets %v, labels %v, tranches %v", ids, labels, tranches)
		}
		w.refused(w.quote("T99", "T99-1", "250", "USDC"), http.StatusNotFound, "UNKNOWN_TICKET")
		w.refused(w.quote("T1", "T3-1", "250", "USDC"), http.StatusNotFound, "UNKNOWN_TICKET")
	}},
	{"2.1", []string{"`fill_usd` is a size of the ladder", "`payment_rail` (in a quote: `rail`) is `USDC` or `SOL`."}, onDesk, func(w *walk) {
		for _, fill := range []string{"250", "1000"} {
			for _, rail := range []string{"USDC", "SOL"} {
				w.answer(w.quote("T1", "T1-1", fill, rail), http.StatusOK)
			}
		}
		for _, c := range [][3]string{{"300", "USDC", "fill_usd"}, {"250", "DOGE", "rail"}} {
			if got := w.refused(w.quote("T1", "T1-1", c[0], c[1]), http.StatusBadRequest, "INVALID_FIELD"); got["field"] != c[2] {
				w.t.Errorf("%v: field %v", c, got["field"])
			}
		}
	}},
	{"2.1", []string{"`l1_signature` is the signature of the finalized payment, `bot_wallet` the address"}, onDesk, func(w *walk) {
		for path, c := range map[string][2]string{
			"/rfq-native/modular-claim-take":        {"bot_wallet", `{"bot_wallet":"no address","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`},
			"/rfq-native/settlement/verify-payment": {"l1_signature", `{"order_id":"T1","tranche_id":"T1-1","l1_signature":"no signature"}`},
		} {
			if got := w.refused(w.post(path, c[1]), http.StatusBadRequest, "INVALID_FIELD"); got["field"] != c[0] {
				w.t.Errorf("%s: field %v", path, got["field"])
			}
		}
	}},
	{"2.2", []string{"`active_rails` and `rail_priority` list `USDC` before `SOL`."}, onDesk, func(w *walk) {
		for _, path := range within(rfqRoot, "rails", "status", "robot-manifest") {
			w.equal(path, "active_rails.*", "USDC", "SOL")
			w.equal(path, "rail_priority.*", "USDC", "SOL")
		}
	}},
	{"2.2", []string{"`partial_fill_sizes_usd` lists the sizes of 1.3 as strings, in ascending order."}, onDesk, func(w *walk) {
		for _, path := range within(rfqRoot, "status", "robot-manifest") {
			w.equal(path, "partial_fill_sizes_usd.*", "250", "1000", "25000", "250000", "1000000", "2500000")
		}
	}},
	{"2.3", []string{"`required_fields` (`order_id`, `tranche_id`, `ticket_label`, `fill_usd`, `payment_rail`, `l1_signature`)"}, onDesk, func(w *walk) {
		const path = rfqRoot + "robot-manifest"
		w.equal(path, "schema", "svc_rfq_robot_manifest_v1")
		w.equal(path, "required_fields.*", "order_id", "tranche_id", "ticket_label", "fill_usd", "payment_rail", "l1_signature")
		w.members(path, "", "ok", "schema", "name", "updated_at", "truth_rule", "active_rails", "rail_priority", "partial_fill_sizes_usd",
			"read_endpoints", "claim_endpoints", "signature_submission", "required_fields", "examples")
		w.members(path, "read_endpoints", "public_mirror_8012", "registry_backend_8000", "native_backend_1492")
		w.members(path, "claim_endpoints", "preferred_modular_claim", "preferred_atomic_claim", "public_alias_modular_claim", "public_alias_atomic_claim")
		w.members(path, "signature_submission", "primary_1492", "public_alias_1492", "fallback_8000")
		w.members(path, "examples", "read_book", "read_levels", "build_claim", "verify_signature")
	}},
	{"2.3", []string{"Endpoints are URLs, examples command lines."}, onDesk, func(w *walk) {
		const path = rfqRoot + "robot-manifest"
		for group, keys := range map[string][]string{
			"public_mirror_8012":    {"market_tickets", "current_sellable_ticket", "compact_book", "levels", "pairs", "rails"},
			"registry_backend_8000": {"market_tickets", "current_sellable_ticket"}, "native_backend_1492": {"market_tickets", "current_sellable_ticket"},
		} {
			for _, key := range keys {
				url, _ := w.one(path, "read_endpoints."+group+"."+key).(string)
				w.decoded(url)
			}
		}
		for _, example := range []string{"read_book", "read_levels", "build_claim", "verify_signature"} {
			if line, _ := w.one(path, "examples."+example).(string); !strings.HasPrefix(line, "curl ") {
				w.t.Errorf("%s is %s", example, line)
			}
		}
	}},
	{"2.3", []string{"In `build_claim` replace `YOUR_WALLET_ADDRESS` by your wallet; as it stands it is refused"}, onDesk, func(w *walk) {
		line, _ := w.one(rfqRoot+"robot-manifest", "examples.build_claim").(string)
		_, body, _ := strings.Cut(line, " -d '")
		reserved := w.read(rfqRoot+"status", "open_tickets.reserved_usd")
		if got := w.refused(w.post("/rfq-native/modular-claim-take", strings.TrimSuffix(body, "'")), http.StatusBadRequest, "INVALID_FIELD"); got["field"] != "bot_wallet" {
			w.t.Errorf("%s: %v", line, got)
		}
		w.equal(rfqRoot+"status", "open_tickets.reserved_usd", reserved...)
	}},
	{"2.4", []string{"`GET /`: `ok`, `service`, `version`, `mise_a_jour`, `operateur`"}, onAll, func(w *walk) {
		w.members("/", "", "ok", "service", "version", "mise_a_jour", "operateur", "contacts", "encodage", "specification_openapi",
			"sdk_public", "github", "endpoints", "qualification", "erreur_route_inconnue")
		w.members("/", "qualification", "libelle", "nature")
		w.equal("/", "sdk_public", "/public-sdk/")
		page := w.body("/public-sdk/")
		for _, part := range []string{"README", "typescript", "python", "fix"} {
			if !strings.Contains(page, part) {
				w.t.Errorf("/public-sdk/ has no %s", part)
			}
		}
	}},
}

// quote asks for a quote.
func (w *walk) quote(order, tranche, fill, rail string) *http.Response {
	w.t.Helper()
	return w.post(rfqRoot+"quote", programtest.JSON(map[string]string{"order_id": order, "tranche_id": tranche, "fill_usd": fill, "rail": rail}))
}

// isTime reports whether a value is a time of C.2.1 that is not in the future.
func isTime(v any) bool {
	text, _ := v.(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && strings.HasSuffix(text, "Z") && at.Before(time.Now().Add(time.Minute))
}
