package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func sample(t *testing.T) *Report {
	t.Helper()
	r := NewReport("sample <&>")
	hist := NewHistogram()
	if _, err := r.Measure("one <series>", 100, hist, func() error {
		for i := range int64(100) {
			if err := hist.RecordValue(1000 * (i + 1)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	r.Ratios = []Ratio{{Name: "low", Value: 1.5, Goal: 2, AtMost: true}, {Name: "high", Value: 0.5, Goal: 0.8}, {Name: "free", Value: 7}}
	r.Notes = []string{"a note"}
	return r
}

func TestReportSaysWhatWasMeasured(t *testing.T) {
	r := sample(t)
	if s := r.Series[0].Summary; s.P50 != 50_015 || s.Max < 100_000 || s.Max > 100_100 {
		t.Errorf("summary %+v", s)
	}
	if !r.Ratios[0].Met() || r.Ratios[1].Met() || !r.Ratios[2].Met() {
		t.Error("a goal is judged wrong")
	}
	var text, page, data bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteHTML(&page), r.WriteJSON(&data)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"low: 1.500 (goal at most 2.000: met)", "high: 0.500 (goal at least 0.800: NOT MET)", "free: 7.000\n", "a note", "50.0 µs"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text lacks %q:\n%s", want, &text)
		}
	}
	for _, want := range []string{"<table>", "<title>blockdesk bench", "class=\"bar missed\"", "class=\"goal\""} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, &page)
		}
	}
	if !json.Valid(data.Bytes()) {
		t.Error("invalid JSON")
	}
	plot := page.String()[strings.Index(page.String(), "<svg"):]
	plot = plot[:strings.Index(plot, "</svg>")+len("</svg>")]
	for d := xml.NewDecoder(strings.NewReader(plot)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the plot is not well-formed: %v", err)
		}
	}
	if strings.Contains(page.String(), "<series>") || strings.Contains(page.String(), "http") {
		t.Error("the page has raw text or an outside address")
	}
}

// TestOfferedRate: a report says which latencies are queueing.
func TestOfferedRate(t *testing.T) {
	fast := &Series{Name: "fast", Ops: 990, Elapsed: time.Second, Offered: 1000}
	slow := &Series{Name: "slow", Ops: 614_198, Elapsed: time.Second, Offered: 1_000_000}
	closed := &Series{Name: "closed", Ops: 1, Elapsed: time.Second}
	if !fast.Reached() || slow.Reached() || !closed.Reached() {
		t.Error("reached is judged wrong")
	}
	r := NewReport("x")
	r.Series, r.Notes = []*Series{fast, slow, closed}, []string{"last"}
	if got := r.notes(); len(got) != 2 || !strings.Contains(got[0], "slow: OFFERED RATE NOT REACHED, 614.2 k of 1000 k a second") || got[1] != "last" {
		t.Errorf("notes %q", got)
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.000", 0.123456: "0.123", 1.5: "1.500", 12.345: "12.35", 123.456: "123.5", 9999: "9999", 28_941_363.364: "28.94 M",
		614_198: "614.2 k", 1e12: "1000 G", -20_000: "-20.00 k",
	} {
		if got := figure(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

// TestPages: several reports make one page with a table of contents.
func TestPages(t *testing.T) {
	a, b := sample(t), sample(t)
	a.Name, b.Name = "first", "second"
	var page bytes.Buffer
	if err := WritePage(&page, []*Report{a, b}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<a href="#first">`, `<section id="second">`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestOpenLoopKeepsItsSchedule(t *testing.T) {
	start, sent := time.Now(), 0
	err := OpenLoop(context.Background(), start, 20, 1000, func(i int) error {
		if early := time.Duration(i)*time.Millisecond - time.Since(start); early > 0 {
			t.Errorf("operation %d came %v early", i, early)
		}
		sent++
		return nil
	})
	if err != nil || sent != 20 {
		t.Errorf("%d sent, %v", sent, err)
	}
	stop := errors.New("stop")
	if err := OpenLoop(context.Background(), start, 20, 1000, func(int) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}
