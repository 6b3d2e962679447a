package fixgw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/engine/orders"
	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
)

// memJournal keeps commands in memory; durable as soon as they are there.
type memJournal struct {
	mu       sync.Mutex
	commands []engine.Command
}

func (j *memJournal) Append(_ uint64, a, b []engine.Command) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.commands = append(append(j.commands, a...), b...)
	return nil
}

// lateEngine is the engine of a gateway, which is made before it.
type lateEngine struct{ Engine }

type engineWithOrders struct {
	*engine.Engine
	orders *engine.Consumer
}

func (e engineWithOrders) RunInline(step func()) { e.Engine.RunInline(e.orders, step) }

func (e engineWithOrders) NextOrderID() market.OrderID { return e.OrderIDs().Next() }

func (e engineWithOrders) NextOrderIDs(n int) market.OrderID { return e.OrderIDs().NextN(n) }

// harness is a gateway with a real engine behind it, on a journal and a store that
// outlive it.
type harness struct {
	t       testing.TB
	options Options
	set     *market.Instruments
	journal *memJournal
	store   *kvtest.Memory
	disk    kv.Store // in the place of store, where a test has one

	replica *engine.Replica // the engine's own: to be read when it has stopped
	engine  *engine.Engine
	gateway *Gateway
	hooks   session.Hooks
	md      *marketdata.Data
	views   *views
	offers  *offers
	bank    *bank
	till    *till        // in the bank's place; nil = the bank
	ahead   atomic.Int64 // of the engine's clock before the system's, nanoseconds
	late    lateEngine
	cancel  context.CancelFunc
	done    chan error
	stopped bool
	pipes   *sessiontest.Pipes // what it listens on in a bubble; nil = TCP
	// quickfixOnly: no request goes past quickfix.
	quickfixOnly bool
}

// newDesk starts one. Its CompID is unique, since quickfix keeps its sessions in
// a registry of the process.
func newDesk(t testing.TB, compIDs []string, change func(*Options)) *harness {
	d := &harness{
		t: t, set: wiretest.Instruments(t), journal: &memJournal{}, store: kvtest.New(), bank: &bank{},
		options: Options{Options: session.Options{
			Address: "127.0.0.1:0", CompID: strings.Map(func(r rune) rune {
				if r == '/' || r == '#' {
					return '-'
				}
				return r
			}, t.Name())[:min(len(t.Name()), wire.MaxCompID)], Participants: sessiontest.Participants(compIDs...),
			RefuseDelay: 20 * time.Millisecond, Rate: 100_000,
			LogonTimeout: wait, LogonGrace: wait, KickGrace: wait, FlushTimeout: wait, GapTimeout: wait,
		}, DrainTimeout: wait},
	}
	if virtual() {
		d.options.Listen = func(string, string) (net.Listener, error) {
			d.pipes = sessiontest.NewPipes()
			return d.pipes, nil
		}
	}
	if os.Getenv("FIXGW_TEST_LOG") != "" {
		d.options.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	if change != nil {
		change(&d.options)
	}
	d.start()
	t.Cleanup(func() {
		if virtual() && !d.stopped {
			// For each Logout of its own quickfix leaves a timer, and for each timer that the
			// session does not outlive a goroutine: a bubble cannot end with it. The clients
			// are closed by now.
			d.awaitStats("nobody logged on", func(s Stats) bool { return s.Sessions == 0 && s.Connections == 0 })
		}
		d.stop()
		if virtual() {
			// quickfix does not join its readers; they end soon after their session.
			await.VirtualSleep(t, 100*time.Millisecond)
		}
	})
	return d
}

// start recovers the engine from the journal, brings the gateway up to it, and
// runs both.
func (d *harness) start() {
	d.t.Helper()
	replica := engine.NewReplica(engine.StateOptions{MaxOrders: 100_000})
	d.replica, d.md, d.views, d.offers = replica, marketdata.New(), &views{}, &offers{}
	store := kv.Store(d.store)
	if d.disk != nil {
		store = d.disk
	}
	var err error
	deps := Dependencies{MarketData: d.views, Desk: d.offers, Settlement: d.bank}
	if d.till != nil {
		deps.Settlement = d.till
	}
	d.gateway, err = New(d.options, &d.late, store, deps, d.set)
	if err != nil {
		d.t.Fatal(err)
	}
	d.hooks = session.Hooks{Server: d.gateway.Server}
	if d.quickfixOnly {
		d.hooks.QuickfixOnly()
	}
	cursor := d.gateway.Cursor()
	for i := range d.journal.commands {
		c := &d.journal.commands[i]
		replica.Apply(c, func(events []event.Event) {
			for i := range events {
				d.md.Apply(&events[i])
				d.views.apply(&events[i])
			}
			if c.Seq > cursor {
				if err := d.gateway.Replay(events); err != nil {
					d.t.Fatal(err)
				}
			}
		})
	}
	var cancels []engine.Command
	if state := replica.State; cursor > state.Seq() || d.gateway.Start(state) != nil {
		if cancels, err = d.gateway.Reconcile(state); err != nil {
			d.t.Fatal(err)
		}
	}
	fresh := len(d.journal.commands) == 0
	d.offers.follow(replica.State.Desk().ReadModel())
	d.engine, err = engine.New(engine.Options{Journal: d.journal, Clock: d.now, InlineJournal: true}, replica)
	if err != nil {
		d.t.Fatal(err)
	}
	orders, views := d.engine.Consumer("fix"), d.engine.Consumer("md")
	d.late.Engine = engineWithOrders{d.engine, orders}
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel, d.done, d.stopped = cancel, make(chan error, 3), false
	go func() { d.done <- d.engine.Run(ctx) }()
	go func() { d.done <- d.gateway.Run(ctx, orders) }()
	go func() { d.done <- d.runViews(views) }()
	for i := range cancels {
		d.submit(cancels[i], nil)
	}
	if fresh {
		for i := range d.set.Len() {
			c, err := engine.DefineInstrumentCommand(d.set.Get(market.InstrumentID(i)))
			d.submit(c, err)
		}
		for i := range d.options.Participants {
			c, err := engine.SetRiskCommand(d.options.Participants[i].Number, engine.AllInstruments, engine.Limits{})
			d.submit(c, err)
		}
	}
}

func (d *harness) submit(c engine.Command, err error) {
	d.t.Helper()
	if err == nil {
		err = d.engine.Submit(&c)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// runViews does what the feed does.
func (d *harness) runViews(c *engine.Consumer) error {
	for {
		events, err := c.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i := range events {
			d.md.Apply(&events[i])
			d.views.apply(&events[i])
			d.offers.apply(&events[i])
		}
		d.offers.publish()
		c.Release(len(events))
		d.md.Flush(func(prev, next *marketdata.View, trades []marketdata.Trade) {
			d.views.addOrders(next)
			d.views.last[next.Instrument].Store(next)
			d.gateway.MarketUpdate(prev, next, trades)
		})
	}
}

// views is what the feed is for the gateway.
type views struct {
	last   [3]atomic.Pointer[marketdata.View]
	orders [3]orders.Book
}

func (v *views) apply(e *event.Event) {
	if int(e.Instrument) < len(v.orders) {
		v.orders[e.Instrument].Apply(e)
	}
}

func (v *views) addOrders(next *marketdata.View) {
	b := &v.orders[next.Instrument]
	next.Orders = &orders.Sides{Bids: b.Append(nil, market.Buy, next.Bids), Asks: b.Append(nil, market.Sell, next.Asks)}
}

// WantOrders: only the first two instruments are matched.
func (v *views) WantOrders(in market.InstrumentID) (release func(), ok bool) {
	return func() {}, in < 2
}

func (v *views) View(in market.InstrumentID) *marketdata.View { return v.last[in].Load() }

// stop stops cleanly.
func (d *harness) stop() {
	d.t.Helper()
	if d.stopped {
		return
	}
	d.stopped = true
	d.cancel()
	for range 3 {
		if err := <-d.done; err != nil && !errors.Is(err, context.Canceled) {
			d.t.Errorf("stopped with: %v", err)
		}
	}
}

// handler returns that of a session.
func (d *harness) handler(compID string) *handler {
	return handlerOf(d.gateway.SessionNamed(compID))
}

func (d *harness) addr() string { return d.gateway.Addr().String() }

// virtual reports whether the caller is in a bubble, whose time is virtual.
func virtual() bool { return time.Now().Year() < 2010 }

// connect returns a new connection to the gateway.
func (d *harness) connect() (net.Conn, error) {
	if d.pipes != nil {
		return d.pipes.Dial()
	}
	return net.Dial("tcp", d.addr())
}

// awaitStats waits until the gateway's figures are as holds wants them.
func (d *harness) awaitStats(what string, holds func(Stats) bool) {
	d.t.Helper()
	await.Value(d.t, what, d.gateway.Stats, holds)
}

// awaitOrders waits until the gateway has so many live orders.
func (d *harness) awaitOrders(live int) {
	d.t.Helper()
	d.awaitStats(fmt.Sprintf("%d live orders", live), func(s Stats) bool { return s.LiveOrders == live })
}

// awaitConnections waits until the gateway has so many connections.
func (d *harness) awaitConnections(n int) {
	d.t.Helper()
	d.awaitStats(fmt.Sprintf("%d connections", n), func(s Stats) bool { return s.Connections == n })
}

// awaitView waits until the view of an instrument is as holds wants it.
func (d *harness) awaitView(in market.InstrumentID, what string, holds func(*marketdata.View) bool) {
	d.t.Helper()
	await.True(d.t, what, func() bool {
		v := d.views.View(in)
		return v != nil && holds(v)
	})
}

// client is a FIX client whose messages arrive in a channel.
type client struct {
	t      testing.TB
	d      *harness
	compID string
	c      *fixclient.Client
	in     chan []byte
	// done gets Run's error.
	done    chan error
	checker *wiretest.Checker
	got     atomic.Int64 // messages so far
}

// dial logs on when the last connection of the session has ended.
func (d *harness) dial(compID string, change func(*fixclient.Options)) *client {
	d.t.Helper()
	o := fixclient.Options{
		Addr: d.addr(), SenderCompID: compID, TargetCompID: d.options.CompID,
		Username: strings.ToLower(compID), Password: sessiontest.Password, Timeout: wait,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return d.connect() },
	}
	if change != nil {
		change(&o)
	}
	d.awaitFree(compID)
	c, err := fixclient.Dial(context.Background(), o)
	if err != nil {
		d.t.Fatal(err)
	}
	k := &client{t: d.t, d: d, compID: compID, c: c, in: make(chan []byte, 100_000), done: make(chan error, 1), checker: wiretest.CheckerFor(o.LogonFields)}
	go func() {
		k.done <- c.Run(context.Background(), func(m *fixclient.Message) error {
			k.in <- bytes.Clone(m.Raw())
			k.got.Add(1)
			return nil
		})
	}()
	d.t.Cleanup(func() { c.Close() })
	return k
}

// frozen returns a clock that does not go on: what is rationed by time stays used up,
// however long it takes to use it up.
func frozen() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

// wait only ends what hangs.
const wait = runtest.HangTimeout

// next returns the next message as "35=8|37=…|" without header and trailer
// noise, after the stock dictionary has passed it.
func (k *client) next() sessiontest.Message {
	k.t.Helper()
	raw := await.Receive(k.t, "a message to "+k.compID, k.in)
	if err := k.checker.Check(raw); err != nil {
		k.t.Fatalf("our message breaks the stock dictionary: %v\n%s", err, wiretest.Show(raw))
	}
	return sessiontest.Message(raw)
}

// barriers counts the orders of pass: each has a ClOrdID of its own.
var barriers atomic.Uint64

// pass takes the messages up to the answer to an order that the engine refuses: what
// engine and follower have to say of anything before it comes before it. It fails
// where a message comes that may does not allow.
func (k *client) pass(may func(sessiontest.Message) bool) {
	k.t.Helper()
	id := fmt.Sprint("barrier", barriers.Add(1))
	k.send("D", "11="+id+"|55=MIR/USDC|54=1|38=1|40=2|44=1|"+now60)
	for {
		m := k.next()
		if m.Get(11) == id {
			m.Want(k.t, "35=8 150=8 58=not_matched")
			return
		}
		if !may(m) {
			k.t.Fatalf("unexpected message: %s", m)
		}
	}
}

// none fails when a message comes that something before has caused.
func (k *client) none() {
	k.t.Helper()
	k.pass(func(sessiontest.Message) bool { return false })
}

// send sends one message, written with | for SOH.
func (k *client) send(msgType, body string) {
	k.t.Helper()
	if err := k.c.Send(msgType, []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
		k.t.Fatal(err)
	}
}

const now60 = "60=20260101-00:00:00.000|"

// order sends a limit order on SLUSD/USDC.
func (k *client) order(id, side, qty, price, more string) {
	k.t.Helper()
	k.send("D", fmt.Sprintf("11=%s|55=SLUSD/USDC|54=%s|38=%s|40=2|44=%s|%s%s", id, side, qty, price, now60, more))
}

// want compares fields of the next message.
func (k *client) want(fields string) sessiontest.Message {
	k.t.Helper()
	m := k.next()
	m.Want(k.t, fields)
	return m
}

// sessionNumberKey is where the FIX store keeps the number of a CompID's session.
func sessionNumberKey(compID string) []byte { return append([]byte{'a'}, compID...) }
