package catalog

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/market"
)

func render(t *testing.T, d *Document, f *Facts) []byte {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d.Render(f, d.Schema)); err != nil {
		t.Fatalf("%s: %v", d.Name, err)
	}
	return out.Bytes()
}

// TestGolden compares every document of fixed facts with its golden file. After an
// intended change: UPDATE_GOLDEN=1 go test ./catalog
func TestGolden(t *testing.T) {
	for _, d := range Documents() {
		for name, f := range map[string]*Facts{"bare": bare(), "live": live()} {
			golden(t, strings.ReplaceAll(d.Name, "/", "-")+"."+name, render(t, &d, f))
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name+".json")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what %s has:\n%s", name, file, got)
	}
}

// TestWellKnowns does the same for the discovery files.
func TestWellKnowns(t *testing.T) {
	for _, w := range WellKnowns() {
		name := strings.TrimSuffix(w.File, ".json")
		golden(t, name, render(t, &Document{Name: w.File, Render: func(f *Facts, _ string) any { return w.Render(f) }}, live()))
	}
}

// TestPathsAreOnce: no two documents share a path.
func TestPathsAreOnce(t *testing.T) {
	seen := map[string]string{}
	for _, d := range Documents() {
		for _, path := range append([]string{marketPath(d.Name)}, d.Files...) {
			if other, ok := seen[path]; ok {
				t.Errorf("%s is of %s and of %s", path, other, d.Name)
			}
			seen[path] = d.Name
		}
	}
}

// statusMembers are the members of docs/specification.md 2.5 with the kind of each:
// s text, d decimal text or null, i integer, n number or null, b boolean, t time or null,
// o object, a array.
const statusMembers = `
data_mode s, fallback_active b, api_version s, source s, schema s, proof_scope s, execution_network s,
canonical_pair_id s, pair_id s, pair_label s, market_name s, control_chain_id i, control_chain_role s,
control_chain_rpc_compatible b, timestamp_exact t, updated_at t, program_id s, pool_id s,
base_asset_symbol s, quote_onchain_symbol s, quote_public_symbol s, quote_public_label s,
settlement_asset_symbol s, settlement_asset_label s, settlement_role s,
spot_price_usd d, current_live_price_usd d, current_live_price_gross_usd d, current_live_price_net_usd d,
price_gross_usd d, price_net_usd d, locked_floor_price_usd d, current_live_floor_price_usd d, floor_locked b,
price_truth_mode s, price_source_summary s, market_scope s, delta_24h_percent n, delta_24h_status s,
swaps_total i, swaps_total_onchain i, swaps_total_reconstructed i,
volume_24h_usd d, volume_7d_usd d, volume_cumulative_usd d, volume_cumulative_onchain d, volume_cumulative_reconstructed d,
fees_cumulative_usd d, fees_cumulative_onchain_raw d, fees_cumulative_reconstructed d, fees_paid_cumulative_usd d,
fees_collected_cumulative_usd d, fees_base_cumulative_ui d, fees_quote_cumulative_ui d, fees_unknown_cumulative_ui d,
fee_bps i, fee_rate n, traders_estimated_total i, estimated_traders_total i, activity_totals o,
current_active_snapshot o, historical_snapshots a, historicalSnapshots a, historicalSnapshotFeeds a, snapshot_hierarchy o,
metrics_layers o, estimated_public o, reconstructed_public_metrics o, coherence_check o,
onchain_pool_state o, rolling_windows o, visible_liquidity_usd d, guarantee_liquidity_usd d, total_backing_estimate_usd d,
last_trade_ts t, last_trade_signature s, slot i, data_freshness_seconds i, freshness o, degradation_state o,
proof_hash s, last_chain_sync_at t, active_rpc_url s, rpc_policy o, rpc_health o,
sources o, endpoint_sets o, service_roles o, proof o`

// TestStatusMembers: every member has its kind, with a chain and without one.
func TestStatusMembers(t *testing.T) {
	for name, f := range map[string]*Facts{"bare": bare(), "live": live()} {
		text, err := json.Marshal(Status(f, "svc_market_status_v1"))
		if err != nil {
			t.Fatal(err)
		}
		var record map[string]json.RawMessage
		if err := json.Unmarshal(text, &record); err != nil {
			t.Fatal(err)
		}
		for _, row := range strings.Split(statusMembers, ",") {
			member, kind, _ := strings.Cut(strings.TrimSpace(row), " ")
			value, ok := record[member]
			if !ok {
				t.Errorf("%s: %s is missing", name, member)
			} else if !isKind(string(value), kind) {
				t.Errorf("%s: %s is %s, want kind %s", name, member, value, kind)
			}
		}
	}
}

func isKind(value, kind string) bool {
	first := value[:1]
	switch kind {
	case "s":
		return first == `"`
	case "d":
		_, err := market.ParseUint128([]byte(strings.Trim(value, `"`)), market.MaxDecimals)
		return value == "null" || first == `"` && err == nil
	case "t":
		return value == "null" || first == `"`
	case "i":
		return strings.Trim(value, "0123456789") == ""
	case "n":
		return value == "null" || strings.Trim(value, "-.0123456789") == ""
	case "b":
		return value == "true" || value == "false"
	case "o":
		return first == "{" || value == "null"
	default:
		return first == "["
	}
}

// TestNothingInvented: without trades and a chain every figure is zero or null, and the
// statuses say why.
func TestNothingInvented(t *testing.T) {
	text, err := json.Marshal(Status(bare(), "svc_market_status_v1"))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Spot    *string `json:"spot_price_usd"`
		Day     string  `json:"volume_24h_usd"`
		Pool    any     `json:"onchain_pool_state"`
		Current any     `json:"current_active_snapshot"`
		Rolling struct {
			Day  string `json:"status_24h"`
			Week string `json:"status_7d"`
		} `json:"rolling_windows"`
		Delta  string `json:"delta_24h_status"`
		Degrad struct {
			Source string `json:"price_source"`
		} `json:"degradation_state"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Spot != nil || r.Pool != nil || r.Current != nil || r.Day != "0.000000" {
		t.Errorf("invented: %s", text)
	}
	if r.Rolling.Day != statusNone24h || r.Rolling.Week != statusNone7d || r.Delta != statusNoReference ||
		r.Degrad.Source != "unavailable" {
		t.Errorf("the words are %+v", r)
	}
}

// TestCurrentSnapshot: public totals come from the latest snapshot by its time, in any
// order. Raw chain fees that do not match the volume stay apart.
func TestCurrentSnapshot(t *testing.T) {
	f := live()
	s := newStatusSnapshots(f)
	if got := s.Current.Key + " " + s.History[0].Key + " " + s.History[1].Key; got != "s3 s2 s1" {
		t.Errorf("the order is %s, want s3 s2 s1", got)
	}
	if s.History[0].Coherence.Status != mismatch || s.Current.Coherence.Status != coherent {
		t.Errorf("coherence: current %s, s2 %s", s.Current.Coherence.Status, s.History[0].Coherence.Status)
	}
	totals := newStatusTotals(f, f.canonical())
	if totals.Swaps != 120 || totals.Fees.String() != "600.000000" || totals.FeesOnchainRaw.String() != "7.750000" {
		t.Errorf("totals: %d swaps, fees %s, raw %s", totals.Swaps, totals.Fees, totals.FeesOnchainRaw)
	}
	if a := newActivityTotals(f, f.canonical(), &totals); a.Onchain.Status != separated {
		t.Errorf("the chain's layer is %s, want %s", a.Onchain.Status, separated)
	}
}

// TestTotalsHoldTheWindows: without a snapshot the cumulative figures are the sum of all
// layers, so they are never below those of a window.
func TestTotalsHoldTheWindows(t *testing.T) {
	f := live()
	f.Snapshots = nil
	if got := newStatusTotals(f, f.canonical()); got.Swaps != 162 || got.Volume.String() != "12999.000000" || got.Fees.String() != "150.000000" {
		t.Errorf("%d swaps of %s, fees %s", got.Swaps, got.Volume, got.Fees)
	}
	totals := newStatusTotals(bare(), bare().canonical())
	if got := newActivityTotals(bare(), bare().canonical(), &totals); got.TradersSource != "not_counted" || got.Matched.Trades != 0 {
		t.Errorf("without anything: %+v", got)
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ text, formatted, compact string }{
		{"0.000000", "0", "0"},
		{"0.129999", "0.129999", "0.12"},
		{"999.990000", "999.99", "999.99"},
		{"1000.000000", "1,000", "1K"},
		{"1234567.500000", "1,234,567.5", "1.23M"},
		{"18446744073709.551615", "18,446,744,073,709.551615", "18.44T"},
	} {
		d := decimal(c.text, 6)
		if got := d.String(); got != c.text {
			t.Errorf("%s is written %s", c.text, got)
		}
		if got := d.Formatted(); got != c.formatted {
			t.Errorf("%s formatted is %s, want %s", c.text, got, c.formatted)
		}
		if got := d.Compact(); got != c.compact {
			t.Errorf("%s compact is %s, want %s", c.text, got, c.compact)
		}
	}
	wide := Decimal{Units: market.Uint128{Hi: 1 << 40}, Decimals: 36}
	if got := wide.Compact(); got != "0" {
		t.Errorf("%s compact is %s", wide, got)
	}
	for bps, want := range map[rate]string{500: "0.05", 0: "0", 10_000: "1", 25: "0.0025"} {
		if got, err := bps.MarshalJSON(); err != nil || string(got) != want {
			t.Errorf("%d bps are %s (%v), want %s", uint16(bps), got, err, want)
		}
	}
	for p, want := range map[Percent]string{-125: "-1.25", 0: "0.00", 5: "0.05"} {
		if got, err := p.MarshalJSON(); err != nil || string(got) != want {
			t.Errorf("%d are %s (%v), want %s", int64(p), got, err, want)
		}
	}
}

// TestProofHash: a reader computes the same hashes from the document alone, and the status
// record publishes them too.
func TestProofHash(t *testing.T) {
	text := Encode(Proof(live(), "svc_market_proof_v1"))
	var d struct {
		Subject json.RawMessage `json:"subject"`
		Hash    string          `json:"proof_hash"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if got := hashOf(d.Subject); got != d.Hash {
		t.Errorf("the document's hash is %s, its subject's %s", d.Hash, got)
	}
	_, rest, _ := strings.Cut(string(d.Subject), `"pools":[`)
	pool, published, found := strings.Cut(rest, `,"proof_hash":"`)
	if got := hashOf(json.RawMessage(pool + "}")); !found || !strings.HasPrefix(published, got+`"`) {
		t.Errorf("the pool's hash is %.80s, computed again %s", published, got)
	}
	var status struct {
		Hash string `json:"proof_hash"`
		Pool struct {
			Hash string `json:"proof_hash"`
		} `json:"onchain_pool_state"`
	}
	if err := json.Unmarshal(Encode(Status(live(), "")), &status); err != nil {
		t.Fatal(err)
	}
	if status.Hash != d.Hash || !strings.HasPrefix(published, status.Pool.Hash) {
		t.Errorf("the status record has the hashes %+v", status)
	}
}

// TestPoolAt: one pool, by its address alone.
func TestPoolAt(t *testing.T) {
	pool, ok := PoolByAddress(live(), PoolSchema, "PooLSLUSDUSDC1111111111111111111111111111111")
	if !ok {
		t.Fatal("the pool is not found by its address")
	}
	golden(t, "pool.live", render(t, &Document{Render: func(*Facts, string) any { return pool }}, live()))
	if _, ok := PoolByAddress(live(), PoolSchema, "another"); ok {
		t.Error("a pool is found that is not there")
	}
}
