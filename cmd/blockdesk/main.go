// Command blockdesk runs the service and its tools. This package owns the command tree:
// flags, help, completion, printing, progress and exit codes. The packages below it get
// their options from here and read no flags and no environment.
//
// Results go to standard output and everything else to standard error; with --json results
// are JSON, and a failure is the last line of standard output. An interrupt ends a command
// at its next step, a second one at once. Exit codes are constants (`blockdesk help
// exit-codes`). Tests run the tree on a machine whose disk fails and whose clock jumps.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

func main() { os.Exit(mainOn(machine{})) }

// mainOn runs the command line on a machine and returns the exit code.
func mainOn(on machine) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	// Without this a closed pipe would kill the program; now it is an error of a write.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	defer stop()
	return (&settings{machine: on}).execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// execute runs one command line and returns the exit code.
func (s *settings) execute(ctx context.Context, args []string, out, errOut io.Writer) int {
	tree := commands(s)
	tree.SetArgs(args)
	tree.SetOut(out)
	tree.SetErr(errOut)
	cmd, err := tree.ExecuteContextC(ctx)
	if s.started = s.started || s.helpErr != nil; err == nil {
		err = s.helpErr
	}
	if err == nil || isClosedPipe(err) {
		return exitDone
	}
	f := explain(ctx, cmd, s.started, err)
	if errors.As(err, new(printedError)) {
		return f.exit
	}
	f.print(s.json || !s.started && slices.Contains(args, "--json"), out, errOut)
	return f.exit
}
