package fix

import (
	"bufio"
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

	"blockdesk/bench/server"
	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
)

// A client that shares no line with us, QuickFIX C++ with its own dictionary
// and validation on, trades through three sessions.
func TestIndependentFIXClient(t *testing.T) {
	runtest.SkipUnderRace(t, "its client is not Go, and the tests of fixgw race the gateway")
	t.Parallel()
	trader := buildTrader(t)
	dictionary, err := filepath.Abs(filepath.Join("..", "..", "fixgw", "session", "FIX44.xml"))
	if err != nil {
		t.Fatal(err)
	}
	f := newFIXService(t)
	f.trade(trader, f.host, f.port, dictionary, t.TempDir(), "BLOCKDESK",
		programtest.FirmA, programtest.FirmA2, programtest.FirmB, programtest.Password, programtest.Symbol, f.life())
}

// buildTrader compiles the QuickFIX client, or skips the test.
func buildTrader(t *testing.T) string {
	t.Helper()
	compiler := programtest.Tool(t, "g++")
	if _, err := os.Stat("/usr/include/quickfix/Application.h"); err != nil {
		runtest.SkipMissing(t, "QuickFIX C++", "apt-get install libquickfix-dev")
	}
	dir := programtest.ClientDir(t, "quickfix")
	trader := filepath.Join(t.TempDir(), "trader")
	// C++14: QuickFIX's headers have exception specifications, which C++17 ended.
	if out, err := programtest.RunClient(t, compiler, "-std=c++14", "-Wall", "-Wno-deprecated", "-o", trader,
		filepath.Join(dir, "line.cpp"), filepath.Join(dir, "trader.cpp"), "-lquickfix", "-lpthread"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return trader
}

// Another one, npm's jspurefix, with its stock dictionary and with ours, and its
// checks on.
func TestIndependentFIXClientJS(t *testing.T) {
	runtest.SkipUnderRace(t, "its client is not Go, and the tests of fixgw race the gateway")
	t.Parallel()
	node := programtest.Tool(t, "node")
	dir := programtest.ClientDir(t, "jspurefix")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "jspurefix")); err != nil {
		runtest.SkipMissing(t, "jspurefix of npm", "npm --prefix internal/clients/jspurefix ci")
	}
	dictionary, err := filepath.Abs(filepath.Join("..", "..", "sdk", "fix", "FIX44-blockdesk.xml"))
	if err != nil {
		t.Fatal(err)
	}
	f := newFIXService(t)
	f.trade(node, filepath.Join(dir, "trader.mjs"), f.host, f.port, dictionary, t.TempDir(), "BLOCKDESK",
		programtest.FirmA, programtest.FirmA2, programtest.FirmB, programtest.Password, programtest.Symbol, f.life())
}

// fixService is a service that a FIX client lives its whole life with.
type fixService struct {
	t          *testing.T
	rig        *chaintest.Rig // nil: without a chain
	host, port string
}

// newFIXService starts one with a desk, and with a chain where that can run here.
func newFIXService(t *testing.T) *fixService {
	t.Helper()
	f := &fixService{t: t}
	var s *server.Server
	check := sandbox.Options{Dir: sandbox.Find(programtest.Root(t))}
	if err := check.Check(t.Context()); err == nil {
		f.rig = chaintest.Start(t, chaintest.Options{Wallets: 1, FirmWallet: true})
		s = f.rig.Server
	} else {
		t.Logf("no claim is settled: %v", err)
		config := programtest.Config(t, programtest.DeskConfig)
		chaintest.GiveWallet(t, config, programtest.FirmA, "PLaceho1derPaytoUSDCxxxxxxxxxxxxxxxxxxxxxxx")
		s = programtest.Start(t, config)
		programtest.CLI(t, s, "ticket", "post", "--pair", programtest.Symbol, "--label", "Block", "--tranches", "10000000")
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
	ctx, cancel := context.WithTimeout(f.t.Context(), programtest.ClientTime)
	defer cancel()
	client := exec.CommandContext(ctx, command, args...)
	client.Stderr = os.Stderr
	in := programtest.Must(client.StdinPipe())
	out := programtest.Must(client.StdoutPipe())
	if err := client.Start(); err != nil {
		f.t.Fatal(err)
	}
	held := false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		if transaction, ok := strings.CutPrefix(line, "pay "); ok && f.rig != nil {
			payment := f.rig.Wallet(1).Sign(programtest.Must(base64.StdEncoding.DecodeString(transaction)))
			f.rig.MustBroadcast(payment.Raw)
			fmt.Fprintln(in, payment.Signature)
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
