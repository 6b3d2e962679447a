package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"blockdesk/bench/server"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/atomicfile"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/service/servicetest"
)

// cable is a TCP connection to a server that the test can disturb.
type cable struct {
	listener net.Listener
	to       string
	all      sync.WaitGroup

	mu    sync.Mutex
	cond  *sync.Cond
	held  bool // bytes wait
	dead  bool // dials are refused
	conns map[net.Conn]bool
}

func newWire(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &cable{listener: l, to: to, conns: map[net.Conn]bool{}}
	w.cond = sync.NewCond(&w.mu)
	w.all.Go(w.accept)
	t.Cleanup(func() {
		_ = l.Close()
		w.set(false, true)
		w.all.Wait()
	})
	return w
}

// set holds what is on the wire, or breaks it and keeps it broken.
func (w *cable) set(held, dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held, w.dead = held, dead
	if dead {
		for c := range w.conns {
			_ = c.Close() // its pump ends
		}
	}
	w.cond.Broadcast()
}

func (w *cable) accept() {
	for {
		in, err := w.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", w.to)
		w.mu.Lock()
		if err != nil || w.dead {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
		} else {
			w.conns[in], w.conns[out] = true, true
			w.all.Go(func() { w.pump(in, out) })
			w.all.Go(func() { w.pump(out, in) })
		}
		w.mu.Unlock()
	}
}

func (w *cable) pump(to, from net.Conn) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		w.mu.Lock()
		for w.held && !w.dead {
			w.cond.Wait()
		}
		w.mu.Unlock()
		if _, failed := to.Write(buf[:n]); failed != nil || err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close()
	w.mu.Lock()
	delete(w.conns, to)
	delete(w.conns, from)
	w.mu.Unlock()
}

// readers are a leader and two followers as processes, each of these behind a wire
// of its own to the NATS server in the leader.
type readers struct {
	leader    *server.Server
	followers []*server.Server
	configs   []string // of the followers
	wires     []*cable
}

func startReaders(t *testing.T) *readers {
	t.Helper()
	port, held, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	nats := fmt.Sprintf("127.0.0.1:%d", port)
	// A small snapshot interval has joins begin in the middle of an epoch.
	r := &readers{leader: programtest.Start(t, programtest.Config(t, fmt.Sprintf(`log: {level: warn}
journal: {snapshot_every: 1000}
feed: {connections_per_ip: 100}
fanout: nats
nats: {embedded: true, listen: %q, stream_mib: 64}
`, nats)))}
	at := &r.leader.Addresses
	for range 2 {
		w := newWire(t, nats)
		r.wires = append(r.wires, w)
		r.configs = append(r.configs, programtest.Config(t, fmt.Sprintf(`log: {level: warn}
role: follower
feed: {connections_per_ip: 100}
fanout: nats
nats: {urls: ["nats://%s"], max_stale_ms: 300, max_behind_ms: 1000}
peers: [{id: a, address: "127.0.0.1:1", base_url: %q, api_url: %q, ws_url: %q, fix: %q}]
`, w.listener.Addr(), at.Base, at.API, at.WS, at.FIX)))
		r.followers = append(r.followers, programtest.Start(t, r.configs[len(r.configs)-1]))
	}
	return r
}

// disturb does something to a follower and undoes it.
func (r *readers) disturb(rng *rand.Rand, n int) (what string, err error) {
	s, w := r.followers[n], r.wires[n]
	pause := func(most int) {
		time.Sleep(time.Duration(100+rng.IntN(most)) * time.Millisecond) // sleep: this is how long it is away
	}
	switch rng.IntN(4) {
	case 0:
		if err := s.Kill(); err != nil {
			return "kill", err
		}
		pause(300)
		return "kill", s.Restart(context.Background())
	case 1:
		if err := syscall.Kill(s.PID(), syscall.SIGSTOP); err != nil {
			return "stop", err
		}
		pause(1500)
		return "stop", syscall.Kill(s.PID(), syscall.SIGCONT)
	case 2:
		w.set(true, false)
		pause(1500)
		w.set(false, false)
		return "hold", nil
	}
	w.set(false, true)
	pause(1500)
	w.set(false, false)
	return "cut", nil
}

// Two followers are killed, stopped, delayed and cut off from NATS in a stream of
// orders while clients move between them and the leader: whatever number a server
// says, all say the same of it, and no client meets an unannounced gap, or
// anything twice. BLOCKDESK_CLUSTER_ROUNDS asks for more rounds.
func TestFollowersUnderFaults(t *testing.T) {
	t.Parallel()
	rounds := int(programtest.FromEnv(t, "BLOCKDESK_CLUSTER_ROUNDS", 6))
	seed := runtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 4))
	r := startReaders(t)
	a, b := fixtest.NewTrader(programtest.FirmA, seed), fixtest.NewTrader(programtest.FirmB, seed+1)
	fixtest.ConnectAll(t, r.leader.Addresses.FIX, a, b)
	clients := newRoamers([]string{programtest.Symbol, programtest.OtherSymbol}, r.leader.Addresses.WS, r.followers[0].Addresses.WS, r.followers[1].Addresses.WS)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for n := range uint64(4) {
		all.Go(func() { clients.roam(seed+n, stop) })
	}
	all.Go(func() { a.Trade(stop) })
	all.Go(func() { b.Trade(stop) })
	end := sync.OnceFunc(func() {
		close(stop)
		a.Changed.Broadcast()
		b.Changed.Broadcast()
		all.Wait()
	})
	defer end()
	done := map[string]int{}
	for range rounds {
		n := rng.IntN(len(r.followers))
		what, err := r.disturb(rng, n)
		if err != nil {
			t.Fatalf("%s: %v\n%s", what, err, r.followers[n].Log())
		}
		done[what]++
		await.True(t, "a follower that is level again", func() bool { return programtest.Ready(r.followers[n]) })
		if err := errors.Join(clients.broken(), a.Err(), b.Err()); err != nil {
			t.Fatal(err)
		}
		moved := clients.moves.Load() + 4
		await.True(t, "clients that move", func() bool { return clients.moves.Load() >= moved || clients.broken() != nil })
	}
	await.True(t, "clients that have seen enough", func() bool {
		return clients.broken() != nil || clients.resumed.Load() >= 10 && clients.updates.Load() >= 1000 && clients.snapshots.Load() >= 10
	})
	end()
	if err := errors.Join(clients.broken(), a.Err(), b.Err()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"depth?limit=100&symbol=" + programtest.Symbol, "depth?limit=100&symbol=" + programtest.OtherSymbol} {
		for _, s := range r.followers {
			await.True(t, "the leader's book", func() bool { // whose last orders may be under way
				return programtest.Get(t, s.Addresses.API+"/api/v1/market/"+path) == programtest.Get(t, r.leader.Addresses.API+"/api/v1/market/"+path)
			})
		}
	}
	a.Disconnect()
	b.Disconnect()
	checkReadOnly(t, r)
	checkFollowerFIX(t, r)
	checkFollowerStream(t, r)
	t.Logf("%v; %d moves, %d streams resumed %v, %d restarts announced, %d snapshots, %d updates, %d heartbeats", done, clients.moves.Load(),
		clients.resumed.Load(), clients.ways, clients.restarts.Load(), clients.snapshots.Load(), clients.updates.Load(), clients.heartbeats.Load())
}

// A follower brings its participants file in force when that changes, as its leader
// does, and says so.
func TestFollowerReloadsParticipants(t *testing.T) {
	t.Parallel()
	r := startReaders(t)
	s := r.followers[0]
	file := programtest.ParticipantsFile(r.configs[0])
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	await.True(t, "a follower that is level", func() bool { return programtest.Ready(s) })
	write := func(text string) {
		t.Helper()
		if err := errors.Join(atomicfile.Write(file, []byte(text)), syscall.Kill(s.PID(), syscall.SIGHUP)); err != nil {
			t.Fatal(err)
		}
	}
	hash, err := servicetest.PasswordHash()
	if err != nil {
		t.Fatal(err)
	}
	var cc *fixtest.Firm
	write(string(was) + fmt.Sprintf("  - {name: CC, number: 3, comp_ids: [CC], password_hash: %q}\n", hash))
	await.True(t, "CC logs on", func() bool {
		cc, err = fixtest.NewFirm(t, s.Addresses.FIX, "CC")
		return err == nil
	})
	write(string(was))
	if text := cc.LoggedOut(); !strings.Contains(text, "SESSION_REMOVED") {
		t.Errorf("CC was logged out with %s", text)
	}
}

// checkReadOnly: what is the leader's to do is sent there.
func checkReadOnly(t *testing.T, r *readers) {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Post(r.followers[0].Addresses.API+"/api/v1/rfq/quote", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if want := r.leader.Addresses.API + "/api/v1/rfq/quote"; err != nil || resp.StatusCode != http.StatusTemporaryRedirect || resp.Header.Get("Location") != want {
		t.Errorf("a write: %s, Location %q, want %q: %s (%v)", resp.Status, resp.Header.Get("Location"), want, text, err)
	}
	for _, name := range []string{"blockdesk_follower_ready 1", "blockdesk_follower_behind_commands 0", "blockdesk_follower_gaps_total"} {
		await.True(t, name+" among the metrics", func() bool {
			return strings.Contains(programtest.Get(t, r.followers[0].Addresses.Admin+"/metrics"), name)
		})
	}
}

// checkFollowerFIX: a follower's FIX address serves market data, and an order is
// rejected with where the leader is.
func checkFollowerFIX(t *testing.T, r *readers) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	client, err := fixclient.Dial(ctx, fixclient.Options{
		Addr: r.followers[0].Addresses.FIX, SenderCompID: programtest.FirmA, TargetCompID: "BLOCKDESK", Username: programtest.FirmA, Password: programtest.Password, Timeout: runtest.HangTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan map[int]string, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- client.Run(ctx, func(m *fixclient.Message) error {
			answers <- map[int]string{35: m.Type(), 55: string(m.Get(55)), 58: string(m.Get(58))}
			return nil
		})
	}()
	for _, request := range []struct{ kind, body, answer, reports string }{
		{"V", "262=m\x01263=0\x01264=10\x01267=2\x01269=0\x01269=1\x01146=1\x0155=" + programtest.Symbol + "\x01", "W", ""},
		{
			"D", "11=o\x0155=" + programtest.Symbol + "\x0154=1\x0138=5\x0140=2\x0144=1\x0159=1\x0160=" + time.Now().UTC().Format("20060102-15:04:05") + "\x01",
			"j", r.leader.Addresses.FIX,
		},
	} {
		if err := client.Send(request.kind, []byte(request.body)); err != nil {
			t.Fatal(err)
		}
		select {
		case m := <-answers:
			if m[35] != request.answer || !strings.Contains(m[58], request.reports) {
				t.Errorf("35=%s at a follower: %v, want 35=%s with %q", request.kind, m, request.answer, request.reports)
			}
		case <-ctx.Done():
			t.Fatalf("35=%s at a follower has no answer", request.kind)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// checkFollowerStream: the stream of a follower goes on where the leader's was.
func checkFollowerStream(t *testing.T, r *readers) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	id := ""
	for _, s := range []*server.Server{r.leader, r.followers[1]} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Addresses.API+"/api/v1/market/stream?channels=l2&symbol="+programtest.Symbol, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Last-Event-ID", id)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resumed := id != ""
		id = ""
		lines := bufio.NewScanner(resp.Body)
		for id == "" && lines.Scan() {
			id, _ = strings.CutPrefix(lines.Text(), "id: ")
			if id == lines.Text() {
				id = ""
			}
			if strings.Contains(lines.Text(), `"type":"ack"`) && strings.Contains(lines.Text(), `"resumed":true`) != resumed {
				t.Errorf("the stream says %s, resumed is to be %v", lines.Text(), resumed)
			}
		}
		_ = resp.Body.Close()
		if id == "" {
			t.Fatalf("the stream has no id: %v", lines.Err())
		}
	}
}

// A node without readers has neither the WebSocket nor the event stream; the rest
// is as ever.
func TestNodeLeavesTheFeedToFollowers(t *testing.T) {
	t.Parallel()
	d := programtest.StartDemo(t, "--role", "node")
	for path, want := range map[string]int{
		"/api/v1/market/depth?symbol=SLUSD/USDC": 200, "/api/v1/market/stream?symbol=SLUSD/USDC": 404, "/ws/rfq": 404,
	} {
		resp, err := http.Get(d.At.Base + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s answers %d, not %d", path, resp.StatusCode, want)
		}
	}
}
