package main

import (
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

	"golang.org/x/sync/errgroup"

	"blockdesk/internal/sandbox"
	"blockdesk/service/config"
)

const (
	// chainFolder, in the data folder, has the local chain's state and keys.
	chainFolder    = "chain"
	chainStateFile = "chain.state"
	demoWallets    = 3
)

func chainDir(c *config.Config) string { return filepath.Join(c.DataDir, chainFolder) }

// sandboxOptions are the local chain's, kept in dir.
func sandboxOptions(c *config.Config, dir string) sandbox.Options {
	where := c.Chain.SandboxDir
	if where == "" {
		where = findSandbox()
	}
	return sandbox.Options{
		Dir: where, Addr: c.Listen.Chain, SetupDir: dir, StateFile: filepath.Join(dir, chainStateFile), Wallets: demoWallets,
		BlockhashSlots: c.Chain.BlockhashSlots,
	}
}

// findSandbox looks from the working folder and from the program's own.
func findSandbox() string {
	var from []string
	if dir, err := os.Getwd(); err == nil {
		from = append(from, dir)
	}
	if exe, err := os.Executable(); err == nil {
		from = append(from, filepath.Dir(exe))
	}
	return sandbox.Find(from...)
}

// startDemoChain starts the local chain of a demo that has none configured, and
// settles on it. Where it cannot run the demo does without: s.chainNote says why.
//
// A chain that ends by itself stays ended until the service is started again:
// it would come back without what it had not saved, up to ten seconds of blocks
// that the desk has seen finalized, and that is for a person to decide.
func (s *service) startDemoChain(ctx context.Context) error {
	if !s.cfg.Demo || !s.cfg.RFQ.Enabled || s.cfg.Chain.RPCURLs != "" {
		return nil
	}
	dir := chainDir(s.cfg)
	o := sandboxOptions(s.cfg, dir)
	o.Stderr = chainLog{s.log}
	node, err := startSandbox(ctx, o)
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		s.chainNote = plainReason(err)
		s.log.Info("claims answer CHAIN_UNAVAILABLE", "reason", s.chainNote)
		return nil
	}
	s.chain = node
	setup, err := sandbox.ReadSetup(dir)
	if err != nil {
		return err
	}
	if err := checkDemoSetup(setup, dir); err != nil {
		return err
	}
	s.cfg.Chain.RPCURLs = node.URL()
	return nil
}

// runChain follows the local chain until the function that it returns is called,
// which stops it: it comes last, and saves its state. That it ends by itself is
// said, and ends nothing else.
func (s *service) runChain() (stop func() error) {
	if s.chain == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(context.Background())
	var follow errgroup.Group
	follow.Go(func() error {
		if err := s.chain.Run(ctx); err != nil {
			s.log.Error("no claims until the service is started again", "error", err)
		}
		return nil
	})
	return func() error {
		cancel()
		err := follow.Wait()
		s.chain = nil
		return err
	}
}

// startSandbox starts the local chain with the demo's keys. It outlives ctx: what
// ends it is Stop.
func startSandbox(ctx context.Context, o sandbox.Options) (*sandbox.Node, error) {
	if err := o.Check(ctx); err != nil {
		return nil, err
	}
	if err := awaitLastChain(ctx, o.SetupDir); err != nil {
		return nil, err
	}
	if err := writeDemoKeys(o.SetupDir, o.Wallets); err != nil {
		return nil, err
	}
	return sandbox.Start(context.WithoutCancel(ctx), o)
}

// lastChainWithin is how long a chain may take to save its state after the
// service that started it was killed.
const lastChainWithin = 3 * time.Second

// awaitLastChain waits until the chain that was last kept in a folder has ended,
// which it does when it has saved its state: a new one would begin from an older
// one, and both would write it.
func awaitLastChain(ctx context.Context, dir string) error {
	setup, err := sandbox.ReadSetup(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(lastChainWithin); isChain(ctx, client, setup.RPCURL, setup.GenesisHash); {
		if time.Now().After(deadline) {
			return fmt.Errorf("the chain of %s still runs, at %s", dir, setup.RPCURL)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// isChain reports whether this chain, and no other, answers at a URL.
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
	return json.NewDecoder(io.LimitReader(resp.Body, maxClientAnswer)).Decode(&answer) == nil && answer.Result == genesis
}

// checkDemoSetup refuses a folder that has other keys than the demo's: the desk
// would sell other mints than the chain has.
func checkDemoSetup(setup *sandbox.Setup, dir string) error {
	for name, address := range map[string]string{
		demoMintUSDC: setup.Mints["USDC"].Address, demoMintSLUSD: setup.Mints["SLUSD"].Address,
		demoMint92C: setup.Mints["92C"].Address, demoDesk: setup.Desk.Address, demoTreasury: setup.Treasury.Address,
	} {
		if address != demoAddress(name) {
			return fmt.Errorf("%s: %s is not the demo's: delete the folder, or take another one by --data", dir, name+".json")
		}
	}
	return nil
}

// chainLog takes what the chain has to say.
type chainLog struct{ log *slog.Logger }

func (c chainLog) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if line = strings.TrimSpace(line); line != "" {
			c.log.Info("local chain", "says", line)
		}
	}
	return len(p), nil
}

// plainReason is why the chain has not started, in one line for a person: what it
// said last itself.
func plainReason(err error) string {
	text := err.Error()
	text = strings.TrimPrefix(text[strings.LastIndexByte(text, '\n')+1:], sandbox.ErrUnavailable.Error()+": ")
	return strings.TrimPrefix(text, "sandbox: ")
}
