package feed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"blockdesk/bench/flow"
	"blockdesk/bench/server"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
	"blockdesk/market"
)

// The two instruments of a replayed day. The stock's rows come one order message
// after the other, so that its book is the recorded one; the deep one's come
// between them as fast as they are answered.
const (
	stockSymbol = "STOCK/USD"
	deepSymbol  = "DEEP/USD"
	// deepPerRow is how many messages the deep flow has to a row of the stock's.
	deepPerRow  = 2
	marketHour  = time.Hour
	sampleRows  = 36_000 // of a flow of our own: an hour
	stockLevels = 5
)

// replayDay is an hour of recorded order flow.
type replayDay struct {
	rows []flow.LobsterRow
	deep []flow.ArenaRecord
}

// loadDay reads the recorded flow, or makes one where it is absent.
func loadDay(t *testing.T) *replayDay {
	t.Helper()
	root := os.Getenv("BLOCKDESK_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	root = filepath.Join(root, "orderflow")
	rows, err := flow.OpenLobsterZip(filepath.Join(root, "lobster", "LOBSTER_SampleFile_AMZN_2012-06-21_5.zip"), stockLevels)
	deep, deepErr := flow.OpenArena(filepath.Join(root, "arena", "normal.bin.zst"))
	if err := errors.Join(err, deepErr); err != nil {
		t.Logf("recorded flow absent, one of our own is played (set BLOCKDESK_TESTDATA): %v", err)
		rows, deep = flow.NewLobster(1, sampleRows, stockLevels), flow.NewArena(1, deepPerRow*sampleRows)
	}
	for i := range rows {
		if rows[i].Message.At >= rows[0].Message.At+marketHour {
			rows = rows[:i]
			break
		}
	}
	return &replayDay{rows: rows, deep: deep[:min(len(deep), deepPerRow*len(rows))]}
}

// replayConfig is a service for a replayed day: four firms, a side of an
// instrument each, and a journal that is kept whole over many snapshots.
func replayConfig(t *testing.T, more string) string {
	t.Helper()
	people, err := server.WriteParticipants(t.TempDir(), programtest.Password, "STOCK-1", "STOCK-2", "DEEP-1", "DEEP-2")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`log: {level: warn}
fix: {participants_file: %q, messages_per_second: 1000000}
http: {market_data_per_minute: 0}
journal: {snapshot_every: 20000, keep_snapshots: 100}
risk: {max_qty: "10000000", max_notional: "1000000000", max_open_orders: 100000, band_bps: 10000}
instruments:
  - {symbol: %s, price_decimals: 6, qty_decimals: 6, tick: "0.000001", lot: "0.000001", min_qty: "0.000001", max_qty: "1000000", max_price: "1000", book_source: matched}
  - {symbol: %s, price_decimals: 3, qty_decimals: 0, tick: "0.005", lot: "1", min_qty: "1", max_qty: "100000000", max_price: "100000", book_source: matched}
  - {symbol: %s, price_decimals: 4, qty_decimals: 0, tick: "0.01", lot: "1", min_qty: "1", max_qty: "100000000", max_price: "100000", book_source: matched}
%s`, people, programtest.Symbol, deepSymbol, stockSymbol, more)
}

// replayer plays a day through four FIX sessions and can be cut off at any
// moment: what was under way then is sent again by settle.
type replayer struct {
	day     *replayDay
	planner *flow.Planner
	stock   [2]*fixtest.Trader // by side - 1
	deep    [2]*fixtest.Trader
	row     int // the next one
	actions []flow.Action
	record  int // the next one of the deep flow
	// ids are the ClOrdIDs by which the orders go now.
	stockIDs map[int]string
	deepIDs  map[uint64]string
}

func newReplayer(day *replayDay) *replayer {
	r := &replayer{day: day, planner: flow.NewPlanner(), stockIDs: map[int]string{}, deepIDs: map[uint64]string{}}
	for i := range 2 {
		r.stock[i] = fixtest.NewTrader("STOCK-"+strconv.Itoa(i+1), uint64(i))
		r.deep[i] = fixtest.NewTrader("DEEP-"+strconv.Itoa(i+1), uint64(i))
	}
	return r
}

func (r *replayer) traders() []*fixtest.Trader {
	return []*fixtest.Trader{r.stock[0], r.stock[1], r.deep[0], r.deep[1]}
}

func (r *replayer) connect(t *testing.T, address string) {
	t.Helper()
	fixtest.ConnectAll(t, address, r.traders()...)
}

func (r *replayer) disconnect() {
	for _, tr := range r.traders() {
		tr.Disconnect()
	}
}

// played is the market time that the day has come to.
func (r *replayer) played() time.Duration {
	if r.row == 0 {
		return 0
	}
	return r.day.rows[r.row-1].Message.At - r.day.rows[0].Message.At
}

func (r *replayer) over() bool { return r.row == len(r.day.rows) }

// replay goes on until the day is over, stop is closed, or a line breaks, which is
// no error: it goes on where it stopped once the traders are settled.
func (r *replayer) replay(stop <-chan struct{}) error {
	for !r.over() {
		select {
		case <-stop:
			return nil
		default:
		}
		for range min(deepPerRow, len(r.day.deep)-r.record) {
			r.record++ // also when the line breaks: settle sends it again
			if !r.sendDeep(&r.day.deep[r.record-1]) {
				return r.broken()
			}
		}
		if len(r.actions) == 0 {
			r.actions = r.nextRow()
		}
		for len(r.actions) > 0 {
			a := r.actions[0]
			r.actions = r.actions[1:] // as well
			if !r.sendStock(a) {
				return r.broken()
			}
		}
		r.row++
	}
	return nil
}

func (r *replayer) nextRow() []flow.Action {
	if r.row == 0 {
		return r.planner.Start(&r.day.rows[0])
	}
	actions, _ := r.planner.Step(&r.day.rows[r.row-1], &r.day.rows[r.row])
	return actions
}

// broken returns the first rule that was broken; a broken line alone is none.
func (r *replayer) broken() error {
	for _, tr := range r.traders() {
		if err := tr.Err(); err != nil {
			return err
		}
	}
	return nil
}

// sendStock sends one action and waits for its report; false = the line broke.
func (r *replayer) sendStock(a flow.Action) bool {
	o := replayOrder{symbol: stockSymbol, side: a.Side, price: decimal(a.Price, 4), qty: a.Qty}
	switch a.Act {
	case flow.TakeIOC:
		o.ioc = true
	case flow.Shrink:
		o.orig, o.qty = r.stockIDs[a.Order], a.Total
	case flow.Remove:
		o.orig, o.cancel = r.stockIDs[a.Order], true
	}
	tr := r.stock[a.Side-1]
	r.stockIDs[a.Order] = tr.NextID()
	return tr.Submit(o.request(r.stockIDs[a.Order])) == nil &&
		tr.Await("a report", func() bool { return tr.Waiting == 0 }) == nil
}

// sendDeep sends one record of the deep flow, with at most TraderWindow requests
// of its session unanswered.
func (r *replayer) sendDeep(rec *flow.ArenaRecord) bool {
	o := replayOrder{
		symbol: deepSymbol, side: rec.Side, price: decimal(rec.Price*5, 3), qty: int64(rec.Qty), ioc: rec.IOC,
		orig: r.deepIDs[rec.ID], cancel: rec.Kind == flow.ArenaCancel,
	}
	tr := r.deep[rec.Side-1]
	r.deepIDs[rec.ID] = tr.NextID()
	return tr.Submit(o.request(r.deepIDs[rec.ID])) == nil &&
		tr.Await("a free place", func() bool { return tr.Waiting < fixtest.TraderWindow }) == nil
}

// settle sends again what has no answer, on new lines.
func (r *replayer) settle(t *testing.T) {
	t.Helper()
	fixtest.ResolveRound(t, r.traders()...)
}

// replayOrder is an order message before it has an id: a new one, an amend (orig)
// or a cancel.
type replayOrder struct {
	symbol, price, orig string
	side                market.Side
	qty                 int64
	ioc, cancel         bool
}

func (o *replayOrder) request(id string) (string, *fixtest.Request) {
	kind, force, orig := "D", 1, ""
	if o.orig != "" {
		kind, orig = "G", "41="+o.orig+"\x01"
	}
	if o.cancel {
		kind = "F"
	}
	if o.ioc {
		force = 3
	}
	body := fmt.Appendf(nil, "11=%s\x01%s55=%s\x0154=%d\x0160=%s\x0138=%d\x01",
		id, orig, o.symbol, o.side, time.Now().UTC().Format("20060102-15:04:05.000"), max(o.qty, 1))
	if !o.cancel {
		body = fmt.Appendf(body, "40=2\x0144=%s\x0159=%d\x01", o.price, force)
	}
	return id, &fixtest.Request{MsgType: kind, Body: body}
}

func decimal(n int64, decimals int) string {
	return string(market.AppendDecimal(nil, uint64(n), decimals))
}
