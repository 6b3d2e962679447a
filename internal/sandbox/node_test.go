package sandbox

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestServer runs the server's own tests, which are Node's.
func TestServer(t *testing.T) {
	t.Parallel()
	if err := (Options{Dir: "."}).Check(t.Context()); err != nil {
		needChain(t, err)
	}
	files, err := filepath.Glob("test/*.test.mjs")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests of the server: %v", err)
	}
	const patience = 10 * time.Minute // ends a hang
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "node", append([]string{"--test", "--test-reporter=tap"}, files...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "# pass") || strings.Contains(line, "# SKIP") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// TestFlags: the server's flags are documented and wrong ones refused.
func TestFlags(t *testing.T) {
	t.Parallel()
	if err := (Options{Dir: "."}).Check(t.Context()); err != nil {
		needChain(t, err)
	}
	run := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "node", append([]string{"server.mjs"}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := run("--help"); err != nil || !strings.Contains(out, "--slot-ms N") {
		t.Errorf("--help: %v\n%s", err, out)
	}
	for _, args := range [][]string{
		{"--port", "70000"},
		{"--port", "x"},
		{"--slot-ms", "-1"},
		{"--blockhash-slots", "0"},
		{"--blockhash-slots", "100001"},
		{"--colour", "red"},
		{"extra"},
		{"--confirm-slots", "5", "--finalize-slots", "4"},
	} {
		if out, err := run(args...); err == nil || !strings.HasPrefix(out, "sandbox: ") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
