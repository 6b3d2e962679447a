package service

import (
	"log/slog"
	"path/filepath"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/fixgw/participants"
	"blockdesk/service/config"
)

// A participants file that has gone bad fails a start, and does not end a node that
// comes to lead: those of before stay in force.
func TestParticipantsOfBefore(t *testing.T) {
	cfg := config.Default()
	cfg.FIX.ParticipantsFile = filepath.Join(t.TempDir(), "none.yaml")
	if err := (&Service{cfg: &cfg, log: slog.New(slog.DiscardHandler)}).resolve(); err == nil {
		t.Fatal("a start without participants")
	}
	hash, err := participants.HashPassword("pw")
	if err != nil {
		t.Fatal(err)
	}
	before := []participants.Participant{{Name: "mm", Number: 1, CompIDs: []string{"MM"}, PasswordHash: hash, STP: book.STPCancelNewest}}
	s := &Service{cfg: &cfg, log: slog.New(slog.DiscardHandler), participantsBefore: before}
	if err := s.resolve(); err != nil || len(s.participants) != 1 || s.participants[0].Name != "mm" {
		t.Fatalf("%v, %v", s.participants, err)
	}
}
