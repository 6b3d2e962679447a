package docs

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/servicetest"
	"blockdesk/service/task"
)

// Every command line that a document prints is run, or, where no test can run it,
// checked with the program that would. These are the rules for their authors:
//
//   - A fenced block of sh is typed into one shell, line by line, in a folder that
//     looks like a checkout in which `make run` is running: bin/blockdesk, data. The
//     demo's addresses are replaced. A line has to end well and to print something;
//     prints (below) says what more.
//   - A block without a language, whose command stands behind "$ ", is a session: what
//     stands behind "> " is typed into the command, and each line that is shown has to
//     come again, but for its numbers.
//   - A code span in a sentence or a table that begins with a program is parsed by that
//     program's own command tree; one of another program needs a row in inlineLines.
//   - What cannot be run here is in notRun (docs_check_test.go) with the reason.
//
// The documents of elsewhere have a test of their own, which runs all their blocks.

// elsewhere names the tests that run all lines of a document, with their packages.
var elsewhere = map[string]string{
	"sdk/python/README.md":     "e2e/sdk.TestPythonSDK",
	"sdk/typescript/README.md": "e2e/sdk.TestTypeScriptReadme",
	"sdk/fix/README.md":        "e2e/sdk.TestFIXQuickstarts",
	"docs/runbook.md":          "e2e/docs.TestRunbook",
	"docs/cluster.md":          "e2e/docs.TestClusterRunbook",
	"README.md":                "e2e/docs.TestReadme",
	"docs/tour.md":             "e2e/docs.TestReadme",
}

// exists reports whether a test that elsewhere names is there.
func exists(t *testing.T, test string) bool {
	t.Helper()
	dir, name, _ := strings.Cut(test, ".")
	for _, file := range tracked(t, dir+"/*_test.go") {
		if strings.Contains(readTracked(t, file), "\nfunc "+name+"(t *testing.T) {") {
			return true
		}
	}
	return false
}

// prints is what lines of the documents have to print, by a part of the line. The
// first that fits counts.
var prints = []expectation{
	{in: "curl -N ", prints: `event: l2\ndata: \{`, goesOn: true},
	{in: "server.mjs", prints: `http://127\.0\.0\.1:`, keep: true},
	{in: "sandbox_advance", prints: `"result"`},
	{in: "blockdesk fix client", prints: `logged out`},
}

// inlineLines are what a reader types that stands in a sentence, in a document of
// ours, and is no program of ours.
var inlineLines = []expectation{
	{in: "openssl rand -hex 32", prints: `^[0-9a-f]{64}\s`},
	{in: `printf %s "$TOKEN" | sha256sum`, prints: `^[0-9a-f]{64} `},
	{in: "openssl genpkey -algorithm ed25519", prints: `BEGIN PRIVATE KEY`},
	{in: "curl -N", prints: ``},
	{in: "git grep low_24h", prints: ``}, // TestSDKsHaveTheTicker knows the places
}

// readersOf returns the documents that git tracks, by their names.
func readersOf(t *testing.T) map[string][]printedLine {
	t.Helper()
	programtest.DependsOn(t, filepath.Join(programtest.Root(t), "docs")) // git lists the files
	out := map[string][]printedLine{}
	for _, name := range tracked(t, "*.md") {
		if lines := findPrinted(name, readTracked(t, name)); len(lines) > 0 {
			out[name] = lines
		}
	}
	return out
}

func TestDocuments(t *testing.T) {
	runtest.SkipUnderRace(t, "it runs a document's lines one after the other, which other tests race")
	t.Parallel()
	documents := readersOf(t)
	for name, test := range elsewhere {
		if len(documents[name]) == 0 {
			t.Errorf("%s has an owner, and no command line", name)
		}
		if !exists(t, test) {
			t.Errorf("%s is to be run by %s, which is not there", name, test)
		}
	}
	t.Run("inline", func(t *testing.T) {
		root := programtest.Root(t)
		term := openTerminalIn(t, t.TempDir(), strings.NewReplacer())
		for _, lines := range documents {
			for _, p := range lines {
				if err := judgeInline(root, term, p); err != nil {
					t.Error(err)
				}
				if i := whyNotRun(p.text); i >= 0 && elsewhere[p.file] == "" {
					t.Logf("%v: not run: %s", p, notRun[i].reason)
				}
			}
		}
	})
	t.Run("blocks", func(t *testing.T) {
		programtest.Tool(t, "curl")
		messages := t.TempDir()
		d := programtest.StartDemo(t, append(documentLimits, "--set", programtest.WithChain(servicetest.LocalChain(t)), "--set", "fix.message_log_dir="+messages)...)
		await.True(t, "a ready service", func() bool { return programtest.Status(t, d.At.Admin+"/readyz") == http.StatusOK })
		t.Run("operators", func(t *testing.T) { operate(t, d, documents[operatingDocument]) })
		t.Run("endpoints", func(t *testing.T) { callEndpoints(t, d) })
		for name, lines := range documents {
			if elsewhere[name] == "" {
				t.Run(name, func(t *testing.T) { followDocument(t, d, lines, "BLOCKDESK_FIX_MESSAGE_LOG_DIR="+messages) })
			}
		}
	})
}

// documentLimits lift the limits of an address: the readers of all documents come
// from one.
var documentLimits = slices.Clip(append([]string{
	"--set", "http.market_data_per_minute=0", "--set", "http.rfq_writes_per_minute=0", "--set", "http.dvp_per_minute=0",
	"--set", "http.handshake_per_minute=0", "--set", "http.partner_per_minute=0",
}, programtest.OpenClaims...))

// judgeInline checks a line of a sentence. Those of a document that has a test of
// its own, and are no programs of ours, are run there.
func judgeInline(root string, term *terminal, p printedLine) error {
	if p.block == "indented" {
		return fmt.Errorf("%v\nis in no fenced block, so it is not run", p)
	}
	if p.block == "powershell" {
		return fmt.Errorf("%v\nthere is no PowerShell to run it", p)
	}
	if p.block != inlineCode {
		return nil
	}
	err := checkInline(root, p.text)
	if !errors.Is(err, errNotOurs) {
		return task.Named(p.String(), err)
	}
	if elsewhere[p.file] != "" && p.file != "README.md" {
		return nil
	}
	if !slices.ContainsFunc(inlineLines, func(e expectation) bool { return strings.Contains(p.text, e.in) }) {
		return fmt.Errorf("%v\n%w", p, err)
	}
	if p.text == "curl -N" || strings.HasPrefix(p.text, "git grep ") { // an option that is named; the reader's folder is no checkout
		return nil
	}
	return term.follow(p, inlineLines)
}

// followDocument types the blocks of a document into one shell.
func followDocument(t *testing.T, d *programtest.Service, lines []printedLine, env ...string) {
	dir, places := d.ReadersFolder(t)
	if lines[0].file == "internal/sandbox/README.md" { // its chain is alone
		dir, places = t.TempDir(), strings.NewReplacer("8899", programtest.FreePort(t))
	}
	if err := os.Symlink(filepath.Join(programtest.Root(t), "internal"), filepath.Join(dir, "internal")); err != nil {
		t.Fatal(err)
	}
	term := openTerminalIn(t, dir, places, env...)
	for _, p := range lines {
		if p.block == inlineCode || isNotRun(p.text) {
			continue
		}
		if err := term.follow(p, prints); err != nil {
			t.Error(err)
		}
	}
}

// operated are what stands for the placeholders of operating.md's tables.
var operated = strings.NewReplacer("T7", "T2", "SIGNATURE", "SIGNATURE1", "REFUND", "SIGNATURE2", "C…", "C0000100000001", "K…", "K18e997c54c02cd15",
	"COMPID", "GUEST", "FOLDER", "copy", "FILE", "key.json")

// operatorsPrint is what the lines of operating.md's tables come to: there is no money
// that waits here, no token, and nobody is logged on as the guest.
var operatorsPrint = []expectation{
	{in: "money refunded", prints: `(?i)signature`, fails: true},
	{in: "money abandon", prints: `(?i)claim`, fails: true},
	{in: "money release", prints: `(?i)claim`, fails: true},
	{in: "money resolve", prints: `(?i)signature`, fails: true},
	{in: "token revoke", prints: `(?i)token`, fails: true},
	{in: "fix kick", prints: `(?i)logged`, fails: true},
	{in: "ticket withdraw", prints: `T2`},
	{in: "lock --list", prints: `lock`},
	{in: "money list", prints: `nothing needs an operator`},
}

// operate runs the operator's commands of operating.md's sentences and tables, with
// values in place of the texts that the reader replaces.
func operate(t *testing.T, d *programtest.Service, lines []printedLine) {
	dir, places := d.ReadersFolder(t)
	term := openTerminalIn(t, dir, places)
	run, seen := 0, map[string]bool{}
	for _, p := range lines {
		if !strings.HasPrefix(p.text, "blockdesk ") || len(strings.Fields(p.text)) < 2 || seen[p.text] ||
			strings.HasPrefix(p.text, "blockdesk signer") || strings.HasPrefix(p.text, "blockdesk journal") { // of a process, and of a stopped service
			continue
		}
		seen[p.text] = true
		p.text = operated.Replace(p.text)
		if err := term.follow(p, operatorsPrint); err != nil {
			t.Error(err)
		}
		run++
	}
	if run < 25 {
		t.Errorf("only %d lines are run", run)
	}
}

// whyNotRun returns the row of notRun that a line falls under, or -1.
func whyNotRun(line string) int {
	return slices.IndexFunc(notRun, func(n notRunLine) bool { return n.begins.MatchString(line) })
}

func isNotRun(line string) bool { return whyNotRun(line) >= 0 }

// openTerminalIn opens a terminal until the test ends, in which `blockdesk` is what
// is tested and nothing of this user is read or written.
func openTerminalIn(t *testing.T, dir string, places *strings.Replacer, env ...string) *terminal {
	t.Helper()
	bin := programFolder(t, t.TempDir())
	env = append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "XDG_CONFIG_HOME=" + t.TempDir(), "TOKEN=a token of mine"}, env...)
	term := &terminal{dir: dir, env: append(os.Environ(), env...), places: places}
	if err := term.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := term.close(); err != nil {
			t.Error(err)
		}
	})
	return term
}

// The examples of the program's own help are lines that it takes.
func TestDocumentsOfHelp(t *testing.T) {
	t.Parallel()
	examples, err := programtest.HelpExamples()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range examples {
		if err := checkInline(programtest.Root(t), e.Line); err != nil && !errors.Is(err, errNotOurs) {
			t.Errorf("help of %s: %s\n%v", e.Command, e.Line, err)
		}
	}
	if len(examples) < 10 {
		t.Errorf("only %d examples", len(examples))
	}
}

// named commands of the program, in files that are no Markdown.
var ourCommand = regexp.MustCompile(`\bblockdesk ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*| --?[a-z][a-z-]*(?:[= ][^\s"'` + "`" + `|]+)?)*)`)

// The contents of configurations, units, images, the pages for people, and the descriptions of
// the API name of the program's commands and flags is there.
func TestDocumentsNameCommands(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t, "docs/deploy", "httpgw/board/src", "sdk/openapi", "sdk/asyncapi", "Makefile", ".ci/run") {
		if filepath.Ext(name) == ".md" {
			continue
		}
		for i, line := range strings.Split(readTracked(t, name), "\n") {
			for _, m := range ourCommand.FindAllStringSubmatch(line, -1) {
				if err := programtest.KnownFlags(m[1]); err != nil {
					t.Errorf("%s:%d: %s: %v", name, i+1, m[0], err)
				}
			}
		}
	}
}

// A document with planted faults: each of its lines is found, and what is wrong with it.
func TestDocumentsCanFail(t *testing.T) {
	t.Parallel()
	text := programtest.Must(os.ReadFile(filepath.Join("testdata", "planted_document.txt")))
	wrong := []struct{ line, because string }{
		{"blockdesk ticket pots", "unknown"},
		{"blockdesk lock --because x", "unknown flag: --because"},
		{"blockdesk backup A B", "accepts 1 arg"},
		{"make no-such-target", "No rule to make target"},
		{"python3 nobody.py", "nobody runs this line"},
		{"blockdesk fix sessions|nobody", "unknown command"},
		{"npm run nothing", "no script nothing"},
		{"curl -s http", "is in no fenced block"},
		{"blockdesk version", "no PowerShell"},
		{"test -e no-such-file", "status 1"},
		{"blockdesk version --no-such-flag", "unknown flag: --no-such-flag"},
		{"true # prints nothing", `no "\\S" in`},
		{"X=$(true)", "is empty"},
		{"echo '", ""},
		{"curl -s \"file:", "is refused"},
		{"printf", "no longer prints a line like\nthree 2"},
	}
	right := 0
	term := openTerminalIn(t, t.TempDir(), strings.NewReplacer())
	for i, p := range findPrinted("planted", string(text)) {
		err := judgeInline(programtest.Root(t), term, p)
		if err == nil && p.block != inlineCode && !isNotRun(p.text) {
			err = term.follow(p, prints)
		}
		switch {
		case i >= len(wrong) && err == nil:
			right++
		case i >= len(wrong):
			t.Errorf("is right: %v", err)
		case !strings.HasPrefix(p.text, wrong[i].line):
			t.Fatalf("finds %v where %s stands", p, wrong[i].line)
		case err == nil && wrong[i].because != "":
			t.Errorf("nothing is wrong with %v", p)
		case err != nil && (!strings.Contains(err.Error(), wrong[i].because) || !strings.HasPrefix(err.Error(), p.String())):
			t.Errorf("of %v it says: %v", p, err)
		}
	}
	if right != 6 {
		t.Errorf("%d lines are found and right", right)
	}
}
