package programtest

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"blockdesk/internal/runtest"
)

// Tool returns the path of a program, or skips the test.
func Tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		runtest.SkipMissing(t, name, "apt-get install "+cmp.Or(packages[name], name))
	}
	return path
}

// packages are those of Debian that have the tests' programs, where they have another
// name.
var packages = map[string]string{
	"g++": "g++ libquickfix-dev", "node": "nodejs", "python3": "python3", "systemd-analyze": "systemd", "go": "golang",
}

// ClientDir returns the folder of the clients that are not ours.
func ClientDir(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "internal", "clients", name))
	if err != nil {
		t.Fatal(err)
	}
	DependsOn(t, dir)
	return dir
}

// TypeScriptDir returns the folder of the TypeScript SDK. It skips the test if the npm
// packages that the SDK needs are missing.
func TypeScriptDir(t *testing.T) string {
	t.Helper()
	Tool(t, "node")
	dir, err := filepath.Abs(filepath.Join("..", "..", "sdk", "typescript"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"@solana/kit", "ws", "typescript"} {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", name)); err != nil {
			runtest.SkipMissing(t, name+" of npm", "npm --prefix sdk/typescript ci")
		}
	}
	return dir
}

// RunClient runs a client to its end and returns its output.
func RunClient(t *testing.T, command string, args ...string) (string, error) {
	t.Helper()
	return RunClientIn(t, "", command, args...)
}

// RunClientIn is RunClient in a folder.
func RunClientIn(t *testing.T, dir, command string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ClientTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), errors.Join(err, ctx.Err())
}

// ClientTime ends a client that hangs. Some compile, install or lay out pages first.
const ClientTime = 2 * runtest.HangTimeout
