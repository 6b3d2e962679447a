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

// cliReference writes the document: topics, then all commands as the help has them.
func cliReference(tree *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nFor operators and engineers who type commands: each one with its flags and examples, as `blockdesk help` prints them. Made by `UPDATE_GOLDEN=1 go test ./cmd/blockdesk -run TestCLIDocument`: change the help, not this file.\n\n")
	top := describe(tree)
	fmt.Fprintf(&b, "%s\n\nEvery command takes these flags:\n\n", top.Text)
	for _, f := range flagLines(flagsHelp(tree.PersistentFlags())) {
		fmt.Fprintf(&b, "- `%s`: %s\n", f[0], code(f[1]))
	}
	b.WriteString("\nA command also takes the flags of the command that it belongs to.\n")
	writeOperatorFlags(&b, tree)
	group := ""
	for _, c := range top.Commands {
		if c.Group != group {
			group = c.Group
			fmt.Fprintf(&b, "\n## %s\n", group)
		}
		sub, _, err := tree.Find([]string{c.Name})
		if err != nil {
			panic(err)
		}
		each(sub, func(cmd *cobra.Command) { writeCommand(&b, cmd) })
	}
	b.WriteString("\n## Topics\n")
	for _, t := range top.Topics {
		sub, _, err := tree.Find([]string{t.Name})
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "\n### blockdesk help %s\n\n```text\n%s\n```\n", t.Name, describe(sub).Text)
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
	for _, f := range flagLines(flags) {
		fmt.Fprintf(b, "- `%s`: %s\n", f[0], code(f[1]))
	}
}

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	h := describe(cmd)
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n```text\n%s\n", h.Command, code(h.Text), h.Usage)
	if h.Examples != "" {
		fmt.Fprintf(b, "\n%s\n", h.Examples)
	}
	b.WriteString("```\n")
	own := slices.DeleteFunc(h.Flags, func(f flagHelp) bool {
		return f.Name == "help" || slices.Contains(askingFlags, f.Name) || cmd.Root().PersistentFlags().Lookup(f.Name) != nil
	})
	if len(own) == 0 {
		return
	}
	b.WriteString("\n")
	for _, f := range flagLines(own) {
		fmt.Fprintf(b, "- `%s`: %s\n", f[0], code(f[1]))
	}
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
