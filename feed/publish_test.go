package feed

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/internal/await"
	"blockdesk/market"
)

// Publishing allocates only the chunks that subscribers share, each of which holds
// hundreds of updates.
func TestPublishAllocatesNothing(t *testing.T) {
	f, err := New(Options{Shards: 1}, instruments(), marketdata.New(), 7)
	if err != nil {
		t.Fatal(err)
	}
	a, b := deepView(rand.New(rand.NewPCG(1, 1)))
	views := [2]*marketdata.View{a, b}
	for k := range numKinds {
		f.topics[k].subscribers.Store(1)
	}
	f.views[0].Store(a)
	fresh := []marketdata.Trade{{ID: 1, At: 1, Price: 2, Qty: 3, Side: market.Buy}}
	step, got := 0, taken{}
	publish := func() {
		prev, next := views[step%2], views[(step+1)%2]
		next.DepthSeq, next.TradesSeq, next.TickerSeq = prev.DepthSeq+1, prev.TradesSeq+1, prev.TickerSeq+1
		f.publish(prev, next, fresh)
		f.shards[0].inbox.publish(f.pubs, enginePos{})
		f.pubs = f.pubs[:0]
		step++
		f.shards[0].inbox.take(&got)
	}
	for range 4000 { // the histories grow to their full size
		publish()
	}
	if n := testing.AllocsPerRun(1000, publish); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Reference and Desk events have no time and no market data: they end no batch and change
// no view.
func TestPassesOverWhatHasNoTime(t *testing.T) {
	f, err := New(Options{Shards: 1}, instruments(), marketdata.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	var desk, ref event.Event
	desk.SetDesk(3, event.DeskChunk{Count: 1, Data: bytes.Repeat([]byte{0x7e}, event.MaxDeskChunk)})
	ref.SetReference(3, event.Ref{OrderID: 1 << 60, Text: bytes.Repeat([]byte{0x7e}, event.MaxText)})
	f.apply([]event.Event{
		{Seq: 1, At: 10, Kind: event.InstrumentSet, Code: uint16(engine.StatusTrading)},
		{Seq: 2, At: 10, Kind: event.Accepted, Side: market.Buy, Price: 5, Qty: 5, Aux: 5},
		ref, desk, desk,
	})
	f.flush()
	v := f.View(0)
	if f.at != 10 || v.At != 10 || v.EngineSeq != 2 || len(v.Bids) != 1 {
		t.Errorf("at %d, view %+v", f.at, v)
	}
}

// Trades leave the 24 h window of a quiet market, and that does not count as lag.
func TestQuietMarketAges(t *testing.T) {
	var ahead atomic.Int64
	d := newTestFeed(t, func(o *Options) {
		o.QuietAfter = 5 * time.Millisecond
		o.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	d.order(0, market.Buy, 100, 7)
	d.order(0, market.Sell, 100, 7)
	await.True(t, "a trade to show", func() bool { v := d.feed.View(0); return v != nil && v.Ticker.Trades24h == 1 })
	before := d.feed.View(0)
	ahead.Store(int64(25 * time.Hour))
	await.True(t, "the trade to be older than a day", func() bool { return d.feed.View(0).Ticker.Trades24h == 0 })
	v := d.feed.View(0)
	if v.TickerSeq != before.TickerSeq+1 || v.DepthSeq != before.DepthSeq || v.Ticker.Last != 100 || v.EngineSeq != before.EngineSeq {
		t.Errorf("before %+v, after %+v", before, v)
	}
	if lag := d.feed.Stats().Lag; lag > time.Minute {
		t.Errorf("lag %v", lag)
	}
}

// An old batch, as on a replica that joins late, does not count as lag of a quiet market.
func TestQuietMarketHasNoLag(t *testing.T) {
	began := time.Now()
	var late atomic.Int64
	d := newTestFeed(t, func(o *Options) {
		o.QuietAfter = 5 * time.Millisecond
		o.Clock = func() time.Time {
			if late.Load() > 0 {
				return began.Add(time.Hour)
			}
			return time.Now()
		}
	})
	late.Store(1)
	d.order(0, market.Buy, 100, 7)
	d.settle()
	await.True(t, "nothing to be late", func() bool { return d.feed.Stats().Lag == 0 })
}

// The batches of one slice reach the shards together, at most maxGather at a time.
func TestGathersASlice(t *testing.T) {
	for _, test := range []struct{ batches, waiting int }{
		{10, 10}, {maxGather - 1, maxGather - 1}, {maxGather, 0}, {maxGather + 1, 1},
	} {
		f, err := New(Options{Shards: 1}, instruments(), marketdata.New(), 1)
		if err != nil {
			t.Fatal(err)
		}
		var slice []event.Event
		for seq := range uint64(test.batches) {
			slice = append(slice, event.Event{
				Seq: seq + 1, At: int64(seq + 1), Kind: event.Accepted, Side: market.Buy, Price: market.Price(seq + 1), Qty: 5, Aux: 5,
			})
		}
		f.apply(slice)
		f.flush()
		inbox := &f.shards[0].inbox
		if held := len(inbox.pubs); len(f.pubs) != test.waiting || held != test.batches-test.waiting {
			t.Errorf("%d batches: %d wait, %d are handed over", test.batches, len(f.pubs), held)
		}
		if f.publishToShards(); len(f.pubs) != 0 || len(inbox.pubs) != test.batches {
			t.Errorf("%d batches: %d wait at the end, %d are handed over", test.batches, len(f.pubs), len(inbox.pubs))
		}
	}
}

func TestInboxLimit(t *testing.T) {
	b := newInbox()
	pubs := make([]publication, maxInbox)
	b.publish(pubs, enginePos{})
	if b.overrun || len(b.pubs) != maxInbox {
		t.Fatalf("at the limit: overrun %v, %d held", b.overrun, len(b.pubs))
	}
	b.publish(pubs[:1], enginePos{})
	if !b.overrun || len(b.pubs) != 0 {
		t.Fatalf("one beyond: overrun %v, %d held", b.overrun, len(b.pubs))
	}
	var got taken
	if b.take(&got); !got.overrun || b.overrun {
		t.Error("overrun is reported once")
	}
}

// A shard that lost updates sends snapshots, and later updates follow them.
func TestOverrun(t *testing.T) {
	d := newTestFeed(t, func(o *Options) { o.Shards = 1 })
	c := d.dial()
	c.send(`{"action":"SUBSCRIBE_MARKET","channels":["l2"],"symbols":["SLUSD/USDC"]}`)
	before := c.wait("l2", "snapshot").Seq
	inbox := &d.feed.shards[0].inbox
	inbox.mu.Lock()
	for i := range 3 {
		d.order(0, market.Buy, market.Price(100+i), 1)
	}
	await.True(t, "the first view to move", func() bool { return d.feed.View(0).DepthSeq > before })
	inbox.overrun = true
	inbox.mu.Unlock()
	b := &clientBook{}
	m := c.next()
	if m.Type != "snapshot" || m.Seq <= before {
		t.Fatal(m.raw)
	}
	if err := b.apply(m); err != nil {
		t.Fatal(err)
	}
	d.order(0, market.Buy, 200, 1)
	for b.bids["0.000200"] == "" {
		if err := b.apply(c.wait("l2", "")); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.feed.Stats().Overruns; n != 1 {
		t.Errorf("%d overruns", n)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"max_connections":     {MaxConnections: -1},
		"messages_per_second": {MessagesPerSecond: 10_001},
		"max_pending":         {MaxPending: maxPendingAll + 1},
		"heartbeat":           {Heartbeat: time.Microsecond},
		"slow_after":          {SlowAfter: 2 * time.Hour},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := New(o, instruments(), marketdata.New(), 1); err == nil {
			t.Errorf("New takes a wrong %s", name)
		}
	}
	if err := (Options{}).withDefaults().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

// TestQuietShard: a shard without connections gets no publications, and learns that it has
// missed some with the messages of its first connection. From then on it gets all, also
// those that come while it handles these messages.
func TestQuietShard(t *testing.T) {
	b := newInbox()
	pubs := make([]publication, 1)
	var got taken
	b.setQuiet(true)
	b.publish(pubs, enginePos{})
	if len(b.wake) != 0 {
		t.Fatal("a publication woke a quiet shard")
	}
	b.send(connMessage{kind: connJoin})
	if b.take(&got); !got.missed || len(got.pubs) != 0 || len(got.messages) != 1 {
		t.Fatalf("took %+v", got)
	}
	<-b.wake
	b.publish(pubs, enginePos{})
	if len(b.wake) != 1 {
		t.Fatal("a publication after the take did not wake the shard")
	}
	b.setQuiet(false)
	if b.take(&got); got.missed || len(got.pubs) != 1 {
		t.Fatalf("took %+v", got)
	}
}
