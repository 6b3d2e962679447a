package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"blockdesk/bench"
	"blockdesk/bench/server"
)

// The default limits of the specification, which the flood expects.
const (
	readsPerMinute, readsBurst   = 60, 20
	writesPerMinute, writesBurst = 30, 10
)

// steadyAfter is the number of seconds after which memory is compared: before, the heap
// grows to its size.
const steadyAfter = 8

// floodScript sends in turn: a depth read, one that has the newest already, the
// RFQ book, and a quote.
const floodScript = wrkCount + `
local requests, at = {}, 0
function init(args)
  requests[1] = wrk.format("GET", %[1]q)
  requests[2] = wrk.format("GET", %[1]q, {["If-None-Match"] = "*"})
  requests[3] = wrk.format("GET", %[2]q)
  requests[4] = wrk.format("POST", %[3]q, {["Content-Type"] = "application/json"},
    '{"order_id":"%[4]s","tranche_id":"%[5]s","fill_usd":"250","rail":"SOL"}')
end
function request()
  at = at %% 4 + 1
  return requests[at]
end
`

// flood lets wrk run at full speed against a server with the default limits.
func (b *restBench) flood(ctx context.Context) (err error) {
	srv, stop, err := b.startOurs(ctx, "flood", "{}")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := server.PostTickets(srv, 10); err != nil {
		return err
	}
	order, tranche, err := server.FirstOffer(srv.Addresses.Base)
	if err != nil {
		return err
	}
	resident, end := watchMemory(ctx, srv.PID())
	before, err := answersOf(srv.Addresses.Admin)
	if err != nil {
		return err
	}
	cpu, err := bench.CPUOf(srv.PID())
	if err != nil {
		return err
	}
	start := time.Now()
	w, err := runWrk(ctx, b.o.Dir, b.loadCore, wrkLoad{
		url: srv.Addresses.Base, seconds: b.o.Flood, conns: wrkConns,
		script: fmt.Sprintf(floodScript, server.DepthTarget+"20", server.TicketsTarget, server.QuoteTarget, order, tranche),
	})
	if err != nil {
		return err
	}
	most := time.Since(start)
	end()
	cpuAfter, err := bench.CPUOf(srv.PID())
	if err != nil {
		return err
	}
	after, err := answersOf(srv.Addresses.Admin)
	if err != nil {
		return err
	}
	b.r.Series = append(b.r.Series, &bench.Series{
		Name: "full speed against the default limits", Ops: w.Requests, Elapsed: w.elapsed(), CPU: cpuAfter - cpu,
	})
	b.judge(w, before, after, most, <-resident)
	return nil
}

// judge compares the counts of wrk and of the server with the limits.
func (b *restBench) judge(w *wrkResult, before, after map[string]answers, most time.Duration, memory []int64) {
	good := w.Statuses["200"] + w.Statuses["304"] + w.Statuses["429"]
	b.r.Ratios = append(b.r.Ratios, bench.Ratio{
		Name: "full speed: requests answered by 200, 304 or 429", Goal: 1,
		Value: float64(good) / float64(w.Requests+w.broken()),
	})
	let := map[string]int64{}
	for route, n := range after {
		class := "reads"
		if route == server.QuoteTarget {
			class = "quotes"
		}
		let[class] += n.let - before[route].let
	}
	for _, class := range []struct {
		name             string
		perMinute, burst int
	}{{"reads", readsPerMinute, readsBurst}, {"quotes", writesPerMinute, writesBurst}} {
		// The first and the last request lie somewhere within the time that wrk
		// ran, and cover all but a moment of its duration.
		allowed := func(d time.Duration) float64 {
			return float64(class.burst + int(d*time.Duration(class.perMinute)/time.Minute))
		}
		least, highest := allowed(time.Duration(b.o.Flood)*time.Second-200*time.Millisecond), allowed(most)
		b.r.Ratios = append(b.r.Ratios,
			bench.Ratio{Name: fmt.Sprintf("full speed: %s let through, %d / the least that the limit allows, %.0f", class.name, let[class.name], least), Value: float64(let[class.name]) / least, Goal: 1},
			bench.Ratio{Name: fmt.Sprintf("full speed: %s let through, %d / the most that the limit allows, %.0f", class.name, let[class.name], highest), Value: float64(let[class.name]) / highest, Goal: 1, AtMost: true})
	}
	if n := len(memory); n >= steadyAfter {
		early, late := memory[n/4], memory[n-1]
		b.r.Ratios = append(b.r.Ratios, bench.Ratio{
			Name:  fmt.Sprintf("full speed: memory at the end, %.1f MB / after a quarter of the time, %.1f MB", float64(late)/1e6, float64(early)/1e6),
			Value: float64(late) / float64(early), Goal: 1.05, AtMost: true,
		})
	}
	b.r.Notes = append(b.r.Notes, fmt.Sprintf("full speed, %d s, reads and quotes in turn: %d × 200, %d × 304, %d × 429, %d without an answer",
		b.o.Flood, w.Statuses["200"], w.Statuses["304"], w.Statuses["429"], w.broken()))
}

// watchMemory reads a process's resident memory each second until end is called; then
// the list can be received.
func watchMemory(ctx context.Context, pid int) (list <-chan []int64, end func()) {
	ctx, end = context.WithCancel(ctx)
	out := make(chan []int64, 1)
	go func() {
		var all []int64
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				out <- all
				return
			case <-tick.C:
				if n, err := bench.ResidentBytes(pid); err == nil {
					all = append(all, n)
				}
			}
		}
	}()
	return out, end
}

// answers counts the answers of one route: those let through by the limits, and all.
type answers struct{ let, all int64 }

// answersOf reads the server's own counters, by route.
func answersOf(admin string) (map[string]answers, error) {
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	routes := map[string]answers{}
	lines := server.MetricsLines(resp.Body)
	for lines.Scan() {
		labels, ok := strings.CutPrefix(lines.Text(), "blockdesk_http_requests_total{")
		if !ok {
			continue
		}
		labels, value, _ := strings.Cut(labels, "} ")
		count, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
		route := labelOf(labels, "route")
		n := routes[route]
		n.all += int64(count)
		if labelOf(labels, "status") != "429" {
			n.let += int64(count)
		}
		routes[route] = n
	}
	return routes, lines.Err()
}

func labelOf(labels, name string) string {
	_, rest, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
