package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"blockdesk/bench"
)

// wrk's connections, one request in flight on each. Fewer leave the server idle
// between requests, which costs it a sleep and a wake-up each; more of a large
// page would be longer under way than a round takes.
const (
	wrkConns     = 64
	wrkConnsBook = 16
)

// wrkReport prints what wrk counted as one line that a program reads.
const wrkReport = `
local threads = {}
function setup(thread) table.insert(threads, thread) end
function done(summary, latency, requests)
  local statuses = {}
  for _, thread in ipairs(threads) do
    for status, n in pairs(thread:get("statuses") or {}) do
      statuses[status] = (statuses[status] or 0) + n
    end
  end
  local parts = {}
  for status, n in pairs(statuses) do parts[#parts + 1] = string.format('"%s":%d', status, n) end
  local e = summary.errors
  io.write(string.format('RESULT {"requests":%d,"bytes":%d,"micros":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d,"over399":%d,"statuses":{%s}}\n',
    summary.requests, summary.bytes, summary.duration, e.connect, e.read, e.write, e.timeout, e.status, table.concat(parts, ",")))
end
`

// wrkCount counts answers by status, at some cost to wrk.
const wrkCount = `
statuses = {}
function response(status) statuses[tostring(status)] = (statuses[tostring(status)] or 0) + 1 end
`

// wrkLoad is one run of wrk.
type wrkLoad struct {
	url     string
	headers []string // "Name: value"
	script  string   // Lua beside wrkReport
	seconds int
	conns   int
}

// wrkResult is what wrk counted.
type wrkResult struct {
	Requests int64            `json:"requests"`
	Bytes    int64            `json:"bytes"`
	Micros   int64            `json:"micros"`
	Connect  int64            `json:"connect"`
	Read     int64            `json:"read"`
	Write    int64            `json:"write"`
	Timeout  int64            `json:"timeout"`
	Over399  int64            `json:"over399"`
	Statuses map[string]int64 `json:"statuses"` // where the script counts them

	cpu time.Duration // that wrk itself took
}

// broken is the number of requests that got no answer.
func (w *wrkResult) broken() int64 { return w.Connect + w.Read + w.Write + w.Timeout }

func (w *wrkResult) elapsed() time.Duration { return time.Duration(w.Micros) * time.Microsecond }

// runWrk drives a server from one core, with one thread, at full speed.
func runWrk(ctx context.Context, dir string, core int, load wrkLoad) (*wrkResult, error) {
	wrk, err := bench.FindProgram("wrk")
	if err != nil {
		return nil, err
	}
	script := filepath.Join(dir, "wrk.lua")
	if err := os.WriteFile(script, []byte(wrkReport+load.script), 0o600); err != nil {
		return nil, err
	}
	args := []string{
		"-c", strconv.Itoa(core), wrk, "-t", "1", "-c", strconv.Itoa(load.conns),
		"-d", strconv.Itoa(load.seconds) + "s", "-s", script,
	}
	for _, h := range load.headers {
		args = append(args, "-H", h)
	}
	cmd := exec.CommandContext(ctx, "taskset", append(args, load.url)...)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("wrk %s: %w\n%s", load.url, err, text)
	}
	r, err := parseWrk(string(text))
	if err != nil {
		return nil, fmt.Errorf("wrk %s: %w", load.url, err)
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return r, nil
}

// parseWrk reads the line of wrkReport in wrk's output.
func parseWrk(text string) (*wrkResult, error) {
	_, line, found := strings.Cut(text, "RESULT ")
	if !found {
		return nil, fmt.Errorf("no result in\n%s", text)
	}
	r := &wrkResult{}
	if err := json.NewDecoder(strings.NewReader(line)).Decode(r); err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, text)
	}
	return r, nil
}
