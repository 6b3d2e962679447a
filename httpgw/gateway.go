package httpgw

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"time"

	"blockdesk/internal/ratelimit"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
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
	opts      Options
	log       *slog.Logger
	market    *marketPages
	desk      Desk       // nil = no RFQ routes
	settle    Settlement // nil = the chain is unavailable
	keys      Handshake  // nil = no token is good
	dvp       DvP        // nil = the chain is unavailable
	submits   *submitKeys
	groups    *groupRoutes // nil = the instruments are not split
	wide      *wideView    // all groups as one; nil with groups
	rfqAll    *rfqPages    // rfq, or that of all groups
	rfq       *rfqPages    // nil without a desk
	about     *page
	downloads []download
	human     *humanPages
	limits    [limitClassCount]*namedLimit
	proxies   proxies
	conns     *conns
	ids       *requestIDs
	gzip      gzipPool
	metrics   *metrics

	servers []server
}

// server is one address.
type server struct {
	on       surface
	listener net.Listener
	http     *fasthttp.Server
}

// rateLimit grants one request of a client, or refuses it, which changes nothing.
type rateLimit interface {
	Take(c ratelimit.Client) ratelimit.Allowance
}

// namedLimit is a limit with the lines of its headers, up to the requests that
// are left.
type namedLimit struct {
	rateLimit
	head []byte
}

// New listens on the three addresses and serves nothing yet; connections wait
// until Run. Whoever does not call Run calls Close.
func New(o Options, views Views, doors Doors) (*Gateway, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.applyDefaults()
	g := &Gateway{
		opts: o, log: o.Logger,
		market:  newMarketPages(o.Instruments, views, doors.History),
		desk:    doors.Desk,
		settle:  doors.Settlement,
		keys:    doors.Handshake,
		dvp:     doors.DvP,
		submits: newSubmitKeys(o.Now),
		proxies: proxies{trusted: o.TrustedProxies, header: o.ForwardedHeader},
		ids:     newRequestIDs(),
		metrics: newMetrics(),
	}
	g.market.signatures = doors.Signatures
	g.conns = newConns(o.MaxConns, o.MaxConnsPerIP, &g.proxies, g.ids, g.metrics.refused)
	g.conns.lines = commonLines[neverCached]
	if !o.NoLimits {
		g.limits[marketLimit] = bucketLimit("market", o.Market, &o)
		g.limits[partnerLimit] = bucketLimit("partner", o.Partner, &o)
		g.limits[rfqWriteLimit] = bucketLimit("rfq-write", o.RFQWrite, &o)
		g.limits[handshakeLimit] = bucketLimit("dvp-handshake", o.Handshake, &o)
		g.limits[dvpLimit] = windowLimit("dvp", o.DvP, &o)
	}
	if doors.Desk != nil {
		g.rfq = newRFQPages(g, doors.Desk, views, doors.Settlement)
		g.rfq.health = doors.ChainHealth
	}
	g.rfqAll = g.rfq
	var err error
	if o.Downloads != nil {
		g.downloads = slices.Clone(o.Downloads.all)
	}
	g.downloads = append(g.downloads, indexDownloads(g.downloads, len(o.Specification) > 0 && o.Downloads != nil)...)
	if g.human, err = newHumanPages(g); err != nil {
		return nil, err
	}
	if o.Groups != nil {
		if g.groups, err = newGroupRoutes(o.Groups, o.Now); err != nil {
			return nil, err
		}
		if doors, err = g.widen(views, doors); err != nil {
			return nil, err
		}
	}
	table := g.routes(doors)
	if err := g.listen(func(on surface) *fasthttp.Server {
		d := &door{g: g, on: on, router: newRouter(table, on, g.metrics)}
		return g.newServer(on, d.serve, d.expect)
	}); err != nil {
		return nil, err
	}
	if g.about, err = g.describe(table); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// listen binds the three addresses and gives each its server. After an error none
// is bound.
func (g *Gateway) listen(serverOf func(on surface) *fasthttp.Server) error {
	o := &g.opts
	for _, a := range []struct {
		on   surface
		addr string
	}{{onBase, o.Base}, {onAPI, o.API}, {onWS, o.WS}} {
		listener, err := o.Listen("tcp", a.addr)
		if err != nil {
			return errors.Join(fmt.Errorf("httpgw: %s address: %w", surfaceNames[a.on], err), g.Close())
		}
		limited := newLimitedListener(listener, g.conns)
		// Of the shortest timeout: 10 s may end after 9.4.
		limited.slack = min(o.ReadTimeout, o.WriteTimeout, o.IdleTimeout) / 16
		g.servers = append(g.servers, server{on: a.on, listener: limited, http: serverOf(a.on)})
	}
	return nil
}

func bucketLimit(name string, r Rate, o *Options) *namedLimit {
	return &namedLimit{
		ratelimit.NewBuckets(ratelimit.Of(r.PerMinute, time.Minute, r.Burst), o.MaxClients, o.Clock),
		// Beside the draft's quota and window, burst is ours.
		limitHead(name, r.PerMinute, ";burst="+strconv.Itoa(r.Burst)),
	}
}

func windowLimit(name string, w Window, o *Options) *namedLimit {
	return &namedLimit{ratelimit.NewWindows(w.PerMinute, o.MaxClients, o.Clock), limitHead(name, w.PerMinute, "")}
}

func limitHead(name string, perMinute int, more string) []byte {
	quoted, quota := strconv.Quote(name), strconv.Itoa(perMinute)
	return lines("RateLimit-Policy: "+quoted+";q="+quota+";w=60"+more, "X-RateLimit-Limit: "+quota, "RateLimit: "+quoted+";r=")
}

func (g *Gateway) newServer(on surface, serve fasthttp.RequestHandler, expect func(*fasthttp.RequestCtx) int) *fasthttp.Server {
	headerBytes := g.opts.MaxHeaderBytes
	if on == onWS {
		headerBytes = min(headerBytes, wsHeaderBytes)
	}
	return &fasthttp.Server{
		Handler:       serve,
		ExpectHandler: expect,
		ErrorHandler:  g.unreadable,
		ConnState:     g.conns.state,
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

// BaseAddr returns the base address that New listens on.
func (g *Gateway) BaseAddr() net.Addr { return g.servers[0].listener.Addr() }

// APIAddr returns the api address that New listens on.
func (g *Gateway) APIAddr() net.Addr { return g.servers[1].listener.Addr() }

// WSAddr returns the ws address that New listens on.
func (g *Gateway) WSAddr() net.Addr { return g.servers[2].listener.Addr() }

// Collectors returns this room's metrics, for AdminOptions.Collectors.
func (g *Gateway) Collectors() []prometheus.Collector {
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "blockdesk_http_connections",
		Help: "Open HTTP connections of all public addresses, upgraded ones left out.",
	}, func() float64 { return float64(g.conns.count()) })
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
				return fmt.Errorf("httpgw: serve %s: %w", surfaceNames[s.on], err)
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
	g.conns.closeAll()
	firm, cancelFirm := context.WithTimeout(context.Background(), breakOffTime)
	defer cancelFirm()
	if err := s.http.ShutdownWithContext(firm); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("httpgw: stop %s: %w", surfaceNames[s.on], err)
	}
	return nil
}

// unreadable answers a request that fasthttp could not read. Nothing of the
// request is known to be sound, so nothing of it is looked at.
func (g *Gateway) unreadable(ctx *fasthttp.RequestCtx, err error) {
	id := g.ids.next()
	var tooSmall *fasthttp.ErrSmallBuffer
	var netErr net.Error
	p := &problem{status: 400, code: codeMalformed, text: "This is not an HTTP request that the service can read."}
	switch {
	case errors.As(err, &tooSmall):
		p = &problem{
			status: 431, code: codeHeadersTooLarge,
			text: "The request line and the headers are longer than the service reads.",
		}
		drain(ctx)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		p = bodyTooLarge(g.opts.MaxBodyBytes)
		drain(ctx)
	case errors.As(err, &netErr) && netErr.Timeout():
		p = &problem{status: 408, code: codeRequestTimeout, text: "The request did not arrive in time."}
	}
	g.metrics.broken.WithLabelValues(strconv.Itoa(p.status)).Inc()
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
