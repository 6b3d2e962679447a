package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/httpgw/admin"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/operator"
)

const (
	clusterOperator = "the token of the group's operator"
	// clusterPatience ends waits that hang.
	clusterPatience = runtest.HangTimeout
	// roomyTimeoutMS is a time-out of elections that a busy machine does not reach. A
	// test that measures failovers takes quickTimeoutMS.
	roomyTimeoutMS, quickTimeoutMS = 1000, 200
)

// groupNode is one process of a group.
type groupNode struct {
	id     string
	exe    string // see programtest.NodeBinary
	dir    string
	listen map[string]string // addresses by what they are for
	held   []net.PacketConn  // see server.FreePort
	log    *os.File
	cmd    *exec.Cmd // nil: it is down
	exited chan error
	frozen bool

	snapshotEvery uint64
	// old: exe is a program of release 0.1.0, which refuses settings that it does not know.
	old bool
}

func (n *groupNode) url(surface string) string { return "http://" + n.listen[surface] }

// group is the nodes, the network between them, and the chain under the desk.
type group struct {
	*chaintest.Rig // the chain; its own server is not started
	net            *network
	nodes          []*groupNode
	http           *http.Client
}

// nodeIDs are long, so that nothing else on the wire looks like them.
var nodeIDs = []string{"node-alfa", "node-bravo", "node-carol"}

// sender returns which node has sent the first bytes of a connection: each call of
// raft names it.
func sender(first []byte) string {
	for _, id := range nodeIDs {
		if bytes.Contains(first, []byte(id)) {
			return id
		}
	}
	return ""
}

// groupOptions are what the tests have differently.
type groupOptions struct {
	timeoutMS int                      // of an election
	snapshots uint64                   // entries between two; 0 = more than a test makes
	signer    func(node string) string // path of the socket that a node has its signatures from; nil = the key file
}

// newGroup starts the nodes and returns when one leads.
func newGroup(t *testing.T, r *chaintest.Rig, o groupOptions) *group {
	t.Helper()
	g := &group{Rig: r, net: newNetwork(t, sender), http: &http.Client{Timeout: runtest.HangTimeout}}
	t.Cleanup(g.http.CloseIdleConnections)
	for _, id := range nodeIDs {
		n := &groupNode{id: id, exe: programtest.NodeBinary(t), dir: t.TempDir(), listen: map[string]string{}, snapshotEvery: o.snapshots}
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
	g.configure(o)
	for _, n := range g.nodes {
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

// configure writes the nodes' files.
func (g *group) configure(o groupOptions) {
	g.T.Helper()
	var peers strings.Builder
	peers.WriteString("peers:\n")
	for _, n := range g.nodes {
		fmt.Fprintf(&peers, "  - {id: %s, address: %s, base_url: %q, api_url: %q, ws_url: %q, fix: %s, admin_url: %q}\n", n.id,
			g.net.open(g.T, n.id, n.listen["raft"]), n.url("base"), n.url("api"), "ws://"+n.listen["ws"], n.listen["fix"], n.url("admin"))
	}
	participants := "" // one file, made once: a password's hash is slow
	for _, n := range g.nodes {
		key := fmt.Sprintf("key_file: %q", g.KeyFile("desk"))
		if o.signer != nil {
			key = fmt.Sprintf("signer_socket: %q, desk: %s", o.signer(n.id), g.Setup.Desk.Address)
		}
		const claimTTL, maxAge, watchMS = 24 * 3600, 7 * 24 * 3600, 500
		text := programtest.Config(g.T, fmt.Sprintf(chaintest.Config, g.Chain.URL(), key, g.Setup.Mints["USDC"].Address,
			g.Setup.Treasury.Address, g.Setup.Mints["SLUSD"].Address, g.Setup.Mints["92C"].Address, claimTTL, maxAge, watchMS))
		if participants == "" {
			participants = programtest.ParticipantsFile(text)
		}
		text = strings.Replace(text, programtest.ParticipantsFile(text), participants, 1)
		// Answers name the desk's public addresses: a retry at another node gets the same
		// bytes only where these are the group's.
		const public = "https://desk.example"
		text += fmt.Sprintf("urls: {base_url: %[1]q, api_url: %[1]q, ws_url: %[1]q, mirror_url: %[1]q, native_url: %[1]q}\n", public)
		text += fmt.Sprintf("operators:\n  - {name: ann, token_sha256: %x}\nlog: {level: info}\n", sha256.Sum256([]byte(clusterOperator)))
		text += fmt.Sprintf("journal: raft\ncluster: {id: %s, bind: %s, timeout_ms: %d}\n%s", n.id, n.listen["raft"], o.timeoutMS, &peers)
		if err := os.WriteFile(n.config(), []byte(text), 0o600); err != nil {
			g.T.Fatal(err)
		}
	}
}

// machineFile says what is wrong with the node's machine.
func (n *groupNode) machineFile() string { return filepath.Join(n.dir, "machine.json") }

// suffers changes a node's machine, also of one that is down.
func (n *groupNode) suffers(t testing.TB, now programtest.Faults) {
	t.Helper()
	now.SnapshotEvery = n.snapshotEvery
	now.Write(t, n.machineFile())
}

func (n *groupNode) config() string { return filepath.Join(n.dir, "config.yaml") }

func (n *groupNode) data() string { return filepath.Join(n.dir, "data") }

// start runs a node, and returns when it answers on its admin address.
func (g *group) start(n *groupNode) {
	g.T.Helper()
	if err := n.run(); err != nil {
		g.T.Fatal(err)
	}
	await.True(g.T, n.id+" answers", func() bool {
		if err := n.exitedError(); err != nil {
			g.T.Fatalf("%s has ended: %v\n%s", n.id, err, n.tail())
		}
		_, err := g.ready(n)
		return err == nil
	})
}

func (n *groupNode) run() (err error) {
	if n.log == nil {
		if n.log, err = os.Create(filepath.Join(n.dir, "log")); err != nil {
			return err
		}
	}
	args := []string{"serve", "--config", n.config(), "--data", n.data()}
	for _, name := range []string{"base", "api", "ws", "fix", "admin"} {
		args = append(args, "--set", "listen."+name+"="+n.listen[name])
	}
	n.cmd = exec.Command(n.exe, args...)
	n.cmd.Stderr, n.cmd.Env = n.log, programtest.Environment(n.machineFile())
	if n.old {
		n.cmd.Env = slices.DeleteFunc(n.cmd.Env, func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			return slices.Contains(programtest.DiskVariables(), name)
		})
	}
	if err := n.cmd.Start(); err != nil {
		n.cmd = nil
		return err
	}
	n.exited = make(chan error, 1)
	go func(cmd *exec.Cmd, exited chan error) { exited <- cmd.Wait() }(n.cmd, n.exited)
	return nil
}

// exitedError has the error with which a node ended by itself; nil while it runs.
func (n *groupNode) exitedError() error {
	select {
	case err := <-n.exited:
		n.exited <- err
		return errors.Join(errors.New("it has ended"), err)
	default:
		return nil
	}
}

// tail is the end of what a node has said, without what raft says at each try to
// reach a node that is away.
func (n *groupNode) tail() string {
	text, err := os.ReadFile(filepath.Join(n.dir, "log"))
	if err != nil {
		return err.Error()
	}
	const most = 60
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool {
		return strings.Contains(l, "failed to ") || strings.Contains(l, "pre-vote") || strings.Contains(l, "pipelin")
	})
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// signal sends a signal; a node that is down gets none.
func (n *groupNode) signal(s syscall.Signal) error {
	if n.cmd == nil {
		return nil
	}
	n.frozen = s == syscall.SIGSTOP
	return n.cmd.Process.Signal(s)
}

// kill ends a node at once.
func (n *groupNode) kill() error {
	if n.cmd == nil {
		return nil
	}
	err := n.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-n.exited
	n.cmd, n.frozen = nil, false
	return err
}

// stop ends a node in good order.
func (n *groupNode) stop() error {
	if n.cmd == nil {
		return nil
	}
	if err := n.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-n.exited:
		n.cmd = nil
		return err
	case <-time.After(clusterPatience):
		return errors.Join(fmt.Errorf("%s does not stop", n.id), n.kill())
	}
}

// ready asks a node whether it serves: whether it leads.
func (g *group) ready(n *groupNode) (bool, error) {
	resp, err := g.http.Get(n.url("admin") + "/readyz")
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK, nil
}

// leader waits for a node that leads and serves.
func (g *group) leader() *groupNode {
	g.T.Helper()
	var found *groupNode
	await.True(g.T, "a leader", func() bool {
		for _, n := range g.nodes {
			if n.cmd == nil || n.frozen {
				continue
			}
			if ok, err := g.ready(n); ok && err == nil {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// level waits until all nodes have nearly all that is committed; with all, until
// nothing is under way any more, which takes clients that have ended.
func (g *group) level(all bool) {
	g.T.Helper()
	await.True(g.T, "all nodes are level", func() bool {
		var at []uint64
		for _, n := range g.nodes {
			resp, err := g.http.Get(n.url("admin") + "/cluster")
			if err != nil {
				return false
			}
			var s admin.ClusterStatus
			err = json.NewDecoder(resp.Body).Decode(&s)
			resp.Body.Close()
			if err != nil || !s.InSync {
				return false
			}
			at = append(at, s.AppliedIndex, s.LogIndex)
		}
		return !all || slices.Min(at) == slices.Max(at)
	})
}

// others are the nodes but one.
func (g *group) others(n *groupNode) (out []*groupNode) {
	for _, m := range g.nodes {
		if m != n {
			out = append(out, m)
		}
	}
	return out
}

// addresses are those of all nodes for a purpose, with a scheme before each.
func (g *group) addresses(scheme, surface string) (out []string) {
	for _, n := range g.nodes {
		out = append(out, scheme+n.listen[surface])
	}
	return out
}

// command sends an operator's request to the leader, until it is answered.
func (g *group) command(path string, in any) []byte {
	g.T.Helper()
	key, text := operator.NewToken(), programtest.Must(json.Marshal(in))
	var done []byte
	await.NoError(g.T, path, func() error {
		status, body, err := g.tryCommand(g.leader(), path, key, text)
		switch {
		case err == nil && status == http.StatusOK:
			done = body
			return nil
		case err == nil && status < 500 && status != http.StatusTemporaryRedirect:
			g.T.Fatalf("%s: %d %.300s", path, status, body)
		}
		return fmt.Errorf("%d %w %.300s", status, err, body)
	})
	return done
}

func (g *group) tryCommand(n *groupNode, path, key string, text []byte) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(g.T.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url("admin")+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+clusterOperator)
	req.Header.Set("Idempotency-Key", key)
	resp, err := g.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// postTicket offers a tranche of clusterCapacity and returns the ticket's id.
func (g *group) postTicket() string {
	g.T.Helper()
	var answer restAnswer
	body := g.command("/desk/tickets", map[string]any{"pair": programtest.Symbol, "label": "Block", "tranches": []string{fmt.Sprint(clusterCapacity)}})
	if err := json.Unmarshal(body, &answer); err != nil || answer.Ticket.Order == "" {
		g.T.Fatalf("a ticket: %v %s", err, body)
	}
	return answer.Ticket.Order
}

// tolerance is how long a client of a group waits for a node before it goes to another:
// at first not long, so that it leaves a node that is frozen or cut off, and longer each
// time that it has waited in vain, so that it stays where all nodes are slow.
type tolerance struct{ least, now time.Duration }

func (p *tolerance) wait() time.Duration { return max(p.least, p.now) }

func (p *tolerance) longer() { p.now = min(2*p.wait(), time.Minute) }

func (p *tolerance) shorter() { p.now /= 2 }
