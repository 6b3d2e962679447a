package fixtest

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

	"blockdesk/e2e/programtest"
	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// The actions of a test trader.
const (
	TraderWindow  = 64  // requests without an answer
	traderResting = 150 // orders that it lets rest
	traderLevels  = 40  // prices a side of the middle, which overlap by traderOverlap
	traderOverlap = 4
)

// Request is one D, F or G as it was sent.
type Request struct {
	MsgType  string
	Body     []byte
	Answered bool
}

// Order is one order as its execution reports show it.
type Order struct {
	Symbol, Side       string
	clOrdID            string
	status             string // OrdStatus (39)
	Price, Leaves, cum string // 44, 151, 14
	filled             uint64 // Σ LastQty (32) of different ExecIDs, in millionths
}

// Live reports whether the order can still trade.
func (o *Order) Live() bool { return o.status == "0" || o.status == "1" }

// fill is one side of a trade.
type fill struct{ qty, price string }

// Trader is one firm's session with a memory: everything sent and every report,
// over all its connections. It holds each report to the rules that must survive
// a crash.
type Trader struct {
	Name   string
	Prefix string
	rng    *rand.Rand

	Client *fixclient.Client
	Ended  chan error
	sender int // the numbers to continue with; 0 = a fresh session
	target int

	Mu        sync.Mutex
	Changed   *sync.Cond // on Mu
	Next      int
	Requests  map[string]*Request // by ClOrdID
	Waiting   int                 // requests without an answer
	Orders    map[string]*Order   // by OrderID
	Reports   map[string]string   // content by ExecID
	Fills     map[string]fill     // by ExecID
	status    map[string]*Order   // answers to H, by OrderID
	statuses  int                 // answers to H
	Resent    int                 // reports with PossResend (97=Y)
	Violation error               // the first broken rule

	// Logon bounds a logon, for a trader of a group; 0 = runtest.HangTimeout.
	Logon time.Duration
	// Patience is how long Await waits; 0 = runtest.HangTimeout.
	Patience time.Duration
	// OnMessage receives each message after it was handled, with Mu held; may be nil.
	OnMessage func(*fixclient.Message)
}

// NewTrader returns a trader that has never logged on. Its actions are chosen by the seed.
func NewTrader(name string, seed uint64) *Trader {
	t := &Trader{
		Name: name, Prefix: fmt.Sprintf("%s-%x-", name, seed), rng: rand.New(rand.NewPCG(seed, uint64(name[0]))),
		Requests: map[string]*Request{}, Orders: map[string]*Order{}, Reports: map[string]string{},
		Fills: map[string]fill{}, status: map[string]*Order{},
	}
	t.Changed = sync.NewCond(&t.Mu)
	return t
}

// Connect logs on and continues the sequence numbers, if there are any. The orders outlive
// the connection.
func (t *Trader) Connect(address string) error {
	client, err := fixclient.Dial(context.Background(), fixclient.Options{
		Addr: address, SenderCompID: t.Name, TargetCompID: "BLOCKDESK", Username: t.Name, Password: programtest.Password,
		KeepSequence: t.sender > 0, NextSender: t.sender, NextTarget: t.target, LogonFields: "8013=N\x01", Timeout: cmp.Or(t.Logon, runtest.HangTimeout),
	})
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	if _, target := client.NextSequence(); target < t.target {
		return fmt.Errorf("%s: the server's numbers fell back from %d to %d", t.Name, t.target, target)
	}
	t.Client, t.Ended = client, make(chan error, 1)
	go func(ended chan error) {
		ended <- client.Run(context.Background(), t.handle)
		t.Changed.Broadcast()
	}(t.Ended)
	return nil
}

// Disconnect closes the connection, if it is open, and records the sequence numbers.
func (t *Trader) Disconnect() {
	if t.Client == nil {
		return
	}
	closed := t.Client.Close()
	if err := <-t.Ended; closed == nil && (errors.Is(err, fixclient.ErrMalformed) || errors.Is(err, fixclient.ErrLogout)) {
		t.Mu.Lock()
		t.Fail("the line ended: %w", err)
		t.Mu.Unlock()
	}
	t.sender, t.target = t.Client.NextSequence()
	t.Client = nil
}

// Fail records a broken rule, if it is the first one. The caller holds Mu.
func (t *Trader) Fail(format string, args ...any) {
	if t.Violation == nil {
		t.Violation = fmt.Errorf(t.Name+": "+format, args...)
	}
	t.Changed.Broadcast()
}

// Err returns the first broken rule.
func (t *Trader) Err() error {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return t.Violation
}

// handle takes one message of the session.
func (t *Trader) handle(m *fixclient.Message) error {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	defer t.Changed.Broadcast()
	switch m.Type() {
	case "8":
		t.report(m)
	case "9", "r":
		t.answer(string(m.Get(11)))
	case "j":
		if !IsStopping(m) {
			t.Fail("refused: %q", m.Get(58))
		}
	case "B": // the service stops
	default:
		t.Fail("unexpected message %q", bytes.ReplaceAll(m.Raw(), []byte{1}, []byte{'|'}))
	}
	if t.OnMessage != nil {
		t.OnMessage(m)
	}
	return nil
}

// IsStopping reports whether a reject is that of a server that stops or no longer leads:
// the request stays unanswered.
func IsStopping(m *fixclient.Message) bool {
	text := m.Get(58)
	return bytes.HasPrefix(text, []byte("READ_ONLY: ")) || bytes.HasPrefix(text, []byte("LEADER_CHANGED"))
}

func (t *Trader) answer(clOrdID string) {
	if r := t.Requests[clOrdID]; r != nil && !r.Answered {
		r.Answered = true
		t.Waiting--
	}
}

func (t *Trader) report(m *fixclient.Message) {
	get := func(tag int) string { return string(m.Get(tag)) }
	id, kind := get(37), get(150)
	o := &Order{
		Symbol: get(55), Side: get(54), clOrdID: get(11), status: get(39),
		Price: get(44), Leaves: get(151), cum: get(14),
	}
	if kind == "I" {
		t.statuses++
		t.status[id] = o
		return
	}
	t.answer(get(11))
	if get(97) == "Y" {
		t.Resent++
	}
	raw := string(m.Raw())
	content := raw[bytes.Index(m.Raw(), []byte("\x0137=")) : len(raw)-len("10=000\x01")]
	exec := get(17)
	if known, seen := t.Reports[exec]; seen {
		if known != content {
			t.Fail("ExecID %s came with other content:\n%q\n%q", exec, known, content)
		}
		return
	}
	t.Reports[exec] = content
	if id == "NONE" {
		return
	}
	known := t.Orders[id]
	switch {
	case known == nil && kind != "0" && kind != "8":
		t.Fail("report %s of order %s, which nobody has accepted: %q", exec, id, content)
	case known != nil && kind == "0":
		t.Fail("order %s is accepted twice: %q", id, content)
	case known != nil:
		o.filled = known.filled
	}
	if kind == "4" && get(41) != "" { // the F's own ClOrdID answers it
		o.clOrdID = get(41)
	}
	if kind == "F" {
		t.Fills[exec] = fill{qty: get(32), price: get(31)}
		o.filled += Millionths(get(32))
	}
	if o.filled != Millionths(o.cum) {
		t.Fail("order %s: CumQty %s is not the sum of its fills: %q", id, o.cum, content)
	}
	t.Orders[id] = o
}

// Millionths reads a decimal with six digits.
func Millionths(text string) uint64 {
	n, err := market.ParseDecimal([]byte(text), 6)
	if err != nil {
		return ^uint64(0)
	}
	return n
}

// Trade sends random orders, amends and cancels until the connection breaks or stop is
// closed, with at most TraderWindow requests unanswered.
func (t *Trader) Trade(stop <-chan struct{}) {
	for {
		t.Mu.Lock()
		deadline := time.Now().Add(runtest.HangTimeout)
		wake := time.AfterFunc(runtest.HangTimeout, t.Changed.Broadcast)
		for t.Waiting >= TraderWindow && !t.over(stop) && time.Now().Before(deadline) {
			t.Changed.Wait()
		}
		wake.Stop()
		if t.over(stop) {
			t.Mu.Unlock()
			return
		}
		if t.Waiting >= TraderWindow {
			t.Fail("%d requests without an answer for %v", t.Waiting, runtest.HangTimeout)
			t.Mu.Unlock()
			return
		}
		id, r := t.Compose()
		t.Requests[id] = r
		t.Waiting++
		t.Mu.Unlock()
		if t.Client.Send(r.MsgType, r.Body) != nil {
			return
		}
	}
}

// over reports whether trading has to end. The caller holds mu.
func (t *Trader) over(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return len(t.Ended) > 0 || t.Violation != nil
	}
}

// Compose makes the next request.
func (t *Trader) Compose() (id string, r *Request) {
	t.Next++
	id = t.Prefix + strconv.Itoa(t.Next)
	resting := t.resting()
	roll := t.rng.IntN(100)
	if len(resting) > traderResting {
		roll = 99
	}
	stamp := time.Now().UTC().Format("20060102-15:04:05.000")
	switch {
	case roll < 65 || len(resting) == 0:
		symbol, side := programtest.Symbol, 1+t.rng.IntN(2)
		if t.rng.IntN(3) == 0 {
			symbol = programtest.OtherSymbol
		}
		return id, &Request{MsgType: "D", Body: fmt.Appendf(nil, "11=%s\x0155=%s\x0154=%d\x0138=%d\x0140=2\x0144=%s\x0159=%d\x0160=%s\x01",
			id, symbol, side, 1+t.rng.IntN(500), t.price(side), []int{1, 1, 1, 3}[t.rng.IntN(4)], stamp)}
	case roll < 75:
		o := t.Orders[resting[t.rng.IntN(len(resting))]]
		side, _ := strconv.Atoi(o.Side)
		return id, &Request{MsgType: "G", Body: fmt.Appendf(nil, "11=%s\x0141=%s\x0155=%s\x0154=%s\x0138=%d\x0140=2\x0144=%s\x0159=1\x0160=%s\x01",
			id, o.clOrdID, o.Symbol, o.Side, 1+t.rng.IntN(500), t.price(side), stamp)}
	default:
		o := t.Orders[resting[t.rng.IntN(len(resting))]]
		return id, &Request{MsgType: "F", Body: fmt.Appendf(nil, "11=%s\x0141=%s\x0155=%s\x0154=%s\x0160=%s\x01",
			id, o.clOrdID, o.Symbol, o.Side, stamp)}
	}
}

// price returns a price around 1 that crosses now and then.
func (t *Trader) price(side int) string {
	away := t.rng.IntN(traderLevels) - traderOverlap
	if side == 1 {
		away = -away
	}
	return fmt.Sprintf("%.3f", 1+float64(away)/1000)
}

// resting returns the OrderIDs of the live orders, in order. The caller holds
// mu.
func (t *Trader) resting() []string {
	var ids []string
	for id, o := range t.Orders {
		if o.Live() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Await waits until ready returns true, or the connection breaks. It calls ready with Mu
// held, after each message.
func (t *Trader) Await(what string, ready func() bool) error {
	patience := cmp.Or(t.Patience, runtest.HangTimeout)
	deadline := time.Now().Add(patience)
	wake := time.AfterFunc(patience, t.Changed.Broadcast)
	defer wake.Stop()
	t.Mu.Lock()
	defer t.Mu.Unlock()
	for !ready() {
		switch {
		case t.Violation != nil:
			return t.Violation
		case len(t.Ended) > 0:
			return fmt.Errorf("%s: the line broke while waiting for %s", t.Name, what)
		case time.Now().After(deadline):
			return fmt.Errorf("%s: no %s in %v", t.Name, what, patience)
		}
		t.Changed.Wait()
	}
	return t.Violation
}

// barrier requests the status of an order that does not exist. When the answer arrives,
// all earlier messages of the server have arrived too.
func (t *Trader) barrier() error {
	t.Mu.Lock()
	before := t.statuses
	t.Mu.Unlock()
	if err := t.Client.Send("H", fmt.Appendf(nil, "11=%snone\x0155=%s\x0154=1\x01", t.Prefix, programtest.Symbol)); err != nil {
		return err
	}
	return t.Await("an answer to a question", func() bool { return t.statuses > before })
}

// unanswered returns the requests without an answer, in the order of sending.
func (t *Trader) unanswered() []*Request {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	var out []*Request
	for i := 1; i <= t.Next; i++ {
		if r := t.Requests[t.Prefix+strconv.Itoa(i)]; !r.Answered {
			out = append(out, r)
		}
	}
	return out
}

// SendAgain sends a request as one that may have been sent before.
func (t *Trader) SendAgain(r *Request) error {
	return t.Client.Send(r.MsgType, append([]byte("97=Y\x01"), r.Body...))
}

// CheckStatus requests the status of every order and compares the answers with the
// reports.
func (t *Trader) CheckStatus() error {
	t.Mu.Lock()
	clear(t.status)
	ids := slices.Sorted(maps.Keys(t.Orders))
	t.Mu.Unlock()
	for i, id := range ids {
		t.Mu.Lock()
		o := *t.Orders[id]
		t.Mu.Unlock()
		body := fmt.Appendf(nil, "37=%s\x0111=%s\x0155=%s\x0154=%s\x01", id, o.clOrdID, o.Symbol, o.Side)
		if err := t.Client.Send("H", body); err != nil {
			return err
		}
		if err := t.Await("order status", func() bool { return i-len(t.status) < TraderWindow }); err != nil {
			return err
		}
	}
	if err := t.Await("order status", func() bool { return len(t.status) == len(ids) }); err != nil {
		return err
	}
	t.Mu.Lock()
	defer t.Mu.Unlock()
	for _, id := range ids {
		known, now := t.Orders[id], t.status[id]
		if now == nil {
			return fmt.Errorf("%s: order %s (%s): no status of it came", t.Name, id, known.clOrdID)
		}
		if now.status != known.status || now.Leaves != known.Leaves || now.cum != known.cum || now.Price != known.Price {
			return fmt.Errorf("%s: order %s (%s): the reports say %+v, the status says %+v", t.Name, id, known.clOrdID, *known, *now)
		}
	}
	return nil
}

// ConnectAll logs traders on.
func ConnectAll(t *testing.T, address string, traders ...*Trader) {
	t.Helper()
	for _, tr := range traders {
		if err := tr.Connect(address); err != nil {
			t.Fatal(err)
		}
	}
}

// StartTrading lets all traders trade until their lines break. The returned group ends
// with them.
func StartTrading(traders ...*Trader) *sync.WaitGroup {
	never := make(chan struct{})
	all := new(sync.WaitGroup)
	for _, tr := range traders {
		all.Go(func() { tr.Trade(never) })
	}
	return all
}

// TradeUntil lets all traders trade until enough returns true, or their lines break.
func TradeUntil(t *testing.T, what string, enough func() bool, traders ...*Trader) {
	t.Helper()
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, tr := range traders {
		all.Go(func() { tr.Trade(stop) })
	}
	defer all.Wait()
	defer func() {
		close(stop)
		for _, tr := range traders {
			tr.Changed.Broadcast()
		}
	}()
	await.True(t, what, func() bool {
		for _, tr := range traders {
			tr.Mu.Lock()
			over := tr.over(stop)
			tr.Mu.Unlock()
			if over {
				return true
			}
		}
		return enough()
	})
}

// Reported returns a function that is true once each trader has so many reports more
// than now.
func Reported(more int, traders ...*Trader) (enough func() bool) {
	want := make([]int, len(traders))
	for i, tr := range traders {
		tr.Mu.Lock()
		want[i] = len(tr.Reports) + more
		tr.Mu.Unlock()
	}
	return func() bool {
		for i, tr := range traders {
			tr.Mu.Lock()
			n := len(tr.Reports)
			tr.Mu.Unlock()
			if n < want[i] {
				return false
			}
		}
		return true
	}
}

// NextID returns a ClOrdID that the trader has not used.
func (t *Trader) NextID() string {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	t.Next++
	return t.Prefix + strconv.Itoa(t.Next)
}

// Submit sends a request under an id of NextID's and remembers it, also when the
// line breaks.
func (t *Trader) Submit(id string, r *Request) error {
	t.Mu.Lock()
	t.Requests[id] = r
	t.Waiting++
	t.Mu.Unlock()
	return t.Client.Send(r.MsgType, r.Body)
}
