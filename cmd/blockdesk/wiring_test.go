package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blockdesk/market"
	"blockdesk/service/config"
)

// loadText reads a configuration file of this text.
func loadText(t *testing.T, text string) (config.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(path, nil, nil)
	return cfg, err
}

const mirroredInstrument = `
instruments:
  - {symbol: SOL/USDC, price_decimals: 6, qty_decimals: 9, tick: "0.0001", lot: "0.001", min_qty: "0.001",
     max_qty: "1000000", max_price: "100000", book_source: mirrored}
`

// A mirror-only configuration needs no participants file.
func TestMirrorWithoutParticipants(t *testing.T) {
	cfg, err := loadText(t, mirroredInstrument)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := loadParticipants(&cfg); err != nil || len(list) != 0 {
		t.Errorf("%d participants, %v", len(list), err)
	}
	cfg.Instruments = append(cfg.Instruments, config.Default().Instruments...)
	if _, err := loadParticipants(&cfg); err == nil {
		t.Error("matched instruments, and nobody to trade them")
	}
}

// twoGroups is a configuration of two groups; ports are as given.
func twoGroups(secret, eu, us string) string {
	return `
rfq:
  pairs:
    - {symbol: SLUSD/USDC, base_mint: ` + config.PlaceholderSLUSD + `, base_decimals: 6, rails: [USDC], price_source: operator, corridor_bps: 1000, max_age_s: 3600}
    - {symbol: 92C/SLUSD, base_mint: ` + config.Placeholder92C + `, base_decimals: 6, rails: [USDC], price_source: operator, corridor_bps: 1000, max_age_s: 3600}
routing: {group: eu, secret_file: ` + secret + `}
groups:
  - {name: eu, number: 1, instruments: [SLUSD/USDC], nodes: [` + eu + `]}
  - {name: us, number: 2, instruments: [92C/SLUSD], nodes: [` + us + `]}
`
}

const (
	euNode = `{base_url: "http://127.0.0.1:8080", api_url: "http://127.0.0.1:8000", ws_url: "ws://127.0.0.1:8081", fix: "127.0.0.1:9878"}`
	usNode = `{base_url: "http://127.0.0.2:8080", api_url: "http://127.0.0.2:8000", ws_url: "ws://127.0.0.2:8081", fix: "127.0.0.2:9878"}`
)

func groupsSecret(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(strings.Repeat("0a", minSecretBytes)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each process routes to all groups; the secret of their gateways must be long.
func TestRoutes(t *testing.T) {
	secret := groupsSecret(t)
	right := twoGroups(secret, euNode, usNode)
	for name, number := range map[string]market.GroupID{"eu": 1, "us": 2} {
		cfg, err := loadText(t, strings.Replace(right, "group: eu", "group: "+name, 1))
		if err != nil {
			t.Fatal(err)
		}
		cfg = cfg.SelectGroup()
		routes, err := gatewayGroups(&cfg)
		if err != nil || routes.Validate() != nil || routes.Own != number || routes.All[1].Instruments[0].Symbol != "92C/SLUSD" {
			t.Errorf("%s: %+v %v", name, routes, err)
		}
	}
	cfg := config.Default()
	cfg = cfg.SelectGroup()
	if routes, err := gatewayGroups(&cfg); routes != nil || err != nil {
		t.Errorf("without groups: %+v %v", routes, err)
	}
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte(strings.Repeat("0a", minSecretBytes-1)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := loadText(t, strings.Replace(right, secret, short, 1))
	if err != nil {
		t.Fatal(err)
	}
	cfg = cfg.SelectGroup()
	if _, err := gatewayGroups(&cfg); err == nil || !strings.Contains(err.Error(), "routing.secret_file: ") {
		t.Errorf("a short secret: %v", err)
	}
}

// Every observed account that the configuration takes has a role in the documents.
func TestObservedRoles(t *testing.T) {
	i := slices.IndexFunc(config.Keys, func(k config.Key) bool { return k.Path == "mirror.pairs[].observed[].role" })
	for _, word := range config.Keys[i].Words {
		if o := (config.Observed{Role: word}); accountRole(&o) == 0 {
			t.Errorf("%s has no role", word)
		}
	}
}
