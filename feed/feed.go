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
	"blockdesk/market"
)

// Errors of New, Run and the acceptance of a connection.
var (
	errNoBook   = errors.New("feed: no market data to follow")
	errRunTwice = errors.New("feed: Run was called twice")
	errNotTCP   = errors.New("not a plain TCP connection")
)

const (
	// arenaSize is the size of the chunks that updates are cut from.
	arenaSize = 64 << 10
	// catchUpEvents is the number of events in one slice from which on Run stops
	// publishing at every batch: it publishes once in as many events. A stream
	// that misses a number by it goes on with a snapshot.
	catchUpEvents = 8192
	// maxGather bounds the publications that wait for the rest of a slice of
	// events before the shards have them.
	maxGather = 64
	// unsettled is how long Run sleeps while it waits for the end of a batch whose
	// last event has come.
	batchWait = time.Millisecond
)

// Events is where the durable events come from; *engine.Consumer is one.
type Events interface {
	// Next blocks until there are events, ctx ends (its error) or the events
	// have ended (io.EOF).
	Next(ctx context.Context) ([]event.Event, error)
	// Poll is Next without waiting.
	Poll() []event.Event
	// Release gives n events back.
	Release(n int)
	// AtBatchEnd reports whether what Next and Poll have returned ends with a batch.
	// Where it says no, either more comes or the next yes.
	AtBatchEnd() bool
}

// Book turns events into views; *engine.MarketData is one.
type Book interface {
	Apply(*event.Event)
	// Advance moves the 24 h windows on to a time, Unix ns.
	Advance(at int64)
	// Flush makes views of what has changed and calls pub, if it is not nil,
	// for each. It is called between batches alone.
	Flush(pub func(prev, next *engine.View, trades []engine.Trade))
	View(market.InstrumentID) *engine.View
}

// sharedTopic is what Run and the shards share of one stream.
type sharedTopic struct {
	// subscribers of all shards. While there are any, and for as many updates
	// more as the history holds (linger), Run encodes the stream.
	subscribers atomic.Int64
	linger      atomic.Int64
	history     atomic.Pointer[history]
}

// Feed is the room. Methods may be called from any goroutine, Attach before
// Run only.
type Feed struct {
	o        Options
	set      *market.Instruments
	book     Book
	sinks    []engine.MarketSink
	views    []atomic.Pointer[engine.View]
	books    []atomic.Pointer[ticketBook]
	topics   []sharedTopic
	shards   []*shard
	tickets  ticketPublisher
	upgrader websocket.FastHTTPUpgrader
	limits   limits
	stats    counters

	epoch     atomic.Uint64
	running   atomic.Bool
	started   atomic.Bool
	accepted  chan *conn
	halted    chan struct{} // closed when no connection is taken any more
	nextShard atomic.Uint64

	// Run's own.
	enc      encoder
	arena    []byte
	pubs     []publication
	at       int64  // of the batch that is being applied
	batchSeq uint64 // last command of the last batch that was published
	// handed is whole as the shards know it. One that showed nothing moves it too:
	// another machine may have told of it.
	lastPublished uint64
	unflushed     int // events that have been applied and not flushed
}

// New prepares a feed of these instruments on book: Open and Begin.
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

// Open makes a feed of these instruments without a view of any, for what has to be
// given the feed before the market data is recovered. Until Begin only Attach, View and
// TicketsChanged may be called.
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
		views:    make([]atomic.Pointer[engine.View], set.Len()),
		books:    make([]atomic.Pointer[ticketBook], set.Len()),
		topics:   make([]sharedTopic, set.Len()*int(kinds)),
		upgrader: newUpgrader(),
		accepted: make(chan *conn),
		halted:   make(chan struct{}),
	}
	f.limits = limits{byIP: make(map[netip.Addr]int), most: o.MaxConnections, perIP: o.MaxPerIP}
	f.tickets = ticketPublisher{feed: f, wake: make(chan struct{}, 1), found: make([][]ticketRecord, set.Len())}
	for range o.Shards {
		f.shards = append(f.shards, newShard(f))
	}
	return f, nil
}

// Begin gives the feed its market data at the point where the consumer that Run will
// follow begins, which is between two batches; from now on book belongs to the feed.
// epoch is the engine's: if book is of that one too, as a follower's is that joins
// within it, views keep their numbers. Once, and before Run.
func (f *Feed) Begin(book Book, epoch uint64) error {
	if book == nil {
		return errNoBook
	}
	f.book = book
	f.epoch.Store(epoch)
	book.Flush(nil) // what was recovered is read before the first event comes
	for i := range f.views {
		view := first(book.View(market.InstrumentID(i)), market.InstrumentID(i), epoch)
		f.views[i].Store(view)
		f.books[i].Store(&ticketBook{instrument: view.Instrument})
	}
	return nil
}

// first returns the view that readers see until the first event: what was
// recovered, or nothing. Of an epoch before it is number 0 of this one, since the
// numbers of that one have said something else already.
func first(recovered *engine.View, in market.InstrumentID, epoch uint64) *engine.View {
	view := engine.View{Instrument: in, Status: engine.StatusTrading, Epoch: epoch}
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

// Attach adds a sink, which Run calls for every changed view after the view is
// published.
func (f *Feed) Attach(sink engine.MarketSink) { f.sinks = append(f.sinks, sink) }

// View returns the current view of an instrument, or nil if there is no such
// instrument.
func (f *Feed) View(in market.InstrumentID) *engine.View {
	if int(in) >= len(f.views) {
		return nil
	}
	return f.views[in].Load()
}

// topic returns what is shared of one stream.
func (f *Feed) topic(ref topicRef) *sharedTopic {
	return &f.topics[int(ref.in.ID)*int(kinds)+int(ref.kind)]
}

// Run follows the events until they end and serves connections meanwhile. When
// ctx ends it goes on until the events end too, at most DrainWithin; then every
// connection is told to come back (close code 1012). It returns the error of
// events, or nil.
func (f *Feed) Run(ctx context.Context, events Events) error {
	if f.started.Swap(true) {
		return errRunTwice
	}
	closePolls, err := f.openPolls()
	if err != nil {
		return err
	}
	var shards, readers, door, desk sync.WaitGroup
	f.tickets.follow(&desk, f.halted)
	for _, s := range f.shards {
		shards.Go(s.run)
		readers.Go(s.poll.run)
	}
	door.Go(func() {
		for {
			select {
			case c := <-f.accepted:
				c.shard.inbox.send(connMessage{kind: connJoin, conn: c})
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

	// The door shuts before the shards learn of the end, so that they have been
	// told of every connection by then.
	f.running.Store(false)
	close(f.halted)
	door.Wait()
	desk.Wait()
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

// openPolls makes what each shard reads with, and returns what closes it.
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

// follow applies events and publishes after each batch of the engine, until
// they end or drain does. On a quiet market it keeps the 24 h figures true.
func (f *Feed) follow(drain context.Context, events Events) error {
	for {
		patience, done := context.WithTimeout(drain, f.o.QuietAfter)
		err := f.followBusy(patience, events)
		done()
		if !errors.Is(err, context.DeadlineExceeded) || drain.Err() != nil {
			return err
		}
		f.advanceWindows()
	}
}

// followBusy follows until there is no event and patience has ended.
func (f *Feed) followBusy(patience context.Context, events Events) error {
	for {
		slice, err := f.next(patience, events)
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

// next waits for events. Inside a batch it looks again soon, and returns none
// where the batch has ended meanwhile.
func (f *Feed) next(patience context.Context, events Events) ([]event.Event, error) {
	if f.unflushed == 0 {
		return events.Next(patience)
	}
	soon, done := context.WithTimeout(patience, batchWait)
	defer done()
	slice, err := events.Next(soon)
	if errors.Is(err, context.DeadlineExceeded) && patience.Err() == nil {
		return nil, nil
	}
	return slice, err
}

// age brings the 24 h figures up to the clock's time: on a quiet market no event
// does. Inside a batch nothing is quiet.
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

// rest returns what follows the events that were returned last, or nothing when
// they end with a batch and no others have come. While the engine still writes the
// batch's events it waits, so that no view shows a part of one; that takes the
// engine microseconds, and not more than a few milliseconds are given.
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

// apply takes a slice of events and publishes where a batch ends: there At
// changes.
func (f *Feed) apply(slice []event.Event) {
	least := 1 // events for which it publishes
	if len(slice) >= catchUpEvents {
		least = catchUpEvents
	}
	for i := range slice {
		e := &slice[i]
		if e.Kind == event.Reference || e.Kind == event.Desk {
			continue // they have no At and no effect on the market
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
		f.unflushed++
	}
}

// flush publishes what has changed: views first, then sinks. The shards' part is
// gathered for publishToShards, at most about maxGather updates of it.
func (f *Feed) flush() {
	if f.unflushed == 0 {
		return
	}
	f.unflushed = 0
	before := len(f.pubs)
	f.book.Flush(f.publish)
	if len(f.pubs) == before {
		return
	}
	f.stats.batches.Add(1)
	f.stats.lag.Store(f.o.Clock().UnixNano() - f.at)
	if len(f.pubs) >= maxGather {
		f.publishToShards()
	}
}

// publishToShards gives the shards what flush has gathered: batches that came together
// go to a connection in one write, and a shard is woken once for them all.
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

// publish takes one changed view.
func (f *Feed) publish(_, next *engine.View, fresh []engine.Trade) {
	i := int(next.Instrument)
	if i >= len(f.views) {
		return
	}
	prev := f.views[i].Load()
	f.views[i].Store(next)
	for _, sink := range f.sinks {
		sink.MarketUpdate(prev, next, fresh)
	}
	f.stats.engineSeq.Store(max(f.stats.engineSeq.Load(), next.EngineSeq))
	pub := publication{next: next}
	in := f.set.Get(next.Instrument)
	sum, summed := uint32(0), false
	for k := range marketKinds {
		t := &f.topics[i*int(kinds)+int(k)]
		if k.seq(next) != k.seq(prev)+1 || next.Epoch != prev.Epoch || !t.needed() {
			continue
		}
		if k < trades && !summed {
			sum, summed = f.enc.checksum(in, next), true
		}
		data := f.copyToArena(f.update(in, prev, next, k, fresh, sum))
		pub.frames[k] = data
		f.stats.encoded.Add(1)
		if k != ticker {
			t.addHistory(k.position(prev), k.position(next), data)
		}
	}
	f.pubs = append(f.pubs, pub)
}

func (f *Feed) update(in *market.Instrument, prev, next *engine.View, k kind, fresh []engine.Trade, sum uint32) []byte {
	switch k {
	case trades:
		return f.enc.tradesUpdate(in, prev, next, fresh)
	case ticker:
		return f.enc.ticker(in, next, "update")
	default:
		return f.enc.l2Update(in, prev, next, k, sum)
	}
}

// keep copies a frame to where its subscribers share it: a part of a chunk that
// the garbage collector takes back when the last of them has sent it.
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

// wanted reports whether the stream's next update must be encoded.
func (t *sharedTopic) needed() bool {
	return t.subscribers.Load() > 0 || t.linger.Load() > 0 && t.linger.Add(-1) >= 0
}

func (t *sharedTopic) addHistory(prev, now position, data []byte) {
	h := t.history.Load()
	if h == nil {
		h = &history{}
		t.history.Store(h)
	}
	h.add(prev, now, data)
}
