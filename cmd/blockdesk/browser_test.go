package main

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

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// maxBrowserLine bounds an answer of the driver's.
const maxBrowserLine = 8 << 20

// chromium is a real browser without a screen, driven by a Node process.
type chromium struct {
	t       *testing.T
	in      io.Writer
	answers chan []byte
	said    *bytes.Buffer // on standard error; to be read when the process has ended
}

// startChromium starts one, or skips the test with the reason.
func startChromium(t *testing.T) *chromium {
	t.Helper()
	node := tool(t, "node")
	dir := clientDir(t, "browser")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".chromium")); err != nil {
		runtest.Missing(t, "Chromium of npm", "make browser")
	}
	cmd := exec.Command(node, filepath.Join(dir, "drive.mjs"))
	c := &chromium{t: t, answers: make(chan []byte), said: &bytes.Buffer{}}
	cmd.Stderr = c.said
	in := must(cmd.StdinPipe())
	out := must(cmd.StdoutPipe())
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
		overdue := time.AfterFunc(runtest.Patience, func() { _ = cmd.Process.Kill() }) // it may have ended
		defer overdue.Stop()
		in.Close()
		for range c.answers { // an answer that nobody waited for
		}
		if err := cmd.Wait(); err != nil && !t.Skipped() {
			t.Errorf("the browser's driver: %v\n%s", err, c.said)
		}
	})
	var version string
	if err := c.answer(&version); err != nil {
		t.Skipf("skipped: Chromium does not start here: %v", err)
	}
	return c
}

// answer reads the next answer of the driver.
func (c *chromium) answer(result any) error {
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
	case <-time.After(runtest.Patience): // a page that lays itself out on a busy machine answers nothing meanwhile
		return errors.New("no answer in " + runtest.Patience.String())
	}
}

// do sends the driver a request.
func (c *chromium) do(what string, args map[string]any, result any) {
	c.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	args["do"] = what
	if _, err := c.in.Write(append(must(json.Marshal(args)), '\n')); err != nil {
		c.t.Fatal(err)
	}
	if err := c.answer(result); err != nil {
		c.t.Fatalf("%s %v: %v", what, args, err)
	}
}

// tab is a page of the browser, with a store of its own.
type tab struct {
	*chromium
	number int
}

// open opens a page of a desk's screen, dark; script runs in it before its own.
func (c *chromium) open(url, script string) *tab {
	c.t.Helper()
	p := &tab{chromium: c}
	c.do("open", map[string]any{"url": url, "script": script}, &p.number)
	return p
}

// in is the page for a subtest, which fails in its own name.
func (p *tab) in(t *testing.T) *tab {
	c := *p.chromium
	c.t = t
	return &tab{&c, p.number}
}

func (p *tab) do(what string, args map[string]any, result any) {
	p.t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	args["page"] = p.number
	p.chromium.do(what, args, result)
}

// read runs a body of a function in the page and reads what it returns.
func (p *tab) read(js string, result any) {
	p.t.Helper()
	p.do("evaluate", map[string]any{"js": js}, result)
}

// text is the text of the element that a selector finds.
func (p *tab) text(selector string) (text string) {
	p.t.Helper()
	p.read("return document.querySelector("+string(must(json.Marshal(selector)))+")?.textContent ?? ''", &text)
	return text
}

// await waits until an expression is true in the page.
func (p *tab) await(what, expression string) {
	p.t.Helper()
	await.True(p.t, what, func() (holds bool) {
		p.read("return Boolean("+expression+")", &holds)
		return holds
	})
}

func (p *tab) click(selector string) {
	p.t.Helper()
	p.do("click", map[string]any{"selector": selector}, nil)
}

func (p *tab) press(key string) { p.t.Helper(); p.do("press", map[string]any{"key": key}, nil) }

// seen returns what the page asked for, and what went wrong in it.
func (p *tab) seen() (requests, faults []string) {
	p.t.Helper()
	var s struct{ Requests, Faults []string }
	p.do("seen", nil, &s)
	return s.Requests, s.Faults
}

// nothingSerious: axe finds nothing serious in the page as it stands.
func nothingSerious(t *testing.T, p *tab, when string) {
	t.Helper()
	var found []string
	p.do("axe", nil, &found)
	for _, f := range found {
		t.Errorf("%s: %s", when, f)
	}
}
