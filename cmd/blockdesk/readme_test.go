package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
)

// demoService is a running demo.
type demoService struct {
	at   addresses
	pid  int
	data string
	out  *bytes.Buffer // what it prints; read it once it has stopped
	stop func() error  // by SIGTERM, within 5 s
}

// startDemo runs the demo on free ports until the test ends or stop is called,
// without a chain unless more says where its server is.
func startDemo(t *testing.T, more ...string) *demoService {
	t.Helper()
	return startDemoOn(t, t.TempDir(), more...)
}

func startDemoOn(t *testing.T, data string, more ...string) *demoService {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(data, addressesFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	d := &demoService{data: data, out: new(bytes.Buffer)}
	args := append([]string{"serve", "--demo", "--data", data}, allFree...)
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
		case <-time.After(5 * time.Second):
			return errors.Join(errors.New("not stopped 5 s after SIGTERM"), cmd.Process.Kill(), <-ended)
		}
	}
	t.Cleanup(func() {
		if err := d.stop(); err != nil {
			t.Errorf("%v\n%s", err, d.out)
		}
	})
	eventually(t, 20*time.Second, "addresses.json", func() bool {
		text, err := os.ReadFile(filepath.Join(d.data, addressesFile))
		return err == nil && json.Unmarshal(text, &d.at) == nil
	})
	d.pid = cmd.Process.Pid
	return d
}

// awaitTickets waits until the demo's operator has posted all. It asks over the
// admin address: clients' reads are few a minute.
func (d *demoService) awaitTickets(t *testing.T) {
	t.Helper()
	token, err := localToken(d.data)
	if err != nil {
		t.Fatal(err)
	}
	c := &operatorClient{admin: d.at.Admin, token: token, http: http.DefaultClient}
	eventually(t, 20*time.Second, "the demo's tickets", func() bool {
		var have ticketsAnswer
		return c.get(t.Context(), "/desk/tickets", &have) == nil && len(have.Tickets) == len(demoTickets)
	})
}

// shell runs a line as a person would, in dir, and returns what it prints.
func shell(t *testing.T, dir, line string) string {
	t.Helper()
	return shellFor(t, 20*time.Second, dir, line)
}

func shellFor(t *testing.T, within time.Duration, dir, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
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

// The lines of the README, those that the service prints at its start, and those
// of the robot manifest work as they are printed.
func TestPrintedCommandsWork(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	d := startDemo(t)
	d.awaitTickets(t)
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
	t.Run("readme", func(t *testing.T) { runReadme(t, d) })
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
}

// readmeBlocks returns the shell lines of README.md, block by block.
func readmeBlocks(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		out = append(out, block[1])
	}
	return out
}

// needsChain reports whether a block of README.md settles something.
func needsChain(block string) bool {
	return strings.Contains(block, "bin/blockdesk wallet") || strings.Contains(block, "bin/blockdesk money")
}

// readersFolder is where somebody who reads README.md would be, and what his
// addresses and his program are here.
func (d *demoService) readersFolder(t *testing.T) (dir string, places *strings.Replacer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.Symlink(d.data, filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	return dir, strings.NewReplacer(
		"http://127.0.0.1:8080", d.at.Base, "http://127.0.0.1:8000", d.at.API, "http://127.0.0.1:8090", d.at.Admin,
		"bin/blockdesk", exe,
	)
}

// The claims of the README are paid for and settled as they are printed, one by
// one and in a row in one shell.
func TestReadmeSettles(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	d := startDemo(t, "--set", withChain(localChain(t)))
	d.awaitTickets(t)
	eventually(t, 10*time.Second, "a ready service", func() bool { return status(t, d.at.Admin+"/readyz") == http.StatusOK })
	dir, places := d.readersFolder(t)
	printed := d.tryCommands(t)
	pays := printed[len(printed)-3]
	if out := strings.TrimSpace(shell(t, dir, pays)); !regexp.MustCompile(`^[1-9A-HJ-NP-Za-km-z]{80,88}$`).MatchString(out) {
		t.Errorf("%s: %s", pays, out)
	}
	last := []string{`"state":"settled"`, `"state":"finalized"`, "nothing needs a person"}
	for _, block := range readmeBlocks(t) {
		if !needsChain(block) {
			continue
		}
		out := shellFor(t, time.Minute, dir, places.Replace(block))
		if len(last) == 0 || !strings.Contains(out, last[0]) {
			t.Fatalf("%s\nends without %v:\n%s", block, last, out)
		}
		last = last[1:]
	}
	if len(last) > 0 {
		t.Errorf("no block ends with %v", last)
	}
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(d.out.String(), "level=WARN") || strings.Contains(d.out.String(), "level=ERROR") {
		t.Errorf("the demo warns:\n%s", d.out)
	}
}

// runReadme runs the shell lines of README.md against d: those of a stopped
// service come after it has been stopped.
func runReadme(t *testing.T, d *demoService) {
	dir, places := d.readersFolder(t)
	curls, ours := 0, 0
	for _, block := range readmeBlocks(t) {
		if needsChain(block) {
			continue
		}
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "curl -sN "): // a stream, whose beginning is shown
				curls++
				if out := shell(t, dir, places.Replace(line)); !strings.Contains(out, "event: l2\ndata: {") {
					t.Errorf("%s: no order book:\n%s", line, out)
				}
			case strings.HasPrefix(line, "curl "):
				curls++
				checkAnswer(t, line, shell(t, dir, places.Replace(line)))
			case strings.HasPrefix(line, "printf "): // a FIX session, whose numbers are kept with the user
				ours++
				out := shell(t, dir, `export XDG_CONFIG_HOME="$PWD"; `+places.Replace(line))
				for _, word := range []string{"logged on", "accepted", "cancelled", "quoted"} {
					if !strings.Contains(out, word) {
						t.Errorf("%s: nothing is %s:\n%s", line, word, out)
					}
				}
			case strings.HasPrefix(line, "bin/blockdesk bench"), strings.HasPrefix(line, "make "):
			case strings.HasPrefix(line, "bin/blockdesk journal"):
				if err := d.stop(); err != nil {
					t.Fatalf("%v\n%s", err, d.out)
				}
				fallthrough
			case strings.HasPrefix(line, "bin/blockdesk "):
				ours++
				if out := shell(t, dir, places.Replace(line)); out == "" {
					t.Errorf("%s prints nothing", line)
				}
			default:
				t.Errorf("nobody has tried %q", line)
			}
		}
	}
	if curls < 10 || ours < 8 {
		t.Errorf("%d curl lines and %d of our own were tried", curls, ours)
	}
}

// tryCommands are the lines that the service prints at its start.
func (d *demoService) tryCommands(t *testing.T) []string {
	t.Helper()
	cfg := defaultConfig()
	cfg.DataDir, cfg.Demo = d.data, true
	instruments, err := cfg.instruments()
	if err != nil {
		t.Fatal(err)
	}
	s := service{cfg: &cfg, instruments: instruments, deskPlan: &deskPlan{}}
	return s.tryCommands(d.at)
}

// What the service prints to try at its start works as it is printed.
func TestFirstCommandsWork(t *testing.T) {
	t.Parallel()
	tool(t, "curl")
	d := startDemo(t)
	d.awaitTickets(t)
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
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if !strings.Contains(d.out.String(), "\n  "+line+"\n") && !strings.Contains(line, "ticket list") {
			t.Errorf("%s is not printed:\n%s", line, d.out)
		}
	}
}
