package httpgw

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"blockdesk/engine/marketdata"
	"blockdesk/feed/archive"
	"blockdesk/httpgw/gatewaytest"
	marketapi "blockdesk/httpgw/market"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// tape is a History of trades that a test adds, newest first, by instrument.
type tape struct {
	trades [3][]marketdata.Trade
	cursor uint64
	fail   error
}

func (h *tape) Version() uint64 { return h.cursor }
func (h *tape) Cursor() uint64  { return h.cursor }

func (h *tape) Candles(market.InstrumentID, archive.Interval, int64, int) ([]archive.Candle, error) {
	return nil, h.fail
}

func (h *tape) Trades(in market.InstrumentID, before market.TradeID, limit int) ([]marketdata.Trade, error) {
	if limit < 1 || limit > archive.MaxTrades {
		return nil, archive.ErrLimit
	}
	for i := range h.trades[in] {
		if before == 0 || h.trades[in][i].ID < before {
			return h.trades[in][i:min(len(h.trades[in]), i+limit)], h.fail
		}
	}
	return nil, h.fail
}

// tapeBegin is the time of trade 0 of a tape, in Unix seconds: a time that is not
// ambiguous as milliseconds.
const tapeBegin = 1_700_000_000

// add adds a trade to an instrument, one second after the previous one.
func (h *tape) add(in market.InstrumentID, id market.TradeID, seq uint64, side market.Side) {
	t := marketdata.Trade{ID: id, Seq: seq, At: (tapeBegin + int64(id)) * 1e9, Price: 10_000, Qty: 3, Side: side}
	h.trades[in] = append([]marketdata.Trade{t}, h.trades[in]...)
}

// long returns a tape of n trades of instrument 0, one command each.
func long(n int) *tape {
	h := &tape{cursor: uint64(n)}
	for id := n; id > 0; id-- {
		h.trades[0] = append(h.trades[0], marketdata.Trade{
			ID: market.TradeID(id), Seq: uint64(id), At: int64(id) * 1e9, Price: 1, Qty: 1, Side: market.Buy,
		})
	}
	return h
}

// partner requests an adapter of a gateway with this history and checks the answer
// against the specification.
func partner(t *testing.T, h marketapi.History) func(path, query string, status int) []byte {
	t.Helper()
	deps := withDesk(testDependencies())
	deps.History = h
	c := newConformingOf(t, deps, func(o *Options) { o.Partner = wire.Rate{PerMinute: 60_000_000, Burst: 1_000_000} })
	return func(path, query string, status int) []byte {
		t.Helper()
		return c.send(t, path, "GET "+path+query+" HTTP/1.1\r\nHost: test\r\n\r\n", status).Body
	}
}

// TestScreenerEvents: the swaps of all pairs by command and, within a command, by
// trade; the range is inclusive, and incomplete commands are left out.
func TestScreenerEvents(t *testing.T) {
	h := &tape{cursor: 30}
	h.add(0, 1, 10, market.Buy)
	h.add(1, 2, 20, market.Sell)
	h.add(1, 3, 20, market.Sell)
	h.add(0, 4, 30, market.Sell)
	h.add(0, 5, 31, market.Buy) // behind the cursor
	get := partner(t, h)
	var block struct {
		Block struct{ BlockNumber, BlockTimestamp int64 }
	}
	if err := json.Unmarshal(get(marketapi.PathDEXScreener+"latest-block", "", 200), &block); err != nil || block.Block.BlockNumber != 30 || block.Block.BlockTimestamp != tapeBegin+4 {
		t.Errorf("the latest block is %+v: %v", block, err)
	}
	events := func(from, to int) string {
		var got struct {
			Events []struct {
				Block      struct{ BlockNumber int64 }
				EventIndex int
				PairID     string
				Asset0In   string
				Asset0Out  string
				Asset1In   string
				Asset1Out  string
			}
		}
		if err := json.Unmarshal(get(marketapi.PathDEXScreener+"events", fmt.Sprintf("?fromBlock=%d&toBlock=%d", from, to), 200), &got); err != nil {
			t.Fatal(err)
		}
		all := ""
		for _, e := range got.Events {
			all += fmt.Sprintf("%d.%d %s in %s%s out %s%s; ", e.Block.BlockNumber, e.EventIndex, e.PairID, e.Asset0In, e.Asset1In, e.Asset0Out, e.Asset1Out)
		}
		return all
	}
	const (
		first = "10.0 SLUSD_USDC in 1.500000000000 out 1.500000; "
		both  = "20.0 92C_SLUSD in 0.003 out 0.0030000; 20.1 92C_SLUSD in 0.003 out 0.0030000; "
		last  = "30.0 SLUSD_USDC in 1.500000 out 1.500000000000; "
	)
	for _, c := range []struct {
		from, to int
		want     string
	}{
		{0, 1000, first + both + last}, {10, 10, first}, {11, 20, both}, {21, 29, ""}, {30, 30, last}, {31, 31, ""},
	} {
		if got := events(c.from, c.to); got != c.want {
			t.Errorf("blocks %d to %d: %s\nwant %s", c.from, c.to, got, c.want)
		}
	}
}

// TestPartnerLimits: at the limit of one answer and one above it; nothing is truncated
// silently.
func TestPartnerLimits(t *testing.T) {
	refused := func(body []byte, reason string) {
		t.Helper()
		if !strings.Contains(string(body), `"reason":"`+reason+`"`) {
			t.Errorf("refused with %s, want %s", body, reason)
		}
	}
	get := partner(t, long(marketapi.MaxPartnerScan))
	const gecko = "?ticker_id=SLUSD_USDC&end_time=999" // before the first trade
	events := marketapi.PathDEXScreener + "events"
	for n, query := range map[int]string{
		marketapi.MaxPartnerEvents: fmt.Sprintf("?fromBlock=1&toBlock=%d", marketapi.MaxPartnerEvents), 0: "?fromBlock=0&toBlock=0",
		3: "?fromBlock=5&toBlock=7", // as old as it is
	} {
		if got := strings.Count(string(get(events, query, 200)), `"swap"`); got != n {
			t.Errorf("%s: %d events, want %d", query, got, n)
		}
	}
	get(marketapi.PathCoinGecko+"historical_trades", gecko, 200)

	get = partner(t, long(marketapi.MaxPartnerScan+1))
	refused(get(marketapi.PathCoinGecko+"historical_trades", gecko, 400), "too_far_back")
	refused(get(events, fmt.Sprintf("?fromBlock=1&toBlock=%d", 1+marketapi.MaxPartnerEvents), 400), "too_many_events")
	for from, n := range map[int]int{1: marketapi.MaxPartnerEvents, 2: marketapi.MaxPartnerEvents, marketapi.MaxPartnerScan: 2} {
		if got := strings.Count(string(get(events, fmt.Sprintf("?fromBlock=%d&toBlock=%d", from, from+n-1), 200)), `"swap"`); got != n {
			t.Errorf("from block %d: %d events, want %d", from, got, n)
		}
	}
	if got := strings.Count(string(get(marketapi.PathCoinGecko+"historical_trades", "?ticker_id=SLUSD_USDC&limit=0", 200)), "trade_id"); got != marketapi.MaxPartnerScan {
		t.Errorf("limit 0: %d trades, want %d", got, marketapi.MaxPartnerScan)
	}
	if got := strings.Count(string(get(marketapi.PathCoinGecko+"historical_trades", fmt.Sprintf("?ticker_id=SLUSD_USDC&limit=%d&type=buy", marketapi.MaxPartnerTrades), 200)), "trade_id"); got != marketapi.MaxPartnerTrades {
		t.Errorf("%d trades, want %d", got, marketapi.MaxPartnerTrades)
	}
}

// TestBlockOfManyTrades: a block alone is answered whole where a range with it is refused, so
// that an indexer can walk past it.
func TestBlockOfManyTrades(t *testing.T) {
	const trades = marketapi.MaxPartnerScan + 1
	h := &tape{cursor: 9}
	for id := trades; id > 0; id-- { // of one command
		h.trades[0] = append(h.trades[0], marketdata.Trade{ID: market.TradeID(id), Seq: 8, At: 8e9, Price: 1, Qty: 1, Side: market.Buy})
	}
	get := partner(t, h)
	events := marketapi.PathDEXScreener + "events"
	if body := get(events, "?fromBlock=7&toBlock=8", 400); !strings.Contains(string(body), "too_many_events") {
		t.Errorf("a range: %s", body)
	}
	for block, want := range map[int]int{7: 0, 8: trades, 9: 0} {
		if got := strings.Count(string(get(events, fmt.Sprintf("?fromBlock=%d&toBlock=%[1]d", block), 200)), `"swap"`); got != want {
			t.Errorf("block %d: %d events, want %d", block, got, want)
		}
	}
}

// TestGeckoTrades: by side, time and limit, newest first.
func TestGeckoTrades(t *testing.T) {
	h := &tape{cursor: 100}
	for id := market.TradeID(1); id <= 10; id++ {
		h.add(0, id, uint64(id), market.Side(1+id%2)) // sides in turn
	}
	even, odd := market.Buy.String(), market.Sell.String()
	get := partner(t, h)
	for query, want := range map[string]string{
		"":                              even + " 10 8 6 4 2 " + odd + " 9 7 5 3 1 ",
		"&limit=1":                      even + " 10 " + odd + " 9 ",
		"&type=" + odd + "&limit=2":     odd + " 9 7 ",
		"&start_time=1700000008":        even + " 10 8 " + odd + " 9 ",
		"&start_time=1700000008000":     even + " 10 8 " + odd + " 9 ",
		"&start_time=%3170000000800%30": even + " 10 8 " + odd + " 9 ",
		"&start_time=1700000003000&end_time=1700000006999":   even + " 6 4 " + odd + " 5 3 ",
		"&start_time=1700000003&end_time=1700000006":         even + " 6 4 " + odd + " 5 3 ",
		"&end_time=1700000002&type=" + even:                  even + " 2 ",
		"&start_time=1700000011":                             even + " " + odd + " ",
		"&start_time=1700000002&end_time=1700000004&limit=0": even + " 4 2 " + odd + " 3 ",
		"&end_time=9223372036853&limit=1":                    even + " 10 " + odd + " 9 ",
	} {
		var got map[string][]struct {
			ID int `json:"trade_id"`
		}
		if err := json.Unmarshal(get(marketapi.PathCoinGecko+"historical_trades", "?ticker_id=SLUSD_USDC"+query, 200), &got); err != nil {
			t.Fatal(err)
		}
		all := ""
		for _, side := range []string{"buy", "sell"} {
			if list, ok := got[side]; ok {
				all += side + " "
				for _, trade := range list {
					all += fmt.Sprint(trade.ID, " ")
				}
			}
		}
		if all != want {
			t.Errorf("%s: %s, want %s", query, all, want)
		}
	}
}

// TestPartnerWithoutHistory: without a history the views are used.
func TestPartnerWithoutHistory(t *testing.T) {
	get := partner(t, nil)
	if got := strings.Count(string(get(marketapi.PathCoinGecko+"historical_trades", "?ticker_id=SLUSD_USDC", 200)), "trade_id"); got != marketdata.MaxTape {
		t.Errorf("%d trades, want %d", got, marketdata.MaxTape)
	}
	if got := string(get(marketapi.PathDEXScreener+"latest-block", "", 200)); !strings.Contains(got, `"blockNumber":80000`) {
		t.Errorf("the latest block is %s", got)
	}
}

// TestPartnerHistoryFails: a broken disk is an error, not an empty market.
func TestPartnerHistoryFails(t *testing.T) {
	get := partner(t, &tape{fail: errors.New("a broken disk")})
	get(marketapi.PathCoinGecko+"historical_trades", "?ticker_id=SLUSD_USDC", 500)
	get(marketapi.PathDEXScreener+"latest-block", "", 500)
	get(marketapi.PathDEXScreener+"events", "?fromBlock=0&toBlock=1", 500)
}

// TestPartnerBooks: CoinGecko's depth counts both sides, and CoinMarketCap gets all
// levels.
func TestPartnerBooks(t *testing.T) {
	get := partner(t, nil)
	levels := func(body []byte) int { return strings.Count(string(body), `["`) }
	for query, want := range map[string]int{"": 200, "&depth=0": 200, "&depth=200": 200, "&depth=100": 100, "&depth=1": 2, "&depth=3": 4, "&depth=500": 200} {
		if got := levels(get(marketapi.PathCoinGecko+"orderbook", "?ticker_id=SLUSD_USDC"+query, 200)); got != want {
			t.Errorf("%s: %d levels, want %d", query, got, want)
		}
	}
	get(marketapi.PathCoinGecko+"orderbook", "?ticker_id=SLUSD_USDC&depth=-1", 400)
	g := partnerOne(t)
	for name, want := range map[string]int{
		"SLUSD_USDC": 200, "EMPTY_USDC": 0, "SLUSD_USDC?depth=3": 4, "SLUSD_USDC?depth=0&level=2": 200, "SLUSD_USDC?level=1": 2,
	} {
		if got := levels(g("orderbook/", name, 200)); got != want {
			t.Errorf("%s: %d levels, want %d", name, got, want)
		}
	}
	if got := strings.Count(string(g("trades/", "SLUSD_USDC?since=0", 200)), "trade_id"); got != marketdata.MaxTape {
		t.Errorf("%d trades, want %d", got, marketdata.MaxTape)
	}
	g("trades/", "SLUSD-USDC", 400)
	for _, query := range []string{"level=3", "level=x", "depth=x"} {
		g("orderbook/", "SLUSD_USDC?"+query, 400)
	}
	limits := [][]byte{g("trades/", "SLUSD_USDC?limit=10001", 400), get(marketapi.PathCoinGecko+"historical_trades", "?ticker_id=SLUSD_USDC&limit=1001", 400)}
	for _, body := range limits {
		if e := gatewaytest.DecodeError(t, body); e.Code != wire.CodeInvalidLimit || e.Field != "limit" {
			t.Errorf("a limit that is too large: %s", body)
		}
	}
}

// TestCoinMarketCapTrades: the trades of 24 hours, not only the newest, by limit, side and
// time.
func TestCoinMarketCapTrades(t *testing.T) {
	h := &tape{cursor: 1000}
	for id := market.TradeID(1); id <= 200; id++ {
		h.add(0, id, uint64(id), market.Side(1+id%2))
	}
	deps := withDesk(testDependencies())
	deps.History = h
	c := newConformingOf(t, deps, nil)
	for query, want := range map[string]string{
		"?since=1700000000":                   "200 to 1, 200",
		"?since=1700000150":                   "200 to 150, 51",
		"?since=1700000150000&type=buy":       "200 to 150, 26",
		"?since=0&limit=120":                  "200 to 81, 120",
		"?since=0&limit=0&before=11":          "10 to 1, 10",
		"?since=0&limit=3&type=sell&before=9": "7 to 3, 3",
		"":                                    "none", // all are older than a day
	} {
		var got []struct {
			ID int `json:"trade_id"`
		}
		const path = marketapi.PathCoinMarketCap + "trades/"
		answer := c.send(t, path+marketapi.PairSegment, "GET "+path+"SLUSD_USDC"+query+" HTTP/1.1\r\nHost: test\r\n\r\n", 200)
		if err := json.Unmarshal(answer.Body, &got); err != nil {
			t.Fatal(err)
		}
		text := "none"
		if n := len(got); n > 0 {
			text = fmt.Sprintf("%d to %d, %d", got[0].ID, got[n-1].ID, n)
		}
		if text != want {
			t.Errorf("%s: %s, want %s", query, text, want)
		}
	}
}

// partnerOne requests CoinMarketCap's reads of one pair.
func partnerOne(t *testing.T) func(what, pair string, status int) []byte {
	t.Helper()
	c := newConformingOf(t, withDesk(testDependencies()), nil)
	return func(what, pair string, status int) []byte {
		t.Helper()
		return c.send(t, marketapi.PathCoinMarketCap+what+marketapi.PairSegment, "GET "+marketapi.PathCoinMarketCap+what+pair+" HTTP/1.1\r\nHost: test\r\n\r\n", status).Body
	}
}

// TestPartnerLimitIsItsOwn: aggregators and other readers have separate limits.
func TestPartnerLimitIsItsOwn(t *testing.T) {
	c := newConformingOf(t, withDesk(testDependencies()), func(o *Options) {
		o.Market, o.Partner = wire.Rate{PerMinute: 1, Burst: 1}, wire.Rate{PerMinute: 1, Burst: 2}
	})
	get := func(path string, status int) {
		t.Helper()
		c.send(t, path, "GET "+path+" HTTP/1.1\r\nHost: test\r\n\r\n", status)
	}
	get(marketapi.PathCoinGecko+"tickers", 200)
	get(marketapi.PathMarket+"status", 200)
	get("/market.json", 429)
	get(marketapi.PathCoinMarketCap+"summary", 200)
	get(marketapi.PathDEXScreener+"latest-block", 429)
}
