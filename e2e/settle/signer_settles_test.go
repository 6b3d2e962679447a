package settle

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/demo"
	"blockdesk/service/servicetest"
)

// A service that settles starts while no node answers: claims are unavailable, it is
// not ready, and everything else works. No output has the key of a node's URL.
func TestServiceWithoutANodeThatAnswers(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := demo.WriteKeys(filepath.Join(data, demo.ChainFolder), 1); err != nil {
		t.Fatal(err)
	}
	const secret = "s3cr3t"
	d := programtest.StartDemoOn(t, data, "--set", "chain.rpc_urls=http://127.0.0.1:1/"+secret, "--set", "chain.timeout_ms=500", "--set", "chain.attempt_timeout_ms=200")
	d.AwaitTickets(t)
	r := programtest.Post(t, d.At.Base+"/rfq-native/modular-claim-take", "", `{"bot_wallet":"`+demo.Address("wallet-1")+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`)
	if r.Status != http.StatusServiceUnavailable || !strings.Contains(r.Body, "CHAIN_UNAVAILABLE") {
		t.Errorf("a claim without a node: %d %s", r.Status, r.Body)
	}
	if code := programtest.Status(t, d.At.Admin+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("readyz: %d", code)
	}
	metrics := programtest.Get(t, d.At.Admin+"/metrics")
	if !strings.Contains(metrics, `blockdesk_settlement_node_slot`) && !strings.Contains(metrics, `blockdesk_settlement_node_available{node="127.0.0.1:1"}`) {
		t.Error("the metrics lack the node")
	}
	reported := metrics + programtest.Get(t, d.At.Base+"/api/v1/dvp/status")
	for _, args := range [][]string{{"money", "list"}, {"money", "abandon", "C0000000000001"}, {"money", "list", "--json"}} {
		out, err := programtest.Run(t, "", nil, append(args, "--data", data)...)
		if refused := strings.Contains(out, "UNKNOWN_CLAIM"); refused != (err != nil) || refused != (args[1] == "abandon") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		reported += out
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(reported+d.Out.String(), secret) {
		t.Errorf("a node's key is printed:\n%s", d.Out)
	}
}

// A claim is settled by a key that the service has not: it is behind a socket, in
// a process of its own, which may start after the service.
func TestSignerSettles(t *testing.T) {
	runtest.SkipUnderRace(t, "it waits for a chain most of the time, and the tests of settle race the same code")
	t.Parallel()
	dir := servicetest.LocalChain(t)
	folder := t.TempDir()
	if err := demo.WriteKeys(folder, 1); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "s")
	d := programtest.StartDemo(t, append(programtest.OpenClaims, "--set", programtest.WithChain(dir), "--set", "settle.signer_socket="+socket, "--set", "settle.desk="+demo.Address(demo.Desk),
		"--set", "http.market_data_per_minute=0")...)
	await.True(t, "a ready service", func() bool { return programtest.Status(t, d.At.Admin+"/readyz") == http.StatusOK })
	r := programtest.Post(t, d.At.Base+"/rfq-native/modular-claim-take", "",
		fmt.Sprintf(`{"bot_wallet":"%s","order_id":"T1","tranche_id":"T1-1","fill_usd":"1000"}`, demo.Address(demo.Wallet(1))))
	var claim struct {
		ID string `json:"claim_id"`
	}
	if err := json.Unmarshal([]byte(r.Body), &claim); err != nil || claim.ID == "" {
		t.Fatalf("%v: %d %s", err, r.Status, r.Body)
	}
	signer, _ := chaintest.StartSigner(t, demo.KeyFile(folder, demo.Desk), socket)
	pay := exec.CommandContext(t.Context(), programtest.Binary(t), "wallet", "pay", "--base", d.At.Base, "--chain", d.At.Chain,
		"--key", demo.KeyFile(folder, demo.Wallet(1)))
	pay.Stdin, pay.Dir = strings.NewReader(r.Body), folder
	if out, err := pay.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	state := func() string { return programtest.Get(t, d.At.Base+"/api/v1/rfq/claims/"+claim.ID) }
	await.True(t, "a claim that is settled", func() bool { return strings.Contains(state(), `"state":"settled"`) })
	if err := errors.Join(d.Stop(), signer.End(t, os.Interrupt)); err != nil {
		t.Fatal(err)
	}
	if reported := signer.Log.String(); !strings.Contains(reported, claim.ID) {
		t.Errorf("the signer has not signed it:\n%s", reported)
	}
}
