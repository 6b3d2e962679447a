package httpgw

import (
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"blockdesk/catalog"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/internal/runtest"
)

func TestMain(m *testing.M) { gatewaytest.Main(m) }

// testOptions uses free ports and no rate limits, and allows slow clients.
func testOptions(b *gatewaytest.Books) Options {
	return Options{
		Base: "127.0.0.1:0", API: "127.0.0.1:0", WS: "127.0.0.1:0", Instruments: b.Set, NoLimits: true,
		ReadTimeout: runtest.HangTimeout, WriteTimeout: runtest.HangTimeout, IdleTimeout: runtest.HangTimeout,
		ShutdownTimeout: time.Second,
	}
}

// testDependencies has streams and WebSockets that answer 101 and nothing more.
func testDependencies() Dependencies {
	facts := gatewaytest.Facts()
	return Dependencies{
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
func start(t testing.TB, o Options, views catalog.Views, deps Dependencies) *Gateway {
	t.Helper()
	g, err := New(o, views, deps)
	if err != nil {
		t.Fatal(err)
	}
	runtest.Start(t, g.Run)
	return g
}
