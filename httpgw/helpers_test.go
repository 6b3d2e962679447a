package httpgw

import (
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"blockdesk/catalog"
	"blockdesk/internal/runtest"
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
func start(t testing.TB, o Options, views catalog.Views, doors Doors) *Gateway {
	t.Helper()
	g, err := New(o, views, doors)
	if err != nil {
		t.Fatal(err)
	}
	runtest.Start(t, g.Run)
	return g
}
