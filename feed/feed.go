package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// Errors of New, Run and the acceptance of a connection.
var (
	errNotBegun = errors.New("feed: Run was called before Begin")
	errRunTwice = errors.New("feed: Run was called twice")
)

const (
	// arenaSize is the size in bytes of the chunks that hold the encoded updates.
	arenaSize = 64 << 10
	// catchUpEvents is the size of a slice of events from which on Run publishes once in
	// catchUpEvents events instead of after every batch. A stream that skips a sequence
	// number because of that continues with a snapshot.
	catchUpEvents = 8192
	// maxGather bounds the publications that wait for the end of a slice of events before
	// the shards get them.
	maxGather = 64
	// batchWait is the pause between two checks for the end of a batch.
	batchWait = time.Millisecond
)

// Events is the source of durable events; *engine.Consumer is one.
type Events interface {
	// Next blocks until there are events, ctx ends (its error) or the events
	// have ended (io.EOF).
	Next(ctx context.Context) ([]event.Event, error)
	// Poll is Next without waiting.
	Poll() []event.Event
	// Release returns n events to the source.
	Release(n int)
	// AtBatchEnd reports whether the events returned by Next and Poll end with a batch.
	// If not, more events will come, or the next call returns true.
	AtBatchEnd() bool
}

// Book turns events into views; *marketdata.Data is one.
type Book interface {
	Apply(*event.Event)
	// Advance moves the 24 h windows to a time, Unix nanoseconds.
	Advance(at int64)
	// Flush makes new views of the instruments that have changed and calls pub, unless it
	// is nil, for each. It is called between batches only.
	Flush(pub func(prev, next *marketdata.View, trades []marketdata.Trade))
	View(market.InstrumentID) *marketdata.View
}

// Feed publishes market data: see the package. Attach, ServeTickets and ServeSales must be
// called before Run; the other methods may be called from any goroutine.
type Feed struct {
	o        Options
	set      *market.Instruments
	book     Book
	sinks    []marketdata.Sink
	views    []atomic.Pointer[marketdata.View]
	lists    []atomic.Pointer[deskList] // of instrument i and desk kind k at i*deskKinds+k-marketKinds
	topics   []sharedTopic
	shards   []*shard
	desk     deskPublisher
	orders   orderTracker
	upgrader websocket.FastHTTPUpgrader
	limits   limits
	stats    counters

	epoch     atomic.Uint64
	running   atomic.Bool
	started   atomic.Bool
	accepted  chan *conn
	halted    chan struct{} // closed when no more connections are accepted
	nextShard atomic.Uint64

	// Run's own.
	enc      encoder
	arena    []byte
	pubs     []publication
	at       int64  // time of the batch being applied, Unix ns
	batchSeq uint64 // last command of the last published batch
	// lastPublished is the batchSeq that the shards have. It also advances for commands
	// without market data, because a replica may have published them as an event id.
	lastPublished uint64
	unflushed     int // events applied since the last flush
}

// New is Open and Begin.
func New(o Options, instruments []market.Instrument, book Book, epoch uint64) (*Feed, error) {
	f, err := Open(o, instruments)
	if err == nil {
		err = f.Begin(book, epoch)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Open makes a feed of these instruments without market data, so that other packages can
// refer to it before the market data is recovered. Until Begin only Attach, ServeTickets,
// ServeSales, View, TicketsChanged and SalesChanged may be called.
func Open(o Options, instruments []market.Instrument) (*Feed, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	set, err := market.NewInstruments(instruments)
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	o = o.withDefaults()
	f := &Feed{
		o: o, set: set.WithOtherShards(o.OtherShards),
		views:    make([]atomic.Pointer[marketdata.View], set.Len()),
		lists:    make([]atomic.Pointer[deskList], set.Len()*int(deskKinds)),
		topics:   make([]sharedTopic, set.Len()*int(numKinds)),
		upgrader: newUpgrader(),
		accepted: make(chan *conn),
		halted:   make(chan struct{}),
	}
	f.limits = limits{byIP: make(map[netip.Addr]int), max: o.MaxConnections, perIP: o.MaxPerIP}
	f.desk = deskPublisher{feed: f, wake: make(chan struct{}, 1), found: make([][]deskRecord, set.Len())}
	for range o.Shards {
		f.shards = append(f.shards, newShard(f))
	}
	return f, nil
}

// Begin gives the feed its market data as of the position at which the events of Run
// begin, which is between two batches. From now on book belongs to the feed. epoch is the
// engine's. If book is of the same epoch, as on a replica that joins within it, views
// keep their sequence numbers. Begin is called once, before Run.
func (f *Feed) Begin(book Book, epoch uint64) error {
	if book == nil {
		return errNotBegun
	}
	f.book = book
	f.epoch.Store(epoch)
	book.Flush(nil) // make the recovered views before the first event
	for i := range f.views {
		view := first(book.View(market.InstrumentID(i)), market.InstrumentID(i), epoch)
		f.views[i].Store(view)
		for k := tickets; k < numKinds; k++ {
			f.deskList(view.Instrument, k).Store(&deskList{instrument: view.Instrument, kind: k})
		}
	}
	return nil
}

// first returns the view before the first event: the recovered one, or an empty one. A
// view of an earlier epoch restarts at sequence number 0, because its numbers belong to
// that epoch.
func first(recovered *marketdata.View, in market.InstrumentID, epoch uint64) *marketdata.View {
	view := marketdata.View{Instrument: in, Status: engine.StatusTrading, Epoch: epoch}
	switch {
	case recovered == nil:
	case recovered.Epoch == epoch:
		return recovered
	default:
		view = *recovered
		view.Epoch, view.DepthSeq, view.TradesSeq, view.TickerSeq = epoch, 0, 0, 0
	}
	return &view
}

// Attach adds a sink. Run calls it for every changed view after the view is published.
func (f *Feed) Attach(sink marketdata.Sink) { f.sinks = append(f.sinks, sink) }

// TrackOrders adds the channel l3. source has the orders at the position that Begin has, and is
// not used afterwards.
func (f *Feed) TrackOrders(source OrderSource) { f.orders.track(source, f.set.Len()) }

// WantOrders makes the views of an instrument have their orders, from a new view on that comes
// soon, until release is called. ok is false if the feed has no orders of the instrument. Any
// goroutine.
func (f *Feed) WantOrders(in market.InstrumentID) (release func(), ok bool) {
	t := &f.orders
	if !t.has(f.set.Get(in)) {
		return nil, false
	}
	t.wanted[in].Add(1)
	t.wakeRun()
	return func() { t.wanted[in].Add(-1) }, true
}

// publishOrders publishes views with orders for new subscribers of l3 and new callers of
// WantOrders.
func (f *Feed) publishOrders() {
	for i := range f.orders.books {
		in := f.set.Get(market.InstrumentID(i))
		if v := f.views[i].Load(); v.Orders == nil && f.orders.has(in) && f.orders.needsOrders(in.ID, f.topic(topicRef{in, l3})) {
			next := *v
			f.publish(v, &next, nil)
		}
	}
}

// View returns the current view of an instrument, or nil if there is no such instrument.
func (f *Feed) View(in market.InstrumentID) *marketdata.View {
	if int(in) >= len(f.views) {
		return nil
	}
	return f.views[in].Load()
}

// deskList returns the current list of a desk kind: tickets or sales.
func (f *Feed) deskList(in market.InstrumentID, k kind) *atomic.Pointer[deskList] {
	return &f.lists[int(in)*int(deskKinds)+int(k-marketKinds)]
}

func (f *Feed) topic(ref topicRef) *sharedTopic {
	return &f.topics[int(ref.in.ID)*int(numKinds)+int(ref.kind)]
}

// Run follows the events until they end and serves connections meanwhile. When ctx ends
// it continues for at most DrainWithin until the events end too, then closes every
// connection with code 1012. It returns nil or the error of events.
func (f *Feed) Run(ctx context.Context, events Events) error {
	if f.started.Swap(true) {
		return errRunTwice
	}
	closePolls, err := f.openPolls()
	if err != nil {
		return err
	}
	var shards, readers, acceptor, publisher sync.WaitGroup
	f.desk.start(&publisher, f.halted)
	for _, s := range f.shards {
		shards.Go(s.run)
		readers.Go(s.poll.run)
	}
	acceptor.Go(func() {
		for {
			select {
			case c := <-f.accepted:
				c.inbox.send(connMessage{kind: connJoin, conn: c})
			case <-f.halted:
				return
			}
		}
	})
	f.running.Store(true)

	drain, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(f.o.DrainWithin):
			cancel()
		case <-drain.Done():
		}
	})
	err = f.follow(drain, events)
	stop()
	cancel()

	// The acceptor ends before the shards do, so that no connection reaches a shard that
	// has ended.
	f.running.Store(false)
	close(f.halted)
	acceptor.Wait()
	publisher.Wait()
	for _, s := range f.shards {
		s.inbox.halt()
	}
	shards.Wait()
	closePolls()
	readers.Wait()
	if errors.Is(err, io.EOF) || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// openPolls makes the readers of all shards and returns a function that closes them.
func (f *Feed) openPolls() (closeAll func(), err error) {
	var opened []*poll
	closeAll = func() {
		for _, p := range opened {
			p.close()
		}
	}
	for _, s := range f.shards {
		if s.poll, err = newPoll(f); err != nil {
			closeAll()
			return nil, err
		}
		opened = append(opened, s.poll)
	}
	return closeAll, nil
}

// follow applies events and publishes after each batch until the events or drain end. On
// a quiet market it advances the 24 h windows by the clock.
func (f *Feed) follow(drain context.Context, events Events) error {
	for {
		quiet, cancel := context.WithTimeout(drain, f.o.QuietAfter)
		f.orders.setWake(cancel)
		err := f.followUntil(quiet, events)
		cancel()
		ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
		if !ended || drain.Err() != nil {
			return err
		}
		f.advanceWindows()
	}
}

// followUntil follows the events until there is none and quiet has ended.
func (f *Feed) followUntil(quiet context.Context, events Events) error {
	for {
		slice, err := f.next(quiet, events)
		if err != nil {
			return err
		}
		last := f.batchSeq
		for len(slice) > 0 {
			last = slice[len(slice)-1].Seq
			f.apply(slice)
			events.Release(len(slice))
			if slice = pollRest(events); len(slice) > 0 {
				f.publishToShards()
			}
		}
		if events.AtBatchEnd() {
			f.batchSeq = max(f.batchSeq, last)
			f.flush()
		}
		f.publishToShards()
	}
}

// next waits for events. Within a batch it waits only batchWait and may return none,
// because the batch may have ended meanwhile.
func (f *Feed) next(quiet context.Context, events Events) ([]event.Event, error) {
	if f.unflushed == 0 {
		return events.Next(quiet)
	}
	soon, cancel := context.WithTimeout(quiet, batchWait)
	defer cancel()
	slice, err := events.Next(soon)
	if errors.Is(err, context.DeadlineExceeded) && quiet.Err() == nil {
		return nil, nil
	}
	return slice, err
}

// advanceWindows moves the 24 h windows to the clock's time. Within a batch it does
// nothing.
func (f *Feed) advanceWindows() {
	if f.unflushed > 0 {
		return
	}
	f.at = f.o.Clock().UnixNano()
	f.book.Advance(f.at)
	f.unflushed = 1
	f.flush()
	f.publishToShards()
	f.stats.lag.Store(0)
}

// pollRest returns the events after the last returned ones; none if those end with a
// batch and no more have come. It waits up to a few milliseconds for the rest of a batch
// that the engine is still writing, which usually takes microseconds, so that no view
// shows a part of a batch.
func pollRest(events Events) []event.Event {
	for try := 0; ; try++ {
		if slice := events.Poll(); len(slice) > 0 || events.AtBatchEnd() || try > 100 {
			return slice
		}
		if try < 10 {
			runtime.Gosched()
		} else {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// apply applies a slice of events and flushes at the end of each batch, where At changes.
func (f *Feed) apply(slice []event.Event) {
	least := 1 // unflushed events from which on a batch's end flushes
	if len(slice) >= catchUpEvents {
		least = catchUpEvents
	}
	for i := range slice {
		e := &slice[i]
		if e.Kind == event.Reference || e.Kind == event.Desk {
			continue // no At and no market data
		}
		if e.At != f.at {
			if f.unflushed >= least {
				f.batchSeq = e.Seq - 1
				f.flush()
			}
			f.at = e.At
		}
		if e.Kind == event.EpochStarted {
			f.epoch.Store(e.Other)
		}
		f.book.Apply(e)
		f.orders.apply(e)
		f.unflushed++
	}
}

// flush publishes the changed views, first to readers of View, then to the sinks. It
// gathers the publications for the shards, about maxGather at most.
func (f *Feed) flush() {
	if f.unflushed == 0 {
		return
	}
	f.unflushed = 0
	before := len(f.pubs)
	f.book.Flush(f.publish)
	f.publishOrders()
	if len(f.pubs) == before {
		return
	}
	f.stats.batches.Add(1)
	f.stats.lag.Store(f.o.Clock().UnixNano() - f.at)
	if len(f.pubs) >= maxGather {
		f.publishToShards()
	}
}

// publishToShards sends the gathered publications to the shards. The batches of one slice
// reach a connection in one write, and wake a shard once.
func (f *Feed) publishToShards() {
	if len(f.pubs) == 0 && f.lastPublished == f.batchSeq {
		return
	}
	f.lastPublished = f.batchSeq
	for _, s := range f.shards {
		s.inbox.publish(f.pubs, enginePos{epoch: f.epoch.Load(), engineSeq: f.batchSeq})
	}
	f.stats.published.Store(f.batchSeq)
	clear(f.pubs)
	f.pubs = f.pubs[:0]
}

// publish publishes one changed view.
func (f *Feed) publish(_, next *marketdata.View, fresh []marketdata.Trade) {
	i := int(next.Instrument)
	if i >= len(f.views) {
		return
	}
	prev := f.views[i].Load()
	f.orders.add(prev, next, &f.topics[i*int(numKinds)+int(l3)])
	f.views[i].Store(next)
	for _, sink := range f.sinks {
		sink.MarketUpdate(prev, next, fresh)
	}
	f.stats.engineSeq.Store(max(f.stats.engineSeq.Load(), next.EngineSeq))
	pub := publication{next: next}
	in := f.set.Get(next.Instrument)
	sum, summed := uint32(0), false
	for k := range marketKinds {
		t := &f.topics[i*int(numKinds)+int(k)]
		if k.seq(next) != k.seq(prev)+1 || next.Epoch != prev.Epoch || !t.needed() {
			continue
		}
		if k < trades && !summed {
			sum, summed = f.enc.checksum(in, next), true
		}
		update := f.update(in, prev, next, k, fresh, sum)
		if update == nil {
			continue
		}
		data := f.copyToArena(update)
		pub.frames[k] = data
		f.stats.encoded.Add(1)
		if k.resumes() {
			t.addHistory(k.position(prev), k.position(next), data)
		}
	}
	f.pubs = append(f.pubs, pub)
}

func (f *Feed) update(in *market.Instrument, prev, next *marketdata.View, k kind, fresh []marketdata.Trade, sum uint32) []byte {
	switch k {
	case trades:
		return f.enc.tradesUpdate(in, prev, next, fresh)
	case ticker:
		return f.enc.ticker(in, next, "update")
	case l3:
		return f.enc.l3Update(in, prev, next)
	default:
		return f.enc.l2Update(in, prev, next, k, sum)
	}
}

// copyToArena copies a frame into a chunk that its subscribers share. The garbage
// collector frees the chunk when the last of them has sent it.
func (f *Feed) copyToArena(data []byte) []byte {
	if len(data) > arenaSize/4 {
		return append([]byte(nil), data...)
	}
	if len(f.arena)+len(data) > cap(f.arena) {
		f.arena = make([]byte, 0, arenaSize)
	}
	start := len(f.arena)
	f.arena = append(f.arena, data...)
	return f.arena[start:len(f.arena):len(f.arena)]
}
