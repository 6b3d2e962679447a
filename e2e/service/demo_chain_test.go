package service

import (
	"context"
	"errors"
	"fmt"
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

// poolDocuments are what the documents of the demo say of its pool.
type poolDocuments struct {
	Swaps    []struct{ Signature, Source string }
	Volumes  map[string]string // of 24 hours, by symbol
	Pools    []publishedPool
	Caps     map[string]string
	Accounts map[string]int // observed ones, by the token's symbol
}

// publishedPool is a pool of the documents.
type publishedPool struct {
	Symbol    string
	Liquidity string `json:"liquidity_usd"`
	Slot      uint64
}

// readPoolDocuments reads the documents of the demo at an address.
func readPoolDocuments(t *testing.T, base string) (d poolDocuments) {
	t.Helper()
	var trades struct {
		Trades []struct{ Signature, Source string }
	}
	var pairs struct {
		Pairs []struct {
			Symbol string
			Volume string `json:"volume_24h"`
		}
	}
	var pools struct{ Pools []publishedPool }
	var caps struct {
		Tokens []struct {
			Symbol string
			Cap    string `json:"market_cap_usd"`
		}
	}
	var tokens struct {
		Tokens []struct {
			Symbol   string
			Accounts []struct{ Role string } `json:"observed_accounts"`
		}
	}
	for path, into := range map[string]any{
		"trades?symbol=" + demo.PoolSymbol: &trades, "pairs": &pairs, "pools": &pools, "marketcap": &caps, "tokens": &tokens,
	} {
		programtest.GetJSON(t, base+"/api/v1/market/"+path, into)
	}
	d = poolDocuments{Swaps: trades.Trades, Pools: pools.Pools, Volumes: map[string]string{}, Caps: map[string]string{}, Accounts: map[string]int{}}
	for _, p := range pairs.Pairs {
		d.Volumes[p.Symbol] = p.Volume
	}
	for _, c := range caps.Tokens {
		d.Caps[c.Symbol] = c.Cap
	}
	for _, c := range tokens.Tokens {
		d.Accounts[c.Symbol] = len(c.Accounts)
	}
	return d
}

// check reports what is not a real figure.
func (d *poolDocuments) check() error {
	for name, ok := range map[string]bool{
		"swaps":    len(d.Swaps) > 0 && len(d.Swaps[0].Signature) > 80 && d.Swaps[0].Source == "mirrored",
		"volume":   strings.Trim(d.Volumes[demo.PoolSymbol], "0.") != "",
		"pool":     len(d.Pools) == 1 && d.Pools[0].Symbol == demo.PoolSymbol && d.Pools[0].Slot > 0 && len(d.Pools[0].Liquidity) > len("1000000."),
		"caps":     d.Caps["SLUSD"] != "" && d.Caps["92C"] != "" && d.Caps["USDC"] != "",
		"accounts": d.Accounts["SLUSD"] == 1 && d.Accounts["92C"] == 3 && d.Accounts["USDC"] == 2,
	} {
		if !ok {
			return fmt.Errorf("%s: %+v", name, *d)
		}
	}
	return nil
}

// TestDemoPool: a demo that had no chain gets one with a pool, and the documents show real
// figures of them. After kill -9 the swaps are the same, and more come.
func TestDemoPool(t *testing.T) {
	t.Parallel()
	dir := servicetest.LocalChain(t)
	const config = "demo: true\nhttp: {market_data_per_minute: 0}\nlisten: {chain: '127.0.0.1:0'}\nmirror: {every_ms: 1000}\nchain: {sandbox_dir: %q}\n"
	s := programtest.Start(t, fmt.Sprintf(config, "/nonexistent"))
	if d := readPoolDocuments(t, s.Addresses.Base); len(d.Volumes) != 3 || len(d.Pools) != 0 || len(d.Swaps) != 0 || d.Accounts["92C"] != 0 {
		t.Fatalf("without a chain: %+v", d)
	}
	restart := func(end func() error) (d poolDocuments) {
		t.Helper()
		if err := errors.Join(end(), s.Restart(context.Background())); err != nil {
			t.Fatal(err)
		}
		await.NoError(t, "real figures", func() error {
			d = readPoolDocuments(t, s.Addresses.Base)
			return d.check()
		})
		return d
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.DataDir()), "config.yaml"), fmt.Appendf(nil, config, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	before := restart(s.Stop)
	after := restart(s.Kill)
	first := before.Swaps[len(before.Swaps)-1]
	if got := after.Swaps[len(after.Swaps)-1]; got != first {
		t.Errorf("the first swap was %+v and is %+v", first, got)
	}
	await.True(t, "another swap", func() bool { return len(readPoolDocuments(t, s.Addresses.Base).Swaps) > len(before.Swaps) })
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
