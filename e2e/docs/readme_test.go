package docs

import (
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/solana"
)

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

// walletPlaceholder is what a reader of an example replaces by the address of his wallet.
const walletPlaceholder = "YOUR_WALLET_ADDRESS"

// runExample runs an example's curl line as a reader does: with his wallet in it. As it
// is printed, a line that needs a wallet is refused for its wallet, and reserves nothing.
func runExample(t *testing.T, line string) {
	t.Helper()
	if strings.Contains(line, walletPlaceholder) {
		out := programtest.Shell(t, t.TempDir(), line)
		if !strings.Contains(out, `"reason":"not_an_address"`) || !strings.Contains(out, `"field":"bot_wallet"`) {
			t.Errorf("%s: %s", line, out)
		}
		key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
		line = strings.ReplaceAll(line, walletPlaceholder, solana.Base58(solana.Address(key)))
	}
	checkAnswer(t, line, programtest.Shell(t, t.TempDir(), line))
}

// readmePrints is what the lines of README.md and the tour have to print.
var readmePrints = []expectation{
	{in: "curl -sN ", prints: `event: l2\ndata: \{`},
	{in: "/adapters/", prints: `^\[\{`},
	{in: "/claims/$ID", prints: `"state": "settled"`},
	{in: "wallet pay", prints: `^[1-9A-HJ-NP-Za-km-z]{80,88}\s`},
	{in: "/dvp/builds/$ID", prints: `"state":"finalized"`},
	{in: "fix client", prints: `(?s)logged on.*accepted.*cancelled.*quoted`},
	{in: "fix sessions", prints: `GUEST`},
	{in: "money list", prints: `nothing needs an operator`},
	{in: "ticket list", prints: `T1-1`},
	{in: "journal dump", prints: `(?m)^(.*\n){3}`},
}

// TestReadme runs the lines of README.md and then those of the tour as they are printed,
// in their order: those of a stopped service after it has been stopped. Without a chain
// it skips those that settle.
func TestReadme(t *testing.T) {
	runtest.SkipUnderRace(t, "it runs a document's lines one after the other, which other tests race")
	t.Parallel()
	programtest.Tool(t, "curl")
	var more []string
	chain, err := filepath.Abs(filepath.Join("..", "..", "internal", "sandbox"))
	if err == nil {
		err = (sandbox.Options{Dir: chain}).Check(t.Context())
	}
	if err == nil {
		more = append(programtest.LongLived, "--set", programtest.WithChain(chain))
	} else {
		t.Logf("no claim is settled: %v", err)
	}
	d := programtest.StartDemo(t, more...)
	await.True(t, "a ready service", func() bool { return programtest.Status(t, d.At.Admin+"/readyz") == http.StatusOK })
	dir, places := d.ReadersFolder(t)
	term := openTerminalIn(t, dir, places)
	run := 0
	var lines []printedLine
	for _, name := range []string{"README.md", "docs/tour.md"} {
		lines = append(lines, findPrinted(name, readTracked(t, name))...)
	}
	for _, p := range lines {
		needsChain := regexp.MustCompile(`\$(CLAIM|ID|PAID|TOKEN|BUILD)\b|claim-take|wallet|money|sleep`).MatchString(p.text)
		if p.block == inlineCode || isNotRun(p.text) || needsChain && more == nil {
			continue
		}
		if strings.HasPrefix(p.text, "bin/blockdesk journal") {
			if err := d.Stop(); err != nil {
				t.Fatalf("%v\n%s", err, d.Out)
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
	if strings.Contains(d.Out.String(), "level=WARN") || strings.Contains(d.Out.String(), "level=ERROR") {
		t.Errorf("the demo warns:\n%s", d.Out)
	}
}

// firstSteps returns what the service prints at its start for newcomers: pages by name, and
// a command.
func firstSteps(d *programtest.Service, t *testing.T) map[string]string {
	t.Helper()
	return await.Value(t, "the first steps", func() map[string]string {
		steps := map[string]string{}
		for line := range strings.Lines(d.Out.String()) {
			for _, name := range []string{"board", "wallet", "docs", "try"} {
				if rest, ok := strings.CutPrefix(line, name+" "); ok {
					steps[name] = strings.TrimSpace(rest)
				}
			}
		}
		return steps
	}, func(steps map[string]string) bool { return len(steps) == 4 })
}

// The service's output at its start, the robot manifest for robots,
// and the lines among the examples of the OpenAPI document, work as they are printed.
func TestFirstCommandsWork(t *testing.T) {
	t.Parallel()
	programtest.Tool(t, "curl")
	d := programtest.StartDemo(t, documentLimits...)
	t.Run("manifest", func(t *testing.T) {
		var manifest struct {
			Examples map[string]string `json:"examples"`
		}
		programtest.GetJSON(t, d.At.Base+"/api/v1/rfq/robot-manifest", &manifest)
		if len(manifest.Examples) < 4 {
			t.Fatalf("only %v", manifest.Examples)
		}
		for _, line := range manifest.Examples {
			runExample(t, line)
		}
	})
	t.Run("openapi", func(t *testing.T) {
		_, places := d.ReadersFolder(t)
		lines := 0
		for _, m := range regexp.MustCompile(`"(curl (?:[^"\\]|\\.)*)"`).FindAllStringSubmatch(readTracked(t, "sdk/openapi/svc_public_api_v1.json"), -1) {
			var line string
			if err := json.Unmarshal([]byte(`"`+m[1]+`"`), &line); err != nil {
				t.Fatal(err)
			}
			lines++
			if line = places.Replace(line); !strings.Contains(line, "/stream?") {
				runExample(t, line)
			} else if out := programtest.Shell(t, t.TempDir(), line+" | head -12"); !strings.Contains(out, "\ndata: {") {
				t.Errorf("%s: %s", line, out)
			}
		}
		if lines < 8 {
			t.Errorf("only %d lines", lines)
		}
	})
	steps := firstSteps(d, t)
	for _, name := range []string{"board", "wallet", "docs"} {
		if status := programtest.Status(t, steps[name]); status != http.StatusOK {
			t.Errorf("%s: %s: status %d", name, steps[name], status)
		}
	}
	if out := programtest.Shell(t, t.TempDir(), steps["try"]); !strings.Contains(out, "\n  \"quote_id\": ") {
		t.Errorf("%s: %s", steps["try"], out)
	}
}
