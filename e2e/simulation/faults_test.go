//go:build feed_goroutines

package simulation

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// fault is a mistake that somebody could make: in a file, the text old is new.
type fault struct {
	name, file, old, new string
}

// faults are planted one at a time; the simulation must find each.
var faults = []fault{
	{"a frame is acknowledged before it is synced", "persist/store.go", "how, began = pebble.Sync, time.Now()", "how, began = pebble.NoSync, time.Now()"},
	{"an acknowledged frame of mode interval stays in memory", "persist/store.go", "s.unsynced.write(s.buf)", "s.unsynced.write(nil)"},
	{"a snapshot loses an order", "engine/snapshot_restore.go", "for k := start; k < end; k++ {", "for k := start + 1; k < end; k++ {"},
	{"a recovery passes over the first events that a store lacks", "persist/replay.go", "if c.Seq > p.floor {", "if c.Seq > p.floor+5 {"},
	{"the reports of events before a crash are not made again", "fixgw/reports/follower.go", "if err := v.follow(events); err != nil {\n\t\treturn err\n\t}\n\treturn v.reporter.Deliver()", "return v.reporter.Deliver()"},
	{"a store forgets some commits", "persist/kv.go", "\tif !sync {\n", "\tif !sync && time.Now().UnixMilli()%20 == 0 {\n\t\treturn nil\n\t}\n\tif !sync {\n"},
	{"numbers are used again after a crash", "fixgw/session/msgstore.go", "if s.sender < s.reserved {", "if false && s.sender < s.reserved {"},
	{"a resend repeats only the last message", "fixgw/session/msgstore_resend.go", "begin, end := uint64(max(beginSeqNum, 1)), uint64(max(endSeqNum, 0))", "begin, end := uint64(max(endSeqNum, 1)), uint64(max(endSeqNum, 0))"},
	{"reports are not kept for a resend", "fixgw/session/msgstore.go", "if keptType(m.msgType) {", "if keptType(m.msgType) && m.msgType != \"8\" {"},
	{"a repeated order is taken again", "fixgw/reports/session.go", "if len(key) == 0 || len(key) > wire.MaxClOrdID {\n\t\treturn false, false, nil", "if len(key) > 0 {\n\t\treturn false, false, nil"},
	{"the maker gets no report of its fill", "fixgw/orders/events.go", "\t\tf.report(e, o, r, false)\n\t\tif err := f.recordFill", "\t\tif i == 0 {\n\t\t\tf.report(e, o, r, false)\n\t\t}\n\t\tif err := f.recordFill"},
	{"CumQty counts fills, not lots", "fixgw/orders/events.go", "err := o.Trade(e.Price, e.Qty)", "err := o.Trade(e.Price, 1)"},
	{"an amend forgets what was filled before", "fixgw/orders/events.go", "o.Total = o.Cum + e.Qty", "o.Total = e.Qty"},
	{"a cancelled order stays in the gateway's list", "fixgw/orders/events.go", "\to.Status = status\n", "\t_ = status\n"},
	{"the list of open orders lacks the last one", "fixgw/rebuild.go", "orders, claims := owner.orders.Open(matches), owner.quotes.Open(matches)\n", "orders, claims := owner.orders.Open(matches), owner.quotes.Open(matches)\n\torders = orders[:max(0, len(orders)-1)]\n"},
	{"the book of REST keeps what was traded", "engine/marketdata/data.go", "\t\tm.display(e, e.Side.Opposite(), -int64(e.Qty))\n", ""},
}

// root is the module's folder, from this one.
const root = "../.."

// TestFaultsApply: each fault's text is in its file once, so that it can be planted.
func TestFaultsApply(t *testing.T) {
	for _, f := range faults {
		text, err := os.ReadFile(filepath.Join(root, f.file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), f.old); n != 1 {
			t.Errorf("%s: %s has its text %d times, want once", f.name, f.file, n)
		}
	}
}

// foundBy is the seed of a failure.
var foundBy = regexp.MustCompile(`again: make simulate SEED=(\d+)`)

// TestFaults plants each fault and simulates up to 1,000 seeds until it is found. Only if
// BLOCKDESK_SIMULATE_FAULTS is set, to a regular expression of names: it compiles the service
// for each.
func TestFaults(t *testing.T) {
	text := os.Getenv("BLOCKDESK_SIMULATE_FAULTS")
	if text == "" {
		t.Skip("skipped: it compiles the service with each fault: make simulate-faults")
	}
	wanted, err := regexp.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if wanted.MatchString(f.name) {
			t.Run(f.name, func(t *testing.T) { plant(t, f) })
		}
	}
}

func plant(t *testing.T, f fault) {
	file, err := filepath.Abs(filepath.Join(root, f.file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	planted, overlay := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: planted}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(planted, []byte(strings.Replace(string(text), f.old, f.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "simulation.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-tags", "feed_goroutines", "-ldflags=-w", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	began := time.Now()
	run := exec.CommandContext(t.Context(), program, "-test.run", "^TestSimulation$", "-test.timeout", "1h")
	run.Env = append(os.Environ(), "BLOCKDESK_SIMULATE_SEEDS=1000", "BLOCKDESK_SIMULATE_SEED=1")
	out, err := run.CombinedOutput()
	if err == nil {
		t.Fatalf("not found in 1,000 seeds")
	}
	m := foundBy.FindSubmatch(out)
	if m == nil {
		t.Fatalf("the simulation failed otherwise: %.3000s", out)
	}
	_, first, _ := strings.Cut(string(out), "mode ")
	lines := strings.SplitN(first, "\n", 3)
	t.Logf("seed %s, %v: mode %s %s", m[1], time.Since(began).Round(time.Second), lines[0], strings.TrimSpace(lines[1]))
}
