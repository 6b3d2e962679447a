package bench

import (
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

// WriteHTML writes the report as one page without outside fetches: a percentile
// plot (percentiles on a scale of nines, latency on a logarithmic one) and the
// tables.
func (r *Report) WriteHTML(w io.Writer) error {
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		return err
	}
	return page.Execute(w, struct {
		Report *Report
		Plot   template.HTML
		Text   string
	}{r, template.HTML(r.plot()), text.String()})
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>blockdesk bench {{.Report.Name}}</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;max-width:1020px;margin:2em auto;padding:0 1em;color:#222;background:#fff}
svg{width:100%;height:auto} pre{overflow-x:auto;background:#f5f5f5;padding:1em} text{font:12px system-ui,sans-serif;fill:#333}
@media (prefers-color-scheme:dark){body{color:#ddd;background:#16181c} pre{background:#22252b} text{fill:#ccc}}
</style></head><body>
<h1>blockdesk bench {{.Report.Name}}</h1>
<p>{{.Report.Began}} · {{.Report.Machine.CPU}} · {{.Report.Machine.Cores}} cores · {{.Report.Machine.Go}} · commit {{.Report.Machine.Commit}}</p>
{{.Plot}}
<pre>{{.Text}}</pre>
</body></html>
`))

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
