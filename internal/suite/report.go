package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build's output, instead of Package
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string
}

// test names a test, or a package where name is empty.
type test struct{ pkg, name string }

func (t test) String() string {
	return strings.TrimSpace(strings.TrimPrefix(t.pkg, "blockdesk/") + " " + t.name)
}

// top returns the test that a subtest belongs to.
func (t test) top() test {
	t.name, _, _ = strings.Cut(t.name, "/")
	return t
}

// result is how a test ended.
type result struct {
	test
	seconds float64
	reason  string // of a skipped one
}

// report collects the events of one run.
type report struct {
	out    io.Writer
	output map[test][]string // of tests and packages that have not ended
	passed []result
	failures,
	skipped []result
	subtests int
	exit     error // of go test
	took     time.Duration
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[test][]string{}}
}

func (r *report) failed() bool { return len(r.failures) > 0 || r.exit != nil }

// read handles one line of go test's output. It prints a line that is no event.
func (r *report) read(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		fmt.Fprintf(r.out, "%s\n", line)
		return
	}
	t := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.output[t.top()] = append(r.output[t.top()], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e, t)
		} else {
			r.endTest(e, t)
		}
	}
}

func (r *report) endTest(e event, t test) {
	res := result{test: t, seconds: e.Elapsed}
	if e.Action == "skip" {
		res.reason = skipReason(r.output[t.top()], t.name)
		r.skipped = append(r.skipped, res)
	}
	if t.name != t.top().name {
		if e.Action == "pass" {
			r.subtests++
		}
		return
	}
	switch e.Action {
	case "pass":
		r.passed = append(r.passed, res)
	case "fail":
		r.failures = append(r.failures, res)
		r.show(t)
	}
	delete(r.output, t)
}

func (r *report) endPackage(e event, t test) {
	if e.Action == "fail" {
		// A panic, a timeout or a failed build is a failure of the package itself.
		if !slices.ContainsFunc(r.failures, func(f result) bool { return f.pkg == t.pkg }) {
			r.failures = append(r.failures, result{test: t, seconds: e.Elapsed})
			r.showUnfinished(t.pkg)
		}
		r.show(t)
	}
	if e.Action != "skip" {
		word := map[string]string{"pass": "ok", "fail": "FAIL"}[e.Action]
		cached := ""
		if slices.ContainsFunc(r.output[t], func(s string) bool { return strings.Contains(s, "(cached)") }) {
			cached = " (cached)"
		}
		fmt.Fprintf(r.out, "%-4s %-32s %6.1f s%s\n", word, t, e.Elapsed, cached)
	}
	delete(r.output, t)
}

func (r *report) show(t test) {
	fmt.Fprintf(r.out, "---- %s\n%s----\n", t, strings.Join(r.output[t], ""))
}

// showUnfinished shows the output of the tests that a panic or a timeout of their package
// ended. The stack is in the output of the test that printed last.
func (r *report) showUnfinished(pkg string) {
	for t := range r.output {
		if t.pkg == pkg && t.name != "" {
			r.show(t)
			delete(r.output, t)
		}
	}
}

var skipLine = regexp.MustCompile(`^\s+\S+\.go:\d+: (?:skipped: ?)?(.*)`)

// skipReason returns the reason that a test printed before it was skipped.
func skipReason(output []string, name string) string {
	reason := "no reason"
	for _, line := range output {
		if strings.HasPrefix(strings.TrimSpace(line), "--- SKIP: "+name+" ") {
			break
		}
		if m := skipLine.FindStringSubmatch(line); m != nil {
			reason = strings.TrimSpace(m[1])
		}
	}
	return reason
}

// slowest is the number of slow tests to print.
const slowest = 10

// print writes the summary of a run. Programs may parse its last line.
func (r *report) print(out io.Writer) {
	reasons := r.reasons()
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		names := reasons[reason]
		fmt.Fprintf(out, "skipped %d: %s (%s)\n", len(names), reason, strings.Join(names[:min(3, len(names))], ", "))
	}
	tests := slices.Concat(r.passed, r.failures)
	slices.SortStableFunc(tests, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, t := range tests[:min(slowest, len(tests))] {
		fmt.Fprintf(out, "slowest %6.1f s  %s\n", t.seconds, t)
	}
	for _, f := range r.failures {
		fmt.Fprintf(out, "failed  %6.1f s  %s\n", f.seconds, f)
	}
	if r.exit != nil && len(r.failures) == 0 {
		fmt.Fprintf(out, "go test failed: %v\n", r.exit)
	}
	fmt.Fprintf(out, "%d subtests passed; all took %v\n", r.subtests, r.took.Round(time.Second))
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", len(r.passed), len(r.failures), len(r.skipped))
}

// reasons returns the skipped tests by reason.
func (r *report) reasons() map[string][]string {
	by := map[string][]string{}
	for _, s := range r.skipped {
		by[s.reason] = append(by[s.reason], s.String())
	}
	return by
}

// printRuns writes the summary of several runs.
func printRuns(out io.Writer, o options, runs []*report) {
	failures := map[test]int{}
	bad, tests := 0, 0
	var took time.Duration
	for _, r := range runs {
		for _, f := range r.failures {
			failures[f.test]++
		}
		if r.failed() {
			bad++
		}
		tests += len(r.passed) + len(r.failures)
		took += r.took
	}
	for _, t := range slices.SortedFunc(maps.Keys(failures), func(a, b test) int { return cmp.Compare(a.String(), b.String()) }) {
		fmt.Fprintf(out, "failed in %d of %d runs: %s\n", failures[t], len(runs), t)
	}
	fmt.Fprintf(out, "%d runs of %d tests with load %d in %.0f minutes: %d runs failed\n",
		len(runs), tests, o.load, took.Minutes(), bad)
}
