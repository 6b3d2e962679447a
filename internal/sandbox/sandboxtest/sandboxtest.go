// Package sandboxtest runs the local chain (package sandbox) for as long as a test, and
// makes clients of it.
//
// The chain is a Node process that executes transactions for real. A test can let slots
// pass, make nodes fail or lie, and read balances. A test is skipped, with the command
// that installs what is missing, where Node or its packages are missing. Methods of Chain
// fail the test on an error, so only the test's own goroutine may call them. The chain
// ends with the test.
package sandboxtest

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"testing"
	"time"

	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
)

// Chain is a chain that ends with its test. Its methods fail the test on an error, so
// only the test's own goroutine may call them; any may call those of Node.
type Chain struct {
	*sandbox.Node
	Setup *sandbox.Setup
	Dir   string // of the setup's files

	t testing.TB
}

// Start starts the chain of the test's source tree, or skips the test if it cannot run.
// It finds Options.Dir; without SetupDir the setup is in a temporary folder.
func Start(t testing.TB, o sandbox.Options) *Chain {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	o.Dir = sandbox.Find(here)
	if o.SetupDir == "" {
		o.SetupDir = t.TempDir()
	}
	// A cleanup may still call it, so it ends by Stop and not with the test's context.
	node, err := sandbox.Start(context.WithoutCancel(t.Context()), o)
	if errors.Is(err, sandbox.ErrUnavailable) {
		runtest.SkipMissing(t, err.Error(), "make sandbox (needs Node 20 and npm)")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	setup, err := sandbox.ReadSetup(o.SetupDir)
	if err != nil {
		t.Fatal(err)
	}
	return &Chain{Node: node, Setup: setup, Dir: o.SetupDir, t: t}
}

// Control calls the method sandbox_method.
func (c *Chain) Control(method string, params map[string]any) {
	c.t.Helper()
	if err := c.Call(context.WithoutCancel(c.t.Context()), "sandbox_"+method, params, nil); err != nil {
		c.t.Fatal(err)
	}
}

// Advance lets slots pass at once.
func (c *Chain) Advance(slots int) {
	c.t.Helper()
	c.Control("advance", map[string]any{"slots": slots})
}

// Client returns a client that sees the chain as one node for each name, or as a single
// node without names. It never hedges, and fetches a new blockhash each time, because
// slots that a test advances age the cached one. The test's end closes it. Without
// timeouts its calls may take long.
func (c *Chain) Client(o rpc.Options, names ...string) *rpc.Client {
	c.t.Helper()
	if len(names) == 0 {
		names = []string{"sandbox"}
	}
	for _, name := range names {
		o.Upstreams = append(o.Upstreams, rpc.Upstream{Name: name, URL: c.URL()})
	}
	o.HedgeAfter, o.MaxBlockhashAge = -1, time.Nanosecond
	o.Timeout = cmp.Or(o.Timeout, runtest.HangTimeout)
	o.AttemptTimeout = cmp.Or(o.AttemptTimeout, o.Timeout)
	client, err := rpc.New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}

// Mint reads a mint from the chain and checks it, as the service does at start.
func (c *Chain) Mint(client *rpc.Client, mint solana.Address, allowed token.Extensions) token.Checked {
	c.t.Helper()
	list, _, err := client.Accounts(context.WithoutCancel(c.t.Context()), []solana.Address{mint}, rpc.Confirmed, 0)
	if err != nil {
		c.t.Fatal(err)
	}
	parsed, err := token.ParseMint(list[0].Address, list[0].Owner, list[0].Data)
	if err != nil {
		c.t.Fatal(err)
	}
	checked, err := parsed.Check(allowed)
	if err != nil {
		c.t.Fatal(err)
	}
	return checked
}

// Address parses an address of the setup.
func (c *Chain) Address(text string) solana.Address {
	c.t.Helper()
	a, err := solana.ParseAddress(text)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// Key reads a party's key.
func (c *Chain) Key(p sandbox.Party) ed25519.PrivateKey {
	c.t.Helper()
	key, err := c.Setup.Key(p)
	if err != nil {
		c.t.Fatal(err)
	}
	return key
}
