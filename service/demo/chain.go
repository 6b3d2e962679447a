package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"blockdesk/internal/sandbox"
	"blockdesk/service/config"
)

const (
	// ChainFolder, in the data folder, has the local chain's state, in ChainStateFile,
	// and keys.
	ChainFolder    = "chain"
	ChainStateFile = "chain.state"
	// Wallets is how many wallets the local chain gives SOL and USDC to.
	Wallets = 3
)

// ChainDir returns the path of ChainFolder.
func ChainDir(c *config.Config) string { return filepath.Join(c.DataDir, ChainFolder) }

// ChainOptions returns the options of the local chain, whose state and keys are in
// dir. Dir of the options is empty if the program's own server is to run.
func ChainOptions(c *config.Config, dir string) sandbox.Options {
	return sandbox.Options{
		Dir: cmp.Or(c.Chain.SandboxDir, FindSandbox()), Addr: c.Listen.Chain, SetupDir: dir, StateFile: filepath.Join(dir, ChainStateFile), Wallets: Wallets,
		BlockhashSlots: c.Chain.BlockhashSlots,
	}
}

// FindSandbox returns the folder of the local chain's server, searched for from the working
// folder and from the program's folder; empty if there is none, and if the program contains
// the whole server.
func FindSandbox() string {
	if sandbox.Complete() {
		return ""
	}
	var from []string
	if dir, err := os.Getwd(); err == nil {
		from = append(from, dir)
	}
	if exe, err := os.Executable(); err == nil {
		from = append(from, filepath.Dir(exe))
	}
	return sandbox.Find(from...)
}

// Chain is the demo's local chain.
type Chain struct {
	*sandbox.Node
	pool *Pool // nil: the configuration has no instrument of the pool's
	log  *slog.Logger
}

// Tasks returns what moves the chain's markets, by name: the oracle, and the pool's swaps.
func (c *Chain) Tasks() map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{"demo's oracle": NewOracle(c.Node, c.log).Run}
	if c.pool != nil {
		all["demo's pool"] = c.pool.Run
	}
	return all
}

// Stop makes the chain save its state and end, and waits for it.
func (c *Chain) Stop() error {
	if c.pool != nil {
		c.pool.Close()
	}
	return c.Node.Stop()
}

// StartChain starts the local chain of a demo without a configured chain, with its pool, and
// sets the chain, the sources of its prices and the mirrored pair in the configuration. It
// returns nil if no chain is wanted, or, with the reason, if the chain cannot run: the demo
// works without it. The chain outlives ctx: Stop ends it.
//
// A chain that ends by itself is not started again: it would lose up to ten seconds of
// blocks that the desk has seen finalized, and an operator must decide that.
func StartChain(ctx context.Context, c *config.Config, log *slog.Logger) (chain *Chain, unavailable string, err error) {
	if !c.Demo || !c.RFQ.Enabled || c.Chain.RPCURLs != "" {
		return nil, "", nil
	}
	dir := ChainDir(c)
	o := ChainOptions(c, dir)
	o.Stderr = chainLog{log}
	node, err := StartSandbox(ctx, o)
	if errors.Is(err, context.Canceled) {
		return nil, "", err
	}
	if err != nil {
		unavailable = reason(err)
		log.Info("no local chain: claims answer CHAIN_UNAVAILABLE, and "+PoolSymbol+" has no pool", "reason", unavailable)
		return nil, unavailable, nil
	}
	setup, err := sandbox.ReadSetup(dir)
	if err == nil {
		err = checkSetup(setup, dir)
	}
	if err != nil {
		return nil, "", errors.Join(err, node.Stop())
	}
	c.Chain.RPCURLs = node.URL()
	if len(c.Prices) == 0 {
		c.Prices = priceRules(c)
	}
	chain = &Chain{Node: node, log: log}
	// The first client must find prices.
	if err := NewOracle(node, log).publish(ctx); err != nil {
		return nil, "", errors.Join(err, chain.Stop())
	}
	if chain.pool, err = OpenPool(ctx, c, node, log); err != nil && ctx.Err() != nil {
		return nil, "", errors.Join(err, chain.Stop())
	} else if err != nil {
		log.Warn("no demo pool: "+PoolSymbol+" shows nothing", "error", err)
	}
	return chain, "", nil
}

// StartSandbox starts a local chain with the demo's keys. Without a folder of the server
// it unpacks the program's own (sandbox.Options.Unpacked). The chain outlives
// ctx: Stop ends it.
func StartSandbox(ctx context.Context, o sandbox.Options) (*sandbox.Node, error) {
	o, err := o.Unpacked()
	if err != nil {
		return nil, err
	}
	if err := o.Check(ctx); err != nil {
		return nil, err
	}
	if err := awaitLastChain(ctx, o.SetupDir); err != nil {
		return nil, err
	}
	if err := WriteKeys(o.SetupDir, o.Wallets); err != nil {
		return nil, err
	}
	return sandbox.Start(context.WithoutCancel(ctx), o)
}

// saveTimeout bounds how long a chain saves its state after its service was killed.
const saveTimeout = 3 * time.Second

// awaitLastChain waits until the last chain of a folder has saved its state and ended.
// Otherwise a new chain would begin from an older state, and both would write it.
func awaitLastChain(ctx context.Context, dir string) error {
	setup, err := sandbox.ReadSetup(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(saveTimeout); isChain(ctx, client, setup.RPCURL, setup.GenesisHash); {
		if time.Now().After(deadline) {
			return fmt.Errorf("the previous chain of %s still runs at %s: stop it", dir, setup.RPCURL)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// maxAnswer bounds the answer of a node, in bytes.
const maxAnswer = 1 << 20

// isChain reports whether the chain with this genesis answers at a URL.
func isChain(ctx context.Context, client *http.Client, url, genesis string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"getGenesisHash"}`))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var answer struct {
		Result string `json:"result"`
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&answer) == nil && answer.Result == genesis
}

// checkSetup fails if a folder has other keys than the demo's, because the desk would sell
// other mints than those on the chain.
func checkSetup(setup *sandbox.Setup, dir string) error {
	for name, address := range map[string]string{
		MintUSDC: setup.Mints["USDC"].Address, MintSLUSD: setup.Mints["SLUSD"].Address,
		Mint92C: setup.Mints["92C"].Address, Desk: setup.Desk.Address, Treasury: setup.Treasury.Address,
	} {
		if address != Address(name) {
			return fmt.Errorf("%s: %s is a key of another setup: delete the folder, or use another one with --data", dir, name+".json")
		}
	}
	return nil
}

// chainLog writes the output of the chain to the log.
type chainLog struct{ log *slog.Logger }

func (c chainLog) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if line = strings.TrimSpace(line); line != "" {
			c.log.Info("local chain", "output", line)
		}
	}
	return len(p), nil
}

// reason returns the last line of the chain's output: why it has not started.
func reason(err error) string {
	text := strings.TrimSpace(err.Error()) // the output may be empty
	text = strings.TrimPrefix(text[strings.LastIndexByte(text, '\n')+1:], sandbox.ErrUnavailable.Error()+": ")
	return strings.TrimPrefix(text, "sandbox: ")
}
