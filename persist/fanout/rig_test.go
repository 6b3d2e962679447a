package fanout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/persist/journaltest"
)

// A NATS server (2.15.2) that is stopped while it creates a stream leaves the store of
// that stream open, with two goroutines. A process runs one server and ends with it.
func TestMain(m *testing.M) {
	const nats = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction(nats+".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction(nats+"/ats.Register.func1"))
}

var smallState = engine.StateOptions{MaxOrders: 4096}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// running is a component that runs until stop.
type running struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

func start(run func(ctx context.Context) error) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = run(ctx)
	}()
	return r
}

func (r *running) stop(t testing.TB) error {
	t.Helper()
	r.cancel()
	return r.wait(t)
}

func (r *running) wait(t testing.TB) error {
	t.Helper()
	await.Closed(t, "the end of Run", r.done)
	return r.err
}

// rig is a server and the options to connect to it.
type rig struct {
	o      Options
	server *running
	so     ServerOptions
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{so: ServerOptions{Host: journaltest.Loopback(), Dir: t.TempDir(), Logger: quiet()}}
	r.up(t)
	r.o = Options{
		URLs: []string{r.url(t)}, Heartbeat: 20 * time.Millisecond, StreamBytes: MinStreamBytes,
		State: smallState, Logger: quiet(), RefillTimeout: runtest.HangTimeout,
	}
	r.o = r.o.withDefaults()
	t.Cleanup(func() {
		if err := r.server.stop(t); err != nil {
			t.Error(err)
		}
	})
	return r
}

// up starts the server, always at the same address.
func (r *rig) up(t testing.TB) {
	t.Helper()
	s, err := NewServer(r.so)
	if err != nil {
		t.Fatal(err)
	}
	r.server = start(s.Run)
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	if _, err := s.URL(ctx); err != nil {
		t.Fatal(err)
	}
	if a, ok := s.s.Addr().(*net.TCPAddr); ok {
		r.so.Port = a.Port
	}
}

func (r *rig) url(t testing.TB) string {
	t.Helper()
	return "nats://" + r.address()
}

// leader is a store, an engine on it and a publisher.
type leader struct {
	store     *persist.Store
	engine    *engine.Engine
	replica   *engine.Replica
	publisher *Publisher
	runs      []*running // in the order of their stop
	flow      *flow
}

func journalOptions(fs vfs.FS) persist.Options {
	return persist.Options{
		Dir: "/journal", FS: fs, SnapshotEvery: 1 << 40, MemTableBytes: 256 << 10, SpareLogs: -1,
		Logger: quiet(), State: smallState,
	}
}

// lead starts a leader on the journal in o.
func (r *rig) lead(t testing.TB, o persist.Options, f *flow) *leader {
	t.Helper()
	store, err := persist.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	replica, err := store.Recover(persist.NewestSnapshot, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Journal: store}, replica)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPublisher(r.o, store, e.Epoch())
	if err != nil {
		t.Fatal(err)
	}
	l := &leader{store: store, engine: e, replica: replica, publisher: p, flow: f}
	l.runs = []*running{start(p.Run), start(e.Run), start(store.Run)}
	return l
}

// stop stops the leader cleanly.
func (l *leader) stop(t testing.TB) {
	t.Helper()
	for _, r := range l.runs {
		if err := r.stop(t); err != nil {
			t.Error(err)
		}
	}
	if err := l.store.Close(); err != nil {
		t.Error(err)
	}
}

// submit submits n commands of the flow.
func (l *leader) submit(t testing.TB, n int) {
	t.Helper()
	for range n {
		c := l.flow.next()
		await.True(t, "room in the engine's ring", func() bool {
			err := l.engine.Submit(&c)
			if err != nil && !errors.Is(err, engine.ErrFull) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
}

// seq waits until the engine is idle and returns its last durable command.
func (l *leader) seq(t testing.TB) uint64 {
	t.Helper()
	await.True(t, "the engine at rest", func() bool { s := l.engine.Stats(); return s.Ingress == 0 && s.Durable == s.Seq })
	return l.engine.Stats().Durable
}

// reader is a follower, the engine that it drives, and a consumer of its events.
type reader struct {
	follower *Follower
	engine   *engine.Engine
	replica  *engine.Replica
	begin    uint64 // the digest of the snapshot
	runs     []*running
	digest   atomic.Uint64 // of the events seen
}

// follow joins and runs a follower.
func follow(t testing.TB, o Options) *reader {
	t.Helper()
	f, err := NewFollower(o)
	if err != nil {
		t.Fatal(err)
	}
	return rejoin(t, f)
}

// rejoin starts a follower over.
func rejoin(t testing.TB, f *Follower) *reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	replica, err := f.Join(ctx)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Follow(engine.Options{EgressSize: 1 << 12}, replica)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{follower: f, engine: e, replica: replica, begin: replica.Digest}
	r.digest.Store(replica.Digest)
	c := e.Consumer("reader")
	r.runs = []*running{
		start(func(ctx context.Context) error { return f.Run(ctx, e) }),
		start(e.Run),
		start(func(context.Context) error { return r.read(c) }),
	}
	return r
}

func (r *reader) read(c *engine.Consumer) error {
	for {
		events, err := c.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		sum := r.digest.Load()
		for i := range events {
			sum = event.Digest(sum, &events[i])
		}
		r.digest.Store(sum)
		c.Release(len(events))
	}
}

func (r *reader) stop(t testing.TB) {
	t.Helper()
	for i, run := range r.runs {
		if err := run.stop(t); err != nil {
			t.Errorf("run %d: %v", i, err)
		}
	}
}

// reaches waits until the reader has applied seq.
func (r *reader) reaches(t testing.TB, seq uint64) {
	t.Helper()
	await.Value(t, fmt.Sprintf("the follower at seq %d", seq), func() uint64 {
		select {
		case <-r.runs[0].done:
			t.Fatalf("the follower ended: %v", r.runs[0].err)
		default:
		}
		_, at := r.engine.Digest()
		return at
	}, func(at uint64) bool { return at >= seq })
}

// sameAs stops both and compares all that is comparable.
func (r *reader) sameAs(t testing.TB, l *leader) {
	t.Helper()
	r.stop(t)
	if r.replica.State.Seq() != l.replica.State.Seq() || r.replica.Digest != l.replica.Digest ||
		r.replica.State.Hash() != l.replica.State.Hash() || r.digest.Load() != l.replica.Digest {
		t.Errorf("at seq %d, digest %016x, seen %016x; the leader at %d, %016x; states equal: %v", r.replica.State.Seq(),
			r.replica.Digest, r.digest.Load(), l.replica.State.Seq(), l.replica.Digest, r.replica.State.Hash() == l.replica.State.Hash())
	}
}

// flow makes commands for one instrument and three participants.
type flow struct {
	rng  *rand.Rand
	head []engine.Command
	id   market.OrderID
	mu   sync.Mutex
}

func newFlow(t testing.TB, seed uint64) *flow {
	t.Helper()
	f := &flow{rng: rand.New(rand.NewPCG(seed, 5))}
	c, err := engine.DefineInstrumentCommand(&market.Instrument{
		Symbol: "AAA/USD", Base: "AAA", Quote: "USD", Tick: 1, Lot: 1, MinQty: 1,
		MaxQty: 1_000_000, MaxPrice: 1_000_000, Source: market.Matched,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.head = append(f.head, c)
	for participant := market.ParticipantID(1); participant <= 3; participant++ {
		c, err := engine.SetRiskCommand(participant, engine.AllInstruments, engine.Limits{
			MaxQty: 1_000_000, MaxNotional: market.Uint128{Hi: 1}, MaxOpenOrders: 1 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		f.head = append(f.head, c)
	}
	return f
}

func (f *flow) next() engine.Command {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.head) > 0 {
		c := f.head[0]
		f.head = f.head[1:]
		return c
	}
	c := engine.Command{Kind: engine.NewOrder}
	c.Order.Participant = market.ParticipantID(1 + f.rng.IntN(3))
	if f.id > 0 && f.rng.IntN(3) == 0 {
		c.Kind, c.Order.ID = engine.CancelOrder, f.id-market.OrderID(f.rng.IntN(40))
		c.Order.Participant = 0
		return c
	}
	f.id++
	c.Order.ID, c.Order.Side = f.id, market.Side(1+f.rng.IntN(2))
	c.Order.Price, c.Order.Qty = market.Price(1000+f.rng.IntN(20)), market.Qty(1+f.rng.IntN(9))
	c.Order.Type, c.Order.TIF, c.Order.STP = book.Limit, book.GTC, book.STPCancelNewest
	return c
}
