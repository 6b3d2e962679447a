package bench

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

// TestPageComparesWithTheLastRun: a page written over the page of an earlier run shows both.
func TestPageComparesWithTheLastRun(t *testing.T) {
	var first, second bytes.Buffer
	old := sample(t)
	old.Series[0].CPU, old.Series[0].Ops = 300*time.Microsecond, 100
	if err := old.WriteHTML(&first); err != nil {
		t.Fatal(err)
	}
	now := sample(t)
	now.Series[0].CPU = 150 * time.Microsecond
	now.Ratios = append(now.Ratios[1:], Ratio{Name: "new", Value: 1})
	Compare([]*Report{now}, ReadPage(first.Bytes()))
	if now.Last == nil || now.Last.OtherMachine {
		t.Fatalf("comparison %+v", now.Last)
	}
	want := []ComparisonRow{
		{"one <series>, CPU an operation", "3000 ns", "1500 ns", "0.50"},
		{"one <series>, p50", "50.0 µs", "50.0 µs", "1.00"},
		{"one <series>, p99", "99.0 µs", "99.0 µs", "1.00"},
		{"high", "0.500", "0.500", "1.00"},
		{"free", "7.000", "7.000", "1.00"},
	}
	if len(now.Last.Rows) != len(want) {
		t.Fatalf("rows %q, want %q", now.Last.Rows, want)
	}
	for i, row := range now.Last.Rows {
		if row != want[i] {
			t.Errorf("row %d: %q, want %q", i, row, want[i])
		}
	}
	if err := now.WriteHTML(&second); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(second.String(), "Beside the last run") || len(ReadPage(second.Bytes())) != 1 {
		t.Errorf("the page has no comparison, or its reports cannot be read:\n%s", &second)
	}
}

// TestReadPage: a file that is no page of ours, or whose report could not be written, gives
// nothing to compare with.
func TestReadPage(t *testing.T) {
	odd := sample(t)
	odd.Ratios = []Ratio{{Name: "no number", Value: math.NaN()}}
	var page bytes.Buffer
	if err := odd.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"", "<html>", dataOpen + "[", dataOpen + "7" + dataClose, dataOpen + "[null]" + dataClose, page.String()} {
		reports := ReadPage([]byte(data))
		Compare([]*Report{odd}, reports)
		if odd.Last != nil {
			t.Errorf("%.40q: compared with %v", data, reports)
		}
	}
}

func TestHostNotes(t *testing.T) {
	h := ReadHost()
	if h.Loop <= 0 || h.Loop >= time.Hour {
		t.Errorf("loop of %v", h.Loop)
	}
	steady := hostNotes([]Host{{Load: 1, Loop: 1000}, {Load: 2, Loop: 1200}})
	changed := hostNotes([]Host{{Loop: 1300}, {Loop: 1000}})
	if len(steady) != 1 || len(changed) != 2 || len(hostNotes(nil)) != 0 {
		t.Errorf("notes %q and %q", steady, changed)
	}
}
