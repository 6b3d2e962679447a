package httpgw

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"blockdesk/httpgw/wire"
	"blockdesk/persist/leadership"
)

const (
	// standbyGrace is the time for requests in progress when Run ends. It is short because
	// their answers take no time and the new leader's gateways need the listeners.
	standbyGrace = 20 * time.Millisecond
	// standbyEnd bounds the wait for aborted connections.
	standbyEnd = 10 * time.Second
	// maxCloseRead bounds the bytes that are read of a client's message while its
	// WebSocket is being closed.
	maxCloseRead = 16 << 10

	standbyMethods = "GET, HEAD, POST, OPTIONS"
)

// StandbyOptions configures a Standby, which uses only the options of listening and
// connections. The zero value of a field means its default.
type StandbyOptions struct {
	Options
	// Leader returns the present leader. It must not block. Required.
	Leader func() leadership.Leader
	// CloseTimeout is how long a WebSocket client has to answer the close; default 1 s.
	CloseTimeout time.Duration
}

// Standby holds the three public addresses of a node that does not lead. It redirects
// every request, also of unknown paths, to the leader's address of the same kind (307,
// same path and query), or answers 503 LEADER_CHANGED while the leader is unknown. It
// opens a WebSocket and closes it with 1012. Requests cost no tokens; connections have
// the limits and timeouts of a Gateway. It is safe for concurrent use.
type Standby struct {
	*publicServer
	leader   func() leadership.Leader
	closing  time.Duration // CloseTimeout
	upgrader websocket.FastHTTPUpgrader
}

// NewStandby listens on the three addresses. Connections wait until Run serves them. A
// caller that does not call Run calls Close.
func NewStandby(o StandbyOptions) (*Standby, error) {
	if o.Leader == nil {
		return nil, errors.New("httpgw: standby: Leader is required")
	}
	o.Options.applyDefaults()
	if err := o.checkConns(); err != nil {
		return nil, err
	}
	s := &Standby{publicServer: newPublicServer(o.Options), leader: o.Leader, closing: cmp.Or(o.CloseTimeout, time.Second)}
	s.upgrader = websocket.FastHTTPUpgrader{
		ReadBufferSize: 256, WriteBufferSize: 256,
		CheckOrigin: func(*fasthttp.RequestCtx) bool { return true }, // nothing is read or published here
		Error:       s.noUpgrade,
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	s.setServers(func(on wire.Surface) *fasthttp.Server {
		d := &standbyHandler{Standby: s, on: on, stats: s.metrics.routes.route(wire.SurfaceNames[on], "standby")}
		server := s.newServer(on, d.serve, d.expect)
		// A WebSocket counts until it is closed, because package feed does not take it over.
		server.ConnState = func(conn net.Conn, state fasthttp.ConnState) {
			if state == fasthttp.StateClosed {
				s.conns.Remove(conn)
			}
		}
		return server
	})
	return s, nil
}

// Run serves until ctx ends. Then it closes the listeners at once and aborts requests in
// progress after standbyGrace. It returns nil after an orderly end, and may be called
// once.
func (s *Standby) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	s.start(ctx, group, func(one *server) error {
		_ = one.listener.Close() // Shutdown closes it again and reports the error
		polite, cancel := context.WithTimeout(context.Background(), standbyGrace)
		defer cancel()
		if err := one.http.ShutdownWithContext(polite); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("httpgw: stop standby %s: %w", wire.SurfaceNames[one.on], err)
		}
		return nil
	})
	err := group.Wait()
	for end := time.Now().Add(standbyEnd); s.conns.Count() > 0 && time.Now().Before(end); {
		s.conns.CloseAll()
		time.Sleep(time.Millisecond)
	}
	return err
}

// standbyHandler serves one address.
type standbyHandler struct {
	*Standby
	on    wire.Surface
	stats *routeStats
}

// serve answers one request. It is fasthttp's handler.
func (d *standbyHandler) serve(ctx *fasthttp.RequestCtx) {
	g := d.publicServer
	id := g.ids.Next()
	defer func() { d.stats.observe(ctx.Response.StatusCode(), time.Since(ctx.Time())) }()
	defer g.recoverPanic(ctx, &id)
	if wire.ReadHeader(&ctx.Request.Header).AmbiguousFraming {
		ctx.SetConnectionClose()
		g.fail(ctx, &id, wire.MalformedFraming())
		return
	}
	path, query := wire.SplitTarget(ctx)
	switch {
	case ctx.IsOptions():
		wire.WritePreflight(ctx, &id, standbyMethods)
	case wire.MethodOf(ctx.Method()) == 0:
		g.fail(ctx, &id, wire.MethodNotAllowed(standbyMethods))
	case wire.IsUpgrade(ctx) && string(path) == pathWebSocket:
		wire.WriteCommon(ctx, &id, wire.NeverCached)
		d.closeUpgraded(ctx)
	default:
		g.fail(ctx, &id, redirectToLeader(d.leader(), d.on, wire.JoinTarget(path, query)))
	}
}

// expect is fasthttp's ExpectHandler. It answers before the client sends a body.
func (d *standbyHandler) expect(ctx *fasthttp.RequestCtx) int {
	d.serve(ctx)
	return ctx.Response.StatusCode()
}

// closeUpgraded opens a WebSocket and closes it with 1012 and the leader's URL.
func (d *standbyHandler) closeUpgraded(ctx *fasthttp.RequestCtx) {
	conn := ctx.Conn()
	why := closeReason(d.leader(), d.on)
	last := websocket.FormatCloseMessage(websocket.CloseServiceRestart, why)
	// noUpgrade answers an error.
	_ = d.upgrader.Upgrade(ctx, func(ws *websocket.Conn) {
		defer d.conns.Remove(conn)
		defer func() { _ = conn.Close() }() // the client may be gone
		by := time.Now().Add(d.closing)
		if ws.WriteControl(websocket.CloseMessage, last, by) != nil || ws.SetReadDeadline(by) != nil {
			return
		}
		ws.SetReadLimit(maxCloseRead)
		for {
			if _, _, err := ws.NextReader(); err != nil {
				return
			}
		}
	})
}

// noUpgrade answers an invalid upgrade request.
func (s *Standby) noUpgrade(ctx *fasthttp.RequestCtx, status int, _ error) {
	id := s.ids.Next()
	ctx.Response.Header.Set("Sec-WebSocket-Version", "13")
	ctx.SetConnectionClose()
	s.fail(ctx, &id, &wire.Problem{
		Status: status, Code: wire.CodeInvalidField, Reason: "websocket_upgrade", Text: "This is not a valid upgrade request (RFC 6455).",
	})
}
