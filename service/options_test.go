package service

import (
	"slices"
	"strings"
	"testing"

	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/servicetest"
)

const mirroredInstrument = `
instruments:
  - {symbol: SOL/USDC, price_decimals: 6, qty_decimals: 9, tick: "0.0001", lot: "0.001", min_qty: "0.001",
     max_qty: "1000000", max_price: "100000", book_source: mirrored}
`

// A mirror-only configuration needs no participants file.
func TestMirrorWithoutParticipants(t *testing.T) {
	cfg, err := servicetest.Load(t, mirroredInstrument)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := LoadParticipants(&cfg); err != nil || len(list) != 0 {
		t.Errorf("%d participants, %v", len(list), err)
	}
	cfg.Instruments = append(cfg.Instruments, config.Default().Instruments...)
	if _, err := LoadParticipants(&cfg); err == nil {
		t.Error("matched instruments without a participant that trades them")
	}
}

// Each process routes to all groups; the secret of their gateways must be long.
func TestRoutes(t *testing.T) {
	secret := servicetest.SecretFile(t, minSecretBytes)
	right := servicetest.TwoGroups(secret, servicetest.EUNode, servicetest.USNode)
	for name, number := range map[string]market.ShardID{"eu": 1, "us": 2} {
		cfg, err := servicetest.Load(t, strings.Replace(right, "group: eu", "group: "+name, 1))
		if err != nil {
			t.Fatal(err)
		}
		cfg = cfg.SelectGroup()
		routes, err := gatewayShards(&cfg)
		if err != nil || routes.Validate() != nil || routes.Own != number || routes.All[1].Instruments[0].Symbol != "92C/SLUSD" {
			t.Errorf("%s: %+v %v", name, routes, err)
		}
	}
	cfg := config.Default()
	cfg = cfg.SelectGroup()
	if routes, err := gatewayShards(&cfg); routes != nil || err != nil {
		t.Errorf("without groups: %+v %v", routes, err)
	}
	short := servicetest.SecretFile(t, minSecretBytes-1)
	cfg, err := servicetest.Load(t, strings.Replace(right, secret, short, 1))
	if err != nil {
		t.Fatal(err)
	}
	cfg = cfg.SelectGroup()
	if _, err := gatewayShards(&cfg); err == nil || !strings.Contains(err.Error(), "routing.secret_file: ") {
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
