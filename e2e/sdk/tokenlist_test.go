package sdk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"blockdesk/e2e/programtest"
)

// TestTokenListOverRestarts: what the program publishes is what it remembers.
func TestTokenListOverRestarts(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, conformanceConfig))
	const path = "/tokenlist.json"
	first := programtest.Get(t, s.Addresses.Base+path)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if stored, err := os.ReadFile(filepath.Join(s.DataDir(), "tokenlist.json")); err != nil || string(stored) != first+"\n" {
		t.Errorf("the data folder has %s (%v), published is %s", stored, err, first)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := programtest.Get(t, s.Addresses.API+path); again != first || !json.Valid([]byte(again)) {
		t.Errorf("after a restart the list is %s, before it was %s", again, first)
	}
}
