package fixgw

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
)

// soakEnv is how TestSoak runs: a duration, a number of sessions and a seed, such
// as "60s 50 1"; what is left out has its default. make race has more sessions.
const soakEnv = "BLOCKDESK_FIX_SOAK"

// soak is a gateway on the real store, whose disk crashes now and then, among
// clients that keep no rule.
type soak struct {
	t        *testing.T
	seed     uint64
	sessions int
	traders  int // running
	length   time.Duration
	desk     *harness
	disk     *crashDisk
	secure   *tls.Config // the server's
	trusted  *tls.Config // the clients'

	mu     sync.Mutex
	addr   string
	client *tls.Config // nil = the gateway speaks plain TCP now
	expiry time.Time   // of the last GTD order

	ready           sync.WaitGroup // traders that have all expected reports
	finished, ended atomic.Bool    // no new requests; nothing more comes
	broken          chan error     // what breaks a law; the first few
	refused         atomic.Int64   // logons of the storm
	answered        atomic.Int64   // requests of the traders
}

// TestSoak: whatever clients, network and disk do, every order's reports are
// complete and in order, no number is used twice, the books equal the journal's
// replay, and nothing is left behind. Not parallel: it counts goroutines.
func TestSoak(t *testing.T) {
	s := newSoak(t)
	before := s.idle()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var storm sync.WaitGroup
	for i := range 3 {
		storm.Go(func() { s.storm(ctx, rand.New(rand.NewPCG(s.seed, uint64(1000+i)))) })
	}
	var traders []*trader
	running := make(chan error, s.sessions)
	for i, p := range s.desk.options.Participants {
		for j, compID := range p.CompIDs {
			k := newTrader(s, compID, p.Name, uint64(100*i+j))
			traders = append(traders, k)
		}
	}
	s.traders = len(traders)
	s.ready.Add(s.traders)
	for _, k := range traders {
		go func() { running <- k.run() }()
	}
	lives := s.lives(running)
	cancel()
	storm.Wait()
	s.finished.Store(true)
	s.settle(running)
	s.ended.Store(true)
	for range traders {
		s.law(<-running)
	}
	s.quiet(before)
	steps, reports := 0, 0
	for _, k := range traders {
		steps, reports = steps+k.steps, reports+len(k.book.places)
	}
	stats := s.desk.gateway.Stats()
	s.desk.stop()
	s.compare(traders)
	t.Logf("%d lives, %d steps, %d reports, %d logons refused; the last life: %+v", lives, steps, reports, s.refused.Load(), stats)
}

func newSoak(t *testing.T) *soak {
	s := &soak{t: t, seed: runtest.Seed(t), sessions: 12, length: 4 * time.Second, broken: make(chan error, 8)}
	if text := os.Getenv(soakEnv); text != "" {
		var length string
		n, err := fmt.Sscan(text, &length, &s.sessions, &s.seed)
		if (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)) && n > 0 { // without a seed
			err = nil
		}
		if s.length, err = parsed(length, err); err != nil || s.sessions < 2 {
			t.Fatalf("%s=%q: %v", soakEnv, text, err)
		}
	}
	t.Logf("%s=%q", soakEnv, fmt.Sprint(s.length, " ", s.sessions, " ", s.seed))
	s.certify()
	s.disk = newCrashDisk(t, vfs.NewCrashableMem())
	s.desk = &harness{
		t: t, set: wiretest.Instruments(t), journal: &memJournal{}, disk: s.disk,
		options: Options{
			Options: session.Options{
				Address: "127.0.0.1:0", CompID: "SOAK", Participants: soakParticipants(s.sessions),
				RefuseDelay: 20 * time.Millisecond, Rate: 100, MaxOutbox: 64 << 10, MaxPendingPerIP: 64,
				ReserveSeqs: 100, KeepMessages: 1 << 20, GapTimeout: 2 * time.Second,
			},
			ClosedRefs: 16, SyncEvery: 100 * time.Millisecond, RestartGrace: 2 * time.Second, DrainTimeout: wait,
		},
	}
	s.start(true)
	t.Cleanup(func() {
		s.desk.stop()
		s.disk.close()
	})
	return s
}

func parsed(length string, err error) (time.Duration, error) {
	if err != nil {
		return 0, err
	}
	return time.ParseDuration(length)
}

// soakParticipants returns participants of one and of two sessions, of every kind
// of self-trade prevention.
func soakParticipants(sessions int) []participants.Participant {
	var list []participants.Participant
	for i := 0; sessions > 0; i++ {
		name := fmt.Sprintf("P%02d", i)
		p := sessiontest.Participants(name)[0]
		p.Number, p.STP = market.ParticipantID(i+1), book.STPCancelNewest+book.STP(i%4)
		if i%3 == 0 && sessions > 1 {
			p.CompIDs = append(p.CompIDs, name+"-B")
		}
		sessions -= len(p.CompIDs)
		list = append(list, p)
	}
	return list
}

func (s *soak) certify() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{"desk"}}
	der, err := x509.CreateCertificate(crand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	s.secure = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.trusted = &tls.Config{RootCAs: roots, ServerName: "desk"}
}

// start begins a life, with or without TLS.
func (s *soak) start(plain bool) {
	s.desk.options.TLS = s.secure
	if plain {
		s.desk.options.TLS = nil
	}
	s.desk.start()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr, s.client = s.desk.addr(), s.trusted
	if plain {
		s.client = nil
	}
}

func (s *soak) where() (string, *tls.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr, s.client
}

// expires notes when an order ends by itself.
func (s *soak) expires(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.After(s.expiry) {
		s.expiry = at
	}
}

func (s *soak) finishing() bool       { return s.finished.Load() }
func (s *soak) stopped() bool         { return s.ended.Load() }
func (s *soak) pause(d time.Duration) { time.Sleep(d) } // sleep: the dice of the soak pace it
func (s *soak) law(err error) {
	if err != nil {
		s.t.Error(err)
	}
}

// lives lets the gateway reload, stop and crash until the time is over, and returns
// how often it has begun. A law that is broken ends it at once.
func (s *soak) lives(running <-chan error) int {
	r := rand.New(rand.NewPCG(s.seed, 7))
	const least = 20 // answers in a life
	end := time.After(s.length)
	for n := 1; ; n++ {
		before, last := s.answered.Load(), false
		select {
		case err := <-running:
			s.t.Fatal(err)
		case <-end:
			last = true
		case <-time.After(time.Duration(500+r.IntN(2000)) * time.Millisecond):
		}
		// On a slow machine the traders have not come to anything by then.
		await.True(s.t, "traders to be answered", func() bool { return s.answered.Load() >= before+least || len(running) > 0 })
		if last {
			return n
		}
		if r.IntN(3) > 0 {
			s.reload(r)
		}
		s.pause(time.Duration(r.IntN(1000)) * time.Millisecond)
		if r.IntN(3) == 0 {
			s.desk.stop()
		} else {
			s.crash(r)
		}
		s.start(r.IntN(2) == 0)
	}
}

// reload takes a participant out, whatever its sessions are doing, and puts it back.
func (s *soak) reload(r *rand.Rand) {
	all := s.desk.options.Participants
	i := r.IntN(len(all))
	for _, list := range [][]participants.Participant{slices.Delete(slices.Clone(all), i, i+1), all} {
		if _, err := s.desk.gateway.Reload(list); err != nil {
			s.t.Error(err)
		}
		s.pause(time.Duration(r.IntN(500)) * time.Millisecond)
	}
}

// crash ends everything at once, and leaves the disk what it has synced and some
// of the rest.
func (s *soak) crash(r *rand.Rand) {
	left := s.disk.crash(r)
	s.desk.stopped = true
	s.desk.cancel()
	for range 3 {
		<-s.desk.done
	}
	s.disk.close()
	s.disk = newCrashDisk(s.t, left)
	s.desk.disk = s.disk
}

// settle waits until every trader has all expected reports, all orders that end by
// themselves have, and the gateway has followed all of it. That takes as long as the
// machine needs; only a time without any answer is a loss.
func (s *soak) settle(running <-chan error) {
	all := make(chan struct{})
	go func() {
		s.ready.Wait()
		close(all)
	}()
	for waits, before := true, s.answered.Load(); waits; {
		select {
		case err := <-running:
			s.t.Fatal(err)
		case <-time.After(wait + s.length):
			if now := s.answered.Load(); now > before {
				before = now
				continue
			}
			s.ended.Store(true) // they report what they miss
			for range s.traders {
				s.law(<-running)
			}
			s.t.FailNow()
		case <-all:
			waits = false
		}
	}
	s.mu.Lock()
	expiry := s.expiry
	s.mu.Unlock()
	s.desk.ahead.Add(int64(max(0, time.Until(expiry.Add(time.Second)))))
	last := s.desk.journal.last()
	await.True(s.t, "the gateway to follow the journal", func() bool {
		// The cursor passes a command when the next one shows.
		tick := engine.Command{Kind: engine.Tick}
		tick.SetRef([]byte("\x01tick"))
		s.desk.submit(tick, nil)
		return s.desk.gateway.Cursor() >= last
	})
}

// last returns the Seq of the newest command.
func (j *memJournal) last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.commands[len(j.commands)-1].Seq
}

// idle returns the goroutines of a gateway that has answered all requests and has no client.
func (s *soak) idle() int {
	k := &trader{soak: s, compID: "NOBODY"}
	await.True(s.t, "a connection", k.dial)
	k.conn.Write(k.frame("A", 1, "", "98=0|108=30|"))
	if _, err := io.ReadAll(k.conn); err != nil {
		s.t.Fatal(err)
	}
	k.conn.Close()
	s.desk.awaitConnections(0)
	return len(goroutines())
}

// goroutines returns the stacks of the gateway's and of quickfix.
func goroutines() []string {
	all := make([]byte, 4<<20)
	stacks := strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n")
	return slices.DeleteFunc(stacks, func(stack string) bool {
		return !strings.Contains(stack, "quickfixgo/quickfix.") && !strings.Contains(stack, "blockdesk/fixgw.(") || strings.Contains(stack, "_test.go") ||
			strings.Contains(stack, "initiateLogout") // a timer of a gateway that is gone
	})
}

// storm logs on wrongly, and connects for nothing, until ctx ends.
func (s *soak) storm(ctx context.Context, r *rand.Rand) {
	k := &trader{soak: s, r: r, user: "p00"}
	for ctx.Err() == nil {
		s.pause(time.Duration(r.IntN(30)) * time.Millisecond)
		k.compID = [...]string{"P00", "P01", "NOBODY"}[r.IntN(3)]
		if !k.dial() {
			continue
		}
		frame := k.frame("A", 1+r.IntN(9), "", "98=0|108=30|553=p00|554=wrong|")
		switch r.IntN(6) {
		case 0:
			frame = frame[:r.IntN(len(frame))]
		case 1:
			frame = k.frame("D", 1, "", "11=a|")
		case 2:
			frame = []byte("GET / HTTP/1.1\r\n\r\n")
		}
		k.conn.Write(frame)
		k.conn.SetReadDeadline(time.Now().Add(time.Duration(r.IntN(200)) * time.Millisecond))
		answer, _ := io.ReadAll(k.conn)
		if text := wiretest.Show(answer); strings.Contains(text, "|35=A|") {
			s.t.Errorf("a wrong logon is answered by %s", text)
		} else if strings.Contains(text, "LOGON_REFUSED") {
			s.refused.Add(1)
		}
		k.conn.Close()
	}
}

// quiet looks for what the sessions have left behind in memory.
func (s *soak) quiet(before int) {
	s.desk.awaitConnections(0)
	await.Value(s.t, fmt.Sprintf("%d goroutines, as before", before), goroutines, func(left []string) bool { return len(left) <= before })
	g := s.desk.gateway
	if conns, addresses, pending := s.desk.hooks.Connections(); conns+addresses+pending != 0 {
		s.t.Errorf("the listener still counts %d connections, %d addresses, %d pending", conns, addresses, pending)
	}
	if n, _, _ := g.market.Counts(); n != 0 {
		s.t.Errorf("%d subscriptions of nobody", n)
	}
	for _, session := range g.All() {
		h := handlerOf(session)
		counts, live := h.requests.Counts(), h.orders.Live()
		if most := live + g.options.ClosedRefs; counts.Pending != 0 || counts.Known > most || counts.Closed > g.options.ClosedRefs {
			s.t.Errorf("session %d: %+v, want at most %d known", session.Number, counts, most)
		}
	}
}

// compare checks the sent reports against the journal, the journal to the engine, and the
// two sides of each trade to each other.
func (s *soak) compare(traders []*trader) {
	want, replica := s.replay()
	if got := s.desk.replica.State; got.Hash() != replica.State.Hash() {
		s.t.Errorf("the engine is at %d, the journal's replay at %d, and they differ", got.Seq(), replica.State.Seq())
	}
	fills, live := map[string]fill{}, map[string]*reportedOrder{}
	for _, k := range traders {
		wrong := k.book.compare(want[k.compID])
		for _, text := range wrong[:min(len(wrong), 5)] {
			s.t.Errorf("%s, %d wrong in all: %s", k.compID, len(wrong), text)
		}
		for execID, f := range k.book.fills {
			fills[execID] = f
		}
		for id, o := range k.book.live() {
			live[id] = o
		}
	}
	s.pairs(fills)
	for _, in := range replica.State.Instruments() {
		replica.State.Orders(in.ID, func(r book.LiveOrder) {
			id := fmt.Sprint(r.ID)
			if o := live[id]; o == nil || o.leaves != r.Open || o.in.ID != in.ID || o.side != string('0'+byte(r.Side)) {
				s.t.Errorf("the book has %d open of order %s, its client received %+v", r.Open, id, o)
			}
			delete(live, id)
		})
	}
	for id, o := range live {
		s.t.Errorf("the book does not have order %s, which is live in its client's reports: %+v", id, o)
	}
}

// pairs: each trade was reported to both of its sides.
func (s *soak) pairs(fills map[string]fill) {
	if len(fills) == 0 {
		s.t.Error("nothing has traded")
	}
	for execID, f := range fills {
		other := strings.TrimSuffix(execID, "M")
		if other == execID {
			other += "M"
		}
		o, ok := fills[other]
		if !ok || o.symbol != f.symbol || o.qty != f.qty || o.price != f.price || o.side == f.side {
			s.t.Errorf("one side of trade %s received %+v, the other %+v", execID, f, o)
		}
	}
}

// replay follows the whole journal with a gateway of its own, and returns every
// report that it makes, by CompID and ExecID.
func (s *soak) replay() (map[string]map[string]string, *engine.Replica) {
	o := s.desk.options
	o.ReserveSeqs = 1_000_000
	fresh := kvtest.New()
	err := fresh.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) {
		for _, one := range s.desk.gateway.All() {
			set(sessionNumberKey(one.CompID()), []byte{byte(one.Number >> 8), byte(one.Number)})
		}
	}, true)
	if err != nil {
		s.t.Fatal(err)
	}
	g, err := New(o, nil, fresh, Dependencies{MarketData: s.desk.views}, s.desk.set)
	if err != nil {
		s.t.Fatal(err)
	}
	defer g.Close()
	replica := engine.NewReplica(engine.StateOptions{MaxOrders: 100_000})
	for i := range s.desk.journal.commands {
		replica.Apply(&s.desk.journal.commands[i], func(events []event.Event) {
			if err := g.Replay(events); err != nil {
				s.t.Fatal(err)
			}
		})
	}
	all := map[string]map[string]string{}
	for _, one := range g.All() {
		reports := map[string]string{}
		all[one.CompID()] = reports
		err := session.Hooks{Server: g.Server}.Session(one.CompID()).EachMessage(func(raw []byte) error {
			if m := sessiontest.Message(raw); m.Get(35) == "8" {
				reports[m.Get(17)] = sayings(m)
			}
			return nil
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return all, replica
}

// crashDisk is the real store on a disk that can lose what was not synced.
type crashDisk struct {
	t  *testing.T
	fs *vfs.MemFS
	kv *persist.KV

	mu   sync.RWMutex // held while committing; crash waits for it
	dead bool
}

func newCrashDisk(t *testing.T, fs *vfs.MemFS) *crashDisk {
	kv, err := persist.OpenKV("fix", fs, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return &crashDisk{t: t, fs: fs, kv: kv}
}

func (d *crashDisk) Get(key []byte) ([]byte, bool, error) { return d.kv.Get(key) }

func (d *crashDisk) Scan(lo, hi []byte, f func(key, value []byte) bool) error {
	return d.kv.Scan(lo, hi, f)
}

func (d *crashDisk) Commit(fill kv.Fill, sync bool) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.dead {
		return kvtest.ErrBroken
	}
	return d.kv.Commit(fill, sync)
}

// crash ends all commits and returns what is left.
func (d *crashDisk) crash(r *rand.Rand) *vfs.MemFS {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
	return d.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: r.IntN(101), RNG: r})
}

func (d *crashDisk) close() {
	if err := d.kv.Close(); err != nil {
		d.t.Error(err)
	}
}
