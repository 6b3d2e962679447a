package fixgw

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/projection"
)

// Engine is what the gateway needs of the engine.
type Engine interface {
	// Submit hands a command over without waiting: engine.Engine.Submit.
	Submit(*engine.Command) error
	// SubmitAll does the same for the commands of one request, as neighbours and
	// whole or not at all: engine.Engine.SubmitAll.
	SubmitAll([]engine.Command) error
	// Place is Submit that wakes nobody. Turn must be called right after it: it
	// has the engine work, by the caller where it is idle, and then, where Run's
	// consumer waits, calls step in the place of who waits: engine.Engine.Enqueue
	// and Turn.
	Enqueue(*engine.Command) error
	RunInline(step func())
	// NextOrderID returns an id that no order has had: engine.OrderIDs.Next.
	NextOrderID() market.OrderID
}

// MarketData is where snapshots come from: engine.MarketData or feed.Feed. View
// may be called from any goroutine; nil = nothing yet.
type MarketData interface {
	View(market.InstrumentID) *engine.View
}

// Gateway is the FIX acceptor. New opens its socket and reads its store; Replay
// brings it up to the engine; Run works.
type Gateway struct {
	*server
	options      Options
	engine       Engine
	store        kv.Store
	dependencies Dependencies
	hooks        claimHooks // set before Replay and Run
	instruments  *market.Instruments
	follower     *follower
	answered     *answered
	market       *marketData
	statuses     *statuses
	sweeper      *sweeper
	copies       dropCopies
	packer       *packer
	prover       *prover

	idPrefix string
	idCount  atomic.Uint64

	duplicates, overloaded atomic.Uint64
}

// Stats is a moment's figures.
type Stats struct {
	Sessions         int    // logged on
	Connections      int    // sockets
	MessagesIn       uint64 // that reached a session
	MessagesOut      uint64 // application messages
	Rejects          uint64 // of messages, by us
	Duplicates       uint64 // ClOrdIDs answered again
	RateLimited      uint64
	Overloaded       uint64
	Kicked           uint64 // sessions we have logged out
	RefusedLogons    uint64
	RefusedConns     uint64 // no room
	LostEvents       uint64 // of sessions that are no more configured
	LiveOrders       int
	Subscriptions    int    // of market data
	ConflatedUpdates uint64 // market data replaced by a fresh snapshot
	DroppedTrades    uint64 // of market data, when it is far behind
	UnloggedMessages uint64 // that the message log has lost
	Cursor           uint64
}

// New opens the socket and reads the store. Close it, or Run it.
func New(o Options, e Engine, store kv.Store, dependencies Dependencies, instruments *market.Instruments) (*Gateway, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	g := &Gateway{
		options: o, engine: e, store: kv.Named(store, "FIX store"), dependencies: dependencies, instruments: instruments,
		idPrefix: "G" + strconv.FormatInt(o.Now().UnixNano(), 36) + "-",
	}
	g.follower = &follower{gateway: g, orders: make(map[market.OrderID]*order), wake: make(chan struct{}, 1)}
	g.follower.step = g.follower.lent
	g.answered = newAnswered(g)
	g.market = newMarketData(g, dependencies.MarketData)
	g.statuses = newStatuses(g)
	g.sweeper = newSweeper(g)
	g.packer, g.prover = newPacker(g), newProver(g)
	g.hooks = claimHooks{reserved: g.packer.reserved, settled: (*follower).captureClaim}
	if err := g.follower.open(g.store); err != nil {
		return nil, err
	}
	var err error
	if g.server, err = openServer(o.SessionOptions, g.store, g); err != nil {
		return nil, err
	}
	if err := g.follower.load(); err != nil {
		return nil, err
	}
	if err := g.prover.load(); err != nil {
		return nil, err
	}
	if err := g.listen(); err != nil {
		return nil, err
	}
	return g, nil
}

// open implements application.
func (g *Gateway) open(s *session) handler { return newBlotter(g, s) }

// blotterOf returns the blotter of a session.
func (g *Gateway) blotterOf(s *session) *blotter { return s.handler.(*blotter) }

// blotterNumbered returns the blotter of a session by its number, or nil. Any goroutine.
func (g *Gateway) blotterNumbered(number uint16) *blotter {
	if s := g.numbered(number); s != nil {
		return g.blotterOf(s)
	}
	return nil
}

// blotters returns those of all sessions, by their number. Any goroutine.
func (g *Gateway) blotters() []*blotter {
	sessions := g.sessions()
	list := make([]*blotter, 0, len(sessions))
	for _, s := range sessions {
		list = append(list, g.blotterOf(s))
	}
	return list
}

// Sessions returns every session, by its number: also those that were removed
// while this process runs.
func (g *Gateway) Sessions() []SessionStatus {
	blotters := g.blotters()
	list := make([]SessionStatus, 0, len(blotters))
	for _, b := range blotters {
		status := b.describe()
		b.mu.Lock()
		status.LiveOrders, status.PendingRequests = len(b.orders), b.pending
		b.mu.Unlock()
		list = append(list, status)
	}
	return list
}

// localID appends an ExecID for a report that no event causes.
func (g *Gateway) localID(dst []byte) []byte {
	return strconv.AppendUint(append(dst, g.idPrefix...), g.idCount.Add(1), 10)
}

// Cursor returns the Seq up to which all reports are in the store, though
// perhaps not synced. Replay wants the events of every later command.
func (g *Gateway) Cursor() uint64 { return g.follower.store.Cursor() }

// DurableCursor returns the Cursor that a crash of the machine leaves: the journal
// must keep the events after it.
func (g *Gateway) DurableCursor() uint64 { return g.follower.store.DurableCursor() }

// Replay makes the reports of events that a crash has kept from the store.
// Before Run; events in their order, from Seq Cursor()+1 or before. The clients
// get them when they ask for what they have missed.
func (g *Gateway) Replay(events []event.Event) error {
	g.follower.replaying = true
	defer func() { g.follower.replaying = false }()
	if err := g.follower.follow(events); err != nil {
		return err
	}
	return g.follower.deliver()
}

// MarketUpdate takes an instrument's new view: engine.MarketSink.
func (g *Gateway) MarketUpdate(_, next *engine.View, trades []engine.Trade) {
	g.market.update(next, trades)
}

// Stats returns the gateway's figures. Any goroutine.
func (g *Gateway) Stats() Stats {
	s := Stats{
		MessagesIn: g.in.Load(), MessagesOut: g.out.Load(), Rejects: g.rejects.Load(),
		Duplicates: g.duplicates.Load(), RateLimited: g.rateLimited.Load(), Overloaded: g.overloaded.Load(),
		Kicked: g.kicks.Load(), RefusedLogons: g.refusedLogons.Load(), LostEvents: g.follower.lost.Load(),
		Cursor: g.Cursor(),
	}
	if log := g.options.MessageLog; log != nil {
		s.UnloggedMessages = log.Lost()
	}
	s.Connections, s.Sessions, s.RefusedConns = g.figures()
	for _, b := range g.blotters() {
		b.mu.Lock()
		s.LiveOrders += len(b.orders)
		b.mu.Unlock()
	}
	s.Subscriptions, s.ConflatedUpdates, s.DroppedTrades = g.market.figures()
	return s
}

// Run serves until ctx ends or a store fails. c is followed to its end: stop the
// engine by the same ctx. Then the sessions are logged out and the stores closed.
// On a follower c is not read, and may be nil.
func (g *Gateway) Run(ctx context.Context, c projection.Consumer) error {
	if err := g.acceptors.start(g.server); err != nil {
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
		followed <- g.follower.Run(following, c)
	}()
	start := func(run func(context.Context) error) {
		work.Add(1)
		go func() {
			defer work.Done()
			if err := run(working); err != nil {
				g.fail(err)
			}
		}()
	}
	start(g.market.Run)
	start(g.sweeper.Run)
	start(saver{g.follower}.Run)
	start(g.answered.Run)
	start(g.packer.agenda.Run)
	start(g.prover.agenda.Run)
	start((&keeper{gateway: g}).Run)
	conns.Go(func() { g.runConns(serving, &conns) })
	endLog := g.options.MessageLog.run(base)

	var result error
	select {
	case <-ctx.Done():
	case result = <-g.failed:
	case result = <-followed:
		followed <- nil
	}
	g.shut()
	select {
	case err := <-followed:
		result = errors.Join(result, err)
	case <-time.After(g.options.DrainTimeout):
		stopFollowing()
		result = errors.Join(result, fmt.Errorf("fix: engine's events: %w", <-followed))
	}
	stopWork()
	work.Wait()
	g.logOut()
	flushed := time.AfterFunc(2*g.options.FlushTimeout, cutConns)
	conns.Wait()
	flushed.Stop()
	cutConns()
	return errors.Join(result, endLog(), g.closeStores())
}
