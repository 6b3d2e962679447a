package fixgw

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quickfixgo/quickfix"
	"github.com/quickfixgo/quickfix/config"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/ratelimit"
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
	// consumer waits, calls step in the place of who waits: engine.Engine.Place
	// and Turn.
	Place(*engine.Command) error
	Turn(step func())
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
	options     Options
	rates       rates
	engine      Engine
	store       kv.Store
	doors       Doors
	hooks       claimHooks // set before Replay and Run
	instruments *market.Instruments
	validator   quickfix.Validator
	door        *door
	roster      atomic.Pointer[roster]
	noHash      *argonHash
	verifying   chan struct{} // a slot for each password being checked
	follower    *follower
	answered    *answered
	market      *marketData
	statuses    *statuses
	sweeper     *sweeper
	copies      dropCopies
	packer      *packer
	prover      *prover
	layer       layer
	stopping    atomic.Bool
	acceptors   acceptors
	news        announcer
	failed      chan error // capacity 1: the store's first error

	idPrefix string
	idCount  atomic.Uint64

	in, out, rejects, duplicates   atomic.Uint64
	rateLimited, overloaded, kicks atomic.Uint64
	refusedLogons                  atomic.Uint64
}

// layer is what stands on a session and what it asks of a Logon. It is always
// as productLayer has it, but in the test of the session alone: the acceptance
// scripts want an echo, heartbeats of two seconds and no word to a bad Logon.
type layer struct {
	application  quickfix.Application
	settings     map[string]string // quickfix's, of every session
	minHeartBt   int               // seconds
	silentRefuse bool              // a refused Logon is answered by closing
	express      bool              // ordinary requests go past quickfix: see express.go
}

func productLayer(g *Gateway) layer {
	return layer{application: app{g}, settings: productSettings(), minHeartBt: wire.MinHeartBtInt, express: g.options.ReadOnly == nil}
}

// productSettings leaves to our validator what quickfix would look at: that words its
// rejects.
func productSettings() map[string]string {
	return map[string]string{
		config.ValidateFieldsHaveValues: "N",
		config.ValidateFieldsOutOfOrder: "N",
		config.RejectInvalidMessage:     "N",
	}
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

// rates are what a session may do in a second. Above messages it gets business rejects,
// above flood its connection ends; resends bounds its ResendRequests.
type rates struct{ messages, flood, resends ratelimit.Rate }

// New opens the socket and reads the store. Close it, or Run it.
func New(o Options, e Engine, store kv.Store, doors Doors, instruments *market.Instruments) (*Gateway, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if o.Early != nil && !o.Early.fits(&o) {
		o.Early.Close()
		o.Early = nil
	}
	g := &Gateway{
		options: o, engine: e, store: kv.Named(store, "FIX store"), doors: doors, instruments: instruments,
		verifying: make(chan struct{}, MaxVerifies),
		rates: rates{
			messages: ratelimit.Of(o.Rate, time.Second, o.Rate), flood: ratelimit.Of(hardRate*o.Rate, time.Second, hardRate*o.Rate),
			resends: ratelimit.Of(1, time.Second, MaxResends),
		},
		failed: make(chan error, 1), idPrefix: "G" + strconv.FormatInt(o.Now().UnixNano(), 36) + "-",
	}
	g.follower = &follower{gateway: g, orders: make(map[market.OrderID]*order), wake: make(chan struct{}, 1)}
	g.follower.step = g.follower.lent
	g.answered = newAnswered(g)
	g.market = newMarketData(g, doors.MarketData)
	g.statuses = newStatuses(g)
	g.sweeper = newSweeper(g)
	g.packer, g.prover = newPacker(g), newProver(g)
	g.hooks = claimHooks{reserved: g.packer.reserved, settled: (*follower).captureClaim}
	g.layer = productLayer(g)
	var err error
	if o.Dictionary == nil {
		if o.Dictionary, err = ReadDictionary(); err != nil {
			return nil, err
		}
	}
	g.validator = o.Dictionary.validator
	if g.noHash, err = strayHash(); err != nil {
		return nil, err
	}
	if err := g.follower.open(g.store); err != nil {
		return nil, err
	}
	if err := g.openSessions(); err != nil {
		return nil, err
	}
	if err := g.follower.load(); err != nil {
		return nil, err
	}
	if err := g.prover.load(); err != nil {
		return nil, err
	}
	listener, err := o.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("fix: %w", err)
	}
	g.door = newDoor(g, listener)
	return g, nil
}

// openSessions makes the first roster. Run makes their acceptor.
func (g *Gateway) openSessions() error {
	empty := &roster{
		byCompID: make(map[string]*session),
		numbers:  make(map[string]market.ParticipantID), names: make(map[market.ParticipantID]string),
	}
	e, err := g.enlist(empty, slices.Clone(g.options.Participants))
	if err != nil {
		return err
	}
	for s, terms := range e.terms {
		s.terms.Store(terms)
	}
	g.roster.Store(e.next)
	for _, s := range e.fresh {
		g.copies.follow(s)
	}
	return nil
}

// secure puts TLS around an accepted connection, where it is configured.
func (g *Gateway) secure(inner net.Conn) net.Conn {
	if g.options.TLS == nil {
		return inner
	}
	return tls.Server(inner, g.options.TLS)
}

// localID appends an ExecID for a report that no event causes.
func (g *Gateway) localID(dst []byte) []byte {
	return strconv.AppendUint(append(dst, g.idPrefix...), g.idCount.Add(1), 10)
}

// fail ends Run with the first error of the store.
func (g *Gateway) fail(err error) {
	select {
	case g.failed <- err:
	default:
	}
}

// Addr returns the address that the gateway listens on.
func (g *Gateway) Addr() net.Addr { return g.door.Listener.Addr() }

// Close frees the socket of a gateway that is not run.
func (g *Gateway) Close() error {
	g.door.shut()
	return g.door.Listener.Close()
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
	s.Connections, _, s.RefusedConns = g.door.figures()
	for _, session := range g.sessions() {
		if session.loggedOn.Load() {
			s.Sessions++
		}
		session.mu.Lock()
		s.LiveOrders += len(session.orders)
		session.mu.Unlock()
	}
	s.Subscriptions, s.ConflatedUpdates, s.DroppedTrades = g.market.figures()
	return s
}

// Run serves until ctx ends or a store fails. c is followed to its end: stop the
// engine by the same ctx. Then the sessions are logged out and the stores closed.
// With Options.ReadOnly c is not read, and may be nil.
func (g *Gateway) Run(ctx context.Context, c projection.Consumer) error {
	if err := g.acceptors.start(g); err != nil {
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
		if g.options.ReadOnly != nil {
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
	g.stopping.Store(true)
	g.door.shut()
	select {
	case err := <-followed:
		result = errors.Join(result, err)
	case <-time.After(g.options.DrainTimeout):
		stopFollowing()
		result = errors.Join(result, fmt.Errorf("fix: engine's events: %w", <-followed))
	}
	stopWork()
	work.Wait()
	// Who is logged on hears why before the Logout, whose text says it again. An
	// error is the store's, which closing it tells.
	_, _ = g.announce(g.sessions(), g.farewell(), "Log on again when the service is back.")
	g.acceptors.stop()
	flushed := time.AfterFunc(2*g.options.FlushTimeout, cutConns)
	conns.Wait()
	flushed.Stop()
	cutConns()
	return errors.Join(result, endLog(), g.closeStores())
}

// runConns runs each connection that the door lets in, until the door is shut:
// one goroutine writes, another reads the Logon and, once it is proven, gives the
// connection to quickfix, which reads on.
func (g *Gateway) runConns(ctx context.Context, conns *sync.WaitGroup) {
	for {
		c, err := g.door.accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			g.fail(fmt.Errorf("fix: %w", err))
			return
		}
		conns.Go(func() { g.ran(c, c.Run(ctx)) })
		conns.Go(func() {
			if c.admit() != nil || c.session.Load().acceptor.hand(c) != nil {
				// Who reads no more has gone, whatever Close says.
				_ = c.Close()
			}
		})
	}
}

// ran logs why a connection has ended, where it is of interest.
func (g *Gateway) ran(c *conn, err error) {
	if errors.Is(err, errSlowReader) {
		g.options.Logger.Warn("connection_cut", "remote", c.RemoteAddr().String(), "reason", err.Error())
	}
}

// closeStores gives the reserved numbers back and makes everything safe.
func (g *Gateway) closeStores() error {
	var all error
	for _, s := range g.sessions() {
		all = errors.Join(all, s.messages.Close())
	}
	return all
}
