package httpgw

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"blockdesk/catalog"
	"blockdesk/engine"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// TestMain fails the package when a test leaves a goroutine behind. Three are
// fasthttp's: its clock of the Date header never ends, and the cleaners of a
// server's worker pool and of a client's idle connections wake up after seconds to
// see that they have ended.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
	)
}

// books is a set of views that a test changes at will.
type books struct {
	set   *market.Instruments
	views [3]atomic.Pointer[engine.View]
}

func (b *books) View(in market.InstrumentID) *engine.View { return b.views[in].Load() }

func newBooks(t testing.TB) *books {
	t.Helper()
	set, err := market.NewInstruments([]market.Instrument{
		{
			ID: 0, Symbol: "SLUSD/USDC", Base: "SLUSD", Quote: "USDC", PriceDecimals: 6, QtyDecimals: 6,
			Tick: 100, Lot: 500000, MinQty: 1, MaxQty: 1 << 30, MaxPrice: 1 << 30, Source: market.Matched,
		},
		{
			ID: 1, Symbol: "92C/SLUSD", Base: "92C", Quote: "SLUSD", PriceDecimals: 4, QtyDecimals: 3,
			Tick: 1, Lot: 1, MinQty: 10, MaxQty: 1 << 30, MaxPrice: 1 << 30, Source: market.Mirrored,
		},
		{
			ID: 2, Symbol: "EMPTY/USDC", Base: "EMPTY", Quote: "USDC", PriceDecimals: 0, QtyDecimals: 0,
			Tick: 1, Lot: 1, MinQty: 1, MaxQty: 10, MaxPrice: 10, Source: market.Matched,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &books{set: set}
	b.views[0].Store(fullView(0, 1042))
	b.views[1].Store(fullView(1, 7))
	return b
}

// fullView is a view with MaxDepth levels a side and MaxTape trades.
func fullView(in market.InstrumentID, seq uint64) *engine.View {
	v := &engine.View{
		Instrument: in, Status: engine.StatusTrading, Epoch: 7, EngineSeq: 90_000 + seq,
		At:       time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC).UnixNano(),
		DepthSeq: seq, TradesSeq: seq + 1, TickerSeq: seq + 2,
	}
	for i := range market.Price(engine.MaxDepth) {
		v.Bids = append(v.Bids, market.Level{Price: 9_990 - i, Qty: market.Qty(24 + 3*i)})
		v.Asks = append(v.Asks, market.Level{Price: 10_001 + i, Qty: market.Qty(31 + 7*i)})
	}
	for i := range engine.MaxTape {
		v.Trades = append(v.Trades, engine.Trade{
			ID: market.TradeID(500 - i), Seq: 80_000, At: v.At - int64(i)*1e9,
			Price: 9_995 + market.Price(i%5), Qty: market.Qty(1 + i), Side: market.Side(1 + i%2),
		})
	}
	v.Ticker = engine.Ticker{
		Last: 9_995, LastQty: 1, LastAt: v.At, Open24h: 9_900, High24h: 10_100, Low24h: 9_800,
		Volume24h: 4_000, QuoteVolume24h: market.Uint128{Lo: 39_980_000}, Trades24h: 77,
	}
	return v
}

// testOptions listens on free ports and has no rate limit. Its clients may be slow.
func testOptions(b *books) Options {
	return Options{
		Base: "127.0.0.1:0", API: "127.0.0.1:0", WS: "127.0.0.1:0", Instruments: b.set, NoLimits: true,
		ReadTimeout: runtest.Patience, WriteTimeout: runtest.Patience, IdleTimeout: runtest.Patience,
		ShutdownTimeout: time.Second,
	}
}

// testDoors upgrade for form's sake: they answer 101 and nothing more.
func testDoors() Doors {
	facts := testFacts()
	return Doors{
		WebSocket: func(ctx *fasthttp.RequestCtx) {
			ctx.SetStatusCode(fasthttp.StatusSwitchingProtocols)
			ctx.Response.Header.Set("Connection", "Upgrade")
			ctx.Response.Header.Set("Upgrade", "websocket")
			ctx.Hijack(func(c net.Conn) { _ = c.Close() })
		},
		Stream: func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType("text/event-stream; charset=utf-8")
			ctx.SetBodyString("event: status\n\n")
		},
		WebSocketHealth: func() any { return map[string]any{"ok": true, "connections": 3} },
		Facts:           func() *catalog.Facts { return facts },
	}
}

// start runs a gateway until the test ends.
func start(t testing.TB, o Options, views Views, doors Doors) *Gateway {
	t.Helper()
	g, err := New(o, views, doors)
	if err != nil {
		t.Fatal(err)
	}
	runtest.Start(t, g.Run)
	return g
}

// exchange writes raw bytes to addr and reads one response.
func exchange(t testing.TB, addr net.Addr, raw string) (*http.Response, []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(runtest.Patience)); err != nil {
		t.Fatal(err)
	}
	// A server that has seen enough may close while we still write.
	_, _ = io.WriteString(conn, raw)
	method, _, _ := bytes.Cut([]byte(raw), []byte{' '})
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: string(method)})
	if err != nil {
		t.Fatalf("no response to %.80q: %v", raw, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return resp, body
}

// ask sends one request with extra header lines ("Name: value\r\n").
func ask(t testing.TB, addr net.Addr, method, target, headers string) (*http.Response, []byte) {
	t.Helper()
	return exchange(t, addr, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: test\r\n%s\r\n", method, target, headers))
}
