package httpgw

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"blockdesk/engine/marketdata"
	"blockdesk/httpgw/gatewaytest"
	"blockdesk/httpgw/wire"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// TestSlowSenders: a request that arrives byte by byte gets 408 after the timeout, and
// a connection without a request is closed.
func TestSlowSenders(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	o.ReadTimeout = 300 * time.Millisecond
	g := start(t, o, b, testDependencies())
	for name, text := range map[string]string{
		"headers": "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 6000),
		"body":    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n" + strings.Repeat("x", 6000),
		"silence": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", g.BaseAddr().String())
			if err != nil {
				t.Fatal(err)
			}
			stop := drip(t, conn, text)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			body, _ := io.ReadAll(resp.Body)
			if sent := stop(); sent == len(text) && text != "" {
				t.Errorf("all of the %d bytes were waited for", sent)
			}
			if e := gatewaytest.DecodeError(t, body); resp.StatusCode != 408 || e.Code != wire.CodeRequestTimeout {
				t.Errorf("status %d code %s", resp.StatusCode, e.Code)
			}
		})
	}
}

// drip sends text byte by byte, slower than a client may, until stop is called or the
// server closes the connection. stop closes the connection and returns the number of
// bytes sent.
func drip(t *testing.T, conn net.Conn, text string) (stop func() int) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
		t.Fatal(err)
	}
	sent := make(chan int, 1)
	go func() {
		n := 0
		for ; n < len(text); n++ {
			if _, err := conn.Write([]byte{text[n]}); err != nil {
				break
			}
			time.Sleep(5 * time.Millisecond) // sleep: this is what makes the client slow
		}
		sent <- n
	}()
	stop = sync.OnceValue(func() int {
		_ = conn.Close()
		return <-sent
	})
	t.Cleanup(func() { stop() })
	return stop
}

// TestConnectionLimits: the last connection within the limit and one more, in total
// and per client; closing or upgrading a connection frees its slot.
func TestConnectionLimits(t *testing.T) {
	for name, c := range map[string]struct {
		max, perIP int
		status     int
		code       string
	}{"in all": {3, 100, 503, wire.CodeOverloaded}, "one client": {100, 3, 429, wire.CodeRateLimited}} {
		t.Run(name, func(t *testing.T) {
			b := gatewaytest.NewBooks(t)
			o := testOptions(b)
			o.MaxConns, o.MaxConnsPerIP = c.max, c.perIP
			g := start(t, o, b, testDependencies())
			open := make([]net.Conn, 3)
			for i := range open {
				addr := []net.Addr{g.BaseAddr(), g.APIAddr(), g.WSAddr()}[i]
				conn, err := net.Dial("tcp", addr.String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				open[i] = conn
			}
			await.Equal(t, "the number of connections", 3, g.conns.Count)
			resp, body := gatewaytest.Do(t, g.BaseAddr(), "GET", "/", "")
			if e := gatewaytest.DecodeError(t, body); resp.StatusCode != c.status || e.Code != c.code || e.Reason != "connections" {
				t.Fatalf("one more: status %d: %s", resp.StatusCode, body)
			}
			checkHeaders(t, "one more", resp.Header)
			if resp.Header.Get("Retry-After") == "" {
				t.Errorf("headers %v", resp.Header)
			}
			if n := counted(t, g.metrics.refused); n != 1 {
				t.Errorf("refused counts %v", n)
			}
			open[0].Close()
			await.Equal(t, "the number of connections", 2, g.conns.Count)
			if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", "/", "Connection: close\r\n"); resp.StatusCode != 200 {
				t.Errorf("after one was closed: status %d", resp.StatusCode)
			}
			await.Equal(t, "the number of connections", 2, g.conns.Count)
			const upgrade = "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
			if _, err := io.WriteString(open[2], "GET /ws/rfq HTTP/1.1\r\nHost: a\r\n"+upgrade+"\r\n"); err != nil {
				t.Fatal(err)
			}
			await.Equal(t, "the number of connections", 1, g.conns.Count)
		})
	}
}

// TestTrustedProxyHasNoConnectionLimit: all clients of a proxy share its address.
func TestTrustedProxyHasNoConnectionLimit(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	o.MaxConnsPerIP, o.TrustedProxies = 1, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	g := start(t, o, b, testDependencies())
	conn, err := net.Dial("tcp", g.BaseAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	await.Equal(t, "the number of connections", 1, g.conns.Count)
	if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", "/", ""); resp.StatusCode != 200 {
		t.Errorf("second connection of a proxy: status %d", resp.StatusCode)
	}
}

// counted returns the value of a counter.
func counted(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%d families: %v", len(families), err)
	}
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

// failingListener fails like a process without file descriptors, then works.
type failingListener struct {
	net.Listener
	left atomic.Int32
}

func (f *failingListener) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

// TestShortageOfDescriptors: Accept recovers from a shortage, and Close ends its wait.
func TestShortageOfDescriptors(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics()
	for _, failures := range []int32{3, 1 << 30} {
		f := &failingListener{Listener: inner}
		f.left.Store(failures)
		l := wire.NewListener(f, wire.NewConns(10, 10, &wire.Proxies{}, wire.NewRequestIDs(), m.refused, true), 0)
		if failures == 3 {
			conn, err := net.Dial("tcp", inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		} else {
			go func() { // while Accept waits
				err := await.Poll(context.Background(), "a failure", func() bool { return f.left.Load() < failures })
				if err := errors.Join(err, l.Close()); err != nil {
					t.Error(err)
				}
			}()
		}
		conn, err := l.Accept()
		if failures == 3 {
			if err != nil {
				t.Fatalf("after %d failures: %v", failures, err)
			}
			conn.Close()
		} else if !errors.Is(err, net.ErrClosed) {
			t.Fatalf("closed while waiting: %v", err)
		}
	}
}

// TestShutdown: a request in progress is answered, and new connections are refused.
func TestShutdown(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	entered, release := make(chan struct{}), make(chan struct{})
	deps := testDependencies()
	deps.WebSocketHealth = func() any {
		close(entered)
		<-release
		return map[string]bool{"ok": true}
	}
	o := testOptions(b)
	o.ShutdownTimeout = runtest.HangTimeout
	g, err := New(o, b, deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	type result struct {
		status int
		body   string
	}
	answered := make(chan result, 1)
	go func() {
		resp, body := gatewaytest.Do(t, g.APIAddr(), "GET", "/ws/rfq/health", "")
		answered <- result{resp.StatusCode, string(body)}
	}()
	await.Closed(t, "the request", entered)
	cancel()
	for _, addr := range []net.Addr{g.BaseAddr(), g.APIAddr(), g.WSAddr()} {
		await.True(t, "the end of listening", func() bool {
			conn, err := net.Dial("tcp", addr.String())
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		})
	}
	close(release)
	if r := await.Receive(t, "an answer", answered); r.status != 200 || r.body != `{"ok":true}` {
		t.Errorf("the request under way got %+v", r)
	}
	if err := await.Receive(t, "the end of Run", done); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestShutdownOfSilent: a silent connection delays the end by ShutdownTimeout, not by
// the idle timeout.
func TestShutdownOfSilent(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	o.ShutdownTimeout = 50 * time.Millisecond
	o.ReadTimeout, o.IdleTimeout = 10*runtest.HangTimeout, 10*runtest.HangTimeout
	g, err := New(o, b, testDependencies())
	if err != nil {
		t.Fatal(err)
	}
	stop := runtest.Start(t, g.Run)
	silent, err := net.Dial("tcp", g.BaseAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	await.Equal(t, "the number of connections", 1, g.conns.Count)
	stop()
	await.Equal(t, "the number of connections", 0, g.conns.Count)
}

// TestRunAfterTheEnd: Run with a context that has already ended.
func TestRunAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 {
		b := gatewaytest.NewBooks(t)
		g, err := New(testOptions(b), b, Dependencies{})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

type brokenViews struct{}

func (brokenViews) View(market.InstrumentID) *marketdata.View { panic("a bug") }

// TestPanicIsOneAnswer: a panic is answered 500, logged and counted, and the next
// request is served.
func TestPanicIsOneAnswer(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	o := testOptions(b)
	var logged strings.Builder
	o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	g := start(t, o, brokenViews{}, testDependencies())
	resp, body := gatewaytest.Do(t, g.BaseAddr(), "GET", "/api/v1/market/depth?symbol=SLUSD/USDC", "")
	e := gatewaytest.DecodeError(t, body)
	if resp.StatusCode != 500 || e.Code != wire.CodeInternal || strings.Contains(string(body), "a bug") {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	if counted(t, g.metrics.panics) != 1 || !strings.Contains(logged.String(), e.RequestID) {
		t.Errorf("not counted or not logged: %s", logged.String())
	}
	if resp, _ := gatewaytest.Do(t, g.BaseAddr(), "GET", "/", ""); resp.StatusCode != 200 {
		t.Errorf("afterwards: status %d", resp.StatusCode)
	}
}

// TestPipelining: answers come in the order of the requests, each with its own id, and
// no header of one request affects the next answer.
func TestPipelining(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	conn, err := net.Dial("tcp", g.BaseAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	targets := []string{"/nowhere", "/api/v1/market/depth?symbol=SLUSD/USDC&limit=100", "/api/v1/market/ticker?symbol=92C/SLUSD"}
	var all strings.Builder
	for range 10 {
		for _, target := range targets {
			all.WriteString("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")
		}
	}
	if _, err := io.WriteString(conn, all.String()); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	ids := make(map[string]bool)
	for i := range 30 {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		ids[resp.Header.Get("X-Request-Id")] = true
		if want := []int{404, 200, 200}[i%3]; resp.StatusCode != want {
			t.Errorf("answer %d: status %d, want %d", i, resp.StatusCode, want)
		}
		if hasVary := resp.Header.Get("Vary") != ""; hasVary != (i%3 == 1) {
			t.Errorf("answer %d: Vary %q", i, resp.Header.Get("Vary"))
		}
	}
	if len(ids) != 30 {
		t.Errorf("%d request ids for 30 requests", len(ids))
	}
}

// TestTwoFramings: a request with two lengths is refused, and the request smuggled in
// it is not served.
func TestTwoFramings(t *testing.T) {
	t.Parallel()
	b := gatewaytest.NewBooks(t)
	g := start(t, testOptions(b), b, testDependencies())
	const hidden = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n"
	for _, c := range []struct {
		name, raw string
		status    string
	}{
		{"both", "GET / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
		{"both, turned round", "GET / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\ncontent-LENGTH: 4\r\n\r\n", "400"},
		{"chunks of HTTP/1.0", "GET / HTTP/1.0\r\nHost: test\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
		{"chunks alone", "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n", "200"},
	} {
		conn, err := net.Dial("tcp", g.BaseAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(runtest.HangTimeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, c.raw+hidden); err != nil {
			t.Fatal(err)
		}
		// The end may be a reset: there are unread bytes.
		answer, _ := io.ReadAll(conn)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 "+c.status+" ") || strings.Count(string(answer), "HTTP/1.1 ") != 1 {
			t.Errorf("%s: %s", c.name, answer)
		}
	}
}

func TestOptionsValidate(t *testing.T) {
	b := gatewaytest.NewBooks(t)
	good := Options{Instruments: b.Set}
	if err := good.Validate(); err != nil {
		t.Fatalf("the defaults: %v", err)
	}
	for name, breakIt := range map[string]func(*Options){
		"instruments":      func(o *Options) { o.Instruments = nil },
		"max_conns ":       func(o *Options) { o.MaxConns = -1 },
		"max_conns_per_ip": func(o *Options) { o.MaxConnsPerIP = -1 },
		"max_clients":      func(o *Options) { o.MaxClients = 1<<24 + 1 },
		"max_header_bytes": func(o *Options) { o.MaxHeaderBytes = 64<<10 + 1 },
		"max_body_bytes":   func(o *Options) { o.MaxBodyBytes = -1 },
		"timeout":          func(o *Options) { o.IdleTimeout = -1 },
		"per_minute":       func(o *Options) { o.Market = wire.Rate{PerMinute: 60_000_001, Burst: 1} },
		"burst":            func(o *Options) { o.Market = wire.Rate{PerMinute: 1, Burst: 0} },
		"rfq_write":        func(o *Options) { o.RFQWrite = wire.Rate{PerMinute: -1, Burst: 1} },
	} {
		o := good
		breakIt(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := New(o, b, Dependencies{}); err == nil {
			t.Errorf("%s: New took it", name)
		}
	}
	// An address that is taken names itself, and the others are given back.
	g, err := New(testOptions(b), b, Dependencies{})
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions(b)
	o.WS = g.BaseAddr().String()
	if _, err := New(o, b, Dependencies{}); err == nil || !strings.Contains(err.Error(), "ws address") {
		t.Errorf("a taken address: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// cachedRead returns a handler and a request for a depth page that is already
// rendered; etag may be "".
func cachedRead(tb testing.TB, etag string) (*handler, *fasthttp.RequestCtx) {
	tb.Helper()
	books := gatewaytest.NewBooks(tb)
	o := testOptions(books)
	o.NoLimits, o.Market = false, wire.Rate{PerMinute: 60_000_000, Burst: 1_000_000}
	g, err := New(o, books, Dependencies{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = g.Close() })
	ctx := gatewaytest.RequestFrom("192.0.2.1")
	text := "GET /api/v1/market/depth?symbol=SLUSD/USDC&limit=50 HTTP/1.1\r\nHost: test\r\nIf-None-Match: " + etag + "\r\n\r\n"
	if err := ctx.Request.Read(bufio.NewReader(strings.NewReader(text))); err != nil {
		tb.Fatal(err)
	}
	return &handler{g: g, router: newRouter(g.routes(Dependencies{}), wire.OnBase, newMetrics())}, ctx
}

const depthETag = `"e7-91042-1042-50"` // of NewBooks

// TestCachedHandlerAllocatesNothing: routing, rate limit, page, headers and metrics
// together, for 200 and 304.
func TestCachedHandlerAllocatesNothing(t *testing.T) {
	for status, etag := range map[int]string{200: "", 304: depthETag} {
		d, ctx := cachedRead(t, etag)
		allocs := testing.AllocsPerRun(200, func() {
			ctx.Response.Reset()
			d.serve(ctx)
		})
		if allocs != 0 || ctx.Response.StatusCode() != status {
			t.Errorf("status %d: %.1f allocations, want %d and none", ctx.Response.StatusCode(), allocs, status)
		}
	}
}

// BenchmarkCachedDepth is a cached read inside the handler, without reading and
// writing the socket.
func BenchmarkCachedDepth(b *testing.B) {
	for name, etag := range map[string]string{"200": "", "304": depthETag} {
		b.Run(name, func(b *testing.B) {
			d, ctx := cachedRead(b, etag)
			b.ReportAllocs()
			for b.Loop() {
				ctx.Response.Reset()
				d.serve(ctx)
			}
		})
	}
}
