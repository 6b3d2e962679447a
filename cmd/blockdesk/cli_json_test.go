package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/runtest"
	"blockdesk/service/demo"
	"blockdesk/settle/cosign"
)

// jsonCase is how a command is tried with --json: a command line that works and one
// that fails, behind the command's name. {data} is the folder of a running service,
// {kept} that of a stopped one, {new} a folder that is not there, {stub} a server
// that plays the part of one that settles.
type jsonCase struct {
	works string
	in    string
	lines bool // it prints JSON lines
	// elsewhere names the test, here or in e2e, that has it work, where it takes a
	// chain or minutes. Of the benchmarks whose figures are one report, TestBench runs
	// the shortest.
	elsewhere string
	process   bool // in a process of its own: it hardens it, or reads standard input
	stays     bool // such a process ends at a signal
	fails     string
	code      string
	exit      int
}

const stubbed = "--admin {stub} --operator-token t"

// jsonCases are all commands that are more than a list of others.
var jsonCases = map[string]jsonCase{
	"serve":                 {works: "--check --demo", fails: "--check --set risk.band_bps=-1", code: codeConfiguration, exit: exitFailed},
	"sandbox":               {elsewhere: "TestDocuments", fails: "--set chain.sandbox_dir={new}", code: codeFailed, exit: exitFailed},
	"signer":                {works: "--key {key} --socket {sock}", process: true, stays: true, fails: "--key {new} --socket {sock}", code: "NOT_FOUND", exit: exitFailed},
	"config":                {works: "--demo", fails: "--config {new}", code: codeConfiguration, exit: exitFailed},
	"config check":          {works: "--demo", fails: "--set risk.band_bps=-1", code: codeConfiguration, exit: exitFailed},
	"config keys":           {works: "fix", fails: "fixx", code: codeUsage, exit: exitUsage},
	"ticket list":           {works: "--data {data}", fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"ticket post":           {works: "--data {data} --pair SLUSD/USDC --label A --tranches 1000", fails: "--data {data} --pair A/B --label A --tranches 1000", code: "UNKNOWN_SYMBOL", exit: exitFailed},
	"ticket amend":          {works: "T1 --priority 3 --data {data}", fails: "T1 --data {data}", code: codeUsage, exit: exitUsage},
	"ticket withdraw":       {works: "T2 --data {data}", fails: "T --data {data}", code: codeUsage, exit: exitUsage},
	"price list":            {works: "--data {data}", fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"price set":             {works: "--rail SOL --usd 150 --data {data}", fails: "--data {data}", code: codeUsage, exit: exitUsage},
	"inventory list":        {works: "--data {data}", fails: "--data {data} --operator-token wrong", code: "OPERATOR_TOKEN_REFUSED", exit: exitFailed},
	"inventory set":         {works: "--pair SLUSD/USDC --amount 1000000 --data {data}", fails: "--pair SLUSD/USDC --data {data}", code: codeUsage, exit: exitUsage},
	"market list":           {works: "--data {data}", fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"market call":           {works: "--pair 92C/SLUSD --for 5m --data {data}", fails: "--pair 92C/SLUSD --for 5ms --data {data}", code: codeUsage, exit: exitUsage},
	"market halt":           {works: "--pair 92C/SLUSD --data {data}", fails: "--pair A/B --data {data}", code: "UNKNOWN_SYMBOL", exit: exitFailed},
	"market resume":         {works: "--pair 92C/SLUSD --data {data}", fails: "--data {data}", code: codeUsage, exit: exitUsage},
	"lock":                  {works: "--rail SOL --reason test --data {data}", fails: "--data {data}", code: codeUsage, exit: exitUsage},
	"unlock":                {works: "--rail SOL --data {data}", fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"money list":            {works: stubbed, fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"money refunded":        {works: "S --by T " + stubbed, fails: "S " + stubbed, code: codeUsage, exit: exitUsage},
	"money refund":          {works: "S --dry-run " + stubbed, fails: "S --all " + stubbed, code: codeUsage, exit: exitUsage},
	"money abandon":         {works: "C1 " + stubbed, fails: stubbed, code: codeUsage, exit: exitUsage},
	"money release":         {works: "C1 --i-have-looked " + stubbed, fails: "C1 --i-have-looked=false " + stubbed, code: codeUsage, exit: exitUsage},
	"money resolve":         {works: "S --note done " + stubbed, fails: "gone --note done " + stubbed, code: "UNKNOWN_PAYMENT", exit: exitFailed},
	"doctor":                {works: "--demo --data {new}", fails: "x", code: codeUsage, exit: exitUsage},
	"status":                {works: "--data {data}", fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"health":                {works: "--data {data}", fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"cluster status":        {works: "--admin {stub}", fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"cluster wait":          {works: "--admin {stub}", fails: "--admin 127.0.0.1:1 --within 1ms", code: codeNoService, exit: exitNoService},
	"cluster add":           {elsewhere: "TestClusterRunbook", fails: "a/b 127.0.0.1:1 --admin {stub}", code: codeUsage, exit: exitUsage},
	"cluster replace":       {elsewhere: "TestClusterRunbook", fails: "a a 127.0.0.1:1 --admin {stub}", code: codeUsage, exit: exitUsage},
	"cluster finalize":      {elsewhere: "TestClusterRunbook", fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"cluster remove":        {elsewhere: "TestClusterRunbook", fails: "a " + stubbed, code: codeFailed, exit: exitFailed},
	"cluster transfer":      {elsewhere: "TestClusterRunbook", fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"token list":            {works: "--data {data}", fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"token revoke":          {works: "K0000000000000000 " + stubbed, fails: "K1 " + stubbed, code: codeUsage, exit: exitUsage},
	"password":              {works: "", in: "secret\n", process: true, fails: "secret", code: codeUsage, exit: exitUsage},
	"fix cert":              {works: "{new}", fails: "{new} --days 0", code: codeUsage, exit: exitUsage},
	"fix client":            {works: "--comp-id GUEST --password-file {password} --sequence-file {new} --data {data}", lines: true, process: true, fails: "--data {data}", code: codeUsage, exit: exitUsage},
	"fix log":               {works: "{data}/messages", lines: true, fails: "{new}", code: "NOT_FOUND", exit: exitFailed},
	"fix sessions":          {works: "--data {data}", fails: "--data {new}", code: codeNoService, exit: exitNoService},
	"fix reset-seq":         {works: "GUEST --force --data {data}", fails: "NOBODY --data {data}", code: "UNKNOWN_SESSION", exit: exitFailed},
	"fix kick":              {works: "MAKER --data {data}", fails: "a/b --data {data}", code: codeUsage, exit: exitUsage},
	"fix announce":          {works: "soon --data {data}", fails: "soon --data {new}", code: codeNoService, exit: exitNoService},
	"backup":                {works: "{new} --data {kept}", fails: "{kept} --data {kept}", code: "NOT_EMPTY", exit: exitFailed},
	"restore":               {works: "{kept} --data {new}", fails: "{new} --data {kept}", code: "NO_JOURNAL", exit: exitFailed},
	"journal verify":        {works: "--data {kept}", fails: "--data {data}", code: "IN_USE", exit: exitFailed},
	"journal replay":        {works: "--data {kept}", fails: "--data {new}", code: "NO_JOURNAL", exit: exitFailed},
	"journal dump":          {works: "--data {kept} --to 20", lines: true, fails: "--data {new}", code: "NO_JOURNAL", exit: exitFailed},
	"journal audit":         {works: "--data {kept}", lines: true, fails: "--data {new}", code: "NO_JOURNAL", exit: exitFailed},
	"key new":               {works: "{new}", process: true, fails: "{key}", code: "EXISTS", exit: exitFailed},
	"key show":              {works: "{key}", process: true, fails: "{new}", code: "NOT_FOUND", exit: exitFailed},
	"wallet sign":           {works: "--key {key} --base {stub}", in: "{transaction}", process: true, fails: "--key {key} --base {stub}", code: codeFailed, exit: exitFailed},
	"wallet pay":            {elsewhere: "TestReadme", fails: "--key {key} --data {new}", code: codeNoService, exit: exitNoService},
	"wallet login":          {works: "--key {key} --base {stub}", fails: "--key {key} --base http://127.0.0.1:1", code: codeNoService, exit: exitNoService},
	"bench engine":          {elsewhere: "TestBench", fails: "--part flow", code: codeUsage, exit: exitUsage},
	"bench durable":         {elsewhere: "TestBench", fails: "--dir {new}", code: "NOT_FOUND", exit: exitFailed},
	"bench recovery":        {elsewhere: "TestBench", fails: "--dir {new}", code: "NOT_FOUND", exit: exitFailed},
	"bench fix":             {elsewhere: "TestBench", fails: "--dir {new}", code: "NOT_FOUND", exit: exitFailed},
	"bench ws":              {elsewhere: "TestBench", fails: "--dir {new}", code: "NOT_FOUND", exit: exitFailed},
	"bench rest":            {elsewhere: "TestBench", fails: "--dir {new}", code: "NOT_FOUND", exit: exitFailed},
	"bench settle":          {elsewhere: "TestBench", fails: "--dir {new}", code: "NOT_FOUND", exit: exitFailed},
	"bench sybil":           {elsewhere: "TestBench", fails: "--dir {new}", code: "NOT_FOUND", exit: exitFailed},
	"bench cluster":         {elsewhere: "TestBenchGroups", fails: "--dir {new}", code: "NOT_FOUND", exit: exitFailed},
	"bench all":             {elsewhere: "TestBench", fails: "x", code: codeUsage, exit: exitUsage},
	"bench play":            {elsewhere: "TestRecordedDayThroughEveryGateway", fails: "--day never", code: codeUsage, exit: exitUsage},
	"completion bash":       {works: "", fails: "x", code: codeUsage, exit: exitUsage},
	"completion zsh":        {works: "", fails: "x", code: codeUsage, exit: exitUsage},
	"completion fish":       {works: "", fails: "x", code: codeUsage, exit: exitUsage},
	"completion powershell": {works: "", fails: "x", code: codeUsage, exit: exitUsage},
	"help":                  {works: "ticket post", fails: "tickets", code: codeUsage, exit: exitUsage},
	"version":               {works: "", fails: "x", code: codeUsage, exit: exitUsage},
}

// TestEveryCommandJSON walks all commands: each is in the table, answers with JSON
// where it works and where it fails, and ends with the exit code that is said.
func TestEveryCommandJSON(t *testing.T) {
	t.Parallel()
	places := newJSONPlaces(t)
	seen := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		name := strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "blockdesk"), " ")
		if cmd.Hidden {
			return // a child of bench
		}
		if cmd.HasSubCommands() || cmd.IsAdditionalHelpTopicCommand() {
			places.mustWork(t, strings.Fields(name+" --help --json"), &jsonCase{})
		}
		if cmd.HasSubCommands() {
			places.mustFail(t, strings.Fields(name+" nope --json"), &jsonCase{code: codeUsage, exit: exitUsage})
		}
		c, known := jsonCases[name]
		if !known && cmd.RunE != nil && !cmd.HasSubCommands() {
			t.Errorf("blockdesk %s has no row in jsonCases", name)
		}
		if known {
			seen[name] = true
			if c.elsewhere == "" {
				places.mustWork(t, append(strings.Fields(name), append(strings.Fields(places.fill(t, c.works)), "--json")...), &c)
			}
			places.mustFail(t, append(strings.Fields(name), append(strings.Fields(places.fill(t, c.fails)), "--json")...), &c)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root())
	tests := testNames(t)
	for name, c := range jsonCases {
		if !seen[name] {
			t.Errorf("jsonCases has %s, and there is no such command", name)
		}
		if c.elsewhere != "" && !tests[c.elsewhere] {
			t.Errorf("jsonCases has %s tested by %s, and there is no such test", name, c.elsewhere)
		}
	}
}

// testNames are the names of this package's tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	here, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	others, err := filepath.Glob("../../e2e/*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range append(here, others...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(t `).FindAllSubmatch(text, -1) {
			names[string(found[1])] = true
		}
	}
	return names
}

// jsonPlaces are what the table's command lines name.
type jsonPlaces struct {
	names       map[string]string
	transaction string
	dir         string
	made        int
}

func newJSONPlaces(t *testing.T) *jsonPlaces {
	t.Helper()
	dir := t.TempDir()
	p := &jsonPlaces{dir: dir}
	running := programtest.StartDemo(t, "--set", "fix.message_log_dir="+filepath.Join(dir, "messages"))
	stopped := programtest.StartDemo(t)
	if err := stopped.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "messages"), filepath.Join(running.Data, "messages")); err != nil {
		t.Fatal(err)
	}
	password, key := filepath.Join(dir, "password"), filepath.Join(dir, "key")
	if err := os.WriteFile(password, []byte(demo.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, err := cosign.NewKeyFile(key)
	if err != nil {
		t.Fatal(err)
	}
	// One signature, one key that signs, a blockhash, no instruction.
	raw := append(append([]byte{1}, make([]byte, 64)...), 1, 0, 0, 1)
	raw = append(append(append(raw, address[:]...), make([]byte, 32)...), 0)
	text, err := json.Marshal(map[string]any{"build_id": "B1", "transaction": raw})
	if err != nil {
		t.Fatal(err)
	}
	stub := httptest.NewServer(http.HandlerFunc(playSettling))
	t.Cleanup(stub.Close)
	p.transaction = string(text)
	p.names = map[string]string{
		"{data}": running.Data, "{kept}": stopped.Data, "{password}": password, "{key}": key, "{stub}": stub.URL,
	}
	return p
}

// playSettling answers as the admin address of a service that settles, and as its
// handshake.
func playSettling(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case bytes.Contains(body, []byte(`"gone"`)):
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"ok":false,"code":"UNKNOWN_PAYMENT","error":"no such payment","request_id":"7"}`)
	case strings.HasSuffix(r.URL.Path, "/handshake") && bytes.Contains(body, []byte(`"signature"`)):
		fmt.Fprint(w, `{"ok":true,"access_token":"secret"}`)
	case strings.HasSuffix(r.URL.Path, "/handshake"):
		fmt.Fprint(w, `{"ok":true,"nonce":"bm9uY2U="}`)
	case r.URL.Path == "/cluster":
		fmt.Fprint(w, `{"ok":true,"id":"a","role":"leader","serves":true,"level":true,"leader":{"id":"a"},"members":[{"id":"a","voter":true}]}`)
	case r.URL.Path == "/desk/money":
		fmt.Fprint(w, `{"ok":true,"counts":{"doubtful":1},"lists":{"doubtful":{"items":[{"claim_id":"C1","rail":"USDC","amount":"5"}]}}}`)
	default:
		fmt.Fprint(w, `{"ok":true,"claim_id":"C1","state":"done"}`)
	}
}

func (p *jsonPlaces) fill(t *testing.T, line string) string {
	t.Helper()
	for name, path := range p.names {
		line = strings.ReplaceAll(line, name, path)
	}
	for _, name := range []string{"{new}", "{sock}"} {
		p.made++
		line = strings.ReplaceAll(line, name, filepath.Join(p.dir, fmt.Sprint("new", p.made)))
	}
	return line
}

func (p *jsonPlaces) mustWork(t *testing.T, args []string, c *jsonCase) {
	t.Helper()
	in := strings.ReplaceAll(c.in, "{transaction}", p.transaction)
	out, errOut, exit := runJSON(t, args, in, c.process, c.stays)
	if exit != exitDone {
		t.Errorf("blockdesk %q: exit code %d\n%s%s", args, exit, out, errOut)
		return
	}
	values := parseJSON(t, args, out)
	if !c.lines && (len(values) != 1 || values[0]["ok"] != true) {
		t.Errorf("blockdesk %q is no one object with ok true:\n%s", args, out)
	}
	if c.lines && (len(values) == 0 || strings.Count(out, "\n") != len(values)) {
		t.Errorf("blockdesk %q is no JSON lines:\n%s", args, out)
	}
}

func (p *jsonPlaces) mustFail(t *testing.T, args []string, c *jsonCase) {
	t.Helper()
	out, errOut, exit := runJSON(t, args, "", c.process, false)
	values := parseJSON(t, args, out)
	if len(values) == 0 || strings.Count(strings.TrimSpace(out), "\n") != len(values)-1 {
		t.Errorf("blockdesk %q: not one line a failure:\n%s%s", args, out, errOut)
		return
	}
	last := values[len(values)-1]
	if last["ok"] != false || last["code"] != c.code || last["error"] == "" || exit != c.exit {
		t.Errorf("blockdesk %q: exit code %d, want %d; code %v, want %s\n%s%s", args, exit, c.exit, last["code"], c.code, out, errOut)
	}
}

// runJSON runs a command line: here, or in a process of its own, which gets a signal to
// stop once it has said something.
func runJSON(t *testing.T, args []string, in string, process, stays bool) (out, errOut string, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if !process {
		exit = execute(ctx, args, &stdout, &stderr)
		return stdout.String(), stderr.String(), exit
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Stdin, cmd.Stderr = strings.NewReader(in), &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(io.TeeReader(pipe, &stdout))
	var first any
	if err := json.NewDecoder(lines).Decode(&first); err == nil && stays {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	_, _ = io.Copy(io.Discard, lines)
	_ = cmd.Wait() // the exit code says it
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func parseJSON(t *testing.T, args []string, text string) (values []map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var v map[string]any
		if err := d.Decode(&v); err == io.EOF {
			return values
		} else if err != nil {
			t.Errorf("blockdesk %q prints no JSON: %v\n%.500s", args, err, text)
			return nil
		}
		values = append(values, v)
	}
}
