package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Report is what one benchmark command found, on one machine in one run.
type Report struct {
	Name    string    `json:"name"`
	Began   time.Time `json:"began"`
	Machine Machine   `json:"machine"`
	Series  []*Series `json:"series"`
	Ratios  []Ratio   `json:"ratios,omitempty"`
	Graphs  []*Graph  `json:"graphs,omitempty"`
	// Notes say what was left out and how to read the figures.
	Notes []string `json:"notes,omitempty"`
	// Hosts is the state of the machine before and after the run.
	Hosts []Host `json:"hosts,omitempty"`
	// Last compares the report with that of an earlier run: see Compare.
	Last *Comparison `json:"-"`
}

// Machine describes the machine of a report.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	OS     string `json:"os"`
	Go     string `json:"go"`
	Commit string `json:"commit"`
}

// Series is one measured thing. Latencies are in nanoseconds; Hist is nil where
// only a rate was measured.
type Series struct {
	Name    string                  `json:"name"`
	Ops     int64                   `json:"ops"`
	Elapsed time.Duration           `json:"elapsed_ns"`
	CPU     time.Duration           `json:"cpu_ns"` // of the whole process, user and system
	Allocs  uint64                  `json:"allocs"`
	Bytes   uint64                  `json:"alloc_bytes"`
	GCs     uint32                  `json:"gc_cycles"`
	Hist    *hdrhistogram.Histogram `json:"-"`
	Summary *Summary                `json:"latency_ns,omitempty"`
	// Offered is the rate, in operations a second, at which an open loop offered them;
	// 0: a closed loop.
	Offered float64 `json:"offered_per_s,omitempty"`
}

// reachedShare is the share of the offered rate from which latencies are the system's.
const reachedShare = 0.98

// Reached reports whether the offered rate was reached. Otherwise the latencies are mostly
// the time that operations waited for those before them.
func (s *Series) Reached() bool { return s.Offered == 0 || s.Rate() >= reachedShare*s.Offered }

// Summary is a histogram's percentiles in nanoseconds.
type Summary struct {
	P50, P90, P99, P999, Max int64
	Mean                     float64
}

// Ratio compares two series of the same run. At most: the goal is an upper
// bound; otherwise a lower one. A goal of 0 is none.
type Ratio struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Goal   float64 `json:"goal,omitempty"`
	AtMost bool    `json:"at_most"`
}

// Met reports whether the ratio reaches its goal.
func (r Ratio) Met() bool {
	return r.Goal == 0 || r.AtMost && r.Value <= r.Goal || !r.AtMost && r.Value >= r.Goal
}

// NewReport starts a report of the machine that runs it.
func NewReport(name string) *Report {
	return &Report{Name: name, Began: time.Now().UTC().Truncate(time.Second), Machine: machine()}
}

// commit is set by the linker: see the Makefile.
var commit = "unknown"

func machine() Machine {
	m := Machine{Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), CPU: "unknown", Commit: commit}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	return m
}

// Measure runs f, which does ops operations, and adds the series to the report.
// hist may be nil; f fills it.
func (r *Report) Measure(name string, ops int64, hist *hdrhistogram.Histogram, f func() error) (*Series, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := ProcessCPU(), time.Now()
	err := f()
	s := &Series{Name: name, Ops: ops, Elapsed: time.Since(start), CPU: ProcessCPU() - cpu, Hist: hist}
	runtime.ReadMemStats(&after)
	s.Allocs, s.Bytes, s.GCs = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc, after.NumGC-before.NumGC
	if hist != nil {
		s.Summary = Summarize(hist)
	}
	r.Series = append(r.Series, s)
	return s, err
}

// Add takes one operation's time.
func (s *Series) Add(ns int64) {
	_ = s.Hist.RecordValue(ns)
	s.Ops++
	s.Elapsed += time.Duration(ns)
}

// Summarize returns the percentiles of a histogram.
func Summarize(h *hdrhistogram.Histogram) *Summary {
	return &Summary{
		P50: h.ValueAtQuantile(50), P90: h.ValueAtQuantile(90), P99: h.ValueAtQuantile(99),
		P999: h.ValueAtQuantile(99.9), Max: h.Max(), Mean: h.Mean(),
	}
}

// PerOp returns the elapsed nanoseconds an operation.
func (s *Series) PerOp() float64 { return float64(s.Elapsed) / float64(max(s.Ops, 1)) }

// Rate returns operations a second.
func (s *Series) Rate() float64 { return float64(s.Ops) / max(s.Elapsed.Seconds(), 1e-9) }

// NewHistogram records 1 ns to one minute with three significant digits.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(time.Minute), 3)
}

// WriteJSON writes the report as one JSON object, with "ok": true.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		OK bool `json:"ok"`
		*Report
	}{true, r})
}

// WriteText writes the report as tables for a person.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s on %s (%d cores, %s, %s, commit %.12s)\n", r.Name, r.Machine.CPU, r.Machine.Cores, r.Machine.OS, r.Machine.Go, r.Machine.Commit)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tops\tops/s\tns/op\tCPU ns/op\tallocs/op\tGCs\tp50\tp90\tp99\tp99.9\tmax\t")
	for _, s := range r.Series {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.4f\t%d\t", s.Name, figure(float64(s.Ops)), figure(s.Rate()), figure(s.PerOp()),
			figure(float64(s.CPU)/float64(max(s.Ops, 1))), float64(s.Allocs)/float64(max(s.Ops, 1)), s.GCs)
		if l := s.Summary; l != nil {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t\n", human(l.P50), human(l.P90), human(l.P99), human(l.P999), human(l.Max))
		} else {
			fmt.Fprint(t, "\t\t\t\t\t\n")
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, q := range r.Ratios {
		word, verdict := "at least", "met"
		if q.AtMost {
			word = "at most"
		}
		if !q.Met() {
			verdict = "NOT MET"
		}
		if q.Goal == 0 {
			fmt.Fprintf(w, "ratio  %s: %s\n", q.Name, figure(q.Value))
		} else {
			fmt.Fprintf(w, "ratio  %s: %s (goal %s %s: %s)\n", q.Name, figure(q.Value), word, figure(q.Goal), verdict)
		}
	}
	for _, n := range r.notes() {
		fmt.Fprintf(w, "note   %s\n", n)
	}
	return nil
}

// notes returns the notes, those about offered rates that were not reached first, then the
// host's.
func (r *Report) notes() (list []string) {
	for _, s := range r.Series {
		if !s.Reached() {
			list = append(list, fmt.Sprintf("%s: OFFERED RATE NOT REACHED, %s of %s a second: its latencies are queueing and say nothing of the system",
				s.Name, figure(s.Rate()), figure(s.Offered)))
		}
	}
	return append(append(list, hostNotes(r.Hosts)...), r.Notes...)
}

// figure formats a number with four significant digits, and large ones with k, M or G.
func figure(v float64) string {
	unit := ""
	for _, u := range []string{"k", "M", "G"} {
		if math.Abs(v) < 10_000 {
			break
		}
		v, unit = v/1000, " "+u
	}
	decimals := 3
	for limit := 1.0; decimals > 0 && math.Abs(v) >= 10*limit; limit *= 10 {
		decimals--
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + unit
}

func human(ns int64) string {
	switch {
	case ns < 10_000:
		return fmt.Sprintf("%d ns", ns)
	case ns < 10_000_000:
		return fmt.Sprintf("%.1f µs", float64(ns)/1e3)
	default:
		return fmt.Sprintf("%.1f ms", float64(ns)/1e6)
	}
}
