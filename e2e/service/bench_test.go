package service

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"blockdesk/bench"
	clusterbench "blockdesk/bench/cluster"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
)

// TestBench: a benchmark says what it has measured, and on what, in one report and on one
// page, whose figures have few digits.
func TestBench(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "page.html")
	out, err := exec.CommandContext(t.Context(), programtest.Binary(t), "bench", "ws", "--part", "encode", "--rounds", "1", "--json", "--html", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		bench.Report
		OK bool `json:"ok"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if !report.OK || report.Name != "ws" || report.Machine.CPU == "" || len(report.Ratios) == 0 || len(report.Series) == 0 {
		t.Errorf("%s", out)
	}
	for _, s := range report.Series {
		if s.Ops == 0 || s.Elapsed == 0 {
			t.Errorf("%s: %d operations in %v", s.Name, s.Ops, s.Elapsed)
		}
	}
	page, _, _ := strings.Cut(string(programtest.Must(os.ReadFile(name))), "<script")
	if bars := strings.Count(page, `class="ratio"`); bars != len(report.Ratios) || strings.Count(page, "<table>") != 1 {
		t.Errorf("%d bars of %d ratios:\n%s", bars, len(report.Ratios), page)
	}
	shown := regexp.MustCompile(`(?s)<style.*?</style>|<svg.*?</svg>|<[^>]*>|commit [0-9a-f]+`).ReplaceAllString(page, " ")
	if long := regexp.MustCompile(`\d{7,}|\d\.\d{5,}`).FindString(shown); long != "" {
		t.Errorf("a figure is %s:\n%s", long, shown)
	}
}

// TestBenchGroups: the benchmark of groups of instruments finds its processes, asks
// them for everything that it compares, and has a figure for each.
func TestBenchGroups(t *testing.T) {
	runtest.SkipUnderRace(t, "it runs a benchmark, and the tests of httpgw race what it asks")
	t.Parallel()
	exe := programtest.Binary(t)
	report, err := clusterbench.Benchmark{
		Exe: exe, Dir: t.TempDir(), Rounds: 1, Tickets: 3, Parts: []string{"groups"},
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const series, ratios = 22, 18
	if len(report.Series) != series || len(report.Ratios) != ratios {
		t.Errorf("%d series and %d ratios, want %d and %d", len(report.Series), len(report.Ratios), series, ratios)
	}
	for _, s := range report.Series {
		if s.Ops == 0 || s.Elapsed == 0 || s.CPU == 0 {
			t.Errorf("%s: %d operations in %v, %v of CPU", s.Name, s.Ops, s.Elapsed, s.CPU)
		}
	}
	for _, q := range report.Ratios {
		if !(q.Value > 0) || math.IsInf(q.Value, 0) {
			t.Errorf("%s: %v", q.Name, q.Value)
		}
	}
}
