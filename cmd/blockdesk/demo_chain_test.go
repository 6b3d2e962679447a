package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
)

// localChain returns the folder of the local chain's server, and skips the test
// where it cannot run.
func localChain(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "internal", "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	if err := (sandbox.Options{Dir: dir}).Check(t.Context()); err != nil {
		runtest.Missing(t, "local chain ("+err.Error()+")", "make sandbox")
	}
	return dir
}

// The demo's addresses are the same for ever: data folders have them, and README
// and documents name some.
func TestDemoAddressesAreFrozen(t *testing.T) {
	for name, want := range map[string]string{
		demoMintUSDC: "8LNcMh2TqrE6yUJWMZnR2mKcymu6XYU9mYxY1LVC15Zk", demoMintSLUSD: "DUw5U71V3NiRQgmTaZrxqQsn7qkvVR3wSN4iJ4PY8ESN",
		demoMint92C: "A2qZvQ5dfYP6TFecjFkqJ1i9n5EnS3hFfSiZYWFHXzge", demoDesk: "Hk7BeHS9qR6KoaKb4FFoQmyzhZctE4TbyBBj3pD6fQn",
		demoTreasury: "DQgTgShQXs6eXkXDTFCsfq8cZ6UxLtUbXRywN8iNMrxL", fmt.Sprintf(demoWallet, 1): "3qL15Uq8Uux4QotxejMsLRu15eoA2L7vxfwQsj9d4uEG",
	} {
		if got := demoAddress(name); got != want {
			t.Errorf("%s is %s, was %s", name, got, want)
		}
	}
}

// The sandbox's setup makes exactly the mints and parties that the demo sells by,
// whatever chain it starts on.
func TestSandboxMakesTheDemosAddresses(t *testing.T) {
	t.Parallel()
	dir := localChain(t)
	folder := t.TempDir()
	for range 2 { // the second chain starts anew over the first one's folder
		node, err := startSandbox(t.Context(), sandbox.Options{Dir: dir, SetupDir: folder, Wallets: demoWallets, ManualSlots: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := node.Stop(); err != nil {
			t.Fatal(err)
		}
		setup, err := sandbox.ReadSetup(folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkDemoSetup(setup, folder); err != nil {
			t.Error(err)
		}
		if setup.MintAuthority.Address != demoAddress(demoAuthority) {
			t.Errorf("the mint authority is %s", setup.MintAuthority.Address)
		}
		for i, w := range setup.Wallets {
			if want := demoAddress(fmt.Sprintf(demoWallet, i+1)); w.Address != want {
				t.Errorf("wallet %d is %s, want %s", i+1, w.Address, want)
			}
		}
		if len(setup.Wallets) != demoWallets {
			t.Errorf("%d wallets", len(setup.Wallets))
		}
	}
}

// Keys that are there are used and not replaced; those that are made only their
// owner reads. A folder of other keys is refused.
func TestDemoKeyFiles(t *testing.T) {
	folder := t.TempDir()
	other := demoKeyFile(folder, demoDesk)
	if err := os.WriteFile(other, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeDemoKeys(folder, 1); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "[]" {
		t.Errorf("%s, %v", text, err)
	}
	for _, name := range demoKeyNames(1) {
		if name == demoDesk {
			continue
		}
		key, err := sandbox.ReadKey(demoKeyFile(folder, name))
		if err != nil || !key.Equal(demoKey(name)) {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(demoKeyFile(folder, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := checkDemoSetup(&sandbox.Setup{}, folder); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("a folder of other keys is taken: %v", err)
	}
}

func TestPlainReason(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: no Node here", sandbox.ErrUnavailable), "no Node here"},
		{errors.Join(errors.New("sandbox: not ready"), errors.New("sandbox: listen EADDRINUSE")), "listen EADDRINUSE"},
		{errors.New("disk full"), "disk full"},
	} {
		if got := plainReason(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

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
	dir := localChain(t)
	data := t.TempDir()
	tokens := func(d *demoService) (out string) {
		for _, mint := range []string{demoMintUSDC, demoMintSLUSD, demoMint92C} {
			if body := get(t, d.at.Base+"/api/v1/rfq/tokens"); !strings.Contains(body, demoAddress(mint)) {
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
	r := post(t, without.at.Base+"/rfq-native/modular-claim-take", "", `{"bot_wallet":"`+demoAddress("wallet-1")+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`)
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
	if !strings.Contains(with.out.String(), url+", local; wallets in "+filepath.Join(data, chainFolder)) {
		t.Errorf("the chain is not announced:\n%s", with.out)
	}
	if _, err := os.Stat(filepath.Join(data, chainFolder, chainStateFile)); err != nil {
		t.Error(err)
	}
}

// The service lives on when its chain is killed, says so in /readyz, and stops
// cleanly.
func TestDemoOutlivesItsChain(t *testing.T) {
	t.Parallel()
	dir := localChain(t)
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
	r := post(t, d.at.Base+"/rfq-native/modular-claim-take", "", `{"bot_wallet":"`+demoAddress("wallet-1")+`","order_id":"T1","tranche_id":"T1-1","fill_usd":"250"}`)
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

// A folder has one chain at a time, and whoever comes too early waits until the
// one before has saved its state.
func TestChainFolderHasOneChain(t *testing.T) {
	t.Parallel()
	dir := localChain(t)
	folder := t.TempDir()
	o := sandbox.Options{Dir: dir, SetupDir: folder, StateFile: filepath.Join(folder, chainStateFile), ManualSlots: true}
	first, err := startSandbox(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := startSandbox(t.Context(), o); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("a second chain over the first: %v, %v", second, err)
	}
	if err := first.Call(t.Context(), "sandbox_advance", map[string]int{"slots": 100}, nil); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- first.Stop() }() // its lock is there until its state is saved
	third, err := startSandbox(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var slot uint64
	if err := errors.Join(third.Call(t.Context(), "getSlot", nil, &slot), third.Stop(), <-ended); err != nil {
		t.Error(err)
	}
	if slot < 600-31 { // the default commitment is finalized
		t.Errorf("it goes on from slot %d", slot)
	}
}
