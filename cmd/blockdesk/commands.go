package main

import (
	"github.com/spf13/cobra"

	"blockdesk/service/program"
)

// commandGroup is a section of the help.
type commandGroup struct {
	id, title string
	commands  []func(*settings) *cobra.Command
}

// commandGroups returns all commands in the order of the help.
func commandGroups() []commandGroup {
	type commands = []func(*settings) *cobra.Command
	return []commandGroup{
		{"run", "Run it", commands{serveCommand, signerCommand, sandboxCommand, configCommand, doctorCommand, healthCommand, clusterCommand}},
		{"desk", "The desk", commands{statusCommand, ticketCommand, priceCommand, inventoryCommand, lockCommand, unlockCommand, marketCommand, moneyCommand}},
		{"clients", "Clients and their sessions", commands{fixCommand, tokenCommand, passwordCommand}},
		{"data", "Data", commands{backupCommand, restoreCommand, journalCommand}},
		{"keys", "Keys", commands{keyCommand}},
		{"try", "Try and measure", commands{walletCommand, benchCommand}},
		{"program", "This program", commands{completionCommand, helpCommand, versionCommand}},
	}
}

// commands returns the tree of all commands, whose flags set s.
func commands(s *settings) *cobra.Command {
	cmd := groupCommand(cobra.Command{
		Use:   "blockdesk",
		Short: "Matching, RFQ and atomic settlement core",
		Long: "A desk that sells token blocks by request for quote, settles them atomically on Solana, matches\n" +
			"orders for the same pairs over FIX, and publishes market data of both.",
		Example: "  blockdesk serve --demo    # a complete desk to try, on this machine only\n" +
			"  blockdesk ticket list     # in another terminal",
		Version:       program.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	})
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.config, "config", "", "configuration `file` (default blockdesk.yaml if it exists)")
	flags.StringVar(&s.data, "data", "", "data `folder` (default data)")
	flags.StringArrayVar(&s.sets, "set", nil, "one `setting`, e.g. --set listen.fix=127.0.0.1:0 (repeatable)")
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
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { s.helpErr = showHelp(cmd.OutOrStdout(), cmd, s.json) })
	cmd.SetFlagErrorFunc(unknownFlag)
	completeValues(s, cmd)
	markStarted(s, cmd)
	return cmd
}

// markStarted has every command of the tree set s.started when it begins.
func markStarted(s *settings, cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			s.started = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		markStarted(s, sub)
	}
}

func versionCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the program's version", Args: cobra.NoArgs,
		Long:    "Print the program's version. The API has its own version, in the answer to GET / of a service.",
		Example: "  blockdesk version --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.print(cmd, map[string]any{"version": program.Version}, "blockdesk "+program.Version)
		},
	}
}
