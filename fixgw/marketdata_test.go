package fixgw

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/engine/marketdata"
	"blockdesk/engine/orders"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
	"blockdesk/market"
)

// shownBook is a client's idea of one side, built from W and X.
type shownBook map[string]map[string]string // by 269 and 270: 271

func (b shownBook) apply(t testing.TB, m sessiontest.Message) {
	if m.Get(35) == "W" {
		b["0"], b["1"] = map[string]string{}, map[string]string{}
	}
	action, kind, price := "0", "", ""
	wire.EachField(m, func(tag int, value []byte) {
		switch tag {
		case 279:
			action = string(value)
		case 269:
			kind = string(value)
		case 270:
			price = string(value)
			_, known := b[kind][price]
			switch {
			case kind == "2":
			case action == "2" && !known, action == "1" && !known, action == "0" && known:
				t.Fatalf("action %s on level %s of side %s, which is known: %v, in %s", action, price, kind, known, m)
			case action == "2":
				delete(b[kind], price)
			}
		case 271:
			if kind != "2" {
				b[kind][price] = string(value)
			}
		}
	})
}

func (b shownBook) String() string {
	var all []string
	for kind, levels := range b {
		for price, qty := range levels {
			all = append(all, kind+"@"+price+"="+qty)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestMarketData(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	mm.order("b1", "1", "10", "1", "59=1|")
	mm.order("b2", "1", "5", "0.9", "59=1|")
	mm.order("s1", "2", "7", "1.1", "59=1|")
	for range 3 {
		mm.want("150=0")
	}
	tk.send("V", "262=s|263=0|264=1|267=2|269=0|269=1|146=1|55=SLUSD/USDC|")
	waitMD(t, tk, "s", "268=2", "269=0", "270=1.0000", "271=10.00", "269=1", "270=1.1000", "271=7.00")
	tk.send("V", "262=sub|263=1|264=0|265=1|267=3|269=0|269=1|269=2|146=2|55=SLUSD/USDC|55=92C/SLUSD|")
	tk.want("35=W 262=sub 55=SLUSD/USDC 268=3")
	tk.want("35=W 262=sub 55=92C/SLUSD 268=0")
	mm.order("b3", "1", "2", "0.9", "59=1|")
	tk.want("35=X 262=sub 268=1 279=1 269=0 55=SLUSD/USDC 270=0.9000 271=7.00")
	mm.send("F", "11=c|41=s1|55=SLUSD/USDC|54=2|"+now60)
	if m := tk.want("35=X 268=1 279=2 269=1 270=1.1000"); m.Get(271) != "" {
		t.Errorf("a deleted level has a size: %s", m)
	}
	tk.order("x", "2", "10", "1", "59=3|")
	var seen []string
	for len(seen) < 3 {
		m := tk.next()
		switch m.Get(35) {
		case "X":
			m.Want(t, "268=2 279=2 269=0 270=1.0000")
			text := m.String()
			if i := strings.Index(text, "|279=0|269=2|55=SLUSD/USDC|270=1.0000|271=10.00|272=20"); i < 0 {
				t.Errorf("no trade in %s", text)
			}
			seen = append(seen, "X")
		case "8":
			seen = append(seen, m.Get(150))
		}
	}
	tk.send("V", "262=sub|263=2|264=0|267=1|269=0|146=1|55=SLUSD/USDC|")
	tk.send("V", "262=sub|263=2|264=0|267=1|269=0|146=1|55=SLUSD/USDC|")
	tk.want("35=Y 262=sub") // there is none any more
	if n := d.gateway.Stats().Subscriptions; n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
}

func TestMarketDataRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM"}, func(o *Options) { o.MaxSubscriptions = 2 })
	mm := d.dial("MM", nil)
	const rest = "267=2|269=0|269=1|146=1|55=SLUSD/USDC|"
	for _, c := range []struct{ body, reason, text string }{
		{"262=r|263=1|264=1|265=1|267=2|269=0|269=1|146=1|55=X/Y|", "0", `UNKNOWN_SYMBOL: Symbol (55) "X/Y"`},
		{"262=r|263=1|264=101|265=1|" + rest, "5", `INVALID_FIELD: MarketDepth (264) "101": must be 0 (all levels) to 100`},
		{"262=r|263=1|264=-1|265=1|" + rest, "5", `INVALID_FIELD: MarketDepth (264) "-1": must be 0 (all levels) to 100`},
		{"262=r|263=1|264=1|265=0|" + rest, "6", `UNSUPPORTED: MDUpdateType (265) "0": only 1 (incremental)`},
		{"262=r|263=0|264=1|266=N|" + rest, "7", "UNSUPPORTED: AggregatedBook (266) N: only with SubscriptionRequestType (263) 1"},
		{"262=r|263=1|264=1|265=1|266=N|267=1|269=0|146=1|55=MIR/USDC|", "7", "UNSUPPORTED: AggregatedBook (266) N: MIR/USDC has no orders"},
		{"262=r|263=1|264=1|265=1|267=1|269=3|146=1|55=SLUSD/USDC|", "8", `UNSUPPORTED: MDEntryType (269) "3": only 0, 1, 2, 4 and A`},
		{"262=r|263=1|264=1|265=1|267=1|269=0|146=3|55=SLUSD/USDC|55=92C/SLUSD|55=MIR/USDC|", "2", "OVERLOADED: more than 2 subscriptions of a session"},
		{"262=" + strings.Repeat("r", wire.MaxMDReqID+1) + "|263=1|264=1|265=1|" + rest, "", "INVALID_FIELD: MDReqID (262): at most 64 bytes"},
		{"262=r|263=1|264=1|265=1|286=1|" + rest, "B", `UNSUPPORTED: OpenCloseSettlFlag (286) "1": trading never opens or closes`},
		{"262=r|263=1|264=1|265=1|546=2|" + rest, "A", `UNSUPPORTED: Scope (546) "2": only 1 (local)`},
		{"262=r|263=1|264=1|265=1|547=Y|" + rest, "C", `UNSUPPORTED: MDImplicitDelete (547) "Y": only N`},
		{"262=r|263=1|264=1|265=1|" + rest + "386=1|336=X|", "9", `UNSUPPORTED: TradingSessionID (336) "X": not supported, there is only one trading session`},
		{"262=r|263=1|264=1|265=1|" + rest + "815=1|", "", `UNSUPPORTED: ApplQueueAction (815) "1": only 0`},
		{"262=r|263=1|264=1|265=1|" + rest + "812=9|", "", `UNSUPPORTED: ApplQueueMax (812) "9": a limit of the queue is not supported`},
		{"262=r|263=0|264=1|267=0|146=1|55=SLUSD/USDC|", "", "MISSING_FIELD: Symbol (55) and MDEntryType (269)"},
		{"262=r|263=2|264=1|" + rest, "", `UNKNOWN_SUBSCRIPTION: MDReqID (262) "r"`},
	} {
		mm.send("V", c.body)
		if m := mm.want("35=Y 281=" + c.reason); m.Get(58) != c.text {
			t.Errorf("%s: %s, want %s", c.body, m.Get(58), c.text)
		}
	}
	mm.send("V", "262=r|263=1|264=1|265=1|"+rest)
	mm.want("35=W 262=r")
	mm.send("V", "262=r|263=1|264=1|265=1|"+rest)
	mm.want("35=Y 262=r 281=1")
	mm.send("V", "262=r|263=0|264=1|"+rest)
	mm.want("35=Y 262=r 281=1")
	mm.send("V", "262=r2|263=1|264=1|265=1|"+rest)
	mm.want("35=W 262=r2")
	mm.send("V", "262=r3|263=1|264=1|265=1|"+rest)
	mm.want("35=Y 262=r3 281=2")
	// An end needs its MDReqID alone, and what is neither missing nor unusual
	// passes.
	mm.send("V", "262=r2|263=2|264=101|265=0|267=1|269=3|146=1|55=X/Y|")
	mm.send("V", "262=r3|263=1|264=1|265=1|266=Y|546=1|547=N|"+rest+"815=0|")
	mm.want("35=W 262=r3")
}

// TestIncrementsFit: whatever two views follow each other, and at whatever
// depth, the increment turns the client's book into what a snapshot would show.
func TestIncrementsFit(t *testing.T) {
	t.Parallel()
	in := wiretest.Instruments(t).Get(0)
	levels := func(t *rapid.T, name string, falling bool) []market.Level {
		prices := rapid.SliceOfNDistinct(rapid.Int64Range(1, 30), 0, 12, rapid.ID[int64]).Draw(t, name)
		slices.Sort(prices)
		if falling {
			slices.Reverse(prices)
		}
		var all []market.Level
		for _, p := range prices {
			all = append(all, market.Level{Price: market.Price(p), Qty: market.Qty(rapid.Int64Range(1, 3).Draw(t, "qty"))})
		}
		return all
	}
	body := func(msgType, rest string) sessiontest.Message {
		m := wiretest.Message("35=" + msgType + "|34=2|49=A|52=20260101-00:00:00.000|56=B|262=r" + strings.ReplaceAll(rest, "\x01", "|") + "|")
		if err := wiretest.StockChecker().Check(m); err != nil {
			panic(fmt.Sprint(err, wiretest.Show(m)))
		}
		return m
	}
	rapid.Check(t, func(t *rapid.T) {
		c := &wire.BookFormat{Instrument: in, Depth: rapid.IntRange(1, 12).Draw(t, "depth"), Kinds: wire.KindBid | wire.KindOffer | wire.KindTrade}
		view := func(seq uint64) *marketdata.View {
			return &marketdata.View{EngineSeq: seq, Bids: levels(t, "bids", true), Asks: levels(t, "asks", false)}
		}
		now := view(1)
		book := shownBook{}
		book.apply(tb{}, body("W", string(c.AppendSnapshot(nil, now))))
		for seq := uint64(2); seq < 6; seq++ {
			next := view(seq)
			trades := []marketdata.Trade{{Seq: seq - 1, Price: 1, Qty: 1}, {Seq: seq, Price: 2, Qty: 3, At: 1e18}}
			text, n := c.AppendIncrement([]byte("head"), now, next, trades)
			if !strings.HasPrefix(string(text), "head\x01268="+strconv.Itoa(n)+"\x01") || strings.Count(string(text), "\x01269=2\x01") != 1 {
				t.Fatalf("increment %q of %d entries", text, n)
			}
			book.apply(tb{}, body("X", string(text[4:])))
			whole := shownBook{}
			whole.apply(tb{}, body("W", string(c.AppendSnapshot(nil, next))))
			if book.String() != whole.String() {
				t.Fatalf("the client shows %s, the view is %s", book, whole)
			}
			now = next
		}
	})
}

// shownOrders is a client's idea of one side, order by order, built from W and X: the ids of
// each price in priority, with their quantities.
type shownOrders map[string][]orders.Order // by 269

func (b shownOrders) apply(t testing.TB, in *market.Instrument, m sessiontest.Message) {
	var o orders.Order
	action, kind := "0", ""
	end := func() {
		if kind == "0" || kind == "1" {
			b[kind] = applyOrder(t, b[kind], o, action, kind == "0")
		}
		kind = ""
	}
	if m.Get(35) == "W" {
		b["0"], b["1"] = nil, nil
	}
	wire.EachField(m, func(tag int, value []byte) {
		switch tag {
		case 279:
			end()
			action = string(value)
		case 269:
			if m.Get(35) == "W" {
				end()
			}
			kind, o = string(value), orders.Order{}
		case 278, 37:
			id, _ := strconv.ParseUint(string(value), 10, 64)
			o.ID = market.OrderID(id)
		case 270:
			o.Price, _ = in.ParsePrice(value)
		case 271:
			o.Qty, _ = in.ParseQty(value)
		}
	})
	end()
}

func applyOrder(t testing.TB, list []orders.Order, o orders.Order, action string, bids bool) []orders.Order {
	at := slices.IndexFunc(list, func(x orders.Order) bool { return x.ID == o.ID })
	switch {
	case o.ID == 0, (action == "0") != (at < 0):
		t.Fatalf("action %s on order %d, which is at %d of %v", action, o.ID, at, list)
	case action == "2":
		return slices.Delete(list, at, at+1)
	case action == "1":
		list[at] = o
		return list
	}
	end := slices.IndexFunc(list, func(x orders.Order) bool { return x.Price != o.Price && x.Price < o.Price == bids })
	if end < 0 {
		end = len(list)
	}
	return slices.Insert(list, end, o)
}

// TestOrderIncrementsFit: whatever happens to the orders between two views, the increment
// turns the client's orders into those of the view, in their priority.
func TestOrderIncrementsFit(t *testing.T) {
	t.Parallel()
	in := wiretest.Instruments(t).Get(0)
	rapid.Check(t, func(t *rapid.T) {
		c := &wire.BookFormat{Instrument: in, Orders: true, Depth: rapid.IntRange(1, 5).Draw(t, "depth"), Kinds: wire.KindBid | wire.KindOffer | wire.KindTrade}
		var lists [2][]orders.Order
		id := market.OrderID(0)
		change := func() {
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				side := rapid.IntRange(0, 1).Draw(t, "side")
				list := slices.Clone(lists[side])
				o := orders.Order{Price: market.Price(rapid.Int64Range(1, 6).Draw(t, "price")), Qty: market.Qty(rapid.Int64Range(1, 9).Draw(t, "qty"))}
				if n := len(list); n > 0 && rapid.Bool().Draw(t, "leaves") {
					at := rapid.IntRange(0, n-1).Draw(t, "at")
					if o.ID = list[at].ID; rapid.Bool().Draw(t, "keeps its place") {
						list[at].Qty = o.Qty
						lists[side] = list
						continue
					}
					list = slices.Delete(list, at, at+1)
				}
				if o.ID == 0 || rapid.Bool().Draw(t, "comes again") {
					if o.ID == 0 {
						id++
						o.ID = id
					}
					list = applyOrder(tb{}, list, o, "0", side == 0)
				}
				lists[side] = list
			}
		}
		view := func(seq uint64) *marketdata.View {
			change()
			return &marketdata.View{EngineSeq: seq, Orders: &orders.Sides{Bids: lists[0], Asks: lists[1]}}
		}
		body := func(msgType, rest string) sessiontest.Message {
			m := wiretest.Message("35=" + msgType + "|34=2|49=A|52=20260101-00:00:00.000|56=B|262=r" + strings.ReplaceAll(rest, "\x01", "|") + "|")
			if err := wiretest.StockChecker().Check(m); err != nil {
				panic(fmt.Sprint(err, wiretest.Show(m)))
			}
			return m
		}
		now, shown := view(1), shownOrders{}
		shown.apply(tb{}, in, body("W", string(c.AppendSnapshot(nil, now))))
		for seq := uint64(2); seq < 6; seq++ {
			next := view(seq)
			if text, n := c.AppendIncrement(nil, now, next, nil); n > 0 {
				shown.apply(tb{}, in, body("X", string(text)))
			}
			for i, list := range lists {
				if want := orders.TopLevels(list, c.Depth); !slices.Equal(shown[strconv.Itoa(i)], want) {
					t.Fatalf("side %d: the client has %v, the view %v", i, shown[strconv.Itoa(i)], want)
				}
			}
			now = next
		}
	})
}

// TestMarketDataByOrder: with AggregatedBook (266) N a client sees each order, and its own by
// their OrderID.
func TestMarketDataByOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"MM", "TK"}, nil)
	mm, tk := d.dial("MM", nil), d.dial("TK", nil)
	mm.order("b1", "1", "10", "1", "59=1|")
	first := mm.want("150=0 11=b1").Get(37)
	mm.order("b2", "1", "5", "1", "59=1|")
	second := mm.want("150=0 11=b2").Get(37)
	d.awaitView(0, "both orders", func(v *marketdata.View) bool { return len(v.Bids) == 1 && v.Bids[0].Qty == 1500 })
	tk.send("V", "262=sub|263=1|264=0|265=1|266=N|267=2|269=0|269=1|146=1|55=SLUSD/USDC|")
	m := tk.want("35=W 262=sub 268=2")
	if text := m.String(); !strings.Contains(text, "269=0|270=1.0000|271=10.00|37="+first+"|269=0|270=1.0000|271=5.00|37="+second) {
		t.Fatalf("snapshot %s", text)
	}
	mm.send("G", "11=b3|41=b1|55=SLUSD/USDC|54=1|38=12|40=2|44=1|59=1|"+now60) // to the back
	m = tk.want("35=X 262=sub 268=2")
	if text := m.String(); !strings.Contains(text, "279=2|269=0|278="+first+"|55=SLUSD/USDC|270=1.0000|279=0|269=0|278="+first+"|55=SLUSD/USDC|270=1.0000|271=12.00") {
		t.Fatalf("increment %s", text)
	}
	tk.order("x", "2", "6", "1", "59=3|")
	await.True(t, "the fills of both orders", func() bool {
		m = tk.next()
		return m.Get(35) == "X"
	})
	if text := m.String(); !strings.Contains(text, "279=2|269=0|278="+second) || !strings.Contains(text, "279=1|269=0|278="+first+"|55=SLUSD/USDC|270=1.0000|271=11.00") {
		t.Fatalf("increment %s", text)
	}
}

// tb fails by panicking, which rapid takes as a failure.
type tb struct{ testing.TB }

func (tb) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// TestSlowReader: a client that does not read delays no other client, costs bounded
// memory, and is cut off.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	d := newDesk(t, []string{"SLOW", "MM"}, func(o *Options) { o.MaxOutbox = 128 << 10 })
	r := d.raw()
	r.conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	r.write(wiretest.Message(d.logonText("SLOW", "108=60|8013=N|553=slow|554="+sessiontest.Password+"|")))
	seq := 1
	send := func(msgType, fields string) {
		seq++
		r.write(wiretest.Message(fmt.Sprintf("35=%s|34=%d|49=SLOW|52=%s|56=%s|%s", msgType, seq, time.Now().UTC().Format("20060102-15:04:05.000"), d.options.CompID, fields)))
	}
	send("V", "262=sub|263=1|264=0|265=1|267=3|269=0|269=1|269=2|146=1|55=SLUSD/USDC|")
	send("D", "11=rest|55=SLUSD/USDC|54=1|38=90000|40=2|44=1|59=1|"+now60)
	mm := d.dial("MM", nil)
	d.awaitOrders(1)
	// How long it is blocked is not what it is cut off for here, nor that it says nothing.
	blocked := d.hooks.Session("SLOW").Conn()
	blocked.SetWriteTimeout(time.Hour)
	// Each sale fills the slow client's order: reports are never conflated.
	var slowest time.Duration
	sales := 0
	for ; d.gateway.Stats().Connections == 2 && sales < 20_000; sales++ {
		if sales%10 == 0 {
			send("0", "")
		}
		start := time.Now()
		mm.order(fmt.Sprint("x", sales), "2", "1", "1", "59=3|")
		await.Receive(t, "a report to MM", mm.in)
		await.Receive(t, "a report to MM", mm.in)
		slowest = max(slowest, time.Since(start))
	}
	if sales == 20_000 || !strings.Contains(fmt.Sprint(blocked.Cut()), "client reads too slowly") {
		t.Fatalf("after %d sales the slow reader was cut off by: %v", sales, blocked.Cut())
	}
	t.Logf("cut off after %d sales; slowest answer to another session %v; %d updates conflated", sales, slowest, d.gateway.Stats().ConflatedUpdates)
	if d.gateway.Stats().ConflatedUpdates == 0 {
		t.Error("market data was queued, not conflated")
	}
	// It gets what it has missed when it comes back.
	d.awaitStats("1 sessions logged on", func(s Stats) bool { return s.Sessions == 1 })
	slow := d.dial("SLOW", keep(seq+1, 2))
	if m := slow.want("35=8 43=Y"); m.Get(11) != "rest" {
		t.Errorf("%s", m)
	}
}
