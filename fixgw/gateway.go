package fixgw

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"blockdesk/engine/event"
	md "blockdesk/engine/marketdata"
	"blockdesk/fixgw/history"
	"blockdesk/fixgw/marketdata"
	"blockdesk/fixgw/orders"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/rfq"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

// Engine has the methods of the engine that the gateway needs.
type Engine interface {
	orders.Engine
	// RunInline must be called right after Enqueue: it runs the engine on the caller's
	// goroutine if the engine is idle, and then, if Run's consumer waits, calls step in its
	// place: engine.Engine.RunInline.
	RunInline(step func())
}

// Dependencies are the parts of the process that the gateway asks. A nil one is not in
// this process: a request that needs it is refused with that reason.
type Dependencies struct {
	MarketData marketdata.Source // answers MarketDataRequests
	Desk       rfq.Desk          // answers QuoteRequests and orders that name a quote
	Settlement rfq.Settlement    // answers claims and reports of payments
}

// Gateway is the FIX gateway. New opens its socket and reads its store, Replay processes the
// engine's events that the store lacks, Run serves.
type Gateway struct {
	*session.Server
	options     Options
	engine      Engine
	desk        rfq.Desk
	instruments *market.Instruments
	ids         *wire.IDs // of messages that no event causes

	requests *reports.Requests
	reporter *reports.Reporter
	follower *reports.Follower
	step     func() // follows events that were made inline; bound once

	ordering   session.Directory[orders.Session]
	orderEntry *orders.Entry
	orders     *orders.Reporter
	canceller  *orders.Canceller

	quoting    session.Directory[rfq.Session]
	quoteEntry *rfq.Entry
	quotes     *rfq.Reporter
	packages   *rfq.Packages
	payments   *rfq.Payments

	history     *history.History
	rebuildRate ratelimit.Rate
	market      *marketdata.Books
	statuses    *marketdata.Statuses
	securities  *marketdata.Securities
}

// Stats are the gateway's figures at one moment.
type Stats struct {
	Sessions         int    // logged on
	Connections      int    // sockets
	MessagesIn       uint64 // that a session has received
	MessagesOut      uint64 // application messages
	Rejects          uint64 // of messages, by us
	Duplicates       uint64 // repeated ClOrdIDs, answered again
	RateLimited      uint64
	Overloaded       uint64
	Kicked           uint64 // sessions that the service has logged out
	RefusedLogons    uint64
	RefusedConns     uint64 // because of a limit
	LostEvents       uint64 // of sessions that are not configured any more
	LiveOrders       int
	Subscriptions    int    // of market data
	ConflatedUpdates uint64 // of market data, replaced by a snapshot
	DroppedTrades    uint64 // of market data, when it is far behind
	UnloggedMessages uint64 // that the message log has lost
	Cursor           uint64
}

// New opens the socket and reads the store. The caller closes the Gateway, or runs it.
func New(o Options, e Engine, store kv.Store, dependencies Dependencies, instruments *market.Instruments) (*Gateway, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	store = kv.Named(store, "FIX store")
	server, err := session.New(o.Options, store)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		Server: server, options: o, engine: e, desk: dependencies.Desk, instruments: instruments,
		rebuildRate: ratelimit.NewRate(1, time.Second, maxRebuilds),
	}
	if err := g.openReports(store); err != nil {
		return nil, err
	}
	g.makeParts(store, dependencies)
	if err := server.Open(g.newHandler); err != nil {
		return nil, err
	}
	for _, step := range [...]func() error{g.orders.Load, g.quotes.Load, g.payments.Load, server.Listen} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// openReports opens what the reports of all parts share.
func (g *Gateway) openReports(store kv.Store) (err error) {
	g.requests = reports.NewRequests(store, g.options.Now)
	g.requests.MaxPending, g.requests.MaxClosed = g.options.MaxPendingOrders, g.options.ClosedRefs
	g.ids = g.requests.IDs
	sessions := session.NewDirectory(g.Server, func(h session.Handler) *reports.Session { return h.(*handler).requests })
	if g.reporter, err = reports.OpenReporter(store, g.requests, sessions); err != nil {
		return err
	}
	g.history, err = history.Open(store, session.ErrLayout)
	return err
}

// makeParts makes the parts, which have no sessions yet.
func (g *Gateway) makeParts(store kv.Store, d Dependencies) {
	o := &g.options
	g.ordering = session.NewDirectory(g.Server, func(h session.Handler) *orders.Session { return h.(*handler).orders })
	g.orderEntry = &orders.Entry{
		Engine: g.engine, Instruments: g.instruments, Store: store, Leadership: o.Leadership, Requests: g.requests, Now: o.Now, Format1: o.Format1,
	}
	g.orders = orders.NewReporter(g.reporter, g.ordering, g.instruments, g.history)
	g.canceller = orders.NewCanceller(g.orderEntry, g.ordering, o.RestartGrace)

	g.quoting = session.NewDirectory(g.Server, func(h session.Handler) *rfq.Session { return h.(*handler).quotes })
	g.quoteEntry = &rfq.Entry{
		Engine: g.engine, Desk: d.Desk, Settlement: d.Settlement, Instruments: g.instruments, Store: store, Requests: g.requests, Now: o.Now,
		MaxQuotes: o.MaxQuotes, Group: o.Group, Format1: o.Format1,
	}
	g.packages = rfq.NewPackages(g.quoteEntry, g.quoting, o.MaxPackages, o.Logger)
	limits := rfq.PaymentLimits{Reports: o.MaxProofs, SessionReports: o.MaxSessionProofs, Timeout: o.ProofTimeout}
	g.payments = rfq.NewPayments(g.quoteEntry, g.quoting, limits, o.Logger)
	g.quotes = rfq.NewReporter(g.reporter, g.quoting, g.instruments, g.packages)

	g.market = marketdata.NewBooks(g.Server, d.MarketData, g.instruments, o.MaxSubscriptions)
	g.statuses = marketdata.NewStatuses(g.market, o.Leadership.Follower(), o.Now)
	g.securities = &marketdata.Securities{Server: g.Server, Instruments: g.instruments, IDs: g.ids}

	g.follower = reports.NewFollower(g.reporter, o.SyncEvery, g.apply, g.orders, g.quotes)
	g.step = func() {
		if err := g.follower.RunInline(); err != nil {
			g.Fail(err)
		}
	}
}

// apply has each event processed by the part that it belongs to.
func (g *Gateway) apply(e *event.Event) error {
	switch e.Kind {
	case event.Desk:
		return g.quotes.Apply(e)
	case event.InstrumentSet, event.Auction:
		if g.reporter.Stored() {
			return nil
		}
		g.reporter.At = e.At
		publish := g.statuses.Changed
		if e.Kind == event.Auction {
			publish = g.statuses.Auction
		}
		publish(e, func(s *session.Session, msgType string, firstTag int, body []byte) {
			g.reporter.Emit(handlerOf(s).requests, msgType, firstTag, body)
		})
		return nil
	}
	return g.orders.Apply(e)
}

// Sessions returns every session, by its number, those that were removed since the start
// included.
func (g *Gateway) Sessions() []session.Status {
	all := g.All()
	list := make([]session.Status, 0, len(all))
	for _, s := range all {
		h, status := handlerOf(s), s.Status()
		status.LiveOrders, status.PendingRequests = h.orders.Live(), h.requests.Counts().Pending
		list = append(list, status)
	}
	return list
}

// Cursor returns the Seq up to which all reports are in the store, though perhaps not
// synced. Replay needs the events of every later command.
func (g *Gateway) Cursor() uint64 { return g.reporter.Store().Cursor() }

// DurableCursor returns the Cursor that survives a crash of the machine: the journal must
// keep the events after it.
func (g *Gateway) DurableCursor() uint64 { return g.reporter.Store().DurableCursor() }

// Replay makes the reports of events that the store lacks after a crash. Before Run;
// events in their order, from Seq Cursor()+1 or before. Clients get the reports by a
// ResendRequest.
func (g *Gateway) Replay(events []event.Event) error { return g.follower.Replay(events) }

// MarketUpdate implements Sink of engine/marketdata: it publishes an instrument's new view.
func (g *Gateway) MarketUpdate(_, next *md.View, trades []md.Trade) {
	g.market.Update(next, trades)
}

// Followed reports whether a session has subscribed to market data. Any goroutine.
func (g *Gateway) Followed() bool { return g.market.Followed() }

// Stats returns the gateway's figures. Any goroutine.
func (g *Gateway) Stats() Stats {
	s := Stats{
		MessagesIn: g.In.Load(), MessagesOut: g.Out.Load(), Rejects: g.Rejects.Load(),
		Duplicates: g.requests.Duplicates.Load(), RateLimited: g.RateLimited.Load(), Overloaded: g.requests.Overloaded.Load(),
		Kicked: g.Kicks.Load(), RefusedLogons: g.RefusedLogons.Load(), LostEvents: g.reporter.OrphanedEvents.Load(),
		Cursor: g.Cursor(),
	}
	if log := g.options.MessageLog; log != nil {
		s.UnloggedMessages = log.Lost()
	}
	s.Connections, s.Sessions, s.RefusedConns = g.Counts()
	for _, own := range g.ordering.All() {
		s.LiveOrders += own.Live()
	}
	s.Subscriptions, s.ConflatedUpdates, s.DroppedTrades = g.market.Counts()
	return s
}

// Run serves until ctx ends or a store fails. c is followed to its end: the caller stops
// the engine by the same ctx. Then the sessions are logged out and the stores closed. A
// follower's gateway does not read c, which may be nil.
func (g *Gateway) Run(ctx context.Context, c projection.Consumer) error {
	if err := g.StartSessions(); err != nil {
		return errors.Join(err, g.Close())
	}
	base := context.WithoutCancel(ctx)
	working, stopWork := context.WithCancel(base)
	serving, cutConns := context.WithCancel(base)
	following, stopFollowing := context.WithCancel(base)
	defer stopFollowing()
	var work, conns sync.WaitGroup
	followed := make(chan error, 1)
	go func() {
		if g.options.Leadership.Follower() {
			<-ctx.Done() // the reports are the leader's to make
			followed <- nil
			return
		}
		followed <- g.follow(following, c)
	}()
	start := func(run func(context.Context) error) {
		work.Add(1)
		go func() {
			defer work.Done()
			if err := run(working); err != nil {
				g.Fail(err)
			}
		}()
	}
	start(g.market.Run)
	start(g.canceller.Run)
	start(g.follower.RunCommits)
	start(g.requests.FillFilter)
	start(g.packages.Run)
	start(g.RollSequences)
	start(g.payments.Run)
	start((&maintenance{gateway: g}).Run)
	conns.Go(func() { g.Serve(serving, &conns) })
	endLog := g.options.MessageLog.Start(base)

	var result error
	select {
	case <-ctx.Done():
	case result = <-g.FirstError():
	case result = <-followed:
		followed <- nil
	}
	g.StopAccepting()
	select {
	case err := <-followed:
		result = errors.Join(result, err)
	case <-time.After(g.options.DrainTimeout):
		stopFollowing()
		result = errors.Join(result, fmt.Errorf("fix: follow the engine's events: %w", <-followed))
	}
	stopWork()
	work.Wait()
	g.LogOut()
	flushed := time.AfterFunc(2*g.options.FlushTimeout, cutConns)
	conns.Wait()
	flushed.Stop()
	cutConns()
	return errors.Join(result, endLog(), g.CloseStores())
}

// follow reports the events of c until it ends or a store fails.
func (g *Gateway) follow(ctx context.Context, c projection.Consumer) error {
	if g.desk != nil {
		g.quotes.Start(g.desk.View())
		if g.quotes.Changed() {
			if err := g.follower.Commit(true); err != nil {
				return err
			}
		}
		g.quotes.QueuePackages()
	}
	return g.follower.Run(ctx, c)
}
