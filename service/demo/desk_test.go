package demo

import (
	"slices"
	"strings"
	"testing"

	"blockdesk/service/config"
	"blockdesk/service/servicetest"
)

// A demo fills in only what is missing; the rest stays as it is.
func TestFillsWhatIsOpen(t *testing.T) {
	cfg, err := servicetest.Load(t, "demo: true\nrfq: {sol_price_usd: '99', pay_to: {USDC: "+config.Placeholder92C+"}}\n")
	if err != nil {
		t.Fatal(err)
	}
	Fill(&cfg)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if rfq, standard := cfg.RFQ, config.Default().RFQ; rfq.UnprovenUSDPerIP != standard.UnprovenUSDPerIP ||
		rfq.UnprovenShareBps != standard.UnprovenShareBps || rfq.UnprovenTTLS != standard.UnprovenTTLS {
		t.Errorf("claims without proof have other limits than those of a desk: %+v", rfq)
	}
	if cfg.RFQ.SOLPriceUSD != "99" || cfg.RFQ.PayTo.USDC != config.Placeholder92C || cfg.RFQ.PayTo.SOL != Address(TreasurySOL) {
		t.Errorf("%+v", cfg.RFQ)
	}
	if keys := cfg.Placeholders(); len(keys) != 1 || keys[0] != "rfq.pay_to.USDC" {
		t.Errorf("placeholders are left: %v", keys)
	}
	for _, p := range cfg.RFQ.Pairs {
		if p.ReferencePriceUSD != prices[p.Symbol] || p.Inventory != inventory {
			t.Errorf("%+v", p)
		}
	}
	cfg, err = servicetest.Load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	Fill(&cfg)
	if cfg.RFQ.SOLPriceUSD != "" || len(cfg.Placeholders()) != 3 {
		t.Errorf("without --demo: %+v", cfg.RFQ)
	}
}

// A configuration that settles is whole: real addresses, and a key of the desk's.
func TestSettlementNeedsItsParts(t *testing.T) {
	const chain = "chain: {rpc_urls: 'https://a.example'}\n"
	addresses := "rfq:\n  usdc_mint: " + Address(MintUSDC) + "\n  pay_to: {USDC: " + Address(Treasury) + "}\n  pairs: []\n"
	for name, c := range map[string]struct {
		text string
		want string // empty: it is taken
	}{
		"no chain":                  {"", ""},
		"placeholders":              {chain + "settle: {key_file: k}\n", "rfq.usdc_mint"},
		"no key":                    {chain + addresses, "settle.key_file"},
		"key file":                  {chain + addresses + "settle: {key_file: k}\n", ""},
		"signer":                    {chain + addresses + "settle: {signer_socket: s}\n", ""},
		"no desk":                   {chain + "rfq: {enabled: false}\n", ""},
		"demo without a chain":      {"demo: true\n", ""},
		"demo, chain of this host":  {"demo: true\nchain: {rpc_urls: 'http://localhost:8899, http://127.0.0.2:1, http://[::1]:2'}\n", ""},
		"demo, chain of the world":  {"demo: true\nchain: {rpc_urls: 'http://127.0.0.1:8899,https://a.example/key'}\n", "a.example"},
		"demo, chain by an address": {"demo: true\nchain: {rpc_urls: 'http://192.0.2.1:8899'}\n", "loopback|this machine"},
	} {
		cfg, err := servicetest.Load(t, c.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		Fill(&cfg)
		err = cfg.CheckSettlement()
		named := err != nil && slices.ContainsFunc(strings.Split(c.want, "|"), func(word string) bool { return strings.Contains(err.Error(), word) })
		if (c.want == "") != (err == nil) || err != nil && !named {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "/key") {
			t.Errorf("%s: %v shows a node's key", name, err)
		}
	}
}
