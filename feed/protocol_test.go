package feed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"blockdesk/engine/marketdata"
	"blockdesk/internal/await"
	"blockdesk/market"
)

func TestControlMessages(t *testing.T) {
	d := newTestFeed(t)
	d.order(0, market.Buy, 999_000, 1_000_000)
	d.settle()
	c := d.dial()
	tests := []struct{ name, send, want string }{
		{"pong", `{"action":"PING","id":"a\"b"}`, `{"channel":"control","type":"pong","id":"a\"b","ts":`},
		{"an id may be a number", `{"action":"PING","id":7}`, `{"channel":"control","type":"pong","id":7,"ts":`},
		{"no id", `{"action":"PING"}`, `{"channel":"control","type":"pong","ts":`},
		{"unknown members", `{"x":{"y":[1,2,{"z":null}]},"action":"PING","id":"1","channels":null}`, `{"channel":"control","type":"pong","id":"1"`},
		{"not JSON", `{"action":`, `{"channel":"control","type":"error","code":"BAD_REQUEST",`},
		{"not an object", `[1]`, `{"channel":"control","type":"error","code":"BAD_REQUEST",`},
		{"more than one value", `{"action":"PING"} {}`, `{"channel":"control","type":"error","code":"BAD_REQUEST",`},
		{"no action", `{"id":"2"}`, `{"channel":"control","type":"error","id":"2","code":"BAD_REQUEST",`},
		{"unknown action", `{"action":"FLY","id":"3"}`, `{"channel":"control","type":"error","id":"3","code":"UNKNOWN_ACTION",`},
		{"id after the fault", `{"action":"SUBSCRIBE_MARKET","channels":7,"symbols":["SLUSD/USDC"],"id":"4"}`, `{"channel":"control","type":"error","id":"4","code":"BAD_REQUEST","message":"channels must`},
		{"no symbols", `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"id":"5"}`, `{"channel":"control","type":"error","id":"5","code":"BAD_REQUEST","message":"channels and symbols`},
		{"depth", `{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"],"depth":20}`, `{"channel":"control","type":"error","code":"INVALID_DEPTH",`},
		{
			"unknown channel and symbol", `{"action":"SUBSCRIBE_MARKET","channels":["l4","l2"],"symbols":["A/B"],"id":"6"}`,
			`{"channel":"control","type":"ack","id":"6","action":"SUBSCRIBE_MARKET","success":false,"subscribed":[],"rejected":[{"channel":"l4","code":"UNKNOWN_CHANNEL"},{"channel":"l2","symbol":"A/B","code":"UNKNOWN_SYMBOL"}]}`,
		},
		{
			"unsubscribe what is not there", `{"action":"UNSUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"]}`,
			`{"channel":"control","type":"ack","action":"UNSUBSCRIBE_MARKET","success":false,"unsubscribed":[],"rejected":[{"channel":"l2","symbol":"SLUSD/USDC","code":"NOT_SUBSCRIBED"}]}`,
		},
		{
			"nothing listed", `{"action":"LIST_SUBSCRIPTIONS"}`,
			`{"channel":"control","type":"ack","action":"LIST_SUBSCRIPTIONS","success":true,"subscribed":[],"rejected":[]}`,
		},
	}
	for _, test := range tests {
		c.send(test.send)
		if m := c.next(); !strings.HasPrefix(m.raw, test.want) {
			t.Errorf("%s:\n got %s\nwant %s…", test.name, m.raw, test.want)
		}
	}
	if err := c.ws.WriteMessage(2, []byte(`{"action":"PING"}`)); err != nil {
		t.Fatal(err)
	}
	if m := c.next(); m.Code != "BAD_REQUEST" {
		t.Errorf("binary message: %s", m.raw)
	}
}

func TestSubscriptionLife(t *testing.T) {
	d := newTestFeed(t)
	d.order(0, market.Buy, 999_000, 1_000_000)
	d.settle()
	c := d.dial()
	// Twice the same symbol and channel, and a depth of its own.
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2","l2"],"symbols":["SLUSD/USDC","SLUSD/USDC"],"depth":10}`)
	if m := c.next(); len(m.Subscribed) != 1 || m.Subscribed[0].Depth != 10 || m.Subscribed[0].Seq != 2 {
		t.Fatal(m.raw)
	}
	if m := c.wait("l2", "snapshot"); m.Seq != 2 {
		t.Fatal(m.raw)
	}
	// Another depth replaces: one subscription, a fresh snapshot.
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"],"depth":100}`)
	c.wait("control", "ack")
	c.wait("l2", "snapshot")
	if n := d.feed.Stats().Subscriptions; n != 1 {
		t.Fatalf("%d subscriptions", n)
	}
	c.send(`{"action":"LIST_SUBSCRIPTIONS"}`)
	if m := c.next(); len(m.Subscribed) != 1 || m.Subscribed[0].Depth != 100 {
		t.Fatal(m.raw)
	}
	// RESYNC at any depth gives the snapshot again.
	c.send(`{"action":"RESYNC","channels":["l2"],"symbols":["SLUSD/USDC"]}`)
	c.wait("control", "ack")
	if m := c.next(); m.Type != "snapshot" || m.Seq != 2 || len(m.Bids) != 1 {
		t.Fatal(m.raw)
	}
	c.send(`{"action":"UNSUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"]}`)
	if m := c.next(); !m.Success {
		t.Fatal(m.raw)
	}
	d.order(0, market.Buy, 999_001, 1)
	d.settle()
	c.send(`{"action":"PING"}`)
	if m := c.next(); m.Type != "pong" {
		t.Fatalf("after the end of the subscription: %s", m.raw)
	}
	if n := d.feed.Stats().Subscriptions; n != 0 {
		t.Fatalf("%d subscriptions", n)
	}
}

// If only a deep level changes, a shallow subscriber gets an empty update with the same
// sequence number.
func TestUpdateOutsideTheWindow(t *testing.T) {
	d := newTestFeed(t)
	for i := range 11 {
		d.order(0, market.Buy, market.Price(1000-i), 5)
	}
	d.settle()
	c := d.dial()
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"],"depth":10}`)
	seq := c.wait("l2", "snapshot").Seq
	d.order(0, market.Buy, 990, 5)
	if m := c.next(); m.Seq != seq+1 || len(m.Bids) != 0 || m.Bids == nil {
		t.Fatal(m.raw)
	}
	// A new best level removes the tenth explicitly.
	d.order(0, market.Buy, 2000, 5)
	m := c.next()
	if want := `"bids":[["0.002000","0.000005"],["0.000991","0"]]`; !strings.Contains(m.raw, want) {
		t.Fatalf("%s: no %s", m.raw, want)
	}
}

func TestHeartbeat(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.Heartbeat = 20 * time.Millisecond })
	quiet, c := d.dial(), d.dial()
	quiet.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"]}`)
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2","ticker"],"symbols":["SLUSD/USDC"],"heartbeat":true}`)
	for range 3 {
		m := c.wait("heartbeat", "")
		if len(m.Seqs) != 2 || m.Seqs["l2:SLUSD/USDC"] != 1 || m.TS == "" {
			t.Fatal(m.raw)
		}
	}
	d.order(0, market.Buy, 10, 1)
	seen := c.wait("l2", "update").Seq
	if m := c.wait("heartbeat", ""); m.Seqs["l2:SLUSD/USDC"] != seen {
		t.Fatalf("after %d: %s", seen, m.raw)
	}
	quiet.wait("l2", "snapshot")
	if m := quiet.next(); m.Type != "update" {
		t.Fatalf("not asked for: %s", m.raw)
	}
}

func TestResume(t *testing.T) {
	d := newTestFeed(t)
	d.order(0, market.Buy, 1000, 5)
	d.settle()
	c := d.dial()
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2","trades"],"symbols":["SLUSD/USDC"]}`)
	b := &clientBook{}
	if err := b.apply(c.wait("l2", "snapshot")); err != nil {
		t.Fatal(err)
	}
	c.wait("trades", "snapshot")
	_ = c.ws.Close()
	await.True(t, "the client to be gone", func() bool { return d.feed.Stats().Connections == 0 })

	const missed = 5
	for i := range missed {
		d.order(0, market.Sell, market.Price(1000-i/4), market.Qty(1)) // five prints, then a resting level
		d.settle()
	}
	resume := func(epoch string, seq uint64) *client {
		c := d.dial()
		c.send(fmt.Sprintf(`{"action":"SUBSCRIBE_MARKET","channels":["l2","trades"],"symbols":["SLUSD/USDC"],
			"resume":{"epoch":"%s","l2:SLUSD/USDC":%d,"trades:SLUSD/USDC":1}}`, epoch, seq))
		return c
	}
	again := resume(b.epoch, b.seq)
	ack := again.next()
	if len(ack.Subscribed) != 2 || !ack.Subscribed[0].Resumed || ack.Subscribed[0].Seq != b.seq+missed || !ack.Subscribed[1].Resumed {
		t.Fatal(ack.raw)
	}
	for range missed {
		if err := b.apply(again.next()); err != nil {
			t.Fatal(err)
		}
	}
	if m := again.next(); m.Channel != "trades" || m.PrevSeq != 1 {
		t.Fatal(m.raw)
	}
	d.order(0, market.Buy, 100, 1)
	if err := b.apply(again.wait("l2", "update")); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]*client{
		"another epoch": resume("e2", b.seq),
		"the future":    resume(b.epoch, b.seq+MaxResume+1),
		"too old":       resume(b.epoch, 0),
	} {
		if ack := c.next(); ack.Subscribed[0].Resumed {
			t.Errorf("%s: %s", name, ack.raw)
		}
		m := c.next()
		for m.Channel != "l2" {
			m = c.next()
		}
		if m.Type != "snapshot" {
			t.Errorf("%s: %s", name, m.raw)
		}
	}
	now := resume(b.epoch, b.seq)
	if ack := now.next(); !ack.Subscribed[0].Resumed {
		t.Error(ack.raw)
	}
}

// ahead resumes l2 from a seq that is by updates further than the feed.
func (d *testFeed) ahead(at, by uint64) *client {
	d.t.Helper()
	c := d.dial()
	c.send(fmt.Sprintf(`{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"],"heartbeat":true,
		"resume":{"epoch":"e1","l2:SLUSD/USDC":%d}}`, at+by))
	ack := c.next()
	if s := ack.Subscribed; !s[0].Resumed || s[0].Seq != at+by {
		d.t.Fatal(ack.raw)
	}
	return c
}

// A client that was served by another process may be ahead: it gets later updates once,
// without a snapshot, and no heartbeat names an earlier seq.
func TestResumeAhead(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.Shards, o.Heartbeat = 1, 10*time.Millisecond })
	at := d.feed.View(0).DepthSeq
	two := d.ahead(at, 2)
	for n := range market.Price(3) {
		d.order(0, market.Buy, 100+n, 1)
		d.settle()
	}
	m := two.next()
	for m.Channel == "heartbeat" && (m.Seqs["l2:SLUSD/USDC"] == 0 || m.Seqs["l2:SLUSD/USDC"] >= at+2) {
		m = two.next()
	}
	if m.Channel != "l2" || m.Type != "update" || m.Seq != at+3 {
		t.Fatalf("after %d: %s", at+2, m.raw)
	}
	d.order(0, market.Buy, 200, 1)
	if m := two.wait("l2", ""); m.Type != "update" || m.PrevSeq != at+3 {
		t.Fatal(m.raw)
	}
}

// A client that is ahead for too long gets a snapshot.
func TestResumeAheadTooLong(t *testing.T) {
	d := newTestFeed(t, func(o *Options) {
		o.Shards, o.Heartbeat, o.AheadWithin = 1, 20*time.Millisecond, 200*time.Millisecond
	})
	at := d.feed.View(0).DepthSeq
	most, b := d.ahead(at, MaxResume), &clientBook{}
	for n := range market.Price(3) {
		d.order(0, market.Buy, 100+n, 1)
		d.settle()
	}
	// On a slow machine AheadWithin may end before the last of them.
	m := most.wait("l2", "")
	if m.Type != "snapshot" || m.Seq > at+3 || b.apply(m) != nil {
		t.Fatalf("after its patience: %s", m.raw)
	}
	d.order(0, market.Buy, 200, 1)
	for b.seq < at+4 {
		if m := most.wait("l2", ""); m.Type != "update" || b.apply(m) != nil {
			t.Fatal(m.raw)
		}
	}
}

// A client may be ahead for AheadWithin.
func TestAheadWithin(t *testing.T) {
	f, err := New(Options{Shards: 1}, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	s, c := f.shards[0], &conn{phase: phaseOpen, inbox: &f.shards[0].inbox}
	s.now = time.Unix(1, 0)
	s.reload()
	request := parseRequest([]byte(`{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"],"resume":{"epoch":"e1","l2:SLUSD/USDC":9}}`), f.set, otherChannels{})
	s.serve(c, request)
	begin := s.now
	for _, test := range []struct {
		after time.Duration
		stale bool
	}{{f.o.AheadWithin - 1, false}, {f.o.AheadWithin, true}} {
		s.now = begin.Add(test.after)
		if s.heartbeat(c); c.subs[0].stale != test.stale {
			t.Errorf("after %v: a snapshot is due: %v", test.after, c.subs[0].stale)
		}
	}
}

// At the end every connection is closed with 1012, and Run leaves nothing behind.
func TestRestart(t *testing.T) {
	d := newTestFeed(t)
	c := d.dial()
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"]}`)
	c.wait("l2", "snapshot")
	d.order(0, market.Buy, 100, 1)
	go d.stop()
	seen := false
	for {
		m, err := c.tryNext()
		if err != nil {
			break
		}
		seen = seen || m.Type == "update" && len(m.Bids) == 1
	}
	if _, err := c.tryNext(); err == nil || !strings.Contains(err.Error(), "1012") {
		t.Errorf("closed by %v", err)
	}
	if !seen {
		t.Error("the last update was lost")
	}
	if h := d.feed.Health(); h.OK || h.Status != "down" {
		t.Errorf("%+v", h)
	}
}
