//go:build feed_goroutines

package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"blockdesk/fixgw/fixclient"
)

// trader is a FIX session that trades at random, loses its connection, and in the end asks
// for everything that it lacks.
type trader struct {
	world  *world
	compID string
	rng    *rand.Rand // of act
	pace   int        // the longest pause between two requests, in milliseconds
	client *fixclient.Client

	gate      sync.RWMutex // a send holds it for reading, a change of connected alone
	connected bool

	mu       sync.Mutex // not held while a send waits for the gateway to read
	cut      net.Conn   // of the connection
	ledger   *ledger
	requests map[string]*request // without an answer, by ClOrdID
	resting  []string            // ClOrdIDs that may rest
	listed   map[string]int      // the answer to AF
	listing  string              // the request of it
	count    int
	refused  error // the last logon that failed
}

// request is a message that must be answered.
type request struct {
	kind, body string
	sentAt     time.Time
}

func newTrader(w *world, compID string, seed uint64) *trader {
	rng := rand.New(rand.NewPCG(w.seed, seed))
	return &trader{
		world: w, compID: compID, rng: rng, pace: []int{10, 50, 250}[rng.IntN(3)], ledger: newLedger(),
		requests: map[string]*request{}, listed: map[string]int{},
	}
}

// patience is how long a trader waits before it connects again, and before it repeats a
// request without an answer.
const patience = 2 * time.Second

// connect keeps the session logged on until ctx ends.
func (k *trader) connect(ctx context.Context) {
	for ctx.Err() == nil {
		if err := k.logOn(ctx); err != nil {
			if errors.Is(err, fixclient.ErrSequence) {
				k.world.violated("%s: %v", k.compID, err)
			}
			k.mu.Lock()
			k.refused = err
			k.mu.Unlock()
			k.world.sleep(ctx, patience/10)
			continue
		}
		k.setConnected(true)
		err := k.client.Run(ctx, k.handle)
		k.setConnected(false)
		if errors.Is(err, errViolated) {
			k.world.violated("%s: %v", k.compID, err)
			return
		}
	}
}

var errViolated = errors.New("violated")

func (k *trader) setConnected(connected bool) {
	k.gate.Lock()
	defer k.gate.Unlock()
	k.connected = connected
}

// logOn logs on for the first time, or again.
func (k *trader) logOn(ctx context.Context) error {
	if k.client != nil {
		return k.client.Redial(ctx)
	}
	client, err := fixclient.Dial(ctx, fixclient.Options{
		Addr: k.world.machine.cfg.Listen.FIX, SenderCompID: k.compID, TargetCompID: k.world.machine.cfg.FIX.CompID,
		Username: k.compID[:2], Password: password, KeepSequence: true, Reset: true, LogonFields: "8013=N\x01", HeartBtInt: 10,
		DialContext: func(_ context.Context, _, to string) (net.Conn, error) {
			c, err := k.world.network.dial(to)
			if err != nil {
				return nil, err
			}
			k.mu.Lock()
			k.cut = c
			k.mu.Unlock()
			return c, nil
		},
	})
	if err == nil {
		k.client = client
	}
	return err
}

// handle notes a message.
func (k *trader) handle(m *fixclient.Message) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.ledger.take(m); err != nil {
		return fmt.Errorf("%w: %w", errViolated, err)
	}
	delete(k.requests, string(m.Get(11)))
	if k.listing != "" && string(m.Get(584)) == k.listing {
		if id := string(m.Get(37)); id != "" && id != "NONE" {
			k.listed[id] = number(m, 151)
		}
		if string(m.Get(912)) == "Y" || string(m.Get(911)) == "0" {
			k.listing = ""
		}
	}
	return nil
}

// act sends requests until ctx ends.
func (k *trader) act(ctx context.Context) {
	for k.world.sleep(ctx, time.Duration(k.rng.IntN(k.pace))*time.Millisecond) {
		switch n := k.rng.IntN(1000); {
		case n < 3:
			k.mu.Lock()
			if k.cut != nil {
				_ = k.cut.Close()
			}
			k.mu.Unlock()
		case n < 6:
			k.world.sleep(ctx, time.Duration(k.rng.IntN(20))*time.Second) // silent
		case n < 500:
			k.order()
		case n < 600:
			for range k.rng.IntN(20) { // at once
				k.order()
			}
		case n < 780:
			k.change("F", "")
		case n < 970:
			k.change("G", fmt.Sprintf("38=%d|40=2|44=%s|", 1+k.rng.IntN(9), k.price()))
		default:
			k.request("q", "530=1|55="+symbol+"|")
		}
		k.repeat()
	}
}

func (k *trader) price() string { return fmt.Sprintf("%d.%02d", 99+k.rng.IntN(2), k.rng.IntN(100)) }

// order sends a new order.
func (k *trader) order() {
	terms := []string{"59=1|", "59=1|", "59=1|", "59=1|18=6|", "59=3|", "59=4|", "59=3|110=2|", "59=1|111=1|", "59=0|"}
	body := fmt.Sprintf("55=%s|54=%d|38=%d|40=2|44=%s|%s", symbol, 1+k.rng.IntN(2), 2+k.rng.IntN(9), k.price(), terms[k.rng.IntN(len(terms))])
	id := k.request("D", body)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.resting = append(k.resting, id)
	if len(k.resting) > 60 {
		k.resting = k.resting[1:]
	}
}

// change cancels or amends one of the newest orders.
func (k *trader) change(kind, more string) {
	k.mu.Lock()
	if len(k.resting) == 0 {
		k.mu.Unlock()
		return
	}
	i := k.rng.IntN(len(k.resting))
	orig := k.resting[i]
	if kind == "F" {
		k.resting = slices.Delete(k.resting, i, i+1)
	}
	k.mu.Unlock()
	side := 1 + k.rng.IntN(2)
	id := k.request(kind, fmt.Sprintf("41=%s|55=%s|54=%d|%s", orig, symbol, side, more))
	if kind == "G" {
		k.mu.Lock()
		k.resting = append(k.resting, id)
		k.mu.Unlock()
	}
}

// request sends a request that needs an answer, and returns its ClOrdID.
func (k *trader) request(kind, body string) string {
	k.mu.Lock()
	k.count++
	id := fmt.Sprintf("%s.%d", k.compID, k.count)
	r := &request{kind: kind, body: "11=" + id + "|" + body + "60=20000101-00:00:00|", sentAt: time.Now()}
	k.requests[id] = r
	k.mu.Unlock()
	k.send(r.kind, r.body)
	return id
}

// send sends a message if the session is logged on.
func (k *trader) send(kind, body string) {
	k.gate.RLock()
	defer k.gate.RUnlock()
	if k.connected {
		_ = k.client.Send(kind, []byte(strings.ReplaceAll(body, "|", "\x01")))
	}
}

// repeat sends requests again that have had no answer for a while.
func (k *trader) repeat() {
	var late []*request
	k.mu.Lock()
	for _, r := range k.requests {
		if time.Since(r.sentAt) > patience {
			r.sentAt = time.Now()
			late = append(late, r)
		}
	}
	k.mu.Unlock()
	for _, r := range late {
		k.send(r.kind, "97=Y|"+r.body)
	}
}

// collect asks until every request has its answer.
func (k *trader) collect(ctx context.Context) {
	for k.world.sleep(ctx, patience/4) {
		k.repeat()
		k.mu.Lock()
		complete := len(k.requests) == 0
		k.mu.Unlock()
		if complete {
			return
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.requests {
		k.world.violated("%s: no answer to %s %s (the last logon that failed: %v)", k.compID, r.kind, r.body, k.refused)
	}
}

// list asks for the list of its open orders.
func (k *trader) list(ctx context.Context) {
	for {
		k.mu.Lock()
		k.count++
		k.listing, k.listed = fmt.Sprintf("%s.%d", k.compID, k.count), map[string]int{}
		ask := "584=" + k.listing + "|585=7|"
		k.mu.Unlock()
		k.send("AF", ask)
		if !k.world.sleep(ctx, patience) {
			k.world.violated("%s: no list of its open orders", k.compID)
			return
		}
		k.mu.Lock()
		complete := k.listing == ""
		k.mu.Unlock()
		if complete {
			return
		}
	}
}
