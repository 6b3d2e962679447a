package bench

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

// The plot's frame in SVG units.
const (
	plotWidth, plotHeight                    = 960.0, 460.0
	plotLeft, plotRight, plotTop, plotBottom = 90.0, 50.0, 20.0, 60.0
)

var plotColours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"}

// WriteHTML writes the report as one page without outside fetches: a percentile plot
// (percentiles on a scale of nines, latency on a logarithmic one), the graphs, the ratios as bars with
// their goals, and the table.
func (r *Report) WriteHTML(w io.Writer) error { return WritePage(w, []*Report{r}) }

// WritePage writes reports as one page, as WriteHTML does, with what Compare has added. The
// page carries the reports for ReadPage.
func WritePage(w io.Writer, reports []*Report) error {
	data, err := json.Marshal(reports) // escapes <, so that it cannot end the script
	if err != nil {
		data = []byte("[]") // a ratio without a number: the page is worth more than the next comparison
	}
	sections := make([]section, len(reports))
	for i, r := range reports {
		sections[i] = section{r, template.HTML(r.plot()), r.graphs(), r.bars(), r.rows(), r.notes()}
	}
	if err := page.Execute(w, sections); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s%s\n</body></html>\n", dataOpen, data, dataClose)
	return err
}

// section is a report on the page.
type section struct {
	Report *Report
	Plot   template.HTML
	Graphs []template.HTML
	Bars   []bar
	Rows   [][]string
	Notes  []string
}

func (r *Report) graphs() (list []template.HTML) {
	for _, g := range r.Graphs {
		list = append(list, template.HTML("<h3>"+template.HTMLEscapeString(g.Name)+"</h3>"+g.draw()))
	}
	return list
}

// bar is a ratio as a bar; Width and Goal are per cent of the frame.
type bar struct {
	Name, Text  string
	Width, Goal float64
	Class       string
	HasGoal     bool
}

// bars returns the ratios as bars, each beside its goal. A bar is as long as its value
// where twice the goal fills the frame.
func (r *Report) bars() (list []bar) {
	for _, q := range r.Ratios {
		whole := 2 * q.Goal
		if q.Goal == 0 {
			whole = 2 * q.Value
		}
		b := bar{Name: q.Name, Text: figure(q.Value), Width: min(100, 100*q.Value/max(whole, 1e-9)), Goal: 50, HasGoal: q.Goal != 0, Class: "bar"}
		if b.HasGoal {
			word := "at least"
			if q.AtMost {
				word = "at most"
			}
			b.Text += fmt.Sprintf(" (goal %s %s)", word, figure(q.Goal))
		}
		if !q.Met() {
			b.Class = "bar missed"
		}
		list = append(list, b)
	}
	return list
}

// columns are the heads of the table.
var columns = []string{"", "ops", "ops/s", "ns/op", "CPU ns/op", "allocs/op", "p50", "p90", "p99", "p99.9", "max"}

func (r *Report) rows() (list [][]string) {
	list = append(list, columns)
	for _, s := range r.Series {
		ops := float64(max(s.Ops, 1))
		row := []string{s.Name, figure(float64(s.Ops)), figure(s.Rate()), figure(s.PerOp()), figure(float64(s.CPU) / ops), figure(float64(s.Allocs) / ops)}
		if l := s.Summary; l != nil {
			row = append(row, human(l.P50), human(l.P90), human(l.P99), human(l.P999), human(l.Max))
		}
		list = append(list, append(row, make([]string, len(columns)-len(row))...))
	}
	return list
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>blockdesk bench{{range .}} {{.Report.Name}}{{end}}</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;max-width:1020px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
svg{width:100%;height:auto} text{font:12px system-ui,sans-serif;fill:#333}
.wide{overflow-x:auto} table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums} td,th{padding:.2em .7em;text-align:right;white-space:nowrap;border-top:1px solid #8884} td:first-child,th:first-child{text-align:left;white-space:normal;min-width:16em}
.ratio{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:.2em 1em;align-items:center;margin:.25em 0;font-size:13px}
.ratio svg{height:14px} .bar{fill:#009e73} .bar.missed{fill:#d55e00} .goal{stroke:currentColor;stroke-width:.6}
@media (prefers-color-scheme:dark){body{color:#ddd;background:#16181c} text{fill:#ccc} a{color:#8ab4f8}}
</style></head><body>
{{if gt (len .) 1}}<h1>blockdesk bench</h1><ul>{{range .}}<li><a href="#{{.Report.Name}}">{{.Report.Name}}</a></li>{{end}}</ul>{{end}}
{{range .}}<section id="{{.Report.Name}}">
<h2>{{.Report.Name}}</h2>
<p>{{.Report.Began}} · {{.Report.Machine.CPU}} · {{.Report.Machine.Cores}} cores · {{.Report.Machine.Go}} · commit {{.Report.Machine.Commit}}</p>
{{.Plot}}
{{range .Graphs}}{{.}}
{{end}}{{range .Bars}}<div class="ratio"><span>{{.Name}}: <b>{{.Text}}</b></span><svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="{{.Class}}" width="{{.Width}}" height="4"/>{{if .HasGoal}}<line class="goal" x1="{{.Goal}}" x2="{{.Goal}}" y1="0" y2="4"/>{{end}}</svg></div>
{{end}}<div class="wide"><table>{{range $i, $row := .Rows}}<tr>{{range $row}}{{if $i}}<td>{{.}}</td>{{else}}<th>{{.}}</th>{{end}}{{end}}</tr>{{end}}</table></div>
<ul>{{range .Notes}}<li>{{.}}</li>{{end}}</ul>
{{with .Report.Last}}<h3>Beside the last run</h3>
<p>{{.Began}} · commit {{.Commit}}{{if .OtherMachine}} · <b>another machine</b>{{end}}</p>
<div class="wide"><table><tr><th></th><th>last</th><th>this</th><th>this / last</th></tr>{{range .Rows}}<tr><td>{{.Name}}</td><td>{{.Last}}</td><td>{{.This}}</td><td>{{.Ratio}}</td></tr>{{end}}</table></div>
{{end}}</section>
{{end}}`))

func (r *Report) plot() string {
	low, high, lines := int64(math.MaxInt64), int64(0), 0
	for _, s := range r.Series {
		if s.Hist != nil && s.Hist.TotalCount() > 0 {
			low, high, lines = min(low, max(s.Hist.Min(), 1)), max(high, s.Hist.Max()), lines+1
		}
	}
	if lines == 0 {
		return ""
	}
	bottom, top := math.Floor(math.Log10(float64(low))), math.Ceil(math.Log10(float64(high)))
	if top <= bottom {
		top = bottom + 1
	}
	const nines = 5.0 // the scale ends at 99.999 %
	x := func(quantile float64) float64 {
		n := min(-math.Log10(max(1-quantile/100, 1e-12)), nines)
		return plotLeft + n/nines*(plotWidth-plotLeft-plotRight)
	}
	y := func(ns float64) float64 {
		f := (math.Log10(max(ns, 1)) - bottom) / (top - bottom)
		return plotHeight - plotBottom - f*(plotHeight-plotTop-plotBottom)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="latency by percentile">`, plotWidth, plotHeight)
	for e := bottom; e <= top; e++ {
		at := y(math.Pow(10, e))
		fmt.Fprintf(&b, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="#8884"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`,
			plotLeft, plotWidth-plotRight, at, at, plotLeft-8, at+4, human(int64(math.Pow(10, e))))
	}
	for _, q := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999} {
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%g" y2="%g" stroke="#8884"/><text x="%.1f" y="%g" text-anchor="middle">%g %%</text>`,
			x(q), x(q), plotTop, plotHeight-plotBottom, x(q), plotHeight-plotBottom+18, q)
	}
	drawn := 0
	for _, s := range r.Series {
		if s.Hist == nil || s.Hist.TotalCount() == 0 {
			continue
		}
		colour := plotColours[drawn%len(plotColours)]
		var points strings.Builder
		for step := 0.0; step <= nines; step += 0.05 {
			q := 100 * (1 - math.Pow(10, -step))
			fmt.Fprintf(&points, "%.1f,%.1f ", x(q), y(float64(s.Hist.ValueAtQuantile(q))))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`, colour, points.String())
		fmt.Fprintf(&b, `<text x="%g" y="%g" style="fill:%s">%s</text>`, plotLeft+12, plotTop+16+float64(drawn)*16, colour, template.HTMLEscapeString(s.Name))
		drawn++
	}
	b.WriteString(`</svg>`)
	return b.String()
}
