package service

import (
	"encoding/json"
	"os/exec"
	"testing"

	"blockdesk/bench"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/sandbox/sandboxtest"
)

// TestSybil is the short form of bench sybil: whatever many addresses with fresh wallets
// reserve, every claim with proof is granted, and the share that they hold is drawn.
func TestSybil(t *testing.T) {
	runtest.SkipUnderRace(t, "it runs a benchmark, and the tests of httpgw race what it asks")
	t.Parallel()
	sandboxtest.Start(t, sandbox.Options{Wallets: 1}) // skips the test where there is no chain
	out, err := exec.CommandContext(t.Context(), programtest.Binary(t),
		"bench", "sybil", "--attack", "15s", "--addresses", "150", "--keys", "1000", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var report bench.Report
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if len(report.Ratios) != 2 || len(report.Graphs) != 1 || len(report.Graphs[0].Lines) != 2 || len(report.Series) != 1 || report.Series[0].Ops == 0 {
		t.Fatalf("%s", out)
	}
	for _, r := range report.Ratios {
		if !r.Met() {
			t.Errorf("%s: %v, goal %v", r.Name, r.Value, r.Goal)
		}
	}
	if held := &report.Graphs[0].Lines[0]; held.Max() == 0 {
		t.Errorf("the attack holds nothing: %s", out)
	}
}
