package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"blockdesk/internal/await"
)

// The events of four packages: one passes, one fails in a subtest and skips two tests,
// one panics, one does not build.
const recorded = `{"Action":"start","Package":"blockdesk/market"}
{"Action":"output","Package":"blockdesk/market","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"blockdesk/market","Test":"TestA/one","Elapsed":0.5}
{"Action":"pass","Package":"blockdesk/market","Test":"TestA","Elapsed":1.5}
{"Action":"output","Package":"blockdesk/market","Output":"ok  \tblockdesk/market\t(cached)\n"}
{"Action":"pass","Package":"blockdesk/market","Elapsed":2}
{"Action":"output","Package":"blockdesk/feed","Output":"-test.shuffle 1234\n"}
{"Action":"output","Package":"blockdesk/feed","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"blockdesk/feed","Test":"TestB/two","Output":"    b_test.go:9: two is wrong\n"}
{"Action":"fail","Package":"blockdesk/feed","Test":"TestB/two","Elapsed":0.1}
{"Action":"fail","Package":"blockdesk/feed","Test":"TestB","Elapsed":0.2}
{"Action":"output","Package":"blockdesk/feed","Test":"TestC","Output":"    c_test.go:9: it ran so far\n"}
{"Action":"output","Package":"blockdesk/feed","Test":"TestC","Output":"    c_test.go:10: skipped: no ruby here: apt-get install ruby\n"}
{"Action":"output","Package":"blockdesk/feed","Test":"TestC","Output":"--- SKIP: TestC (0.00s)\n"}
{"Action":"skip","Package":"blockdesk/feed","Test":"TestC","Elapsed":0}
{"Action":"output","Package":"blockdesk/feed","Test":"TestD","Output":"--- SKIP: TestD (0.00s)\n"}
{"Action":"skip","Package":"blockdesk/feed","Test":"TestD","Elapsed":0}
{"Action":"fail","Package":"blockdesk/feed","Elapsed":3}
{"Action":"output","Package":"blockdesk/fixgw","Output":"panic: out of the test's sight\n"}
{"Action":"output","Package":"blockdesk/fixgw","Test":"TestE","Output":"goroutine 7 [running]\n"}
{"Action":"fail","Package":"blockdesk/fixgw","Elapsed":0.3}
{"ImportPath":"blockdesk/persist","Action":"build-output","Output":"persist/x.go:1: syntax error\n"}
{"Action":"fail","Package":"blockdesk/persist","Elapsed":0,"FailedBuild":"blockdesk/persist"}
not an event
`

// TestReport: a run says what failed with all its output, what was skipped and why,
// and ends with the line that machines read.
func TestReport(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out)
	for line := range strings.Lines(recorded) {
		r.read([]byte(line))
	}
	r.exit, r.took = errors.New("exit status 1"), 6*time.Second
	r.print(&out)
	for _, want := range []string{
		"ok   market                              2.0 s (cached)",
		"two is wrong",
		"-test.shuffle 1234",
		"FAIL feed                                3.0 s",
		"panic: out of the test's sight",
		"---- fixgw TestE\ngoroutine 7 [running]",
		"persist/x.go:1: syntax error",
		"not an event",
		"skipped 1: no ruby here: apt-get install ruby (feed TestC)",
		"skipped 1: no reason (feed TestD)",
		"slowest    1.5 s  market TestA",
		"failed     0.2 s  feed TestB",
		"failed     0.3 s  fixgw",
		"1 subtests passed; all took 6s",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
	if !strings.HasSuffix(out.String(), "\n1 passed, 3 failed, 2 skipped\n") {
		t.Errorf("the report ends with %q", out.String()[max(0, out.Len()-60):])
	}
	if strings.Contains(out.String(), "=== RUN   TestA") {
		t.Error("a test that passed shows its output")
	}
}

// TestRuns: several runs name each test that failed in any of them.
func TestRuns(t *testing.T) {
	var out bytes.Buffer
	bad := &report{failures: []result{{test: test{"blockdesk/feed", "TestB"}}}, took: time.Minute}
	good := &report{passed: []result{{test: test{"blockdesk/feed", "TestB"}}}, took: time.Minute}
	printRuns(&out, options{load: 8}, []*report{bad, good, bad})
	want := "failed in 2 of 3 runs: feed TestB\n3 runs of 3 tests with load 8 in 3 minutes: 2 runs failed\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}

// planted makes TestPlanted fail, for TestStress.
var planted = flag.Bool("planted", false, "fail TestPlanted")

func TestPlanted(t *testing.T) {
	if *planted {
		t.Error("as planted")
	}
}

// TestStress runs a real suite of one test: a failure is found in each run, and a good
// run is a good one.
func TestStress(t *testing.T) {
	for _, fails := range []bool{false, true} {
		args := []string{"-count=1", "-run", "^TestPlanted$", "."}
		if fails {
			args = append(args, "-planted")
		}
		var out bytes.Buffer
		failed, err := stress(options{runs: 2, shuffle: true, args: args}, &out)
		if err != nil || failed != fails {
			t.Fatalf("planted %v: failed is %v, %v:\n%s", fails, failed, err, &out)
		}
		if got := strings.Contains(out.String(), "failed in 2 of 2 runs: internal/suite TestPlanted"); got != fails {
			t.Errorf("planted %v:\n%s", fails, &out)
		}
	}
}

// TestBurn: the load ends with the process that has started it.
func TestBurn(t *testing.T) {
	in, out := io.Pipe()
	ended := make(chan struct{})
	go func() {
		Run(in)
		close(ended)
	}()
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	await.Closed(t, "the load's end", ended)
}
