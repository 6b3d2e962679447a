package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/demo"
	"blockdesk/service/servicetest"
)

// A service that settles comes up while no node answers: claims are unavailable,
// it is not ready, and all else works. Nothing tells the key in a node's URL.
func TestServiceWithoutANodeThatAnswers(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := demo.WriteKeys(filepath.Join(data, demo.ChainFolder), 1); err != nil {
		t.Fatal(err)
	}
	const secret = "s3cr3t"
	d := startDemoOn(t, data, "--set", "chain.rpc_urls=http://127.0.0.1:1/"+secret, "--set", "chain.timeout_ms=500", "--set", "chain.attempt_timeout_ms=200")
	d.awaitTickets(t)
	r := post(t, d.at.Base+"/rfq-native/modular-claim-take", "", `{"bot_wallet":"`+demo.Address("wallet-1")+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`)
	if r.status != http.StatusServiceUnavailable || !strings.Contains(r.body, "CHAIN_UNAVAILABLE") {
		t.Errorf("a claim without a node: %d %s", r.status, r.body)
	}
	if code := status(t, d.at.Admin+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("readyz: %d", code)
	}
	metrics := get(t, d.at.Admin+"/metrics")
	if !strings.Contains(metrics, `blockdesk_settlement_node_slot`) && !strings.Contains(metrics, `blockdesk_settlement_node_available{node="127.0.0.1:1"}`) {
		t.Error("the metrics do not tell of the node")
	}
	told := metrics + get(t, d.at.Base+"/api/v1/dvp/status")
	for _, args := range [][]string{{"money", "list"}, {"money", "abandon", "C0000000000001"}, {"money", "list", "--json"}} {
		out, err := run(t, "", nil, append(args, "--data", data)...)
		if refused := strings.Contains(out, "UNKNOWN_CLAIM"); refused != (err != nil) || refused != (args[1] == "abandon") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		told += out
	}
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(told+d.out.String(), secret) {
		t.Errorf("a node's key is told:\n%s", d.out)
	}
}

// A claim is settled by a key that the service has not: it is behind a socket, in
// a process of its own, which may start after the service.
func TestSignerSettles(t *testing.T) {
	runtest.NotRaced(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	dir := servicetest.LocalChain(t)
	folder := t.TempDir()
	if err := demo.WriteKeys(folder, 1); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "s")
	d := startDemo(t, "--set", withChain(dir), "--set", "settle.signer_socket="+socket, "--set", "settle.desk="+demo.Address(demo.Desk),
		"--set", "http.market_data_per_minute=0")
	await.True(t, "a ready service", func() bool { return status(t, d.at.Admin+"/readyz") == http.StatusOK })
	r := post(t, d.at.Base+"/rfq-native/modular-claim-take", "", demo.Claim())
	var claim struct {
		ID string `json:"claim_id"`
	}
	if err := json.Unmarshal([]byte(r.body), &claim); err != nil || claim.ID == "" {
		t.Fatalf("%v: %d %s", err, r.status, r.body)
	}
	signer, _ := startSigner(t, demo.KeyFile(folder, demo.Desk), socket)
	pay := exec.CommandContext(t.Context(), programtest.Binary(t), "wallet", "pay", "--base", d.at.Base, "--chain", d.at.Chain,
		"--key", demo.KeyFile(folder, demo.Wallet(1)))
	pay.Stdin, pay.Dir = strings.NewReader(r.body), folder
	if out, err := pay.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	state := func() string { return get(t, d.at.Base+"/api/v1/rfq/claims/"+claim.ID) }
	await.True(t, "a claim that is settled", func() bool { return strings.Contains(state(), `"state":"settled"`) })
	if err := errors.Join(d.stop(), signer.end(t, os.Interrupt)); err != nil {
		t.Fatal(err)
	}
	if told := signer.out.String(); !strings.Contains(told, claim.ID) {
		t.Errorf("the signer has not signed it:\n%s", told)
	}
}
