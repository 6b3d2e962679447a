package feed

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// A client that resumes with its last id gets the updates after it. The ticker comes as a
// snapshot, and everything if the id is unknown.
func TestStreamResume(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.Heartbeat, o.Shards = 20*time.Millisecond, 1 })
	d.order(0, market.Buy, 1000, 50)
	d.settle()
	first := d.openStream("?symbol=SLUSD/USDC", "")
	b := &clientBook{}
	if err := b.apply(first.wait("l2", "snapshot")); err != nil {
		t.Fatal(err)
	}
	id := first.marked()
	_ = first.conn.Close()
	await.True(t, "the client to be gone", func() bool { return d.feed.Stats().Connections == 0 })
	unchanged := d.openStream("?symbol=SLUSD/USDC&channels=l2", id).wait("control", "ack")
	if !unchanged.Subscribed[0].Resumed || unchanged.Subscribed[0].Seq != b.seq {
		t.Error(unchanged.raw)
	}

	// A view advances before the shard does, so wait for a client that has the update.
	reported := d.openStream("?symbol=SLUSD/USDC&channels=l2,trades", "")
	reported.wait("trades", "snapshot")
	const missed = 5
	for range missed {
		d.order(0, market.Sell, 1000, 1) // prints
		reported.wait("l2", "update")
		reported.wait("trades", "update")
	}
	_ = reported.conn.Close()
	for _, again := range []*sseClient{
		d.openStream("?symbol=SLUSD/USDC", id),
		d.openStream("?symbol=SLUSD/USDC&last_event_id="+id, ""),
		d.openStream("?symbol=SLUSD/USDC&last_event_id=e1-1", id), // the header goes first
	} {
		ack := again.wait("control", "ack")
		for i, want := range []bool{false, true, true} {
			if ack.Subscribed[i].Resumed != want {
				t.Errorf("%s resumed: %v", ack.Subscribed[i].Channel, !want)
			}
		}
		book, prints := *b, 0
		book.bids = map[string]string{"0.001000": "0.000050"}
		for range missed {
			m := again.next()
			if err := book.apply(m); err != nil {
				t.Fatal(err)
			}
		}
		for range missed {
			if m := again.next(); m.Channel == "trades" && m.Type == "update" {
				prints += len(m.Trades)
			}
		}
		if m := again.next(); m.Channel != "ticker" || m.Type != "snapshot" || prints != missed {
			t.Errorf("%d trades, then %s", prints, m.raw)
		}
		if now := again.marked(); now == id {
			t.Errorf("still at %s", now)
		}
	}
	for name, wrong := range map[string]string{
		"another epoch": "e2-" + id[3:], "the future": "e1-999999", "before all": "e1-0", "malformed": "e1", "a text": "<null>",
		"too large": "e1-99999999999999999999",
	} {
		again := d.openStream("?symbol=SLUSD/USDC&channels=l2", wrong)
		if ack := again.wait("control", "ack"); ack.Subscribed[0].Resumed {
			t.Errorf("%s: %s", name, ack.raw)
		}
		if m := again.next(); m.Type != "snapshot" || m.Seq != b.seq+missed {
			t.Errorf("%s: %s", name, m.raw)
		}
		_ = again.conn.Close()
	}
}

// splitBatches is a source that can hold back the rest of a batch.
type splitBatches struct {
	scriptedEvents
	settled atomic.Bool
}

func (h *splitBatches) AtBatchEnd() bool { return h.settled.Load() }

// serveSplitBatches runs a feed of such a source behind a server.
func serveSplitBatches(t *testing.T) (*testFeed, *splitBatches) {
	o := Options{Shards: 1, Heartbeat: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	longTimeouts(&o)
	f, err := New(o, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	events := &splitBatches{scriptedEvents: scriptedEvents{slices: make(chan []event.Event)}}
	server := &fasthttp.Server{Handler: f.Stream, KeepHijackedConns: true}
	ended := make(chan error, 2)
	go func() { ended <- f.Run(context.Background(), events) }()
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		close(events.slices)
		_ = server.Shutdown()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	d := &testFeed{t: t, feed: f, addr: listener.Addr().String()}
	await.True(t, "the feed to run", func() bool { return f.running.Load() })
	return d, events
}

// An incomplete batch is not published and no id covers it, however long the rest takes.
func TestStreamHalfBatch(t *testing.T) {
	d, events := serveSplitBatches(t)
	send := func(settled bool, slice ...event.Event) {
		events.settled.Store(settled)
		events.slices <- slice
	}
	part := func(seq uint64, price market.Price) event.Event {
		e := restingOrder(10)
		e.Seq, e.Price, e.OrderID = seq, price, market.OrderID(price)
		return e
	}
	send(true, event.Event{Seq: 1, At: 1, Kind: event.EpochStarted, Other: 1})
	const query = "?channels=l2&symbol=SLUSD/USDC"
	s := d.openStream(query, "")
	s.wait("l2", "snapshot")
	send(true, restingOrder(9))
	for s.marked() != "e1-9" { // it may have got the epoch first
	}
	before := d.feed.View(0)
	send(false, part(10, 700))
	late := d.openStream(query, "")
	if m := late.wait("l2", "snapshot"); len(m.Bids) != 1 {
		t.Fatal(m.raw)
	}
	if got := late.marked(); got != "e1-9" || d.feed.View(0) != before {
		t.Fatalf("id %s with half of a batch, %+v", got, d.feed.View(0))
	}
	send(false, part(10, 701), part(11, 702))
	events.settled.Store(true) // nothing else comes
	for got := ""; got != "e1-11"; {
		if got = s.marked(); got != "e1-9" && got != "e1-11" {
			t.Fatalf("id %s after command 11", got)
		}
	}
	if v := d.feed.View(0); v.DepthSeq != before.DepthSeq+1 || v.EngineSeq != 11 || len(v.Bids) != 4 {
		t.Errorf("the batch made %+v of %+v", v, before)
	}
	again := d.openStream(query, "e1-9")
	if ack := again.wait("control", "ack"); !ack.Subscribed[0].Resumed {
		t.Fatal(ack.raw)
	}
	if m := again.next(); m.Seq != before.DepthSeq+1 || m.EngineSeq != 11 || m.Type != "update" || len(m.Bids) != 3 {
		t.Error(m.raw)
	}
	if got := again.marked(); got != "e1-11" {
		t.Errorf("led to %s", got)
	}
}

// seenPos is a reader's position in one (channel, symbol).
type seenPos struct {
	epoch     string
	seq       uint64
	engineSeq uint64
}

// streamReader checks the guarantees of a stream over several connections.
type streamReader struct {
	t         *testing.T
	books     map[string]*clientBook
	positions map[string]seenPos // by channel:symbol
	trades    map[string]uint64
	// marks are the positions at each mark event.
	marks   []followed
	resumed int
	repeats int
}

type followed struct {
	engineSeq uint64
	seqs      map[string]uint64
}

func newStreamReader(t *testing.T) *streamReader {
	return &streamReader{t: t, books: map[string]*clientBook{}, positions: map[string]seenPos{}, trades: map[string]uint64{}}
}

// mark records the positions at a mark event.
func (f *streamReader) mark(id string) {
	m := followed{seqs: map[string]uint64{}}
	if n, err := fmt.Sscanf(id, "e1-%d", &m.engineSeq); n != 1 {
		f.t.Errorf("id %q: %v", id, err)
	}
	for key, p := range f.positions {
		m.seqs[key] = p.seq
	}
	f.marks = append(f.marks, m)
}

// take checks that a message follows the one before. It skips an update that it already
// has.
func (f *streamReader) take(m *msg) error {
	if m.Channel == "control" {
		for _, s := range m.Subscribed {
			if s.Resumed {
				f.resumed++
			}
		}
	}
	if m.Symbol == "" {
		return nil
	}
	key := m.Channel + ":" + m.Symbol
	at := f.positions[key]
	if m.Type == "update" && m.Epoch == at.epoch && m.Seq <= at.seq {
		f.repeats++
		return nil
	}
	if m.Type == "update" && m.Channel != "ticker" && (m.PrevSeq != at.seq || m.Epoch != at.epoch) {
		return fmt.Errorf("a gap: at %+v, then %s", at, m.raw)
	}
	f.positions[key] = seenPos{m.Epoch, m.Seq, m.EngineSeq}
	if m.Channel == "l2" {
		if f.books[key] == nil {
			f.books[key] = &clientBook{}
		}
		return f.books[key].apply(m)
	}
	for _, trade := range m.Trades {
		last := f.trades[key]
		switch {
		case trade.ID <= last && m.Type == "snapshot":
			continue
		case m.Type == "update" && last > 0 && trade.ID <= last:
			return fmt.Errorf("trade %d after %d: %s", trade.ID, last, m.raw)
		}
		f.trades[key] = trade.ID
	}
	return nil
}

// TestStreamFollow: clients that disconnect at any byte and resume with their last id
// never miss anything, and each id covers exactly what they have.
func TestStreamFollow(t *testing.T) {
	seed := runtest.Seed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	d := newTestFeed(t, func(o *Options) { o.MaxPending, o.SendBuffer, o.Heartbeat = 2<<10, 4<<10, 10*time.Millisecond })
	observer := d.dial()
	observer.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2","trades"],"symbols":["SLUSD/USDC","92C/SLUSD"],"depth":10}`)
	history := map[string][]seenPos{}
	note := func(m *msg) {
		if m.Symbol != "" {
			key := m.Channel + ":" + m.Symbol
			history[key] = append(history[key], seenPos{m.Epoch, m.Seq, m.EngineSeq})
		}
	}
	for len(history) < 4 {
		note(observer.next())
	}
	const query = "?symbols=SLUSD/USDC,92C/SLUSD&depth=10"
	f := newStreamReader(t)
	s, _ := d.tryStream(&tight, query, "")
	s.onID = f.mark
	for round := range 60 {
		for range 1 + random.IntN(80) {
			d.order(market.InstrumentID(random.IntN(2)), market.Side(1+random.IntN(2)), market.Price(1000+random.IntN(20)), market.Qty(1+random.IntN(9)))
		}
		d.settle()
		for read := random.IntN(20); read > 0; read-- {
			m, err := s.tryMessage()
			if err == nil {
				err = f.take(m)
			}
			if err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
		}
		if random.IntN(3) == 0 {
			id := strings.TrimSpace(s.id)
			_ = s.conn.Close()
			if strings.HasPrefix(id, "Last") {
				id = "" // none has come on this connection
			}
			var status int
			if s, status = d.tryStream(&tight, query, id); status != http.StatusOK {
				t.Fatalf("status %d", status)
			}
			s.onID = f.mark
		}
	}
	for _, symbol := range []string{"SLUSD/USDC", "92C/SLUSD"} {
		in := d.feed.set.Lookup([]byte(symbol))
		for channel, seq := range map[string]uint64{"l2": d.feed.View(in.ID).DepthSeq, "trades": d.feed.View(in.ID).TradesSeq} {
			key := channel + ":" + symbol
			for f.positions[key].seq < seq {
				m, err := s.tryMessage()
				if err == nil {
					err = f.take(m)
				}
				if err != nil {
					t.Fatalf("seed %d, at the end: %v", seed, err)
				}
			}
			for h := history[key]; h[len(h)-1].seq < seq; h = history[key] {
				note(observer.next())
			}
		}
	}
	if f.resumed == 0 || len(f.marks) < 10 {
		t.Errorf("seed %d: resumed %d times, %d ids: nothing was tried", seed, f.resumed, len(f.marks))
	}
	for _, m := range f.marks {
		for key, all := range history {
			for _, p := range all {
				if p.engineSeq <= m.engineSeq && p.seq > m.seqs[key] && m.seqs[key] > 0 {
					t.Fatalf("seed %d: an id says %d, and %s was at %d, not %d", seed, m.engineSeq, key, m.seqs[key], p.seq)
				}
			}
		}
	}
	t.Logf("resumed %d, repeats %d, ids %d, collapsed %d", f.resumed, f.repeats, len(f.marks), d.feed.Stats().Collapsed)
}
