// Command blockdesk runs the service and its tools. It is the only reader of
// files, flags and environment; every room gets its options from here.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"blockdesk/persist/quorum"
	"blockdesk/service/config"
)

// version is the program's; the API's own version is catalog.APIVersion.
const version = "0.1.0"

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
	if s.started = s.started || s.helpFailed != nil; err == nil {
		err = s.helpFailed
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

// settings are the flags that every command has.
type settings struct {
	config string
	data   string
	sets   []string
	json   bool
	// started: the command line was in order, and its command runs.
	started bool
	// helpFailed is of a help that could not be written: cobra has no way for it.
	helpFailed error
	machine    machine
}

// load returns the configuration, with the instruments of our group alone.
func (s *settings) load() (config.Config, error) {
	cfg, _, err := s.loadAll()
	if err == nil {
		cfg = cfg.SelectGroup()
	}
	return cfg, err
}

func root() *cobra.Command { return commands(&settings{}) }

// commands makes the tree of all commands; what they are told goes to s.
func commands(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use:   "blockdesk",
		Short: "Matching, RFQ and atomic settlement core",
		Long: "A desk that sells token blocks by tickets, settles them atomically on Solana, runs an\n" +
			"order book for the same pairs over FIX, and publishes both as market data.",
		Example: "  blockdesk serve --demo    # a whole desk to try, on this machine alone\n" +
			"  blockdesk ticket list     # in another terminal",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	})
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.config, "config", "", "configuration `file` (default blockdesk.yaml where it exists)")
	flags.StringVar(&s.data, "data", "", "data `folder` (default data)")
	flags.StringArrayVar(&s.sets, "set", nil, "one `setting`, e.g. --set listen.fix=127.0.0.1:0 (repeat)")
	flags.BoolVar(&s.json, "json", false, "print JSON, failures too: see blockdesk help output")
	for _, g := range commandGroups() {
		cmd.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, command := range g.commands {
			sub := command(s)
			sub.GroupID = g.id
			cmd.AddCommand(sub)
		}
	}
	cmd.AddCommand(helpTopics()...)
	cmd.CompletionOptions.DisableDefaultCmd = true // completionCommand is ours
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { s.helpFailed = showHelp(cmd.OutOrStdout(), cmd, s.json) })
	cmd.SetFlagErrorFunc(unknownFlag)
	s.completeValues(cmd)
	s.watch(cmd)
	return cmd
}

// watch notes when a command of the tree begins.
func (s *settings) watch(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			s.started = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		s.watch(sub)
	}
}

func versionCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the program's version", Args: cobra.NoArgs,
		Long:    "Print the program's version. The API has one of its own, which GET / of a service tells.",
		Example: "  blockdesk version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"ok": true, "version": version})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "blockdesk", version)
			return err
		},
	}
}
