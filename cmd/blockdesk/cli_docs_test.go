package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// cliDocument is the reference of all commands, in the repository.
const cliDocument = "../../docs/cli.md"

// TestCLIDocument holds docs/cli.md to the tree. After a change that is meant:
// UPDATE_GOLDEN=1 go test ./cmd/blockdesk -run TestCLIDocument
func TestCLIDocument(t *testing.T) {
	t.Parallel()
	want := cliReference(root())
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(cliDocument, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.FromSlash(cliDocument))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/cli.md is not what the commands say: UPDATE_GOLDEN=1 go test ./cmd/blockdesk -run TestCLIDocument writes it")
	}
}

// TestHelpSaysAll: every command says what it does and, unless it is a list of
// others, has an example; lines fit a terminal of 100 columns.
func TestHelpSaysAll(t *testing.T) {
	t.Parallel()
	each(root(), func(cmd *cobra.Command) {
		if cmd.Long == "" || cmd.Short == "" || len(cmd.Long) <= len(cmd.Short) {
			t.Errorf("%s says no more than %q", cmd.CommandPath(), cmd.Short)
		}
		if cmd.Example == "" && cmd.Runnable() && !cmd.HasSubCommands() {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, columns := range []int{leastHelpColumns, helpColumns} {
			for line := range strings.Lines(describe(cmd).page(columns)) {
				if len(line) > helpColumns+10 {
					t.Errorf("%s: a line of %d columns: %s", cmd.CommandPath(), len(line), line)
				}
			}
		}
	})
}

// TestDidYouMean: the error for a misspelt word suggests the likely one.
func TestDidYouMean(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"tickt list":                   `did you mean "ticket"?`,
		"ticket lst":                   `did you mean "list"?`,
		"ticket post --pari X":         `did you mean "pair"?`,
		"config --set liste.fix=1":     `did you mean "listen.fix"?`,
		"config keys lissten.fix":      `did you mean "listen.fix"?`,
		"help exit-code":               `did you mean "exit-codes"?`,
		"journal replay --to nonsense": `invalid argument "nonsense"`,
		"lock":                         "see blockdesk lock --help",
	} {
		var out, errOut strings.Builder
		exit := execute(t.Context(), strings.Fields(line), &out, &errOut)
		if exit != exitUsage || !strings.Contains(errOut.String(), want) || out.Len() > 0 {
			t.Errorf("blockdesk %s: exit code %d, %q, %q; want %q", line, exit, out.String(), errOut.String(), want)
		}
	}
}

func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.Hidden {
		return
	}
	visit(cmd)
	for _, sub := range cmd.Commands() {
		each(sub, visit)
	}
}

// cliReference writes the document: a list of commands for each group of the help.
func cliReference(tree *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nFor operators and engineers who type commands. After reading this page you know which command does what; `blockdesk help COMMAND` explains it. The page is made by `UPDATE_GOLDEN=1 go test ./cmd/blockdesk -run TestCLIDocument`: change the help, not this file.\n\n")
	top := describe(tree)
	b.WriteString("Every command takes these flags:\n\n")
	writeFlags(&b, flagsHelp(tree.PersistentFlags()))
	writeOperatorFlags(&b, tree)
	b.WriteString("\nRequired flags stand beside the command, others in parentheses; a command also takes the flags of the command above it.\n")
	group := ""
	for _, c := range top.Commands {
		if c.Group != group {
			group = c.Group
			fmt.Fprintf(&b, "\n## %s\n\n", group)
		}
		sub, _, err := tree.Find([]string{c.Name})
		if err != nil {
			panic(err)
		}
		each(sub, func(cmd *cobra.Command) {
			if parent := cmd.Parent().Name(); parent != "completion" && parent != "bench" { // one row names them
				writeCommand(&b, cmd)
			}
		})
	}
	b.WriteString("\n## Topics\n\n")
	for _, t := range top.Topics {
		fmt.Fprintf(&b, "- `blockdesk help %s`: %s\n", t.Name, t.About)
	}
	return b.String()
}

// askingFlags are shown once: every command that asks the running service has them.
var askingFlags = []string{"admin", "operator-token"}

// writeOperatorFlags names the commands that take askingFlags.
func writeOperatorFlags(b *strings.Builder, tree *cobra.Command) {
	var names []string
	var flags []flagHelp
	each(tree, func(cmd *cobra.Command) {
		if cmd.PersistentFlags().Lookup(askingFlags[0]) == nil {
			return
		}
		names = append(names, "`"+strings.TrimPrefix(cmd.CommandPath(), tree.Name()+" ")+"`")
		flags = slices.DeleteFunc(flagsHelp(cmd.PersistentFlags()), func(f flagHelp) bool { return !slices.Contains(askingFlags, f.Name) })
	})
	fmt.Fprintf(b, "\nCommands that ask the running service (%s) also take:\n\n", strings.Join(names, ", "))
	writeFlags(b, flags)
}

func writeFlags(b *strings.Builder, flags []flagHelp) {
	for _, f := range flagLines(flags) {
		fmt.Fprintf(b, "- `%s`: %s\n", f[0], code(f[1]))
	}
}

// writeCommand writes the line of a command: its required flags stand beside it, the others at the end.
func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	h := describe(cmd)
	usage := strings.TrimPrefix(strings.TrimSuffix(h.Usage, " [flags]"), cmd.Root().Name()+" ")
	var others []string
	for _, f := range h.Flags {
		switch {
		case f.Name == "help" || slices.Contains(askingFlags, f.Name) || cmd.Root().PersistentFlags().Lookup(f.Name) != nil:
		case f.Required && f.Type != "":
			usage += " --" + f.Name + " …"
		case f.Required:
			usage += " --" + f.Name
		default:
			others = append(others, "`--"+f.Name+"`")
		}
	}
	flags := ""
	if len(others) > 0 {
		flags = " (" + strings.Join(others, ", ") + ")"
	}
	fmt.Fprintf(b, "- `%s`: %s%s\n", usage, code(h.About), flags)
}

var angle = regexp.MustCompile(`[<>*_]`)

// code keeps Markdown from reading a help text's signs as its own. Between backquotes it
// reads none, and would show a backslash.
func code(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = angle.ReplaceAllString(parts[i], `\$0`)
	}
	return strings.Join(parts, "`")
}
