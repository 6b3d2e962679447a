package sdk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
	"blockdesk/service/servicetest"
)

// Versions of the Python programs; internal/suite/install.sh installs them.
const (
	pythonGenerator = "openapi-python-client==0.29.1"
	schemathesis    = "schemathesis==4.32.5"
)

// goCall is one call of a client that oapi-codegen makes.
const goCall = `package main

import (
	"context"
	"fmt"
	"os"

	"blockdesk/internal/clients/oapi/api"
)

func main() {
	c, err := api.NewClientWithResponses(os.Args[1])
	if err != nil {
		panic(err)
	}
	r, err := c.GetDepthWithResponse(context.Background(), &api.GetDepthParams{Symbol: "SLUSD/USDC"})
	if err != nil || r.JSON200 == nil {
		panic(fmt.Sprint(err, r))
	}
	fmt.Println(r.JSON200.Symbol, r.JSON200.Bids[0])
}
`

// pythonCall is the same of one that openapi-python-client makes.
const pythonCall = `import compileall, sys
assert compileall.compile_dir("blockdesk_public_api_client", quiet=1)
from blockdesk_public_api_client import Client
from blockdesk_public_api_client.api.market import get_depth, get_market_status
client = Client(base_url=sys.argv[1])
depth = get_depth.sync(client=client, symbol="SLUSD/USDC", limit=3)
assert type(get_market_status.sync(client=client)).__name__ == "MarketStatus"
print(depth.symbol, depth.bids[0][0])
`

// TestGeneratedClients: public generators make clients of the OpenAPI document without a
// warning; the clients compile and read a book of a running service.
func TestGeneratedClients(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests is not ours")
	t.Parallel()
	document := filepath.Join(programtest.Root(t), "sdk", "openapi", "svc_public_api_v1.json")
	for name, generate := range map[string]func(t *testing.T, document, base string) string{
		"openapi-python-client": pythonClient, "openapi-typescript": typeScriptClient, "oapi-codegen": goClient,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := programtest.StartDemo(t)
			if got := generate(t, document, d.At.Base); !strings.HasPrefix(got, "SLUSD/USDC ") {
				t.Errorf("the client reads %q", got)
			}
		})
	}
}

// run runs a program in a folder and returns what it prints; it must end well.
func run(t *testing.T, dir, command string, args ...string) string {
	t.Helper()
	out, err := programtest.RunClientIn(t, dir, command, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", command, strings.Join(args, " "), err, out)
	}
	return out
}

// pipTool returns a program of pip's, or skips the test.
func pipTool(t *testing.T, pinned string) string {
	t.Helper()
	name, version, _ := strings.Cut(pinned, "==")
	path, err := exec.LookPath(name)
	if err == nil {
		var out string
		if out, err = programtest.RunClient(t, path, "--version"); !strings.Contains(out, version) {
			err = errors.Join(err, errors.New(out))
		}
	}
	if err != nil {
		runtest.SkipMissing(t, pinned, "python3 -m pip install "+pinned)
	}
	return path
}

func pythonClient(t *testing.T, document, base string) string {
	generator := pipTool(t, pythonGenerator)
	dir := filepath.Join(t.TempDir(), "client")
	if out := run(t, "", generator, "generate", "--path", document, "--output-path", dir, "--meta", "none", "--fail-on-warning"); strings.Contains(out, "WARNING") {
		t.Errorf("it warns:\n%s", out)
	}
	// Without --meta the folder is the package.
	if err := os.Rename(dir, filepath.Join(filepath.Dir(dir), "blockdesk_public_api_client")); err != nil {
		t.Fatal(err)
	}
	return run(t, filepath.Dir(dir), programtest.Tool(t, "python3"), "-c", pythonCall, base)
}

func typeScriptClient(t *testing.T, document, base string) string {
	node, from := programtest.Tool(t, "node"), programtest.ClientDir(t, "generators")
	modules := filepath.Join(from, "node_modules")
	for _, name := range []string{"openapi-typescript", "openapi-fetch", "typescript", "@stoplight/spectral-cli"} {
		if _, err := os.Stat(filepath.Join(modules, filepath.FromSlash(name))); err != nil {
			runtest.SkipMissing(t, name+" of npm", "npm --prefix internal/clients/generators ci")
		}
	}
	if out := run(t, "", node, filepath.Join(modules, "@stoplight", "spectral-cli", "dist", "index.js"), "lint", "--fail-severity=hint",
		"--ruleset", filepath.Join(from, "spectral.yaml"), document); !strings.Contains(out, "No results") {
		t.Errorf("Spectral finds:\n%s", out)
	}
	dir := t.TempDir()
	if err := errors.Join(os.Symlink(modules, filepath.Join(dir, "node_modules")), copyFile(dir, from, "call.ts"), copyFile(dir, from, "package.json")); err != nil {
		t.Fatal(err)
	}
	run(t, dir, node, filepath.Join(modules, "openapi-typescript", "bin", "cli.js"), document, "-o", "api.ts")
	run(t, dir, node, filepath.Join(modules, "typescript", "bin", "tsc"), "--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck", "call.ts")
	return run(t, dir, node, "call.js", base)
}

// copyFile copies a file of a folder into another one.
func copyFile(to, from, name string) error {
	text, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, name), text, 0o600)
}

func goClient(t *testing.T, document, base string) string {
	command, from := programtest.Tool(t, "go"), programtest.ClientDir(t, "oapi")
	dir := t.TempDir()
	if err := errors.Join(copyFile(dir, from, "go.mod"), copyFile(dir, from, "go.sum"), os.Mkdir(filepath.Join(dir, "api"), 0o700),
		os.WriteFile(filepath.Join(dir, "main.go"), []byte(goCall), 0o600)); err != nil {
		t.Fatal(err)
	}
	// A test downloads nothing.
	goTool := func(args ...string) []string {
		return append([]string{"GOFLAGS=-trimpath", "GOPROXY=off", command}, args...)
	}
	if out, err := programtest.RunClientIn(t, dir, "env", goTool("tool", "oapi-codegen", "-version")...); err != nil {
		runtest.SkipMissing(t, "oapi-codegen ("+strings.TrimSpace(out)+")", "go -C internal/clients/oapi mod download")
	}
	run(t, dir, "env", goTool("tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", filepath.Join("api", "api.go"), document)...)
	return run(t, dir, "env", goTool("run", ".", base)...)
}

// TestSchemathesis: requests that schemathesis invents of the OpenAPI document get answers
// that it has. BLOCKDESK_SCHEMATHESIS is how many it invents of an operation: 700 take
// ten minutes or more.
//
// It leaves out paths of the other address, streams, and UDF, which answers every request
// with 200. A request of the right form may still name what does not exist, so that it is
// refused is no fault; and a request without a token is 403, as the description has it, where
// schemathesis wants 401.
func TestSchemathesis(t *testing.T) {
	runtest.SkipUnderRace(t, "what it tests is not ours")
	t.Parallel()
	command := pipTool(t, schemathesis)
	d := programtest.StartDemo(t, "--set", "http.market_data_per_minute=0", "--set", "http.partner_per_minute=0", "--set", "http.dvp_per_minute=0",
		"--set", programtest.WithChain(servicetest.LocalChain(t)))
	n := programtest.FromEnv(t, "BLOCKDESK_SCHEMATHESIS", 2)
	out, err := programtest.RunClientIn(t, t.TempDir(), command, "run", filepath.Join(programtest.Root(t), "sdk", "openapi", "svc_public_api_v1.json"),
		"--url", d.At.Base, "--phases", "examples,coverage,fuzzing", "--max-examples", strconv.FormatUint(n, 10), "--request-timeout", "60",
		"--generation-deterministic", "--exclude-checks", "positive_data_acceptance,missing_required_header",
		"--exclude-path-regex", `^/(status|proof|pairs|ws/rfq/health)$|/market/stream$|/ws/rfq$|^/udf/|^/api/v1/rfq/settlement/`)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
