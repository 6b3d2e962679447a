package cluster

import (
	"log/slog"
	"path/filepath"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/fixgw/participants"
	"blockdesk/service/config"
	"blockdesk/service/servicetest"
)

// A node that goes back to standby makes its next FIX sessions of the participants of
// before if their file has become invalid.
func TestEarlySessionsOfBefore(t *testing.T) {
	hash, err := servicetest.PasswordHash()
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.FIX.ParticipantsFile, cfg.Listen.FIX = filepath.Join(t.TempDir(), "none.yaml"), "127.0.0.1:9878"
	m := &Node{cfg: &cfg, log: slog.New(slog.DiscardHandler)}
	m.participants = []participants.Participant{{Name: "mm", Number: 1, CompIDs: []string{"MM"}, PasswordHash: hash, STP: book.STPCancelNewest}}
	defer m.spares.Close()
	early, err := m.prepareSessions()
	if err != nil {
		t.Fatal(err)
	}
	early.Close()
}
