package feed

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fasthttp/websocket"

	"blockdesk/e2e/feedtest"
	"blockdesk/e2e/fixtest"
	"blockdesk/e2e/programtest"
)

// One order goes in through FIX and is seen on every gateway.
func TestSliceThroughEveryGateway(t *testing.T) {
	t.Parallel()
	s := programtest.Start(t, programtest.Config(t, ""))
	maker, taker := fixtest.LogOn(t, s.Addresses.FIX, programtest.FirmA), fixtest.LogOn(t, s.Addresses.FIX, programtest.FirmB)
	// The ws address and the base address both carry the feed.
	feeds := []*websocket.Conn{feedtest.Subscribe(t, s.Addresses.WS), feedtest.Subscribe(t, strings.Replace(s.Addresses.Base, "http", "ws", 1))}

	maker.Order("m1", "2", "5", "1.01")
	maker.Expect(map[int]string{35: "8", 11: "m1", 150: "0", 39: "0", 151: "5.000000"})
	maker.Order("m2", "1", "7", "0.99")
	maker.Expect(map[int]string{35: "8", 11: "m2", 150: "0"})
	taker.Order("t1", "1", "2", "1.02")
	taker.Expect(map[int]string{35: "8", 11: "t1", 150: "0"})
	filled := taker.Expect(map[int]string{35: "8", 11: "t1", 150: "F", 39: "2", 32: "2.000000", 31: "1.010000"})
	maker.Expect(map[int]string{35: "8", 11: "m1", 150: "F", 39: "1", 32: "2.000000", 31: "1.010000", 151: "3.000000"})
	text, _, _ := strings.Cut(filled[17], "-") // an ExecID begins with the engine's Seq
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	want := feedtest.FeedTrade{Price: "1.010000", Qty: "2.000000", Side: "buy"}
	var trade feedtest.FeedTrade
	for _, conn := range feeds {
		m := feedtest.FeedUntil(t, conn, "trades", func(m *feedtest.FeedMessage) bool { return len(m.Trades) > 0 })
		trade = m.Trades[0]
		want.ID = trade.ID
		if trade != want || trade.ID == 0 || m.EngineSeq < seq {
			t.Fatalf("the feed's trade is %+v at %d, the report's is %+v at %d", trade, m.EngineSeq, want, seq)
		}
	}
	feeds[0].Close()
	feeds[0] = feedtest.Subscribe(t, s.Addresses.WS) // a late comer gets it all by snapshots
	feedtest.FeedUntil(t, feeds[0], "l2", func(m *feedtest.FeedMessage) bool {
		return fmt.Sprint(m.Type, m.Bids, m.Asks) == "snapshot[[0.990000 7.000000]] [[1.010000 3.000000]]"
	})
	feedtest.FeedUntil(t, feeds[0], "ticker", func(m *feedtest.FeedMessage) bool {
		return m.Last == "1.010000" && m.Bid == "0.990000" && m.Ask == "1.010000" && m.Volume == "2.000000"
	})
	for _, url := range []string{s.Addresses.Base, s.Addresses.API} {
		checkREST(t, url, seq, trade)
	}
	checkAdmin(t, s.Addresses.Admin, seq)
}

// checkREST holds one address's answers to what has been traded.
func checkREST(t *testing.T, url string, seq uint64, trade feedtest.FeedTrade) {
	t.Helper()
	var m feedtest.FeedMessage
	query := "?symbol=" + programtest.Symbol
	programtest.GetJSON(t, url+"/api/v1/market/depth"+query, &m)
	if fmt.Sprint(m.Bids, m.Asks) != "[[0.990000 7.000000]] [[1.010000 3.000000]]" || m.EngineSeq < seq {
		t.Fatalf("%s: depth is %+v", url, m)
	}
	programtest.GetJSON(t, url+"/api/v1/market/trades"+query, &m)
	if len(m.Trades) != 1 || m.Trades[0] != trade {
		t.Fatalf("%s: trades are %+v", url, m.Trades)
	}
	programtest.GetJSON(t, url+"/api/v1/market/ticker"+query, &m)
	if m.Last != "1.010000" || m.Bid != "0.990000" || m.Ask != "1.010000" || m.Volume != "2.000000" {
		t.Fatalf("%s: ticker is %+v", url, m)
	}
	var symbols struct {
		Symbols []struct{ Symbol string }
	}
	programtest.GetJSON(t, url+"/api/v1/market/symbols", &symbols)
	if fmt.Sprint(symbols.Symbols) != fmt.Sprintf("[{%s} {%s}]", programtest.Symbol, programtest.OtherSymbol) {
		t.Fatalf("%s: symbols are %+v", url, symbols.Symbols)
	}
	if body := programtest.Get(t, url+"/"); !strings.Contains(body, "/api/v1/market/depth") {
		t.Fatalf("%s: the description names no depth: %s", url, body)
	}
	resp := programtest.Do(t, url+"/api/v1/market/depth"+query, "")
	if again := programtest.Do(t, url+"/api/v1/market/depth"+query, resp.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Fatalf("%s: status %d to the ETag %q", url, again.StatusCode, resp.Header.Get("ETag"))
	}
	if resp := programtest.Do(t, url+"/no/such/route", ""); resp.StatusCode != http.StatusNotFound {
		t.Fatalf("%s: status %d for an unknown route", url, resp.StatusCode)
	}
}

func checkAdmin(t *testing.T, url string, seq uint64) {
	t.Helper()
	for _, path := range []string{"/readyz", "/healthz"} {
		var answer struct{ OK bool }
		if programtest.GetJSON(t, url+path, &answer); !answer.OK {
			t.Fatalf("%s is not ok", path)
		}
	}
	metrics := programtest.Get(t, url+"/metrics")
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
	if !strings.Contains(programtest.Get(t, url+"/debug/pprof/"), "goroutine") {
		t.Fatal("no pprof on the admin address")
	}
}
