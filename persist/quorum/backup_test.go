package quorum

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"blockdesk/persist"
	"blockdesk/persist/journaltest"
)

// TestBackup: every node of a running group makes a copy that verifies, and a group of
// other nodes, also of one, continues where it ends, with the stores.
func TestBackup(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	ref := journaltest.NewReference(journaltest.Commands(400, 7))
	leader, term := c.lead()
	w := newWriter(t, term)
	for at := 0; at < 200; at += 10 {
		if err := w.append(ref.Commands[at : at+10]); err != nil {
			t.Fatal(err)
		}
	}
	store := term.Store("desk")
	if err := store.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set([]byte("k"), []byte("kept")) }, true); err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{}
	for id, m := range c.members {
		dirs[id] = filepath.Join(t.TempDir(), "copy")
		if err := m.node.Backup(dirs[id]); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		rep, err := Verify(VerifyOptions{ToolOptions: persist.ToolOptions{Dir: dirs[id], State: m.o.State, Logger: quiet()}})
		if err != nil || rep.StateHash != w.replica.State.Hash() || rep.Seq != 200 {
			t.Errorf("%s: %+v %v", id, rep, err)
		}
	}
	if err := w.append(ref.Commands[200:210]); err != nil { // which no copy has
		t.Fatal(err)
	}
	for _, size := range []int{1, 3} {
		restored := newRestored(t, size, dirs[leader])
		_, term := restored.lead()
		w := newWriter(t, term)
		if got := w.replica.State.Seq(); got != 200 {
			t.Errorf("a group of %d continues after seq %d", size, got)
		}
		if value, ok, err := term.Store("desk").Get([]byte("k")); err != nil || !ok || string(value) != "kept" {
			t.Errorf("a group of %d: the store has %q %t %v", size, value, ok, err)
		}
		if err := w.append(ref.Commands[200:400]); err != nil {
			t.Error(err)
		}
		restored.agree(ref)
	}
}

// newRestored starts a group of new nodes on the disk, each with a restored folder.
func newRestored(t *testing.T, n int, backup string) *cluster {
	t.Helper()
	return newCluster(t, n, func(o *Options) {
		o.FS = nil
		if entries, err := os.ReadDir(o.Dir); err != nil || len(entries) > 0 {
			return
		}
		if err := Restore(RestoreOptions{From: backup, To: o.Dir, Peers: o.Peers, State: o.State, Logger: quiet()}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRestoreRefuses: what is not a whole backup is not restored, and nothing is
// overwritten.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	ref := journaltest.NewReference(journaltest.Commands(100, 8))
	id, term := c.lead()
	if err := newWriter(t, term).append(ref.Commands); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "copy")
	if err := c.members[id].node.Backup(backup); err != nil {
		t.Fatal(err)
	}
	o := RestoreOptions{From: backup, To: t.TempDir(), Peers: c.peers, State: c.members[id].o.State, Logger: quiet()}
	if err := os.WriteFile(filepath.Join(o.To, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Restore(o); !errors.Is(err, persist.ErrNotEmpty) {
		t.Errorf("into a folder with files: %v", err)
	}
	o.To, o.From = t.TempDir(), t.TempDir()
	if err := Restore(o); !errors.Is(err, ErrNoBackup) {
		t.Errorf("of an empty folder: %v", err)
	}
	states, err := filepath.Glob(filepath.Join(backup, logFolder, "snapshots", "*", "state.bin"))
	if err != nil || len(states) != 1 {
		t.Fatal(states, err)
	}
	text, err := os.ReadFile(states[0])
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(states[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
	o.From = backup
	if damage := (*persist.DamageError)(nil); !errors.As(Restore(o), &damage) {
		t.Errorf("of a damaged copy: %v", Restore(o))
	}
}
