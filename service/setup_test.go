package service

import (
	"testing"

	"blockdesk/engine"
)

// On a disk that is nearly full the setup still comes in, and then cancels do.
func TestSetupOnALowDisk(t *testing.T) {
	e, err := engine.New(engine.Options{}, engine.NewReplica(engine.StateOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	limits, err := engine.SetRiskCommand(1, engine.AllInstruments, engine.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{eng: e, setup: []engine.Command{limits}}
	s.DiskLow(true)
	if err := s.submitSetup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := e.Stats().Admission; got != engine.AdmitCancels {
		t.Errorf("intake %d after the setup on a low disk", got)
	}
	s.DiskLow(false)
	if got := e.Stats().Admission; got != engine.AdmitAll {
		t.Errorf("intake %d when there is room again", got)
	}
}
