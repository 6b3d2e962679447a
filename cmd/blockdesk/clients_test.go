package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// clientDir is where the clients that are not ours live.
func clientDir(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "internal", "clients", name))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tool returns the path of a program, or skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("skipped: no %s here", name)
	}
	return path
}

// runClient runs a client to its end, at most within, and returns what it said.
func runClient(t *testing.T, within time.Duration, command string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	out, err := exec.CommandContext(ctx, command, args...).CombinedOutput()
	return string(out), errors.Join(err, ctx.Err())
}

// A client that shares no line with us, QuickFIX C++ with its own dictionary
// and validation on, trades through two sessions.
func TestIndependentFIXClient(t *testing.T) {
	t.Parallel()
	compiler := tool(t, "g++")
	if _, err := os.Stat("/usr/include/quickfix/Application.h"); err != nil {
		t.Skip("skipped: no QuickFIX C++ here (Debian: libquickfix-dev)")
	}
	dir := clientDir(t, "quickfix")
	trader := filepath.Join(t.TempDir(), "trader")
	// C++14: QuickFIX's headers have exception specifications, which C++17 ended.
	if out, err := runClient(t, 3*time.Minute, compiler, "-std=c++14", "-Wall", "-Wno-deprecated", "-o", trader,
		filepath.Join(dir, "line.cpp"), filepath.Join(dir, "trader.cpp"), "-lquickfix", "-lpthread"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := startProgram(t, testConfig(t, ""))
	host, port, err := net.SplitHostPort(s.Addresses.FIX)
	if err != nil {
		t.Fatal(err)
	}
	dictionary, err := filepath.Abs(filepath.Join("..", "..", "fixgw", "FIX44.xml"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := runClient(t, 2*time.Minute, trader, host, port, dictionary, t.TempDir(), "BLOCKDESK",
		traderA, traderB, testPassword, testSymbol)
	t.Log(out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, " steps held") {
		t.Fatal("the client ended without its last line")
	}
}

// Another one, npm's jspurefix, also with its stock dictionary and its checks on.
func TestIndependentFIXClientJS(t *testing.T) {
	t.Parallel()
	node := tool(t, "node")
	dir := clientDir(t, "jspurefix")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "jspurefix")); err != nil {
		t.Skip("skipped: npm's jspurefix is not installed (npm --prefix internal/clients/jspurefix ci)")
	}
	s := startProgram(t, testConfig(t, ""))
	host, port, err := net.SplitHostPort(s.Addresses.FIX)
	if err != nil {
		t.Fatal(err)
	}
	out, err := runClient(t, time.Minute, node, filepath.Join(dir, "trader.mjs"), host, port, t.TempDir(), "BLOCKDESK",
		traderA, traderB, testPassword, testSymbol)
	t.Log(out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, " steps held") {
		t.Fatal("the client ended without its last line")
	}
}

// Another one, npm's ws, rebuilds both books while two firms trade as fast as
// they are answered, and over a crash of the server in between.
func TestIndependentWebSocketClient(t *testing.T) {
	t.Parallel()
	node := tool(t, "node")
	dir := clientDir(t, "ws")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "ws")); err != nil {
		t.Skip("skipped: npm's ws is not installed (npm --prefix internal/clients/ws ci)")
	}
	const seconds = 6
	s := startProgram(t, testConfig(t, ""))
	follow := exec.Command(node, filepath.Join(dir, "follow.mjs"), "--ws", s.Addresses.WS, "--rest", s.Addresses.API,
		"--symbols", testSymbol+","+otherSymbol, "--seconds", strconv.Itoa(seconds))
	var out bytes.Buffer
	follow.Stdout, follow.Stderr = &out, &out
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- follow.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			err := errors.Join(follow.Process.Kill(), <-ended) // or it is gone
			t.Logf("the client said: %s (%v)", &out, err)
		}
	})

	a, b := newTrader(traderA, 1), newTrader(traderB, 2)
	connectAll(t, s.Addresses.FIX, a, b)
	tradeFor(seconds*time.Second/2, a, b)
	a.disconnect()
	b.disconnect()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	connectAll(t, s.Addresses.FIX, a, b)
	for running := true; running; {
		tradeFor(100*time.Millisecond, a, b)
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			running = false
		case <-time.After(time.Millisecond):
		}
		for _, tr := range []*trader{a, b} {
			if err := tr.broken(); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.disconnect()
	b.disconnect()
	t.Logf("%s", bytes.TrimSpace(out.Bytes()))
	var counts struct {
		OK            bool `json:"ok"`
		Updates       int  `json:"updates"`
		Trades        int  `json:"trades"`
		Heartbeats    int  `json:"heartbeats"`
		Epochs        int  `json:"epochs"`
		Connections   int  `json:"connections"`
		Resumed       int  `json:"resumed"`
		DepthCompared int  `json:"depth_compared"`
	}
	if err := json.Unmarshal(out.Bytes(), &counts); err != nil {
		t.Fatal(err)
	}
	// A run that has seen nothing proves nothing: it must have traded, come back
	// by resume and by a new epoch, and met REST.
	if !counts.OK || counts.Updates < 100 || counts.Trades < 10 || counts.Heartbeats < 2 ||
		counts.Epochs != 2 || counts.Connections < 3 || counts.Resumed < 4 || counts.DepthCompared < 4 {
		t.Fatalf("the client has seen too little: %+v", counts)
	}
}
