package docs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/servicetest"
)

// newcomerCold in the environment gives the newcomer's machine nothing: Go's and
// npm's caches are empty, and everything is fetched.
const newcomerCold = "BLOCKDESK_NEWCOMER"

// stopwatchFile in the environment names a file to which the newcomers' steps are appended
// with their seconds; .ci/run prints it. A busy machine is slow, so no test limits them.
const stopwatchFile = "NEWCOMER_STOPWATCH"

// The way from a repository to a settled claim: what README.md prints under these
// headings, in at most so many commands.
const newcomerCommands = 9

// newcomerTries is how often the service is looked for, every two seconds: on a loaded
// machine the build alone takes many minutes.
const newcomerTries = 900

var newcomerHeadings = []string{"Run", "Buy"}

// newcomer is a stranger with a clone in a home of his own.
type newcomer struct {
	t      *testing.T
	home   string
	dir    string // the clone
	env    []string
	places *strings.Replacer
	// base and admin are the URLs that his service will have.
	base, admin string
	printed     *growing // by the service
	noNode      bool     // the machine has no Node
	watch       *stopwatch
}

// stopwatch notes how long each step of a walk takes.
type stopwatch struct {
	t           *testing.T
	began, last time.Time
	text        strings.Builder
}

func startStopwatch(t *testing.T) *stopwatch {
	w := &stopwatch{t: t, began: time.Now(), last: time.Now()}
	fmt.Fprintf(&w.text, "%s: seconds since the beginning, seconds of the step\n", t.Name())
	t.Cleanup(func() {
		t.Log(w.text.String())
		name := os.Getenv(stopwatchFile)
		if name == "" {
			return
		}
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(w.text.String())
		if err := errors.Join(err, f.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// lap ends a step.
func (w *stopwatch) lap(step string) {
	now := time.Now()
	fmt.Fprintf(&w.text, "%8.1f %8.1f  %.100s\n", now.Sub(w.began).Seconds(), now.Sub(w.last).Seconds(), step)
	w.last = now
}

// A stranger without privileges clones the repository and types what README.md prints at
// its beginning: his claim is settled on the local chain.
func TestNewcomer(t *testing.T) {
	runtest.SkipUnderRace(t, "it runs a document's lines one after the other, which other tests race")
	t.Parallel()
	for _, name := range []string{"git", "make", "go", "npm", "curl"} {
		programtest.Tool(t, name)
	}
	servicetest.LocalChain(t)
	n := newNewcomer(t)
	clone := fmt.Sprintf("git clone -q %s %s", programtest.Root(t), n.dir)
	if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", clone).CombinedOutput(); err != nil {
		runtest.SkipMissing(t, fmt.Sprintf("repository to clone: %v\n%s", err, out), "git clone")
	}
	n.watch.lap("git clone")
	commands := []string{clone, "cd blockdesk"}
	text, err := os.ReadFile(filepath.Join(n.dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := n.lines(string(text))
	n.serve(lines[0].text)
	n.watch.lap("make run: built, and the demo sells")
	term := openNewcomersTerminal(n)
	last := ""
	for _, p := range lines[1:] {
		out, status, err := term.run(p.text)
		if err != nil || status != 0 {
			t.Fatalf("%v: %v, status %d\n%s\nbefore it: %s", p, err, status, out, last)
		}
		n.watch.lap(p.text)
		last = out
	}
	for _, p := range lines {
		commands = append(commands, p.text)
	}
	if len(commands) > newcomerCommands {
		t.Errorf("a newcomer needs %d commands", len(commands))
	}
	// Where the machine is slower than the README's sleep, the reader looks again.
	last = await.Value(t, "a settled claim", func() string {
		out, _, err := term.run("sleep 1; " + lines[len(lines)-1].text)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out
	}, func(out string) bool { return strings.Contains(out, `"state": "settled"`) })
	n.watch.lap(fmt.Sprintf("the claim is settled, by %d commands", len(commands)))
	n.isOnChain(last)
}

// TestNewcomerWithoutNode: on a machine without Node, and without a network after the
// modules, a clone serves the board and a firm quote, and says why it settles nothing.
func TestNewcomerWithoutNode(t *testing.T) {
	runtest.SkipUnderRace(t, "it runs a document's lines one after the other, which other tests race")
	t.Parallel()
	for _, name := range []string{"git", "make", "go", "curl"} {
		programtest.Tool(t, name)
	}
	n := newNewcomer(t)
	n.noNode = true
	n.env = append(n.env, "PATH="+pathWithoutNode(t), "GOPROXY=off", "GOTOOLCHAIN=local")
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", programtest.Root(t), n.dir).CombinedOutput(); err != nil {
		runtest.SkipMissing(t, fmt.Sprintf("repository to clone: %v\n%s", err, out), "git clone")
	}
	n.watch.lap("git clone")
	n.serve("make run")
	n.watch.lap("make run: built, and the board is served")
	if !strings.Contains(n.printed.String(), "unavailable: Node.js 20 or later is not in PATH: install it") {
		t.Errorf("it does not say what is missing:\n%s", n.printed)
	}
	steps := map[string]string{}
	for line := range strings.Lines(n.printed.String()) {
		if name, rest, ok := strings.Cut(line, " "); ok {
			steps[name] = strings.TrimSpace(rest)
		}
	}
	for page, want := range map[string]string{"board": "<title>Board</title>", "wallet": "<title>", "docs": "<title>"} {
		if text := n.answer(steps[page]); !strings.Contains(text, want) {
			t.Errorf("%s at %q: %.200s", page, steps[page], text)
		}
	}
	term := openNewcomersTerminal(n)
	if out, status, err := term.run(steps["try"]); err != nil || status != 0 || !strings.Contains(out, `"quote_id": "Q`) {
		t.Errorf("%s: %v, status %d\n%s", steps["try"], err, status, out)
	}
	if out, status, err := term.run("bin/blockdesk doctor --demo"); err != nil || status != 0 || !strings.Contains(out, "ready") {
		t.Errorf("doctor: %v, status %d\n%s", err, status, out)
	}
}

// pathWithoutNode returns a folder with all programs of PATH but Node's.
func pathWithoutNode(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // PATH may name folders that do not exist
		}
		for _, e := range entries {
			switch e.Name() {
			case "node", "nodejs", "npm", "npx", "corepack":
				continue
			}
			// The first folder of PATH that has a name counts.
			if err := os.Symlink(filepath.Join(folder, e.Name()), filepath.Join(dir, e.Name())); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	n := &newcomer{t: t, home: t.TempDir(), watch: startStopwatch(t)}
	n.dir = filepath.Join(n.home, "blockdesk")
	port := map[string]string{}
	for name, printed := range map[string]string{"BASE": "8080", "API": "8000", "WS": "8081", "FIX": "9878", "ADMIN": "8090", "CHAIN": "8899"} {
		port[printed] = programtest.FreePort(t)
		n.env = append(n.env, "BLOCKDESK_LISTEN_"+name+"=127.0.0.1:"+port[printed])
	}
	n.base, n.admin = "http://127.0.0.1:"+port["8080"], "http://127.0.0.1:"+port["8090"]
	n.places = strings.NewReplacer("127.0.0.1:8080", "127.0.0.1:"+port["8080"])
	n.env = append(n.env, "HOME="+n.home, "XDG_CONFIG_HOME="+n.home, "XDG_CACHE_HOME="+filepath.Join(n.home, "cache"), "PATH="+os.Getenv("PATH"))
	if os.Getenv(newcomerCold) == "cold" {
		return n
	}
	for name, command := range map[string][]string{
		"GOCACHE": {"go", "env", "GOCACHE"}, "GOMODCACHE": {"go", "env", "GOMODCACHE"}, "npm_config_cache": {"npm", "config", "get", "cache"},
	} {
		out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).Output()
		if err != nil {
			t.Fatalf("%v: %v", command, err)
		}
		n.env = append(n.env, name+"="+strings.TrimSpace(string(out)))
	}
	n.env = append(n.env, "npm_config_prefer_offline=true")
	return n
}

// lines are the command lines under the headings; the first one serves.
func (n *newcomer) lines(readme string) (out []printedLine) {
	n.t.Helper()
	for _, heading := range newcomerHeadings {
		_, section, found := strings.Cut(readme, "\n## "+heading+"\n")
		if !found {
			n.t.Fatalf("README.md has no heading %s", heading)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, p := range findPrinted("README.md", section) {
			if p.block == "sh" {
				out = append(out, p)
			}
		}
	}
	if len(out) < 3 || out[0].text != "make run" {
		n.t.Fatalf("README.md begins with %v", out)
	}
	return out
}

// answer is what a page says with status 200, else "".
func (n *newcomer) answer(url string) string {
	ctx, cancel := context.WithTimeout(n.t.Context(), runtest.HangTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// serve types the first line, and waits until the demo sells. It is ended by Ctrl-C
// with the test, with everything that it builds and keeps.
func (n *newcomer) serve(line string) {
	n.t.Helper()
	n.printed = &growing{more: make(chan struct{}, 1)}
	printed := n.printed
	command := append(unprivileged(n.t), "/bin/sh", "-c", line)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = n.dir, n.env, printed, printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = runtest.HangTimeout
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
			n.t.Errorf("%v\n%s", err, printed)
		}
		if err := ignoreExit(cmd.Wait()); err != nil {
			n.t.Error(err)
		}
		// Go writes its module cache read-only, so it cannot be removed.
		_ = filepath.WalkDir(n.home, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
	})
	noChain := func() bool {
		return strings.Contains(printed.String(), "\nchain ") && strings.Contains(printed.String(), "unavailable: ")
	}
	// Reading the printed text takes longer than the demo's operator, and the chain's
	// first answers, on a machine that does nothing else.
	ready := func() bool {
		return strings.Contains(n.answer(n.base+"/api/v1/rfq/market-tickets"), `"order_id":"T1"`) &&
			(noChain() || strings.Contains(n.answer(n.admin+"/readyz"), `{"name":"chain","ok":true`))
	}
	for try := 1; !ready() && !strings.Contains(printed.String(), "Error "); try++ { // it compiles and installs first
		if try == newcomerTries {
			n.t.Fatalf("%s does not serve:\n%s", line, printed)
		}
		time.Sleep(2 * time.Second) // sleep: between two looks at what takes minutes
	}
	if strings.Contains(printed.String(), "Error ") {
		n.t.Fatalf("%s does not serve:\n%s", line, printed)
	}
	if noChain() && !n.noNode {
		runtest.SkipMissing(n.t, "local chain, which npm has not installed:\n"+printed.String(), "make sandbox")
	}
}

// unprivileged returns the command that runs another one without any privilege of root,
// for a test that root runs; nothing for other users.
func unprivileged(t *testing.T) []string {
	if os.Geteuid() != 0 {
		return nil
	}
	return []string{programtest.Tool(t, "setpriv"), "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"}
}

// openNewcomersTerminal opens the second terminal, in the clone.
func openNewcomersTerminal(n *newcomer) *terminal {
	n.t.Helper()
	term := &terminal{dir: n.dir, env: n.env, places: n.places, prefix: unprivileged(n.t)}
	if err := term.start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := term.close(); err != nil {
			n.t.Error(err)
		}
	})
	return term
}

// isOnChain asks the local chain itself for the delivery that a claim names.
func (n *newcomer) isOnChain(claim string) {
	n.t.Helper()
	m := regexp.MustCompile(`"delivery": \{[^}]*"l1_signature": "([1-9A-HJ-NP-Za-km-z]{80,88})"`).FindStringSubmatch(claim)
	if m == nil {
		n.t.Fatalf("no delivery in %s", claim)
	}
	chain := ""
	for _, kv := range n.env {
		if address, ok := strings.CutPrefix(kv, "BLOCKDESK_LISTEN_CHAIN="); ok {
			chain = "http://" + address
		}
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"getSignatureStatuses","params":[["` + m[1] + `"]]}`
	if r := programtest.Post(n.t, chain, "", body); !strings.Contains(r.Body, `"confirmationStatus":"finalized"`) || !strings.Contains(r.Body, `"err":null`) {
		n.t.Errorf("the chain says of the delivery: %s", r.Body)
	}
}
