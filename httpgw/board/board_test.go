package board

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"blockdesk/internal/runtest"
)

// TestFiles: every file that a page names exists, with a media type, and loads nothing
// from other sites.
func TestFiles(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range files {
		there[f.Name] = true
		if f.Media == "" || len(f.Body) == 0 {
			t.Errorf("%s: %d bytes of %q", f.Name, len(f.Body), f.Media)
		}
	}
	for _, name := range []string{Page, Wallet, Desk, DeskScript, "board.js", "wallet.js", "board.css", "icon.svg"} {
		if !there[name] {
			t.Errorf("no %s", name)
		}
	}
}

// runNode runs a script of this folder, or skips the test if that is impossible.
func runNode(t *testing.T, args ...string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		runtest.SkipMissing(t, "node", "apt-get install nodejs")
	}
	if _, err := os.Stat("node_modules/esbuild"); err != nil {
		runtest.SkipMissing(t, "esbuild of npm", "npm --prefix httpgw/board ci")
	}
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	if output, err := exec.CommandContext(ctx, node, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

// TestUnits: the unit tests of the pages, without a browser; see test/.
func TestUnits(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests runs in a browser or in Node")
	t.Parallel()
	runNode(t, "test/run.mjs")
}

// TestTypes: the sources pass the type checker.
func TestTypes(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests runs in a browser or in Node")
	t.Parallel()
	runNode(t, "node_modules/typescript/bin/tsc", "-p", "tsconfig.json")
}

// TestBuilt: dist/ is the build of the sources.
func TestBuilt(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests runs in a browser or in Node")
	t.Parallel()
	out := t.TempDir()
	runNode(t, "build.mjs", out)
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadDir(out)
	if err != nil || len(made) != len(files) {
		t.Fatalf("%d files are made, %d are committed: %v", len(made), len(files), err)
	}
	for _, f := range files {
		if fresh, err := os.ReadFile(filepath.Join(out, f.Name)); err != nil || !bytes.Equal(fresh, f.Body) {
			t.Errorf("dist/%s is not what src/ makes: run make board (%v)", f.Name, err)
		}
	}
}
