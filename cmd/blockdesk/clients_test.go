package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"

	"blockdesk/bench/server"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/service/demo"
)

// clientDir is where the clients that are not ours live.
func clientDir(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "internal", "clients", name))
	if err != nil {
		t.Fatal(err)
	}
	programtest.DependsOn(t, dir)
	return dir
}

// packages are those of Debian that have the tests' programs, where they have another
// name.
var packages = map[string]string{
	"g++": "g++ libquickfix-dev", "node": "nodejs", "python3": "python3", "systemd-analyze": "systemd", "go": "golang",
}

// tool returns the path of a program, or skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		runtest.Missing(t, name, "apt-get install "+cmp.Or(packages[name], name))
	}
	return path
}

// runClient runs a client to its end and returns what it said.
func runClient(t *testing.T, command string, args ...string) (string, error) {
	t.Helper()
	return runClientIn(t, "", command, args...)
}

// clientTime ends a client that hangs. Some compile, install or lay out pages first.
const clientTime = 2 * runtest.Patience

// runClientIn is runClient in a folder.
func runClientIn(t *testing.T, dir, command string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clientTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, ctx.Err())
}

// A client that shares no line with us, QuickFIX C++ with its own dictionary
// and validation on, trades through three sessions.
func TestIndependentFIXClient(t *testing.T) {
	runtest.NotRaced(t, "its client is not Go, and the tests of fixgw race the gateway")
	t.Parallel()
	trader := buildTrader(t)
	dictionary, err := filepath.Abs(filepath.Join("..", "..", "fixgw", "FIX44.xml"))
	if err != nil {
		t.Fatal(err)
	}
	f := newFIXService(t)
	f.trade(trader, f.host, f.port, dictionary, t.TempDir(), "BLOCKDESK",
		traderA, traderA2, traderB, testPassword, testSymbol, f.life())
}

// buildTrader compiles the QuickFIX client, or skips the test.
func buildTrader(t *testing.T) string {
	t.Helper()
	compiler := tool(t, "g++")
	if _, err := os.Stat("/usr/include/quickfix/Application.h"); err != nil {
		runtest.Missing(t, "QuickFIX C++", "apt-get install libquickfix-dev")
	}
	dir := clientDir(t, "quickfix")
	trader := filepath.Join(t.TempDir(), "trader")
	// C++14: QuickFIX's headers have exception specifications, which C++17 ended.
	if out, err := runClient(t, compiler, "-std=c++14", "-Wall", "-Wno-deprecated", "-o", trader,
		filepath.Join(dir, "line.cpp"), filepath.Join(dir, "trader.cpp"), "-lquickfix", "-lpthread"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return trader
}

// Another one, npm's jspurefix, with its stock dictionary and with ours, and its
// checks on.
func TestIndependentFIXClientJS(t *testing.T) {
	runtest.NotRaced(t, "its client is not Go, and the tests of fixgw race the gateway")
	t.Parallel()
	node := tool(t, "node")
	dir := clientDir(t, "jspurefix")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "jspurefix")); err != nil {
		runtest.Missing(t, "jspurefix of npm", "npm --prefix internal/clients/jspurefix ci")
	}
	dictionary, err := filepath.Abs(filepath.Join("..", "..", "sdk", "fix", "FIX44-blockdesk.xml"))
	if err != nil {
		t.Fatal(err)
	}
	f := newFIXService(t)
	f.trade(node, filepath.Join(dir, "trader.mjs"), f.host, f.port, dictionary, t.TempDir(), "BLOCKDESK",
		traderA, traderA2, traderB, testPassword, testSymbol, f.life())
}

// fixService is a service that a FIX client lives its whole life with.
type fixService struct {
	t          *testing.T
	rig        *rig // nil: without a chain
	host, port string
}

// newFIXService starts one with a desk, and with a chain where that can run here.
func newFIXService(t *testing.T) *fixService {
	t.Helper()
	f := &fixService{t: t}
	var s *server.Server
	check := sandbox.Options{Dir: demo.FindSandbox()}
	if err := check.Check(t.Context()); err == nil {
		f.rig = newRig(t, rigOptions{wallets: 1, firmWallet: true})
		s = f.rig.s
	} else {
		t.Logf("no claim is settled: %v", err)
		config := testConfig(t, deskConfig)
		giveWallet(t, config, traderA, "PLaceho1derPaytoUSDCxxxxxxxxxxxxxxxxxxxxxxx")
		s = startProgram(t, config)
		cli(t, s, "ticket", "post", "--pair", testSymbol, "--label", "Block", "--tranches", "10000000")
	}
	var err error
	if f.host, f.port, err = net.SplitHostPort(s.Addresses.FIX); err != nil {
		t.Fatal(err)
	}
	return f
}

// life is what becomes of a claim.
func (f *fixService) life() string {
	if f.rig == nil {
		return "unavailable"
	}
	return "settled"
}

// trade runs a client to its end and pays the claims that it asks to be paid: it
// prints "pay " and the transaction, and reads the payment's signature.
func (f *fixService) trade(command string, args ...string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), clientTime)
	defer cancel()
	client := exec.CommandContext(ctx, command, args...)
	client.Stderr = os.Stderr
	in := must(client.StdinPipe())
	out := must(client.StdoutPipe())
	if err := client.Start(); err != nil {
		f.t.Fatal(err)
	}
	held := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		if transaction, ok := strings.CutPrefix(line, "pay "); ok && f.rig != nil {
			payment := f.rig.wallet(1).sign(must(base64.StdEncoding.DecodeString(transaction)))
			f.rig.mustBroadcast(payment.raw)
			fmt.Fprintln(in, payment.signature)
			continue
		}
		held = held || strings.Contains(line, " steps held")
		f.t.Log(line)
	}
	if err := errors.Join(lines.Err(), client.Wait(), ctx.Err()); err != nil {
		f.t.Fatal(err)
	}
	if !held {
		f.t.Fatal("the client ended without its last line")
	}
}

// Another one, npm's ws, rebuilds both books while two firms trade as fast as
// they are answered, and over a crash of the server in between.
func TestIndependentWebSocketClient(t *testing.T) {
	t.Parallel()
	s := startProgram(t, testConfig(t, ""))
	client := follow(t, s, "follow.mjs", testSymbol+","+otherSymbol, "--disturb", "500")
	a, b := newTrader(traderA, 1), newTrader(traderB, 2)
	for run := range 2 {
		connectAll(t, s.Addresses.FIX, a, b)
		tradeUntil(t, "updates that the client has taken", func() bool {
			c := client.counts(t)
			return c.Epochs == run+1 && c.Updates >= 50*(run+1) && c.Trades >= 5*(run+1)
		}, a, b)
		a.disconnect()
		b.disconnect()
		if err := errors.Join(a.broken(), b.broken(), client.broken(), s.Kill()); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	connectAll(t, s.Addresses.FIX, a, b)
	tradeUntil(t, "updates of the third run", func() bool {
		c := client.counts(t)
		return c.Epochs == 3 && c.Updates >= 100 && c.Trades >= 10
	}, a, b)
	a.disconnect()
	b.disconnect()
	// A run that has seen nothing proves nothing: it must have traded, come back
	// by resume and by a new epoch, and met REST.
	await.Value(t, "a client that has seen enough", func() *followed { return client.counts(t) }, func(c *followed) bool {
		return c.Updates >= 100 && c.Trades >= 10 && c.Heartbeats >= 2 && c.Epochs == 3 && c.Connections >= 3 && c.Resumed >= 4 &&
			c.DepthCompared >= 4
	})
	client.finish(t)
}
