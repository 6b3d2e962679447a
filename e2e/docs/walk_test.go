package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/service/demo"
	"blockdesk/service/servicetest"
	"blockdesk/service/wallet"
)

// deployment is a set of the services that the walk reads.
type deployment uint8

const (
	onDemo   deployment = 1 << iota // the demo with its local chain and pool
	onMirror                        // a service without a desk that mirrors that pool
	onDown                          // a demo whose desk and mirror have nodes of which none answers
	onLimits                        // a demo without a chain, with the limits that are the default

	onDesk  = onDemo | onDown
	onChain = onDemo | onMirror
	onAll   = onDemo | onMirror | onDown
)

// step holds sentences of the specification: what a reader of a running service finds.
type step struct {
	point  string
	quotes []string // a part of each of the sentences
	on     deployment
	check  func(w *walk)
}

// walk reads a running service as the sentences of docs/specification.md say.
type walk struct {
	t       *testing.T
	at      *programtest.Service
	on      deployment
	symbols []string
	buyer   *wallet.Wallet // of the demo's chain; nil without one
}

func (w *walk) is(on deployment) bool { return w.on&on != 0 }

// canonical returns the first symbol.
func (w *walk) canonical() string { return w.symbols[0] }

var walkSteps = slices.Concat(walkOfTheService, walkOfResources, walkOfRecords, walkOfStates, walkOfEndpoints, walkOfTrading, walkOfLimits, walkOfTheRest)

// TestSpecificationWalk: each sentence of the walk holds on each service that it speaks of.
func TestSpecificationWalk(t *testing.T) {
	d := startWalkDemo(t)
	t.Run("services", func(t *testing.T) {
		for name, start := range map[string]func(t *testing.T) *walk{
			"demo":   func(*testing.T) *walk { return d },
			"mirror": func(t *testing.T) *walk { return startWalkMirror(t, d) },
			"down":   startWalkDown, "limits": startWalkLimits,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := start(t)
				for _, s := range walkSteps {
					if !w.is(s.on) {
						continue
					}
					t.Run(s.point+" "+s.quotes[0][:min(40, len(s.quotes[0]))], func(t *testing.T) {
						one := *w
						one.t = t
						s.check(&one)
					})
				}
			})
		}
	})
}

// fastMirror are settings that read mirrored markets every second, and limit no reader.
var fastMirror = slices.Clip(append(slices.Clone(documentLimits), "--set", "mirror.every_ms=1000"))

// startWalkDemo returns the demo when its documents have all that its chain has.
func startWalkDemo(t *testing.T) *walk {
	dir := servicetest.LocalChain(t)
	w := &walk{t: t, on: onDemo, symbols: []string{programtest.Symbol, programtest.OtherSymbol, demo.PoolSymbol}}
	w.at = programtest.StartDemo(t, slices.Concat(fastMirror, programtest.LongLived, []string{"--set", programtest.WithChain(dir)})...)
	setup := programtest.Must(sandbox.ReadSetup(filepath.Join(w.at.Data, demo.ChainFolder)))
	w.buyer = &wallet.Wallet{Key: programtest.Must(setup.Key(setup.Wallets[0])), Base: w.at.At.Base, Chain: w.at.At.Chain, HTTP: walkClient}
	w.awaitPool()
	await.True(t, "the desk's tokens in the documents", func() bool {
		return slices.Contains(w.read(marketRoot+"tokens", "tokens.*.observed_accounts.*.role"), any("guarantee_reserve"))
	})
	return w
}

// awaitPool waits until the documents have the pool, and a swap of it.
func (w *walk) awaitPool() {
	w.t.Helper()
	await.True(w.t, "a swap of the pool in the documents", func() bool {
		return len(w.read(marketRoot+"trades?symbol="+demo.PoolSymbol, "trades.*.signature")) > 0 &&
			len(w.read(marketRoot+"pools", "pools.*.base_vault_balance")) > 0
	})
}

// twoInstruments are those of a demo.
const twoInstruments = `instruments:
  - {symbol: SLUSD/USDC, price_decimals: 6, qty_decimals: 6, tick: "0.000001", lot: "0.000001", min_qty: "0.01", max_qty: "100000000", max_price: "1000000", book_source: matched}
  - {symbol: 92C/SLUSD, price_decimals: 6, qty_decimals: 6, tick: "0.000001", lot: "0.000001", min_qty: "0.01", max_qty: "100000000", max_price: "1000000", book_source: matched}
`

const poolInstrument = `  - {symbol: 92C/USDC, price_decimals: 6, qty_decimals: 6, tick: "0.000001", lot: "0.000001", min_qty: "0.01", max_qty: "100000000", max_price: "1000000", book_source: mirrored}
`

// poolMirror is the configuration that mirrors a pool of the demo's.
func poolMirror(node, pool, baseVault, quoteVault string) string {
	return fmt.Sprintf(`mirror:
  rpc_urls: %s
  pairs:
    - {symbol: 92C/USDC, base_mint: %s, base_decimals: 6, quote_mint: %s, quote_decimals: 6,
       pool: {layout: vault_pair, address: %s, base_vault: %s, quote_vault: %s}}
`, node, demo.Address(demo.Mint92C), demo.Address(demo.MintUSDC), pool, baseVault, quoteVault)
}

// startWalkMirror returns a service that only mirrors the demo's pool.
func startWalkMirror(t *testing.T, d *walk) *walk {
	var pools struct {
		Pools []struct {
			ID    string `json:"pool_id"`
			Base  string `json:"base_vault"`
			Quote string `json:"quote_vault"`
		} `json:"pools"`
	}
	programtest.GetJSON(t, d.at.At.Base+marketRoot+"pools", &pools)
	p := &pools.Pools[0]
	config := "rfq: {enabled: false, pairs: []}\ninstruments:\n" + poolInstrument + poolMirror(d.at.At.Chain, p.ID, p.Base, p.Quote)
	w := &walk{t: t, on: onMirror, symbols: []string{demo.PoolSymbol}}
	w.at = programtest.StartServe(t, t.TempDir(), append(fastMirror, "--config", configFile(t, config))...)
	w.awaitPool()
	await.True(t, "a proven window of the pool", func() bool {
		return w.one(statusPath, "rolling_windows.status_24h") == "exact"
	})
	return w
}

// startWalkDown returns a demo that has a desk and a mirrored pool, and whose only node
// refuses every connection.
func startWalkDown(t *testing.T) *walk {
	dead := "http://127.0.0.1:" + programtest.FreePort(t)
	key := filepath.Join(t.TempDir(), "desk.json")
	var numbers []int
	for _, b := range demo.Key(demo.Desk) {
		numbers = append(numbers, int(b))
	}
	if err := os.WriteFile(key, programtest.Must(json.Marshal(numbers)), 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("chain: {rpc_urls: %q, timeout_ms: 2000, attempt_timeout_ms: 1000}\nsettle: {key_file: %q}\n", dead, key) +
		twoInstruments + poolInstrument +
		poolMirror(dead, demo.Address(demo.PoolOwner), solana.Base58(solana.Address{1}), solana.Base58(solana.Address{2}))
	w := &walk{t: t, on: onDown, symbols: []string{programtest.Symbol, programtest.OtherSymbol, demo.PoolSymbol}}
	w.at = programtest.StartDemo(t, append(fastMirror, "--config", configFile(t, config))...)
	await.True(t, "trades of the bots", func() bool {
		return len(w.read(marketRoot+"trades?symbol="+programtest.Symbol, "trades.*.price")) > 0 &&
			w.one(statusPath, "spot_price_usd") != nil
	})
	return w
}

// startWalkLimits returns a demo without a chain, with the limits of a desk and another fee.
func startWalkLimits(t *testing.T) *walk {
	return &walk{
		t: t, on: onLimits, symbols: []string{programtest.Symbol},
		at: programtest.StartDemo(t, "--set", "http.tokens_per_hour=1", "--set", "rfq.fee_bps=300"),
	}
}

// configFile writes a configuration.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "walk.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
