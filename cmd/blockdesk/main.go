// Command blockdesk runs the service and its tools. It is the only reader of
// files, flags and environment; every room gets its options from here.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"blockdesk/persist/quorum"
)

func main() { os.Exit(mainOn(machine{})) }

// machine is what the program runs on. Tests put one under it whose disk fails or
// whose clock jumps; the zero value is the machine as it is.
type machine struct {
	// disk changes what a node of a group keeps its log and stores on.
	disk func(*quorum.Options)
	// clock is the engine's, in Unix nanoseconds.
	clock func() int64
}

// mainOn runs the command line on a machine and returns the exit code.
func mainOn(on machine) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	// A reader that has gone away is an error of a write, and no sudden end: what is
	// open is closed, and a service goes on.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	defer stop()
	return (&settings{machine: on}).execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, out, errOut io.Writer) int {
	return (&settings{}).execute(ctx, args, out, errOut)
}

func (s *settings) execute(ctx context.Context, args []string, out, errOut io.Writer) int {
	tree := commands(s)
	tree.SetArgs(args)
	tree.SetOut(out)
	tree.SetErr(errOut)
	cmd, err := tree.ExecuteContextC(ctx)
	if s.started = s.started || s.helpErr != nil; err == nil {
		err = s.helpErr
	}
	if err == nil || readerGone(err) {
		return exitDone
	}
	f := explain(ctx, cmd, s.started, err)
	if errors.As(err, new(toldError)) {
		return f.exit
	}
	f.tell(s.json || !s.started && slices.Contains(args, "--json"), out, errOut)
	return f.exit
}
