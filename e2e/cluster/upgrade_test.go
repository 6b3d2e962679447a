package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/bench/server"
	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/httpgw/admin"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/operator"
)

// release010 is the commit of release 0.1.0.
const release010 = "42f4a26745b448e828ddc0dc0ae9d072312dfbac"

// oldBinary returns the program of release 0.1.0. It is built once, and kept; a source tree
// without history, or a disk that is nearly full, skips the test.
func oldBinary(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("short: it builds the program of release 0.1.0")
	}
	const low = 11 // release 0.1.0 takes cancels only below 10 %, which no setting of it changes
	if disk, err := vfs.Default.GetDiskUsage(t.TempDir()); err != nil || disk.AvailBytes*100 < disk.TotalBytes*low {
		t.Skipf("release 0.1.0 needs a disk with at least %d %% free: %d of %d bytes, %v", low, disk.AvailBytes, disk.TotalBytes, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "blockdesk-e2e", "release-0.1.0")
	exe := filepath.Join(dir, "blockdesk")
	if _, err := os.Stat(exe); err == nil {
		return exe
	}
	archive, err := exec.Command("git", "-C", programtest.Root(t), "archive", release010).Output()
	if err != nil {
		t.Skipf("the source tree has no history with release 0.1.0: %v", err)
	}
	source := t.TempDir()
	unpack := exec.Command("tar", "-x", "-C", source)
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(dir, fmt.Sprint("blockdesk.", os.Getpid()))
	build := exec.Command("go", "build", "-buildvcs=false", "-o", built, "./cmd/blockdesk")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building release 0.1.0: %v: %s", err, out)
	}
	if err := os.Rename(built, exe); err != nil {
		t.Fatal(err)
	}
	return exe
}

// upgradeLoad posts tickets and asks for quotes, as long as it runs.
type upgradeLoad struct {
	g    *group
	wait sync.WaitGroup
	stop context.CancelFunc

	mu     sync.Mutex
	acks   []string // labels
	quotes int
	last   error
}

func (l *upgradeLoad) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.wait.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			l.post(ctx, fmt.Sprint("block ", n))
			programtest.Pause(ctx, 20*time.Millisecond)
		}
	})
}

// post posts a ticket until it is acknowledged, and then asks for a quote of it once.
func (l *upgradeLoad) post(ctx context.Context, label string) {
	text := programtest.Must(json.Marshal(map[string]any{"pair": programtest.Symbol, "label": label, "tranches": []string{"1000"}}))
	key := operator.NewToken()
	for at := 0; ctx.Err() == nil; at++ {
		n := l.g.nodes[at%len(l.g.nodes)]
		status, body, err := l.g.tryCommand(n, "/desk/tickets", key, text)
		if err == nil && status == http.StatusOK {
			l.mu.Lock()
			l.acks = append(l.acks, label)
			l.mu.Unlock()
			l.quote(n, body)
			return
		}
		l.mu.Lock()
		l.last = fmt.Errorf("%s: %d %w %.200s", n.id, status, err, body)
		l.mu.Unlock()
		programtest.Pause(ctx, 5*time.Millisecond)
	}
}

func (l *upgradeLoad) quote(n *groupNode, ticket []byte) {
	var answer restAnswer
	if json.Unmarshal(ticket, &answer) != nil {
		return
	}
	in := programtest.Must(json.Marshal(map[string]any{"order_id": answer.Ticket.Order, "tranche_id": answer.Ticket.Order + "-1", "fill_usd": "250", "rail": "USDC"}))
	resp, err := l.g.http.Post(n.url("base")+"/api/v1/rfq/quote", "application/json", bytes.NewReader(in))
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		l.mu.Lock()
		l.quotes++
		l.mu.Unlock()
	}
}

// progress waits until so many more tickets are acknowledged.
func (l *upgradeLoad) progress(more int) {
	l.g.T.Helper()
	count := func() int { l.mu.Lock(); defer l.mu.Unlock(); return len(l.acks) }
	target := count() + more
	err := await.Poll(l.g.T.Context(), "tickets to be acknowledged", func() bool { return count() >= target })
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.g.T.Fatalf("%v; last: %v", err, l.last)
	}
}

// orders sends orders with what release 0.1.0 has no flags for, over FIX, to the leader.
func (l *upgradeLoad) orders(phase string) {
	t := l.g.T
	t.Helper()
	client, err := fixclient.Dial(t.Context(), fixclient.Options{
		Addr: l.g.leader().listen["fix"], SenderCompID: programtest.FirmA, TargetCompID: "BLOCKDESK", Username: programtest.FirmA,
		Password: programtest.Password, Timeout: runtest.HangTimeout,
	})
	if err != nil {
		t.Fatalf("%s: %v", phase, err)
	}
	const stop, account = "40=4|44=1.100000|99=1.050000|54=1", "40=2|44=0.500000|54=1|1=fund"
	for i, fields := range []string{stop, account} {
		body := fmt.Sprintf("11=%s-%d|55=%s|38=100|%s|59=1|60=%s|", phase, i, programtest.Symbol, fields, time.Now().UTC().Format("20060102-15:04:05"))
		if err := client.Send("D", []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
			t.Fatal(err)
		}
	}
	accepted := 0
	ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
	defer cancel()
	err = client.Run(ctx, func(m *fixclient.Message) error {
		if m.Type() == "8" && string(m.Get(150)) == "0" && strings.HasPrefix(string(m.Get(11)), phase) {
			accepted++
		} else if m.Type() == "8" && string(m.Get(150)) == "8" || m.Type() == "3" || m.Type() == "j" {
			return fmt.Errorf("refused: %q", m.Raw())
		}
		if accepted == 2 {
			cancel()
		}
		return nil
	})
	if accepted != 2 {
		t.Fatalf("%s: %d of 2 orders accepted: %v", phase, accepted, err)
	}
	_ = client.Close() // Run has ended
}

// newOldGroup starts three nodes of release 0.1.0, with a desk that has no chain.
func newOldGroup(t *testing.T, exe string) *group {
	t.Helper()
	g := &group{Rig: &chaintest.Rig{T: t}, http: &http.Client{Timeout: runtest.HangTimeout}}
	t.Cleanup(g.http.CloseIdleConnections)
	for _, id := range nodeIDs {
		n := &groupNode{id: id, exe: exe, old: true, dir: t.TempDir(), listen: map[string]string{}}
		n.suffers(t, programtest.Faults{})
		for _, name := range []string{"base", "api", "ws", "fix", "admin", "raft"} {
			port, held, err := server.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			n.listen[name], n.held = fmt.Sprintf("127.0.0.1:%d", port), append(n.held, held)
		}
		g.nodes = append(g.nodes, n)
	}
	peers := "peers:\n"
	for _, n := range g.nodes {
		peers += fmt.Sprintf("  - {id: %s, address: %s, base_url: %q, api_url: %q, ws_url: %q, fix: %s, admin_url: %q}\n", n.id,
			n.listen["raft"], n.url("base"), n.url("api"), "ws://"+n.listen["ws"], n.listen["fix"], n.url("admin"))
	}
	common := programtest.Config(t, "  rfq_writes_per_minute: 0\n"+programtest.DeskConfig)
	for _, n := range g.nodes {
		text := common + fmt.Sprintf("operators:\n  - {name: ann, token_sha256: %x}\n", sha256.Sum256([]byte(clusterOperator))) +
			fmt.Sprintf("journal: raft\ncluster: {id: %s, bind: %s, timeout_ms: %d}\n%s", n.id, n.listen["raft"], roomyTimeoutMS, peers)
		if err := os.WriteFile(n.config(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		g.start(n)
	}
	t.Cleanup(func() {
		for _, n := range g.nodes {
			if err := n.kill(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Logf("%s said at last:\n%s", n.id, n.tail())
			}
		}
	})
	g.leader()
	return g
}

// TestUpgrade upgrades a group of release 0.1.0 node by node under load: it continues under any
// leader, no node fails, nothing acknowledged is lost or there twice, it can go back until
// it is finalized, and not after.
func TestUpgrade(t *testing.T) {
	runtest.SkipUnderRace(t, "it is about another program")
	t.Parallel()
	old := oldBinary(t)
	g := newOldGroup(t, old)
	load := &upgradeLoad{g: g}
	load.begin()
	t.Cleanup(func() { load.stop(); load.wait.Wait() })
	load.progress(20)
	load.orders("old")

	change := func(n *groupNode, exe string) {
		t.Helper()
		if err := n.stop(); err != nil {
			t.Fatalf("%s: %v", n.id, err)
		}
		n.exe, n.old = exe, exe == old
		g.start(n)
		g.level(false)
		load.progress(20)
	}
	lead := func(n *groupNode) {
		t.Helper()
		await.True(t, n.id+" leads", func() bool {
			at := g.leader()
			if at == n {
				return true
			}
			_, _, _ = g.tryCommand(at, "/desk/cluster/transfer", operator.NewToken(), []byte("{}")) // tried again
			return false
		})
	}
	current := programtest.NodeBinary(t)
	first := g.others(g.leader())[0]
	change(first, current)
	lead(first) // with two followers of release 0.1.0
	load.progress(20)
	load.orders("one")
	g.level(false)
	if status, body, err := g.tryCommand(first, "/desk/cluster/finalize", operator.NewToken(), []byte("{}")); err != nil || status != http.StatusConflict {
		t.Fatalf("finalized with old nodes: %d %s %v", status, body, err)
	}
	change(first, old) // and back
	lead(first)
	load.progress(20)
	load.orders("back")
	for _, n := range g.nodes {
		change(n, current)
	}
	load.orders("all")
	g.level(false)
	g.command("/desk/cluster/finalize", struct{}{})
	await.True(t, "the newest format on all nodes", func() bool {
		return !slices.ContainsFunc(g.nodes, func(n *groupNode) bool { s := g.status(n); return s == nil || s.LogFormat != s.NewestFormat })
	})
	load.progress(20)
	load.orders("final")
	load.stop()
	load.wait.Wait()
	g.level(true)
	load.check()
	if load.quotes == 0 {
		t.Error("no quote was given")
	}

	last := g.nodes[0]
	if err := last.stop(); err != nil {
		t.Fatal(err)
	}
	last.exe, last.old = old, true
	if err := last.run(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the old program to end", func() bool { return last.exitedError() != nil })
	if output := last.tail(); !strings.Contains(output, "kind 4") {
		t.Errorf("the old program said:\n%s", output)
	}
}

// status returns what a node says of itself, nil if it does not answer.
func (g *group) status(n *groupNode) *admin.ClusterStatus {
	resp, err := g.http.Get(n.url("admin") + "/cluster")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var s admin.ClusterStatus
	if json.NewDecoder(resp.Body).Decode(&s) != nil {
		return nil
	}
	return &s
}

// check compares the desk's tickets with those that were acknowledged.
func (l *upgradeLoad) check() {
	t := l.g.T
	t.Helper()
	var in struct {
		Tickets []operator.Ticket `json:"tickets"`
	}
	c := &operator.Client{URL: l.g.leader().url("admin"), Token: clusterOperator, HTTP: l.g.http}
	if err := c.Get(t.Context(), "/desk/tickets", &in); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, ticket := range in.Tickets {
		count[ticket.Label]++
	}
	for _, label := range l.acks {
		if count[label] != 1 {
			t.Errorf("ticket %q is there %d times", label, count[label])
		}
	}
	t.Logf("%d tickets acknowledged, %d listed, %d quotes", len(l.acks), len(in.Tickets), l.quotes)
}
