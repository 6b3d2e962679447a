package sdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"blockdesk/e2e/browsertest"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/servicetest"
)

// The committed TypeScript SDK is what the OpenAPI document and a build
// make of its sources.
func TestTypeScriptBuild(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests is not Go")
	t.Parallel()
	dir, made := programtest.TypeScriptDir(t), t.TempDir()
	if out, err := programtest.RunClientIn(t, dir, "node", "tools/generate.mjs", "--check"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := programtest.RunClientIn(t, dir, "node", "node_modules/typescript/bin/tsc", "--outDir", made); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, got := tree(t, made), tree(t, filepath.Join(dir, "dist"))
	for name, text := range want {
		if !bytes.Equal(got[name], text) {
			t.Errorf("dist/%s differs from its source: run make sdk, and commit what it writes", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("dist/%s has no source: run make sdk, and commit what it writes", name)
	}
}

// tree returns the files below a folder, by path.
func tree(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[name], err = os.ReadFile(path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// The SDK's own tests, which need no service.
func TestTypeScriptUnits(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests is not Go")
	t.Parallel()
	dir := programtest.TypeScriptDir(t)
	files, err := filepath.Glob(filepath.Join(dir, "test", "*.test.mjs"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	args := append([]string{"--disable-warning=ExperimentalWarning", "--test", "--test-reporter=spec"}, files...)
	if out, err := programtest.RunClientIn(t, dir, "node", args...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// liveCounts is what test/live.mjs has seen, one way.
type liveCounts struct {
	Connections, Resumed, Gaps, Books, Trades, Epochs int
	Met                                               bool
}

// enough reports whether a feed has seen so many runs of the service, and enough in
// them: a run that has seen nothing proves nothing.
func (c *liveCounts) enough(runs int) bool {
	return c.Epochs == runs && c.Connections >= runs+1 && c.Resumed >= 1 && c.Books >= 25*runs && c.Trades >= 5*runs
}

// Both feeds of the SDK follow a market through broken connections, where they go
// on from where they were, and through a crash of the service.
func TestTypeScriptFeeds(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests is not Go")
	t.Parallel()
	dir := programtest.TypeScriptDir(t)
	s := programtest.Start(t, programtest.Config(t, ""))
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	client := exec.CommandContext(ctx, "node", filepath.Join(dir, "test", "live.mjs"), s.Addresses.Base, programtest.Symbol)
	var complaints bytes.Buffer
	client.Stderr = &complaints
	stop, out := programtest.Must(client.StdinPipe()), bufio.NewReader(programtest.Must(client.StdoutPipe()))
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := out.ReadString('\n'); line != "following\n" {
		t.Fatalf("%q, %v, %v\n%s", line, err, client.Wait(), &complaints)
	}
	counts := func() (seen map[string]*liveCounts) {
		if _, err := io.WriteString(stop, "counts\n"); err != nil {
			t.Fatalf("%v\n%s", err, &complaints)
		}
		line, err := out.ReadBytes('\n')
		if err := errors.Join(err, json.Unmarshal(line, &seen)); err != nil {
			t.Fatalf("%v: %s\n%s", err, line, &complaints)
		}
		return seen
	}
	a, b := fixtest.NewTrader(programtest.FirmA, 1), fixtest.NewTrader(programtest.FirmB, 2)
	for run := range 2 {
		if run > 0 {
			if err := s.Restart(ctx); err != nil {
				t.Fatal(err)
			}
		}
		fixtest.ConnectAll(t, s.Addresses.FIX, a, b)
		fixtest.TradeUntil(t, "feeds that have seen enough", func() bool {
			seen := counts()
			return seen["ws"].enough(run+1) && seen["sse"].enough(run+1)
		}, a, b)
		a.Disconnect()
		b.Disconnect()
		if err := errors.Join(a.Err(), b.Err()); err != nil {
			t.Fatal(err)
		}
		if run == 0 {
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop.Close()
	output, err := io.ReadAll(out)
	if err := errors.Join(err, client.Wait()); err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, &complaints)
	}
	var seen map[string]*liveCounts
	if err := json.Unmarshal(output, &seen); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, way := range []string{"ws", "sse"} {
		if c := seen[way]; !c.Met || c.Gaps > 0 || !c.enough(2) {
			t.Errorf("%s: %+v\n%s", way, c, &complaints)
		}
	}
}

// readmeConfig lifts the limits of an address, and lets a client say which is his.
const readmeConfig = `trusted_proxies: [127.0.0.1]
http: {market_data_per_minute: 0, rfq_writes_per_minute: 0, dvp_per_minute: 0}
`

// The lines and programs of the SDK's README, and its examples, work as they are
// printed, on what an integrator downloads.
func TestTypeScriptReadme(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests is not Go")
	t.Parallel()
	sdk := programtest.TypeScriptDir(t)
	for _, name := range []string{"npm", "curl", "tar"} {
		programtest.Tool(t, name)
	}
	config := filepath.Join(t.TempDir(), "blockdesk.yaml")
	if err := os.WriteFile(config, []byte(readmeConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	d := programtest.StartDemo(t, append(programtest.LongLived, "--config", config, "--set", programtest.WithChain(servicetest.LocalChain(t)))...)
	hurryChain(d, t)
	await.True(t, "a ready service", func() bool { return programtest.Status(t, d.At.Admin+"/readyz") == http.StatusOK })
	dir, places := d.ReadersFolder(t)
	text, err := os.ReadFile(filepath.Join(sdk, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	r := readme{t: t, d: d, sdk: sdk, dir: dir, text: places.Replace(string(text))}

	programs := r.blocks("js")
	if len(programs) != 3 {
		t.Fatalf("%d programs", len(programs))
	}
	r.write("quote.mjs", programs[0])
	for _, block := range r.blocks("sh") {
		for line := range strings.Lines(block) {
			r.line(strings.TrimSpace(line))
		}
	}
	for _, name := range []string{"dist/src/index.js", "examples/bot.ts", "package.json"} {
		if _, err := os.Stat(filepath.Join(dir, "package", name)); err != nil {
			t.Errorf("the archive has no %s: %v", name, err)
		}
	}
	t.Run("programs", func(t *testing.T) {
		for name, want := range r.examples() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r.runs(t, want.command, want.last)
			})
		}
		t.Run("every endpoint", func(t *testing.T) {
			t.Parallel()
			r.runs(t, "node "+filepath.Join(sdk, "test", "every.mjs")+" "+d.At.Base+" "+d.At.API, `^[0-9]{3} endpoints\n$`)
		})
		t.Run("follow", func(t *testing.T) {
			t.Parallel()
			r.write("follow.mjs", r.before("127.7.7.1")+endsWithABook+programs[1])
			r.runs(t, "node follow.mjs", `(?m)^[0-9]+ \[ '[0-9.]+', '[0-9.]+' \] \[ `)
		})
		t.Run("buy", func(t *testing.T) {
			t.Parallel()
			r.write("wallet.json", string(programtest.Must(os.ReadFile(filepath.Join(d.Data, "chain", "wallet-2.json")))))
			r.write("buy.mjs", r.before("127.7.7.2")+programs[2]+"console.log(`bought by ${signature}`);\n")
			r.runs(t, "node buy.mjs", `^bought by [1-9A-HJ-NP-Za-km-z]{80,88}\n$`)
		})
		t.Run("page", func(t *testing.T) {
			t.Parallel()
			r.shows(t, r.blocks("html")[0], `^[0-9.]+,[0-9.]+$`)
		})
	})
}

// endsWithABook ends a program when it has printed a book with both sides.
const endsWithABook = `const print = console.log;
console.log = (...said) => {
  print(...said);
  if (said.length === 3 && said[1] && said[2]) setImmediate(() => process.exit(0));
};
`

// hurryChain lets the local chain's blocks come faster than any chain's.
func hurryChain(d *programtest.Service, t *testing.T) {
	t.Helper()
	r := programtest.Post(t, d.At.Chain, "", `{"jsonrpc":"2.0","id":1,"method":"sandbox_setSlotMs","params":{"slotMs":50}}`)
	if r.Status != http.StatusOK || strings.Contains(r.Body, `"error"`) {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
}

// readme runs the SDK's README in a folder of its own.
type readme struct {
	t              *testing.T
	d              *programtest.Service
	sdk, dir, text string // text has our service's addresses in it
}

// blocks returns what is printed in a language, block by block.
func (r *readme) blocks(language string) (out []string) {
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(r.text, -1) {
		out = append(out, block[1])
	}
	return out
}

func (r *readme) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// line runs one line. npm looks into its cache first. Where it does not reach its
// registry, the package is put where npm would have put it.
func (r *readme) line(line string) {
	r.t.Helper()
	install, isInstall := strings.CutPrefix(line, "npm install ")
	out, err := programtest.ShellTry(r.t, r.dir, []string{
		"npm_config_prefer_offline=true", "npm_config_audit=false", "npm_config_fund=false",
		"npm_config_fetch_retries=0", "npm_config_fetch_timeout=20000",
	}, line)
	switch {
	case err != nil && isInstall:
		r.t.Logf("npm does not install here, the archive is unpacked: %v\n%s", err, out)
		r.unpack(install)
	case err != nil:
		r.t.Fatalf("%s: %v\n%s", line, err, out)
	case strings.HasPrefix(line, "node ") && !regexp.MustCompile(`^[0-9.]+ SLUSD for 1000\.000000 USDC until `).MatchString(out):
		r.t.Errorf("%s: %s", line, out)
	}
}

// unpack does by hand what npm install does.
func (r *readme) unpack(url string) {
	r.t.Helper()
	modules := filepath.Join(r.dir, "node_modules")
	if err := os.RemoveAll(modules); err != nil {
		r.t.Fatal(err)
	}
	programtest.Shell(r.t, r.dir, fmt.Sprintf("mkdir -p node_modules/blockdesk && curl -sf %s | tar xz -C node_modules/blockdesk --strip-components 1", url))
	for _, name := range []string{"@solana", "ws"} {
		if err := os.Symlink(filepath.Join(r.sdk, "node_modules", name), filepath.Join(modules, name)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// before is what stands before the README's later programs: its client, which
// comes from an address of its own, since each gets one token an hour.
func (r *readme) before(from string) string {
	return `import { Client } from 'blockdesk';
const from = (url, init) => fetch(url, { ...init, headers: { ...init.headers, 'x-forwarded-for': '` + from + `' } });
const client = new Client({ baseUrl: '` + r.d.At.Base + `', fetch: from });
const { ticket } = await client.getCurrentSellableTicket();
`
}

// sdkExample is a command of the README's table, and how what it prints ends.
type sdkExample struct{ command, last string }

// examples returns them by name, with the addresses that are not the demo's.
func (r *readme) examples() map[string]sdkExample {
	last := map[string]string{
		"quant-fund":   `T4-2 25000 USD: [0-9.]+ at [0-9.]+, .*\n$`,
		"market-maker": `"gaps":[0-9]+}; at [0-9]+ the book is that of REST\n$`,
		"bot":          `settled: [0-9.]+ SLUSD by \w+\n$`,
		"otc-desk":     `settled: [0-9.]+ SLUSD for 1000\.000000 USDC\n$`,
		"ccxt":         `(?s)convert 1000\.000000 USDC to [0-9.]+ SLUSD\n(watch [0-9]+\n){3}refused BadSymbol\n$`,
	}
	more := map[string]string{"bot": " --rpc " + r.d.At.Chain, "quant-fund": " --rounds 1", "market-maker": " --seconds 2"}
	out := map[string]sdkExample{}
	for _, m := range regexp.MustCompile("`(node node_modules/blockdesk/dist/examples/([a-z-]+)\\.js[^`]*)`").FindAllStringSubmatch(r.text, -1) {
		out[m[2]] = sdkExample{m[1] + " --base " + r.d.At.Base + more[m[2]], last[m[2]]}
	}
	if len(out) != len(last) {
		r.t.Fatalf("examples: %v", out)
	}
	return out
}

// runs runs a line whose output must have this in it.
func (r *readme) runs(t *testing.T, line, want string) {
	t.Helper()
	if out := programtest.Shell(t, r.dir, line); !regexp.MustCompile(want).MatchString(out) {
		t.Errorf("%s: no %s in:\n%s", line, want, out)
	}
}

// shows has a browser open a page with this in it, until its text is as wanted.
func (r *readme) shows(t *testing.T, html, want string) {
	t.Helper()
	c := browsertest.StartChromium(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<!doctype html><meta charset=utf-8><body>"+html)
	}))
	defer page.Close()
	p := c.Open(page.URL, "")
	p.Await("the page's text", "/"+want+"/.test(document.body.textContent)")
	if _, faults := p.Observed(); len(faults) > 0 {
		t.Errorf("in the browser: %v", faults)
	}
}
