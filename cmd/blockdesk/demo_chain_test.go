package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"blockdesk/internal/await"
	"blockdesk/service/demo"
	"blockdesk/service/servicetest"
)

// withChain starts the demo with its chain.
func withChain(dir string) string { return "chain.sandbox_dir=" + dir }

// longLives are settings of a demo in which nothing that a client holds expires while
// the test runs: blockhashes, claims, quotes.
var longLives = []string{
	"--set", "chain.blockhash_slots=100000", "--set", "rfq.claim_ttl_s=3600", "--set", "rfq.quote_ttl_s=3600",
	"--set", "chain.timeout_ms=60000", "--set", "chain.attempt_timeout_ms=50000",
}

// The demo comes up without a chain and says so in one line; on the same data it
// comes up with one later, and the desk sells the same mints.
func TestDemoBeforeAndAfterNode(t *testing.T) {
	t.Parallel()
	dir := servicetest.LocalChain(t)
	data := t.TempDir()
	tokens := func(d *demoService) (out string) {
		for _, mint := range []string{demo.MintUSDC, demo.MintSLUSD, demo.Mint92C} {
			if body := get(t, d.at.Base+"/api/v1/rfq/tokens"); !strings.Contains(body, demo.Address(mint)) {
				t.Errorf("%s is not sold: %s", mint, body)
			}
		}
		return d.at.Chain
	}
	without := startDemoOn(t, data)
	without.awaitTickets(t)
	if chain := tokens(without); chain != "" {
		t.Errorf("a chain at %s", chain)
	}
	r := post(t, without.at.Base+"/rfq-native/modular-claim-take", "", `{"bot_wallet":"`+demo.Address("wallet-1")+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`)
	if r.status != http.StatusServiceUnavailable || !strings.Contains(r.body, "CHAIN_UNAVAILABLE") {
		t.Errorf("a claim without a chain: %d %s", r.status, r.body)
	}
	if err := without.stop(); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(without.out.String(), "\nchain "); lines != 1 || !strings.Contains(without.out.String(), "unavailable: ") {
		t.Errorf("%d lines on the chain:\n%s", lines, without.out)
	}
	with := startDemoOn(t, data, "--set", withChain(dir))
	url := tokens(with)
	if url == "" || !strings.Contains(get(t, url+"/health"), "ok") {
		t.Errorf("no chain at %q", url)
	}
	if err := with.stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(with.out.String(), url+", local; wallets in "+filepath.Join(data, demo.ChainFolder)) {
		t.Errorf("the chain is not announced:\n%s", with.out)
	}
	if _, err := os.Stat(filepath.Join(data, demo.ChainFolder, demo.ChainStateFile)); err != nil {
		t.Error(err)
	}
}

// The service lives on when its chain is killed, says so in /readyz, and stops
// cleanly.
func TestDemoOutlivesItsChain(t *testing.T) {
	t.Parallel()
	dir := servicetest.LocalChain(t)
	d := startDemo(t, "--set", withChain(dir))
	await.True(t, "a ready service", func() bool { return status(t, d.at.Admin+"/readyz") == http.StatusOK })
	if err := syscall.Kill(childOf(t, d.pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await.True(t, "a service that says so", func() bool {
		return strings.Contains(get(t, d.at.Admin+"/readyz"), `{"name":"chain","ok":false`)
	})
	if code := status(t, d.at.Admin+"/readyz"); code != http.StatusOK {
		t.Errorf("without its chain the service is not ready: %d", code)
	}
	r := post(t, d.at.Base+"/rfq-native/modular-claim-take", "", `{"bot_wallet":"`+demo.Address("wallet-1")+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`)
	if r.status != http.StatusServiceUnavailable || !strings.Contains(r.body, "CHAIN_UNAVAILABLE") {
		t.Errorf("a claim on a killed chain: %d %s", r.status, r.body)
	}
	if !strings.Contains(get(t, d.at.Base+"/api/v1/rfq/current-sellable-ticket"), `"T`) {
		t.Error("no ticket any more")
	}
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(d.out.String(), "level=ERROR") {
		t.Errorf("nothing is said of it:\n%s", d.out)
	}
}

// childOf returns the one child process of a process.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// PID (NAME) STATE PPID: a name may hold anything.
		rest := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, pidErr := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if ppid, err := strconv.Atoi(rest[1]); err == nil && pidErr == nil && ppid == parent {
			return pid
		}
	}
	t.Fatalf("process %d has no child", parent)
	return 0
}

func status(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
