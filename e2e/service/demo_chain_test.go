package service

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/service/demo"
	"blockdesk/service/servicetest"
)

// The demo comes up without a chain and says so in one line; on the same data it
// comes up with one later, and the desk sells the same mints.
func TestDemoBeforeAndAfterNode(t *testing.T) {
	t.Parallel()
	dir := servicetest.LocalChain(t)
	data := t.TempDir()
	tokens := func(d *programtest.Service) (out string) {
		for _, mint := range []string{demo.MintUSDC, demo.MintSLUSD, demo.Mint92C} {
			if body := programtest.Get(t, d.At.Base+"/api/v1/rfq/tokens"); !strings.Contains(body, demo.Address(mint)) {
				t.Errorf("%s is not sold: %s", mint, body)
			}
		}
		return d.At.Chain
	}
	without := programtest.StartDemoOn(t, data)
	without.AwaitTickets(t)
	if chain := tokens(without); chain != "" {
		t.Errorf("a chain at %s", chain)
	}
	r := programtest.Post(t, without.At.Base+"/rfq-native/modular-claim-take", "", `{"bot_wallet":"`+demo.Address("wallet-1")+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`)
	if r.Status != http.StatusServiceUnavailable || !strings.Contains(r.Body, "CHAIN_UNAVAILABLE") {
		t.Errorf("a claim without a chain: %d %s", r.Status, r.Body)
	}
	if err := without.Stop(); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(without.Out.String(), "\nchain "); lines != 1 || !strings.Contains(without.Out.String(), "unavailable: ") {
		t.Errorf("%d lines on the chain:\n%s", lines, without.Out)
	}
	with := programtest.StartDemoOn(t, data, "--set", programtest.WithChain(dir))
	url := tokens(with)
	if url == "" || !strings.Contains(programtest.Get(t, url+"/health"), "ok") {
		t.Errorf("no chain at %q", url)
	}
	if err := with.Stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(with.Out.String(), url+", local; wallets in "+filepath.Join(data, demo.ChainFolder)) {
		t.Errorf("the chain is not announced:\n%s", with.Out)
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
	d := programtest.StartDemo(t, "--set", programtest.WithChain(dir))
	await.True(t, "a ready service", func() bool { return programtest.Status(t, d.At.Admin+"/readyz") == http.StatusOK })
	if err := syscall.Kill(childOf(t, d.PID), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await.True(t, "a service that says so", func() bool {
		return strings.Contains(programtest.Get(t, d.At.Admin+"/readyz"), `{"name":"chain","ok":false`)
	})
	if code := programtest.Status(t, d.At.Admin+"/readyz"); code != http.StatusOK {
		t.Errorf("without its chain the service is not ready: %d", code)
	}
	r := programtest.Post(t, d.At.Base+"/rfq-native/modular-claim-take", "", `{"bot_wallet":"`+demo.Address("wallet-1")+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`)
	if r.Status != http.StatusServiceUnavailable || !strings.Contains(r.Body, "CHAIN_UNAVAILABLE") {
		t.Errorf("a claim on a killed chain: %d %s", r.Status, r.Body)
	}
	if !strings.Contains(programtest.Get(t, d.At.Base+"/api/v1/rfq/current-sellable-ticket"), `"T`) {
		t.Error("no ticket any more")
	}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(d.Out.String(), "level=ERROR") {
		t.Errorf("nothing is said of it:\n%s", d.Out)
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
