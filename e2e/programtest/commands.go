package programtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
)

// AsCommandTree in the environment of a NodeBinary's process makes it answer questions
// about the command tree: a CommandQuestion a line on standard input, a CommandAnswer a
// line on standard output.
const AsCommandTree = "RUN_AS_COMMAND_TREE"

// CommandQuestion asks one thing about the command tree; Words where nothing else is set.
type CommandQuestion struct {
	Words    []string `json:"words,omitempty"`    // a command line to be parsed
	Known    string   `json:"known,omitempty"`    // part of a command line, whose flags must exist
	Examples bool     `json:"examples,omitempty"` // the examples of all helps
}

// CommandAnswer is what is wrong with the command line; empty: nothing.
type CommandAnswer struct {
	Error    string        `json:"error,omitempty"`
	Examples []HelpExample `json:"examples,omitempty"`
}

// HelpExample is a line of the examples of a command's help.
type HelpExample struct {
	Command string `json:"command"`
	Line    string `json:"line"`
}

// ParseCommand has the program's command tree parse the words of a command line. Nothing
// is run. It is safe for concurrent use, like the functions below.
func ParseCommand(words []string) error {
	a, err := queryCommandTree(CommandQuestion{Words: words})
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return err
}

// KnownFlags returns an error if text begins with a command of the program and has a flag
// that this command has not.
func KnownFlags(text string) error {
	a, err := queryCommandTree(CommandQuestion{Known: text})
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return err
}

// HelpExamples returns the examples of all commands' helps.
func HelpExamples() ([]HelpExample, error) {
	a, err := queryCommandTree(CommandQuestion{Examples: true})
	return a.Examples, err
}

// commandTree is a process that answers; it ends when this process has ended.
type commandTree struct {
	mu  sync.Mutex
	in  *json.Encoder
	out *json.Decoder
}

var openCommandTree = sync.OnceValues(func() (*commandTree, error) {
	exe, err := node()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env, cmd.Stderr = append(os.Environ(), AsCommandTree+"=1"), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &commandTree{in: json.NewEncoder(in), out: json.NewDecoder(out)}, cmd.Start()
})

func queryCommandTree(q CommandQuestion) (a CommandAnswer, err error) {
	tree, err := openCommandTree()
	if err != nil {
		return a, err
	}
	tree.mu.Lock()
	defer tree.mu.Unlock()
	if err := errors.Join(tree.in.Encode(q), tree.out.Decode(&a)); err != nil {
		return a, fmt.Errorf("the command tree does not answer: %w", err)
	}
	return a, nil
}
