package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"blockdesk/e2e/programtest"
)

// With programtest.AsProgram in its environment the test's own binary is the program:
// what these tests start is main itself, and so is what programtest.NodeBinary builds.
func TestMain(m *testing.M) {
	if os.Getenv(programtest.AsCommandTree) != "" {
		if err := answerAboutCommands(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// The workers of a fuzz test inherit the environment too.
	if os.Getenv(programtest.AsProgram) != "" && (len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], "-test.")) {
		os.Exit(mainOn(testMachine()))
	}
	if err := os.Setenv(programtest.AsProgram, "1"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// root returns the tree of all commands.
func root() *cobra.Command { return commands(&settings{}) }

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, out, errOut io.Writer) int {
	return (&settings{}).execute(ctx, args, out, errOut)
}
