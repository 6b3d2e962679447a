package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A page carries its reports as JSON, so that the next run can compare itself with it.
const (
	dataOpen  = `<script type="application/json" id="reports">`
	dataClose = `</script>`
)

// ReadPage returns the reports of a page that WritePage has written, without their
// histograms; nothing if data is something else.
func ReadPage(data []byte) []*Report {
	_, rest, found := bytes.Cut(data, []byte(dataOpen))
	if !found {
		return nil
	}
	text, _, found := bytes.Cut(rest, []byte(dataClose))
	var reports []*Report
	if !found || json.Unmarshal(text, &reports) != nil {
		return nil
	}
	return reports
}

// Compare adds to each report a comparison with the report of the same name in last, by
// the names of their series and ratios. It leaves out reports without one.
func Compare(reports, last []*Report) {
	for _, r := range reports {
		for _, old := range last {
			if old != nil && old.Name == r.Name {
				r.Last = compare(r, old)
			}
		}
	}
}

// Comparison is a report beside an earlier one.
type Comparison struct {
	Began, Commit string
	OtherMachine  bool
	Rows          []ComparisonRow
}

// ComparisonRow is one figure of both runs; Ratio is this run's over the last one's.
type ComparisonRow struct{ Name, Last, This, Ratio string }

func compare(r, old *Report) *Comparison {
	c := &Comparison{
		Began: old.Began.String(), Commit: old.Machine.Commit,
		OtherMachine: old.Machine.CPU != r.Machine.CPU || old.Machine.Cores != r.Machine.Cores,
	}
	add := func(name string, last, this float64, show func(float64) string) {
		if last > 0 && this > 0 {
			c.Rows = append(c.Rows, ComparisonRow{name, show(last), show(this), fmt.Sprintf("%.2f", this/last)})
		}
	}
	ns := func(v float64) string { return human(int64(v)) }
	for _, s := range r.Series {
		for _, o := range old.Series {
			if o == nil || o.Name != s.Name {
				continue
			}
			add(s.Name+", CPU an operation", o.cpuPerOp(), s.cpuPerOp(), ns)
			if s.Summary != nil && o.Summary != nil {
				add(s.Name+", p50", float64(o.Summary.P50), float64(s.Summary.P50), ns)
				add(s.Name+", p99", float64(o.Summary.P99), float64(s.Summary.P99), ns)
			}
		}
	}
	for _, q := range r.Ratios {
		for _, o := range old.Ratios {
			if o.Name == q.Name {
				add(q.Name, o.Value, q.Value, figure)
			}
		}
	}
	return c
}

func (s *Series) cpuPerOp() float64 { return float64(s.CPU) / float64(max(s.Ops, 1)) }
