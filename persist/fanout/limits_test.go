package fanout

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"blockdesk/engine"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/persist"
)

func TestOptions(t *testing.T) {
	good := func() Options { return Options{URLs: []string{"nats://127.0.0.1:4222"}} }
	if o := good(); o.Validate() != nil {
		t.Fatal(o.Validate())
	}
	for name, change := range map[string]func(*Options){
		"no url":          func(o *Options) { o.URLs = nil },
		"17 urls":         func(o *Options) { o.URLs = make([]string, MaxURLs+1) },
		"prefix":          func(o *Options) { o.Prefix = "a.b" },
		"long prefix":     func(o *Options) { o.Prefix = strings.Repeat("a", 65) },
		"short heartbeat": func(o *Options) { o.Heartbeat = MinHeartbeat - 1 },
		"long heartbeat":  func(o *Options) { o.Heartbeat = MaxHeartbeat + 1 },
		"small stream":    func(o *Options) { o.StreamBytes = MinStreamBytes - 1 },
		"large stream":    func(o *Options) { o.StreamBytes = MaxStreamBytes + 1 },
		"young stream":    func(o *Options) { o.StreamAge = time.Second },
		"two replicas":    func(o *Options) { o.StreamReplicas = 2 },
		"seven replicas":  func(o *Options) { o.StreamReplicas = 7 },
		"stale":           func(o *Options) { o.Heartbeat, o.MaxStale = time.Second, 2*time.Second },
		"patience":        func(o *Options) { o.RefillTimeout = -1 },
		"two logons":      func(o *Options) { o.Auth = Auth{User: "u", Token: "t"} },
		"no seed":         func(o *Options) { o.Auth = Auth{Seed: []byte("SUX")} },
	} {
		o := good()
		change(&o)
		if _, err := NewFollower(o); err == nil {
			t.Errorf("%s: a follower", name)
		}
		if _, err := NewPublisher(o, nil, 1); err == nil {
			t.Errorf("%s: a publisher", name)
		}
	}
	if _, err := NewPublisher(good(), nil, 0); err == nil {
		t.Error("a leader without a term")
	}
	f, err := NewFollower(good())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context(), nil); err == nil {
		t.Error("Run before Join")
	}
	if err := f.Ready(); !errors.Is(err, ErrNotReady) {
		t.Errorf("ready before Join: %v", err)
	}
	for name, o := range map[string]ServerOptions{
		"no folder": {}, "port": {Dir: "x", Port: 65536}, "store": {Dir: "x", MaxStore: -1}, "password": {Dir: "x", Password: "p"},
	} {
		if _, err := NewServer(o); err == nil {
			t.Errorf("server, %s: taken", name)
		}
	}
}

// TestLogon: a server that requires a user or a key accepts the right one only.
func TestLogon(t *testing.T) {
	t.Parallel()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		Users: []*server.User{{Username: "u", Password: "p"}}, Nkeys: []*server.NkeyUser{{Nkey: public}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(runtest.HangTimeout) {
		t.Fatal("no server")
	}
	for name, c := range map[string]struct {
		auth Auth
		ok   bool
	}{
		"password":       {Auth{User: "u", Password: "p"}, true},
		"key":            {Auth{Seed: seed}, true},
		"wrong password": {Auth{User: "u", Password: "q"}, false},
		"nobody":         {Auth{}, false},
		"token":          {Auth{Token: "t"}, false},
		"credentials":    {Auth{Credentials: []byte("none")}, false},
	} {
		o := (&Options{URLs: []string{s.ClientURL()}, Auth: c.auth, Logger: quiet()}).withDefaults()
		l, err := dial(&o, "test", &LinkStats{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.ok {
			await.True(t, name, l.IsConnected)
		} else {
			await.True(t, name+" refused", func() bool { return l.LastError() != nil })
			if l.IsConnected() {
				t.Errorf("%s: let in", name)
			}
		}
		l.Close()
	}
}

// slowApplier blocks on the first frame until the test releases it.
type slowApplier struct {
	strict
	held, begun chan struct{}
}

func (s *slowApplier) Apply(prior uint64, commands []engine.Command) error {
	if s.begun != nil {
		close(s.begun)
		s.begun = nil
		<-s.held
	}
	return s.strict.Apply(prior, commands)
}

// TestLiveQueue: messages that do not fit the queue of a blocked follower are dropped,
// counted, and read from the stream.
func TestLiveQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.lead(t, journalOptions(vfs.NewMem()), newFlow(t, 12))
	f, err := NewFollower(r.o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	if _, err := f.Join(ctx); err != nil {
		t.Fatal(err)
	}
	a := &slowApplier{strict: strict{engine.NewReplica(smallState)}, held: make(chan struct{}), begun: make(chan struct{})}
	begun := a.begun
	run := start(func(ctx context.Context) error { return f.Run(ctx, a) })
	<-begun
	c, err := nats.Connect(r.o.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range LiveQueueMessages + 1 {
		if err := c.Publish(r.o.liveSubject(), []byte("noise")); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "an overflow", func() bool { return f.stats.Overflows.Load() > 0 })
	l.submit(t, 1000)
	seq := l.seq(t)
	await.True(t, "everything published", func() bool { return l.publisher.Stats().LiveSeq.Load() == seq })
	close(a.held)
	await.True(t, "the end of the journal", func() bool { return f.Lag().Seq == seq })
	await.True(t, "readiness", func() bool { return f.Ready() == nil })
	if err := run.stop(t); err != nil {
		t.Fatal(err)
	}
	l.stop(t)
	if a.replica.Digest != l.replica.Digest {
		t.Errorf("digest %016x, the leader's %016x", a.replica.Digest, l.replica.Digest)
	}
}

// snapshotJournal is a journal with one snapshot's file, that may change and be slow.
type snapshotJournal struct {
	Journal
	next atomic.Uint64 // what comes after the snapshot
	file []byte
	read func() // called before each read
}

func newCachedJournal(bytes int) *snapshotJournal {
	s := &snapshotJournal{file: make([]byte, bytes)}
	s.next.Store(7)
	return s
}

func (s *snapshotJournal) NewestSnapshot() (persist.Position, bool) { return s.Durable(), true }

func (s *snapshotJournal) Durable() persist.Position {
	return persist.Position{Next: s.next.Load(), Hash: 1, Epoch: 1}
}

func (s *snapshotJournal) SetWake(chan<- struct{}) {}

func (s *snapshotJournal) Frames(uint64, func(*persist.Frame, []byte) bool) error { return nil }

func (s *snapshotJournal) ReadSnapshot(next uint64, offset int64, p []byte) (int, int64, error) {
	s.read()
	if next != s.next.Load() {
		return 0, 0, persist.ErrNoSnapshot
	}
	return copy(p, s.file[min(offset, int64(len(s.file))):]), int64(len(s.file)), nil
}

// TestUnusableSnapshots: Join gives up a snapshot that is damaged or pruned before it
// is complete, tries again, and ends after MaxSnapshotTries.
func TestUnusableSnapshots(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *snapshotJournal){
		"damaged": func(*snapshotJournal) {},
		"gone":    func(s *snapshotJournal) { s.next.Add(1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := newCachedJournal(2 * MaxPieceBytes)
			reads := 0
			s.read = func() {
				if reads++; reads%2 == 0 {
					spoil(s)
				}
			}
			p, err := NewPublisher(r.o, s, 1)
			if err != nil {
				t.Fatal(err)
			}
			run := start(p.Run)
			f, err := NewFollower(r.o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
			defer cancel()
			if _, err := f.Join(ctx); !errors.Is(err, ErrSnapshot) {
				t.Errorf("got %v", err)
			}
			if err := run.stop(t); err != nil {
				t.Error(err)
			}
			if n := p.Stats().Pieces.Load(); n < MaxSnapshotTries {
				t.Errorf("%d pieces given", n)
			}
		})
	}
}

// TestRequestQueue: requests above the limit of the queue are dropped and counted, the
// others answered, however slow the disk is.
func TestRequestQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begun, held := make(chan struct{}, 1), make(chan struct{})
	s := newCachedJournal(100)
	s.read = func() {
		select {
		case begun <- struct{}{}:
		default:
		}
		<-held
	}
	p, err := NewPublisher(r.o, s, 1)
	if err != nil {
		t.Fatal(err)
	}
	run := start(p.Run)
	c, err := nats.Connect(r.o.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	request := appendMessage(nil, &head{kind: kindSnapshotRequest})
	answers, err := c.SubscribeSync("answers")
	if err != nil {
		t.Fatal(err)
	}
	waiting := func() bool {
		if err := c.PublishRequest(r.o.snapshotSubject(), "answers", request); err != nil {
			t.Fatal(err)
		}
		select {
		case <-begun:
			return true
		default:
			return false
		}
	}
	await.True(t, "a request under way", waiting)
	for range RequestQueue + 1 {
		if err := c.PublishRequest(r.o.snapshotSubject(), "answers", request); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "an overflow", func() bool { return p.Stats().Overflows.Load() > 0 })
	close(held)
	await.True(t, "the others answered", func() bool { return p.Stats().Pieces.Load() > RequestQueue })
	for {
		m, err := answers.NextMsg(runtest.HangTimeout)
		if errors.Is(err, nats.ErrNoResponders) {
			continue // asked before the publisher was there
		} else if err != nil {
			t.Fatal(err)
		}
		if h, _, err := parseMessage(m.Data); err != nil || h.kind != kindSnapshotPiece {
			t.Errorf("an answer of kind %d: %v", h.kind, err)
		}
		break
	}
	if err := run.stop(t); err != nil {
		t.Error(err)
	}
	if n := p.Stats().Pieces.Load(); n > RequestQueue+1 {
		t.Errorf("%d answered", n)
	}
}

// TestSmallMessages: a server with a low message limit gets frames and snapshots in
// many pieces.
func TestSmallMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.server.stop(t); err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: r.so.Host, Port: r.so.Port, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: 4096,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	o, flow := journalOptions(vfs.NewMem()), newFlow(t, 13)
	l := r.lead(t, o, flow)
	a := follow(t, r.o)
	l.submit(t, 8000)
	a.reaches(t, l.seq(t))
	l.stop(t)
	l = r.lead(t, o, flow)
	b := follow(t, r.o)
	l.submit(t, 4000)
	seq := l.seq(t)
	a.reaches(t, seq)
	b.reaches(t, seq)
	l.stop(t)
	a.sameAs(t, l)
	b.sameAs(t, l)
	if s := l.publisher.Stats(); s.Messages.Load() <= s.Frames.Load() || b.follower.Stats().SnapshotBytes.Load() == 0 {
		t.Errorf("%d messages for %d frames, %d bytes of a snapshot", s.Messages.Load(), s.Frames.Load(), b.follower.Stats().SnapshotBytes.Load())
	}
}

func TestMetrics(t *testing.T) {
	o := Options{URLs: []string{"nats://127.0.0.1:4222"}}
	p, err := NewPublisher(o, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFollower(o)
	if err != nil {
		t.Fatal(err)
	}
	p.stats.Frames.Add(3)
	f.stats.Gaps.Add(2)
	seen := map[string]Metric{}
	for _, m := range append(p.Metrics(), f.Metrics()...) {
		if _, twice := seen[m.Name]; twice || !strings.HasSuffix(m.Help, ".") || m.Gauge == strings.HasSuffix(m.Name, "_total") {
			t.Errorf("metric %+v", m)
		}
		seen[m.Name] = m
	}
	if seen["fanout_frames_total"].Value != 3 || seen["follower_gaps_total"].Value != 2 {
		t.Errorf("%+v", seen)
	}
}

// TestTLS: over TLS a follower joins a server that it trusts, and no other.
func TestTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(crand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(ServerOptions{
		Dir: t.TempDir(), User: "u", Password: "p", Logger: quiet(),
		TLS: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	run := start(s.Run)
	url, err := s.URL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(leaf)
	for name, pool := range map[string]*x509.CertPool{"trusted": trusted, "not trusted": x509.NewCertPool()} {
		o := (&Options{
			URLs: []string{url}, Auth: Auth{User: "u", Password: "p"}, TLS: &tls.Config{RootCAs: pool}, Logger: quiet(),
		}).withDefaults()
		l, err := dial(&o, "test", &LinkStats{})
		if err != nil {
			t.Fatal(err)
		}
		if pool == trusted {
			await.True(t, name, l.IsConnected)
		} else {
			await.True(t, name, func() bool { return l.LastError() != nil })
			if l.IsConnected() {
				t.Error("a server that is not trusted is used")
			}
		}
		l.Close()
	}
	if err := run.stop(t); err != nil {
		t.Error(err)
	}
}
