package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blockdesk/internal/solana/rpc"
	"blockdesk/settle"
)

// Each of these is refused with the key that is wrong, and no key of a node is
// shown.
func TestSettlementConfigurationRefused(t *testing.T) {
	const secret = "s3cr3t"
	urls := make([]string, rpc.MaxUpstreams+1)
	wallets := make([]string, settle.MaxTreasury+1)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://127.0.0.1:%d/%s", 1000+i, secret)
	}
	for i := range wallets {
		wallets[i] = testAddress(i)
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no URL":           {"chain: {rpc_urls: 'https://a.example, " + secret + "'}", []string{"chain.rpc_urls", "URL 2"}},
		"another scheme":   {"chain: {rpc_urls: 'wss://a.example/" + secret + "'}", []string{"chain.rpc_urls", "URL 1", "https"}},
		"no host":          {"chain: {rpc_urls: 'https:///" + secret + "'}", []string{"chain.rpc_urls"}},
		"bad escape":       {"chain: {rpc_urls: 'https://a.example/%zz" + secret + "'}", []string{"chain.rpc_urls"}},
		"too many nodes":   {"chain: {rpc_urls: '" + strings.Join(urls, ",") + "'}", []string{"chain.rpc_urls", "at most 16"}},
		"timeout":          {"chain: {timeout_ms: 99}", []string{"chain.timeout_ms", "100 to 60000"}},
		"a try's timeout":  {"chain: {timeout_ms: 500, attempt_timeout_ms: 501}", []string{"chain.attempt_timeout_ms", "100 to 500"}},
		"both keys":        {"settle: {key_file: a, signer_socket: b}", []string{"settle.key_file", "settle.signer_socket"}},
		"desk":             {"settle: {desk: 'abc'}", []string{"settle.desk", "abc"}},
		"treasury":         {"settle: {treasury: 'abc'}", []string{"settle.treasury", "abc"}},
		"treasury twice":   {"settle: {treasury: '" + wallets[0] + "," + wallets[0] + "'}", []string{"settle.treasury", "twice"}},
		"treasury of many": {"settle: {treasury: '" + strings.Join(wallets, ",") + "'}", []string{"settle.treasury", fmt.Sprint("at most ", settle.MaxTreasury)}},
		"units":            {"settle: {units: 400001}", []string{"settle.units", "1 to 400000"}},
		"no units":         {"settle: {units: 0}", []string{"settle.units"}},
		"dear units":       {"settle: {units: 200000, micro_lamports: 5000001}", []string{"settle.micro_lamports", "1000000 lamports"}},
		"price":            {"settle: {units: 1, micro_lamports: 1000000001}", []string{"settle.micro_lamports"}},
		"resend":           {"settle: {resend_ms: 99}", []string{"settle.resend_ms"}},
		"poll":             {"settle: {poll_ms: 49}", []string{"settle.poll_ms"}},
		"watch":            {"settle: {watch_ms: 600001}", []string{"settle.watch_ms"}},
		"clock":            {"settle: {clock_tolerance_s: 3601}", []string{"settle.clock_tolerance_s"}},
		"dust":             {"settle: {dust_usdc: '1e-2'}", []string{"settle.dust_usdc", "1e-2"}},
		"no dust":          {"settle: {dust_sol: ''}", []string{"settle.dust_sol"}},
		"fine dust":        {"settle: {dust_usdc: '0.0000001'}", []string{"settle.dust_usdc", "6 decimals"}},
		"much dust":        {"settle: {dust_sol: '0.010000001'}", []string{"settle.dust_sol", "0 to 0.01"}},
		"dvp rate":         {"http: {dvp_per_minute: 1001}", []string{"http.dvp_per_minute"}},
		"handshake rate":   {"http: {handshake_per_minute: -1}", []string{"http.handshake_per_minute"}},
	} {
		_, err := loadYAML(t, c.text)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		for _, word := range c.want {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q does not say %q", name, err, word)
			}
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %q shows a node's key", name, err)
		}
	}
}

// Nodes are named by their hosts, each by a name of its own.
func TestChainOptions(t *testing.T) {
	cfg, err := loadYAML(t, "chain: {rpc_urls: ' https://a.example/one , https://b.example:8899,https://a.example/two,', timeout_ms: 900, attempt_timeout_ms: 300}\n")
	if err != nil {
		t.Fatal(err)
	}
	o, err := cfg.Chain.RPCOptions()
	if err != nil {
		t.Fatal(err)
	}
	want := []rpc.Upstream{
		{Name: "a.example", URL: "https://a.example/one"},
		{Name: "b.example:8899", URL: "https://b.example:8899"},
		{Name: "a.example#2", URL: "https://a.example/two"},
	}
	if !slices.Equal(o.Upstreams, want) || o.Timeout != 900*time.Millisecond || o.AttemptTimeout != 300*time.Millisecond {
		t.Errorf("%+v", o)
	}
	if _, err := rpc.New(o); err != nil {
		t.Error(err)
	}
	if got := strings.Join(cfg.ChainHosts(), " "); got != "a.example b.example:8899 a.example" {
		t.Error(got)
	}
}
