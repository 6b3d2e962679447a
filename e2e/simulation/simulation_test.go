//go:build feed_goroutines

package simulation

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
	"golang.org/x/crypto/argon2"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/market"
	"blockdesk/service/config"
	"blockdesk/service/program"
	"blockdesk/service/servicetest"
)

const (
	symbol   = "SIM/USDC"
	password = "simulated"
	// length is the virtual time of a seed until its faults end; settling is the time that
	// the clients have then.
	length   = time.Minute
	settling = 60 * time.Second
)

// compIDs are the sessions; the first two letters are the firm.
var compIDs = []string{"AA1", "AA2", "BB1", "CC1"}

// TestSimulation runs seeds: three, or as many as BLOCKDESK_SIMULATE_SEEDS says, from
// BLOCKDESK_SIMULATE_SEED (1) on, until BLOCKDESK_SIMULATE_FOR is over.
func TestSimulation(t *testing.T) {
	first, seeds := number64(t, "BLOCKDESK_SIMULATE_SEED", 1), number64(t, "BLOCKDESK_SIMULATE_SEEDS", 3)
	var limit time.Duration
	if text := os.Getenv("BLOCKDESK_SIMULATE_FOR"); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	startGlobals(t)
	build, err := program.Read(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var total stats
	for seed := first; seed < first+seeds && (limit == 0 || time.Since(began) < limit); seed++ {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { total.add(simulate(t, seed, build)) }) {
			break
		}
	}
	took := time.Since(began)
	t.Logf("%d seeds, %d lives, %d reports, %d lots: %.2f simulated hours in %v, %.2f hours a minute", total.seeds, total.lives, total.reports, total.lots,
		total.simulated.Hours(), took.Round(time.Second), total.simulated.Hours()/took.Minutes())
}

func number64(t *testing.T, name string, or uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return or
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// startGlobals starts the goroutines that libraries start once a program and never end,
// outside of the bubbles of virtual time.
func startGlobals(t *testing.T) {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangUp) })
	l := fasthttputil.NewInmemoryListener()
	server := &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return l.Dial() }}}
	resp, err := client.Get("http://any/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	_ = l.Close()
	<-ended
}

// stats are sums over seeds.
type stats struct {
	seeds, lives, reports, lots int
	simulated                   time.Duration
}

func (s *stats) add(more stats) {
	s.seeds++
	s.lives, s.reports, s.lots, s.simulated = s.lives+more.lives, s.reports+more.reports, s.lots+more.lots, s.simulated+more.simulated
}

// world is one seed.
type world struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand // of the faults
	network *network
	machine *machine
	traders []*trader
	mode    string

	mu         sync.Mutex
	log        bytes.Buffer
	violations []string
}

func (w *world) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

// violated notes what must not be.
func (w *world) violated(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, time.Now().Format("04:05.000 ")+fmt.Sprintf(format, args...))
}

// sleep waits for a virtual time and reports whether ctx goes on.
func (w *world) sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// simulate runs a seed.
func simulate(t *testing.T, seed uint64, build program.Program) (s stats) {
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0))}
	w.mode = []string{"sync", "interval"}[seed%2]
	cfg := w.configuration()
	defer w.report(t)
	defer ignoreLeft()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w.network = newNetwork()
		w.machine = &machine{
			cfg: cfg, program: build, network: w.network, disk: vfs.NewCrashableMem(), rng: rand.New(rand.NewPCG(seed, 1)),
			log: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo})),
		}
		s = w.run(t)
		s.lives, s.simulated = w.machine.lives, time.Since(began)
		time.Sleep(time.Minute) // sleep: virtual, for what libraries end late
		if left := leftRunning(); left != "" {
			w.violated("goroutines are left after the end:\n%s", left)
		}
	})
	return s
}

// quickfixLogout is a goroutine that quickfix leaves for each Logout of a session that has
// ended before its timeout: it waits for ever.
const quickfixLogout = "quickfix.(*session).initiateLogoutInReplyTo"

// ignoreLeft recovers from the complaint of synctest about goroutines that are left, which
// leftRunning has judged.
func ignoreLeft() {
	if p := recover(); p != nil && !strings.Contains(fmt.Sprint(p), "blocked goroutines remain") {
		panic(p)
	}
}

// leftRunning returns the stacks of the bubble's goroutines, except the caller's, the test's
// and quickfix's.
func leftRunning() string {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	var left []string
	for _, stack := range strings.Split(string(all), "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, "synctest bubble") && !strings.Contains(stack, "leftRunning") && !strings.Contains(stack, "synctest.testingSynctestTest(") &&
			!strings.Contains(stack, "internal/synctest.Run(") &&
			!strings.Contains(stack, quickfixLogout) {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}

// report fails the test if anything was violated.
func (w *world) report(t *testing.T) {
	if len(w.violations) > 0 {
		t.Fatalf("mode %s:\n%s\n\nagain: make simulate SEED=%d SEEDS=1\n\nthe end of the log:\n%s", w.mode,
			strings.Join(w.violations[:min(len(w.violations), 10)], "\n"), w.seed, w.log.Bytes()[max(0, w.log.Len()-6000):])
	}
}

// configuration returns the configuration of the service. Its files are on the real disk,
// which does not fail.
func (w *world) configuration() *config.Config {
	dir := w.t.TempDir()
	salt := []byte("a salt of a test")
	hash := fmt.Sprintf("$argon2id$v=19$m=8,t=1,p=1$%s$%s", base64.RawStdEncoding.EncodeToString(salt),
		base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte(password), salt, 1, 8, 1, 32)))
	text := "participants:\n"
	for i, firm := range []string{"AA", "BB", "CC"} {
		var of []string
		for _, id := range compIDs {
			if id[:2] == firm {
				of = append(of, id)
			}
		}
		text += fmt.Sprintf("  - {name: %s, number: %d, comp_ids: [%s], password_hash: %q, stp: cancel_newest}\n", firm, i+1, strings.Join(of, ", "), hash)
	}
	path := filepath.Join(dir, "participants.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	cfg, err := servicetest.Load(w.t, fmt.Sprintf(`
data_dir: %s
rfq: {enabled: false}
durability: {mode: %s}
journal: {snapshot_every: %d, keep_snapshots: 100}
fix: {participants_file: %s, messages_per_second: 10000}
listen: {base: '127.0.0.1:8080', api: '127.0.0.1:8000', ws: '127.0.0.1:8081', fix: '127.0.0.1:9878', admin: '127.0.0.1:9090'}
instruments:
  - {symbol: %s, price_decimals: 2, qty_decimals: 0, tick: '0.01', lot: '1', min_qty: '1', max_qty: '1000', max_price: '1000', book_source: matched}
`, dir, w.mode, 200+w.rng.IntN(2000), path, symbol))
	if err != nil {
		w.t.Fatal(err)
	}
	return &cfg
}

// run runs the world until its clients have all they ask for, and checks what is left.
func (w *world) run(t *testing.T) (s stats) {
	if err := w.machine.start(); err != nil {
		t.Fatal(err)
	}
	all, endAll := context.WithCancel(context.Background())
	acting, endActing := context.WithCancel(all)
	var clients, actors sync.WaitGroup
	for i, id := range compIDs {
		k := newTrader(w, id, uint64(100+i))
		w.traders = append(w.traders, k)
		clients.Go(func() { k.connect(all) })
		actors.Go(func() { k.act(acting) })
	}
	clients.Go(func() { w.watchBook(all) })
	w.faults()
	endActing()
	actors.Wait()
	asking, giveUp := context.WithTimeout(all, settling)
	for _, ask := range []func(*trader, context.Context){(*trader).collect, (*trader).list} {
		for _, k := range w.traders {
			actors.Go(func() { ask(k, asking) })
		}
		actors.Wait()
	}
	giveUp()
	endAll()
	clients.Wait()
	if w.machine.process == nil {
		return s // it did not start again, which is noted
	}
	if err := w.machine.end(); err != nil {
		w.violated("the last stop: %v", err)
	}
	w.machine.old.Wait()
	w.compare(&s)
	return s
}

// faults lets things happen to the machine for a while. At its end the machine runs.
func (w *world) faults() {
	for end := time.Now().Add(length); time.Now().Before(end); {
		time.Sleep(time.Duration(w.rng.IntN(8000)) * time.Millisecond) // sleep: virtual
		var err error
		switch n := w.rng.IntN(10); {
		case n < 2:
			if err = w.machine.end(); err != nil {
				w.violated("a stop: %v", err)
			}
		case n < 6 && w.mode == "sync":
			w.machine.kill(true)
		default:
			w.machine.kill(false)
		}
		time.Sleep(time.Duration(w.rng.IntN(500)) * time.Millisecond) // sleep: virtual
		if err = w.machine.start(); err != nil {
			w.violated("a start: %v", err)
			return
		}
	}
}

// watchBook reads the book over REST until ctx ends.
func (w *world) watchBook(ctx context.Context) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(_ context.Context, _, to string) (net.Conn, error) { return w.network.dial(to) },
	}}
	epoch, seq := "", uint64(0)
	for w.sleep(ctx, 300*time.Millisecond) {
		resp, err := client.Get("http://" + w.machine.cfg.Listen.API + "/api/v1/market/depth?symbol=" + symbol)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			continue
		}
		var depth struct {
			Epoch      string
			Seq        uint64
			Bids, Asks [][2]json.Number
		}
		if err := json.Unmarshal(text, &depth); err != nil {
			w.violated("depth %s: %v", text, err)
			continue
		}
		if len(depth.Bids) > 0 && len(depth.Asks) > 0 && price(depth.Bids[0]) >= price(depth.Asks[0]) {
			w.violated("the book is crossed: %s", text)
		}
		if depth.Epoch == epoch && depth.Seq < seq {
			w.violated("the book went back from %d to %d in epoch %s", seq, depth.Seq, epoch)
		}
		epoch, seq = depth.Epoch, depth.Seq
	}
}

// price returns the price of a level in hundredths.
func price(level [2]json.Number) int {
	n, _ := strconv.Atoi(strings.Replace(string(level[0]), ".", "", 1))
	return n
}

// compare compares what the clients have with a replay of the journal.
func (w *world) compare(s *stats) {
	replica, events, err := w.machine.replay()
	if err != nil {
		w.violated("%v", err)
		return
	}
	accepted, filled := w.history(events)
	live := map[string]int{}
	replica.State.Orders(0, func(o book.LiveOrder) { live[fmt.Sprint(o.ID)] = int(o.Open) })
	for _, k := range w.traders {
		s.reports += len(k.ledger.reports)
		for id, o := range k.ledger.orders {
			if !o.accepted {
				continue
			}
			switch clOrdID := accepted[id]; {
			case clOrdID == "":
				w.violated("%s has a report of order %s (%s), which the journal does not have", k.compID, id, o.clOrdID)
			case clOrdID != o.clOrdID:
				w.violated("%s knows order %s as %s, the journal as %s", k.compID, id, o.clOrdID, clOrdID)
			case filled[id] != o.cum:
				w.violated("%s has %d fills of order %s, the journal %d", k.compID, o.cum, id, filled[id])
			}
			delete(accepted, id)
			s.lots += o.cum
		}
		open := k.ledger.open()
		for id, left := range open {
			if live[id] != left {
				w.violated("%s has %d open of order %s, the engine %d", k.compID, left, id, live[id])
			}
			if k.listed[id] != left {
				w.violated("%s has %d open of order %s, the gateway lists %d", k.compID, left, id, k.listed[id])
			}
			delete(live, id)
		}
		if len(k.listed) != len(open) {
			w.violated("%s has %d open orders, the gateway lists %d", k.compID, len(open), len(k.listed))
		}
	}
	for id, clOrdID := range accepted {
		w.violated("the journal has order %s (%s), of which nobody has a report", id, clOrdID)
	}
	for id, left := range live {
		w.violated("the engine has %d open of order %s, which nobody has open", left, id)
	}
}

// history returns the accepted orders' ClOrdIDs, and what was filled, by OrderID.
func (w *world) history(events []event.Event) (accepted map[string]string, filled map[string]int) {
	accepted, filled = map[string]string{}, map[string]int{}
	var named string
	used := map[string]bool{}
	for i := range events {
		switch e := &events[i]; e.Kind {
		case event.Reference:
			ref, _ := e.Reference()
			named = string(ref.Text)
		case event.Accepted:
			if used[named] {
				w.violated("%s was accepted twice", named)
			}
			used[named] = true
			accepted[fmt.Sprint(e.OrderID)] = named
		case event.Traded:
			filled[fmt.Sprint(e.OrderID)] += int(e.Qty)
			filled[fmt.Sprint(market.OrderID(e.Other))] += int(e.Qty)
		}
	}
	return accepted, filled
}
