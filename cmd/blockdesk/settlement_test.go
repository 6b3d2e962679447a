package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
	"blockdesk/service/config"
)

// The desk's key is taken from its file, where that is kept as it must be and the
// key is the one that is configured. No error has anything of the key.
func TestOpenSigner(t *testing.T) {
	dir := t.TempDir()
	if err := writeDemoKeys(dir, 1); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open.json")
	text, err := os.ReadFile(demoKeyFile(dir, demoDesk))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(open, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o640); err != nil {
		t.Fatal(err)
	}
	secret, _, _ := strings.Cut(strings.TrimPrefix(string(text), "["), "]")
	for name, c := range map[string]struct {
		settle config.Settle
		want   string // empty: it is opened
	}{
		"the key":          {config.Settle{KeyFile: demoKeyFile(dir, demoDesk)}, ""},
		"the key by name":  {config.Settle{KeyFile: demoKeyFile(dir, demoDesk), Desk: demoAddress(demoDesk)}, ""},
		"another key":      {config.Settle{KeyFile: demoKeyFile(dir, demoTreasury), Desk: demoAddress(demoDesk)}, "settle.desk"},
		"no file":          {config.Settle{KeyFile: filepath.Join(dir, "none.json")}, "settle.key_file"},
		"others may read":  {config.Settle{KeyFile: open}, "settle.key_file"},
		"no signer there":  {config.Settle{SignerSocket: filepath.Join(dir, "s")}, "settle.signer_socket"},
		"a signer by name": {config.Settle{SignerSocket: filepath.Join(dir, "s"), Desk: demoAddress(demoDesk)}, ""},
	} {
		var out bytes.Buffer
		s := service{cfg: &config.Config{Settle: c.settle}, log: slog.New(slog.NewTextHandler(&out, nil))}
		signer, err := s.openSigner()
		switch {
		case c.want == "" && (err != nil || signer.Address() == [32]byte{}):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if said := out.String(); strings.Contains(said, secret) || err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the key is told", name)
		}
	}
}

// A service that settles comes up while no node answers: claims are unavailable,
// it is not ready, and all else works. Nothing tells the key in a node's URL.
func TestServiceWithoutANodeThatAnswers(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if err := writeDemoKeys(filepath.Join(data, chainFolder), 1); err != nil {
		t.Fatal(err)
	}
	const secret = "s3cr3t"
	d := startDemoOn(t, data, "--set", "chain.rpc_urls=http://127.0.0.1:1/"+secret, "--set", "chain.timeout_ms=500", "--set", "chain.attempt_timeout_ms=200")
	d.awaitTickets(t)
	r := post(t, d.at.Base+"/rfq-native/modular-claim-take", "", `{"bot_wallet":"`+demoAddress("wallet-1")+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`)
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
	dir := localChain(t)
	folder := t.TempDir()
	if err := writeDemoKeys(folder, 1); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "s")
	d := startDemo(t, "--set", withChain(dir), "--set", "settle.signer_socket="+socket, "--set", "settle.desk="+demoAddress(demoDesk),
		"--set", "http.market_data_per_minute=0")
	await.True(t, "a ready service", func() bool { return status(t, d.at.Admin+"/readyz") == http.StatusOK })
	r := post(t, d.at.Base+"/rfq-native/modular-claim-take", "", demoClaim())
	var claim struct {
		ID string `json:"claim_id"`
	}
	if err := json.Unmarshal([]byte(r.body), &claim); err != nil || claim.ID == "" {
		t.Fatalf("%v: %d %s", err, r.status, r.body)
	}
	signer, _ := startSigner(t, demoKeyFile(folder, demoDesk), socket)
	w := demoWalletNumber("1")
	w.chain = d.at.Chain
	if err := w.pay(t.Context(), strings.NewReader(r.body), io.Discard); err != nil {
		t.Fatal(err)
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

// What the journal has lost is looked for from its end on, where it is told to
// count more than the stores, and where there is a journal.
func TestLostSince(t *testing.T) {
	state := engine.NewState(engine.StateOptions{})
	for _, c := range []struct {
		rebase bool
		seq    uint64
		want   time.Time
	}{{rebase: true}, {rebase: true, seq: 1, want: time.Unix(0, 7)}, {seq: 2}} {
		if c.seq > 0 {
			state.Apply(&engine.Command{Kind: engine.Tick, Seq: c.seq, At: 7}, event.NewGrowing(4))
		}
		if got := (&service{rebase: c.rebase}).lostSince(state); !got.Equal(c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Dust is counted in the atoms of its rail.
func TestDustOptions(t *testing.T) {
	for text, want := range map[string][2]market.Amount{
		"": {10_000, 100_000},
		"settle: {dust_usdc: '0', dust_sol: '0'}":       {0, 0},
		"settle: {dust_usdc: '1.0', dust_sol: '0.010'}": {1_000_000, 10_000_000},
	} {
		cfg, err := loadText(t, text)
		if err != nil {
			t.Fatal(err)
		}
		o, err := (&service{cfg: &cfg}).settleOptions()
		if got := o.Payments.Dust; err != nil || got[market.RailUSDC] != want[0] || got[market.RailSOL] != want[1] {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// What may be lost is a package of mode interval alone.
func TestBuildsAreKeptBeforeTheyAreHandedOut(t *testing.T) {
	for mode, want := range map[string]bool{"sync": true, "quorum": true, "interval": false} {
		cfg := config.Default()
		cfg.Durability.Mode = mode
		if o, err := (&service{cfg: &cfg}).settleOptions(); err != nil || o.SyncBuilds != want {
			t.Errorf("%s: %v, %v", mode, o.SyncBuilds, err)
		}
	}
}
