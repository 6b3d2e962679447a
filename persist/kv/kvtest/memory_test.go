package kvtest

import (
	"errors"
	"testing"

	"blockdesk/persist/kv"
)

func TestMemory(t *testing.T) { Run(t, func(*testing.T) kv.Store { return New() }) }

// TestMemoryCrash: a crash takes unsynced commits from the end, and no others.
func TestMemoryCrash(t *testing.T) {
	m := New()
	set(t, m, false, "a", "1")
	set(t, m, true, "b", "2")
	set(t, m, false, "c", "3")
	set(t, m, false, "d", "4")
	for lose, content := range []string{"a=1 b=2 c=3 d=4", "a=1 b=2 c=3", "a=1 b=2", "a=1 b=2"} {
		want(t, m.Crash(lose), "", "", content)
	}
	if m.Commits() != 4 || m.Synced() != 2 || m.Changes(1) != 1 {
		t.Errorf("%d commits, %d synced", m.Commits(), m.Synced())
	}
}

// TestMemoryFails: a failing store says so and keeps nothing of the commit.
func TestMemoryFails(t *testing.T) {
	m, broken := New(), ErrBroken
	nothing := func(func(key, value []byte), func(lo, hi []byte)) {}
	m.FailCommits(broken)
	if err := m.Commit(nothing, true); !errors.Is(err, broken) || m.Commits() != 0 {
		t.Errorf("a commit: %v", err)
	}
	if _, _, err := m.Get([]byte("a")); err != nil {
		t.Errorf("a read: %v", err)
	}
	m.FailCommits(nil)
	m.Break(broken)
	if _, _, err := m.Get([]byte("a")); !errors.Is(err, broken) {
		t.Errorf("a read: %v", err)
	}
	if err := m.Scan(nil, nil, func(_, _ []byte) bool { return true }); !errors.Is(err, broken) {
		t.Errorf("a scan: %v", err)
	}
	m.Break(nil)
	set(t, m, true, "a", "1")
}
