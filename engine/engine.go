package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// Errors of Submit and SubmitAll. What they refuse leaves no trace.
var (
	// ErrFull: the ingress ring has no free slot.
	ErrFull = errors.New("engine: the ingress ring is full")
	// ErrReadOnly: the journal has failed, or the intake keeps this kind out.
	ErrReadOnly = errors.New("engine: read-only")
	// ErrStopped: the context of Run has ended.
	ErrStopped = errors.New("engine: stopped")
	// ErrCommandCount: SubmitAll was given no commands, or more than MaxSubmitAll.
	ErrCommandCount = errors.New("engine: no commands, or too many at once")
)

// Errors of Run.
var (
	// ErrJournal wraps the journal's error.
	ErrJournal = errors.New("engine: the journal failed")
	// ErrDrainTimeout: after the end of its context the engine waited DrainTimeout for
	// a consumer that released nothing. Nothing durable is lost: the events that
	// were not seen come again when the journal is replayed.
	ErrDrainTimeout = errors.New("engine: a consumer held up the stop")
)

// Limits of Options.
const (
	MinRing = 2       // slots of a ring
	MaxRing = 1 << 24 // slots of a ring
	// MaxFrame is the most commands that one Journal.Append is given, and the
	// largest MaxBatch.
	MaxFrame = 8192
	// MaxConsumers is the most consumers of one engine.
	MaxConsumers = 16
	// MaxSubmitAll is the most commands of one SubmitAll.
	MaxSubmitAll = MaxPieces
)

// Options of an Engine. The zero value of a field is its default.
type Options struct {
	// Clock returns the time in Unix nanoseconds; it is read once a batch and
	// may jump. Default: the system's.
	Clock func() int64
	// Journal makes commands durable. Nil: none does, everything applied is
	// seen at once, and a restart forgets it; for benchmarks.
	Journal Journal
	// IngressSize is the number of commands under way, EgressSize that of
	// events not yet released; powers of two, MinRing to MaxRing. Defaults
	// 1<<14 (2 MB) and 1<<17 (8 MB).
	IngressSize int
	EgressSize  int
	// MaxOrders bounds the live orders of one instrument from this epoch on, up
	// to book.MaxMaxOrders. It travels in StartEpoch, so that a replay needs no
	// configuration. Default: as it was.
	MaxOrders int
	// MaxBatch is the most commands that share one At, 1 to MaxFrame. Default
	// 1024.
	MaxBatch int
	// Wait says how the goroutines wait. Default Park.
	Wait WaitMode
	// InlineJournal: Append waits for no disk, so that a RunInline may do it.
	InlineJournal bool
	// DrainTimeout bounds how long Run waits, after the end of its context, for
	// consumers to make room. Default 10 s.
	DrainTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = func() int64 { return time.Now().UnixNano() }
	}
	o.IngressSize = cmp.Or(o.IngressSize, 1<<14)
	o.EgressSize = cmp.Or(o.EgressSize, 1<<17)
	o.MaxBatch = cmp.Or(o.MaxBatch, 1024)
	o.Wait = cmp.Or(o.Wait, Park)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 10*time.Second)
	return o
}

// Validate reports the first field that is out of its range.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case !ringSize(o.IngressSize):
		return fmt.Errorf("engine: IngressSize %d: a power of two, %d to %d", o.IngressSize, MinRing, MaxRing)
	case !ringSize(o.EgressSize):
		return fmt.Errorf("engine: EgressSize %d: a power of two, %d to %d", o.EgressSize, MinRing, MaxRing)
	case o.MaxBatch < 1 || o.MaxBatch > MaxFrame:
		return fmt.Errorf("engine: MaxBatch %d: 1 to %d", o.MaxBatch, MaxFrame)
	case o.MaxOrders < 0 || o.MaxOrders > book.MaxMaxOrders:
		return fmt.Errorf("engine: MaxOrders %d: 0 to %d", o.MaxOrders, book.MaxMaxOrders)
	case o.Wait != Park && o.Wait != Spin:
		return fmt.Errorf("engine: Wait %d: Park or Spin", o.Wait)
	case o.DrainTimeout < 0:
		return fmt.Errorf("engine: DrainTimeout %v: not negative", o.DrainTimeout)
	}
	return nil
}

func ringSize(n int) bool { return n >= MinRing && n <= MaxRing && n&(n-1) == 0 }

// Admission says which commands Submit and SubmitAll let in.
type Admission uint32

const (
	AdmitAll Admission = 1
	// AdmitCancels lets in what only takes risk away or says what has happened:
	// CancelOrder, MassCancel, SetParticipant, Tick, and of the desk's requests
	// a lock, a withdrawal, a payment's proof, the end or the lapse of a
	// delivery, a release and a refund. For a disk that is nearly full.
	AdmitCancels Admission = 2
	AdmitNone    Admission = 3
)

func (i Admission) admits(c *Command) bool {
	switch i {
	case AdmitAll:
		return true
	case AdmitCancels:
		return relieves(c)
	default:
		return false
	}
}

// admitsAll judges a Fragment by the Desk command that ends its request.
func (i Admission) admitsAll(cs []Command) bool {
	if i == AdmitAll {
		return true
	}
	ok := false
	for n := len(cs) - 1; n >= 0; n-- {
		if cs[n].Kind != Fragment {
			ok = i.admits(&cs[n])
		}
		if !ok {
			return false
		}
	}
	return true
}

// relieves reports whether c is what AdmitCancels lets in.
func relieves(c *Command) bool {
	switch c.Kind {
	case CancelOrder, MassCancel, SetParticipant, Tick:
		return true
	case Desk:
		return c.Order.Flags&flagRelief != 0
	default:
		return false
	}
}

// Engine is the sequencer: two rings and the goroutines between them. Submit,
// SubmitAll, SetAdmission, OrderIDs and Stats may be called from any goroutine at any time
// after BeginEpoch; Consumer before Run; Run once.
type Engine struct {
	options Options
	replica *Replica
	ids     OrderIDs
	// following: the commands come by Apply; nil = by Submit.
	following *following

	ingress ingress
	egress  egress
	matcher matcher

	matcherWait *waiter
	journalWait *waiter
	expiryWait  *waiter

	running   atomic.Bool
	admission atomic.Uint32
	refused   atomic.Uint64
	failure   atomic.Pointer[error]
	// nextExpiry is when the earliest order, quote, claim or ticket expires, Unix
	// ns; 0 = none does.
	nextExpiry atomic.Int64

	_ cacheLine
	// stopping: no new position will be claimed. The matcher polls it.
	stopping atomic.Bool
	// abandoned: the matcher waits for no consumer any more.
	abandoned atomic.Bool
	// matched: the matcher has ended. ended: nothing more becomes visible.
	matched atomic.Bool
	ended   atomic.Bool
	// blindFrom is the first Seq of which not all events were published; 0 =
	// there is none.
	blindFrom atomic.Uint64

	_ cacheLine
	// durable is the highest Seq whose events may be seen; the largest number
	// where there is no journal.
	durable atomic.Uint64
	_       cacheLine
}

// New prepares an engine that goes on where r ends: Open and BeginEpoch. Errors: theirs.
func New(o Options, r *Replica) (*Engine, error) {
	e, err := Open(o)
	if err == nil {
		err = e.BeginEpoch(r)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Open makes an engine without a state, for what has to be given the engine before the
// journal is replayed. Until BeginEpoch only Consumer may be called. Errors: those of
// Options.Validate.
func Open(o Options) (*Engine, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	e := &Engine{
		options:     o,
		matcherWait: newWaiter(o.Wait), journalWait: newWaiter(o.Wait),
		// It sleeps for milliseconds and more: spinning has nothing to win.
		expiryWait: newWaiter(Park),
	}
	e.egress.init(o.EgressSize, o.Wait)
	return e, nil
}

// BeginEpoch has the engine go on where r ends, and places StartEpoch of the next epoch as
// its first command. The engine owns r.State until Run has returned; then r.State and
// r.Digest are those of the last applied command. It never touches r.Market. Once, and
// before Run. Error: the epochs are used up.
func (e *Engine) BeginEpoch(r *Replica) error {
	epoch := r.State.Epoch() + 1
	if epoch > MaxEpoch {
		return fmt.Errorf("engine: epoch %d: at most %d", epoch, uint64(MaxEpoch))
	}
	firstSeq := r.State.Seq() + 1
	e.replica, e.ids.epoch = r, epoch
	e.ingress.init(e.options.IngressSize, firstSeq)
	e.matcher.init(e)
	for _, c := range e.egress.consumers {
		c.last = firstSeq - 1
	}
	e.durable.Store(firstSeq - 1)
	if e.options.Journal == nil {
		e.durable.Store(math.MaxUint64)
		e.ingress.journaled.Store(math.MaxUint64)
	}
	e.admission.Store(uint32(AdmitAll))
	begin := Command{Kind: StartEpoch, Arg: epoch}
	begin.Order.Qty = market.Qty(e.options.MaxOrders)
	return e.ingress.put(&begin)
}

// Epoch returns the epoch that BeginEpoch began, or in which Follow took over.
func (e *Engine) Epoch() uint64 { return e.ids.epoch }

// OrderIDs returns the source of ids for new orders.
func (e *Engine) OrderIDs() *OrderIDs { return &e.ids }

// Consumer adds a reader of all events, whose first one is that of StartEpoch.
// It panics once Run has begun, and past MaxConsumers.
func (e *Engine) Consumer(name string) *Consumer {
	if e.running.Load() || len(e.egress.consumers) == MaxConsumers {
		panic("engine: Consumer " + name + ": too late or too many")
	}
	c := newConsumer(name, e)
	e.egress.consumers = append(e.egress.consumers, c)
	return c
}

// SetAdmission changes which commands Submit lets in from now on. AdmitAll at the
// start. A failed journal keeps everything out, whatever the intake.
func (e *Engine) SetAdmission(i Admission) { e.admission.Store(uint32(i)) }

// Submit copies c into the ingress ring; what it has in Seq and At is ignored. A
// nil error says that c will be applied in the order of the ring, unless the
// journal fails first; its events say what came of it. Never blocks, never
// allocates. Errors: ErrFull, ErrReadOnly, ErrStopped.
func (e *Engine) Submit(c *Command) error {
	err := ErrReadOnly
	if Admission(e.admission.Load()).admits(c) {
		err = e.ingress.put(c)
	}
	if err != nil {
		e.refused.Add(1)
		return err
	}
	e.matcherWait.wake()
	return nil
}

// SubmitAll submits cs, 1 to MaxSubmitAll of them, as neighbours: nothing comes
// between them, and where it is refused none of them goes in. Else as Submit. A
// crash may leave the first few of them in the journal without the others.
// Errors: those of Submit, and ErrCommandCount. ErrFull where there are not as many
// free slots as commands, so always in a ring of fewer slots.
func (e *Engine) SubmitAll(cs []Command) error {
	err := ErrReadOnly
	switch {
	case len(cs) == 0 || len(cs) > MaxSubmitAll:
		err = ErrCommandCount
	case Admission(e.admission.Load()).admitsAll(cs):
		err = e.ingress.putAll(cs)
	}
	if err != nil {
		e.refused.Add(1)
		return err
	}
	e.matcherWait.wake()
	return nil
}

// Lag is one consumer's part of Stats.
type Lag struct {
	Name   string
	Events int // published and not yet released; 0 once closed
}

// Stats are a moment's figures, each read by itself.
type Stats struct {
	Seq     uint64 // last command applied
	Durable uint64 // last command durable; Seq where there is no journal
	Refused uint64 // Submits and SubmitAlls that returned an error

	Ingress, IngressSize int // commands in the ring, and its slots
	Egress, EgressSize   int // events that the slowest consumer has not released, and the slots

	Admission Admission
	Consumers []Lag
	Failed    error // why the engine is read-only; nil = it is not
}

// Stats returns the engine's figures. It allocates: for metrics and health.
func (e *Engine) Stats() Stats {
	applied := e.ingress.applied.Load()
	s := Stats{
		Seq: e.ingress.firstSeq + applied - 1, Refused: e.refused.Load(),
		IngressSize: len(e.ingress.slots), EgressSize: len(e.egress.events),
		Admission: Admission(e.admission.Load()), Failed: e.failed(),
	}
	s.Durable = e.durable.Load()
	if e.options.Journal == nil {
		s.Durable = s.Seq
	}
	freed := min(applied, e.ingress.journaled.Load())
	s.Ingress = int(e.ingress.end() - freed)
	published := e.egress.published.Load()
	for _, c := range e.egress.consumers {
		lag := Lag{Name: c.name, Events: int(published - min(c.cursor.Load(), published))}
		s.Egress = max(s.Egress, lag.Events)
		s.Consumers = append(s.Consumers, lag)
	}
	return s
}

func (e *Engine) failed() error {
	if err := e.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Run works until ctx ends: then it lets no more commands in, applies and
// journals those that are in, publishes their events and returns nil. Consumers
// may go on reading what they have not released; then their Next says io.EOF.
//
// When the journal fails, the engine stays up but lets nothing in and shows
// nothing more; readers keep what was durable, and Stats says why. Run then
// returns at the end of ctx as well, with ErrJournal. ErrDrainTimeout is its other
// error. A second call panics.
func (e *Engine) Run(ctx context.Context) error {
	if !e.running.CompareAndSwap(false, true) {
		panic("engine: Run was called twice")
	}
	if e.following != nil {
		return e.followRun(ctx)
	}
	matched, journaled, ticked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { defer close(matched); e.matcher.run() }()
	go func() { defer close(journaled); e.journal() }()
	go func() { defer close(ticked); e.tick(ctx) }()

	<-ctx.Done()
	e.close(tailStopped)
	err := e.drain(matched)
	e.matched.Store(true)
	e.journalWait.wake()
	<-journaled
	<-ticked
	e.end()
	if failure := e.failed(); failure != nil {
		return failure
	}
	return err
}

// end tells consumers, and who awaits them, that nothing more comes.
func (e *Engine) end() {
	e.ended.Store(true)
	e.egress.wake()
	e.egress.giveUp()
}

// drain waits for the matcher to end, and makes it end after DrainTimeout.
func (e *Engine) drain(matched <-chan struct{}) error {
	patience := time.NewTimer(e.options.DrainTimeout)
	defer patience.Stop()
	select {
	case <-matched:
		return nil
	case <-patience.C:
	}
	err := fmt.Errorf("%w: %s", ErrDrainTimeout, e.egress.laggard())
	e.abandoned.Store(true)
	e.egress.room.wake()
	<-matched
	if !e.matcher.blind {
		return nil
	}
	return err
}

// close lets no more commands in and tells the matcher why.
func (e *Engine) close(why uint64) {
	e.ingress.tail.Or(why)
	e.stopping.Store(true)
	e.matcherWait.wake()
	e.egress.room.wake()
}
