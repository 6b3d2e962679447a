package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
)

// printedLine is one command line that a document prints.
type printedLine struct {
	file string
	line int // from 1
	// block is where it stands: the language of its fenced block, "session" for one
	// with a prompt, or inlineCode.
	block string
	text  string
	typed []string // in a session: what is typed into the command ("> …")
	shown []string // in a session: what it prints, as the document has it
}

func (p printedLine) String() string { return fmt.Sprintf("%s:%d: %s", p.file, p.line, p.text) }

// inlineCode is the block of a command line in a sentence or a table.
const inlineCode = "inline"

// programs begin a command line in a sentence, a table or a block without a
// language. A command that is named without arguments is a word, not a line.
const programs = `(?:sudo )?(?:(?:\./)?bin/)?(?:blockdesk|curl|make|npm|npx|node|pip3?|python3?|openssl|docker|systemctl|journalctl|go|git|g\+\+|printf|\./quickstart)`

var (
	assigned     = `(?:[A-Z][A-Z0-9_]*=\S+ )*`
	beginsLine   = regexp.MustCompile(`^` + assigned + programs + ` `)
	codeSpan     = regexp.MustCompile("`([^`]+)`")
	openFence    = regexp.MustCompile("^ {0,3}```([A-Za-z]*)")
	indentedLine = regexp.MustCompile(`^(?: {4}|\t)(` + assigned + programs + ` .*)$`)
	heredoc      = regexp.MustCompile(`<<-?\s*'?([A-Z]+)'?`)
)

// shells are the languages whose blocks are all command lines.
var shells = map[string]bool{"sh": true, "bash": true, "shell": true, "powershell": true}

// findPrinted returns the command lines of a Markdown text, in their order.
func findPrinted(file, text string) (out []printedLine) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		fence := openFence.FindStringSubmatch(lines[i])
		if fence == nil {
			out = append(out, findInline(file, i+1, lines[i])...)
			continue
		}
		end := i + 1
		for end < len(lines) && !strings.HasPrefix(strings.TrimSpace(lines[end]), "```") {
			end++
		}
		block := lines[i+1 : min(end, len(lines))]
		switch language := fence[1]; {
		case shells[language]:
			out = append(out, findInShell(file, i+2, language, block)...)
		case language == "" || language == "console":
			out = append(out, findInSession(file, i+2, block)...)
		case language == "yaml":
			for k, line := range block {
				out = append(out, findInline(file, i+2+k, line)...)
			}
		}
		i = end
	}
	return out
}

// findInShell takes every line of a block, with what continues it.
func findInShell(file string, at int, language string, block []string) (out []printedLine) {
	for i := 0; i < len(block); i++ {
		text, first := block[i], i
		for strings.HasSuffix(text, `\`) && i+1 < len(block) {
			i++
			text += "\n" + block[i]
		}
		if here := heredoc.FindStringSubmatch(text); here != nil {
			for i+1 < len(block) && block[i] != here[1] {
				i++
				text += "\n" + block[i]
			}
		}
		if trimmed := strings.TrimSpace(text); trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			out = append(out, printedLine{file: file, line: at + first, block: language, text: trimmed})
		}
	}
	return out
}

// findInSession takes what stands behind a prompt, or begins with a program.
func findInSession(file string, at int, block []string) (out []printedLine) {
	for i, line := range block {
		command, prompted := strings.CutPrefix(line, "$ ")
		switch {
		case prompted || beginsLine.MatchString(line):
			out = append(out, printedLine{file: file, line: at + i, block: "session", text: command})
		case len(out) > 0 && strings.HasPrefix(line, "> "):
			last := &out[len(out)-1]
			last.typed = append(last.typed, line[2:])
		case len(out) > 0:
			last := &out[len(out)-1]
			last.shown = append(last.shown, line)
		}
	}
	return out
}

// findInline takes the command lines among a line's code spans, and an indented
// one, which is not run: it belongs into a block.
func findInline(file string, at int, line string) (out []printedLine) {
	if m := indentedLine.FindStringSubmatch(line); m != nil {
		return []printedLine{{file: file, line: at, block: "indented", text: m[1]}}
	}
	for _, m := range codeSpan.FindAllStringSubmatch(line, -1) {
		if code := strings.ReplaceAll(m[1], `\|`, "|"); beginsLine.MatchString(code) {
			out = append(out, printedLine{file: file, line: at, block: inlineCode, text: code})
		}
	}
	return out
}

// tracked returns what git tracks of these patterns; without git, what there is of
// them in the folders that documents are in.
func tracked(t testing.TB, patterns ...string) []string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", programtest.Root(t), "ls-files", "--"}, patterns...)...)
	out, err := cmd.Output()
	if err != nil {
		runtest.SkipMissing(t, "repository of git ("+err.Error()+")", "apt-get install git, and clone the repository")
	}
	return strings.Fields(string(out))
}

// readTracked returns the text of a file of the checkout; empty where somebody is
// taking it away just now.
func readTracked(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programtest.Root(t), name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}
