// Command suite runs go test and prints a summary: each package as it ends, the whole
// output of each failed test, and at the end how many tests ran, which were skipped and
// why, and the slowest ones.
//
//	suite [-n runs] [-load processes] [-cores n] [-shuffle] [--] go-test-arguments
//
// With -n it runs the suite several times and lists every test that failed in any run;
// -load keeps that many processes busy meanwhile, -cores confines the tests and the
// load to that many processors, and -shuffle changes the order of the tests each time.
// make test and make stress use it.
//
// It exits with 1 if a test failed or go test itself did.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

type options struct {
	runs, load, cores int
	shuffle           bool
	args              []string
}

func main() {
	var o options
	burn := flag.Bool("burn", false, "keep one processor busy until standard input ends")
	flag.IntVar(&o.runs, "n", 1, "how often the suite runs")
	flag.IntVar(&o.load, "load", 0, "busy processes beside it")
	flag.IntVar(&o.cores, "cores", 0, "processors for the tests and the load; 0: all")
	flag.BoolVar(&o.shuffle, "shuffle", false, "run the tests in another order each time")
	flag.Parse()
	o.args = flag.Args()
	if *burn {
		Run(os.Stdin)
		return
	}
	failed, err := stress(o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// stress runs the suite o.runs times and reports whether any run failed.
func stress(o options, out io.Writer) (failed bool, err error) {
	stop, err := startLoad(o)
	if err != nil {
		return false, err
	}
	defer stop()
	var runs []*report
	for i := range o.runs {
		if o.runs > 1 {
			fmt.Fprintf(out, "== run %d of %d\n", i+1, o.runs)
		}
		r, err := once(o, out)
		if err != nil {
			return true, err
		}
		r.print(out)
		runs = append(runs, r)
		failed = failed || r.failed()
	}
	if o.runs > 1 {
		printRuns(out, o, runs)
	}
	return failed, nil
}

// once runs go test and reads its events.
func once(o options, out io.Writer) (*report, error) {
	args := []string{"test", "-json"}
	if o.shuffle {
		args = append(args, "-shuffle=on")
	}
	cmd := confined(o, "go", append(args, o.args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := newReport(out)
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		r.read(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Join(err, cmd.Process.Kill())
	}
	r.exit = cmd.Wait()
	r.took = time.Since(start)
	return r, nil
}

// maxLine bounds a line of go test's output.
const maxLine = 16 << 20

// confined returns a command that runs on o.cores processors.
func confined(o options, name string, args ...string) *exec.Cmd {
	if o.cores == 0 {
		return exec.Command(name, args...)
	}
	set := "0-" + strconv.Itoa(o.cores-1)
	return exec.Command("taskset", append([]string{"-c", set, name}, args...)...)
}

// startLoad starts the busy processes. They end with stop, and with this process.
func startLoad(o options) (stop func(), err error) {
	var pipes []io.Closer
	stop = func() {
		for _, p := range pipes {
			p.Close()
		}
	}
	self, err := os.Executable()
	if err != nil {
		return stop, err
	}
	for range o.load {
		cmd := confined(o, self, "-burn")
		in, err := cmd.StdinPipe()
		if err != nil {
			return stop, err
		}
		pipes = append(pipes, in)
		if err := cmd.Start(); err != nil {
			stop()
			return stop, err
		}
	}
	return stop, nil
}

// Run keeps one processor busy until in ends.
func Run(in io.Reader) {
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end too
		close(done)
	}()
	for n := 0; ; n++ {
		if n&(1<<20-1) == 0 {
			select {
			case <-done:
				return
			default:
			}
		}
	}
}
