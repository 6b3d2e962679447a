package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	"blockdesk/internal/sandbox"
	"blockdesk/service/demo"
	"blockdesk/service/operator"
)

// demoService is a running service, mostly a demo.
type demoService struct {
	at   operator.Addresses
	pid  int
	data string
	out  *lockedBuffer // what it prints
	stop func() error  // by SIGTERM
}

// startDemo runs the demo on free ports until the test ends or stop is called,
// without a chain unless more says where its server is. Its tickets are posted when
// startDemo returns.
func startDemo(t *testing.T, more ...string) *demoService {
	t.Helper()
	d := startDemoOn(t, t.TempDir(), more...)
	d.awaitTickets(t)
	return d
}

func startDemoOn(t *testing.T, data string, more ...string) *demoService {
	t.Helper()
	return startServe(t, data, append([]string{"--demo"}, more...)...)
}

// startServe runs the service on free ports until the test ends or stop is called.
func startServe(t *testing.T, data string, more ...string) *demoService {
	t.Helper()
	exe := programtest.Binary(t)
	if err := os.Remove(filepath.Join(data, operator.AddressesFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	d := &demoService{data: data, out: &lockedBuffer{}}
	args := append([]string{"serve", "--data", data}, allFree...)
	cmd := exec.Command(exe, append(args, more...)...)
	cmd.Dir = t.TempDir() // no blockdesk.yaml of this checkout
	cmd.Stdout, cmd.Stderr = d.out, d.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stopped := false
	d.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(runtest.Patience):
			return errors.Join(fmt.Errorf("not stopped %v after SIGTERM", runtest.Patience), cmd.Process.Kill(), <-ended)
		}
	}
	t.Cleanup(func() {
		if err := d.stop(); err != nil {
			t.Errorf("%v\n%s", err, d.out)
		}
	})
	await.True(t, "addresses.json", func() bool {
		text, err := os.ReadFile(filepath.Join(d.data, operator.AddressesFile))
		return err == nil && json.Unmarshal(text, &d.at) == nil
	})
	d.pid = cmd.Process.Pid
	return d
}

// awaitTickets waits until the demo's operator has posted all. It asks over the
// admin address: clients' reads are few a minute.
func (d *demoService) awaitTickets(t *testing.T) {
	t.Helper()
	token, err := operator.LocalToken(d.data)
	if err != nil {
		t.Fatal(err)
	}
	c := &operator.Client{URL: d.at.Admin, Token: token, HTTP: http.DefaultClient}
	await.True(t, "the demo's tickets", func() bool {
		var have operator.TicketsAnswer
		return c.Get(t.Context(), "/desk/tickets", &have) == nil && len(have.Tickets) == demo.Tickets
	})
}

// shell runs a line as a person would, in dir, and returns what it prints.
func shell(t *testing.T, dir, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runtest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// checkAnswer holds a curl line's answer to what it should be: JSON that is ok,
// or, of a claim or a proof of payment, the word that there is no chain.
func checkAnswer(t *testing.T, line, out string) {
	t.Helper()
	if strings.Contains(line, "/adapters/") { // in the format of others, which has no ok
		var rows []map[string]any
		if err := json.Unmarshal([]byte(out), &rows); err != nil || len(rows) == 0 {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		return
	}
	var answer struct {
		OK   bool   `json:"ok"`
		Code string `json:"code"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Errorf("%s: %v\n%s", line, err, out)
		return
	}
	settles := strings.Contains(line, "claim-take") || strings.Contains(line, "verify-payment")
	if settles && answer.Code != "CHAIN_UNAVAILABLE" || !settles && !answer.OK {
		t.Errorf("%s: %s", line, out)
	}
}

// readersFolder is where somebody who reads README.md would be, and what his
// addresses and his program are here.
func (d *demoService) readersFolder(t *testing.T) (dir string, places *strings.Replacer) {
	t.Helper()
	exe := programtest.Binary(t)
	dir = t.TempDir()
	if err := os.Symlink(d.data, filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	return dir, strings.NewReplacer(
		"http://127.0.0.1:8080", d.at.Base, "http://127.0.0.1:8000", d.at.API, "http://127.0.0.1:8090", d.at.Admin,
		"bin/blockdesk", exe,
	)
}

// readmePrints is what the lines of README.md have to print.
var readmePrints = []expectation{
	{in: "curl -sN ", prints: `event: l2\ndata: \{`},
	{in: "/adapters/", prints: `^\[\{`},
	{in: "/claims/$ID", prints: `"state":"settled"`},
	{in: "wallet pay", prints: `^[1-9A-HJ-NP-Za-km-z]{80,88}\s`},
	{in: "/dvp/builds/$ID", prints: `"state":"finalized"`},
	{in: "fix client", prints: `(?s)logged on.*accepted.*cancelled.*quoted`},
	{in: "fix sessions", prints: `GUEST`},
	{in: "money list", prints: `nothing needs a person`},
	{in: "ticket list", prints: `T1-1`},
	{in: "sleep "},
	{in: "journal dump", prints: `(?m)^(.*\n){3}`},
}

// The lines of README.md work as they are printed, in their order: those of a stopped
// service after it has been stopped. Without a chain those that settle are passed
// over.
func TestReadme(t *testing.T) {
	runtest.NotRaced(t, "it runs a document's lines one after the other, which other tests race")
	t.Parallel()
	tool(t, "curl")
	var more []string
	chain, err := filepath.Abs(filepath.Join("..", "..", "internal", "sandbox"))
	if err == nil {
		err = (sandbox.Options{Dir: chain}).Check(t.Context())
	}
	if err == nil {
		more = append(longLives, "--set", withChain(chain))
	} else {
		t.Logf("no claim is settled: %v", err)
	}
	d := startDemo(t, more...)
	await.True(t, "a ready service", func() bool { return status(t, d.at.Admin+"/readyz") == http.StatusOK })
	dir, places := d.readersFolder(t)
	term := openTerminalIn(t, dir, places)
	run := 0
	for _, p := range findPrinted("README.md", readTracked(t, "README.md")) {
		needsChain := regexp.MustCompile(`\$(CLAIM|ID|PAID|TOKEN|BUILD)\b|claim-take|wallet|money|sleep`).MatchString(p.text)
		if p.block == inlineCode || isNotRun(p.text) || needsChain && more == nil {
			continue
		}
		if strings.HasPrefix(p.text, "bin/blockdesk journal") {
			if err := d.stop(); err != nil {
				t.Fatalf("%v\n%s", err, d.out)
			}
		}
		if err := term.follow(p, readmePrints); err != nil {
			t.Error(err)
		}
		run++
	}
	if run < 35 && more != nil {
		t.Errorf("only %d lines are run", run)
	}
	if strings.Contains(d.out.String(), "level=WARN") || strings.Contains(d.out.String(), "level=ERROR") {
		t.Errorf("the demo warns:\n%s", d.out)
	}
}

// tryCommands returns the lines that the service prints at its start, to be tried.
func (d *demoService) tryCommands(t *testing.T) (lines []string) {
	t.Helper()
	const want = 6 // of a demo without a chain
	return await.Value(t, "the commands to try", func() []string {
		_, text, _ := strings.Cut(d.out.String(), "\ntry:\n")
		lines = nil
		for line := range strings.Lines(text) {
			command, indented := strings.CutPrefix(line, "  ")
			if !indented {
				break
			}
			lines = append(lines, strings.TrimSuffix(command, "\n"))
		}
		return lines
	}, func(lines []string) bool { return len(lines) == want })
}

// What the service prints to try at its start, what the robot manifest has for robots,
// and the lines among the examples of the OpenAPI document, work as they are printed.
func TestFirstCommandsWork(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	d := startDemo(t, documentLimits...)
	t.Run("manifest", func(t *testing.T) {
		var manifest struct {
			Examples map[string]string `json:"examples"`
		}
		getJSON(t, d.at.Base+"/api/v1/rfq/robot-manifest", &manifest)
		if len(manifest.Examples) < 4 {
			t.Fatalf("only %v", manifest.Examples)
		}
		for _, line := range manifest.Examples {
			checkAnswer(t, line, shell(t, t.TempDir(), line))
		}
	})
	t.Run("openapi", func(t *testing.T) {
		_, places := d.readersFolder(t)
		lines := 0
		for _, m := range regexp.MustCompile(`"(curl (?:[^"\\]|\\.)*)"`).FindAllStringSubmatch(readTracked(t, "sdk/openapi/svc_public_api_v1.json"), -1) {
			var line string
			if err := json.Unmarshal([]byte(`"`+m[1]+`"`), &line); err != nil {
				t.Fatal(err)
			}
			lines++
			if line = places.Replace(line); !strings.Contains(line, "/stream?") {
				checkAnswer(t, line, shell(t, t.TempDir(), line))
			} else if out := shell(t, t.TempDir(), line+" | head -12"); !strings.Contains(out, "\ndata: {") {
				t.Errorf("%s: %s", line, out)
			}
		}
		if lines < 8 {
			t.Errorf("only %d lines", lines)
		}
	})
	lines := d.tryCommands(t)
	quoted := false
	for _, line := range lines {
		out := shell(t, t.TempDir(), line)
		if strings.HasPrefix(line, "curl ") {
			checkAnswer(t, line, out)
		} else if !strings.Contains(out, "T1-1") {
			t.Errorf("%s: %s", line, out)
		}
		quoted = quoted || strings.Contains(out, `"quote_id"`)
	}
	if !quoted {
		t.Error("no quote among them")
	}
}
