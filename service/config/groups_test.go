package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blockdesk/market"
)

// groupsYAML is a configuration of two groups; ports are as given.
func groupsYAML(secret, eu, us string) string {
	return `
rfq:
  pairs:
    - {symbol: SLUSD/USDC, base_mint: ` + PlaceholderSLUSD + `, base_decimals: 6, rails: [USDC], price_source: operator, corridor_bps: 1000, max_age_s: 3600}
    - {symbol: 92C/SLUSD, base_mint: ` + Placeholder92C + `, base_decimals: 6, rails: [USDC], price_source: operator, corridor_bps: 1000, max_age_s: 3600}
routing: {group: eu, secret_file: ` + secret + `}
groups:
  - {name: eu, number: 1, instruments: [SLUSD/USDC], nodes: [` + eu + `]}
  - {name: us, number: 2, instruments: [92C/SLUSD], nodes: [` + us + `]}
`
}

const (
	euNodeYAML = `{base_url: "http://127.0.0.1:8080", api_url: "http://127.0.0.1:8000", ws_url: "ws://127.0.0.1:8081", fix: "127.0.0.1:9878"}`
	usNodeYAML = `{base_url: "http://127.0.0.2:8080", api_url: "http://127.0.0.2:8000", ws_url: "ws://127.0.0.2:8081", fix: "127.0.0.2:9878"}`
)

func secretFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(strings.Repeat("0a", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each process has its group's instruments, with numbers of its own, and knows
// where the others are.
func TestGroupsAreTaken(t *testing.T) {
	secret := secretFile(t)
	for name, want := range map[string]struct {
		symbol, other string
		number        market.ShardID
	}{"eu": {"SLUSD/USDC", "92C/SLUSD", 1}, "us": {"92C/SLUSD", "SLUSD/USDC", 2}} {
		cfg, err := loadYAML(t, strings.Replace(groupsYAML(secret, euNodeYAML, usNodeYAML), "group: eu", "group: "+name, 1))
		if err != nil {
			t.Fatal(err)
		}
		cfg = cfg.SelectGroup()
		list, err := cfg.MarketInstruments()
		if err != nil || len(list) != 1 || list[0].Symbol != want.symbol || list[0].ID != 0 || cfg.GroupNumber() != want.number {
			t.Errorf("%s: %v %v, number %d", name, list, err, cfg.GroupNumber())
		}
		if len(cfg.RFQ.Pairs) != 1 || cfg.RFQ.Pairs[0].Symbol != want.symbol {
			t.Errorf("%s: pairs %v", name, cfg.RFQ.Pairs)
		}
		places := cfg.OtherShards()
		if len(places) != 1 || places[want.other] == nil || places[want.other].FIX == "" {
			t.Errorf("%s: %v", name, places)
		}
	}
	cfg := Default()
	cfg = cfg.SelectGroup()
	if len(cfg.OtherShards()) != 0 || cfg.GroupNumber() != 0 || len(cfg.Instruments) != 2 {
		t.Errorf("without groups: %+v", cfg.Instruments)
	}
}

// An impossible value is refused with its key.
func TestGroupsRefused(t *testing.T) {
	secret := secretFile(t)
	right := groupsYAML(secret, euNodeYAML, usNodeYAML)
	if _, err := loadYAML(t, right); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"no such group":        {"group: eu", "group: asia", `routing.group: "asia" is not one of the groups`},
		"no group":             {"group: eu, ", "", `routing.group: "" is not one of the groups`},
		"no secret":            {", secret_file: " + secret, "", "routing.secret_file: the gateways of several groups need one"},
		"a name twice":         {"name: us", "name: eu", "groups[1].name: eu appears twice"},
		"a loud name":          {"name: us", "name: US", `groups[1].name: "US"`},
		"a number twice":       {"number: 2", "number: 1", "groups[1].number: 1 appears twice"},
		"a number too high":    {"number: 2", "number: 64", "groups[1].number: 64 is outside 1 to 63"},
		"a symbol twice":       {"[92C/SLUSD]", "[92C/SLUSD, SLUSD/USDC]", "groups[1].instruments[1]: SLUSD/USDC is in group eu too"},
		"a symbol of nobody":   {"[92C/SLUSD]", "[92C/SLUSD, A/B]", `groups[1].instruments[1]: "A/B" is not among the instruments`},
		"a symbol in none":     {"[SLUSD/USDC]", "[92C/SLUSD]", "groups[1].instruments[0]: 92C/SLUSD is in group eu too"},
		"a group of nothing":   {"[92C/SLUSD]", "[]", "groups[1].instruments: at least one"},
		"no nodes":             {"nodes: [" + usNodeYAML + "]", "nodes: []", "groups[1].nodes: 0 is outside 1 to 9"},
		"a path":               {"http://127.0.0.2:8080", "http://127.0.0.2:8080/", "groups[1].nodes[0].base_url"},
		"another scheme":       {"ws://127.0.0.2", "http://127.0.0.2", "groups[1].nodes[0].ws_url"},
		"a user":               {"http://127.0.0.2:8000", "http://me@127.0.0.2:8000", "groups[1].nodes[0].api_url"},
		"an address twice":     {"http://127.0.0.2:8080", "http://127.0.0.1:8080", "groups[1].nodes[0].base_url: http://127.0.0.1:8080 appears twice"},
		"no FIX port":          {`"127.0.0.2:9878"`, `"127.0.0.2"`, `groups[1].nodes[0].fix: "127.0.0.2"`},
		"via another group":    {"price_source: operator, corridor_bps: 1000, max_age_s: 3600}\nrouting", "price_source: book, via: SLUSD/USDC, corridor_bps: 1000, max_age_s: 3600}\nrouting", "rfq.pairs[1].via"},
		"one wallet":           {"\nrouting", "\nchain: {rpc_urls: 'http://127.0.0.1:1'}\nrouting", "groups[0].pay_to.USDC: empty: group eu sells for USDC"},
		"an unknown key":       {"number: 2", "numbr: 2", "numbr"},
		"requests without end": {"group: eu,", "group: eu, max_open: 10001,", "routing.max_open: 10001 is outside 1 to 10000"},
	} {
		if !strings.Contains(right, c.old) {
			t.Fatalf("%s: nothing to replace", name)
		}
		_, err := loadYAML(t, strings.Replace(right, c.old, c.new, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// A payment counts in one group alone, since each has wallets of its own.
func TestGroupsHaveTheirWallets(t *testing.T) {
	text := groupsYAML(secretFile(t), euNodeYAML, usNodeYAML) + "chain: {rpc_urls: 'http://127.0.0.1:1'}\n"
	ours, theirs := testAddress(1), testAddress(2)
	pay := func(eu, us string) string {
		return strings.NewReplacer("number: 1,", "number: 1, pay_to: {USDC: "+eu+"},", "number: 2,", "number: 2, pay_to: {USDC: "+us+"},").Replace(text)
	}
	if _, err := loadYAML(t, pay(ours, ours)); err == nil || !strings.Contains(err.Error(), "the same wallet") {
		t.Errorf("one wallet: %v", err)
	}
	if _, err := loadYAML(t, pay(ours, "nowhere")); err == nil || !strings.Contains(err.Error(), "groups[1].pay_to.USDC") {
		t.Errorf("no wallet: %v", err)
	}
	cfg, err := loadYAML(t, pay(ours, theirs))
	if err != nil {
		t.Fatal(err)
	}
	cfg = cfg.SelectGroup()
	if cfg.RFQ.PayTo.USDC != ours {
		t.Errorf("paid to %s", cfg.RFQ.PayTo.USDC)
	}
	if !slices.Equal(cfg.Groups[1].Instruments, []string{"92C/SLUSD"}) {
		t.Error("the other groups are forgotten")
	}
}
