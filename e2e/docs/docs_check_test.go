package docs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
)

// notRun is the list of what no test here runs, by how a line begins: why not, and
// the nearest that is checked instead. The first that fits counts.
var notRun = []notRunLine{
	{regexp.MustCompile(`^make\b`), "minutes of work, or until Ctrl-C; TestNewcomer runs make run", makeTarget},
	{regexp.MustCompile(`^(bin/)?blockdesk bench\b`), "minutes of both cores; its command and flags are parsed", cobraLine},
	{regexp.MustCompile(`^npm (--prefix \S+ )?(ci|install)\b`), "changes the checkout, or needs the network", npmFolder},
	{regexp.MustCompile(`^npm (--prefix \S+ )?(run|test)\b`), "the Go test of that folder runs it", npmFolder},
	{regexp.MustCompile(`^go (test|build|run|mod)\b`), "a run of the tests within the tests, or a module's download", goPackages},
	{regexp.MustCompile(`^docker\b`), "no Docker daemon here", namedFiles},
	{regexp.MustCompile(`^(sudo )?systemctl\b`), "no systemd here; TestRunbook has a stand-in that does what the unit file says", nil},
	{regexp.MustCompile(`^(sudo )?journalctl\b`), "no systemd here; TestRunbook has a stand-in that prints the log", nil},
}

type notRunLine struct {
	begins *regexp.Regexp
	reason string
	check  func(root, line string) error // nil: the reason names it
}

// checkInline holds a command line of a sentence or a table to the programs: it
// must be one that they would take. Values in capitals and with … are placeholders.
// errNotOurs says that it takes a run to know.
func checkInline(root, line string) error {
	for _, n := range notRun {
		if n.begins.MatchString(line) {
			if n.check == nil {
				return nil
			}
			return n.check(root, line)
		}
	}
	for _, part := range strings.Split(line, " | ") {
		part = regexp.MustCompile(`^`+assigned).ReplaceAllString(part, "")
		if strings.HasPrefix(strings.TrimPrefix(part, "bin/"), "blockdesk ") {
			if err := cobraLine(root, part); err != nil {
				return err
			}
		} else if part == line {
			return errNotOurs
		}
	}
	return nil
}

var errNotOurs = errors.New("nobody runs this line: give it a fenced sh block, or an owner in docs_test.go")

// cobraLine has the real command tree parse a line. A command that is only named,
// without arguments and flags, need not be whole; a|b stands for both.
func cobraLine(root, line string) error {
	words, err := shellWords(line)
	if err != nil {
		return err
	}
	for i, word := range words {
		if alternatives := strings.Split(word, "|"); len(alternatives) > 1 && !strings.HasPrefix(word, "-") {
			var errs []error
			for _, one := range alternatives {
				errs = append(errs, programtest.ParseCommand(append(append(append([]string{}, words[1:i]...), one), words[i+1:]...)))
			}
			return errors.Join(errs...)
		}
	}
	return programtest.ParseCommand(words[1:])
}

// shellWords splits a line as a shell does that expands nothing: quotes join, and
// what stands behind a # , a > or an & is not the program's.
func shellWords(line string) (words []string, err error) {
	var word strings.Builder
	open, quote := false, rune(0)
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == '#' && !open, r == '>' && !open, r == '&' && !open:
			return words, nil
		case r == ' ' || r == '\n' || r == '\\':
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}

// makeTarget asks make what it would do.
func makeTarget(root, line string) error {
	words, err := shellWords(line)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", append([]string{"-n"}, words[1:]...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make -n: %w\n%s", err, out)
	}
	return nil
}

// npmFolder looks for the folder's package, and for the script that is named.
func npmFolder(root, line string) error {
	words, err := shellWords(line)
	if err != nil {
		return err
	}
	dir, script := "", ""
	for i, word := range words[1:] {
		next := ""
		if i+2 < len(words) {
			next = words[i+2]
		}
		switch word {
		case "--prefix":
			dir = next
		case "run":
			script = next
		case "test":
			script = word
		case "install":
			if next != "" {
				return nil // a package: the SDK's tests have it
			}
		}
	}
	if dir == "" {
		return nil // in a folder that the sentence names
	}
	text, err := os.ReadFile(filepath.Join(root, dir, "package.json"))
	if err != nil {
		return err
	}
	var pack struct{ Scripts map[string]string }
	if err := json.Unmarshal(text, &pack); err != nil {
		return err
	}
	if script != "" && pack.Scripts[script] == "" {
		return fmt.Errorf("%s has no script %s", dir, script)
	}
	return nil
}

// goPackages looks for the folders that a line names.
func goPackages(root, line string) error {
	words, err := shellWords(line)
	if err != nil {
		return err
	}
	for _, word := range words {
		if dir, ok := strings.CutPrefix(word, "./"); ok {
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(strings.TrimSuffix(dir, "..."), "/"))); err != nil {
				return err
			}
		}
	}
	return nil
}

// namedFiles looks for the files of the checkout that a line names.
func namedFiles(root, line string) error {
	words, err := shellWords(line)
	if err != nil {
		return err
	}
	for _, word := range words {
		if strings.HasPrefix(word, "docs/") {
			if _, err := os.Stat(filepath.Join(root, word)); err != nil {
				return err
			}
		}
	}
	return nil
}
