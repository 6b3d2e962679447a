package quorum

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/persist"
	"blockdesk/persist/journaltest"
)

// TestLateFollower: a node that joins when the log's beginning was dropped gets a
// snapshot over the transport, becomes a voter and takes the leadership; the node that
// it replaces is removed. It has the stores and the events.
func TestLateFollower(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, func(o *Options) { o.SnapshotEvery, o.TrailingEntries, o.Timeout = 20, 5, steady })
	ref := journaltest.NewReference(journaltest.Commands(1000, 7))
	id, term := c.lead()
	first := c.members[id].node
	w := newWriter(t, term)
	store := term.Store("fix")
	big := make([]byte, MaxValueBytes)
	at := 0
	for n := range 100 {
		if err := w.append(ref.Commands[at : at+5]); err != nil {
			t.Fatal(err)
		}
		at += 5
		err := store.Commit(func(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
			set(fmt.Appendf(nil, "k%03d", n), fmt.Appendf(nil, "v%d", n))
			if n < 3 {
				set(fmt.Appendf(nil, "big%d", n), big)
			}
			deleteRange(fmt.Appendf(nil, "k%03d", n-10), fmt.Appendf(nil, "k%03d", n-9))
		}, true)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := first.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	if begin, _ := first.log.Bounds(); begin < 2 {
		t.Fatalf("the log still begins at entry %d", begin)
	}
	late := Peer{ID: "late", Address: freeAddress(t)}
	c.add(late, true)
	if err := first.AddNonvoter(late.ID, late.Address); err != nil {
		t.Fatal(err)
	}
	node := c.members["late"].node
	await.True(t, "the late follower to catch up", func() bool { return node.Status().Applied >= first.Status().Committed })
	if err := first.AddVoter(late.ID, late.Address); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the transfer", func() bool { _ = first.Transfer(); return node.Status().Role == Leader })
	_, term = c.lead(id)
	if err := node.Remove(id); err != nil {
		t.Fatal(err)
	}
	if s := node.Status(); len(s.Members) != 1 || s.Members[0].ID != "late" || !s.Members[0].Voter || s.Leader.ID != "late" {
		t.Errorf("status %+v", s)
	}
	w = newWriter(t, term)
	if int(w.replica.State.Seq()) != at || !ref.Same(w.replica) {
		t.Errorf("the late follower is at seq %d, want %d", w.replica.State.Seq(), at)
	}
	var keys []string
	err := term.Store("fix").Scan(nil, nil, func(key, _ []byte) bool { keys = append(keys, string(key)); return true })
	if err != nil || len(keys) != 10+3 || keys[0] != "big0" || keys[12] != "k099" {
		t.Errorf("the store has %q: %v", keys, err)
	}
	if err := w.append(ref.Commands[at : at+5]); err != nil {
		t.Error(err)
	}
}

// TestStaleTerm: every node refuses an entry of a term that is over, even if the same
// node leads again.
func TestStaleTerm(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	ref := journaltest.NewReference(journaltest.Commands(100, 8))
	_, term := c.lead()
	w := newWriter(t, term)
	if err := w.append(ref.Commands[:10]); err != nil {
		t.Fatal(err)
	}
	term.end(errors.New("the test says so"))
	_, next := c.lead()
	if next == term || next.start <= term.start {
		t.Fatalf("term start %d after %d", next.start, term.start)
	}
	n := term.node
	data, err := func() ([]byte, error) {
		c := newCommit("fix")
		c.set([]byte("a"), []byte("stale"))
		return c.seal()
	}()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.commit(tag{kind: storeKind, termStart: term.start}, data); !errors.Is(err, errStale) {
		t.Errorf("a commit of the last term: %v", err)
	}
	if _, ok, err := next.Store("fix").Get([]byte("a")); ok || err != nil {
		t.Errorf("a stale commit is there %v: %v", ok, err)
	}
	if err := term.Store("fix").Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {}, false); !errors.Is(err, ErrDeposed) {
		t.Errorf("a store of the last term: %v", err)
	}
	if _, _, err := term.Store("fix").Get([]byte("a")); err != nil {
		t.Errorf("reading with nothing under way: %v", err)
	}
	v := newWriter(t, next)
	if err := v.append(ref.Commands[10:20]); err != nil || !ref.Same(v.replica) {
		t.Errorf("the next term: %v", err)
	}
	if _, err := next.Recover(0, nil); !errors.Is(err, ErrRecoverAfterAppend) {
		t.Errorf("recover after the first frame: %v", err)
	}
}

// TestDiverged: a leader whose engine made other events of the same commands than the
// other nodes' stops itself and them, and nothing after it is acknowledged.
func TestDiverged(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	ref := journaltest.NewReference(journaltest.Commands(100, 8))
	id, term := c.lead()
	w := newWriter(t, term)
	w.replica.Digest++
	_ = w.append(ref.Commands[:10]) // its events come after it
	_ = w.append(ref.Commands[10:20])
	<-c.members[id].node.broken
	if err := c.stop(id); !errors.Is(err, errDiverged) {
		t.Errorf("the node ended with %v", err)
	}
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	a := &authority{pool: x509.NewCertPool()}
	a.cert, a.key = certificate(t, nil, "127.0.0.1:0")
	a.pool.AddCert(a.cert)
	return a
}

// certificate returns a certificate for an address, host:port.
func certificate(t testing.TB, by *authority, address string) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ := strings.Cut(address, ":")
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.ParseIP(host)},
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: by == nil,
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func (a *authority) config(t testing.TB, address string) *tls.Config {
	cert, key := certificate(t, a, address)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}, RootCAs: a.pool, ClientCAs: a.pool,
	}
}

// TestTLS: nodes with certificates of one authority are a group; a stranger gets no
// byte through.
func TestTLS(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	c := newCluster(t, 3, func(o *Options) { o.TLS = ours.config(t, o.Bind) })
	ref := journaltest.NewReference(journaltest.Commands(100, 9))
	for done := false; !done; {
		id, term := c.lead()
		w := newWriter(t, term)
		at := w.replica.State.Seq()
		done = w.append(ref.Commands[at:at+10]) == nil
		if done && c.members[id].node.Leader().REST != "https://"+id+".example" {
			t.Errorf("the leader is %+v", c.members[id].node.Leader())
		}
	}
	for name, config := range map[string]*tls.Config{
		"of another authority": newAuthority(t).config(t, c.peers[0].Address),
		"without one":          {RootCAs: ours.pool},
	} {
		config.RootCAs = ours.pool
		ctx, cancel := context.WithTimeout(t.Context(), runtest.HangTimeout)
		conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", c.peers[0].Address)
		if err == nil {
			_, err = conn.Read(make([]byte, 1)) // TLS 1.3 refuses after the client's last word
			_ = conn.Close()
		}
		cancel()
		if err == nil {
			t.Errorf("a client with a certificate %s got in", name)
		}
	}
}

func TestOptions(t *testing.T) {
	good := func() Options {
		return Options{ID: "n1", Dir: "d", Bind: "127.0.0.1:0", Peers: []Peer{{ID: "n1", Address: "127.0.0.1:1"}, {ID: "n2", Address: "localhost:2"}}}
	}
	o := good()
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"no id":             func(o *Options) { o.ID = "" },
		"id too long":       func(o *Options) { o.ID = string(make([]byte, MaxNameBytes+1)) },
		"not a peer":        func(o *Options) { o.ID = "n3" },
		"no folder":         func(o *Options) { o.Dir = "" },
		"timeout too short": func(o *Options) { o.Timeout = MinTimeout - 1 },
		"timeout too long":  func(o *Options) { o.Timeout = MaxTimeout + 1 },
		"no peers":          func(o *Options) { o.Peers = nil },
		"tail too short":    func(o *Options) { o.TailEvents = MinTailEvents - 1 },
		"tail too long":     func(o *Options) { o.TailEvents = MaxTailEvents + 1 },
		"keeps nothing":     func(o *Options) { o.KeepSnapshots = -1 },
		"a disk's limit":    func(o *Options) { o.DiskLowPercent = 100 },
		"a disk's time":     func(o *Options) { o.DiskEvery = -1 },
		"an id twice":       func(o *Options) { o.Peers[1].ID = "n1" },
		"an address twice":  func(o *Options) { o.Peers[1].Address = "127.0.0.1:1" },
		"no port":           func(o *Options) { o.Peers[1].Address = "127.0.0.1" },
		"open to the world": func(o *Options) { o.Bind = "0.0.0.0:7000" },
		"plain to a peer":   func(o *Options) { o.Peers[1].Address = "10.0.0.2:7000" },
		"TLS of nobody":     func(o *Options) { o.TLS = &tls.Config{} },
		"too many peers": func(o *Options) {
			for i := range MaxPeers {
				o.Peers = append(o.Peers, Peer{ID: fmt.Sprint("p", i), Address: fmt.Sprint("127.0.0.1:", 10+i)})
			}
		},
	} {
		o := good()
		change(&o)
		if err := o.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	n := &Node{o: good()}
	if err := n.AddVoter("x", "10.0.0.2:7000"); !errors.Is(err, ErrMember) {
		t.Errorf("a member beyond loopback without TLS: %v", err)
	}
	if err := n.AddVoter("", "127.0.0.1:7000"); !errors.Is(err, ErrMember) {
		t.Errorf("a member without an id: %v", err)
	}
	if err := n.AddVoter("x", "127.0.0.1:7000"); !errors.Is(err, ErrStopped) {
		t.Errorf("before Run: %v", err)
	}
}

// TestMissing: a node without the snapshots before its log does not start; a node that
// finds a gap among the frames leaves.
func TestMissing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, func(o *Options) { o.TrailingEntries = 1 })
	ref := journaltest.NewReference(journaltest.Commands(100, 8))
	id, term := c.lead()
	w := newWriter(t, term)
	for at := 0; at < 100; at += 10 {
		if err := w.append(ref.Commands[at : at+10]); err != nil {
			t.Fatal(err)
		}
	}
	m := c.members[id]
	if err := m.node.raft.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	if err := c.stop(id); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(m.o.Dir, logFolder, "snapshots")); err != nil {
		t.Fatal(err)
	}
	var damage *persist.DamageError
	if n, err := Open(m.o); !errors.As(err, &damage) || !errors.Is(err, errMissing) {
		t.Errorf("without its snapshots: %v, %v", n, err)
	}

	f := persist.Frame{}
	gap, err := persist.AppendFrame(nil, &f, ref.Commands[5:9], nil)
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	alone := &machine{standby: newStandby(journaltest.State(), MinTailEvents), at: persist.Genesis(), fail: func(err error) error { failed = err; return err }}
	got := alone.Apply(&raft.Log{Index: 2, Data: gap, Extensions: tag{kind: frameKind}.encode()})
	if err, ok := got.(error); !ok || !errors.Is(err, errMissing) || failed == nil {
		t.Errorf("a gap: %v, failed %v", got, failed)
	}
}
