package operate

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/config"
)

// filledDesk is single-desk.yaml with everything filled in that it asks for, each by
// the command that its comments name.
type filledDesk struct {
	config string // the file's path
	folder string // where what it names is
}

// deployPassword is that of participants.yaml's FUND1.
const deployPassword = "SECRET-fix-password"

func fillDesk(t *testing.T, nodes string) filledDesk {
	t.Helper()
	dir, err := os.MkdirTemp("", "desk") // short: it has a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := func(stdin string, args ...string) string {
		t.Helper()
		var out, errOut strings.Builder
		cmd := exec.Command(programtest.Binary(t), args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = strings.NewReader(stdin), &out, &errOut, dir
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v %s", args, err, errOut.String())
		}
		return strings.TrimSpace(out.String())
	}
	address := program("", "key", "new", filepath.Join(dir, "key.json"))
	treasury := program("", "key", "new", filepath.Join(dir, "treasury.json"))
	program("", "fix", "cert", filepath.Join(dir, "cert"))
	sum := strings.Repeat("ab", 32)
	participants := strings.ReplaceAll(programtest.DeployFile(t, "participants.yaml"), "REPLACE-PASSWORD-HASH", program(deployPassword+"\n", "password"))
	text := strings.NewReplacer(
		"REPLACE-OPERATOR", "anna", "REPLACE-TOKEN-SHA256", sum, "REPLACE-TREASURY-ADDRESS", treasury,
		"REPLACE-BASE-MINT", "So11111111111111111111111111111111111111112", "REPLACE-DESK-ADDRESS", address,
		"/etc/blockdesk/participants.yaml", filepath.Join(dir, "participants.yaml"),
		"/etc/blockdesk/fix.pem", filepath.Join(dir, "cert", "server.pem"),
		"/etc/blockdesk/fix.key", filepath.Join(dir, "cert", "server.key"),
		"/run/blockdesk-signer/socket", filepath.Join(dir, "socket"),
		"https://rpc-one.example,https://rpc-two.example,https://rpc-three.example", nodes,
	).Replace(programtest.DeployFile(t, "single-desk.yaml"))
	for _, left := range []string{participants, text} {
		if at := strings.Index(left, "REPLACE-"); at >= 0 {
			t.Fatalf("not filled in: %.40s", left[at:])
		}
	}
	d := filledDesk{config: filepath.Join(dir, "blockdesk.yaml"), folder: dir}
	for name, text := range map[string]string{"participants.yaml": participants, "blockdesk.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// silentNode is a node of the chain that knows its slot and the lamports of the desk, and
// nothing else.
func silentNode(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		results := map[string]string{
			"getSlot": "1000",
			// One account: the desk's wallet with 0.05 SOL. A question about more gets no
			// usable answer.
			"getMultipleAccounts": `{"context":{"slot":1000},"value":[{"lamports":50000000,"owner":"11111111111111111111111111111111",` +
				`"data":["","base64"],"executable":false}]}`,
		}
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil || results[call.Method] == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, results[call.Method])
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// The configurations are what the program takes, once what they ask for is there,
// and no sooner.
func TestDeployConfigurations(t *testing.T) {
	t.Parallel()
	check := func(want int, config string) {
		t.Helper()
		if code, out := programtest.EndsWith(t, "serve", "--check", "--config", config); code != want {
			t.Errorf("%s: ends with %d: %s", config, code, out)
		}
	}
	at := func(name string) string {
		return programtest.Must(filepath.Abs(filepath.Join("..", "..", "docs", "deploy", name)))
	}
	check(0, at("demo.yaml"))
	check(0, at("mirror-only.yaml"))
	check(1, at("single-desk.yaml"))
	d := fillDesk(t, "https://rpc-one.example")
	check(0, d.config)
	for name, needs := range map[string]bool{"cluster-node.yaml": true, "follower.yaml": false} {
		text := strings.NewReplacer(
			"REPLACE-OPERATOR", "anna", "REPLACE-TOKEN-SHA256", strings.Repeat("ab", 32),
			"/etc/blockdesk/participants.yaml", filepath.Join(d.folder, "participants.yaml"),
			"/etc/blockdesk/node.pem", filepath.Join(d.folder, "cert", "server.pem"), "/etc/blockdesk/node.key", filepath.Join(d.folder, "cert", "server.key"),
			"/etc/blockdesk/fix.pem", filepath.Join(d.folder, "cert", "server.pem"), "/etc/blockdesk/fix.key", filepath.Join(d.folder, "cert", "server.key"),
			"/etc/blockdesk/group-ca.pem", filepath.Join(d.folder, "cert", "ca.pem"),
		).Replace(programtest.DeployFile(t, name))
		file := filepath.Join(d.folder, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		check(0, file)
		if needs {
			check(1, at(name))
		}
	}
	all, err := filepath.Glob(at("*.yaml"))
	if err != nil || len(all) != 6 {
		t.Errorf("%d files, of which some are not tested: %v", len(all), err)
	}
}

// mirror-only.yaml and demo.yaml come up as they are, on other ports.
func TestDeployedStart(t *testing.T) {
	t.Parallel()
	at := func(name string) string {
		return programtest.Must(filepath.Abs(filepath.Join("..", "..", "docs", "deploy", name)))
	}
	s := programtest.StartServe(t, t.TempDir(), "--config", at("mirror-only.yaml"), "--set", "mirror.rpc_urls="+silentNode(t))
	if body := programtest.Get(t, s.At.Admin+"/metrics"); !strings.Contains(body, `blockdesk_mirror_age_seconds{symbol="SOL/USDC"}`) {
		t.Error("nothing is mirrored")
	}
	demo := programtest.StartServe(t, t.TempDir(), "--config", at("demo.yaml"))
	await.True(t, "the demo", func() bool { return programtest.Status(t, demo.At.Admin+"/readyz") == http.StatusOK })
	orders := regexp.MustCompile(`(?m)^blockdesk_engine_seq (\d{3,})$`)
	await.True(t, "orders", func() bool { return orders.MatchString(programtest.Get(t, demo.At.Admin+"/metrics")) })
	if err := demo.Stop(); err != nil {
		t.Fatal(err)
	}
	// A start, what the demo's operator commands, two logons, a stop: nothing an order.
	if n := strings.Count(demo.Out.String(), "level="); n > 40 {
		t.Errorf("%d records in the log of a hundred orders:\n%s", n, demo.Out)
	}
}

// section returns the directives of a unit's section.
func section(t *testing.T, unit, name string) map[string][]string {
	t.Helper()
	out, in := map[string][]string{}, ""
	for line := range strings.Lines(programtest.DeployFile(t, "systemd/"+unit)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			in = strings.Trim(line, "[]")
		case in == name:
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				t.Errorf("%s: %s", unit, line)
			}
			out[key] = append(out[key], value)
		}
	}
	return out
}

// The units run command lines that there are, restart what a restart can mend, and
// take away what the program does not need.
func TestDeployUnits(t *testing.T) {
	for unit, least := range map[string]map[string]string{
		"blockdesk.service":        {"Type": "notify", "WatchdogSec": "30", "LimitNOFILE": "65536", "TimeoutStartSec": "15min", "User": "blockdesk"},
		"blockdesk-signer.service": {"Type": "exec", "PrivateNetwork": "yes", "RestrictAddressFamilies": "AF_UNIX", "User": "blockdesk-signer"},
	} {
		s := section(t, unit, "Service")
		for key, value := range map[string]string{
			"NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "CapabilityBoundingSet": "", "PrivateDevices": "yes",
			"MemoryDenyWriteExecute": "yes", "LimitCORE": "0", "Restart": "on-failure", "StateDirectoryMode": "0700", "UMask": "0077",
			"SystemCallArchitectures": "native",
		} {
			least[key] = value
		}
		for key, value := range least {
			if !slices.Equal(s[key], []string{value}) {
				t.Errorf("%s: %s is %q, want %q", unit, key, s[key], value)
			}
		}
		// A panic and the watchdog's SIGABRT end a Go program with 2: a unit that
		// takes that for a wrong command line leaves a crashed desk down.
		if prevent := s["RestartPreventExitStatus"]; prevent != nil {
			t.Errorf("%s: is not started again after %q", unit, prevent)
		}
		for _, key := range []string{"ExecStart", "ExecStartPre"} {
			for _, line := range s[key] {
				words := strings.Fields(strings.ReplaceAll(line, "REPLACE-UID", "999"))
				if words[0] != "/usr/local/bin/blockdesk" {
					t.Errorf("%s: %s", unit, line)
				}
				if err := programtest.ParseCommand(words[1:]); err != nil {
					t.Errorf("%s: %s: %v", unit, line, err)
				}
			}
		}
	}
}

// systemd takes the units, and finds little that they leave open.
func TestDeployUnitsBySystemd(t *testing.T) {
	t.Parallel()
	analyze := programtest.Tool(t, "systemd-analyze")
	dir := t.TempDir()
	exe := programtest.Binary(t)
	for _, unit := range []string{"blockdesk.service", "blockdesk-signer.service"} {
		text := strings.NewReplacer("/usr/local/bin/blockdesk", exe, "REPLACE-UID", "999").Replace(programtest.DeployFile(t, "systemd/"+unit))
		if err := os.WriteFile(filepath.Join(dir, unit), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", filepath.Join(dir, "blockdesk.service"), filepath.Join(dir, "blockdesk-signer.service")).CombinedOutput()
	if strings.Contains(string(out), "Failed to initialize manager") {
		runtest.SkipMissing(t, "systemd that can verify units ("+strings.TrimSpace(string(out))+")", "apt-get install systemd, as a user with a runtime folder")
	}
	if err != nil || strings.Contains(string(out), dir) || strings.Contains(string(out), "blockdesk") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	for _, unit := range []string{"blockdesk.service", "blockdesk-signer.service"} {
		out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20", "--no-pager", filepath.Join(dir, unit)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: more than 2.0 of 10 is open: %v\n%s", unit, err, out)
		}
	}
}

// The image is made of what there is: its bases are pinned by digest, it runs as nobody, its
// command lines are the program's, and nothing that the program embeds is left out.
func TestDeployImage(t *testing.T) {
	t.Parallel()
	file := strings.ReplaceAll(programtest.DeployFile(t, "docker/Dockerfile"), "\\\n", "")
	pinned := regexp.MustCompile(`^FROM \S+:[a-z0-9.-]+@sha256:[0-9a-f]{64}( AS build)?$`)
	bases, user, lines := 0, "", map[string]string{}
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "FROM":
			bases++
			if user = ""; !pinned.MatchString(line) || strings.Contains(line, ":latest") {
				t.Errorf("not pinned: %s", line)
			}
		case "USER":
			user = rest
		case "HEALTHCHECK":
			_, lines["HEALTHCHECK"], _ = strings.Cut(rest, "CMD ")
		case "ENTRYPOINT", "CMD":
			lines[word] = rest
		}
	}
	if bases != 2 || user != "65532:65532" {
		t.Errorf("%d stages, the last one's user is %q", bases, user)
	}
	words := func(key string) (out []string) {
		if err := json.Unmarshal([]byte(lines[key]), &out); err != nil {
			t.Errorf("%s %s: a shell would be needed: %v", key, lines[key], err)
		}
		return out
	}
	if entry := words("ENTRYPOINT"); !slices.Equal(entry, []string{"/usr/local/bin/blockdesk"}) {
		t.Errorf("the entry is %q", entry)
	}
	for _, line := range [][]string{words("CMD"), words("HEALTHCHECK")[1:]} {
		if err := programtest.ParseCommand(line); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	checkBuildContext(t)
}

// checkBuildContext holds .dockerignore to what the build reads.
func checkBuildContext(t *testing.T) {
	t.Helper()
	root := programtest.Root(t)
	text, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	ignored := func(name string) bool {
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			pattern, anywhere := strings.CutPrefix(line, "**/")
			for at := name; at != "."; at = path.Dir(at) {
				whole, _ := path.Match(pattern, at)
				part, _ := path.Match(pattern, path.Base(at))
				if whole || anywhere && part {
					return true
				}
			}
		}
		return false
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		`{{if not .Standard}}{{if .Module.Main}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, "./cmd/blockdesk")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range strings.Fields(string(out)) {
		rel, err := filepath.Rel(root, name)
		if err != nil || ignored(rel) {
			t.Errorf("%s is built in, and left out of the image's build: %v", name, err)
		}
		n++
	}
	if n < 200 || !ignored("docs/deploy/README.md") || !ignored("internal/sandbox/node_modules/x/y.js") || !ignored("cmd/blockdesk/deploy_test.go") {
		t.Errorf("%d files, or what is not needed goes along", n)
	}
}

// The files that the compose file mounts exist, and its settings are the program's.
func TestDeployCompose(t *testing.T) {
	t.Parallel()
	var file struct {
		Services map[string]struct {
			Image       string
			Environment map[string]string
			Volumes     []string
			Ports       []string
			Networks    []string
		}
		Volumes, Networks map[string]any
	}
	if err := yaml.Unmarshal([]byte(programtest.DeployFile(t, "docker/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "docs", "deploy", "docker")
	for name, s := range file.Services {
		if name != "blockdesk" && !regexp.MustCompile(`^\S+:v?\d+\.\d+\.\d+@sha256:[0-9a-f]{64}$`).MatchString(s.Image) {
			t.Errorf("%s: %s is not pinned", name, s.Image)
		}
		for _, v := range s.Volumes {
			from := strings.Split(strings.Replace(v, "${CONFIG:-../mirror-only.yaml}", "../mirror-only.yaml", 1), ":")[0]
			if _, named := file.Volumes[from]; named {
				continue
			}
			if _, err := os.Stat(filepath.Join(dir, from)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") || strings.Contains(p, "8090") {
				t.Errorf("%s: %s is open to all", name, p)
			}
		}
		for _, n := range s.Networks {
			if _, ok := file.Networks[n]; !ok {
				t.Errorf("%s: no network %s", name, n)
			}
		}
	}
	var environ []string
	for name, value := range file.Services["blockdesk"].Environment {
		environ = append(environ, name+"="+value)
	}
	if _, _, err := config.Load(filepath.Join(dir, "..", "mirror-only.yaml"), environ, nil); err != nil || len(environ) != 5 {
		t.Errorf("%q: %v", environ, err)
	}
	if _, err := fs.Stat(os.DirFS(dir), "Dockerfile"); err != nil {
		t.Error(err)
	}
}
