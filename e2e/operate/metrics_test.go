package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/service/servicetest"
)

// family is a metric as /metrics shows it.
type family struct {
	kind, help string
	labels     map[string]bool
}

// families reads the text format, as far as our own exposition goes.
func families(t *testing.T, text string) map[string]*family {
	t.Helper()
	out := map[string]*family{}
	label := regexp.MustCompile(`([a-z_]+)="`)
	for line := range strings.Lines(text) {
		if name, help, ok := strings.Cut(strings.TrimPrefix(line, "# HELP "), " "); ok && strings.HasPrefix(line, "# HELP ") {
			out[name] = &family{help: strings.TrimSpace(help), labels: map[string]bool{}}
			continue
		}
		if name, kind, ok := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " "); ok && strings.HasPrefix(line, "# TYPE ") {
			out[name].kind = strings.TrimSpace(kind)
			continue
		}
		series, _, _ := strings.Cut(line, " ")
		name, labels, _ := strings.Cut(series, "{")
		f := out[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if f == nil {
				f = out[strings.TrimSuffix(name, suffix)]
			}
		}
		if f == nil {
			t.Fatalf("a series without a family: %s", line)
		}
		for _, m := range label.FindAllStringSubmatch(labels, -1) {
			f.labels[m[1]] = true
		}
	}
	return out
}

// wholeDesk starts single-desk.yaml with a mirrored instrument and followers' NATS
// beside it, so that every family of a single node's metrics is there, and returns
// what it shows.
func wholeDesk(t *testing.T) (d *programtest.Service, text string) {
	t.Helper()
	node := silentNode(t)
	desk := fillDesk(t, node)
	config := string(programtest.Must(os.ReadFile(desk.config)))
	mirrored := `    book_source: matched
  - {symbol: SOL/USDC, price_decimals: 6, qty_decimals: 9, tick: "0.0001", lot: "0.000001", min_qty: "0.000001", max_qty: "1000", max_price: "100000", book_source: mirrored}
`
	mirror := programtest.DeployFile(t, "mirror-only.yaml")
	config = strings.Replace(config, "    book_source: matched\n", mirrored, 1) +
		strings.Replace(mirror[strings.Index(mirror, "\nmirror:"):], "https://rpc-one.example,https://rpc-two.example,https://rpc-three.example", node, 1)
	if err := os.WriteFile(desk.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	d = programtest.StartServe(t, filepath.Join(desk.folder, "data"), "--config", desk.config, "--set", "urls.base_url=", // not the proxy
		"--set", "fanout=nats", "--set", "nats.embedded=true", "--set", "nats.listen=127.0.0.1:0")
	programtest.Status(t, d.At.Base+"/api/v1/market/depth?symbol=SLUSD/USDC")
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.At.Base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("nonsense\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	await.True(t, "all families", func() bool {
		text = programtest.Get(t, d.At.Admin+"/metrics")
		return strings.Contains(text, "blockdesk_settlement_node_slot{") && strings.Contains(text, "blockdesk_settlement_desk_balance_atoms{") && strings.Contains(text, "blockdesk_mirror_node_slot{") &&
			strings.Contains(text, "blockdesk_http_unreadable_requests_total{") &&
			strings.Contains(text, "blockdesk_fanout_frames_total") && strings.Contains(text, "blockdesk_http_request_seconds_bucket{")
	})
	return d, text
}

// wholeGroup starts a group of one node and returns what it shows.
func wholeGroup(t *testing.T) (d *programtest.Service, text string) {
	t.Helper()
	port, held, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	config := filepath.Join(t.TempDir(), "node.yaml")
	group := fmt.Sprintf("journal: raft\ncluster: {id: a}\npeers: [{id: a, address: 127.0.0.1:%d}]\nrfq: {enabled: false}\n", port) +
		fmt.Sprintf("routing: {group: eu, secret_file: %s}\ngroups:\n", servicetest.SecretFile(t, 32)) +
		"  - {name: eu, number: 1, instruments: [SLUSD/USDC], nodes: [" + servicetest.EUNode + "]}\n" +
		"  - {name: us, number: 2, instruments: [92C/SLUSD], nodes: [" + strings.ReplaceAll(servicetest.USNode, "127.0.0.2:8", "127.0.0.1:1") + "]}\n"
	if err := os.WriteFile(config, []byte(programtest.Config(t, "")+group), 0o600); err != nil {
		t.Fatal(err)
	}
	d = programtest.StartServe(t, t.TempDir(), "--config", config)
	await.True(t, "the node leads", func() bool {
		programtest.Answered(d.At.Base + "/api/v1/market/depth?symbol=92C/SLUSD") // of a group that is not there
		metrics, whole := strings.CutPrefix(programtest.Answered(d.At.Admin+"/metrics"), "200 ")
		text = metrics
		return whole && strings.Contains(text, "blockdesk_cluster_leader 1") && strings.Contains(text, "blockdesk_engine_seq") &&
			strings.Contains(text, "blockdesk_http_forwarded_requests_total{")
	})
	return d, text
}

// wholeFollower starts a follower, whose metrics are there before its leader is, and
// returns what it shows.
func wholeFollower(t *testing.T) (d *programtest.Service, text string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "follower.yaml")
	if err := os.WriteFile(config, []byte("role: follower\nfanout: nats\nnats: {urls: [\"nats://127.0.0.1:1\"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d = programtest.StartServe(t, t.TempDir(), "--config", config)
	return d, programtest.Get(t, d.At.Admin+"/metrics")
}

// Every metric is named by Prometheus' rules and has a help text, docs/metrics.md has
// each, and what the dashboard and the alerts ask for is there.
func TestMetrics(t *testing.T) {
	t.Parallel()
	d, text := wholeDesk(t)
	node, groupText := wholeGroup(t)
	follower, followerText := wholeFollower(t)
	for _, shown := range []string{text, groupText, followerText} {
		problems, err := promlint.New(strings.NewReader(shown)).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if n := strings.Count(text, "\n"); n > 2000 {
		t.Errorf("%d lines a scrape", n)
	}
	known := families(t, text)
	for _, more := range []string{groupText, followerText} {
		for name, f := range families(t, more) {
			if known[name] == nil {
				known[name] = f
			}
		}
	}
	t.Run("reference", func(t *testing.T) { checkReference(t, known) })
	t.Run("dashboard", func(t *testing.T) { checkDashboard(t, known) })
	t.Run("alerts", func(t *testing.T) { checkAlerts(t, known) })
	if err := errors.Join(d.Stop(), node.Stop(), follower.Stop()); err != nil {
		t.Fatal(err)
	}
}

// checkReference compares the list of docs/metrics.md with what there is;
// UPDATE_GOLDEN=1 writes it. The name of a counter ends in _total, a histogram says that
// it is one, and everything else is a gauge.
func checkReference(t *testing.T, known map[string]*family) {
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(known)) {
		f := known[name]
		if !strings.HasPrefix(name, "blockdesk_") || strings.HasPrefix(f.help, "Deprecated:") {
			continue
		}
		if (f.kind == "counter") != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, f.kind)
		}
		delete(f.labels, "le")
		shown := name
		if len(f.labels) > 0 {
			shown += "{" + strings.Join(slices.Sorted(maps.Keys(f.labels)), ",") + "}"
		}
		help := f.help
		if f.kind == "histogram" {
			help = "Histogram. " + help
		}
		fmt.Fprintf(&list, "- `%s`: %s\n", shown, help)
	}
	path := filepath.Join("..", "..", "docs", "metrics.md")
	have := string(programtest.Must(os.ReadFile(path)))
	begin, end := strings.Index(have, "- `blockdesk_"), strings.LastIndex(have, ".\n")+2
	if begin < 0 {
		t.Fatal("docs/metrics.md has no list")
	}
	if have[begin:end] == list.String() {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Errorf("docs/metrics.md is not what /metrics has: UPDATE_GOLDEN=1 go test ./e2e/operate -run TestMetrics writes it")
		return
	}
	if err := os.WriteFile(path, []byte(have[:begin]+list.String()+have[end:]), 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkExpression holds the names and labels of an expression to what there is.
func checkExpression(t *testing.T, where, expr string, known map[string]*family) {
	t.Helper()
	if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") || expr == "" {
		t.Errorf("%s: %s", where, expr)
	}
	labels := map[string]bool{"job": true, "instance": true, "le": true}
	names := regexp.MustCompile(`\b(blockdesk|go|process)_[a-z_]+\b`).FindAllString(expr, -1)
	if len(names) == 0 && !strings.HasPrefix(expr, "up{") {
		t.Errorf("%s: asks for nothing of ours: %s", where, expr)
	}
	for _, name := range names {
		f := known[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if f == nil {
				f = known[strings.TrimSuffix(name, suffix)]
			}
		}
		if f == nil {
			t.Errorf("%s: there is no %s", where, name)
			continue
		}
		maps.Copy(labels, f.labels)
	}
	used := regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`).FindAllStringSubmatch(expr, -1)
	for _, m := range regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			used = append(used, []string{"", strings.TrimSpace(l)})
		}
	}
	for _, m := range used {
		if !labels[m[1]] {
			t.Errorf("%s: nothing in it has the label %s: %s", where, m[1], expr)
		}
	}
}

func checkDashboard(t *testing.T, known map[string]*family) {
	type target struct{ Expr, LegendFormat string }
	var board struct {
		Title  string
		Panels []struct {
			ID                       int
			Type, Title, Description string
			Datasource               struct{ UID string }
			GridPos                  struct{ H, W, X, Y int }
			FieldConfig              struct{ Defaults struct{ Unit string } }
			Targets                  []target
		}
	}
	if err := json.Unmarshal([]byte(programtest.DeployFile(t, "grafana/blockdesk.json")), &board); err != nil {
		t.Fatal(err)
	}
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	ids, rows, n := map[int]bool{}, 0, 0
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("%s: its id is another's", p.Title)
		}
		if ids[p.ID] = true; p.Type == "row" {
			rows++
			continue
		}
		if p.Title == "" || len(p.Description) < 10 || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %d, %s: lacks something", p.ID, p.Title)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s: stands out", p.Title)
		}
		for _, x := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(x.Expr)
			checkExpression(t, p.Title, expr, known)
			n++
			fmt.Fprintf(&rules, "      - {record: 'panel:%d', expr: %q}\n", n, expr)
		}
	}
	if rows != 10 || n < 70 {
		t.Errorf("%d rows, %d expressions", rows, n)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// promtool runs Prometheus' own tool, which parses and evaluates for real.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), programtest.Tool(t, "promtool"), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

// checkAlerts: each alert says what is wrong and where the runbook has it; its own
// tests make it fire.
func checkAlerts(t *testing.T, known map[string]*family) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(programtest.DeployFile(t, "prometheus/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for _, name := range []string{"runbook.md", "cluster.md"} {
		for line := range strings.Lines(string(programtest.Must(os.ReadFile(filepath.Join("..", "..", "docs", name))))) {
			if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
				headings["docs/"+name+"#"+strings.ReplaceAll(strings.ToLower(title), " ", "-")] = true
			}
		}
	}
	tests := programtest.DeployFile(t, "prometheus/alerts_test.yaml")
	n := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			n++
			checkExpression(t, r.Alert, r.Expr, known)
			if s := r.Labels["severity"]; s != "page" && s != "ticket" {
				t.Errorf("%s: severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" || !strings.Contains(r.Annotations["description"], "$labels.instance") {
				t.Errorf("%s: does not say what is wrong, or where", r.Alert)
			}
			if at := r.Annotations["runbook_url"]; !headings[at] {
				t.Errorf("%s: there is no entry %s", r.Alert, at)
			}
			if !strings.Contains(tests, `alertname="`+r.Alert+`"`) {
				t.Errorf("%s: no test makes it fire", r.Alert)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d alerts", n)
	}
	dir := filepath.Join("..", "..", "docs", "deploy", "prometheus")
	promtool(t, "check", "config", filepath.Join(dir, "prometheus.yml"))
	promtool(t, "test", "rules", filepath.Join(dir, "alerts_test.yaml"))
}
