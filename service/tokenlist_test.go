package service

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"blockdesk/catalog"
)

// TestNumberList: the list keeps its version and time over restarts, and gets a
// higher one with what changes; a file that is none of ours is not written over.
func TestNumberList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, tokenListFile)
	facts := func(at catalog.Time, mints ...string) *catalog.Facts {
		f := &catalog.Facts{Service: catalog.Service{Market: "m", ConfiguredAt: at * 1_000_000}}
		for _, mint := range mints {
			f.Tokens = append(f.Tokens, catalog.Token{Symbol: mint, Mint: mint})
		}
		return f
	}
	for i, c := range []struct {
		facts               *catalog.Facts
		major, minor, patch int
		at                  catalog.Time
	}{
		{facts(1, "A"), 1, 0, 0, 1},
		{facts(2, "A"), 1, 0, 0, 1},
		{facts(3, "A", "B"), 1, 1, 0, 3},
		{facts(4, "B"), 2, 0, 0, 4},
		{facts(5, "B"), 2, 0, 0, 4},
	} {
		got, err := numberList(folderFiles{nil, dir}, c.facts)
		want := catalog.Edition{Version: catalog.ListVersion{Major: c.major, Minor: c.minor, Patch: c.patch}, At: c.at * 1_000_000}
		if err != nil || got != want {
			t.Errorf("%d: %+v (%v), want %+v", i, got, err, want)
		}
	}
	if err := os.WriteFile(path, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := numberList(folderFiles{nil, dir}, facts(6, "B"))
	if text, _ := os.ReadFile(path); !errors.Is(err, catalog.ErrTokenList) || got.Version.Major != 1 || string(text) != "broken" {
		t.Errorf("after a broken file: %+v (%v), and it is %q", got, err, text)
	}
	if got, err := numberList(folderFiles{nil, filepath.Join(dir, "none")}, facts(6, "B")); err == nil || got.Version.Major != 1 {
		t.Errorf("without a folder: %+v (%v)", got, err)
	}
}
