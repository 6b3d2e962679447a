package feed

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"blockdesk/engine/marketdata"
	"blockdesk/engine/orders"
	"blockdesk/market"
)

// The worked example of Kraken's guide "Book checksum (WebSocket v2)".
func TestChecksumExample(t *testing.T) {
	in := &market.Instrument{PriceDecimals: 1, QtyDecimals: 8, Tick: 1, Lot: 1}
	v := &marketdata.View{
		Asks: []market.Level{
			{Price: 452852, Qty: 100000},
			{Price: 452864, Qty: 154571953},
			{Price: 452866, Qty: 154571109},
			{Price: 452896, Qty: 154560911},
			{Price: 452902, Qty: 15890660},
			{Price: 452918, Qty: 154553491},
			{Price: 452947, Qty: 4454749},
			{Price: 452961, Qty: 35380000},
			{Price: 452975, Qty: 9945542},
			{Price: 452995, Qty: 18772827},
			{Price: 453000, Qty: 1},
		},
		Bids: []market.Level{
			{Price: 452835, Qty: 10000000},
			{Price: 452834, Qty: 154582015},
			{Price: 452821, Qty: 10000000},
			{Price: 452810, Qty: 10000000},
			{Price: 452803, Qty: 154592586},
			{Price: 452790, Qty: 7990000},
			{Price: 452776, Qty: 3310103},
			{Price: 452775, Qty: 30000000},
			{Price: 452773, Qty: 154602737},
			{Price: 452766, Qty: 15445238},
			{Price: 1, Qty: 1},
		},
	}
	var e encoder
	if sum := e.checksum(in, v); sum != 3310070434 {
		t.Errorf("checksum %d", sum)
	}
}

// The exact bytes of every message (docs/specification.md C.7).
func TestGoldenMessages(t *testing.T) {
	in := &instruments()[2] // a tick of 0.25, a lot of 10
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_789_999, time.UTC).UnixNano()
	prev := &marketdata.View{Epoch: 7, DepthSeq: 1042, TradesSeq: 8, TickerSeq: 3, Bids: []market.Level{{Price: 3, Qty: 5}, {Price: 2, Qty: 5}}}
	next := &marketdata.View{
		Epoch: 7, EngineSeq: 99, At: at, DepthSeq: 1043, TradesSeq: 9, TickerSeq: 4,
		Bids: []market.Level{{Price: 2, Qty: 4}}, Asks: []market.Level{{Price: 7, Qty: 1}},
		Trades: []marketdata.Trade{{ID: 2, At: at, Price: 3, Qty: 5, Side: market.Sell}, {ID: 1, At: at, Price: 4, Qty: 1, Side: market.Buy}},
		Ticker: marketdata.Ticker{
			Last: 3, LastQty: 5, LastAt: at, Open24h: 4, High24h: 4, Low24h: 3, Volume24h: 6,
			QuoteVolume24h: market.Uint128{Lo: 19}, Trades24h: 2,
		},
	}
	const head = `"symbol":"AAA/BBB","epoch":"e7",`
	const ts = `"ts":"2026-01-02T03:04:05.006789Z"`
	const print1 = `{"trade_id":1,"price":"1.00","qty":"10","side":"buy",` + ts + `}`
	const print2 = `{"trade_id":2,"price":"0.75","qty":"50","side":"sell",` + ts + `}`
	var e encoder
	sum := e.checksum(in, next)
	tests := []struct {
		name   string
		encode func() []byte
		want   string
	}{
		{"l2 snapshot", func() []byte { return e.snapshot(in, next, l2Depth10) }, `{"channel":"l2","type":"snapshot",` + head + `"seq":1043,"prev_seq":0,"engine_seq":99,` + ts +
			`,"bids":[["0.50","40"]],"asks":[["1.75","10"]],"checksum":` + fmt.Sprint(sum) + `}`},
		{"l2 update", func() []byte { return e.l2Update(in, prev, next, l2Depth10, sum) }, `{"channel":"l2","type":"update",` + head + `"seq":1043,"prev_seq":1042,"engine_seq":99,` + ts +
			`,"bids":[["0.75","0"],["0.50","40"]],"asks":[["1.75","10"]],"checksum":` + fmt.Sprint(sum) + `}`},
		{"trades snapshot", func() []byte { return e.snapshot(in, next, trades) }, `{"channel":"trades","type":"snapshot",` + head + `"seq":9,"prev_seq":0,"engine_seq":99,` + ts +
			`,"trades":[` + print1 + `,` + print2 + `]}`},
		{"trades update", func() []byte { return e.tradesUpdate(in, prev, next, next.Trades[:1]) }, `{"channel":"trades","type":"update",` + head + `"seq":9,"prev_seq":8,"engine_seq":99,` + ts +
			`,"trades":[` + print2 + `]}`},
		{"ticker", func() []byte { return e.ticker(in, next, "update") }, `{"channel":"ticker","type":"update",` + head + `"seq":4,"engine_seq":99,` + ts +
			`,"last":"0.75","last_qty":"50","last_ts":"2026-01-02T03:04:05.006789Z","bid":"0.50","bid_qty":"40","ask":"1.75","ask_qty":"10","mid":"1.125","spread":"1.25"` +
			`,"open_24h":"1.00","high_24h":"1.00","low_24h":"0.75","volume_24h":"60","quote_volume_24h":"47.50","trades_24h":2,"status":"trading"}`},
		{"pong", func() []byte { return e.pong([]byte(`"1"`), at) }, `{"channel":"control","type":"pong","id":"1",` + ts + `}`},
		{"error", func() []byte { return e.errorMessage([]byte(`"1"`), faultSlow) }, `{"channel":"control","type":"error","id":"1","code":"SLOW_CONSUMER","message":"` + faultSlow.message + `","retryable":true}`},
	}
	for _, test := range tests {
		if got := framePayload(test.encode()); string(got) != test.want || !json.Valid(got) {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// plainL2 is an l2 message for encoding/json.
type plainL2 struct {
	Channel   string      `json:"channel"`
	Type      string      `json:"type"`
	Symbol    string      `json:"symbol"`
	Epoch     string      `json:"epoch"`
	Seq       uint64      `json:"seq"`
	PrevSeq   uint64      `json:"prev_seq"`
	EngineSeq uint64      `json:"engine_seq"`
	TS        string      `json:"ts"`
	Bids      [][2]string `json:"bids"`
	Asks      [][2]string `json:"asks"`
	Checksum  uint32      `json:"checksum"`
}

// deepView returns a full book and the next one, which differs in two levels.
func deepView(rng *rand.Rand) (prev, next *marketdata.View) {
	prev = &marketdata.View{Epoch: 7, EngineSeq: 1_000_000, At: 1_800_000_000_123_456_789, DepthSeq: 41, TradesSeq: 1, TickerSeq: 1}
	for i := range marketdata.MaxDepth {
		prev.Bids = append(prev.Bids, market.Level{Price: market.Price(999_000 - 7*i), Qty: market.Qty(rng.Int64N(1e11) + 1)})
		prev.Asks = append(prev.Asks, market.Level{Price: market.Price(999_100 + 7*i), Qty: market.Qty(rng.Int64N(1e11) + 1)})
	}
	copied := *prev
	next = &copied
	next.Bids = append([]market.Level(nil), prev.Bids...)
	next.Asks = append([]market.Level(nil), prev.Asks...)
	next.Bids[2].Qty++
	next.Asks[0].Qty++
	next.DepthSeq, next.EngineSeq = 42, 1_000_001
	return prev, next
}

// deepOrders returns an order for each level of v.
func deepOrders(v *marketdata.View) *orders.Sides {
	s := &orders.Sides{}
	for i, l := range v.Bids {
		s.Bids = append(s.Bids, orders.Order{ID: market.OrderID(1 + i), Price: l.Price, Qty: l.Qty})
	}
	for i, l := range v.Asks {
		s.Asks = append(s.Asks, orders.Order{ID: market.OrderID(1001 + i), Price: l.Price, Qty: l.Qty})
	}
	return s
}

func TestEncodingAllocatesNothing(t *testing.T) {
	in := &instruments()[0]
	prev, next := deepView(rand.New(rand.NewPCG(1, 1)))
	next.Trades = make([]marketdata.Trade, marketdata.MaxTape)
	prev.Orders, next.Orders = deepOrders(prev), deepOrders(next)
	var e encoder
	for k := range marketKinds {
		e.snapshot(in, next, k)
	}
	for name, f := range map[string]func(){
		"snapshot": func() {
			e.snapshot(in, next, l2Depth100)
			prev, next = next, prev
		},
		"update": func() {
			e.l2Update(in, prev, next, l2Depth100, e.checksum(in, next))
			prev, next = next, prev
		},
		"orders": func() {
			e.snapshot(in, next, l3)
			e.l3Update(in, prev, next)
			prev, next = next, prev
		},
		"trades snapshot": func() { e.snapshot(in, next, trades) },
		"trades update":   func() { e.tradesUpdate(in, prev, next, next.Trades) },
		"ticker":          func() { e.ticker(in, next, "update") },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	in := &instruments()[0]
	prev, next := deepView(rand.New(rand.NewPCG(1, 1)))
	var e encoder
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
	plain := func(frame []byte) plainL2 {
		var m plainL2
		if err := json.Unmarshal(framePayload(frame), &m); err != nil {
			b.Fatal(err)
		}
		return m
	}
	for k := l2Depth10; k < trades; k++ {
		snapshot := plain(e.snapshot(in, next, k))
		// Two levels differ from one snapshot to the next.
		run(fmt.Sprintf("snapshot%d/hand", depths[k]), func() {
			e.snapshot(in, next, k)
			prev, next = next, prev
		})
		run(fmt.Sprintf("snapshot%d/anew", depths[k]), func() {
			e.books = nil
			e.snapshot(in, next, k)
		})
		run(fmt.Sprintf("snapshot%d/json", depths[k]), func() { _, _ = json.Marshal(&snapshot) })
	}
	update := plain(e.l2Update(in, prev, next, l2Depth50, 1))
	run("update50/hand", func() { e.l2Update(in, prev, next, l2Depth50, 1) })
	run("update50/json", func() { _, _ = json.Marshal(&update) })
	run("checksum", func() {
		e.checksum(in, next)
		prev, next = next, prev
	})
	run("ticker/hand", func() { e.ticker(in, next, "update") })
}
