package docs

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/config"
	"blockdesk/service/operator"
)

const (
	dutyToken = "the token of the operator on duty"
	// dutyPatience bounds what the lines and the stand-in for systemd wait for.
	dutyPatience = runtest.HangTimeout
)

// host is one that a node of the group runs on.
type host struct {
	id     string
	exe    string // the program
	dir    string
	listen map[string]string
	held   []net.PacketConn // see server.FreePort
	cmd    *exec.Cmd        // nil: the service is stopped
	exited chan error
}

func (m *host) config() string { return filepath.Join(m.dir, "blockdesk.yaml") }

func (m *host) data() string { return filepath.Join(m.dir, "data") }

func (m *host) admin() string { return "http://" + m.listen["admin"] }

// start starts the service and waits until it has its addresses.
func (m *host) start() error {
	if m.cmd != nil {
		return fmt.Errorf("%s is started", m.id)
	}
	at := filepath.Join(m.data(), operator.AddressesFile)
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(m.exe, "serve", "--config", m.config(), "--data", m.data())
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, m.dir
	if err := cmd.Start(); err != nil {
		return err
	}
	m.cmd, m.exited = cmd, make(chan error, 1)
	go func(exited chan<- error) { exited <- cmd.Wait() }(m.exited)
	err = await.Poll(context.Background(), m.id+" to start", func() bool {
		_, err := operator.ReadAddresses(m.data())
		return err == nil || len(m.exited) > 0
	})
	if err == nil && len(m.exited) > 0 {
		m.cmd, err = nil, fmt.Errorf("%s has ended: %w", m.id, <-m.exited)
	}
	return err
}

// stop makes the service end, and waits for it.
func (m *host) stop(signal syscall.Signal) error {
	if m.cmd == nil {
		return nil
	}
	if err := m.cmd.Process.Signal(signal); err != nil {
		return err
	}
	select {
	case err := <-m.exited:
		m.cmd = nil
		if signal == syscall.SIGKILL {
			return nil
		}
		return err
	case <-time.After(dutyPatience):
		return errors.Join(fmt.Errorf("%s does not stop", m.id), m.cmd.Process.Kill(), <-m.exited)
	}
}

// groupOnDuty is the person who follows docs/cluster.md, and the machines.
type groupOnDuty struct {
	t        *testing.T
	term     *terminal
	bin      string
	backup   string
	machines map[string]*host
	at       *host         // where the lines are typed
	typed    []printedLine // since the last time they were repeated elsewhere
	writer   *ticketWriter
	common   string // has the participants
	keys     string // the folder of the certificates
}

// memberIDs are the first members; two more are added by the lines.
var memberIDs = []string{"a", "b", "c"}

func newGroupOnDuty(t *testing.T) *groupOnDuty {
	t.Helper()
	root := t.TempDir()
	d := &groupOnDuty{t: t, backup: filepath.Join(root, "backups"), keys: filepath.Join(root, "keys"), machines: map[string]*host{}}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		m := &host{id: id, exe: programtest.Binary(t), dir: filepath.Join(root, id), listen: map[string]string{}}
		d.must(os.MkdirAll(m.dir, 0o700))
		for _, name := range []string{"base", "api", "ws", "fix", "admin", "raft"} {
			port, held, err := server.FreePort()
			d.must(err)
			m.listen[name], m.held = fmt.Sprintf("127.0.0.1:%d", port), append(m.held, held)
		}
		d.machines[id] = m
	}
	d.common = programtest.Config(t, "")
	d.configure(memberIDs)
	t.Cleanup(func() {
		for _, m := range d.machines {
			if err := m.stop(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(filepath.Join(m.dir, "log")); t.Failed() && err == nil {
				t.Logf("%s said at last:\n%s", m.id, text[max(0, len(text)-3000):])
			}
		}
	})
	d.bin = programFolder(t, root)
	stand := httptest.NewServer(http.HandlerFunc(d.systemd))
	t.Cleanup(stand.Close)
	for name, line := range map[string]string{"systemctl": "/$1", "journalctl": "/log"} {
		script := "#!/bin/sh\nexec curl -s --fail-with-body " + stand.URL + line + "\n"
		d.must(os.WriteFile(filepath.Join(d.bin, name), []byte(script), 0o755))
	}
	d.at = d.machines["a"]
	d.term = openTerminalIn(t, root, d.places(), "PATH="+d.bin+":"+os.Getenv("PATH"), config.OperatorTokenEnv+"="+dutyToken)
	return d
}

// configure writes the files of all nodes, each docs/deploy/cluster-node.yaml with its
// own addresses: peers are these and the node itself.
func (d *groupOnDuty) configure(members []string) {
	d.t.Helper()
	head, _, _ := strings.Cut(programtest.DeployFile(d.t, "cluster-node.yaml"), "peers:\n")
	participants := programtest.ParticipantsFile(d.common)
	for id, self := range d.machines {
		l := self.listen
		text := strings.NewReplacer(
			"/var/lib/blockdesk", self.data(), "/etc/blockdesk/participants.yaml", participants,
			"/etc/blockdesk/node.pem", filepath.Join(d.keys, "a.pem"), "/etc/blockdesk/node.key", filepath.Join(d.keys, "a.key"),
			"/etc/blockdesk/group-ca.pem", filepath.Join(d.keys, "ca.pem"),
			"/etc/blockdesk/fix.pem", filepath.Join(d.keys, "a.pem"), "/etc/blockdesk/fix.key", filepath.Join(d.keys, "a.key"),
			"10.0.0.1:8080", l["base"], "10.0.0.1:8000", l["api"], "10.0.0.1:8081", l["ws"], "10.0.0.1:9878", l["fix"], "10.0.0.1:8090", l["admin"],
			"REPLACE-OPERATOR", "ann", "REPLACE-TOKEN-SHA256", fmt.Sprintf("%x", sha256.Sum256([]byte(dutyToken))),
			"id: a #", fmt.Sprintf("join: %v\n  id: %s #", !slices.Contains(memberIDs, id), id),
			"timeout_ms: 300", "timeout_ms: 1000", // a busy machine must not cost elections
			"fanout: nats", "fanout: none", "rfq: {enabled: false}", "", // tickets are what is written here
		).Replace(head) + "peers:\n"
		peers := members
		if !slices.Contains(peers, id) {
			peers = append(slices.Clone(peers), id)
		}
		for _, peer := range peers {
			l := d.machines[peer].listen
			text += fmt.Sprintf("  - {id: %s, address: %s, base_url: 'http://%s', api_url: 'http://%s', ws_url: 'ws://%s', fix: %s, admin_url: 'http://%s'}\n",
				peer, l["raft"], l["base"], l["api"], l["ws"], l["fix"], l["admin"])
		}
		d.must(os.WriteFile(self.config(), []byte(text), 0o600))
	}
}

func (d *groupOnDuty) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// places are what the document's paths and addresses are on this machine.
func (d *groupOnDuty) places() *strings.Replacer {
	return strings.NewReplacer(
		"/etc/blockdesk", d.at.dir, "/var/lib/blockdesk", d.at.data(), "/var/backups/blockdesk", d.backup,
		"/usr/local/bin", d.bin, "/srv/blockdesk-group", d.keys, "IP:10.0.0.1", "IP:127.0.0.1", "http://127.0.0.1:8090", d.at.admin(),
		"10.0.0.4:9700", d.machines["d"].listen["raft"], "10.0.0.3:9700", d.machines["e"].listen["raft"],
	)
}

// goTo has what follows typed on a machine.
func (d *groupOnDuty) goTo(id string) {
	d.t.Helper()
	d.at = d.machines[id]
	d.term.places = d.places()
	if out, status, err := d.term.run("cd /etc/blockdesk"); err != nil || status != 0 {
		d.t.Fatal(out, status, err)
	}
}

// repeat types what was typed since the last time on these machines too, but for
// the one that it was typed on.
func (d *groupOnDuty) repeat(ids ...string) {
	d.t.Helper()
	back, lines := d.at.id, d.typed
	for _, id := range ids {
		if id == back {
			continue
		}
		d.goTo(id)
		for _, p := range lines {
			d.before(p)
			d.must(d.term.follow(p, clusterPrints))
		}
	}
	d.typed = nil
	d.goTo(back)
}

// before puts a new program where one is, whenever there is none.
func (d *groupOnDuty) before(p printedLine) {
	d.t.Helper()
	if strings.Contains(p.text, "blockdesk.new serve") {
		d.must(os.Symlink(programtest.Binary(d.t), filepath.Join(d.bin, "blockdesk.new")))
	}
}

// systemd does what the verb says on this machine, and prints its log.
func (d *groupOnDuty) systemd(w http.ResponseWriter, r *http.Request) {
	var err error
	switch r.URL.Path {
	case "/start":
		err = d.at.start()
	case "/stop":
		err = d.at.stop(syscall.SIGTERM)
	case "/log":
		var text []byte
		text, err = os.ReadFile(filepath.Join(d.at.dir, "log"))
		_, _ = w.Write(text)
	default:
		err = fmt.Errorf("no verb %s", r.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// leader returns the leader, in a group that is well.
func (d *groupOnDuty) leader() string {
	d.t.Helper()
	return d.await(operator.GroupWell, "a", "b", "e").Leader
}

// await waits until the nodes see the group in a state.
func (d *groupOnDuty) await(state string, nodes ...string) *operator.Group {
	d.t.Helper()
	var seeds []string
	for _, id := range nodes {
		seeds = append(seeds, d.machines[id].admin())
	}
	return await.Value(d.t, "a group that is "+state, func() *operator.Group {
		v, err := operator.ReadGroup(d.t.Context(), seeds)
		if err != nil {
			return &operator.Group{Error: err.Error()}
		}
		return v
	}, func(v *operator.Group) bool { return v.State == state })
}

// follower is a first member that does not lead.
func (d *groupOnDuty) follower() string {
	d.t.Helper()
	if d.leader() == "b" {
		return "a"
	}
	return "b"
}

// clusterPrints is what the lines of the document have to print.
var clusterPrints = []expectation{
	{in: "--check", prints: `configuration is valid`},
	{in: "systemctl", prints: ``},
	{in: "openssl", prints: ``},
	{in: "journalctl", prints: `"level":"INFO"`},
	{in: "cluster wait", prints: `^well: `},
	{in: "cluster add", prints: `^well: `},
	{in: "cluster replace", prints: `^well: `},
	{in: "cluster finalize", prints: `^well: `},
	{in: "cluster remove", prints: `^well: `},
	{in: "cluster transfer", prints: `^(well|at risk|degraded): `},
	{in: "cluster status", prints: `^well: `},
	{in: "/cluster", prints: `"role":"`},
	{in: "/metrics", prints: `blockdesk_cluster_elections_total [1-9]`},
	{in: "mkdir", prints: ``},
}

// scenes are what happens in an entry.
func (d *groupOnDuty) scenes() map[string]scene {
	return map[string]scene{
		"Start a group": {at: map[string]func(){"cluster wait": func() { d.repeat("b", "c"); d.writer.begin() }}},
		"Join a node": {before: func() { d.goTo("d") }, at: map[string]func(){"cluster add": func() {
			d.configure([]string{"a", "b", "c", "d"})
			d.goTo("a")
		}}},
		"Rolling upgrade": {after: func() {
			d.repeat("b", "c", "d")
			d.writer.check(d.machines["a"].admin())
		}},
		"Remove a node": {at: map[string]func(){"systemctl": func() { d.goTo("d") }}, after: func() { d.goTo("a") }},
		"Replace a node": {before: d.losesC, at: map[string]func(){
			"systemctl": func() { d.configure([]string{"a", "b", "e"}); d.goTo("e") }, "cluster replace": func() { d.goTo("a") },
		}},
		"Back up": {before: func() { d.goTo(d.follower()); d.writer.end() }, after: func() { d.writer.check(d.at.admin()) }},
		"Restore a group": {before: d.losesAll, at: map[string]func(){
			"mv ":            func() { d.repeat("a", "b", "e") },
			"systemctl stop": func() { d.typed = nil },
			"cluster wait":   func() { d.repeat("a", "b", "e") },
		}, after: d.restored},
		"No leader": {
			before: d.losesMost,
			prints: []expectation{{in: "cluster status", prints: `^no leader: 1 of 3 voters answer, 2 are needed`, fails: true}},
			after:  func() { d.must(d.machines["b"].start()); d.must(d.machines["e"].start()); d.leader() },
		},
		"Repeated elections": {before: func() { d.leader() }},
		"Disk of a node":     {before: func() { d.leader() }},
	}
}

// losesC ends c, with its data, for good.
func (d *groupOnDuty) losesC() {
	d.t.Helper()
	d.must(d.machines["c"].stop(syscall.SIGKILL))
	d.must(os.RemoveAll(d.machines["c"].data()))
	d.await(operator.GroupAtRisk, "a")
	out, err := programtest.Run(d.t, "", nil, "cluster", "remove", "b", "--admin", d.machines["a"].admin())
	if err == nil || !strings.Contains(out, "the group is degraded or has no leader") || !strings.Contains(out, "--force") {
		d.t.Errorf("b can be removed while c is down: %v: %s", err, out)
	}
}

// losesAll writes what no backup has.
func (d *groupOnDuty) losesAll() {
	d.t.Helper()
	d.writer.write("after the backup")
}

// losesMost ends two of three nodes, and waits until the third has noticed.
func (d *groupOnDuty) losesMost() {
	d.t.Helper()
	d.must(errors.Join(d.machines["b"].stop(syscall.SIGKILL), d.machines["e"].stop(syscall.SIGKILL)))
	d.goTo("a")
	d.await(operator.GroupNoLeader, "a")
}

func (d *groupOnDuty) restored() {
	d.t.Helper()
	labels := d.writer.labels(d.at.admin())
	if slices.Contains(labels, "after the backup") {
		d.t.Error("what came after the backup is there")
	}
	d.writer.forget("after the backup")
	d.writer.check(d.at.admin())
	d.goTo("a")
}

// TestClusterRunbook types the lines of docs/cluster.md in their order, on the
// machine that each is about, while a client writes all the time: no acknowledged
// command is lost, and none is applied twice.
func TestClusterRunbook(t *testing.T) {
	runtest.SkipUnderRace(t, "it runs a document's lines one after the other, which other tests race")
	t.Parallel()
	for _, name := range []string{"curl", "grep", "openssl"} {
		programtest.Tool(t, name)
	}
	d := newGroupOnDuty(t)
	d.writer = newTicketWriter(t, d)
	const file = "docs/cluster.md"
	document := strings.Split(readTracked(t, file), "\n")
	scenes, heading, run := d.scenes(), "", 0
	played := map[string]bool{}
	leave := func() {
		if after := scenes[heading].after; after != nil {
			after()
		}
	}
	for _, p := range findPrinted(file, strings.Join(document, "\n")) {
		if p.block != "sh" {
			continue
		}
		if now := headingOf(document, p.line); now != heading {
			leave()
			d.typed = nil
			if heading = now; scenes[heading].before != nil {
				scenes[heading].before()
			}
			played[heading] = true
		}
		for part, happens := range scenes[heading].at {
			if strings.Contains(p.text, part) {
				happens()
			}
		}
		d.before(p)
		wanted := append(slices.Clone(scenes[heading].prints), clusterPrints...)
		if strings.Contains(p.text, "cluster status") { // a node that is busy may be taken for one that is away
			await.NoError(t, p.text, func() error { return d.term.follow(p, wanted) })
		} else if err := d.term.follow(p, wanted); err != nil {
			t.Fatal(err)
		}
		d.typed = append(d.typed, p)
		run++
	}
	leave()
	for name := range scenes {
		if !played[name] {
			t.Errorf("the document has no lines under %s", name)
		}
	}
	if run < 40 {
		t.Errorf("only %d lines are run", run)
	}
}

// ticketWriter posts tickets, one after the other, to the node that takes them, and asks
// again with the same key until each is acknowledged.
type ticketWriter struct {
	t      *testing.T
	admins []string
	at     int // in admins
	client *operator.Client
	stop   context.CancelFunc
	wait   sync.WaitGroup

	mu   sync.Mutex
	acks []string // labels
	last error    // of a try
}

func newTicketWriter(t *testing.T, d *groupOnDuty) *ticketWriter {
	w := &ticketWriter{t: t, client: &operator.Client{Token: dutyToken, HTTP: &http.Client{Timeout: runtest.HangTimeout}}}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		w.admins = append(w.admins, d.machines[id].admin())
	}
	t.Cleanup(w.end)
	return w
}

// begin writes in the background until end.
func (w *ticketWriter) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	w.wait.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			w.post(ctx, fmt.Sprintf("block %d", n))
			programtest.Pause(ctx, 100*time.Millisecond) // an address may send 600 a minute
		}
	})
}

func (w *ticketWriter) end() {
	if w.stop != nil {
		w.stop()
	}
	w.wait.Wait()
}

// write posts one ticket in the foreground.
func (w *ticketWriter) write(label string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), dutyPatience)
	defer cancel()
	if w.post(ctx, label); ctx.Err() != nil {
		w.t.Fatal("no node takes a ticket")
	}
}

// post sends until it is acknowledged; one that ctx ends is not counted.
func (w *ticketWriter) post(ctx context.Context, label string) {
	body, err := json.Marshal(map[string]any{"pair": programtest.Symbol, "label": label, "tranches": []string{"1000"}})
	if err != nil {
		w.t.Error(err)
		return
	}
	key := operator.NewToken()
	for ; ctx.Err() == nil; w.at++ { // beginning with the node that took the last one
		w.client.URL = w.admins[w.at%len(w.admins)]
		once, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := w.client.Send(once, "/desk/tickets", body, key)
		cancel()
		if err == nil {
			w.mu.Lock()
			w.acks = append(w.acks, label)
			w.mu.Unlock()
			return
		}
		w.mu.Lock()
		w.last = err
		w.mu.Unlock()
		programtest.Pause(ctx, 50*time.Millisecond)
	}
}

// forget takes an acknowledgement out.
func (w *ticketWriter) forget(label string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acks = slices.DeleteFunc(w.acks, func(l string) bool { return l == label })
}

// labels returns those of all tickets, from the leader or a node that names it.
func (w *ticketWriter) labels(admin string) (out []string) {
	w.t.Helper()
	var list struct {
		Tickets []operator.Ticket `json:"tickets"`
	}
	c := &operator.Client{URL: admin, Token: dutyToken, HTTP: &http.Client{Timeout: operator.Timeout}}
	if err := c.Get(w.t.Context(), "/desk/tickets", &list); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Tickets {
		out = append(out, list.Tickets[i].Label)
	}
	return out
}

// check looks for each acknowledged ticket, once.
func (w *ticketWriter) check(admin string) {
	w.t.Helper()
	w.mu.Lock()
	acks, last := slices.Clone(w.acks), w.last
	w.mu.Unlock()
	seen := map[string]int{}
	for _, label := range w.labels(admin) {
		seen[label]++
	}
	for _, label := range acks {
		if seen[label] != 1 {
			w.t.Errorf("%s was acknowledged and is there %d times", label, seen[label])
		}
	}
	if len(acks) < 10 {
		w.t.Errorf("only %d tickets were acknowledged; at last: %v", len(acks), last)
	}
	w.t.Logf("%d acknowledged, none lost, none twice", len(acks))
}
