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
	// writeBuffer holds a whole depth answer: at fasthttp's default of 4 KiB one
	// costs 1.6 × the CPU.
	writeBuffer = 16 << 10
	// wsHeaderBytes is the header limit of the ws address. The buffer stays with
	// the connection for as long as the WebSocket lives.
	wsHeaderBytes = 4 << 10
	// Reading on after a request that was too large, so that the answer is not
	// lost to a connection reset: see drain.
	drainBytes = 256 << 10
	drainTime  = 250 * time.Millisecond
	// breakOffTime is the longest that Run waits for connections that it has closed.
	breakOffTime = 10 * time.Second
)

// front is the three public addresses: their listeners and servers, the limits of
// their connections, and what an answer needs before there is a route. Its methods may
// be called from any goroutine.
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

// newPublicServer returns a front that counts and limits connections, and does not listen.
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
		// Of the shortest timeout: 10 s may end after 9.4.
		slack := min(o.ReadTimeout, o.WriteTimeout, o.IdleTimeout) / 16
		f.servers = append(f.servers, server{on: a.on, listener: wire.NewListener(listener, f.conns, slack)})
	}
	return nil
}

// setServers gives each address its server.
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
		// conns refuses first. A worker is free a moment later than its
		// connection is closed, hence the margin.
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

// Collectors returns the metrics, for Options.Collectors.
func (f *publicServer) Collectors() []prometheus.Collector {
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "blockdesk_http_connections",
		Help: "Open HTTP connections of all public addresses, upgraded ones left out.",
	}, func() float64 { return float64(f.conns.Count()) })
	m := f.metrics
	return []prometheus.Collector{&m.routes, m.broken, m.refused, m.panics, open}
}

// Close stops listening. It is for a caller that does not call Run.
func (f *publicServer) Close() error {
	var err error
	for i := range f.servers {
		err = errors.Join(err, f.servers[i].listener.Close())
	}
	return err
}

// start serves all addresses in a group until ctx ends, and then stops each.
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

// unreadable answers a request that fasthttp could not read. Nothing of the
// request is known to be sound, so nothing of it is looked at.
func (f *publicServer) answerUnreadable(ctx *fasthttp.RequestCtx, err error) {
	id := f.ids.Next()
	var tooSmall *fasthttp.ErrSmallBuffer
	var netErr net.Error
	p := &wire.Problem{Status: 400, Code: wire.CodeMalformed, Text: "This is not an HTTP request that the service can read."}
	switch {
	case errors.As(err, &tooSmall):
		p = &wire.Problem{
			Status: 431, Code: wire.CodeHeadersTooLarge,
			Text: "The request line and the headers are longer than the service reads.",
		}
		drain(ctx)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		p = wire.BodyTooLarge(f.opts.MaxBodyBytes)
		drain(ctx)
	case errors.As(err, &netErr) && netErr.Timeout():
		p = &wire.Problem{Status: 408, Code: wire.CodeRequestTimeout, Text: "The request did not arrive in time."}
	}
	f.metrics.broken.WithLabelValues(strconv.Itoa(p.Status)).Inc()
	// fasthttp sets the deadline anew for what a handler has answered, and not
	// for this: it would still be that of the answer before.
	if err := ctx.Conn().SetWriteDeadline(time.Now().Add(f.opts.WriteTimeout)); err != nil {
		f.log.Debug("http connection", "remark", "no write deadline", "error", err)
	}
	f.fail(ctx, &id, p)
}

// drain reads on for a moment. fasthttp closes right after the answer, and
// closing a socket that holds unread bytes resets it, which makes the peer's
// kernel throw the answer away.
func drain(ctx *fasthttp.RequestCtx) {
	conn := ctx.Conn()
	if conn.SetReadDeadline(time.Now().Add(drainTime)) != nil {
		return
	}
	// Whatever ends this, the answer follows.
	_, _ = io.CopyN(io.Discard, conn, drainBytes)
}

// quietLogger takes fasthttp's remarks about single connections. A stranger can
// cause as many as he likes, so they show at Debug only.
type quietLogger struct{ log *slog.Logger }

// Printf logs one remark.
func (q quietLogger) Printf(format string, args ...any) {
	if q.log.Enabled(context.Background(), slog.LevelDebug) {
		q.log.Debug("http connection", "remark", fmt.Sprintf(format, args...))
	}
}

// catch, deferred, answers a request whose handler has panicked.
func (f *publicServer) recoverPanic(ctx *fasthttp.RequestCtx, id *wire.RequestID) {
	broken := recover()
	if broken == nil {
		return
	}
	f.metrics.panics.Inc()
	f.log.Error("http handler panicked", "request_id", string(id[:]), "panic", broken, "stack", string(debug.Stack()))
	ctx.Response.Reset()
	f.fail(ctx, id, &wire.Problem{
		Status: 500, Code: wire.CodeInternal, Text: "The service could not answer. The request_id names the log's entry.",
	})
}

// fail writes an error, and logs its cause if it has one.
func (f *publicServer) fail(ctx *fasthttp.RequestCtx, id *wire.RequestID, p *wire.Problem) {
	if p.Cause != nil {
		f.log.Error("http request failed", "request_id", string(id[:]), "code", p.Code, "error", p.Cause)
	}
	wire.WriteProblem(ctx, id, p)
}
