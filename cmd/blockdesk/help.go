package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"blockdesk/internal/suggest"
)

// commandHelp is the help of one command or topic, as text, with --json, and in
// docs/cli.md.
type commandHelp struct {
	OK       bool          `json:"ok"`
	Command  string        `json:"command"`
	About    string        `json:"about"`
	Text     string        `json:"text"`
	Usage    string        `json:"usage,omitempty"` // empty: a topic
	Examples string        `json:"examples,omitempty"`
	Commands []commandLine `json:"commands,omitempty"`
	Topics   []commandLine `json:"topics,omitempty"`
	Flags    []flagHelp    `json:"flags,omitempty"`
	Shared   []flagHelp    `json:"shared_flags,omitempty"` // of the commands above it
}

// commandLine is a command or a topic in a list of them.
type commandLine struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Group string `json:"group,omitempty"`
}

// flagHelp is one flag. Type is empty for a boolean flag.
type flagHelp struct {
	Name     string `json:"name"`
	Type     string `json:"type,omitempty"`
	Default  string `json:"default,omitempty"`
	About    string `json:"about"`
	Required bool   `json:"required,omitempty"`
}

// describe returns the help of a command.
func describe(cmd *cobra.Command) *commandHelp {
	h := &commandHelp{OK: true, Command: cmd.CommandPath(), About: cmd.Short, Text: strings.TrimSpace(cmd.Long), Examples: cmd.Example}
	if h.Text == "" {
		h.Text = cmd.Short + "."
	}
	if cmd.IsAdditionalHelpTopicCommand() {
		return h
	}
	h.Usage = cmd.UseLine()
	for _, g := range append(cmd.Groups(), &cobra.Group{}) {
		for _, sub := range cmd.Commands() {
			line := commandLine{sub.Name(), sub.Short, g.Title}
			switch {
			case sub.GroupID != g.ID:
			case sub.IsAdditionalHelpTopicCommand():
				h.Topics = append(h.Topics, line)
			case sub.IsAvailableCommand():
				h.Commands = append(h.Commands, line)
			}
		}
	}
	if cmd.HasAvailableSubCommands() {
		h.Usage = cmd.CommandPath() + " COMMAND [flags]"
	}
	cmd.InitDefaultHelpFlag()
	h.Flags, h.Shared = flagsHelp(cmd.NonInheritedFlags()), flagsHelp(cmd.InheritedFlags())
	return h
}

func flagsHelp(set *pflag.FlagSet) (out []flagHelp) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, about := pflag.UnquoteUsage(f)
		h := flagHelp{Name: f.Name, Type: kind, About: strings.Join(strings.Fields(about), " ")}
		switch f.Name { // cobra's own flags
		case "help":
			h.About = "show this help"
		case "version":
			h.About = "print the program's version"
		}
		switch f.DefValue {
		case "", "0", "false", "[]", "0s":
		case fmt.Sprint(uint64(1<<64 - 1)): // no limit
		default:
			h.Default = strings.Trim(f.DefValue, "[]")
		}
		_, h.Required = f.Annotations[cobra.BashCompOneRequiredFlag]
		out = append(out, h)
	})
	return out
}

// helpColumns is the width of help without a terminal, leastHelpColumns its least width.
const (
	helpColumns      = 100
	leastHelpColumns = 40
)

// showHelp prints a command's help as text or as JSON.
func showHelp(w io.Writer, cmd *cobra.Command, asJSON bool) error {
	h := describe(cmd)
	if asJSON {
		return printJSON(w, h)
	}
	columns := helpColumns
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w == io.Writer(os.Stdout) {
		columns = max(width, leastHelpColumns)
	}
	_, err := io.WriteString(w, h.page(columns))
	return err
}

// page returns the help as text.
func (h *commandHelp) page(columns int) string {
	var b strings.Builder
	fmt.Fprintln(&b, h.Text)
	if h.Usage != "" {
		fmt.Fprintf(&b, "\nUsage:\n  %s\n", h.Usage)
	}
	if h.Examples != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", h.Examples)
	}
	groups := []string{}
	for _, c := range h.Commands {
		if !slices.Contains(groups, c.Group) {
			groups = append(groups, c.Group)
		}
	}
	for _, group := range groups {
		var lines [][2]string
		for _, c := range h.Commands {
			if c.Group == group {
				lines = append(lines, [2]string{c.Name, c.About})
			}
		}
		if group == "" {
			group = "Commands"
		}
		list(&b, group, lines, columns)
	}
	var topics [][2]string
	for _, t := range h.Topics {
		topics = append(topics, [2]string{t.Name, t.About})
	}
	list(&b, "Topics (blockdesk help TOPIC)", topics, columns)
	list(&b, "Flags", flagLines(h.Flags), columns)
	list(&b, "Flags of every command", flagLines(h.Shared), columns)
	if len(h.Commands) > 0 {
		fmt.Fprintf(&b, "\nMore: %s COMMAND --help\n", h.Command)
	}
	return b.String()
}

func flagLines(flags []flagHelp) (lines [][2]string) {
	for _, f := range flags {
		left, right := "--"+f.Name, f.About
		if f.Type != "" {
			left += " " + f.Type
		}
		if f.Default != "" {
			right += " (default " + f.Default + ")"
		}
		if f.Required {
			right += " (required)"
		}
		lines = append(lines, [2]string{left, right})
	}
	return lines
}

// list writes two columns under a title; the second one is wrapped.
func list(b *strings.Builder, title string, lines [][2]string, columns int) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	left := 0
	for _, l := range lines {
		left = max(left, len(l[0]))
	}
	left = min(left, columns/2)
	for _, l := range lines {
		head := fmt.Sprintf("  %-*s  ", left, l[0])
		for i, part := range fold(l[1], columns-left-4) {
			if i > 0 || len(l[0]) > left {
				if i == 0 {
					fmt.Fprintf(b, "  %s\n", l[0])
				}
				head = strings.Repeat(" ", left+4)
			}
			fmt.Fprintln(b, head+part)
		}
	}
}

// fold wraps a text into lines of at most width columns, if no word is longer.
func fold(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// helpCommand is cobra's, except that an unknown topic is an error.
func helpCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND|TOPIC]...", Short: "Show the help of a command or a topic",
		Long: "Show the help of a command or a topic. With --json it is an object with usage, text, flags and\n" +
			"subcommands.",
		Example: "  blockdesk help\n  blockdesk help ticket post\n  blockdesk help exit-codes",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = unknownCommand(found, rest[0])
			}
			if err != nil {
				return usageError{err}
			}
			return showHelp(cmd.OutOrStdout(), found, s.json)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range found.Commands() {
				if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// groupCommand returns a command that only has subcommands: alone it shows its help. Cobra
// would show the help, not an error, for an unknown subcommand too.
func groupCommand(cmd cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return &cmd
}

func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", name, cmd.CommandPath(), suggest.Suffix(name, names))
}

// unknownFlag adds a suggestion to cobra's error about an unknown flag.
func unknownFlag(cmd *cobra.Command, err error) error {
	unknown, ok := err.(interface{ GetSpecifiedName() string })
	if !ok || !strings.HasPrefix(err.Error(), "unknown flag") {
		return err
	}
	var names []string
	collect := func(f *pflag.Flag) { names = append(names, f.Name) }
	cmd.Flags().VisitAll(collect)
	cmd.InheritedFlags().VisitAll(collect)
	return fmt.Errorf("%w%s", err, suggest.Suffix(unknown.GetSpecifiedName(), names))
}
