package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/fixgw/fixclient"
	"blockdesk/internal/runtest"
)

// fixSession is a session whose messages a test reads one by one.
type fixSession struct {
	t        *testing.T
	client   *fixclient.Client
	messages chan map[int]string
}

// logOn logs a firm on.
func logOn(t *testing.T, address, name string) *fixSession {
	t.Helper()
	return logOnAs(t, fixclient.Options{
		Addr: address, SenderCompID: name, TargetCompID: "BLOCKDESK", Username: name, Password: testPassword,
	})
}

// logOnAs logs on by o.
func logOnAs(t *testing.T, o fixclient.Options) *fixSession {
	t.Helper()
	client, err := fixclient.Dial(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	s := &fixSession{t: t, client: client, messages: make(chan map[int]string, 100)}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- client.Run(ctx, func(m *fixclient.Message) error {
			fields := map[int]string{}
			m.Fields(func(tag int, value []byte) bool {
				fields[tag] = string(value)
				return true
			})
			s.messages <- fields
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// order sends a GTC limit order on the first symbol.
func (s *fixSession) order(clOrdID, side, qty, price string) {
	s.t.Helper()
	body := fmt.Sprintf("11=%s|55=%s|54=%s|38=%s|40=2|44=%s|59=1|60=%s|", clOrdID, testSymbol, side, qty, price,
		time.Now().UTC().Format("20060102-15:04:05"))
	if err := s.client.Send("D", []byte(strings.ReplaceAll(body, "|", "\x01"))); err != nil {
		s.t.Fatal(err)
	}
}

// expect returns the next message, which must have these fields.
func (s *fixSession) expect(want map[int]string) map[int]string {
	s.t.Helper()
	select {
	case m := <-s.messages:
		for tag, value := range want {
			if m[tag] != value {
				s.t.Fatalf("tag %d is %q, want %q: %v", tag, m[tag], value, m)
			}
		}
		return m
	case <-time.After(runtest.Patience):
		s.t.Fatalf("no message; want %v", want)
		return nil
	}
}

// feedMessage is what the test reads of a WebSocket message.
type feedMessage struct {
	Channel   string      `json:"channel"`
	Type      string      `json:"type"`
	Symbol    string      `json:"symbol"`
	Seq       uint64      `json:"seq"`
	EngineSeq uint64      `json:"engine_seq"`
	Bids      [][2]string `json:"bids"`
	Asks      [][2]string `json:"asks"`
	Trades    []feedTrade `json:"trades"`
	Last      string      `json:"last"`
	Bid       string      `json:"bid"`
	Ask       string      `json:"ask"`
	Volume    string      `json:"volume_24h"`
}

type feedTrade struct {
	ID    uint64 `json:"trade_id"`
	Price string `json:"price"`
	Qty   string `json:"qty"`
	Side  string `json:"side"`
}

// feedUntil reads the feed until a message of a channel satisfies ready.
func feedUntil(t *testing.T, conn *websocket.Conn, channel string, ready func(*feedMessage) bool) *feedMessage {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(runtest.Patience)); err != nil {
		t.Fatal(err)
	}
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			t.Fatalf("waiting for %s: %v", channel, err)
		}
		var m feedMessage
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if m.Channel == channel && ready(&m) {
			return &m
		}
	}
}

func subscribe(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial(url+"/ws/rfq", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	request := `{"action":"SUBSCRIBE_MARKET","channels":["l2","trades","ticker"],"symbols":["` + testSymbol + `"]}`
	if err := conn.WriteMessage(websocket.TextMessage, []byte(request)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// One order goes in through FIX and is seen through every door.
func TestSliceThroughEveryDoor(t *testing.T) {
	t.Parallel()
	s := startProgram(t, testConfig(t, ""))
	maker, taker := logOn(t, s.Addresses.FIX, traderA), logOn(t, s.Addresses.FIX, traderB)
	// The ws address and the base address both carry the feed.
	feeds := []*websocket.Conn{subscribe(t, s.Addresses.WS), subscribe(t, strings.Replace(s.Addresses.Base, "http", "ws", 1))}

	maker.order("m1", "2", "5", "1.01")
	maker.expect(map[int]string{35: "8", 11: "m1", 150: "0", 39: "0", 151: "5.000000"})
	maker.order("m2", "1", "7", "0.99")
	maker.expect(map[int]string{35: "8", 11: "m2", 150: "0"})
	taker.order("t1", "1", "2", "1.02")
	taker.expect(map[int]string{35: "8", 11: "t1", 150: "0"})
	filled := taker.expect(map[int]string{35: "8", 11: "t1", 150: "F", 39: "2", 32: "2.000000", 31: "1.010000"})
	maker.expect(map[int]string{35: "8", 11: "m1", 150: "F", 39: "1", 32: "2.000000", 31: "1.010000", 151: "3.000000"})
	text, _, _ := strings.Cut(filled[17], "-") // an ExecID begins with the engine's Seq
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	want := feedTrade{Price: "1.010000", Qty: "2.000000", Side: "buy"}
	var trade feedTrade
	for _, conn := range feeds {
		m := feedUntil(t, conn, "trades", func(m *feedMessage) bool { return len(m.Trades) > 0 })
		trade = m.Trades[0]
		want.ID = trade.ID
		if trade != want || trade.ID == 0 || m.EngineSeq < seq {
			t.Fatalf("the feed's trade is %+v at %d, the report's is %+v at %d", trade, m.EngineSeq, want, seq)
		}
	}
	feeds[0].Close()
	feeds[0] = subscribe(t, s.Addresses.WS) // a late comer gets it all by snapshots
	feedUntil(t, feeds[0], "l2", func(m *feedMessage) bool {
		return fmt.Sprint(m.Type, m.Bids, m.Asks) == "snapshot[[0.990000 7.000000]] [[1.010000 3.000000]]"
	})
	feedUntil(t, feeds[0], "ticker", func(m *feedMessage) bool {
		return m.Last == "1.010000" && m.Bid == "0.990000" && m.Ask == "1.010000" && m.Volume == "2.000000"
	})
	for _, url := range []string{s.Addresses.Base, s.Addresses.API} {
		checkREST(t, url, seq, trade)
	}
	checkAdmin(t, s.Addresses.Admin, seq)
}

// checkREST holds one address's answers to what has been traded.
func checkREST(t *testing.T, url string, seq uint64, trade feedTrade) {
	t.Helper()
	var m feedMessage
	query := "?symbol=" + testSymbol
	getJSON(t, url+"/api/v1/market/depth"+query, &m)
	if fmt.Sprint(m.Bids, m.Asks) != "[[0.990000 7.000000]] [[1.010000 3.000000]]" || m.EngineSeq < seq {
		t.Fatalf("%s: depth is %+v", url, m)
	}
	getJSON(t, url+"/api/v1/market/trades"+query, &m)
	if len(m.Trades) != 1 || m.Trades[0] != trade {
		t.Fatalf("%s: trades are %+v", url, m.Trades)
	}
	getJSON(t, url+"/api/v1/market/ticker"+query, &m)
	if m.Last != "1.010000" || m.Bid != "0.990000" || m.Ask != "1.010000" || m.Volume != "2.000000" {
		t.Fatalf("%s: ticker is %+v", url, m)
	}
	var symbols struct {
		Symbols []struct{ Symbol string }
	}
	getJSON(t, url+"/api/v1/market/symbols", &symbols)
	if fmt.Sprint(symbols.Symbols) != fmt.Sprintf("[{%s} {%s}]", testSymbol, otherSymbol) {
		t.Fatalf("%s: symbols are %+v", url, symbols.Symbols)
	}
	if body := get(t, url+"/"); !strings.Contains(body, "/api/v1/market/depth") {
		t.Fatalf("%s: the description names no depth: %s", url, body)
	}
	resp := do(t, url+"/api/v1/market/depth"+query, "")
	if again := do(t, url+"/api/v1/market/depth"+query, resp.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Fatalf("%s: status %d to the ETag %q", url, again.StatusCode, resp.Header.Get("ETag"))
	}
	if resp := do(t, url+"/no/such/route", ""); resp.StatusCode != http.StatusNotFound {
		t.Fatalf("%s: status %d for an unknown route", url, resp.StatusCode)
	}
}

// do sends a GET with an ETag and returns the answer without its body.
func do(t *testing.T, url, etag string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

func checkAdmin(t *testing.T, url string, seq uint64) {
	t.Helper()
	for _, path := range []string{"/readyz", "/healthz"} {
		var answer struct{ OK bool }
		if getJSON(t, url+path, &answer); !answer.OK {
			t.Fatalf("%s is not ok", path)
		}
	}
	metrics := get(t, url+"/metrics")
	for name, least := range map[string]uint64{
		"blockdesk_engine_seq": seq, "blockdesk_durable_seq": seq, "blockdesk_fix_sessions": 2, "blockdesk_ws_connections": 1,
	} {
		found := regexp.MustCompile(`(?m)^` + name + `(?:\{[^}]*\})? (\d+)`).FindStringSubmatch(metrics)
		if found == nil {
			t.Fatalf("/metrics has no %s:\n%s", name, metrics)
		}
		if n, err := strconv.ParseUint(found[1], 10, 64); err != nil || n < least {
			t.Fatalf("%s is %s, want at least %d", name, found[1], least)
		}
	}
	if !strings.Contains(get(t, url+"/debug/pprof/"), "goroutine") {
		t.Fatal("no pprof on the admin address")
	}
}
