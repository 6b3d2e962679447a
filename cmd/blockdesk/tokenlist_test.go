package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestTokenListOverRestarts: what the program publishes is what it remembers.
func TestTokenListOverRestarts(t *testing.T) {
	t.Parallel()
	s := startProgram(t, testConfig(t, conformanceConfig))
	const path = "/tokenlist.json"
	first := get(t, s.Addresses.Base+path)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if kept, err := os.ReadFile(filepath.Join(s.DataDir(), "tokenlist.json")); err != nil || string(kept) != first+"\n" {
		t.Errorf("the data folder has %s (%v), published is %s", kept, err, first)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := get(t, s.Addresses.API+path); again != first || !json.Valid([]byte(again)) {
		t.Errorf("after a restart the list is %s, before it was %s", again, first)
	}
}
