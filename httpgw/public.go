package httpgw

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"blockdesk/httpgw/wire"
)

const (
	// writeBuffer holds a whole depth answer. With fasthttp's default of 4 KiB, an answer
	// costs 1.6 times the CPU.
	writeBuffer = 16 << 10
	// wsHeaderBytes is the header limit of the ws address. The buffer lives as long as
	// the WebSocket.
	wsHeaderBytes = 4 << 10
	// Limits of drain.
	drainBytes = 256 << 10
	drainTime  = 250 * time.Millisecond
	// abortTime is how long Run waits for connections that it has closed.
	abortTime = 10 * time.Second
)

// publicServer owns the three public addresses: listeners, servers, connection limits,
// request ids, metrics and error answers. Gateway and Standby embed it. It is safe for
// concurrent use.
type publicServer struct {
	opts    Options
	log     *slog.Logger
	proxies *wire.Proxies
	conns   *wire.Conns
	ids     *wire.RequestIDs
	metrics *metrics
	servers []server
}

// server is one address.
type server struct {
	on       wire.Surface
	listener net.Listener
	http     *fasthttp.Server
}

// newPublicServer returns a server that does not listen yet.
func newPublicServer(o Options) *publicServer {
	f := &publicServer{
		opts: o, log: o.Logger, ids: wire.NewRequestIDs(), metrics: newMetrics(),
		proxies: wire.NewProxies(o.TrustedProxies, o.ForwardedHeader),
	}
	f.conns = wire.NewConns(o.MaxConns, o.MaxConnsPerIP, f.proxies, f.ids, f.metrics.refused, true)
	return f
}

// listen binds the three addresses. After an error none is bound.
func (f *publicServer) listen() error {
	o := &f.opts
	for _, a := range []struct {
		on   wire.Surface
		addr string
	}{{wire.OnBase, o.Base}, {wire.OnAPI, o.API}, {wire.OnWS, o.WS}} {
		listener, err := o.Listen("tcp", a.addr)
		if err != nil {
			return errors.Join(fmt.Errorf("httpgw: %s address: %w", wire.SurfaceNames[a.on], err), f.Close())
		}
		// A sixteenth of the shortest timeout: 10 s may end after 9.4 s.
		slack := min(o.ReadTimeout, o.WriteTimeout, o.IdleTimeout) / 16
		f.servers = append(f.servers, server{on: a.on, listener: wire.NewListener(listener, f.conns, slack)})
	}
	return nil
}

// setServers creates the server of each address.
func (f *publicServer) setServers(serverOf func(on wire.Surface) *fasthttp.Server) {
	for i := range f.servers {
		f.servers[i].http = serverOf(f.servers[i].on)
	}
}

func (f *publicServer) newServer(on wire.Surface, serve fasthttp.RequestHandler, expect func(*fasthttp.RequestCtx) int) *fasthttp.Server {
	headerBytes := f.opts.MaxHeaderBytes
	if on == wire.OnWS {
		headerBytes = min(headerBytes, wsHeaderBytes)
	}
	return &fasthttp.Server{
		Handler:       serve,
		ExpectHandler: expect,
		ErrorHandler:  f.answerUnreadable,
		ConnState:     f.conns.State,
		Logger:        quietLogger{f.log},

		ReadBufferSize:     headerBytes,
		WriteBufferSize:    writeBuffer,
		MaxRequestBodySize: f.opts.MaxBodyBytes,
		ReadTimeout:        f.opts.ReadTimeout,
		WriteTimeout:       f.opts.WriteTimeout,
		IdleTimeout:        f.opts.IdleTimeout,
		// conns refuses first. The margin is for workers that are still busy just after
		// their connection was closed.
		Concurrency: f.opts.MaxConns + 1024,

		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		SecureErrorLogMessage:        true,
		KeepHijackedConns:            true,
		CloseOnShutdown:              true,
	}
}

// BaseAddr returns the base address.
func (f *publicServer) BaseAddr() net.Addr { return f.servers[0].listener.Addr() }

// APIAddr returns the api address.
func (f *publicServer) APIAddr() net.Addr { return f.servers[1].listener.Addr() }

// WSAddr returns the ws address.
func (f *publicServer) WSAddr() net.Addr { return f.servers[2].listener.Addr() }

// Collectors returns the metrics of connections and requests.
func (f *publicServer) Collectors() []prometheus.Collector {
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "blockdesk_http_connections",
		Help: "Open HTTP connections of public addresses, without WebSockets.",
	}, func() float64 { return float64(f.conns.Count()) })
	m := f.metrics
	return []prometheus.Collector{&m.routes, m.broken, m.refused, m.panics, open}
}

// Close stops listening. Only a caller that does not call Run calls it.
func (f *publicServer) Close() error {
	var err error
	for i := range f.servers {
		err = errors.Join(err, f.servers[i].listener.Close())
	}
	return err
}

// start serves all addresses on goroutines of group. When ctx ends, it calls stop for
// each.
func (f *publicServer) start(ctx context.Context, group *errgroup.Group, stop func(*server) error) {
	for i := range f.servers {
		s := &f.servers[i]
		group.Go(func() error {
			if err := s.http.Serve(s.listener); err != nil {
				return fmt.Errorf("httpgw: serve %s: %w", wire.SurfaceNames[s.on], err)
			}
			return nil
		})
		group.Go(func() error {
			<-ctx.Done()
			return stop(s)
		})
	}
}

// answerUnreadable answers a request that fasthttp could not parse. It uses nothing of
// the request, because none of it is trustworthy.
func (f *publicServer) answerUnreadable(ctx *fasthttp.RequestCtx, err error) {
	id := f.ids.Next()
	var tooSmall *fasthttp.ErrSmallBuffer
	var netErr net.Error
	p := &wire.Problem{Status: 400, Code: wire.CodeMalformed, Text: "The request is not valid HTTP."}
	switch {
	case errors.As(err, &tooSmall):
		p = &wire.Problem{Status: 431, Code: wire.CodeHeadersTooLarge, Text: "The request line and headers are too long."}
		drain(ctx)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		p = wire.BodyTooLarge(f.opts.MaxBodyBytes)
		drain(ctx)
	case errors.As(err, &netErr) && netErr.Timeout():
		p = &wire.Problem{Status: 408, Code: wire.CodeRequestTimeout, Text: "The request did not arrive in time."}
	}
	f.metrics.broken.WithLabelValues(strconv.Itoa(p.Status)).Inc()
	// fasthttp sets the write deadline only after a handler ran. Here it is still that of
	// the previous answer.
	if err := ctx.Conn().SetWriteDeadline(time.Now().Add(f.opts.WriteTimeout)); err != nil {
		f.log.Debug("cannot set write deadline", "error", err)
	}
	f.fail(ctx, &id, p)
}

// drain reads and discards more of a request that was too large. fasthttp closes the
// connection after the answer, and closing a socket with unread bytes resets it, which
// makes the peer's kernel discard the answer.
func drain(ctx *fasthttp.RequestCtx) {
	conn := ctx.Conn()
	if conn.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	// The answer follows in any case.
	_, _ = io.CopyN(io.Discard, conn, drainBytes)
}

// quietLogger logs fasthttp's remarks about single connections at level Debug, because
// any client can cause as many as it likes.
type quietLogger struct{ log *slog.Logger }

// Printf logs one remark.
func (q quietLogger) Printf(format string, args ...any) {
	if q.log.Enabled(context.Background(), slog.LevelDebug) {
		q.log.Debug("http connection", "remark", fmt.Sprintf(format, args...))
	}
}

// recoverPanic answers a request whose handler panicked. It must be deferred.
func (f *publicServer) recoverPanic(ctx *fasthttp.RequestCtx, id *wire.RequestID) {
	broken := recover()
	if broken == nil {
		return
	}
	f.metrics.panics.Inc()
	f.log.Error("http handler panicked", "request_id", string(id[:]), "panic", broken, "stack", string(debug.Stack()))
	ctx.Response.Reset()
	f.fail(ctx, id, &wire.Problem{Status: 500, Code: wire.CodeInternal, Text: "Internal error. The log has details under the request_id."})
}

// fail writes an error and logs its cause, if it has one.
func (f *publicServer) fail(ctx *fasthttp.RequestCtx, id *wire.RequestID, p *wire.Problem) {
	if p.Cause != nil {
		f.log.Error("http request failed", "request_id", string(id[:]), "code", p.Code, "error", p.Cause)
	}
	wire.WriteProblem(ctx, id, p)
}
