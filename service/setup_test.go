package service

import (
	"testing"

	"blockdesk/engine"
)

// TestSetupOnALowDisk: on a nearly full disk the setup is admitted, and then cancels only.
func TestSetupOnALowDisk(t *testing.T) {
	e, err := engine.New(engine.Options{}, engine.NewReplica(engine.StateOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	limits, err := engine.SetRiskCommand(1, engine.AllInstruments, engine.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var a admission
	a.diskLow(true)
	p := &setup{commands: []engine.Command{limits}}
	if err := p.submit(t.Context(), e, nil, nil); err != nil {
		t.Fatal(err)
	}
	a.open(e)
	if got := e.Stats().Admission; got != engine.AdmitCancels {
		t.Errorf("admission %d after the setup on a low disk", got)
	}
	a.diskLow(false)
	if got := e.Stats().Admission; got != engine.AdmitAll {
		t.Errorf("admission %d with free space again", got)
	}
}
