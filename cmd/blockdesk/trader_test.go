package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// What a test trader does.
const (
	traderWindow  = 64  // requests without an answer
	traderResting = 150 // orders that it lets rest
	traderLevels  = 40  // prices a side of the middle, which overlap by traderOverlap
	traderOverlap = 4
)

// request is one D, F or G as it was sent.
type request struct {
	msgType  string
	body     []byte
	answered bool
}

// order is one order as its execution reports tell it.
type order struct {
	symbol, side       string
	clOrdID            string
	status             string // OrdStatus (39)
	price, leaves, cum string // 44, 151, 14
	filled             uint64 // Σ LastQty (32) of different ExecIDs, in millionths
}

func (o *order) live() bool { return o.status == "0" || o.status == "1" }

// fill is one side of a trade.
type fill struct{ qty, price string }

// trader is one firm's session with a memory: everything sent and every report,
// over all its connections. It holds each report to the rules that must survive
// a crash.
type trader struct {
	name   string
	prefix string
	rng    *rand.Rand

	client *fixclient.Client
	ended  chan error
	sender int // the numbers to continue with; 0 = a fresh session
	target int

	mu       sync.Mutex
	changed  *sync.Cond // on mu
	next     int
	requests map[string]*request // by ClOrdID
	waiting  int                 // requests without an answer
	orders   map[string]*order   // by OrderID
	reports  map[string]string   // content by ExecID
	fills    map[string]fill     // by ExecID
	status   map[string]*order   // answers to H, by OrderID
	statuses int                 // answers to H
	again    int                 // reports that said PossResend
	lost     error               // the first broken rule

	// Of a group's trader: how long a logon may take (0 = as long as it takes), and who
	// sees each message after it was taken, with mu held; nil = nobody.
	logon time.Duration
	// patience is how long await waits; 0 = as long as it takes.
	patience time.Duration
	heard    func(*fixclient.Message)
}

func newTrader(name string, seed uint64) *trader {
	t := &trader{
		name: name, prefix: fmt.Sprintf("%s-%x-", name, seed), rng: rand.New(rand.NewPCG(seed, uint64(name[0]))),
		requests: map[string]*request{}, orders: map[string]*order{}, reports: map[string]string{},
		fills: map[string]fill{}, status: map[string]*order{},
	}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// connect logs on, with continued sequence numbers where there were any, and
// keeps the orders when the line breaks.
func (t *trader) connect(address string) error {
	client, err := fixclient.Dial(context.Background(), fixclient.Options{
		Addr: address, SenderCompID: t.name, TargetCompID: "BLOCKDESK", Username: t.name, Password: testPassword,
		KeepSequence: t.sender > 0, NextSender: t.sender, NextTarget: t.target, LogonFields: "8013=N\x01", Timeout: cmp.Or(t.logon, runtest.Patience),
	})
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	if _, target := client.NextSequence(); target < t.target {
		return fmt.Errorf("%s: the server's numbers fell back from %d to %d", t.name, t.target, target)
	}
	t.client, t.ended = client, make(chan error, 1)
	go func(ended chan error) {
		ended <- client.Run(context.Background(), t.handle)
		t.changed.Broadcast()
	}(t.ended)
	return nil
}

// disconnect cuts the line, if it is not cut, and remembers the numbers.
func (t *trader) disconnect() {
	if t.client == nil {
		return
	}
	closed := t.client.Close()
	if err := <-t.ended; closed == nil && (errors.Is(err, fixclient.ErrMalformed) || errors.Is(err, fixclient.ErrLogout)) {
		t.mu.Lock()
		t.fail("the line ended: %w", err)
		t.mu.Unlock()
	}
	t.sender, t.target = t.client.NextSequence()
	t.client = nil
}

func (t *trader) fail(format string, args ...any) {
	if t.lost == nil {
		t.lost = fmt.Errorf(t.name+": "+format, args...)
	}
	t.changed.Broadcast()
}

func (t *trader) broken() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}

// handle takes one message of the session.
func (t *trader) handle(m *fixclient.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.changed.Broadcast()
	switch m.Type() {
	case "8":
		t.report(m)
	case "9", "r":
		t.answer(string(m.Get(11)))
	case "j":
		if !stops(m) {
			t.fail("refused: %q", m.Get(58))
		}
	case "B": // the service stops
	default:
		t.fail("unexpected message %q", bytes.ReplaceAll(m.Raw(), []byte{1}, []byte{'|'}))
	}
	if t.heard != nil {
		t.heard(m)
	}
	return nil
}

// stops reports whether a reject is of a server that takes nothing more, or does not
// lead any more: the request stays unanswered.
func stops(m *fixclient.Message) bool {
	text := m.Get(58)
	return bytes.HasPrefix(text, []byte("READ_ONLY: ")) || bytes.HasPrefix(text, []byte("LEADER_CHANGED"))
}

func (t *trader) answer(clOrdID string) {
	if r := t.requests[clOrdID]; r != nil && !r.answered {
		r.answered = true
		t.waiting--
	}
}

func (t *trader) report(m *fixclient.Message) {
	get := func(tag int) string { return string(m.Get(tag)) }
	id, kind := get(37), get(150)
	o := &order{
		symbol: get(55), side: get(54), clOrdID: get(11), status: get(39),
		price: get(44), leaves: get(151), cum: get(14),
	}
	if kind == "I" {
		t.statuses++
		t.status[id] = o
		return
	}
	t.answer(get(11))
	if get(97) == "Y" {
		t.again++
	}
	raw := string(m.Raw())
	content := raw[bytes.Index(m.Raw(), []byte("\x0137=")) : len(raw)-len("10=000\x01")]
	exec := get(17)
	if known, seen := t.reports[exec]; seen {
		if known != content {
			t.fail("ExecID %s came with other content:\n%q\n%q", exec, known, content)
		}
		return
	}
	t.reports[exec] = content
	if id == "NONE" {
		return
	}
	known := t.orders[id]
	switch {
	case known == nil && kind != "0" && kind != "8":
		t.fail("report %s of order %s, which nobody has accepted: %q", exec, id, content)
	case known != nil && kind == "0":
		t.fail("order %s is accepted twice: %q", id, content)
	case known != nil:
		o.filled = known.filled
	}
	if kind == "4" && get(41) != "" { // the F's own ClOrdID answers it
		o.clOrdID = get(41)
	}
	if kind == "F" {
		t.fills[exec] = fill{qty: get(32), price: get(31)}
		o.filled += millionths(get(32))
	}
	if o.filled != millionths(o.cum) {
		t.fail("order %s: CumQty %s is not the sum of its fills: %q", id, o.cum, content)
	}
	t.orders[id] = o
}

// millionths reads a decimal with six digits.
func millionths(text string) uint64 {
	n, err := market.ParseDecimal([]byte(text), 6)
	if err != nil {
		return ^uint64(0)
	}
	return n
}

// trade sends random orders, amends and cancels until the line breaks or stop
// says so, never with more than traderWindow requests unanswered.
func (t *trader) trade(stop <-chan struct{}) {
	for {
		t.mu.Lock()
		deadline := time.Now().Add(runtest.Patience)
		wake := time.AfterFunc(runtest.Patience, t.changed.Broadcast)
		for t.waiting >= traderWindow && !t.over(stop) && time.Now().Before(deadline) {
			t.changed.Wait()
		}
		wake.Stop()
		if t.over(stop) {
			t.mu.Unlock()
			return
		}
		if t.waiting >= traderWindow {
			t.fail("%d requests without an answer for %v", t.waiting, runtest.Patience)
			t.mu.Unlock()
			return
		}
		id, r := t.compose()
		t.requests[id] = r
		t.waiting++
		t.mu.Unlock()
		if t.client.Send(r.msgType, r.body) != nil {
			return
		}
	}
}

// over reports whether trading has to end. The caller holds mu.
func (t *trader) over(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return len(t.ended) > 0 || t.lost != nil
	}
}

// compose makes the next request.
func (t *trader) compose() (id string, r *request) {
	t.next++
	id = t.prefix + strconv.Itoa(t.next)
	resting := t.resting()
	roll := t.rng.IntN(100)
	if len(resting) > traderResting {
		roll = 99
	}
	stamp := time.Now().UTC().Format("20060102-15:04:05.000")
	switch {
	case roll < 65 || len(resting) == 0:
		symbol, side := testSymbol, 1+t.rng.IntN(2)
		if t.rng.IntN(3) == 0 {
			symbol = otherSymbol
		}
		return id, &request{msgType: "D", body: fmt.Appendf(nil, "11=%s\x0155=%s\x0154=%d\x0138=%d\x0140=2\x0144=%s\x0159=%d\x0160=%s\x01",
			id, symbol, side, 1+t.rng.IntN(500), t.price(side), []int{1, 1, 1, 3}[t.rng.IntN(4)], stamp)}
	case roll < 75:
		o := t.orders[resting[t.rng.IntN(len(resting))]]
		side, _ := strconv.Atoi(o.side)
		return id, &request{msgType: "G", body: fmt.Appendf(nil, "11=%s\x0141=%s\x0155=%s\x0154=%s\x0138=%d\x0140=2\x0144=%s\x0159=1\x0160=%s\x01",
			id, o.clOrdID, o.symbol, o.side, 1+t.rng.IntN(500), t.price(side), stamp)}
	default:
		o := t.orders[resting[t.rng.IntN(len(resting))]]
		return id, &request{msgType: "F", body: fmt.Appendf(nil, "11=%s\x0141=%s\x0155=%s\x0154=%s\x0160=%s\x01",
			id, o.clOrdID, o.symbol, o.side, stamp)}
	}
}

// price returns a price around 1 that crosses now and then.
func (t *trader) price(side int) string {
	away := t.rng.IntN(traderLevels) - traderOverlap
	if side == 1 {
		away = -away
	}
	return fmt.Sprintf("%.3f", 1+float64(away)/1000)
}

// resting returns the OrderIDs of the live orders, in order. The caller holds
// mu.
func (t *trader) resting() []string {
	var ids []string
	for id, o := range t.orders {
		if o.live() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// await waits until ready returns true, or the line breaks. It calls ready with mu
// held, whenever a message has come.
func (t *trader) await(what string, ready func() bool) error {
	patience := cmp.Or(t.patience, runtest.Patience)
	deadline := time.Now().Add(patience)
	wake := time.AfterFunc(patience, t.changed.Broadcast)
	defer wake.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	for !ready() {
		switch {
		case t.lost != nil:
			return t.lost
		case len(t.ended) > 0:
			return fmt.Errorf("%s: the line broke while waiting for %s", t.name, what)
		case time.Now().After(deadline):
			return fmt.Errorf("%s: no %s in %v", t.name, what, patience)
		}
		t.changed.Wait()
	}
	return t.lost
}

// barrier asks for the status of an order that there is not. When the answer comes,
// everything has come that the server had to send before the question.
func (t *trader) barrier() error {
	t.mu.Lock()
	before := t.statuses
	t.mu.Unlock()
	if err := t.client.Send("H", fmt.Appendf(nil, "11=%snone\x0155=%s\x0154=1\x01", t.prefix, testSymbol)); err != nil {
		return err
	}
	return t.await("an answer to a question", func() bool { return t.statuses > before })
}

// unanswered returns the requests without an answer, in the order of sending.
func (t *trader) unanswered() []*request {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []*request
	for i := 1; i <= t.next; i++ {
		if r := t.requests[t.prefix+strconv.Itoa(i)]; !r.answered {
			out = append(out, r)
		}
	}
	return out
}

// sendAgain sends a request as one that may have been sent before.
func (t *trader) sendAgain(r *request) error {
	return t.client.Send(r.msgType, append([]byte("97=Y\x01"), r.body...))
}

// checkStatus asks for every order and holds the answers to the reports.
func (t *trader) checkStatus() error {
	t.mu.Lock()
	clear(t.status)
	ids := slices.Sorted(maps.Keys(t.orders))
	t.mu.Unlock()
	for i, id := range ids {
		t.mu.Lock()
		o := *t.orders[id]
		t.mu.Unlock()
		body := fmt.Appendf(nil, "37=%s\x0111=%s\x0155=%s\x0154=%s\x01", id, o.clOrdID, o.symbol, o.side)
		if err := t.client.Send("H", body); err != nil {
			return err
		}
		if err := t.await("order status", func() bool { return i-len(t.status) < traderWindow }); err != nil {
			return err
		}
	}
	if err := t.await("order status", func() bool { return len(t.status) == len(ids) }); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		known, now := t.orders[id], t.status[id]
		if now == nil {
			return fmt.Errorf("%s: order %s (%s): no status of it came", t.name, id, known.clOrdID)
		}
		if now.status != known.status || now.leaves != known.leaves || now.cum != known.cum || now.price != known.price {
			return fmt.Errorf("%s: order %s (%s): the reports say %+v, the status says %+v", t.name, id, known.clOrdID, *known, *now)
		}
	}
	return nil
}

// connectAll logs traders on.
func connectAll(t *testing.T, address string, traders ...*trader) {
	t.Helper()
	for _, tr := range traders {
		if err := tr.connect(address); err != nil {
			t.Fatal(err)
		}
	}
}

// startTrading lets all traders trade until their lines break. The returned group ends
// with them.
func startTrading(traders ...*trader) *sync.WaitGroup {
	never := make(chan struct{})
	all := new(sync.WaitGroup)
	for _, tr := range traders {
		all.Go(func() { tr.trade(never) })
	}
	return all
}

// tradeUntil lets all traders trade until enough returns true, or their lines break.
func tradeUntil(t *testing.T, what string, enough func() bool, traders ...*trader) {
	t.Helper()
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, tr := range traders {
		all.Go(func() { tr.trade(stop) })
	}
	defer all.Wait()
	defer func() {
		close(stop)
		for _, tr := range traders {
			tr.changed.Broadcast()
		}
	}()
	await.True(t, what, func() bool {
		for _, tr := range traders {
			tr.mu.Lock()
			over := tr.over(stop)
			tr.mu.Unlock()
			if over {
				return true
			}
		}
		return enough()
	})
}

// reported returns a function that is true once each trader has so many reports more
// than now.
func reported(more int, traders ...*trader) (enough func() bool) {
	want := make([]int, len(traders))
	for i, tr := range traders {
		tr.mu.Lock()
		want[i] = len(tr.reports) + more
		tr.mu.Unlock()
	}
	return func() bool {
		for i, tr := range traders {
			tr.mu.Lock()
			n := len(tr.reports)
			tr.mu.Unlock()
			if n < want[i] {
				return false
			}
		}
		return true
	}
}
