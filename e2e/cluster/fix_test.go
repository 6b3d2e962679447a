package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/e2e/chaintest"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
)

// The actions of a group's FIX clients.
const (
	clusterLogon   = 1500 * time.Millisecond
	clusterSilence = 900 * time.Millisecond // without an answer, a client tries another node
	clusterRetry   = 15 * time.Millisecond
	clusterPace    = 6 * time.Millisecond
	keeperPrice    = "0.600000"
)

// gateways are the FIX addresses of a group's nodes. A client goes on at the node that
// a Logout has named, else at the next one.
type gateways struct {
	addresses []string
	at        int
}

var inLogout = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)

func (d *gateways) address() string { return d.addresses[d.at] }

// next chooses another gateway by how the last one ended.
func (d *gateways) next(err error) {
	d.at = (d.at + 1) % len(d.addresses)
	if !errors.Is(err, fixclient.ErrLogout) {
		return
	}
	for _, named := range inLogout.FindAllString(err.Error(), -1) {
		if i := slices.Index(d.addresses, named); i >= 0 {
			d.at = i
		}
	}
}

// clusterTrader is a trader that stays in the market while the nodes of a group
// come and go.
type clusterTrader struct {
	*fixtest.Trader
	gateways gateways
	number   int // in histories
	past     *history
	acks     func(t time.Time) // hears of each first answer
	logons   tolerance
	quiet    tolerance // without answers

	turnedAway atomic.Int64 // logons that failed

	// Guarded by trader.mu.
	away         error                    // why it was not let in at last
	open         map[string]func(outcome) // by ClOrdID: what was asked and not answered yet
	firstAnswers map[string]string        // by ClOrdID: the first answer, until the round is checked
	sent         int
}

func newClusterTrader(name string, number int, seed uint64, addresses []string, past *history, acks func(time.Time)) *clusterTrader {
	c := &clusterTrader{
		Trader: fixtest.NewTrader(name, seed), gateways: gateways{addresses: addresses}, number: number, past: past, acks: acks,
		open: map[string]func(outcome){}, firstAnswers: map[string]string{},
	}
	c.logons.least, c.quiet.least, c.OnMessage = clusterLogon, clusterSilence, c.record
	return c
}

// answerOf is what a message answers its request with; ok is false for one that
// answers none, as a fill does. A change that is refused before it reaches the engine does
// not use up its id: sent again, it is refused for the reason of that time, so the reason
// (102) is no part of the answer.
func answerOf(m *fixclient.Message) (clOrdID, answer string, ok bool) {
	id := string(m.Get(11))
	switch m.Type() {
	case "8":
		kind := string(m.Get(150))
		return id, kind + " " + string(m.Get(17)) + " " + string(m.Get(37)), strings.Contains("0458", kind) && kind != ""
	case "9":
		return id, "9 " + string(m.Get(37)), true
	default:
		return id, "", false
	}
}

// record takes an answer into the history. The caller holds mu.
func (c *clusterTrader) record(m *fixclient.Message) {
	id, answer, ok := answerOf(m)
	if !ok || c.Requests[id] == nil {
		return
	}
	if c.firstAnswers[id] == "" {
		c.firstAnswers[id] = answer
		c.acks(time.Now())
	}
	if answered := c.open[id]; answered != nil {
		delete(c.open, id)
		answered(outcome{answer: answer})
	}
}

// queryStatus notes a request that is about to be sent. The caller holds mu.
func (c *clusterTrader) queryStatus(id string) {
	c.sent++
	c.open[id] = c.past.call(c.number, operation{kind: opAnswer, object: id})
}

// pending are the requests without an answer, in the order of sending.
func (c *clusterTrader) pending() []string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	var ids []string
	for id, r := range c.Requests {
		if !r.Answered {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return c.order(a) - c.order(b) })
	return ids
}

// order is when a ClOrdID was sent.
func (c *clusterTrader) order(id string) int {
	n, _ := strconv.Atoi(id[len(c.Prefix):])
	return n
}

// run trades at whatever node takes it until ctx ends.
func (c *clusterTrader) run(ctx context.Context) {
	for ctx.Err() == nil && c.Err() == nil {
		if !c.enter(ctx) {
			return
		}
		c.stay(ctx)
		c.leave()
	}
}

// enter logs on somewhere and sends again what has no answer.
func (c *clusterTrader) enter(ctx context.Context) bool {
	for ctx.Err() == nil {
		began := time.Now()
		c.Logon = c.logons.wait()
		err := c.Connect(c.gateways.address())
		if err == nil {
			c.logons.shorter()
			break
		}
		if time.Since(began) >= c.Logon {
			c.logons.longer()
		}
		if errors.Is(err, fixclient.ErrSequence) || strings.Contains(err.Error(), "fell back") {
			c.Mu.Lock()
			c.Fail("%w", err)
			c.Mu.Unlock()
			return false
		}
		c.Mu.Lock()
		c.away = fmt.Errorf("%v: %s: %w", time.Now().Format(time.TimeOnly), c.gateways.address(), err)
		c.Mu.Unlock()
		c.gateways.next(err)
		c.turnedAway.Add(1)
		programtest.Pause(ctx, clusterRetry)
	}
	if ctx.Err() != nil {
		return c.Client != nil
	}
	for _, id := range c.pending() {
		if !c.repeat(id) {
			return true
		}
	}
	return true
}

// repeat sends a request as one that may have been sent before.
func (c *clusterTrader) repeat(id string) bool {
	c.Mu.Lock()
	r := c.Requests[id]
	c.queryStatus(id)
	c.Mu.Unlock()
	return c.SendAgain(r) == nil
}

// stay trades until the line breaks or nothing is answered for too long.
func (c *clusterTrader) stay(ctx context.Context) {
	last, at := -1, time.Now()
	for ctx.Err() == nil {
		c.Mu.Lock()
		over := len(c.Ended) > 0 || c.Violation != nil
		if n := len(c.Reports) + c.Resent; n != last || c.Waiting == 0 {
			last, at = n, time.Now()
		}
		full := c.Waiting >= fixtest.TraderWindow
		var id string
		var r *fixtest.Request
		if !over && !full {
			id, r = c.Compose()
			c.Requests[id] = r
			c.Waiting++
			c.queryStatus(id)
		}
		c.Mu.Unlock()
		if time.Since(at) > c.quiet.wait() {
			c.quiet.longer()
			return
		}
		if over {
			c.quiet.shorter()
			return
		}
		if r != nil && c.Client.Send(r.MsgType, r.Body) != nil {
			return
		}
		programtest.Pause(ctx, clusterPace)
	}
}

// leave cuts the line.
func (c *clusterTrader) leave() {
	var why error
	if len(c.Ended) > 0 {
		why = <-c.Ended
		c.Ended <- why
	}
	c.Disconnect()
	c.gateways.next(why)
}

// settle connects, waits until everything is answered, asks some of it again and
// holds the orders to their status. It leaves the line open.
func (c *clusterTrader) settle(ctx context.Context, rng *rand.Rand) error {
	for {
		if c.Client == nil && !c.enter(ctx) {
			return errors.Join(ctx.Err(), c.Err())
		}
		err := c.trySettle(rng)
		if err == nil || c.Err() != nil || ctx.Err() != nil {
			return err
		}
		c.leave()
	}
}

func (c *clusterTrader) trySettle(rng *rand.Rand) (err error) {
	c.Patience = 5 * c.quiet.wait() // a node may have said in vain that it does not lead
	began := time.Now()
	defer func() {
		if err != nil && time.Since(began) >= c.Patience {
			c.quiet.longer()
		}
		c.Patience = 0
	}()
	if err := c.Await("answers", func() bool { return c.Waiting == 0 }); err != nil {
		return err
	}
	c.Mu.Lock()
	ids := slices.Sorted(maps.Keys(c.firstAnswers))
	c.Mu.Unlock()
	const repeats = 8
	for range min(repeats, len(ids)) {
		if id := ids[rng.IntN(len(ids))]; !c.repeat(id) {
			return chaintest.ErrNoAnswer
		}
	}
	if err := c.Await("first answers again", func() bool { return len(c.open) == 0 }); err != nil {
		return err
	}
	return c.CheckStatus()
}

// forget lets go of what a check has been over, so that a long run stays fast: the
// orders that have ended, and their requests.
func (c *clusterTrader) forget() {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	clear(c.firstAnswers)
	maps.DeleteFunc(c.Requests, func(_ string, r *fixtest.Request) bool { return r.Answered })
	maps.DeleteFunc(c.Orders, func(_ string, o *fixtest.Order) bool { return !o.Live() })
}

// keeper is a FIX client with one resting order at a time, far from the market,
// which it amends, asks for and cancels, some of it at once: a register.
type keeper struct {
	name     string
	prefix   string
	rng      *rand.Rand
	gateways gateways
	number   int
	past     *history

	client        *fixclient.Client
	ended         chan error
	sender        atomic.Int64 // next number: see SetSender
	target        int          // next number of the service; 0 = it has not logged on yet
	logons, quiet tolerance

	mu      sync.Mutex
	step    string // what run is doing, and since when, for people
	next    int
	id, of  string // OrderID and ClOrdID of the order; empty = none
	ops     int    // of this order so far
	waiting map[string]*keeperRequest
	wrong   error
	changes int // answers
}

// keeperRequest is a request that has no answer yet.
type keeperRequest struct {
	msgType  string
	body     []byte
	answered func(outcome)
}

func newKeeper(name string, number int, seed uint64, addresses []string, past *history) *keeper {
	return &keeper{
		name: name, prefix: fmt.Sprintf("%s-%x-", name, seed), rng: rand.New(rand.NewPCG(seed, 77)),
		gateways: gateways{addresses: addresses}, number: number, past: past, waiting: map[string]*keeperRequest{},
		logons: tolerance{least: clusterLogon}, quiet: tolerance{least: clusterSilence},
	}
}

// run keeps orders until ctx ends, then until all that was asked is answered and the
// last order is cancelled: a history has all of an order.
func (k *keeper) run(ctx, last context.Context) error {
	for last.Err() == nil && k.err() == nil && (ctx.Err() == nil || k.busy()) {
		k.begin("connects")
		if err := k.connect(); err != nil {
			k.begin(err.Error())
			if errors.Is(err, fixclient.ErrSequence) {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			k.gateways.next(err)
			programtest.Pause(last, clusterRetry)
			continue
		}
		k.begin("stays")
		k.stay(ctx, last)
		k.begin("closes")
		closed := k.client.Close()
		err := <-k.ended
		if closed == nil {
			err = nil
		}
		_, k.target = k.client.NextSequence()
		k.drop()
		k.gateways.next(err)
	}
	if err := errors.Join(k.err(), last.Err()); err != nil {
		return fmt.Errorf("%s: %w; %s; without an answer: %v", k.name, err, k.step, k.unanswered())
	}
	return nil
}

func (k *keeper) begin(step string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.step = fmt.Sprintf("%s since %s", step, time.Now().UTC().Format(time.TimeOnly))
}

// unanswered are the requests that wait for an answer, for people.
func (k *keeper) unanswered() (out []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.waiting {
		out = append(out, w.msgType+" "+strings.ReplaceAll(string(w.body), "\x01", "|"))
	}
	return out
}

func (k *keeper) err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wrong
}

func (k *keeper) busy() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.waiting) > 0 || k.of != ""
}

func (k *keeper) connect() error {
	began := time.Now()
	client, err := fixclient.Dial(context.Background(), fixclient.Options{
		Addr: k.gateways.address(), SenderCompID: k.name, TargetCompID: "BLOCKDESK", Username: programtest.FirmA, Password: programtest.Password,
		KeepSequence: k.target > 0, NextSender: int(k.sender.Load()), NextTarget: k.target, Numbers: k, LogonFields: "8013=N\x01", Timeout: k.logons.wait(),
	})
	if err != nil {
		if time.Since(began) >= k.logons.wait() {
			k.logons.longer()
		}
		return err
	}
	k.logons.shorter()
	k.client, k.ended = client, make(chan error, 1)
	go func(ended chan error) { ended <- client.Run(context.Background(), k.handle) }(k.ended)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(k.waiting)) {
		if w := k.waiting[id]; client.Send(w.msgType, append([]byte("97=Y\x01"), w.body...)) != nil {
			return nil // the line breaks, which stay sees
		}
	}
	return nil
}

// SetSender keeps the number also of a Logon that has no answer: the service may have taken
// it.
func (k *keeper) SetSender(next int) error { k.sender.Store(int64(next)); return nil }

// SetTarget does nothing: NextSequence has the number at the end of each connection.
func (k *keeper) SetTarget(int) error { return nil }

// drop forgets the questions for a status that were not answered: they are asked
// anew.
func (k *keeper) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.waiting, func(_ string, w *keeperRequest) bool { return w.msgType == "H" })
}

// stay asks for one thing after the other, three at a time.
func (k *keeper) stay(ctx, last context.Context) {
	const atOnce = 3
	seen, at := 0, time.Now()
	for last.Err() == nil && len(k.ended) == 0 {
		k.mu.Lock()
		if k.changes != seen || len(k.waiting) == 0 {
			seen, at = k.changes, time.Now()
		}
		idle := len(k.waiting) == 0
		var sent []*keeperRequest
		for n := 0; idle && n < atOnce && (ctx.Err() == nil || k.of != ""); n++ {
			if w := k.compose(ctx.Err() != nil); w != nil {
				sent = append(sent, w)
			}
		}
		done := ctx.Err() != nil && idle && k.of == "" || k.wrong != nil
		k.mu.Unlock()
		if time.Since(at) > k.quiet.wait() {
			k.quiet.longer()
			return
		}
		if done {
			return
		}
		for _, w := range sent {
			if k.client.Send(w.msgType, w.body) != nil {
				return
			}
		}
		programtest.Pause(last, 4*time.Millisecond)
	}
}

// compose makes the next request; nil where the order that is under way must be
// there first, or is to be the last and is being cancelled. The caller holds mu.
func (k *keeper) compose(last bool) *keeperRequest {
	const opsAnOrder, sometimes = 24, 8
	if k.id == "" && k.of != "" || last && k.has("F") {
		return nil
	}
	k.next++
	id := k.prefix + strconv.Itoa(k.next)
	stamp := time.Now().UTC().Format("20060102-15:04:05.000")
	w := &keeperRequest{answered: func(outcome) {}}
	op := operation{object: k.prefix + k.id}
	switch roll := k.rng.IntN(sometimes); {
	case k.id == "":
		k.of, k.ops = id, 0
		w.msgType = "D"
		w.body = fmt.Appendf(nil, "11=%s\x0155=%s\x0154=1\x0138=%d\x0140=2\x0144=0.6\x0159=1\x0160=%s\x01", id, programtest.OtherSymbol, firstQty, stamp)
	case roll < 3 && !k.has("H") && !last:
		op.kind, w.msgType = opStatus, "H"
		w.body = fmt.Appendf(nil, "37=%s\x0111=%s\x0155=%s\x0154=1\x01", k.id, k.of, programtest.OtherSymbol)
	case (k.ops > opsAnOrder || last) && !k.has("F"):
		op.kind, w.msgType = opCancel, "F"
		w.body = fmt.Appendf(nil, "11=%s\x0137=%s\x0141=%s\x0155=%s\x0154=1\x0160=%s\x01", id, k.id, k.of, programtest.OtherSymbol, stamp)
	default:
		op.kind, op.amount, w.msgType = opAmend, int64(1+k.rng.IntN(5000)), "G"
		w.body = fmt.Appendf(nil, "11=%s\x0137=%s\x0141=%s\x0155=%s\x0154=1\x0138=%d\x0140=2\x0144=0.6\x0159=1\x0160=%s\x01",
			id, k.id, k.of, programtest.OtherSymbol, op.amount, stamp)
	}
	if op.kind != "" {
		k.ops++
		w.answered = k.past.call(k.number, op)
	}
	if w.msgType == "H" {
		id = statusKey
	}
	k.waiting[id] = w
	return w
}

// statusKey stands for the ClOrdID of a question for a status: one is under way at
// most.
const statusKey = "status"

// has reports whether such a request is under way. The caller holds mu.
func (k *keeper) has(msgType string) bool {
	for _, w := range k.waiting {
		if w.msgType == msgType {
			return true
		}
	}
	return false
}

func (k *keeper) handle(m *fixclient.Message) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, _, isAnswer := answerOf(m)
	if m.Type() == "8" && string(m.Get(150)) == "I" {
		id, isAnswer = statusKey, true
	}
	if m.Type() == "j" && !fixtest.IsStopping(m) {
		k.fail(m)
	}
	w := k.waiting[id]
	if !isAnswer || w == nil {
		return nil
	}
	delete(k.waiting, id)
	k.changes++
	k.answer(w, m)
	return nil
}

// answer takes what a request was answered. The caller holds mu.
func (k *keeper) answer(w *keeperRequest, m *fixclient.Message) {
	kind, refused := string(m.Get(150)), m.Type() == "9"
	tooLate := refused && bytes.HasPrefix(m.Get(58), []byte("TOO_LATE"))
	switch {
	case w.msgType == "D" && kind == "0":
		k.id = string(m.Get(37))
	case w.msgType == "H" && kind == "I":
		amount := int64(0)
		if status := string(m.Get(39)); status == "0" || status == "1" || status == "5" {
			amount = int64(fixtest.Millionths(string(m.Get(151))) / 1e6)
		}
		w.answered(outcome{amount: amount})
	case w.msgType == "G" && kind == "5", w.msgType == "F" && kind == "4":
		w.answered(outcome{})
	case (w.msgType == "G" || w.msgType == "F") && tooLate:
		w.answered(outcome{refused: true})
	default:
		k.fail(m)
	}
	if w.msgType == "F" && k.id != "" {
		k.id, k.of = "", ""
	}
}

// fail keeps the first message that is no right answer. The caller holds mu.
func (k *keeper) fail(m *fixclient.Message) {
	if k.wrong == nil {
		k.wrong = fmt.Errorf("%s: unexpected %q", k.name, bytes.ReplaceAll(m.Raw(), []byte{1}, []byte{'|'}))
	}
}
