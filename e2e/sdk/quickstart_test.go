package sdk

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
)

// The quick starts of sdk/fix work as they are printed, against the demo's guest;
// only the port is another one. QuickFIX/J is not here to run its own.
func TestFIXQuickstarts(t *testing.T) {
	runtest.SkipUnderRace(t, "its client is not Go, and the tests of fixgw race the gateway")
	t.Parallel()
	s := programtest.Start(t, "demo: true\n")
	_, port, err := net.SplitHostPort(s.Addresses.FIX)
	if err != nil {
		t.Fatal(err)
	}
	// One after the other: they are the same guest.
	t.Run("quickfix-go", func(t *testing.T) {
		dir := quickstart(t, port)
		source := filepath.Join(dir, "main.go")
		if err := os.Rename(filepath.Join(dir, "quickfix.go.txt"), source); err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(dir, "quickstart")
		if out, err := programtest.RunClient(t, programtest.Tool(t, "go"), "build", "-o", program, source); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		buys(t, dir, program, "quickfix-go.cfg")
	})
	t.Run("QuickFIX C++", func(t *testing.T) {
		compiler := programtest.Tool(t, "g++")
		if _, err := os.Stat("/usr/include/quickfix/Application.h"); err != nil {
			runtest.SkipMissing(t, "QuickFIX C++", "apt-get install libquickfix-dev")
		}
		dir := quickstart(t, port)
		program := filepath.Join(dir, "quickstart")
		if out, err := programtest.RunClient(t, compiler, "-std=c++14", "-Wno-deprecated", "-o", program,
			filepath.Join(dir, "quickfix.cpp"), "-lquickfix", "-lpthread"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		buys(t, dir, program, "quickfix-cpp.cfg")
	})
	t.Run("jspurefix", func(t *testing.T) {
		node := programtest.Tool(t, "node")
		modules := filepath.Join(programtest.ClientDir(t, "jspurefix"), "node_modules")
		if _, err := os.Stat(filepath.Join(modules, "jspurefix")); err != nil {
			runtest.SkipMissing(t, "jspurefix of npm", "npm --prefix internal/clients/jspurefix ci")
		}
		dir := quickstart(t, port)
		if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		buys(t, dir, node, "jspurefix.mjs", "jspurefix.json")
	})
}

// quickstart returns a folder with the files that an integrator downloads.
func quickstart(t *testing.T, port string) string {
	t.Helper()
	dir, from := t.TempDir(), filepath.Join("..", "..", "sdk", "fix")
	files, err := filepath.Glob(filepath.Join(from, "quickstart", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range append(files, filepath.Join(from, "FIX44-blockdesk.xml")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if ext := filepath.Ext(file); ext == ".cfg" || ext == ".json" {
			text = bytes.ReplaceAll(text, []byte("9878"), []byte(port))
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// buys runs a quick start in its folder: its order is accepted, and ends.
func buys(t *testing.T, dir, command string, args ...string) {
	t.Helper()
	out, err := programtest.RunClientIn(t, dir, command, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(out, "ExecType 0 OrdStatus 0") || !strings.Contains(out, "OrdStatus 2") && !strings.Contains(out, "OrdStatus 4") {
		t.Errorf("the order has no end:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "store")); err != nil {
		t.Errorf("no numbers are kept: %v", err)
	}
}
