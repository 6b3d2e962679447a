package sdk

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/eddsa"
	"blockdesk/service/servicetest"
)

// pythonSDK is the Python SDK with a service to try it on.
type pythonSDK struct {
	t      *testing.T
	d      *programtest.Service
	dir    string // where a reader of its README is: data and sdk are here
	python string
	// pipless: there is no pip here, so the package is used from its folder.
	pipless bool
	next    atomic.Int32 // last byte of the newest client's address
}

// newPythonSDK starts a demo whose chain runs twenty times as fast as mainnet, with more
// flags, or skips the test.
func newPythonSDK(t *testing.T, more ...string) *pythonSDK {
	t.Helper()
	python := programtest.Tool(t, "python3")
	if out, err := programtest.RunClient(t, python, "-c", "import sys; assert sys.version_info >= (3, 9), sys.version"); err != nil {
		runtest.SkipMissing(t, "Python 3.9 (here is "+strings.TrimSpace(out)+")", "apt-get install python3")
	}
	s := &pythonSDK{t: t, dir: t.TempDir(), python: python}
	_, err := exec.LookPath("pip")
	s.pipless = err != nil
	config := filepath.Join(t.TempDir(), "blockdesk.yaml")
	if err := os.WriteFile(config, []byte("trusted_proxies: [127.0.0.1]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	more = append(more, "--set", programtest.WithChain(servicetest.LocalChain(t)), "--config", config)
	s.d = programtest.StartDemo(t, append(slices.Clone(programtest.LongLived), more...)...)
	await.True(t, "a ready service", func() bool { return programtest.Status(t, s.d.At.Admin+"/readyz") == 200 })
	programtest.Post(t, s.d.At.Chain, "", `{"jsonrpc":"2.0","id":1,"method":"sandbox_setSlotMs","params":[{"slotMs":20}]}`)
	if err := os.CopyFS(filepath.Join(s.dir, "sdk", "python"), os.DirFS(filepath.Join("..", "..", "sdk", "python"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.d.Data, filepath.Join(s.dir, "data")); err != nil {
		t.Fatal(err)
	}
	return s
}

// newcomer returns what the addresses in a document are for a client with an IP of
// its own, which has used up no limit yet. It comes through a proxy.
func (s *pythonSDK) newcomer() *strings.Replacer {
	s.t.Helper()
	ip := fmt.Sprintf("192.0.2.%d", s.next.Add(1))
	through := func(service string) string {
		target, err := url.Parse(service)
		if err != nil {
			s.t.Fatal(err)
		}
		proxy := httptest.NewServer(&httputil.ReverseProxy{
			FlushInterval: -1,
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Header.Set("X-Forwarded-For", ip)
			},
		})
		s.t.Cleanup(proxy.CloseClientConnections)
		s.t.Cleanup(proxy.Close)
		return proxy.URL
	}
	return strings.NewReplacer("http://127.0.0.1:8080", through(s.d.At.Base), "http://127.0.0.1:8000", through(s.d.At.API),
		"http://127.0.0.1:8899", s.d.At.Chain, "127.0.0.1:9878", s.d.At.FIX)
}

// run runs a command in the reader's folder and returns what it
// prints. Python finds the package where pip has put it, or among the sources.
func (s *pythonSDK) run(t *testing.T, command string, args ...string) (string, error) {
	t.Helper()
	site := filepath.Join(s.dir, "site")
	from := site
	if s.pipless {
		from = filepath.Join(s.dir, "sdk", "python")
	}
	// pip may not use the network.
	return s.runWith(t, "", []string{
		"PYTHONPATH=" + from, "PIP_TARGET=" + site, "PIP_UPGRADE=1", "PIP_NO_INDEX=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"PIP_ROOT_USER_ACTION=ignore", "PIP_BREAK_SYSTEM_PACKAGES=1",
	}, command, args...)
}

// script runs a script of the tests with the package's sources.
func (s *pythonSDK) script(t *testing.T, stdin, name string, args ...string) (string, error) {
	t.Helper()
	return s.runWith(t, stdin, []string{"PYTHONPATH=" + filepath.Join(s.dir, "sdk", "python")}, s.python, append([]string{"sdk/python/tests/" + name}, args...)...)
}

func (s *pythonSDK) runWith(t *testing.T, stdin string, env []string, command string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = s.dir, append(os.Environ(), env...), strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var documentBlock = regexp.MustCompile("(?s)```(sh|python)\n(.*?)```")

// pythonPrints is what a line or a block of the README has to print, by a word in
// it. Those that are not here have to print something.
var pythonPrints = map[string]string{
	"pip install":             "Successfully installed blockdesk-",
	"quant_fund.py":           "in the order book", // whichever is better: the demo's market moves
	"market_maker.py":         "quote sell",
	"bot.py":                  "settled: ",
	"otc_desk.py":             "finalized in slot",
	"exchange.py":             "watched: ",
	"unittest":                "OK",
	"client.quote(1000, pair": "SLUSD for 1000.000000 USDC",
	"client.trade(":           "finalized",
	"client.follow(":          "settled",
	"NO/SUCH":                 "400 UNKNOWN_SYMBOL",
}

// The README of the Python SDK works as it is printed, from pip to a settled claim,
// its examples and unit tests included.
func TestPythonSDK(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests is not Go")
	t.Parallel()
	s := newPythonSDK(t)
	t.Run("readme", s.readme)
	t.Run("answers", s.answers)
	t.Run("TLS", s.speaksTLS)
	t.Run("signatures", s.judgesSignatures)
}

// readme runs the blocks of python and the lines of sh one after the other, since
// the demo has one FIX guest. Each block is a client's with an address of its own.
func (s *pythonSDK) readme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "sdk", "python", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]int{}
	for _, block := range documentBlock.FindAllStringSubmatch(string(text), -1) {
		language, places := block[1], s.newcomer()
		if language == "python" {
			s.prints(t, block[2], s.python, "-c", places.Replace(block[2]))
			tried[language]++
			continue
		}
		for line := range strings.Lines(block[2]) {
			tried[language]++
			if s.pipless && strings.HasPrefix(line, "pip ") {
				t.Logf("no pip here: not run: %s", line)
				continue
			}
			s.prints(t, line, "/bin/sh", "-c", places.Replace(line))
		}
	}
	if tried["sh"] < 8 || tried["python"] < 7 {
		t.Errorf("only %v were tried", tried)
	}
	s.botGoesOn(t)
	triedAll(t, string(text))
}

// botGoesOn has the bot look after the claim that the README's line has bought, as if
// it had died before it noted the end.
func (s *pythonSDK) botGoesOn(t *testing.T) {
	t.Helper()
	journal := filepath.Join(s.dir, "bot-journal.jsonl")
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if err := os.WriteFile(journal, []byte(before+"\n"), 0o600); err != nil || !found || !strings.Contains(before, "l1_signature") {
		t.Fatalf("%v: the journal is %q", err, text)
	}
	const again = "import pathlib, sys\nfrom blockdesk import Client\nsys.path.insert(0, 'sdk/python/examples')\nimport bot\n" +
		"bot.go_on(Client(sys.argv[1]), pathlib.Path('bot-journal.jsonl'))\n"
	out, err := s.run(t, s.python, "-c", again, s.newcomer().Replace("http://127.0.0.1:8080"))
	if err != nil || !strings.Contains(out, "is settled") {
		t.Errorf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(journal); err != nil || !strings.Contains(string(text), `"ended": "settled"`) {
		t.Errorf("%v: the journal is %q", err, text)
	}
}

// triedAll reports what the examples print and the README, whose lines are tried,
// has not.
func triedAll(t *testing.T, readme string) {
	t.Helper()
	examples, err := filepath.Glob(filepath.Join("..", "..", "sdk", "python", "examples", "*.py"))
	if err != nil || len(examples) < 5 {
		t.Fatalf("%d examples: %v", len(examples), err)
	}
	for _, example := range examples {
		source, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`(?m)^ +(python3 .*)$`).FindAllSubmatch(source, -1) {
			if !strings.Contains(readme, string(line[1])+"\n") {
				t.Errorf("%s prints a command that README.md lacks, so no test runs it: %s", example, line[1])
			}
		}
	}
}

// The endpoints and types of the Python SDK are those of the OpenAPI document.
func TestPythonSDKIsGenerated(t *testing.T) {
	t.Parallel()
	out, err := programtest.RunClient(t, programtest.Tool(t, "python3"), "-B", filepath.Join("..", "..", "sdk", "python", "tools", "generate.py"), "--check")
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// answers has every endpoint asked, and every answer held to its type. A client's
// limit is twenty requests at once, so there are several.
func (s *pythonSDK) answers(t *testing.T) {
	t.Parallel()
	args := []string{s.newcomer().Replace("http://127.0.0.1:8000")}
	for range 6 {
		args = append(args, s.newcomer().Replace("http://127.0.0.1:8080"))
	}
	if out, err := s.script(t, "", "live.py", args...); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// overTLS reads over REST and two streams, and prints what it has heard of.
const overTLS = `
import asyncio, sys
from blockdesk import AsyncClient, BookEvent, Client

url = sys.argv[1]
print(Client(url).market.depth("SLUSD/USDC").best_bid)
for event in Client(url).stream(["SLUSD/USDC"], channels=["l2"]):
    if isinstance(event, BookEvent):
        print("blocking", event.book)
        break

async def main():
    async with AsyncClient(url) as client:
        await client.market.ticker("SLUSD/USDC")
        async for event in client.stream(["SLUSD/USDC"], channels=["l2"], via="sse"):
            if isinstance(event, BookEvent):
                print("asyncio", event.book)
                break

asyncio.run(main())
`

// speaksTLS has REST and streams over TLS, blocking and in asyncio; a certificate
// that is not trusted ends it.
func (s *pythonSDK) speaksTLS(t *testing.T) {
	t.Parallel()
	target, err := url.Parse(s.d.At.Base)
	if err != nil {
		t.Fatal(err)
	}
	secured := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(target))
	secured.Config.ErrorLog = log.New(io.Discard, "", 0) // it would log the refused handshake
	secured.StartTLS()
	defer secured.Close()
	defer secured.CloseClientConnections()
	trusted := filepath.Join(t.TempDir(), "trusted.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secured.Certificate().Raw})
	if err := os.WriteFile(trusted, block, 0o600); err != nil {
		t.Fatal(err)
	}
	sources := "PYTHONPATH=" + filepath.Join(s.dir, "sdk", "python")
	out, err := s.runWith(t, "", []string{sources, "SSL_CERT_FILE=" + trusted}, s.python, "-c", overTLS, secured.URL)
	if err != nil || !strings.Contains(out, "blocking OrderBook(") || !strings.Contains(out, "asyncio OrderBook(") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = s.runWith(t, "", []string{sources}, s.python, "-c", overTLS, secured.URL)
	if err == nil || !strings.Contains(out, "CERTIFICATE_VERIFY_FAILED") {
		t.Errorf("a stranger's certificate: %v\n%s", err, out)
	}
}

// prints runs something of a document and holds it to pythonPrints.
func (s *pythonSDK) prints(t *testing.T, printed, command string, args ...string) {
	t.Helper()
	began := time.Now()
	out, err := s.run(t, command, args...)
	want := ""
	for word, prints := range pythonPrints {
		if strings.Contains(printed, word) {
			want = prints
		}
	}
	if err != nil || strings.TrimSpace(out) == "" || !strings.Contains(out, want) {
		t.Errorf("%s\n%v; it prints no %q:\n%s", printed, err, want, out)
	}
	t.Logf("%6.2fs %s", time.Since(began).Seconds(), strings.SplitN(printed, "\n", 2)[0])
}

// judgesSignatures holds the SDK's ed25519 to the standard library's signatures and
// to our verifier's verdicts, over what is right, changed, and forged.
func (s *pythonSDK) judgesSignatures(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	var lines bytes.Buffer
	var verdicts []bool
	var signatures []string
	add := func(key, message, signature, seed []byte) {
		line, err := json.Marshal([]string{hex.EncodeToString(key), hex.EncodeToString(message), hex.EncodeToString(signature), hex.EncodeToString(seed)})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
		verdicts = append(verdicts, eddsa.Verify(solana.Address(key), message, solana.Signature(signature)))
		own := ""
		if len(seed) > 0 {
			own = hex.EncodeToString(ed25519.Sign(ed25519.NewKeyFromSeed(seed), message))
		}
		signatures = append(signatures, own)
	}
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	for range 40 {
		seed, message := random(ed25519.SeedSize), random(rng.IntN(100))
		private := ed25519.NewKeyFromSeed(seed)
		key, signature := []byte(private.Public().(ed25519.PublicKey)), ed25519.Sign(private, message)
		add(key, message, signature, seed)
		forged := bytes.Clone(signature)
		forged[rng.IntN(64)] ^= 1 << rng.IntN(8)
		add(key, message, forged, nil)
		changed := bytes.Clone(key)
		changed[rng.IntN(32)] ^= 1 << rng.IntN(8)
		add(changed, message, signature, nil)
		add(random(32), message, signature, nil)
	}
	out, err := s.script(t, lines.String(), "signatures.py")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	judged := 0
	for scanner := bufio.NewScanner(strings.NewReader(out)); scanner.Scan(); judged++ {
		var got [2]any
		if err := json.Unmarshal(scanner.Bytes(), &got); err != nil || judged >= len(verdicts) {
			t.Fatalf("%v: %s", err, scanner.Text())
		}
		if got[0] != verdicts[judged] || got[1] != signatures[judged] {
			t.Errorf("case %d: %v, want %v %s", judged, got, verdicts[judged], signatures[judged])
		}
	}
	if judged != len(verdicts) {
		t.Errorf("%d of %d judged", judged, len(verdicts))
	}
}
