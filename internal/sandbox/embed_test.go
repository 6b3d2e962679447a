package sandbox

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"blockdesk/internal/runtest"
)

// TestUnpack: a folder that Unpack has written is the server of this source tree, and a
// second time repairs what has changed and nothing else.
func TestUnpack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "chain", "server")
	for range 2 {
		if err := Unpack(dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"server.mjs", "package.json", "package-lock.json", "lib/chain.mjs", "lib/rpc"} {
			at := filepath.Join(dir, filepath.FromSlash(name))
			info, err := os.Stat(at)
			if err != nil {
				t.Fatal(err)
			}
			if info.IsDir() {
				continue
			}
			got, err := os.ReadFile(at)
			want, err2 := os.ReadFile(filepath.FromSlash(name))
			if err := errors.Join(err, err2); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: %v: %d bytes, want %d", name, err, len(got), len(want))
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "server.mjs"), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnpackedChainRuns: the unpacked server runs outside the source tree.
func TestUnpackedChainRuns(t *testing.T) {
	t.Parallel()
	if !Complete() {
		runtest.SkipMissing(t, "LiteSVM in this program", "make sandbox")
	}
	dir := t.TempDir()
	if err := Unpack(dir); err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: dir, ManualSlots: true}
	if err := o.Check(t.Context()); err != nil {
		runtest.SkipMissing(t, err.Error(), "Node 20")
	}
	n, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Stop(); err != nil {
		t.Error(err)
	}
}
