// Command blockdesk runs the service and its tools. It is the only reader of
// files, flags and environment; every room gets its options from here.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is the program's; the API's own version is httpgw.APIVersion.
const version = "0.1.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	if err := root().ExecuteContext(ctx); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "blockdesk:", err)
		os.Exit(1)
	}
}

// settings are the flags that every command has.
type settings struct {
	config string
	data   string
	sets   []string
	json   bool
}

func (s *settings) load() (Config, error) {
	sets := s.sets
	if s.data != "" {
		sets = append(sets, "data_dir="+s.data)
	}
	return loadConfig(s.config, os.Environ(), sets)
}

func root() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:           "blockdesk",
		Short:         "Matching, RFQ and atomic settlement core",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.config, "config", "", "configuration file (default blockdesk.yaml where it exists)")
	flags.StringVar(&s.data, "data", "", "data folder (default data)")
	flags.StringArrayVar(&s.sets, "set", nil, "one setting, e.g. --set listen.fix=127.0.0.1:0 (repeat)")
	flags.BoolVar(&s.json, "json", false, "print JSON")
	cmd.AddCommand(serveCommand(&s), journalCommand(&s), backupCommand(&s), restoreCommand(&s), benchCommand(&s),
		ticketCommand(&s), lockCommand(&s), unlockCommand(&s), priceCommand(&s), inventoryCommand(&s), moneyCommand(&s), tokenCommand(&s),
		sandboxCommand(&s), walletCommand(&s), passwordCommand(), fixCommand(&s), versionCommand(&s),
		keyCommand(&s), signerCommand(&s))
	return cmd
}

// groupCommand makes a command that only has others below it: cobra would show
// its help, and no error, for one that it does not have.
func groupCommand(cmd cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return &cmd
}

func versionCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the program's version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.json {
				return printJSON(cmd.OutOrStdout(), map[string]any{"ok": true, "version": version})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "blockdesk", version)
			return err
		},
	}
}
