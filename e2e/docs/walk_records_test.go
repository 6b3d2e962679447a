package docs

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"

	"blockdesk/internal/await"
	"blockdesk/service/demo"
)

// walkOfRecords has sections 2.5 to 2.9.
var walkOfRecords = []step{
	{"2.5", []string{"is one record of the canonical pair and the network"}, onAll, func(w *walk) {
		w.equal(statusPath, "canonical_pair_id", w.canonical())
		w.members(statusPath, "", "data_mode", "execution_network", "control_chain_id", "pair_id", "base_asset_symbol", "spot_price_usd",
			"locked_floor_price_usd", "delta_24h_percent", "swaps_total", "volume_cumulative_usd", "fees_cumulative_usd", "traders_estimated_total",
			"current_active_snapshot", "snapshot_hierarchy", "onchain_pool_state", "rolling_windows", "visible_liquidity_usd", "freshness",
			"degradation_state", "rpc_policy", "rpc_health", "sources", "endpoint_sets", "proof")
		if w.is(onMirror) {
			w.equal(statusPath, "onchain_pool_state.pool_id", w.read(marketRoot+"pools", "pools.*.pool_id")...)
			w.equal(statusPath, "pool_id", w.read(marketRoot+"pools", "pools.*.pool_id")...)
		}
	}},
	{"2.5", []string{"Counts are integers, money is decimal strings, `fee_rate` is a number and `delta_24h_percent` a number or null", "| `delta_24h_status` |"}, onAll, func(w *walk) {
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
		// None of these services is a day old.
		if s["delta_24h_percent"] != nil || s["delta_24h_status"] != "no_indexed_reference_trade_in_24h_window" {
			w.t.Errorf("the change is %v, its status %v", s["delta_24h_percent"], s["delta_24h_status"])
		}
	}},
	{"2.5", []string{"| `coherence_status`, `onchain_fee_volume_status` |", "| `fee_coherence.status` |"}, onAll, func(w *walk) {
		separated, fees := "coherent", "coherent"
		if w.is(onMirror) { // of whose swaps no fee is known
			separated, fees = "separated_due_to_fee_volume_mismatch", "fee_volume_mismatch"
		}
		w.equal(statusPath, "coherence_check.coherence_status", separated)
		w.equal(statusPath, "activity_totals.onchain_exact.onchain_fee_volume_status", separated)
		w.equal(statusPath, "coherence_check.fee_coherence.status", fees)
	}},
	{"2.5", []string{"| `selection_rule` | `latest_snapshot_by_timestamp` |"}, onAll, func(w *walk) {
		w.equal(statusPath, "snapshot_hierarchy.selection_rule", "latest_snapshot_by_timestamp")
	}},
	{"2.5", []string{"`price_source`: `verified_vault_snapshot` |"}, onMirror, func(w *walk) {
		w.has(statusPath, "degradation_state.reasons.*", "live_price_using_verified_vault_snapshot")
		w.equal(statusPath, "degradation_state.price_source", "verified_vault_snapshot")
	}},
	{"2.5", []string{"`canonical_settlement_rail`; the settlement asset is USDC"}, onAll, func(w *walk) {
		w.equal(statusPath, "settlement_role", "canonical_settlement_rail")
		w.equal(statusPath, "settlement_asset_symbol", "USDC")
	}},
	{"2.6", []string{"A snapshot records a pair's vaults and totals at one time.", "The newest by timestamp is the active one."}, onMirror, func(w *walk) {
		w.members(statusPath, "current_active_snapshot", "key", "label", "heading", "time", "current", "pool_id", "lp_token_mint", "base_vault_ui",
			"quote_vault_ui", "swaps_total", "traders_estimated", "volume_usd", "fees_usd", "fee_rate", "fee_bps", "implied_pair_price",
			"snapshot_source", "snapshot_reference", "fee_coherence", "current_volume_usd", "current_swaps", "current_traders_estimated",
			"current_fees_usd", "current_fee_rate", "current_pair_price", "current_timestamp")
		s := w.json(statusPath)
		active := valuesAt(s, []string{"current_active_snapshot", "time"})[0].(string)
		if !isTime(active) || valuesAt(s, []string{"snapshot_hierarchy", "selected_current_snapshot_time"})[0] != active {
			w.t.Errorf("the active snapshot is of %s", active)
		}
		last := active
		for _, v := range valuesAt(s, []string{"historical_snapshots", "*", "time"}) {
			if at := v.(string); at > last {
				w.t.Errorf("a snapshot of %s behind one of %s", at, last)
			} else {
				last = at
			}
		}
	}},
	{"2.6.1", []string{"Public cumulative totals come from the active snapshot.", "Raw fees from the chain stay in `onchain_exact`"}, onMirror, func(w *walk) {
		s := w.json(statusPath)
		for total, of := range map[string]string{
			"swaps_total": "swaps_total", "volume_cumulative_usd": "volume_usd", "fees_cumulative_usd": "fees_usd", "traders_estimated_total": "traders_estimated",
		} {
			if got := valuesAt(s, []string{"current_active_snapshot", of}); len(got) != 1 || s[total] != got[0] {
				w.t.Errorf("%s is %v, of the snapshot %v", total, s[total], got)
			}
		}
		if got := valuesAt(s, []string{"activity_totals", "onchain_exact", "fees_usd"}); !slices.Equal(got, []any{s["fees_cumulative_onchain_raw"]}) || s["fees_cumulative_onchain_raw"] == nil {
			w.t.Errorf("raw fees %v beside %v", got, s["fees_cumulative_onchain_raw"])
		}
	}},
	{"2.6.2", []string{"The 24-hour and 7-day volumes count decoded swaps only"}, onMirror, func(w *walk) {
		await.True(w.t, "volumes that are the sum of the swaps", func() bool {
			sum := w.swapped()
			return sum != "0.000000" && w.one(statusPath, "volume_24h_usd") == sum && w.one(statusPath, "volume_7d_usd") == sum
		})
	}},
	{"2.6.2", []string{"A window that cannot be proved has volume 0 and a status word; nothing is estimated."}, onAll, func(w *walk) {
		rolling, _ := w.json(statusPath)["rolling_windows"].(map[string]any)
		for window, status := range map[string]string{"exact_24h_volume_usd": "status_24h", "exact_7d_volume_usd": "status_7d"} {
			word, volume := rolling[status], rolling[window]
			if word == "" || word == nil || word != "exact" && volume != nil && strings.Trim(fmt.Sprint(volume), "0.") != "" {
				w.t.Errorf("%s %v with %s %v", window, volume, status, word)
			}
		}
		// The pool of nodes that do not answer.
		if w.is(onDown) {
			w.equal(marketRoot+"fees", "pairs.*.volume_cumulative_onchain", "0.000000", "0.000000", "0.000000")
			w.equal(marketRoot+"ticker?symbol="+demo.PoolSymbol, "last", nil)
		}
	}},
	{"2.7", []string{"an envelope with `count` and `tokens`: the base token, the quote token and USDC"}, onAll, func(w *walk) {
		const path = marketRoot + "tokens"
		roles := map[any]any{}
		symbols, words := w.read(path, "tokens.*.symbol"), w.read(path, "tokens.*.role")
		for i := range symbols {
			roles[symbols[i]] = words[i]
		}
		want := map[any]any{"USDC": "settlement", "92C": "base"}
		if w.is(onDesk) {
			want["SLUSD"] = "quote"
		}
		if w.json(path)["count"] != json.Number(fmt.Sprint(len(symbols))) || fmt.Sprint(roles) != fmt.Sprint(want) {
			w.t.Errorf("count %v of %v", w.json(path)["count"], roles)
		}
	}},
	{"2.7", []string{"A token has mint, symbols, decimals, role, images"}, onAll, func(w *walk) {
		const path = marketRoot + "tokens"
		count := len(w.read(path, "tokens.*.symbol"))
		for _, member := range []string{"mint", "name", "decimals", "role", "logo_uri", "metadata_uri", "image_origin", "observed_accounts", "observed_account_count", "observed_inventory_ui"} {
			if got := w.read(path, "tokens.*."+member); len(got) != count {
				w.t.Errorf("%s: %v", member, got)
			}
		}
		roles := w.read(path, "tokens.*.observed_accounts.*.role")
		if w.is(onDown) && len(roles) > 0 || w.is(onDemo) && !slices.Contains(roles, any("guarantee_reserve")) || w.is(onMirror) && !slices.Contains(roles, any("pool_vault")) {
			w.t.Errorf("observed: %v", roles)
		}
	}},
	{"2.8", []string{"lists five families: `chart_and_dex_discovery`, `explorer_and_metadata`, `wallet_and_user_access`, `aggregation_and_routing`, `analytics_and_revenue`"}, onAll, func(w *walk) {
		w.equal(marketRoot+"adapters", "families.*", "chart_and_dex_discovery", "explorer_and_metadata", "wallet_and_user_access",
			"aggregation_and_routing", "analytics_and_revenue")
	}},
	{"2.8", []string{"Each has consumers, expected formats"}, onAll, func(w *walk) {
		for name, family := range w.json(marketRoot + "adapters")["adapters"].(map[string]any) {
			f := family.(map[string]any)
			for _, member := range []string{"consumers", "expected_input_format", "already_provided", "public_files", "endpoint_mapping", "example_request", "needs_external_onboarding"} {
				if f[member] == nil {
					w.t.Errorf("%s has no %s", name, member)
				}
			}
			if _, ok := f["auto_consumable"].(bool); !ok && f["auto_consumable"] != "partially" {
				w.t.Errorf("%s: auto_consumable is %v", name, f["auto_consumable"])
			}
		}
	}},
	{"2.8", []string{"Their endpoints, in this order"}, onAll, func(w *walk) {
		for family, want := range map[string][]string{
			"chart_and_dex_discovery": {"pairs", "pools", "trades", "candles", "proof"}, "explorer_and_metadata": {"tokens", "metadata", "pair-metadata", "svc-discovery.json"},
			"wallet_and_user_access":  {"wallet-index", "tokenlist", "wallet", "proof"},
			"aggregation_and_routing": {"pool-registry", "pair-metadata", "trades", "claims", "debt"}, "analytics_and_revenue": {"status", "fees", "claims", "debt"},
		} {
			mapping := w.one(marketRoot+"adapters", "adapters."+family+".endpoint_mapping").(map[string]any)
			if len(mapping) != len(want) {
				w.t.Errorf("%s: %v", family, mapping)
			}
			for _, part := range want {
				found := false
				for name, endpoint := range mapping {
					path, _ := endpoint.(string)
					found = found || (name == part || strings.HasSuffix(path, "/"+part)) && w.get(strings.TrimPrefix(path, "GET ")).StatusCode == http.StatusOK
				}
				if !found {
					w.t.Errorf("%s: no %s that answers in %v", family, part, mapping)
				}
			}
		}
	}},
}

// swapped returns the sum of the quote amounts of all swaps of the pool, as DEX Screener's
// events have them.
func (w *walk) swapped() string {
	w.t.Helper()
	events := marketRoot + "adapters/dexscreener/events?fromBlock=0&toBlock=9007199254740991"
	sum := &big.Rat{}
	for _, member := range []string{"asset1In", "asset1Out"} {
		for _, v := range w.read(events, "events.*."+member) {
			amount, ok := new(big.Rat).SetString(fmt.Sprint(v))
			if !ok {
				w.t.Fatalf("%v is no amount", v)
			}
			sum.Add(sum, amount)
		}
	}
	return sum.FloatString(6)
}
