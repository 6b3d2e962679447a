package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/testcert"
	"blockdesk/service/demo"
	"blockdesk/service/operator"
	"blockdesk/service/servicetest"
	"blockdesk/settle/cosign"
)

// TestCheckAndServeRefuseAlike: serve --check refuses every configuration that serve
// refuses, with the same text.
func TestCheckAndServeRefuseAlike(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("file", "text")
	key := filepath.Join(dir, "key.json")
	if _, err := cosign.NewKeyFile(key); err != nil {
		t.Fatal(err)
	}
	if err := testcert.Write(dir, []string{"localhost"}, time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	participants := "participants:\n  - {name: A, number: 1, comp_ids: [A, B], ed25519: \"" + demo.Address(demo.Desk) + "\", stp: cancel_newest}\n"
	trader := write("participants.yaml", participants)
	nameless := write("nameless.yaml", "participants:\n  - {number: 1, comp_ids: [A], stp: cancel_newest}\n")
	limited := write("limited.yaml", strings.Replace(participants, "stp:", "limits: [{symbol: \"*\", max_qty: lots, max_notional: \"\", max_open_orders: 0, band_bps: 0}], stp:", 1))
	tokens := filepath.Join(dir, "tokens")
	if err := os.Mkdir(tokens, 0o700); err != nil {
		t.Fatal(err)
	}
	write("tokens/"+operator.TokenFile, "short")
	mints := "rfq: {usdc_mint: " + demo.Address(demo.MintUSDC) + ", pay_to: {USDC: " + demo.Address(demo.Treasury) + "}, pairs: []}\n"
	node := func(more string) string {
		return "journal: raft\ncluster: {id: a" + more + "}\npeers: [{id: a, address: '127.0.0.1:1'}]\n"
	}
	const follower = "role: follower\nfanout: nats\nnats: {urls: ['nats://127.0.0.1:4222']}\n"
	secret := write("secret", strings.Repeat("0a", 32))
	groups := servicetest.TwoGroups(secret, servicetest.EUNode, servicetest.USNode)
	replace := func(old, with string) string {
		t.Helper()
		if !strings.Contains(groups, old) {
			t.Fatalf("the groups have no %q", old)
		}
		return strings.Replace(groups, old, with, 1)
	}
	for _, c := range []struct {
		name, file string
		args       string // --set values, divided by spaces; --demo
		want       string
	}{
		{"an address without a port", "", "listen.base=127.0.0.1", "listen.base: "},
		{"a port too high", "", "listen.admin=127.0.0.1:65536", "listen.admin: "},
		{"two listeners of one address", "", "listen.base=127.0.0.1:8000 listen.api=127.0.0.1:8000", `listen.api: "127.0.0.1:8000": listen.base has the same port`},
		{"a listener of every host", "", "listen.fix=:8000 listen.api=127.0.0.1:8000", "listen.fix: "},
		{"no FIX address", "", "listen.fix=", "fix: address is missing"},
		{"a CompID", "", "fix.comp_id=Ä", `fix: comp_id "Ä"`},
		{"no participants", "", "fix.participants_file=", "no participants: set fix.participants_file"},
		{"participants that are not there", "", "fix.participants_file=" + dir + "/none", "fix.participants_file: "},
		{"participants that are none", "", "fix.participants_file=" + file, file + ": "},
		{"a participant without a name", "", "fix.participants_file=" + nameless, nameless + ": "},
		{"a participant's limit", "", "fix.participants_file=" + limited, "max_qty"},
		{"the default limit", "", "risk.max_qty=lots", "max_qty"},
		{"more CompIDs than sessions", "", "fix.max_sessions=1", "participants: 2 comp_ids: at most 1 sessions"},
		{"half a TLS", "", "fix.tls_cert_file=" + dir + "/" + testcert.Server, "fix.tls_cert_file and fix.tls_key_file: set both or none"},
		{"a certificate that is none", "", "fix.tls_cert_file=" + file + " fix.tls_key_file=" + file, "fix.tls_cert_file, fix.tls_key_file: "},
		{"another's key", "", "fix.tls_cert_file=" + dir + "/" + testcert.Server + " fix.tls_key_file=" + dir + "/" + testcert.ClientKey, "fix.tls_cert_file, fix.tls_key_file: "},
		{
			"an authority that is none", "", "fix.tls_cert_file=" + dir + "/" + testcert.Server + " fix.tls_key_file=" + dir + "/" + testcert.ServerKey + " fix.tls_client_ca_file=" + file,
			"fix.tls_client_ca_file: ",
		},
		{"a message log in a file", "", "fix.message_log_dir=" + file, "fix.message_log_dir: "},
		{"data in a file", "", "data_dir=" + file, "data_dir: "},
		{"data below a file", "", "data_dir=" + file + "/data", "data_dir: "},
		{"no data folder", "", "data_dir=", "data_dir: "},
		{"an operator's token in the data folder", "", "data_dir=" + tokens, "operator local: "},
		{"a proxy", "trusted_proxies: [10.0.0.0/33]\n", "", "trusted_proxies: "},
		{"an operator's hash", "operators: [{name: anna, token_sha256: abc}]\n", "", "operators[0].token_sha256: must be 64 hexadecimal digits"},
		{"an operator of ours", "operators: [{name: local, token_sha256: " + strings.Repeat("ab", 32) + "}]\n", "", `operators[0].name: "local"`},
		{"rings", "", "engine.egress_size=1025", "engine: EgressSize 1025"},
		{"a journal", "", "journal=paper", "journal.kind: "},
		{"quorum of one", "", "durability.mode=quorum", "durability.mode: "},
		{"instruments", "instruments: []\n", "", "instruments: 0 is outside 1 to 1000"},
		{"a tick", strings.Replace(programtest.Instruments("A/B"), `tick: "0.01"`, `tick: "0"`, 1), "", "instruments[0]: A/B: tick"},
		{"a pair of no instrument", "rfq: {pairs: [{symbol: A/B, base_mint: " + demo.Address(demo.MintUSDC) + ", rails: [SOL], price_source: book, corridor_bps: 1}]}\n", "", "rfq.pairs[0].symbol: "},
		{"a ladder", "rfq: {ladder: [{fill_usd: 250, discount_bps: 0}]}\n", "", "rfq.ladder: fill_usd 1000 is missing"},
		{"a token of no instrument", "tokens: [{symbol: NONE}]\n", "", "tokens[0].symbol: "},
		{"a placeholder", "chain: {rpc_urls: 'http://127.0.0.1:1'}\nsettle: {key_file: k}\n", "", "rfq.usdc_mint: a placeholder"},
		{"no key", mints + "chain: {rpc_urls: 'http://127.0.0.1:1'}\n", "", "settle.key_file: chain.rpc_urls is set"},
		{"a key that is not there", mints + "chain: {rpc_urls: 'http://127.0.0.1:1'}\n", "settle.key_file=" + dir + "/none", "settle.key_file: "},
		{"a key that is none", mints + "chain: {rpc_urls: 'http://127.0.0.1:1'}\n", "settle.key_file=" + file, "settle.key_file: "},
		{"another key", mints + "chain: {rpc_urls: 'http://127.0.0.1:1'}\n", "settle.key_file=" + key + " settle.desk=" + demo.Address(demo.Desk), "settle.key_file: the key is that of "},
		{"two keys", "", "settle.key_file=a settle.signer_socket=b", "settle.key_file and settle.signer_socket: set one of them"},
		{"a socket's path", "", "settle.signer_socket=" + strings.Repeat("s", 108), "settle.signer_socket: "},
		{"a node of Solana", "", "chain.rpc_urls=wss://a.example/secret", "chain.rpc_urls: URL 1 of the list is not"},
		{"a demo on a public chain", "", "--demo chain.rpc_urls=https://a.example", "chain.rpc_urls: --demo"},
		{"a demo on all addresses", "", "--demo listen.ws=0.0.0.0:0", "--demo serves loopback addresses only"},
		{"a mirror of nothing", "mirror: {pairs: [{symbol: SLUSD/USDC, base_mint: " + demo.Address(demo.MintSLUSD) + ", quote_mint: " + demo.Address(demo.MintUSDC) + "}]}\n", "mirror.rpc_urls=http://127.0.0.1:1", "mirror.pairs[0].symbol: "},
		{"a mirror without nodes", "mirror: {pairs: [{symbol: SLUSD/USDC, base_mint: " + demo.Address(demo.MintSLUSD) + ", quote_mint: " + demo.Address(demo.MintUSDC) + "}]}\n", "", "mirror.rpc_urls: "},
		{"a peer in the clear", strings.Replace(node(""), "127.0.0.1:1", "192.0.2.1:1", 1), "", "TLS is required unless the address is loopback"},
		{"a node of no peer", strings.Replace(node(""), "id: a,", "id: b,", 1), "", "cluster.id: "},
		{"a node's certificate", node(", tls_cert_file: " + file + ", tls_key_file: " + file + ", tls_ca_file: " + file), "", "cluster.tls_cert_file, cluster.tls_key_file: "},
		{"half a node's TLS", node(", tls_cert_file: " + file), "", "cluster.tls_cert_file: needs cluster.tls_key_file and cluster.tls_ca_file"},
		{"a node's participants", node(""), "fix.participants_file=" + dir + "/none", "fix.participants_file: "},
		{"no servers of NATS", "", "fanout=nats", "nats.urls: "},
		{"two servers of NATS", "nats: {urls: ['nats://127.0.0.1:1']}\n", "fanout=nats nats.embedded=true", "nats.urls and nats.embedded: set one of them"},
		{"a password of NATS", "", "fanout=nats nats.embedded=true nats.user=u nats.password_file=" + dir + "/none", "nats.password_file: "},
		{"an authority of NATS", "nats: {urls: ['nats://127.0.0.1:1']}\n", "fanout=nats nats.tls_ca_file=" + file, "nats.tls_ca_file: "},
		{"an embedded server for all", "", "fanout=nats nats.embedded=true nats.listen=0.0.0.0:4222", "nats.listen: "},
		{"replicas", "nats: {urls: ['nats://127.0.0.1:1']}\n", "fanout=nats nats.stream_replicas=2", "stream replicas 2"},
		{"a follower of nothing", "role: follower\n", "", "role: a follower needs fanout: nats"},
		{"a follower's certificate", follower, "fix.tls_cert_file=" + file + " fix.tls_key_file=" + file, "fix.tls_cert_file, fix.tls_key_file: "},
		{"a follower's participants", follower, "fix.participants_file=" + dir + "/none", "fix.participants_file: "},
		{"a follower's data", follower, "data_dir=" + file, "data_dir: "},
		{"a follower's secret of groups", replace("group: eu", "group: eu, max_open: 1") + follower, "routing.secret_file=" + file, "routing.secret_file: "},
		{"a group that is none", replace("group: eu", "group: asia"), "", "routing.group: "},
		{"a secret of groups", groups, "routing.secret_file=" + file, "routing.secret_file: "},
		{"a group's URL", replace("ws://127.0.0.2", "http://127.0.0.2"), "", "groups[1].nodes[0].ws_url: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.file
			if !strings.Contains(text, "role: follower") && !strings.Contains(c.args, "--demo") {
				text += "fix: {participants_file: " + trader + "}\n"
			}
			args := []string{"--config", write("c.yaml", text), "--set", "data_dir=" + filepath.Join(dir, "data")}
			for _, arg := range strings.Fields(c.args) {
				if arg != "--demo" {
					args = append(args, "--set")
				}
				args = append(args, arg)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a service that starts after all ends
			defer cancel()
			var printed [2]string
			for i, command := range [][]string{{"serve", "--check"}, {"serve"}} {
				var out, errOut strings.Builder
				if exit := execute(ctx, append(command, args...), &out, &errOut); exit != exitFailed {
					t.Errorf("%v: exit code %d: %s%s", command, exit, &out, &errOut)
				}
				printed[i] = errOut.String()
			}
			if printed[0] != printed[1] || !strings.HasPrefix(printed[0], "blockdesk: ") || !strings.Contains(printed[0], c.want) {
				t.Errorf("--check says\n%sserve says\n%swant %q", printed[0], printed[1], c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
				t.Error("a data folder was made")
			}
		})
	}
}

// TestCheckOfAFollower: a follower needs neither a key nor real addresses.
func TestCheckOfAFollower(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.yaml")
	text := "role: follower\nfanout: nats\nnats: {urls: ['nats://127.0.0.1:4222']}\nchain: {rpc_urls: 'http://127.0.0.1:1'}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut strings.Builder
	if exit := execute(t.Context(), []string{"serve", "--check", "--config", path}, &out, &errOut); exit != exitDone {
		t.Error(fmt.Sprint(exit), errOut.String())
	}
}
