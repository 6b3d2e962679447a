package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"blockdesk/e2e/programtest"
)

// answerAboutCommands answers what tests of documents ask about the command tree, one
// question after the other, until in ends. It runs no command.
func answerAboutCommands(in io.Reader, out io.Writer) error {
	questions, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var q programtest.CommandQuestion
		if err := questions.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var a programtest.CommandAnswer
		var err error
		switch {
		case q.Examples:
			a.Examples = helpExamples()
		case q.Known != "":
			err = knownFlags(q.Known)
		default:
			err = parseCommand(q.Words)
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

// helpExamples returns the example lines of every command's help.
func helpExamples() (list []programtest.HelpExample) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			line = strings.TrimSpace(line)
			if strings.Contains(line, "blockdesk ") && !strings.HasPrefix(line, "#") {
				list = append(list, programtest.HelpExample{Command: cmd.CommandPath(), Line: line})
			}
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(settledTree())
	return list
}

// placeholder matches a text that the reader replaces.
var placeholder = regexp.MustCompile(`^[A-Z]{3,}$`)

// parseCommand holds words to the command tree, without running them.
func parseCommand(words []string) error {
	tree := settledTree()
	words = slices.Clone(words)
	for i, word := range words {
		if placeholder.MatchString(word) {
			words[i] = "1" // some flags take numbers alone
		}
	}
	cmd, rest, err := tree.Find(words)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if len(rest) == 0 && cmd != tree {
		return nil // only named
	}
	if cmd == tree && (len(rest) == 0 || !strings.HasPrefix(rest[0], "-")) {
		return fmt.Errorf("no such command: %s", strings.Join(words, " "))
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// settledTree is the command tree with what cobra adds when it runs.
func settledTree() *cobra.Command {
	tree := root()
	tree.InitDefaultHelpCmd()
	tree.InitDefaultCompletionCmd()
	return tree
}

// knownFlags reports a flag that the command has not. A word that begins no command is
// prose.
func knownFlags(text string) error {
	cmd, rest, _ := settledTree().Find(strings.Fields(text))
	if cmd.Parent() == nil {
		return nil
	}
	for _, word := range rest {
		name, isFlag := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if isFlag && name != "help" && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
			return fmt.Errorf("%s has no flag --%s", cmd.CommandPath(), name)
		}
	}
	return nil
}
