// Package browsertest drives a headless Chromium with puppeteer, and checks the
// accessibility of pages with axe.
//
// The browser runs in a Node process that reads one command a line and writes one answer a
// line, of at most maxBrowserLine bytes. A Tab is one page; its test sends it scripts and
// reads what they return. A test is skipped, with the command that installs what is
// missing, where Node or Chromium is missing. The process ends with its test.
package browsertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// maxBrowserLine bounds an answer of the driver, in bytes.
const maxBrowserLine = 8 << 20

// Chromium is a headless browser, driven by a Node process.
type Chromium struct {
	t       *testing.T
	in      io.Writer
	answers chan []byte
	stderr  *bytes.Buffer // standard error; read after the process has ended
}

// StartChromium starts a browser, or skips the test with the reason.
func StartChromium(t *testing.T) *Chromium {
	t.Helper()
	node := programtest.Tool(t, "node")
	dir := programtest.ClientDir(t, "browser")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".chromium")); err != nil {
		runtest.SkipMissing(t, "Chromium of npm", "make browser")
	}
	cmd := exec.Command(node, filepath.Join(dir, "drive.mjs"))
	c := &Chromium{t: t, answers: make(chan []byte), stderr: &bytes.Buffer{}}
	cmd.Stderr = c.stderr
	in := programtest.Must(cmd.StdinPipe())
	out := programtest.Must(cmd.StdoutPipe())
	c.in = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.answers)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, maxBrowserLine)
		for lines.Scan() {
			c.answers <- bytes.Clone(lines.Bytes())
		}
	}()
	t.Cleanup(func() {
		overdue := time.AfterFunc(runtest.HangTimeout, func() { _ = cmd.Process.Kill() }) // it may have ended
		defer overdue.Stop()
		in.Close()
		for range c.answers { // discard late answers
		}
		if err := cmd.Wait(); err != nil && !t.Skipped() {
			t.Errorf("the browser's driver: %v\n%s", err, c.stderr)
		}
	})
	var version string
	if err := c.answer(&version); err != nil {
		t.Skipf("skipped: Chromium does not start here: %v", err)
	}
	return c
}

// answer reads the next answer of the driver.
func (c *Chromium) answer(result any) error {
	select {
	case line, ok := <-c.answers:
		if !ok {
			return errors.New("the driver has ended")
		}
		var a struct {
			Result json.RawMessage `json:"result"`
			Error  string          `json:"error"`
		}
		if err := json.Unmarshal(line, &a); err != nil {
			return err
		}
		if a.Error != "" {
			return errors.New(a.Error)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(a.Result, result)
	case <-time.After(runtest.HangTimeout): // a page that renders on a busy machine may not answer for long
		return errors.New("no answer in " + runtest.HangTimeout.String())
	}
}

// Do sends a command to the driver and decodes its result.
func (c *Chromium) Do(what string, args map[string]any, result any) {
	c.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	args["do"] = what
	if _, err := c.in.Write(append(programtest.Must(json.Marshal(args)), '\n')); err != nil {
		c.t.Fatal(err)
	}
	if err := c.answer(result); err != nil {
		c.t.Fatalf("%s %v: %v", what, args, err)
	}
}

// Tab is a page of the browser with its own storage.
type Tab struct {
	*Chromium
	Number int
}

// Open opens a page in dark mode and desktop size; script runs in it before its own
// scripts.
func (c *Chromium) Open(url, script string) *Tab {
	c.t.Helper()
	p := &Tab{Chromium: c}
	c.Do("open", map[string]any{"url": url, "script": script}, &p.Number)
	return p
}

// In returns the page for a subtest, so that failures are reported there.
func (p *Tab) In(t *testing.T) *Tab {
	c := *p.Chromium
	c.t = t
	return &Tab{&c, p.Number}
}

// Do sends a command about the page and decodes its result.
func (p *Tab) Do(what string, args map[string]any, result any) {
	p.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	args["page"] = p.Number
	p.Chromium.Do(what, args, result)
}

// Read runs a function body in the page and decodes its result.
func (p *Tab) Read(js string, result any) {
	p.t.Helper()
	p.Do("evaluate", map[string]any{"js": js}, result)
}

// Text returns the text of the element of a selector.
func (p *Tab) Text(selector string) (text string) {
	p.t.Helper()
	p.Read("return document.querySelector("+string(programtest.Must(json.Marshal(selector)))+")?.textContent ?? ''", &text)
	return text
}

// Await waits until a JavaScript expression is true in the page.
func (p *Tab) Await(what, expression string) {
	p.t.Helper()
	failed := p.t.Failed()
	defer func() {
		if !failed && p.t.Failed() {
			p.t.Logf("the page says:\n%s", p.Text("body"))
		}
	}()
	await.True(p.t, what, func() (holds bool) {
		p.Read("return Boolean("+expression+")", &holds)
		return holds
	})
}

// Click clicks the element of a selector.
func (p *Tab) Click(selector string) {
	p.t.Helper()
	p.Do("click", map[string]any{"selector": selector}, nil)
}

// Press presses a key.
func (p *Tab) Press(key string) { p.t.Helper(); p.Do("press", map[string]any{"key": key}, nil) }

// Observed returns the URLs that the page requested, and its errors.
func (p *Tab) Observed() (requests, faults []string) {
	p.t.Helper()
	var s struct{ Requests, Faults []string }
	p.Do("seen", nil, &s)
	return s.Requests, s.Faults
}

// NothingSerious fails the test if axe finds a serious problem in the present page.
func NothingSerious(t *testing.T, p *Tab, when string) {
	t.Helper()
	var found []string
	p.Do("axe", nil, &found)
	for _, f := range found {
		t.Errorf("%s: %s", when, f)
	}
}
