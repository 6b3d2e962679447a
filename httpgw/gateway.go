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

	"blockdesk/catalog"
	"blockdesk/httpgw/dvp"
	marketapi "blockdesk/httpgw/market"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
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

// Gateway serves the three public addresses. Its methods may be called from any
// goroutine.
type Gateway struct {
	opts    Options
	log     *slog.Logger
	urls    catalog.URLs
	market  *marketapi.Endpoints
	rfq     *rfqapi.Endpoints // nil without a desk
	dvp     *dvp.Endpoints    // nil without a desk
	site    *site.Endpoints
	desk    terms.Desk   // nil = no RFQ routes
	groups  *groupRoutes // nil = the instruments are not split
	wide    *wideView    // all groups as one; nil with groups
	limits  [wire.LimitClassCount]*wire.Limit
	proxies *wire.Proxies
	conns   *wire.Conns
	ids     *wire.RequestIDs
	gzip    wire.GzipPool
	metrics *metrics

	servers []server
}

// server is one address.
type server struct {
	on       wire.Surface
	listener net.Listener
	http     *fasthttp.Server
}

// New listens on the three addresses and serves nothing yet; connections wait
// until Run. A caller that does not call Run calls Close.
func New(o Options, views catalog.Views, d Dependencies) (*Gateway, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.applyDefaults()
	g := newListening(o)
	g.desk = d.Desk
	if !o.NoLimits {
		g.limits[wire.MarketLimit] = wire.NewRateLimit("market", o.Market, o.MaxClients, o.Clock)
		g.limits[wire.PartnerLimit] = wire.NewRateLimit("partner", o.Partner, o.MaxClients, o.Clock)
		g.limits[wire.RFQWriteLimit] = wire.NewRateLimit("rfq-write", o.RFQWrite, o.MaxClients, o.Clock)
		g.limits[wire.HandshakeLimit] = wire.NewRateLimit("dvp-handshake", o.Handshake, o.MaxClients, o.Clock)
		g.limits[wire.DvPLimit] = wire.NewWindowLimit("dvp", o.DvP, o.MaxClients, o.Clock)
	}
	if err := g.listen(); err != nil {
		return nil, err
	}
	g.urls = publicURLs(o.URLs, g.BaseAddr(), g.APIAddr(), g.WSAddr())
	if err := g.open(views, &d); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	table := g.routes(d)
	g.serveWith(func(on wire.Surface) *fasthttp.Server {
		d := &door{g: g, on: on, router: newRouter(table, on, g.metrics)}
		return g.newServer(on, d.serve, d.expect)
	})
	return g, nil
}

// newListening returns a gateway that counts and limits connections, and has no
// routes.
func newListening(o Options) *Gateway {
	g := &Gateway{
		opts: o, log: o.Logger, ids: wire.NewRequestIDs(), metrics: newMetrics(),
		proxies: wire.NewProxies(o.TrustedProxies, o.ForwardedHeader),
	}
	g.conns = wire.NewConns(o.MaxConns, o.MaxConnsPerIP, g.proxies, g.ids, g.metrics.refused, true)
	return g
}

// open makes the surfaces.
func (g *Gateway) open(views catalog.Views, d *Dependencies) error {
	o, facts := &g.opts, d.Facts
	var all *marketapi.AllInstruments
	var allDesks *rfqapi.DeskSource
	if o.Groups != nil {
		var err error
		if g.groups, err = newGroupRoutes(o.Groups, o.Now); err != nil {
			return err
		}
		if g.wide, err = newWideView(g, views, d.Facts); err != nil {
			return err
		}
		if facts != nil {
			facts = g.wide.Facts
		}
		all = &marketapi.AllInstruments{Set: g.wide.set, Status: g.wide.statusOf}
		allDesks = &rfqapi.DeskSource{Desk: wideDesk{g.wide}, Instruments: g.wide.set, Books: g.wide}
	}
	g.market = marketapi.New(marketapi.Options{
		Instruments: o.Instruments, Views: views, History: d.History, Signatures: d.Signatures, Facts: facts,
		Stream: d.Stream, Service: o.Description.Service, Now: o.Now, All: all,
	})
	if d.Desk != nil {
		sale := terms.Deal{Desk: d.Desk, Settlement: d.Settlement, Instruments: o.Instruments}
		g.rfq = rfqapi.New(rfqapi.Options{
			Deal: sale, Books: views, Health: d.ChainHealth, About: &o.Description, URLs: g.urls, Now: o.Now, All: allDesks,
		})
		tokens := dvp.Options{Deal: sale, Handshake: d.Handshake, DvP: d.DvP, URLs: g.urls, Now: o.Now}
		if !o.NoLimits {
			tokens.HandshakeLimit, tokens.Limit = &o.Handshake, &o.DvP
		}
		g.dvp = dvp.New(tokens)
	}
	var err error
	g.site, err = site.New(site.Options{
		About: &o.Description, URLs: g.urls, Specification: o.Specification, Downloads: o.Downloads, DemoChain: o.DemoChain,
		Elsewhere: o.Elsewhere, Groups: boardGroups(o.Groups), Facts: facts,
	})
	return err
}

// listen binds the three addresses. After an error none is bound.
func (g *Gateway) listen() error {
	o := &g.opts
	for _, a := range []struct {
		on   wire.Surface
		addr string
	}{{wire.OnBase, o.Base}, {wire.OnAPI, o.API}, {wire.OnWS, o.WS}} {
		listener, err := o.Listen("tcp", a.addr)
		if err != nil {
			return errors.Join(fmt.Errorf("httpgw: %s address: %w", wire.SurfaceNames[a.on], err), g.Close())
		}
		// Of the shortest timeout: 10 s may end after 9.4.
		slack := min(o.ReadTimeout, o.WriteTimeout, o.IdleTimeout) / 16
		g.servers = append(g.servers, server{on: a.on, listener: wire.NewListener(listener, g.conns, slack)})
	}
	return nil
}

// serveWith gives each address its server.
func (g *Gateway) serveWith(serverOf func(on wire.Surface) *fasthttp.Server) {
	for i := range g.servers {
		g.servers[i].http = serverOf(g.servers[i].on)
	}
}

func (g *Gateway) newServer(on wire.Surface, serve fasthttp.RequestHandler, expect func(*fasthttp.RequestCtx) int) *fasthttp.Server {
	headerBytes := g.opts.MaxHeaderBytes
	if on == wire.OnWS {
		headerBytes = min(headerBytes, wsHeaderBytes)
	}
	return &fasthttp.Server{
		Handler:       serve,
		ExpectHandler: expect,
		ErrorHandler:  g.unreadable,
		ConnState:     g.conns.State,
		Logger:        quietLogger{g.log},

		ReadBufferSize:     headerBytes,
		WriteBufferSize:    writeBuffer,
		MaxRequestBodySize: g.opts.MaxBodyBytes,
		ReadTimeout:        g.opts.ReadTimeout,
		WriteTimeout:       g.opts.WriteTimeout,
		IdleTimeout:        g.opts.IdleTimeout,
		// conns refuses first. A worker is free a moment later than its
		// connection is closed, hence the room.
		Concurrency: g.opts.MaxConns + 1024,

		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		SecureErrorLogMessage:        true,
		KeepHijackedConns:            true,
		CloseOnShutdown:              true,
	}
}

// URLs returns the public URLs: those of the options, or those of the listeners.
func (g *Gateway) URLs() catalog.URLs { return g.urls }

// Tickets calls each for every ticket of market-tickets; see [Endpoints.Tickets]. It
// returns zeros without a desk.
func (g *Gateway) Tickets(each func(in market.InstrumentID, id market.TicketID, record []byte)) (seq uint64, at int64) {
	if g.rfq == nil {
		return 0, 0
	}
	return g.rfq.Tickets(each)
}

// BaseAddr returns the base address that New listens on.
func (g *Gateway) BaseAddr() net.Addr { return g.servers[0].listener.Addr() }

// APIAddr returns the api address that New listens on.
func (g *Gateway) APIAddr() net.Addr { return g.servers[1].listener.Addr() }

// WSAddr returns the ws address that New listens on.
func (g *Gateway) WSAddr() net.Addr { return g.servers[2].listener.Addr() }

// Collectors returns this room's metrics, for Options.Collectors.
func (g *Gateway) Collectors() []prometheus.Collector {
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "blockdesk_http_connections",
		Help: "Open HTTP connections of all public addresses, upgraded ones left out.",
	}, func() float64 { return float64(g.conns.Count()) })
	m := g.metrics
	all := []prometheus.Collector{&m.routes, m.broken, m.refused, m.panics, open}
	if g.groups != nil {
		all = append(all, g.groups.forwarded)
	}
	return all
}

// Close stops listening. Only for a Gateway that Run was not called on.
func (g *Gateway) Close() error {
	var err error
	for i := range g.servers {
		err = errors.Join(err, g.servers[i].listener.Close())
	}
	return err
}

// Run serves until ctx ends, then accepts no more, lets requests under way
// finish for ShutdownTimeout, and breaks off the rest. WebSockets are not its
// to close. It returns nil after an orderly end, and may be called once.
func (g *Gateway) Run(ctx context.Context) error {
	if g.groups != nil {
		defer g.groups.close()
	}
	group, ctx := errgroup.WithContext(ctx)
	if g.groups != nil {
		for _, to := range g.groups.all {
			group.Go(func() error { return g.follow(ctx, to) })
		}
	}
	for i := range g.servers {
		s := &g.servers[i]
		group.Go(func() error {
			if err := s.http.Serve(s.listener); err != nil {
				return fmt.Errorf("httpgw: serve %s: %w", wire.SurfaceNames[s.on], err)
			}
			return nil
		})
		group.Go(func() error {
			<-ctx.Done()
			return g.stop(s)
		})
	}
	return group.Wait()
}

// stop ends one server.
func (g *Gateway) stop(s *server) error {
	polite, cancel := context.WithTimeout(context.Background(), g.opts.ShutdownTimeout)
	defer cancel()
	// Serve may not have begun; it ends at once where the listener is closed.
	// Shutdown closes it again and tells whether that went well.
	_ = s.listener.Close()
	err := s.http.ShutdownWithContext(polite)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	g.conns.CloseAll()
	firm, cancelFirm := context.WithTimeout(context.Background(), breakOffTime)
	defer cancelFirm()
	if err := s.http.ShutdownWithContext(firm); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("httpgw: stop %s: %w", wire.SurfaceNames[s.on], err)
	}
	return nil
}

// unreadable answers a request that fasthttp could not read. Nothing of the
// request is known to be sound, so nothing of it is looked at.
func (g *Gateway) unreadable(ctx *fasthttp.RequestCtx, err error) {
	id := g.ids.Next()
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
		p = wire.BodyTooLarge(g.opts.MaxBodyBytes)
		drain(ctx)
	case errors.As(err, &netErr) && netErr.Timeout():
		p = &wire.Problem{Status: 408, Code: wire.CodeRequestTimeout, Text: "The request did not arrive in time."}
	}
	g.metrics.broken.WithLabelValues(strconv.Itoa(p.Status)).Inc()
	// fasthttp sets the deadline anew for what a handler has answered, and not
	// for this: it would still be that of the answer before.
	if err := ctx.Conn().SetWriteDeadline(time.Now().Add(g.opts.WriteTimeout)); err != nil {
		g.log.Debug("http connection", "remark", "no write deadline", "error", err)
	}
	g.fail(ctx, &id, p)
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
func (g *Gateway) catch(ctx *fasthttp.RequestCtx, id *wire.RequestID) {
	broken := recover()
	if broken == nil {
		return
	}
	g.metrics.panics.Inc()
	g.log.Error("http handler panicked", "request_id", string(id[:]), "panic", broken, "stack", string(debug.Stack()))
	ctx.Response.Reset()
	g.fail(ctx, id, &wire.Problem{
		Status: 500, Code: wire.CodeInternal, Text: "The service could not answer. The request_id names the log's entry.",
	})
}

// fail writes an error, and logs its cause if it has one.
func (g *Gateway) fail(ctx *fasthttp.RequestCtx, id *wire.RequestID, p *wire.Problem) {
	if p.Cause != nil {
		g.log.Error("http request failed", "request_id", string(id[:]), "code", p.Code, "error", p.Cause)
	}
	wire.WriteProblem(ctx, id, p)
}
