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
	// standbyGrace is what requests under way have when Run ends: what they get takes
	// no time, and the listeners are wanted for the leader's gateways.
	standbyGrace = 20 * time.Millisecond
	// standbyEnd is the longest that connections that were broken off may take.
	standbyEnd = 10 * time.Second
	// maxCloseRead is the most bytes of a client's message that are read while its
	// WebSocket is being closed.
	maxCloseRead = 16 << 10

	standbyMethods = "GET, HEAD, POST, OPTIONS"
)

// StandbyOptions configures a Standby. Of Options it reads what is about listening and
// connections. The zero value of a field means its default.
type StandbyOptions struct {
	Options
	// Leader returns who leads now. It must not block. Required.
	Leader func() leadership.Leader
	// CloseTimeout is how long the client of a WebSocket has to answer the close;
	// default 1 s.
	CloseTimeout time.Duration
}

// Standby holds the three public addresses of a node that does not lead. Requests
// are sent to the leader, 307 with the same path and query on its address of the
// same kind, or answered 503 LEADER_CHANGED while none is known; a WebSocket is opened
// and closed with 1012. That holds for every path, also those that there are not:
// the leader says so. Requests cost no tokens, connections are counted and timed as
// a Gateway does it. Its methods may be called from any goroutine.
type Standby struct {
	*publicServer
	leader   func() leadership.Leader
	closing  time.Duration // CloseTimeout
	upgrader websocket.FastHTTPUpgrader
}

// NewStandby listens on the three addresses and serves nothing yet; connections
// wait until Run. A caller that does not call Run calls Close.
func NewStandby(o StandbyOptions) (*Standby, error) {
	if o.Leader == nil {
		return nil, errors.New("httpgw: a standby needs to know the leader")
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
		// A WebSocket is counted until it is closed: it is not handed to anybody.
		server.ConnState = func(conn net.Conn, state fasthttp.ConnState) {
			if state == fasthttp.StateClosed {
				s.conns.Remove(conn)
			}
		}
		return server
	})
	return s, nil
}

// Run serves until ctx ends, then lets go of the listeners at once and breaks off,
// within some 20 ms, what is under way. It returns nil after an orderly end, and
// may be called once.
func (s *Standby) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	s.start(ctx, group, func(one *server) error {
		_ = one.listener.Close() // again in Shutdown, which reports whether that went well
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

// expect is fasthttp's ExpectHandler: nobody's body is wanted here.
func (d *standbyHandler) expect(ctx *fasthttp.RequestCtx) int {
	d.serve(ctx)
	return ctx.Response.StatusCode()
}

// farewell opens a WebSocket and closes it with 1012 and the leader's address.
func (d *standbyHandler) closeUpgraded(ctx *fasthttp.RequestCtx) {
	conn := ctx.Conn()
	why := closeReason(d.leader(), d.on)
	last := websocket.FormatCloseMessage(websocket.CloseServiceRestart, why)
	// An error is answered: noUpgrade.
	_ = d.upgrader.Upgrade(ctx, func(ws *websocket.Conn) {
		defer d.conns.Remove(conn)
		defer func() { _ = conn.Close() }() // who does not read it has gone
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

// noUpgrade answers an upgrade request that is none.
func (s *Standby) noUpgrade(ctx *fasthttp.RequestCtx, status int, _ error) {
	id := s.ids.Next()
	ctx.Response.Header.Set("Sec-WebSocket-Version", "13")
	ctx.SetConnectionClose()
	s.fail(ctx, &id, &wire.Problem{
		Status: status, Code: wire.CodeInvalidField, Reason: "websocket_upgrade", Text: "This is not an upgrade request of RFC 6455.",
	})
}
