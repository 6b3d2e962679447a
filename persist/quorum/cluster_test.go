package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/persist/journaltest"
)

// Timeouts of the nodes. A group of one elects itself, however late it is; in a larger
// one a starved leader would be deposed, so that tests which do not expect it are
// steady. Those which go on with any leader are quick.
const (
	quick  = 100 * time.Millisecond
	steady = time.Second
)

// links is the network between the nodes: each connection is dialled by a node
// whose name is known, to an address that is, so any pair can be cut.
type links struct {
	mu    sync.Mutex
	cut   map[[2]string]bool // from a node to an address
	conns map[net.Conn][2]string
}

func newLinks() *links {
	return &links{cut: map[[2]string]bool{}, conns: map[net.Conn][2]string{}}
}

type link struct {
	net.Conn
	of *links
}

func (l link) Close() error {
	l.of.mu.Lock()
	delete(l.of.conns, l.Conn)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

var errCut = errors.New("the network is cut")

func (l *links) dialer(from string) func(to string, timeout time.Duration) (net.Conn, error) {
	return func(to string, timeout time.Duration) (net.Conn, error) {
		pair := [2]string{from, to}
		l.mu.Lock()
		cut := l.cut[pair]
		l.mu.Unlock()
		if cut {
			return nil, errCut
		}
		conn, err := dial(to, timeout)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.cut[pair] {
			_ = conn.Close()
			return nil, errCut
		}
		l.conns[conn] = pair
		return link{conn, l}, nil
	}
}

// set cuts or heals the way from a node to an address.
func (l *links) set(from, to string, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[[2]string{from, to}] = cut
	for conn, pair := range l.conns {
		if cut && pair == [2]string{from, to} {
			_ = conn.Close()
			delete(l.conns, conn)
		}
	}
}

// cluster is a group of nodes in this process, over TCP on loopback, each on a
// disk in memory that loses what was not synced when it is killed.
type cluster struct {
	t       testing.TB
	links   *links
	peers   []Peer
	members map[string]*member
	tune    func(*Options)
	serve   func(context.Context, *Node) // nil: the leader does not serve
}

type member struct {
	o      Options
	disk   *vfs.MemFS
	node   *Node
	cancel context.CancelFunc
	done   chan error
	// served ends what serves at the node, and waits for it.
	served func()
}

func quiet() *slog.Logger {
	return slog.New(slog.DiscardHandler)
}

// newCluster makes a group of n; tune changes the options of each at every start.
func newCluster(t testing.TB, n int, tune func(*Options)) *cluster {
	return newServingCluster(t, n, nil, tune)
}

// newServingCluster has serve running beside each node that runs.
func newServingCluster(t testing.TB, n int, serve func(context.Context, *Node), tune func(*Options)) *cluster {
	c := &cluster{t: t, links: newLinks(), members: map[string]*member{}, tune: tune, serve: serve}
	for i := range n {
		c.peers = append(c.peers, Peer{ID: fmt.Sprintf("n%d", i+1), Address: freeAddress(t), REST: fmt.Sprintf("https://n%d.example", i+1)})
	}
	for _, p := range c.peers {
		c.add(p, false)
	}
	t.Cleanup(func() {
		for id := range c.members {
			if c.members[id].node != nil {
				if err := c.stop(id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			}
		}
	})
	return c
}

// freeAddress returns an address that was free a moment ago.
func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", net.JoinHostPort(journaltest.Loopback(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (c *cluster) add(p Peer, join bool) {
	m := &member{disk: vfs.NewCrashableMem()}
	timeout := steady
	if len(c.peers) == 1 {
		timeout = quick
	}
	m.o = Options{
		Timeout: timeout,
		ID:      p.ID, Dir: c.t.TempDir(), FS: m.disk, Bind: p.Address, Peers: c.peers, Join: join,
		MemTableBytes: 1 << 20, SpareLogs: -1, State: journaltest.State(), Logger: quiet(), dial: c.links.dialer(p.ID),
	}
	c.members[p.ID] = m
	c.start(p.ID)
}

func (c *cluster) start(id string) {
	c.t.Helper()
	m := c.members[id]
	o := m.o
	if c.tune != nil {
		c.tune(&o)
	}
	node, err := Open(o)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.node, m.cancel, m.done = node, cancel, make(chan error, 1)
	go func() { m.done <- node.Run(ctx) }()
	serving, halt := context.WithCancel(context.Background())
	var service sync.WaitGroup
	if c.serve != nil {
		service.Go(func() { c.serve(serving, node) })
	}
	m.served = func() { halt(); service.Wait() }
}

// halt ends the current terms and waits for the end of what serves on them.
func (c *cluster) halt() {
	for _, m := range c.members {
		m.node.mu.Lock()
		term := m.node.term
		m.node.mu.Unlock()
		defer m.served()
		if term != nil {
			defer term.end(ErrStopped)
		}
	}
}

// leading is a node that leads, or did a moment ago.
func (c *cluster) leading() *Node {
	return await.Value(c.t, "a leader", func() *Node {
		for _, m := range c.members {
			if m.node.Status().Role == Leader {
				return m.node
			}
		}
		return nil
	}, func(n *Node) bool { return n != nil })
}

// stop ends a node cleanly.
func (c *cluster) stop(id string) error {
	m := c.members[id]
	m.cancel()
	err := <-m.done
	m.served()
	err = errors.Join(err, m.node.Close())
	m.node = nil
	return err
}

// kill cuts a node off, copies its disk as it is, with percent of what was not synced,
// then ends it. start starts it again from that disk.
func (c *cluster) kill(id string, percent int) {
	m := c.members[id]
	c.isolate(id, true)
	disk := m.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: newRand(uint64(percent) + 1)})
	_ = c.stop(id) // it may say anything
	m.disk, m.o.FS = disk, disk
	c.isolate(id, false)
}

// isolate cuts a node off from all others, both ways, or heals that.
func (c *cluster) isolate(id string, cut bool) {
	for other, m := range c.members {
		if other != id {
			c.links.set(id, m.o.Bind, cut)
			c.links.set(other, c.members[id].o.Bind, cut)
		}
	}
}

// lead waits for a term on any node that runs, but not those left out: the current one,
// or the next if that is over.
func (c *cluster) lead(without ...string) (id string, term *Term) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	type led struct {
		id   string
		term *Term
	}
	won := make(chan led, len(c.members))
	var waiting sync.WaitGroup
	for id, m := range c.members {
		if m.node == nil || contains(without, id) {
			continue
		}
		waiting.Go(func() {
			term, err := m.node.currentTerm(), error(nil)
			if term == nil {
				term, err = m.node.AwaitTerm(ctx)
			}
			if err == nil {
				won <- led{id, term}
				cancel()
			}
		})
	}
	waiting.Wait()
	select {
	case l := <-won:
		return l.id, l.term
	default:
		c.t.Fatal("no node leads")
		return "", nil
	}
}

// currentTerm returns the node's term, nil if it is over.
func (n *Node) currentTerm() *Term {
	n.mu.Lock()
	term := n.term
	n.mu.Unlock()
	if term == nil || term.Err() != nil {
		return nil
	}
	return term
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// writer appends as an engine would.
type writer struct {
	term    *Term
	replica *engine.Replica
}

func newWriter(t testing.TB, term *Term) *writer {
	t.Helper()
	r, err := term.Recover(^uint64(0), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &writer{term: term, replica: r}
}

func (w *writer) append(commands []engine.Command) error {
	prior := w.replica.Digest
	for i := range commands {
		w.replica.Apply(&commands[i], nil)
	}
	cut := len(commands) / 2
	return w.term.Append(prior, commands[:cut], commands[cut:])
}

// agree waits until all nodes that run have committed the same commands and
// checks that they have the same state, that of the reference.
func (c *cluster) agree(ref *journaltest.Reference) (seq uint64) {
	c.t.Helper()
	await.Value(c.t, "the same seq on all nodes", func() map[uint64]bool {
		seqs := map[uint64]bool{}
		hashes := map[[32]byte]bool{}
		for id, m := range c.members {
			if m.node == nil {
				continue
			}
			got := make(chan bool, 1)
			err := m.node.standby.enqueue(job{call: func(w *standby) error {
				seq = w.replica.State.Seq()
				seqs[seq], hashes[w.replica.State.Hash()] = true, true
				got <- ref.Same(w.replica)
				return nil
			}})
			if err != nil {
				c.t.Fatalf("%s: %v", id, errors.Join(err, m.node.Failed()))
			}
			if !<-got {
				c.t.Fatalf("%s: seq %d: not the state of an undisturbed run", id, seq)
			}
		}
		if len(seqs) == 1 && len(hashes) != 1 {
			c.t.Fatalf("seq %d: %d different states", seq, len(hashes))
		}
		return seqs
	}, func(seqs map[uint64]bool) bool { return len(seqs) == 1 })
	return seq
}
