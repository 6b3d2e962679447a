package fixgw

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/fixgw/history"
	"blockdesk/fixgw/marketdata"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/ratelimit"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

// Engine has the methods of the engine that the gateway needs.
type Engine interface {
	// Submit enqueues a command without waiting: engine.Engine.Submit.
	Submit(*engine.Command) error
	// SubmitAll enqueues the commands of one request, next to each other and all or
	// none: engine.Engine.SubmitAll.
	SubmitAll([]engine.Command) error
	// Enqueue is Submit without waking the matcher. RunInline must be called right after
	// it: it runs the engine on the caller's goroutine if the engine is idle, and then,
	// if Run's consumer waits, calls step in its place: engine.Engine.Enqueue and
	// RunInline.
	Enqueue(*engine.Command) error
	RunInline(step func())
	// NextOrderID returns an id that no order has had: engine.OrderIDs.Next.
	NextOrderID() market.OrderID
	// NextOrderIDs returns the first of n consecutive ids: engine.OrderIDs.NextN.
	NextOrderIDs(n int) market.OrderID
}

// Gateway is the FIX gateway. New opens its socket and reads its store, Replay processes the
// engine's events that the store lacks, Run serves.
type Gateway struct {
	*session.Server
	options      Options
	engine       Engine
	store        kv.Store
	dependencies Dependencies
	instruments  *market.Instruments
	reporter     *reporter
	history      *history.History
	rebuildRate  ratelimit.Rate
	answered     *answeredFilter
	market       *marketdata.Books
	statuses     *marketdata.Statuses
	securities   *marketdata.Securities
	canceller    *disconnectCanceller
	copies       dropCopies
	packages     *packageSender
	payments     *paymentVerifier

	ids *wire.IDs // of messages that no event causes

	duplicates, overloaded atomic.Uint64
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
	g := &Gateway{
		options: o, engine: e, store: kv.Named(store, "FIX store"), dependencies: dependencies, instruments: instruments,
		ids: wire.NewIDs(o.Now()), rebuildRate: ratelimit.NewRate(1, time.Second, maxRebuilds),
	}
	g.reporter = &reporter{gateway: g, orders: make(map[market.OrderID]*order), wake: make(chan struct{}, 1)}
	g.reporter.desk.reporter, g.reporter.step = g.reporter, g.reporter.runInline
	g.answered = newAnsweredFilter(g)
	g.canceller = newDisconnectCanceller(g)
	g.packages, g.payments = newPackageSender(g), newPaymentVerifier(g)
	if err := g.reporter.open(g.store); err != nil {
		return nil, err
	}
	var err error
	if g.history, err = history.Open(g.store, session.ErrLayout); err != nil {
		return nil, err
	}
	if g.Server, err = session.Open(o.Options, g.store, g); err != nil {
		return nil, err
	}
	g.market = marketdata.NewBooks(g.Server, dependencies.MarketData, instruments, o.MaxSubscriptions)
	g.statuses = marketdata.NewStatuses(g.market, o.Leadership.Follower(), o.Now)
	g.securities = &marketdata.Securities{Server: g.Server, Instruments: instruments, IDs: g.ids}
	if err := g.reporter.load(); err != nil {
		return nil, err
	}
	if err := g.payments.load(); err != nil {
		return nil, err
	}
	if err := g.Listen(); err != nil {
		return nil, err
	}
	return g, nil
}

// NewHandler implements session.Application.
func (g *Gateway) NewHandler(s *session.Session) session.Handler { return newBlotter(g, s) }

// blotterOf returns the blotter of a session.
func (g *Gateway) blotterOf(s *session.Session) *blotter { return s.Handler.(*blotter) }

// blotterNumbered returns the blotter of a session by its number, or nil. Any goroutine.
func (g *Gateway) blotterNumbered(number uint16) *blotter {
	if s := g.Numbered(number); s != nil {
		return g.blotterOf(s)
	}
	return nil
}

// deskClientNumbered returns the deskClient of a session by its number, or nil. Any
// goroutine.
func (g *Gateway) deskClientNumbered(number uint16) *deskClient {
	if b := g.blotterNumbered(number); b != nil {
		return b.desk
	}
	return nil
}

// blotters returns the blotters of all sessions, by their number. Any goroutine.
func (g *Gateway) blotters() []*blotter {
	sessions := g.All()
	list := make([]*blotter, 0, len(sessions))
	for _, s := range sessions {
		list = append(list, g.blotterOf(s))
	}
	return list
}

// Sessions returns every session, by its number, those that were removed since the start
// included.
func (g *Gateway) Sessions() []session.Status {
	blotters := g.blotters()
	list := make([]session.Status, 0, len(blotters))
	for _, b := range blotters {
		status := b.Status()
		b.mu.Lock()
		status.LiveOrders, status.PendingRequests = len(b.orders), b.pending
		b.mu.Unlock()
		list = append(list, status)
	}
	return list
}

// Cursor returns the Seq up to which all reports are in the store, though perhaps not
// synced. Replay needs the events of every later command.
func (g *Gateway) Cursor() uint64 { return g.reporter.store.Cursor() }

// DurableCursor returns the Cursor that survives a crash of the machine: the journal must
// keep the events after it.
func (g *Gateway) DurableCursor() uint64 { return g.reporter.store.DurableCursor() }

// Replay makes the reports of events that the store lacks after a crash. Before Run;
// events in their order, from Seq Cursor()+1 or before. Clients get the reports by a
// ResendRequest.
func (g *Gateway) Replay(events []event.Event) error {
	g.reporter.replaying = true
	defer func() { g.reporter.replaying = false }()
	if err := g.reporter.follow(events); err != nil {
		return err
	}
	return g.reporter.deliver()
}

// MarketUpdate implements engine.MarketSink: it publishes an instrument's new view.
func (g *Gateway) MarketUpdate(_, next *engine.View, trades []engine.Trade) {
	g.market.Update(next, trades)
}

// Stats returns the gateway's figures. Any goroutine.
func (g *Gateway) Stats() Stats {
	s := Stats{
		MessagesIn: g.In.Load(), MessagesOut: g.Out.Load(), Rejects: g.Rejects.Load(),
		Duplicates: g.duplicates.Load(), RateLimited: g.RateLimited.Load(), Overloaded: g.overloaded.Load(),
		Kicked: g.Kicks.Load(), RefusedLogons: g.RefusedLogons.Load(), LostEvents: g.reporter.orphanedEvents.Load(),
		Cursor: g.Cursor(),
	}
	if log := g.options.MessageLog; log != nil {
		s.UnloggedMessages = log.Lost()
	}
	s.Connections, s.Sessions, s.RefusedConns = g.Counts()
	for _, b := range g.blotters() {
		b.mu.Lock()
		s.LiveOrders += len(b.orders)
		b.mu.Unlock()
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
		followed <- g.reporter.Run(following, c)
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
	start(committer{g.reporter}.Run)
	start(g.answered.Run)
	start(g.packages.queue.Run)
	start(g.payments.queue.Run)
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
