package service

import (
	"testing"

	"blockdesk/service/config"
	"blockdesk/service/demo"
	"blockdesk/service/servicetest"
)

// TestParticipantsOfTheDemoStay: a reload of the file leaves the demo's own
// traders alone.
func TestParticipantsOfTheDemoStay(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Config{Demo: true, DataDir: dir}
	cfg.FIX.ParticipantsFile = servicetest.Participants(t)
	for _, address := range []*string{&cfg.Listen.FIX, &cfg.Listen.Base, &cfg.Listen.API, &cfg.Listen.WS, &cfg.Listen.Chain} {
		*address = "127.0.0.1:0"
	}
	list, err := LoadParticipants(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newParticipantsWatch(&Options{Config: &cfg, Inputs: &Inputs{Participants: list}}, nil, nil, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(w.demo) != demo.ParticipantCount || w.demo[0].Name != demo.Maker || w.demo[0].Number != 3 {
		t.Errorf("the demo's: %+v", w.demo)
	}
}
