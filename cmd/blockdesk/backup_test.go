package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBackupIntoItself: a backup within the data folder is refused, and leaves
// nothing there.
func TestBackupIntoItself(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	data := filepath.Join(root, "data")
	for folder, want := range map[string]int{
		filepath.Join(data, "b"): exitUsage, filepath.Join(data, "..", "data", "x", "y"): exitUsage,
		data: exitFailed, filepath.Join(root, "data2"): exitFailed, root: exitFailed, // there is no journal to copy
	} {
		var out strings.Builder
		if exit := execute(t.Context(), []string{"backup", folder, "--data", data}, &out, &out); exit != want {
			t.Errorf("%s: exit code %d: %s", folder, exit, out.String())
		}
	}
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data folder: %v", err)
	}
}
