package feed

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/marketdata"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// instruments returns the two of docs/specification.md, and one with a tick and lot of
// several units.
func instruments() []market.Instrument {
	list := []market.Instrument{
		{Symbol: "SLUSD/USDC", Base: "SLUSD", Quote: "USDC", PriceDecimals: 6, QtyDecimals: 6, Tick: 1, Lot: 1},
		{Symbol: "92C/SLUSD", Base: "92C", Quote: "SLUSD", PriceDecimals: 6, QtyDecimals: 3, Tick: 1, Lot: 1},
		{Symbol: "AAA/BBB", Base: "AAA", Quote: "BBB", PriceDecimals: 2, QtyDecimals: 0, Tick: 25, Lot: 10},
	}
	for i := range list {
		list[i].ID = market.InstrumentID(i)
		list[i].MinQty, list[i].MaxQty, list[i].MaxPrice = 1, 1<<40, 1<<40
		list[i].Source = market.Matched
	}
	return list
}

// testFeed is a running engine with its feed behind a loopback server.
type testFeed struct {
	t      testing.TB
	engine *engine.Engine
	feed   *Feed
	addr   string
	sent   atomic.Uint64 // commands that the engine has got
	stop   func()        // ends everything; may be called again
}

// longTimeouts sets long timeouts, so that a test meets only the one that it tests, even
// on a slow machine.
func longTimeouts(o *Options) {
	o.SubscribeWithin, o.SlowAfter, o.CloseWithin = time.Hour, time.Hour, time.Hour
	o.MessageWithin, o.AheadWithin, o.DrainWithin = time.Hour, time.Hour, time.Hour
}

type feedOption func(*Options)

func newTestFeed(t testing.TB, change ...feedOption) *testFeed {
	t.Helper()
	return newTestFeedWith(t, nil, change...)
}

// newTestFeedWith is newTestFeed that calls setup, which may be nil, before the feed runs.
func newTestFeedWith(t testing.TB, setup func(*Feed), change ...feedOption) *testFeed {
	t.Helper()
	o := Options{Shards: 2, Logger: slog.New(slog.DiscardHandler)}
	longTimeouts(&o)
	for _, f := range change {
		f(&o)
	}
	e, err := engine.New(engine.Options{}, engine.NewReplica(engine.StateOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(o, instruments(), marketdata.New(), e.Epoch())
	if err != nil {
		t.Fatal(err)
	}
	f.TrackOrders(engine.NewState(engine.StateOptions{}))
	if setup != nil {
		setup(f)
	}
	d := &testFeed{t: t, engine: e, feed: f}
	for _, in := range instruments() {
		c, err := engine.DefineInstrumentCommand(&in)
		if err != nil {
			t.Fatal(err)
		}
		d.submit(c)
	}

	for participant := market.ParticipantID(1); participant <= 2; participant++ {
		c, err := engine.SetRiskCommand(participant, engine.AllInstruments, engine.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		d.submit(c)
	}

	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.addr = listener.Addr().String()
	handler := func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == streamPath {
			f.Stream(ctx)
		} else {
			f.Handler(ctx)
		}
	}
	server := &fasthttp.Server{Handler: handler, KeepHijackedConns: true, Logger: slog.NewLogLogger(slog.DiscardHandler, 0)}
	consumer := e.Consumer("feed")
	stopEngine := runtest.Start(t, e.Run)
	stopFeed := runtest.Start(t, func(ctx context.Context) error { return f.Run(ctx, consumer) })
	stopServer := runtest.Start(t, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
		return server.Serve(listener)
	})
	d.stop = sync.OnceFunc(func() {
		stopEngine()
		stopFeed()
		stopServer()
		_ = server.Shutdown()
	})
	t.Cleanup(d.stop)
	d.settle()
	return d
}

// submit submits one command and retries while the ring is full.
func (d *testFeed) submit(c engine.Command) {
	d.t.Helper()
	await.True(d.t, "room in the engine's ring", func() bool {
		err := d.engine.Submit(&c)
		if err != nil && !errors.Is(err, engine.ErrFull) {
			d.t.Fatal(err)
		}
		return err == nil
	})
	d.sent.Add(1)
}

// order places a limit order, a buy of participant 1 or a sell of participant 2, and
// returns its id.
func (d *testFeed) order(in market.InstrumentID, side market.Side, price market.Price, qty market.Qty) market.OrderID {
	d.t.Helper()
	c := engine.Command{Kind: engine.NewOrder, Instrument: in}
	c.Order = book.Order{
		ID: d.engine.OrderIDs().Next(), Price: price, Qty: qty, Side: side,
		Type: book.Limit, TIF: book.GTC, STP: book.STPCancelNewest, Participant: market.ParticipantID(side),
	}
	d.submit(c)
	return c.Order.ID
}

// settle waits until every shard has the updates of all commands.
func (d *testFeed) settle() {
	d.t.Helper()
	await.True(d.t, "the updates of all commands", d.settled)
}

// settled reports whether every shard has them. The engine's own first command begins the
// epoch.
func (d *testFeed) settled() bool { return d.feed.Stats().Published > d.sent.Load() }

// tight dials with the smallest receive buffer, so that a stopped reader is noticed at
// once. The buffer must be set before the TCP window is negotiated.
var tight = net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 2<<10)
	}); e != nil {
		return e
	}
	return err
}}

// client is an independent client that shares no code with the feed.
type client struct {
	t  testing.TB
	ws *websocket.Conn
}

func (d *testFeed) dial() *client {
	d.t.Helper()
	c, err := d.tryDial()
	if err != nil {
		d.t.Fatal(err)
	}
	if m := c.next(); m.Channel != "status" || m.Type != "welcome" {
		d.t.Fatalf("no welcome first: %s", m.raw)
	}
	return c
}

func (d *testFeed) tryDial() (*client, error) {
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+d.addr+"/ws/rfq", nil)
	if err != nil {
		return nil, err
	}
	d.t.Cleanup(func() { _ = ws.Close() })
	return &client{t: d.t, ws: ws}, nil
}

// msg is a message of the server.
type msg struct {
	Channel    string            `json:"channel"`
	Type       string            `json:"type"`
	Symbol     string            `json:"symbol"`
	Epoch      string            `json:"epoch"`
	Seq        uint64            `json:"seq"`
	PrevSeq    uint64            `json:"prev_seq"`
	EngineSeq  uint64            `json:"engine_seq"`
	TS         string            `json:"ts"`
	Bids       [][2]string       `json:"bids"`
	Asks       [][2]string       `json:"asks"`
	Checksum   uint32            `json:"checksum"`
	Trades     []tradeMsg        `json:"trades"`
	Last       *string           `json:"last"`
	Bid        *string           `json:"bid"`
	Seqs       map[string]uint64 `json:"seqs"`
	ID         json.RawMessage   `json:"id"`
	Action     string            `json:"action"`
	Success    bool              `json:"success"`
	Subscribed []struct {
		Channel string `json:"channel"`
		Symbol  string `json:"symbol"`
		Depth   int    `json:"depth"`
		Seq     uint64 `json:"seq"`
		Resumed bool   `json:"resumed"`
	} `json:"subscribed"`
	Rejected []struct {
		Channel string `json:"channel"`
		Symbol  string `json:"symbol"`
		Code    string `json:"code"`
	} `json:"rejected"`
	Code      string `json:"code"`
	Retryable bool   `json:"retryable"`
	raw       string
}

type tradeMsg struct {
	ID    uint64 `json:"trade_id"`
	Price string `json:"price"`
	Qty   string `json:"qty"`
	Side  string `json:"side"`
	TS    string `json:"ts"`
}

func (c *client) send(text string) {
	c.t.Helper()
	if err := c.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next message.
func (c *client) next() *msg {
	c.t.Helper()
	m, err := c.tryNext()
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

func (c *client) tryNext() (*msg, error) {
	_ = c.ws.SetReadDeadline(time.Now().Add(runtest.HangTimeout))
	_, data, err := c.ws.ReadMessage()
	if err != nil {
		return nil, err
	}
	m := &msg{raw: string(data)}
	return m, json.Unmarshal(data, m)
}

// wait returns the next message of that channel and type ("" = any), skipping
// others.
func (c *client) wait(channel, form string) *msg {
	c.t.Helper()
	// Heartbeats never end.
	for deadline := time.Now().Add(runtest.HangTimeout); time.Now().Before(deadline); {
		if m := c.next(); m.Channel == channel && (form == "" || m.Type == form) {
			return m
		}
	}
	c.t.Fatalf("no %s %s in %v; %s", channel, form, runtest.HangTimeout, runtest.RerunCommand(c.t))
	return nil
}

// closed reads to the end and returns the close code.
func (c *client) closed() int {
	c.t.Helper()
	for {
		_, err := c.tryNext()
		if closed := (*websocket.CloseError)(nil); errors.As(err, &closed) {
			return closed.Code
		}
		if err != nil {
			c.t.Fatalf("no close frame: %v", err)
		}
	}
}
