package bench

import (
	"fmt"
	"html/template"
	"strings"
)

// Graph is values over time.
type Graph struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"`
	Lines []Line `json:"lines"`
}

// Line is one quantity of a graph.
type Line struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"` // by Seconds
}

// Point is a value at a time after the start.
type Point struct {
	Seconds float64 `json:"s"`
	Value   float64 `json:"v"` // not negative
}

// Max returns the line's largest value; 0 without points.
func (l *Line) Max() (most float64) {
	for _, p := range l.Points {
		most = max(most, p.Value)
	}
	return most
}

// draw returns the graph as an SVG, whose scale ends at the largest value.
func (g *Graph) draw() string {
	end, most := 0.0, 0.0
	for i := range g.Lines {
		most = max(most, g.Lines[i].Max())
		for _, p := range g.Lines[i].Points {
			end = max(end, p.Seconds)
		}
	}
	if end == 0 || most == 0 {
		return ""
	}
	x := func(s float64) float64 { return plotLeft + s/end*(plotWidth-plotLeft-plotRight) }
	y := func(v float64) float64 { return plotHeight - plotBottom - v/most*(plotHeight-plotTop-plotBottom) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, plotWidth, plotHeight, template.HTMLEscapeString(g.Name))
	const steps = 5
	for i := range steps + 1 {
		v, s := most*float64(i)/steps, end*float64(i)/steps
		fmt.Fprintf(&b, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="#8884"/><text x="%g" y="%.1f" text-anchor="end">%s %s</text>`,
			plotLeft, plotWidth-plotRight, y(v), y(v), plotLeft-8, y(v)+4, figure(v), template.HTMLEscapeString(g.Unit))
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%s s</text>`, x(s), plotHeight-plotBottom+18, figure(s))
	}
	for i, l := range g.Lines {
		colour := plotColours[i%len(plotColours)]
		var points strings.Builder
		for _, p := range l.Points {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(p.Seconds), y(p.Value))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>`, colour, points.String())
		fmt.Fprintf(&b, `<text x="%g" y="%g" style="fill:%s">%s</text>`, plotLeft+12, plotTop+16+float64(i)*16, colour, template.HTMLEscapeString(l.Name))
	}
	b.WriteString(`</svg>`)
	return b.String()
}
