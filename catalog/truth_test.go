package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"blockdesk/market"
)

// The test of this file compares all documents without a list of what they share: if two
// documents publish the same member of the same subject, the values must be equal. A
// subject is a pair, a token, a pool, an account, a snapshot, a trade, a candle, a
// provider, a family of consumers, or the service itself.

// sameAs maps the different names of one value to the name under which it is compared.
var sameAs = map[string]string{
	"current_live_price_usd": "price_usd", "current_live_price_gross_usd": "price_usd", "price_gross_usd": "price_usd",
	"pair.spot_price_usd": "price_usd", "current_live_price_net_usd": "price_net_usd", "current_live_floor_price_usd": "locked_floor_price_usd",
	"last_price": "last", "highest_bid": "bid", "lowest_ask": "ask", "price_truth_mode": "price_source",
	"base_volume": "volume_24h", "pair.quote_volume": "quote_volume_24h", "target_volume": "quote_volume_24h",
	"high": "high_24h", "highest_price_24h": "high_24h", "low": "low_24h", "lowest_price_24h": "low_24h",
	"price_change_percent_24h": "delta_24h_percent", "exact_delta_24h_percent": "delta_24h_percent",
	"exact_24h_volume_usd": "volume_24h_usd", "exact_7d_volume_usd": "volume_7d_usd",
	"exact_last_indexed_trade_ts": "last_indexed_trade_ts", "exact_last_indexed_trade_age_seconds": "last_indexed_trade_age_seconds",
	"estimated_traders_total": "traders_total", "traders_estimated_total": "traders_total",
	"activity_totals.traders_estimated": "traders_total", "activity_totals.traders_total_estimated": "traders_total",
	"estimated_public.traders_estimated": "traders_total", "estimated_public.swaps_total": "swaps_total",
	"estimated_public.volume_usd": "volume_cumulative_usd", "estimated_public.fees_usd": "fees_cumulative_usd",
	"onchain_exact.swaps_total": "swaps_total_onchain", "onchain_exact.volume_usd": "volume_cumulative_onchain",
	"onchain_exact.fees_usd": "fees_cumulative_onchain_raw", "onchain_exact.fees_base_ui": "fees_base_cumulative_ui",
	"onchain_exact.fees_quote_ui": "fees_quote_cumulative_ui", "reported_fees_usd": "fees_cumulative_onchain_raw",
	"historical_reconstructed.swaps_total": "swaps_total_reconstructed", "historical_reconstructed.volume_usd": "volume_cumulative_reconstructed",
	"historical_reconstructed.fees_usd":         "fees_cumulative_reconstructed",
	"reconstructed_public_metrics.swaps_total":  "swaps_total_reconstructed",
	"reconstructed_public_metrics.volume_usd":   "volume_cumulative_reconstructed",
	"reconstructed_public_metrics.fees_usd":     "fees_cumulative_reconstructed",
	"coherence_check.onchain_fee_volume_status": "chain_coherence",
	"onchain_exact.onchain_fee_volume_status":   "chain_coherence",
	"coherence_check.coherence_status":          "chain_coherence",
	"fees_of_settled_claims_usd":                "fees_paid_cumulative_usd",
	"fees_collected_cumulative_usd":             "fees_paid_cumulative_usd",
	"claims_open_usd":                           "promised_usd",
	"rpc_health.slotLag":                        "slot_lag",
	"rpc_health.lastChainSyncAt":                "last_chain_sync_at",
	"activeRpcUrl":                              "active_rpc_url",
	"active_upstream":                           "active_rpc_url",
	"preferred_primary":                         "primary",
	"rpc_upstream_count":                        "configured_upstream_count",
	"token.address":                             "mint",
	"token.contractAddress":                     "mint",
	"logoURI":                                   "logo_uri",
	"image":                                     "logo_uri",
	"total_supply":                              "supply",
	"totalSupply":                               "supply",
	"coingecko.base_currency":                   "base_mint", "coingecko.target_currency": "quote_mint", "coinmarketcap.base_currency": "base_symbol",
	"coinmarketcap.quote_currency": "quote_symbol", "pair_id": "symbol", "canonical_pair_id": "symbol",
	"trade.ts": "last_trade_ts", "trade.price": "last", "trade.signature": "last_trade_signature", "trade.source": "book_source",
	"freshness.data_freshness_seconds": "data_freshness_seconds", "latestSlotSeen": "latest_slot",
	"lp_token_mint":                  "lp_mint",
	"base_vault_ui":                  "base_vault_balance",
	"quote_vault_ui":                 "quote_vault_balance",
	"BASE_VAULT":                     "base_vault_balance",
	"QUOTE_VAULT":                    "quote_vault_balance",
	"last_updated":                   "time",
	"current_timestamp":              "time",
	"volume_usd_est_total":           "snapshot.volume_usd",
	"current_volume_usd":             "snapshot.volume_usd",
	"fees_usd_est_total":             "snapshot.fees_usd",
	"current_fees_usd":               "snapshot.fees_usd",
	"current_swaps":                  "snapshot.swaps_total",
	"negociants_est_total":           "snapshot.traders_estimated",
	"current_traders_estimated":      "snapshot.traders_estimated",
	"current_fee_rate":               "snapshot.fee_rate",
	"current_pair_price":             "snapshot.implied_pair_price",
	"latest_available_snapshot_key":  "selected_current_snapshot_key",
	"latest_available_snapshot_time": "selected_current_snapshot_time",
	"operator":                       "operateur",
	"exchange_name":                  "market_name",
	"documentation":                  "specification",
	"specification_openapi":          "specification",
	"sdk_public":                     "sdk",
}

// nested are the objects whose members describe the enclosing subject.
var nested = []string{
	"rolling_windows", "freshness", "degradation_state", "activity_totals", "rpc_policy", "rpc_health", "fee_coherence", "coherence_check",
	"snapshot_hierarchy", "trade", "estimated_public", "reconstructed_public_metrics", "onchain_exact", "historical_reconstructed", "proof", "subject",
}

// ignored are members with another meaning in each document.
var ignored = []string{
	"schema", "count", "fee_coherence.status", "historical_reconstructed.fees_base_ui", "historical_reconstructed.fees_quote_ui",
	"historical_reconstructed.onchain_fee_volume_status", "historical_reconstructed.traders", "pair.pair_label", "reconstructed_public_metrics.traders_estimated", "recompute", "name", "description",
}

// truths collects published values: by subject and member, each value with the document
// that published it first.
type truths struct {
	f    *Facts
	doc  string
	seen map[string]map[string]string
	by   map[string]map[string]bool // the documents that publish the member
}

func (s *truths) add(subject, holder, member string, value any) {
	kind, _, _ := strings.Cut(subject, " ")
	if slices.Contains(ignored, member) || slices.Contains(ignored, holder+"."+member) {
		return
	}
	if s.doc == "adapters/coingecko/tickers" && member == "pool_id" && value == any(Ticker(strings.TrimPrefix(subject, "pair "))) {
		value = nil // CoinGecko requires an id; a pair without a pool has its own
	}
	if member == "fee_bps" && (strings.HasPrefix(s.doc, "pair") || strings.HasPrefix(s.doc, "dexscreener")) {
		member = "trade_fee_bps" // of a trade of the pair; elsewhere the fee is that of claims
	}
	_, format, _ := strings.Cut(s.doc, "/")
	format, _, _ = strings.Cut(format, "/")
	for _, name := range []string{holder + "." + member, kind + "." + member, format + "." + member, member} {
		if same, ok := sameAs[name]; ok {
			member = same
			break
		}
	}
	if value == any("") {
		value = nil // members that the specification types as text are empty instead of null
	}
	key := subject + ": " + strings.TrimPrefix(member, kind+".")
	if s.seen[key] == nil {
		s.seen[key], s.by[key] = map[string]string{}, map[string]bool{}
	}
	s.by[key][s.doc] = true
	if text := string(Encode(value)); s.seen[key][text] == "" {
		s.seen[key][text] = s.doc
	}
}

// subject names what an object describes; of, the enclosing subject, for a nested one.
func (s *truths) subject(of, member string, v map[string]any) string {
	is := func(name string) string { text, _ := v[name].(string); return text }
	for _, by := range []struct{ kind, name string }{
		{"candle", "open_ts"}, {"snapshot", "key"}, {"provider", "available"}, {"family", "for"},
	} {
		switch id := v[by.name]; {
		case id == nil:
		case by.kind == "provider":
			return "provider " + is("url")
		default:
			return fmt.Sprint(by.kind, " ", id)
		}
	}
	switch {
	case is("amountAtoms") != "":
		return "account " + is("address")
	case is("ticker_id") != "":
		return "pair " + s.pairOf(is("ticker_id"))
	case is("trading_pairs") != "":
		return "pair " + s.pairOf(is("trading_pairs"))
	case s.pairOf(member) != "":
		return "pair " + s.pairOf(member)
	case s.isToken(is("symbol")) && v["decimals"] != nil, s.isToken(is("symbol")) && v["mint"] != nil:
		return "token " + s.tokenOf(is("mint")+is("address"))
	case s.isToken(member):
		return "token " + s.tokenOf(is("contractAddress"))
	case member == "onchain_pool_state" || v["base_vault"] != nil && v["prices"] == nil:
		return "pool " + is("pool_id")
	case s.pairOf(is("symbol")) != "":
		return "pair " + s.pairOf(is("symbol"))
	case slices.Contains(nested, member):
		return of
	case member == "sources", member == "public", member == "links" && !strings.HasPrefix(of, "pair "):
		return "addresses"
	default:
		return of + "/" + member
	}
}

func (s *truths) pairOf(name string) string {
	for i := range s.f.Pairs {
		if p := s.f.Pairs[i].Symbol; name != "" && (p == name || Ticker(p) == name) {
			return p
		}
	}
	return ""
}

func (s *truths) isToken(symbol string) bool {
	return slices.ContainsFunc(s.f.Tokens, func(t Token) bool { return symbol != "" && (t.Symbol == symbol || t.OnchainSymbol == symbol) })
}

func (s *truths) tokenOf(mint string) string { return mint }

// walk adds all values of an object that describes a subject.
func (s *truths) walk(subject, holder string, v map[string]any) {
	for member, value := range v {
		switch value := value.(type) {
		case map[string]any:
			s.walk(s.subject(subject, member, value), member, value)
		case []any:
			s.list(subject, holder, member, value)
		default:
			s.add(subject, holder, member, value)
		}
	}
}

func (s *truths) list(subject, holder, member string, values []any) {
	for i, value := range values {
		row, ok := value.(map[string]any)
		if !ok { // a list of scalars is one value
			s.add(subject, holder, member, values)
			return
		}
		at := s.subject(subject, member, row)
		if at == subject+"/"+member {
			at += strconv.Itoa(i)
		}
		s.walk(at, member, row)
	}
}

// read adds a document. Its top level describes the canonical pair if it names one, else
// the service.
func (s *truths) read(t *testing.T, name string, document any) {
	t.Helper()
	s.doc = name
	in := json.NewDecoder(bytes.NewReader(Encode(document)))
	in.UseNumber()
	var v any
	if err := in.Decode(&v); err != nil {
		t.Fatal(err)
	}
	if rows, ok := v.([]any); ok {
		s.list(name, "", "", rows)
		return
	}
	root := v.(map[string]any)
	for _, member := range []string{"ok", "api_version", "execution_network", "timestamp_exact", "control_chain_id", "control_chain_role", "fee_model"} {
		if value, ok := root[member]; ok {
			if member != "timestamp_exact" || value != any(fixedAt) {
				s.add("service", "", member, value)
			}
			delete(root, member)
		}
	}
	subject := s.subject(name, "", root)
	if name == "status" || strings.HasPrefix(name, "lite/latest-") && root["symbol"] == nil {
		subject = "pair " + s.f.canonical().Symbol
	}
	s.walk(subject, "", root)
}

// fixedAt is the time of documents that depend on the configuration only, in live().
const fixedAt = "2026-11-19T08:00:00.000Z"

// common are members that many documents publish, with the least number of documents.
var common = map[string]int{
	"price_usd": 6, "price_net_usd": 3, "last": 7, "bid": 4, "ask": 4, "volume_24h": 5, "quote_volume_24h": 5, "trades_24h": 3,
	"delta_24h_percent": 5, "last_trade_ts": 4, "last_trade_signature": 2, "price_source": 3, "book_source": 4, "pool_id": 4,
	"base_mint": 4, "quote_mint": 4, "fee_bps": 2, "trade_fee_bps": 2, "fees_cumulative_usd": 2, "locked_floor_price_usd": 1, "epoch": 3, "seq": 3,
}

// TestOneTruth: no document disagrees with another, in whatever state.
func TestOneTruth(t *testing.T) {
	degraded := live()
	p := &degraded.Pairs[0]
	p.Source, p.PriceSource, p.Halted, p.Windows.Day = market.Mirrored, FromVaultSnapshot, true, Window{Status: WindowUnproven}
	p.LastSignature = "SignatureOfTheLastSwap"
	degraded.Chain.Synced, degraded.Chain.Failover, degraded.Chain.Active = false, true, "https://rpc2.example"
	degraded.Chain.Reasons = []string{"rpc_answers_refused"}
	second := live()
	second.Pairs[0], second.Pairs[1] = second.Pairs[1], second.Pairs[0] // the canonical pair is the one without a pool
	for state, f := range map[string]*Facts{"bare": bare(), "live": live(), "degraded": degraded, "second": second} {
		s := truthsOf(t, f)
		for _, key := range slices.Sorted(maps.Keys(s.seen)) {
			if values := s.seen[key]; len(values) > 1 {
				t.Errorf("%s: %s has several values: %v", state, key, values)
			}
		}
		s.checkCommon(t, f)
		// A token's price is that of the first pair that sells it.
		for i := range f.Pairs {
			mint := f.token(f.Pairs[i].Base).Mint
			pair, token := s.seen["pair "+f.Pairs[i].Symbol+": price_usd"], s.seen["token "+mint+": price_usd"]
			if !slices.Equal(slices.Collect(maps.Keys(pair)), slices.Collect(maps.Keys(token))) {
				t.Errorf("%s: the price of %s is %v, its pair has %v", state, mint, token, pair)
			}
		}
	}
}

// checkCommon checks that enough documents publish each common member of the canonical
// pair, unless it has no trade.
func (s *truths) checkCommon(t *testing.T, f *Facts) {
	t.Helper()
	pair := f.canonical()
	for member, least := range common {
		if got := len(s.by["pair "+pair.Symbol+": "+member]); got < least && pair.LastTrade != 0 {
			t.Errorf("%d documents publish %s of the canonical pair, want %d", got, member, least)
		}
	}
}

// truthsOf reads every document of these facts.
func truthsOf(t *testing.T, f *Facts) *truths {
	t.Helper()
	s := &truths{f: f, seen: map[string]map[string]string{}, by: map[string]map[string]bool{}}
	for _, d := range Documents() {
		s.read(t, d.Name, d.Render(f, d.Schema))
	}
	for _, w := range WellKnowns() {
		s.read(t, w.File, w.Render(f))
	}
	for i := range f.Pairs {
		if pool := f.Pairs[i].Pool; pool != nil {
			d, _ := PoolByAddress(f, PoolSchema, pool.Address)
			s.read(t, "pools/"+pool.Address, d)
		}
	}
	return s
}

// TestTruthsAreNoticed: the test finds a document that differs.
func TestTruthsAreNoticed(t *testing.T) {
	f, other := live(), live()
	other.Pairs[0].Last, other.Tokens[0].Decimals, other.URLs.Base = other.Pairs[0].Bid, 9, "https://other.example"
	for name, want := range map[string]string{
		"lite/latest-price": "pair SLUSD/USDC: last", "adapters/coinmarketcap/summary": "pair SLUSD/USDC: last",
		"metadata": "token DUw5U71V3NiRQgmTaZrxqQsn7qkvVR3wSN4iJ4PY8ESN: decimals", "status": "addresses: proof",
	} {
		s := truthsOf(t, f)
		for _, d := range Documents() {
			if d.Name == name {
				s.read(t, name, d.Render(other, d.Schema))
			}
		}
		if len(s.seen[want]) != 2 {
			t.Errorf("%s differs in %s, and the test did not find it: %v", name, want, s.seen[want])
		}
	}
}
