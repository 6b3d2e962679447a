package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/programtest"
	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana/tx"
	"blockdesk/service/operator"
)

// The parts of the signer's protocol that a watch has to know: settle/cosign has
// them in full.
const (
	signRequest   = 2
	signerHead    = 4    // size u16, version, type
	signatureKind = 0x82 // the type of an answer that is a signature
)

// signature is one that the signer has given.
type signature struct {
	node string
	hash [32]byte // of the message
	at   time.Time
}

// signerWatch stands between the nodes and the desk's signer: it sees each
// signature, and what happens to a node at the moment when it asks for one.
type signerWatch struct {
	target    string // the signer's socket
	listeners []net.Listener
	all       sync.WaitGroup

	mu        sync.Mutex
	given     []signature
	onRequest func(node string) // called once, then removed
}

// newSignerWatch makes a socket for each node.
func newSignerWatch(t *testing.T, dir, target string, nodes []string) (w *signerWatch, socket func(node string) string) {
	t.Helper()
	w = &signerWatch{target: target}
	socket = func(node string) string { return dir + "/" + node }
	for _, node := range nodes {
		l, err := net.Listen("unix", socket(node))
		if err == nil {
			err = os.Chmod(socket(node), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.listeners = append(w.listeners, l)
		w.all.Go(func() { w.serve(l, node) })
	}
	t.Cleanup(func() {
		for _, l := range w.listeners {
			l.Close()
		}
		w.all.Wait()
	})
	return w, socket
}

func (w *signerWatch) serve(l net.Listener, node string) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err == nil {
			w.all.Go(func() { w.carry(conn, node) })
		}
	}
}

// carry passes one request and its answer on.
func (w *signerWatch) carry(in net.Conn, node string) {
	defer in.Close()
	const patience = runtest.HangTimeout
	if in.SetDeadline(time.Now().Add(patience)) != nil {
		return
	}
	request, err := readSignerFrame(in)
	if err != nil {
		return
	}
	signs := request[signerHead-1] == signRequest
	if signs {
		w.mu.Lock()
		onRequest := w.onRequest
		w.onRequest = nil
		w.mu.Unlock()
		if onRequest != nil {
			onRequest(node)
		}
	}
	out, err := net.Dial("unix", w.target)
	if err != nil {
		return
	}
	defer out.Close()
	if out.SetDeadline(time.Now().Add(patience)) != nil {
		return
	}
	if _, err := out.Write(request); err != nil {
		return
	}
	answer, err := readSignerFrame(out)
	if err != nil {
		return
	}
	if signs && answer[signerHead-1] == signatureKind {
		w.record(node, request[signerHead+1:])
	}
	_, _ = in.Write(answer) // the caller may have closed the connection
}

// record keeps a signature under a transaction.
func (w *signerWatch) record(node string, raw []byte) {
	x, err := tx.Decode(raw)
	if err != nil {
		return // the signer signs nothing else
	}
	hash := sha256.Sum256(raw[1+64*len(x.Message.Signers()):])
	w.mu.Lock()
	defer w.mu.Unlock()
	w.given = append(w.given, signature{node, hash, time.Now()})
}

func (w *signerWatch) signatures() []signature {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.given
}

func readSignerFrame(from io.Reader) ([]byte, error) {
	frame := make([]byte, signerHead)
	if _, err := io.ReadFull(from, frame); err != nil {
		return nil, err
	}
	frame = append(frame, make([]byte, int(binary.LittleEndian.Uint16(frame))-signerHead+2)...)
	_, err := io.ReadFull(from, frame[signerHead:])
	return frame, err
}

// authorizations are the messages that a log of commands allows to be signed.
type authorizations struct {
	joiner engine.Assembler
	hashes map[[32]byte]bool
}

func (a *authorizations) add(commands []engine.Command) error {
	for i := range commands {
		c := &commands[i]
		if !c.IsPiece() {
			continue
		}
		whole, _ := a.joiner.Add(c)
		if whole == nil || c.Kind != engine.Desk {
			continue
		}
		r, err := rfq.DecodeRequest(whole)
		if err != nil {
			return fmt.Errorf("seq %d: %w", c.Seq, err)
		}
		switch r := r.(type) {
		case *rfq.CosignClaim:
			a.hashes[r.Proof] = true
		case *rfq.BeginDelivery:
			a.hashes[r.Proof] = true
		}
	}
	return nil
}

// unauthorized are the signatures that no command in the log allows.
func (a *authorizations) unauthorized(given []signature) (out []string) {
	for _, s := range given {
		if !a.hashes[s.hash] {
			out = append(out, fmt.Sprintf("%s had message %s signed at %v", s.node, hex.EncodeToString(s.hash[:]), s.at.Format(time.TimeOnly)))
		}
	}
	return out
}

// moment is when something happens to a leader that is to sign.
type moment struct {
	name string
	do   func(g *group, w *signerWatch, leader *groupNode, rng *rand.Rand) (heal func())
}

// moments are around the authorization: while it is proposed, and when it is
// committed and the signer is asked.
func moments() []moment {
	hold := func(g *group, n *groupNode) {
		for _, m := range g.others(n) {
			g.net.set(weather{held: true}, way{n.id, m.id}, way{m.id, n.id})
		}
	}
	later := func(rng *rand.Rand, do func()) {
		time.AfterFunc(time.Duration(rng.Int64N(int64(12*time.Millisecond))), do)
	}
	onRequest := func(w *signerWatch, do func(string)) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.onRequest = do
	}
	return []moment{
		{"cut off while it is proposed", func(g *group, _ *signerWatch, n *groupNode, rng *rand.Rand) func() {
			later(rng, func() { hold(g, n) })
			return g.net.heal
		}},
		{"cut off before", func(g *group, _ *signerWatch, n *groupNode, _ *rand.Rand) func() {
			hold(g, n)
			return g.net.heal
		}},
		{"cut off when the signer is asked", func(g *group, w *signerWatch, n *groupNode, _ *rand.Rand) func() {
			onRequest(w, func(string) { hold(g, n) })
			return func() { onRequest(w, nil); g.net.heal() }
		}},
		{"killed while it is proposed", func(g *group, _ *signerWatch, n *groupNode, rng *rand.Rand) func() {
			pid, killed := n.cmd.Process, make(chan struct{})
			later(rng, func() { _ = pid.Kill(); close(killed) }) // it may have ended already
			return func() { <-killed; _ = n.kill(); g.start(n) }
		}},
		{"killed when the signer is asked", func(g *group, w *signerWatch, n *groupNode, _ *rand.Rand) func() {
			pid := n.cmd.Process
			onRequest(w, func(string) { _ = pid.Kill() })
			return func() { onRequest(w, nil); _ = n.kill(); g.start(n) }
		}},
		{"stopped while it is proposed", func(g *group, _ *signerWatch, n *groupNode, rng *rand.Rand) func() {
			pid, done := n.cmd.Process, make(chan struct{})
			later(rng, func() { _ = pid.Signal(syscall.SIGSTOP); close(done) })
			return func() { <-done; _ = pid.Signal(syscall.SIGCONT) }
		}},
	}
}

// The desk's key signs nothing that a majority has not stored: whatever
// happens to a leader around the authorization of an atomic claim, each signature
// that the signer gives is allowed by a command that all nodes have.
func TestClusterSigns(t *testing.T) {
	runtest.SkipUnderRace(t, "its nodes are processes that crash, and the tests of persist/quorum and settle race the same code")
	t.Parallel()
	rounds := max(2, int(programtest.FromEnv(t, "BLOCKDESK_CLUSTER_ROUNDS", 0))/4)
	seed := programtest.FromEnv(t, "BLOCKDESK_CLUSTER_SEED", runtest.Seed(t))
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 6))
	r := &chaintest.Rig{T: t, Keys: t.TempDir()}
	r.StartChain(1, nil)
	dir, err := os.MkdirTemp("", "sign") // short: a socket's path has to be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r.Socket = dir + "/s"
	r.StartSigner()
	w, socket := newSignerWatch(t, dir, r.Socket, nodeIDs)
	g := newGroup(t, r, groupOptions{timeoutMS: roomyTimeoutMS, signer: socket})
	g.command("/desk/tickets", map[string]any{"pair": programtest.Symbol, "label": "Block", "tranches": []string{"10000000"}})
	at := func(n *groupNode) { g.Server = &server.Server{Addresses: operator.Addresses{Base: n.url("base")}} }
	at(g.leader())
	b := g.Wallet(1).Handshake()
	settled := map[string]int{}
	for round := range rounds {
		leader := g.leader()
		x := buildSomewhere(b, g)
		m := moments()[rng.IntN(len(moments()))]
		heal := m.do(g, w, leader, rng)
		submitted := make(chan *chaintest.Answer, 1)
		ctx, cancel := context.WithTimeout(t.Context(), clusterPatience)
		go func() { submitted <- submitSomewhere(ctx, b, g, x) }()
		await.True(t, "another leader, or an answer", func() bool {
			if len(submitted) > 0 {
				return true
			}
			for _, n := range g.others(leader) {
				if ok, err := g.ready(n); ok && err == nil {
					return true
				}
			}
			return false
		})
		heal()
		a := <-submitted
		cancel()
		if a == nil {
			t.Fatalf("round %d, %s at %s: no answer to a submit", round, m.name, leader.id)
		}
		settled[fmt.Sprint(a.Status, " ", a.Code, " ", a.Reason)]++
		t.Logf("round %d: %s at %s: %d %s %s, %d signatures so far", round, m.name, leader.id, a.Status, a.Code, a.Reason, len(w.signatures()))
	}
	g.level(true)
	for _, n := range g.nodes {
		if err := n.stop(); err != nil {
			t.Errorf("%s: %v", n.id, err)
		}
	}
	given := w.signatures()
	p := &trial{group: g}
	for _, n := range g.nodes {
		allowed := &authorizations{hashes: map[[32]byte]bool{}}
		p.verify(n, 0, func(_, _ uint64, commands []engine.Command) error { return allowed.add(commands) })
		for _, wrong := range allowed.unauthorized(given) {
			t.Errorf("%s knows of no authorization: %s", n.id, wrong)
		}
		if planted := append(given, signature{node: "planted"}); len(allowed.unauthorized(planted)) != len(allowed.unauthorized(given))+1 {
			t.Error("a signature that nobody has authorized is not found")
		}
	}
	if len(given) == 0 {
		t.Error("nothing was signed")
	}
	t.Logf("%d rounds, %d signatures, %v", rounds, len(given), settled)
}

// buildSomewhere builds at the leader, which changes by itself on a busy machine.
func buildSomewhere(b *chaintest.Buyer, g *group) *chaintest.Built {
	g.T.Helper()
	x := &chaintest.Built{}
	await.True(g.T, "a build", func() bool {
		body := b.Order(chaintest.Deal{Ticket: "T1", Fill: "250", Rail: "USDC", Payer: "desk"}, chaintest.PathBuild)
		a, err := b.Send(g.T.Context(), "POST", g.leader().url("base")+chaintest.PathBuild, body, b.Bearer()...)
		if err != nil || a.Status != 200 {
			return false
		}
		a.Into(g.T, x)
		return true
	})
	return x.Open(g.T)
}

// submitSomewhere submits a build to one node after the other until one says what
// came of it; nil where none does in time.
func submitSomewhere(ctx context.Context, b *chaintest.Buyer, g *group, x *chaintest.Built) *chaintest.Answer {
	body := chaintest.Submission(x, b.Signed(x))
	waits := tolerance{least: clusterWait}
	for i := 0; ctx.Err() == nil; i++ {
		try, cancel := context.WithTimeout(ctx, waits.wait())
		a, err := b.Send(try, "POST", g.nodes[i%len(g.nodes)].url("base")+chaintest.PathSubmit, body, b.Bearer()...)
		if try.Err() != nil {
			waits.longer()
		}
		cancel()
		if err == nil && a.Status < 500 && (a.Status < 300 || a.Status >= 400) {
			return a
		}
		programtest.Pause(ctx, clusterRetry)
	}
	return nil
}
