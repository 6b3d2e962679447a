package httpgw

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"blockdesk/catalog"
	"blockdesk/desk"
	"blockdesk/feed"
	"blockdesk/httpgw/dvp"
	marketapi "blockdesk/httpgw/market"
	rfqapi "blockdesk/httpgw/rfq"
	"blockdesk/httpgw/site"
	"blockdesk/httpgw/terms"
	"blockdesk/httpgw/wire"
	"blockdesk/market"
)

// Gateway serves the three public addresses. It is safe for concurrent use.
type Gateway struct {
	*publicServer
	urls   catalog.URLs
	market *marketapi.Endpoints
	rfq    *rfqapi.Endpoints // nil without a desk
	dvp    *dvp.Endpoints    // nil without a desk
	site   *site.Endpoints
	desk   terms.Desk   // nil = no RFQ routes
	shards *shardRouter // nil = the instruments are not split
	merged *mergedView  // all groups as one; nil with groups
	limits [wire.LimitClassCount]*wire.Limit
	gzip   wire.GzipPool
}

// New listens on the three addresses. Connections wait until Run serves them. A caller
// that does not call Run calls Close.
func New(o Options, views catalog.Views, d Dependencies) (*Gateway, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.applyDefaults()
	g := &Gateway{publicServer: newPublicServer(o), desk: d.Desk}
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
	g.setServers(func(on wire.Surface) *fasthttp.Server {
		d := &handler{g: g, on: on, router: newRouter(table, on, g.metrics)}
		return g.newServer(on, d.serve, d.expect)
	})
	return g, nil
}

// open creates the surfaces.
func (g *Gateway) open(views catalog.Views, d *Dependencies) error {
	o, facts, network := &g.opts, d.Facts, d.Network
	if network == nil {
		network = func() string { return catalog.ExecutionNetwork }
	}
	var all *marketapi.AllInstruments
	var allDesks *rfqapi.DeskSource
	if o.Shards != nil {
		var err error
		if g.shards, err = newShardRouter(o.Shards, o.Now); err != nil {
			return err
		}
		if g.merged, err = newMergedView(&g.opts, g.shards, g.desk, views, d.Facts); err != nil {
			return err
		}
		if facts != nil {
			facts = g.merged.Facts
		}
		all = &marketapi.AllInstruments{Set: g.merged.set, Status: g.merged.statusOf}
		allDesks = &rfqapi.DeskSource{Desk: mergedDeskView{g.merged}, Instruments: g.merged.set, Books: g.merged}
	}
	g.market = marketapi.New(marketapi.Options{
		Instruments: o.Instruments, Views: views, History: d.History, Signatures: d.Signatures, Swaps: d.Swaps, Facts: facts,
		Stream: d.Stream, Service: o.Description.Service, Now: o.Now, All: all,
	})
	if d.Desk != nil {
		backend := terms.Backend{Desk: d.Desk, Settlement: d.Settlement, Instruments: o.Instruments}
		g.rfq = rfqapi.New(rfqapi.Options{
			Backend: backend, Books: views, Health: d.ChainHealth, Network: network, Prices: d.Prices, About: &o.Description, URLs: g.urls, Now: o.Now, All: allDesks,
		})
		tokens := dvp.Options{Backend: backend, Handshake: d.Handshake, Cosigner: d.Cosigner, URLs: g.urls, TokenWindow: o.TokenWindow, Now: o.Now}
		if !o.NoLimits {
			tokens.HandshakeLimit, tokens.Limit = &o.Handshake, &o.DvP
		}
		g.dvp = dvp.New(tokens)
	}
	var err error
	g.site, err = site.New(site.Options{
		About: &o.Description, URLs: g.urls, Specification: o.Specification, Downloads: o.Downloads, DemoChain: o.DemoChain, FeeBps: o.FeeBps,
		RedirectTargets: o.RedirectTargets, Shards: boardShards(o.Shards), Facts: facts, Network: network,
	})
	return err
}

// URLs returns the public URLs: those of the options, or those of the listeners.
func (g *Gateway) URLs() catalog.URLs { return g.urls }

// Unpriced returns why a pair of the desk has no price now; see [rfqapi.Endpoints.Unpriced].
// Without a desk it returns an empty reason.
func (g *Gateway) Unpriced(in market.InstrumentID) string {
	if g.rfq == nil {
		return ""
	}
	return g.rfq.Unpriced(in)
}

// Accepting reports whether a claim would be reserved now, or why not; see
// [rfqapi.Endpoints.Accepting]. Without a desk it returns false and an empty reason.
func (g *Gateway) Accepting() (ok bool, whyNot string) {
	if g.rfq == nil {
		return false, ""
	}
	return g.rfq.Accepting()
}

// Tickets calls each for every ticket of market-tickets; see [rfqapi.Endpoints.Tickets].
// Without a desk it returns zeros.
func (g *Gateway) Tickets(each func(in market.InstrumentID, id market.TicketID, record []byte)) (seq uint64, at int64) {
	if g.rfq == nil {
		return 0, 0
	}
	return g.rfq.Tickets(each)
}

// TicketsHold returns for how long the records of Tickets stay as they are; see
// [rfqapi.Endpoints.TicketsHold]. Without a desk it returns an hour.
func (g *Gateway) TicketsHold() time.Duration {
	if g.rfq == nil {
		return time.Hour
	}
	return g.rfq.TicketsHold()
}

// Sales returns the desk's sales as the feed publishes them; see [rfqapi.Endpoints.Sales].
func (g *Gateway) Sales(in market.InstrumentID, after uint64, limit int) (all []feed.Sale, err error) {
	err = g.rfq.Sales(in, after, limit, func(s *desk.Sale, record []byte) {
		all = append(all, feed.Sale{Number: s.Number, Seq: s.Seq, At: s.Claim.ChangedAt, Record: record})
	})
	return all, err
}

// Collectors returns the metrics, for admin.Options.
func (g *Gateway) Collectors() []prometheus.Collector {
	all := g.publicServer.Collectors()
	if g.shards != nil {
		all = append(all, g.shards.forwarded)
	}
	return all
}

// Run serves until ctx ends. Then it stops accepting, gives requests in progress
// ShutdownTimeout to finish, and aborts the rest. It does not close WebSockets. It
// returns nil after an orderly end, and may be called once.
func (g *Gateway) Run(ctx context.Context) error {
	if g.shards != nil {
		defer g.shards.close()
	}
	group, ctx := errgroup.WithContext(ctx)
	if g.shards != nil {
		for _, to := range g.shards.all {
			group.Go(func() error { return g.pollShard(ctx, to) })
		}
	}
	g.start(ctx, group, g.stop)
	return group.Wait()
}

// stop ends one server.
func (g *Gateway) stop(s *server) error {
	polite, cancel := context.WithTimeout(context.Background(), g.opts.ShutdownTimeout)
	defer cancel()
	// Serve may not have begun; with a closed listener it ends at once. Shutdown closes
	// the listener again and reports the error.
	_ = s.listener.Close()
	err := s.http.ShutdownWithContext(polite)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	g.conns.CloseAll()
	firm, cancelFirm := context.WithTimeout(context.Background(), abortTime)
	defer cancelFirm()
	if err := s.http.ShutdownWithContext(firm); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("httpgw: stop %s: %w", wire.SurfaceNames[s.on], err)
	}
	return nil
}

// handler serves one address.
type handler struct {
	g      *Gateway
	on     wire.Surface
	router *router
}
