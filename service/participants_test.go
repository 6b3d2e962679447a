package service

import (
	"log/slog"
	"path/filepath"
	"testing"

	"blockdesk/engine/book"
	"blockdesk/fixgw/participants"
	"blockdesk/service/config"
)

// TestParticipantsOfBefore: a refused participants file fails a start, but not a new term
// of a node: the previous participants stay in force.
func TestParticipantsOfBefore(t *testing.T) {
	cfg := config.Default()
	cfg.FIX.ParticipantsFile = filepath.Join(t.TempDir(), "none.yaml")
	if _, err := ReadInputs(&cfg, nil, slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("a start without participants")
	}
	hash, err := participants.HashPassword("pw")
	if err != nil {
		t.Fatal(err)
	}
	before := []participants.Participant{{Name: "mm", Number: 1, CompIDs: []string{"MM"}, PasswordHash: hash, STP: book.STPCancelNewest}}
	in, err := ReadInputs(&cfg, before, slog.New(slog.DiscardHandler))
	if err != nil || len(in.Participants) != 1 || in.Participants[0].Name != "mm" {
		t.Fatalf("%v, %v", in, err)
	}
}
