package archive

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/internal/await"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/persist/projection"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const begin = int64(1_790_000_000) * int64(time.Second)

// fixed is a clock at which no test trade is old enough to prune.
func fixed() time.Time { return time.Unix(0, begin) }

func open(t testing.TB, s kv.Store, o Options) *Archive {
	t.Helper()
	if o.Now == nil {
		o.Now = fixed
	}
	a, err := New(o, s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// trade is a list of events, with one command for each Seq from 1.
func trade(seq uint64, id market.TradeID, in market.InstrumentID, at int64, price market.Price, qty market.Qty) event.Event {
	return event.Event{
		Seq: seq, At: at, Kind: event.Traded, Instrument: in, Aux: int64(id), Price: price, Qty: qty, Side: market.Sell,
	}
}

// mirror is the mirrored instrument of the tests.
const mirror market.InstrumentID = 2

// mirrored returns a trade that happened on chain before at.
func mirrored(seq uint64, id market.TradeID, ordinal uint64, at, happened int64, price market.Price, qty market.Qty) event.Event {
	e := trade(seq, id, mirror, at, price, qty)
	e.Kind, e.OrderID, e.Other = event.MirrorTraded, market.OrderID(happened), ordinal
	return e
}

// drawEvents draws random commands with 0 to 3 trades each on three instruments, some of
// them hours apart. Mirrored trades are up to days old.
func drawEvents(t *rapid.T) []event.Event {
	var out []event.Event
	at, id := begin, market.TradeID(0)
	ordinal, happened := uint64(0), begin-int64(50*time.Hour)
	for seq := uint64(1); seq <= uint64(rapid.IntRange(1, 40).Draw(t, "commands")); seq++ {
		at += rapid.SampledFrom([]int64{0, 1, int64(time.Second), int64(time.Minute), int64(7 * time.Minute), int64(5 * time.Hour), int64(30 * time.Hour)}).Draw(t, "gap")
		kind := rapid.SampledFrom([]event.Kind{event.Accepted, event.InstrumentSet}).Draw(t, "kind")
		out = append(out, event.Event{Seq: seq, At: at, Kind: kind, Instrument: market.InstrumentID(seq % 4)})
		for range rapid.IntRange(0, 3).Draw(t, "trades") {
			id++
			in := market.InstrumentID(rapid.IntRange(0, 2).Draw(t, "in"))
			price, qty := market.Price(rapid.IntRange(1, 9).Draw(t, "price")), market.Qty(rapid.IntRange(1, 9).Draw(t, "qty"))
			if in != mirror {
				e := trade(seq, id, in, at, price, qty)
				e.Participant, e.Code = market.ParticipantID(rapid.IntRange(1, 5).Draw(t, "taker")), uint16(rapid.IntRange(1, 5).Draw(t, "maker"))
				out = append(out, e)
				continue
			}
			ordinal++
			happened += rapid.Int64Range(0, at-happened).Draw(t, "later")
			out = append(out, mirrored(seq, id, ordinal, at, happened, price, qty))
		}
	}
	return out
}

// upTo returns the events of the commands up to seq.
func upTo(events []event.Event, seq uint64) []event.Event {
	n := slices.IndexFunc(events, func(e event.Event) bool { return e.Seq > seq })
	if n < 0 {
		return events
	}
	return events[:n]
}

// model makes the candles the slow way.
func model(events []event.Event, in market.InstrumentID, interval Interval) []Candle {
	var out []Candle
	for i := range events {
		e, ok := marketdata.TradeOf(&events[i])
		if !ok || events[i].Instrument != in {
			continue
		}
		open := e.At / int64(interval.Length()) * int64(interval.Length())
		if n := len(out); n == 0 || out[n-1].OpenAt != open {
			out = append(out, Candle{OpenAt: open, Open: e.Price, High: e.Price, Low: e.Price})
		}
		c := &out[len(out)-1]
		c.High, c.Low, c.Close = max(c.High, e.Price), min(c.Low, e.Price), e.Price
		c.Volume += e.Qty
		c.Quote.Lo += uint64(e.Price) * uint64(e.Qty)
		c.Trades++
	}
	return out
}

// tradersOf counts the participants of an instrument's trades.
func tradersOf(events []event.Event, in market.InstrumentID) uint64 {
	seen := map[uint16]bool{}
	for _, e := range events {
		if e.Kind == event.Traded && e.Instrument == in {
			seen[uint16(e.Participant)], seen[e.Code] = true, true
		}
	}
	return uint64(len(seen))
}

// definitionOf returns the first event that sets an instrument.
func definitionOf(events []event.Event, in market.InstrumentID) (d Definition, ok bool) {
	i := slices.IndexFunc(events, func(e event.Event) bool { return e.Kind == event.InstrumentSet && e.Instrument == in })
	if i < 0 {
		return d, false
	}
	return Definition{events[i].Seq, events[i].At}, true
}

// holds compares everything that the archive returns with the events.
func holds(t interface{ Fatalf(string, ...any) }, a *Archive, events []event.Event) {
	for in := market.InstrumentID(0); in <= mirror; in++ {
		for i := Minute1; i <= Day1; i++ {
			got, err := a.Candles(in, i, 0, MaxCandles)
			if want := model(events, in, i); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("instrument %d, %s: %v\n got %+v\nwant %+v", in, i, err, got, want)
			}
		}
		if got, want := a.Traders(in), tradersOf(events, in); got != want {
			t.Fatalf("instrument %d: %d traders, want %d", in, got, want)
		}
		got, known := a.Definition(in)
		if want, ok := definitionOf(events, in); got != want || known != ok {
			t.Fatalf("instrument %d: defined %v %v, want %v %v", in, got, known, want, ok)
		}
		var want []marketdata.Trade
		for _, e := range slices.Backward(events) {
			if trade, ok := marketdata.TradeOf(&e); ok && e.Instrument == in {
				want = append(want, trade)
			}
		}
		if got, err := a.Trades(in, 0, MaxTrades); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("instrument %d: %v\n got %+v\nwant %+v", in, err, got, want)
		}
	}
}

// TestCrashes: whatever suffix of commits a crash loses, a replay of the journal restores
// it, also if the replay begins long before.
func TestCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		last := events[len(events)-1].Seq
		store := kvtest.New()
		a := must(t, store)
		for from := 0; from < len(events); {
			n := rapid.IntRange(1, len(events)-from).Draw(t, "piece")
			if err := a.Replay(events[from : from+n]); err != nil {
				t.Fatal(err)
			}
			from += n
			if err := a.follower.commit(rapid.Bool().Draw(t, "sync")); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "crash") {
				store = store.Crash(rapid.IntRange(0, 5).Draw(t, "lost"))
				a = must(t, store)
				early := uint64(rapid.IntRange(0, int(a.Cursor())).Draw(t, "from"))
				from = len(upTo(events, early))
			}
		}
		if err := a.Start(last); err != nil {
			t.Fatal(err)
		}
		holds(t, a, events)
		if a.Cursor() != last || a.DurableCursor() != last {
			t.Fatalf("cursor %d, durable %d, want %d", a.Cursor(), a.DurableCursor(), last)
		}
	})
}

func must(t *rapid.T, s kv.Store) *Archive {
	a, err := New(Options{Now: fixed}, s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestReconcile: Reconcile deletes exactly what the journal has lost, also when a crash
// right after it makes it run again.
func TestReconcile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t)
		last := events[len(events)-1].Seq
		store := kvtest.New()
		a := must(t, store)
		if err := errors.Join(a.Replay(events), a.Start(last)); err != nil {
			t.Fatal(err)
		}
		seq := uint64(rapid.IntRange(0, int(last)).Draw(t, "journal's end"))
		a = must(t, store)
		if err := a.Start(seq); (err != nil) != (seq < last) || err != nil && !errors.Is(err, projection.ErrAhead) {
			t.Fatalf("start at %d of %d: %v", seq, last, err)
		}
		for range 2 {
			if err := a.Reconcile(seq); err != nil {
				t.Fatal(err)
			}
			holds(t, a, upTo(events, seq))
			a = must(t, store)
		}
		// After the restart the ids belong to other trades.
		var other []event.Event
		id := market.TradeID(0)
		for _, e := range upTo(events, seq) {
			if _, ok := marketdata.TradeOf(&e); ok {
				id++
			}
		}
		for n := range uint64(3) {
			other = append(other, trade(seq+1+n, id+1+market.TradeID(n), 1, begin+int64(2000*time.Hour), 5, 7))
		}
		if err := errors.Join(a.Replay(other), a.Start(seq+3)); err != nil {
			t.Fatal(err)
		}
		holds(t, a, append(slices.Clone(upTo(events, seq)), other...))
	})
}

// TestSkip: no returned candle misses trades of its interval.
func TestSkip(t *testing.T) {
	hour := int64(time.Hour)
	noon := (begin/int64(day) + 1) * int64(day)
	store := kvtest.New()
	a := open(t, store, Options{})
	before := []event.Event{
		trade(1, 1, 0, noon, 5, 1), trade(2, 2, 0, noon+hour, 6, 1),
		{Seq: 3, At: noon + hour + 30*int64(time.Minute), Kind: event.Accepted},
	}
	if err := errors.Join(a.Replay(before), a.Start(3)); err != nil {
		t.Fatal(err)
	}
	a = open(t, store, Options{})
	if a.CompleteSince() != 0 {
		t.Errorf("without a gap complete since %d", a.CompleteSince())
	}
	if err := a.Skip(100, noon+2*hour+int64(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := open(t, store, Options{}).CompleteSince(); got != a.CompleteSince() || got <= noon+2*hour+int64(time.Minute) {
		t.Errorf("unbroken since %d, then %d", a.CompleteSince(), got)
	}
	after := []event.Event{
		trade(101, 50, 0, noon+2*hour+2*int64(time.Minute), 7, 1), trade(102, 51, 0, noon+5*hour, 8, 1), trade(103, 52, 0, noon+int64(day), 9, 1),
	}
	if err := errors.Join(a.Replay(after), a.Start(103)); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[Interval][]int64{
		Minute1: {noon, noon + hour, noon + 2*hour + 2*int64(time.Minute), noon + 5*hour, noon + int64(day)},
		Hour1:   {noon, noon + 5*hour, noon + int64(day)},
		Hour4:   {noon + 4*hour, noon + int64(day)},
		Day1:    {noon + int64(day)},
	} {
		got, err := a.Candles(0, i, 0, 10)
		var opens []int64
		for _, c := range got {
			opens = append(opens, c.OpenAt)
		}
		if err != nil || !slices.Equal(opens, want) {
			t.Errorf("%s: %v, got %v, want %v", i, err, opens, want)
		}
	}
	if trades, err := a.Trades(0, 0, 10); err != nil || len(trades) != 5 {
		t.Errorf("%v, %d trades, want 5", err, len(trades))
	}
}

// TestDefinitionsOfOldStores: a store that has missed the definition of an instrument takes no
// later change for it, but learns of later instruments.
func TestDefinitionsOfOldStores(t *testing.T) {
	set := func(seq uint64, in market.InstrumentID) event.Event {
		return event.Event{Seq: seq, At: begin + int64(seq), Kind: event.InstrumentSet, Instrument: in}
	}
	for name, recovered := range map[string]func(a *Archive) error{
		"an older version's": func(a *Archive) error { return a.Start(3) },
		"a gap":              func(a *Archive) error { return a.Skip(3, begin+3) },
		"ahead":              func(a *Archive) error { return a.Reconcile(3) },
	} {
		store := kvtest.New()
		a := open(t, store, Options{})
		if err := errors.Join(a.Replay([]event.Event{trade(1, 1, 0, begin, 5, 1)}), a.Start(2)); err != nil {
			t.Fatal(err)
		}
		var old kv.Batch
		old.Delete([]byte{keyFollowed})
		if err := store.Commit(old.Fill, true); err != nil {
			t.Fatal(err)
		}
		a = open(t, store, Options{})
		if err := a.Replay([]event.Event{set(3, 0)}); err != nil { // its halt
			t.Fatal(err)
		}
		a.Know(2)
		if err := recovered(a); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a = open(t, store, Options{})
		if err := errors.Join(a.Replay([]event.Event{set(4, 1), set(5, 2), set(6, 2)}), a.Start(6)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		a = open(t, store, Options{})
		for in, want := range []Definition{{}, {}, {5, begin + 5}} {
			if got, ok := a.Definition(market.InstrumentID(in)); got != want || ok != (want.Seq > 0) {
				t.Errorf("%s: instrument %d: %v %v, want %v", name, in, got, ok, want)
			}
		}
	}
}

// TestPages: paging returns every trade and candle once, newest first.
func TestPages(t *testing.T) {
	a := open(t, kvtest.New(), Options{})
	var events []event.Event
	for n := range 25 {
		events = append(events, trade(uint64(n+1), market.TradeID(n+1), market.InstrumentID(n%2), begin+int64(n)*int64(time.Minute), 3, 1))
	}
	if err := errors.Join(a.Replay(events), a.Start(25)); err != nil {
		t.Fatal(err)
	}
	var ids []market.TradeID
	for before := market.TradeID(0); ; {
		page, err := a.Trades(0, before, 4)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, x := range page {
			ids = append(ids, x.ID)
		}
		before = page[len(page)-1].ID
	}
	if want := []market.TradeID{25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1}; !slices.Equal(ids, want) {
		t.Errorf("got %v", ids)
	}
	var opens []int64
	for before := int64(0); ; {
		page, err := a.Candles(1, Minute1, before, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		before = page[0].OpenAt
		for _, c := range slices.Backward(page) {
			opens = append(opens, c.OpenAt)
		}
	}
	if len(opens) != 12 || !slices.IsSortedFunc(opens, func(x, y int64) int { return int(y - x) }) {
		t.Errorf("got %v", opens)
	}
	for _, limit := range []int{0, -1, MaxTrades + 1} {
		if _, err := a.Trades(0, 0, limit); !errors.Is(err, ErrLimit) {
			t.Errorf("limit %d of trades: %v", limit, err)
		}
	}
	for _, limit := range []int{0, MaxCandles + 1} {
		if _, err := a.Candles(0, Day1, 0, limit); !errors.Is(err, ErrLimit) {
			t.Errorf("limit %d of candles: %v", limit, err)
		}
	}
}

// TestTradeBefore: the newest trade that is older than a time, of each instrument.
func TestTradeBefore(t *testing.T) {
	a := open(t, kvtest.New(), Options{})
	if _, ok, err := a.TradeBefore(0, begin); ok || err != nil {
		t.Errorf("an empty archive: %t, %v", ok, err)
	}
	var events []event.Event
	for n := range 40 { // ids with gaps, several trades at one time
		events = append(events, trade(uint64(n+1), market.TradeID(2*n+5), market.InstrumentID(n%2), begin+int64(n/6)*int64(time.Minute), 3, 1))
	}
	if err := errors.Join(a.Replay(events), a.Start(40)); err != nil {
		t.Fatal(err)
	}
	for at := begin - 1; at < begin+10*int64(time.Minute); at += int64(time.Minute) / 2 {
		for in := range market.InstrumentID(3) {
			var want market.TradeID
			for i := range events {
				if e := &events[i]; e.Instrument == in && e.At < at {
					want = market.TradeID(2*i + 5)
				}
			}
			if got, ok, err := a.TradeBefore(in, at); err != nil || ok != (want != 0) || got.ID != want {
				t.Errorf("instrument %d, %d s: trade %d, %t, %v; want %d", in, (at-begin)/int64(time.Second), got.ID, ok, err, want)
			}
		}
	}
}

// TestRetention: pruning deletes what is too old, and nothing else.
func TestRetention(t *testing.T) {
	now := begin
	o := Options{KeepTrades: 2 * day, KeepMinutes: 3 * day, Now: func() time.Time { return time.Unix(0, now) }}
	a := open(t, kvtest.New(), o)
	var events []event.Event
	for n := range 10 * 24 {
		events = append(events, trade(uint64(n+1), market.TradeID(n+1), 0, begin+int64(n)*int64(time.Hour), 3, 1))
	}
	now = events[len(events)-1].At
	if err := errors.Join(a.Replay(events), a.Start(240), a.prune(a.o.Now())); err != nil {
		t.Fatal(err)
	}
	trades, err := a.Trades(0, 0, MaxTrades)
	if err != nil || len(trades) != 49 { // the one of 48 h ago is not older
		t.Errorf("%v: %d trades", err, len(trades))
	}
	for i, want := range map[Interval]int{Minute1: 73, Minute15: 73, Hour1: 240, Day1: 11} {
		if got, err := a.Candles(0, i, 0, MaxCandles); err != nil || len(got) != want {
			t.Errorf("%s: %v: %d candles, want %d", i, err, len(got), want)
		}
	}
	before := a.Stats().Commits
	if err := a.prune(a.o.Now().Add(time.Minute)); err != nil || a.Stats().Commits != before {
		t.Errorf("pruned again within PruneEvery: %v", err)
	}
}

// TestShed: on a disk that is short of space only the last 48 hours stay, whatever the
// options allow.
func TestShed(t *testing.T) {
	a := open(t, kvtest.New(), Options{})
	var events []event.Event
	for n := range 10 * 24 {
		events = append(events, trade(uint64(n+1), market.TradeID(n+1), 0, begin+int64(n)*int64(time.Hour), 3, 1))
	}
	end := time.Unix(0, events[len(events)-1].At)
	if err := errors.Join(a.Replay(events), a.Start(240), a.prune(end)); err != nil {
		t.Fatal(err)
	}
	count := func(want int) {
		t.Helper()
		trades, err := a.Trades(0, 0, MaxTrades)
		minutes, err2 := a.Candles(0, Minute1, 0, MaxCandles)
		hours, err3 := a.Candles(0, Hour1, 0, MaxCandles)
		if err := errors.Join(err, err2, err3); err != nil || len(trades) != want || len(minutes) != want || len(hours) != 240 {
			t.Errorf("%v: %d trades, %d minutes, %d hours; want %d trades", err, len(trades), len(minutes), len(hours), want)
		}
	}
	count(240)
	a.Shed(true)
	if err := a.prune(end); err != nil { // within PruneEvery
		t.Fatal(err)
	}
	count(49)
	a.Shed(false)
	if err := a.prune(end.Add(2 * time.Hour)); err != nil {
		t.Fatal(err)
	}
	count(49)
}

// TestMaxTradeBytes: the oldest trades make room for newer ones, but for those of the last
// 48 hours. TradeIDs are of all instruments.
func TestMaxTradeBytes(t *testing.T) {
	var events []event.Event
	for n := range 10 * 24 {
		events = append(events, trade(uint64(n+1), market.TradeID(n+1), market.InstrumentID(n%2), begin+int64(n)*int64(time.Hour), 3, 1))
	}
	end := time.Unix(0, events[len(events)-1].At)
	for _, c := range []struct{ fits, want int }{{0, 240}, {500, 240}, {100, 100}, {10, 49}} {
		a := open(t, kvtest.New(), Options{MaxTradeBytes: uint64(c.fits * (tradeKeySize + mirroredSize))})
		if err := errors.Join(a.Replay(events), a.Start(240), a.prune(end)); err != nil {
			t.Fatal(err)
		}
		even, err := a.Trades(0, 0, MaxTrades)
		odd, err2 := a.Trades(1, 0, MaxTrades)
		if err := errors.Join(err, err2); err != nil || len(even)+len(odd) != c.want {
			t.Errorf("room for %d: %v: %d trades, want %d", c.fits, err, len(even)+len(odd), c.want)
		}
	}
}

// tape is a Consumer of the events that a test sends to it.
type tape struct {
	events chan []event.Event
	seq    uint64
}

func (c *tape) Next(ctx context.Context) ([]event.Event, error) {
	select {
	case events, ok := <-c.events:
		if !ok {
			return nil, io.EOF
		}
		c.seq = events[len(events)-1].Seq
		return events, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *tape) Poll() []event.Event { return nil }
func (c *tape) Release(int)         {}
func (c *tape) CompleteSeq() uint64 { return c.seq }

// TestRun: trades can be read at once, and are synced within SyncEvery and at the end.
func TestRun(t *testing.T) {
	store := kvtest.New()
	a := open(t, store, Options{SyncEvery: 10 * time.Millisecond})
	c := &tape{events: make(chan []event.Event)}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(t.Context(), c) }()
	c.events <- []event.Event{trade(1, 1, 0, begin, 5, 1), trade(2, 2, 1, begin, 5, 1)}
	await.True(t, "cursor", func() bool { return a.Cursor() == 2 })
	if trades, err := a.Trades(1, 0, 10); err != nil || len(trades) != 1 {
		t.Errorf("%v, %d trades", err, len(trades))
	}
	await.True(t, "sync", func() bool { return a.DurableCursor() == 2 })
	c.events <- []event.Event{{Seq: 3, At: begin, Kind: event.Accepted}}
	close(c.events)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if a.DurableCursor() != 3 {
		t.Errorf("durable cursor %d after the end", a.DurableCursor())
	}
}

// TestRunEnds: Run ends with its context if the engine does not, and when the store fails.
func TestRunEnds(t *testing.T) {
	a := open(t, kvtest.New(), Options{DrainTimeout: 10 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Run(ctx, &tape{events: make(chan []event.Event)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	store := kvtest.New()
	a = open(t, store, Options{})
	store.FailCommits(kvtest.ErrBroken)
	c := &tape{events: make(chan []event.Event, 1)}
	c.events <- []event.Event{trade(1, 1, 0, begin, 5, 1)}
	if err := a.Run(t.Context(), c); !errors.Is(err, kvtest.ErrBroken) {
		t.Errorf("got %v", err)
	}
}

// TestDamage: records that this version cannot have written are refused.
func TestDamage(t *testing.T) {
	store := kvtest.New()
	a := open(t, store, Options{})
	defined := event.Event{Seq: 1, At: begin, Kind: event.InstrumentSet}
	if err := errors.Join(a.Replay([]event.Event{defined, trade(2, 1, 0, begin, 5, 1)}), a.Start(2)); err != nil {
		t.Fatal(err)
	}
	for key, text := range store.Content() {
		value := []byte(text)
		for _, damaged := range [][]byte{nil, value[:len(value)-1], append(slices.Clone(value), 0), make([]byte, len(value))} {
			if key[0] == projection.KeyCursor && len(damaged) == len(value) {
				continue // an empty cursor is that of a new archive
			}
			if key[0] == keyDefinition && len(damaged) == len(value) {
				continue // zeros are an unknown definition
			}
			copied := store.Crash(0)
			copied.Put(key, damaged)
			a, err := New(Options{Now: fixed}, copied)
			if err == nil {
				_, bad1 := a.Trades(0, 0, 1)
				_, bad2 := a.Candles(0, Minute1, 0, 1)
				err = errors.Join(bad1, bad2)
				if key[0] == keyCandle {
					_, bad3 := a.Candles(0, Interval(key[3]), 0, 1)
					err = errors.Join(err, bad3)
				}
			}
			if !errors.Is(err, ErrLayout) {
				t.Errorf("%x = %x: %v", key, damaged, err)
			}
		}
	}
}

func TestIntervals(t *testing.T) {
	for i := Minute1; i <= Day1; i++ {
		if got, ok := ParseInterval([]byte(i.String())); !ok || got != i {
			t.Errorf("%s: %v, %v", i, got, ok)
		}
	}
	for _, text := range []string{"", "1M", "2m", "1m ", "60m"} {
		if _, ok := ParseInterval([]byte(text)); ok {
			t.Errorf("%q was read", text)
		}
	}
}

// TestVolumeStays: a volume that overflows saturates.
func TestVolumeStays(t *testing.T) {
	c := Candle{}
	x := marketdata.Trade{Price: 1 << 62, Qty: 1 << 62}
	for range 40 {
		c.add(&x)
	}
	if c.Volume != 1<<63-1 || c.Quote.Hi != ^uint64(0) || c.Trades != 40 {
		t.Errorf("got %+v", c)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{KeepTrades: time.Hour}, {KeepMinutes: -1}, {SyncEvery: -1}, {PruneEvery: 48 * time.Hour}, {DrainTimeout: 2 * time.Hour},
	} {
		if o.Validate() == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
