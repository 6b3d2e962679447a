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

// ErrDrainTimeout is an error of Run: a consumer released nothing for DrainTimeout after
// Run's context ended. Nothing durable is lost: a replay of the journal repeats the events.
var ErrDrainTimeout = errors.New("engine: a consumer did not read its last events in time")

// ErrCommandCount is an error of SubmitAll: it was given no commands or more than MaxSubmitAll.
var ErrCommandCount = fmt.Errorf("engine: SubmitAll takes 1 to %d commands", MaxSubmitAll)

// Limits of Options.
const (
	MinRing = 2       // slots of a ring
	MaxRing = 1 << 24 // slots of a ring
	// MaxFrame is the most commands of one Journal.Append, and the largest MaxBatch.
	MaxFrame = 8192
	// MaxConsumers is the most consumers of one engine.
	MaxConsumers = 16
	// MaxSubmitAll is the most commands of one SubmitAll.
	MaxSubmitAll = MaxPieces
)

// Options of an Engine. A zero field means its default.
type Options struct {
	// Clock returns the time in Unix nanoseconds. The engine reads it once per batch. If it
	// goes back, the engine's time goes on, a little slower, until the clock has caught up;
	// a jump ahead is taken as it is: package internal/clock bounds both. Default: the
	// system clock.
	Clock func() int64
	// Journal makes commands durable. Nil: events are visible once applied, and a restart
	// loses them; for benchmarks.
	Journal Journal
	// IngressSize and EgressSize are the numbers of slots of the rings of commands and of
	// events: powers of two, MinRing to MaxRing. Defaults 1<<14 (2 MB) and 1<<17 (8 MB).
	IngressSize int
	EgressSize  int
	// MaxOrders bounds the live orders of one instrument from this epoch on, up to
	// book.MaxMaxOrders. StartEpoch carries it, so that a replay needs no configuration.
	// Default: unchanged.
	MaxOrders int
	// MaxBatch is the most commands that share one At, 1 to MaxFrame. Default 1024.
	MaxBatch int
	// Wait says how the goroutines wait. Default Park.
	Wait WaitMode
	// InlineJournal lets RunInline call Journal.Append, so its caller waits for the
	// journal. Do not set it if Append waits for other machines.
	InlineJournal bool
	// Format1 begins an epoch that release 0.1.0 reads: orders do not end in slices.
	Format1 bool
	// DrainTimeout bounds how long Run waits for consumers after its context has ended.
	// Default 10 s.
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

// Validate returns an error that names the first field out of its range.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case !ringSize(o.IngressSize):
		return fmt.Errorf("engine: IngressSize %d: must be a power of two, %d to %d", o.IngressSize, MinRing, MaxRing)
	case !ringSize(o.EgressSize):
		return fmt.Errorf("engine: EgressSize %d: must be a power of two, %d to %d", o.EgressSize, MinRing, MaxRing)
	case o.MaxBatch < 1 || o.MaxBatch > MaxFrame:
		return fmt.Errorf("engine: MaxBatch %d: must be 1 to %d", o.MaxBatch, MaxFrame)
	case o.MaxOrders < 0 || o.MaxOrders > book.MaxMaxOrders:
		return fmt.Errorf("engine: MaxOrders %d: must be 0 to %d", o.MaxOrders, book.MaxMaxOrders)
	case o.Wait != Park && o.Wait != Spin:
		return fmt.Errorf("engine: Wait %d: must be Park or Spin", o.Wait)
	case o.DrainTimeout < 0:
		return fmt.Errorf("engine: DrainTimeout %v: must not be negative", o.DrainTimeout)
	}
	return nil
}

func ringSize(n int) bool { return n >= MinRing && n <= MaxRing && n&(n-1) == 0 }

// Admission says which commands Submit and SubmitAll admit.
type Admission uint32

const (
	AdmitAll Admission = 1
	// AdmitCancels admits only commands that reduce risk or record facts, for when the
	// disk is nearly full: CancelOrder, MassCancel, SetParticipant, a halt, Tick, mass quotes that
	// only withdraw, lists of cancels, and desk requests that lock, withdraw a ticket or a price, record a payment, refund or balance, or end a
	// delivery or claim.
	AdmitCancels Admission = 2
	AdmitNone    Admission = 3
)

func (a Admission) admits(c *Command) bool {
	switch a {
	case AdmitAll:
		return true
	case AdmitCancels:
		return c.reducesRisk()
	default:
		return false
	}
}

// admitsAll reports whether all commands are admitted. A Fragment is admitted if the command
// that ends its request is.
func (a Admission) admitsAll(cs []Command) bool {
	if a == AdmitAll {
		return true
	}
	ok := false
	for n := len(cs) - 1; n >= 0; n-- {
		if cs[n].Kind != Fragment {
			ok = a.admits(&cs[n])
		}
		if !ok {
			return false
		}
	}
	return true
}

// reducesRisk reports whether AdmitCancels admits c.
func (c *Command) reducesRisk() bool {
	switch c.Kind {
	case CancelOrder, MassCancel, SetParticipant, Tick:
		return true
	case SetInstrument:
		return c.Status == StatusHalted
	case Desk, QuoteMass, OrderList:
		return c.Order.Flags&flagReducesRisk != 0
	default:
		return false
	}
}

// Engine is the sequencer: two rings and the goroutines between them. After BeginEpoch any
// goroutine may call Submit, SubmitAll, SetAdmission, OrderIDs and Stats. Consumer must be
// called before Run, and Run once.
type Engine struct {
	options  Options
	replica  *Replica
	ids      OrderIDs
	follower *follower // nil = commands come from Submit, not from Apply

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
	// nextExpiry is State.NextExpiry for the ticker; 0 = nothing expires.
	nextExpiry atomic.Int64
	ahead      atomic.Int64 // nanoseconds by which the engine's time is ahead of the clock

	_            cacheLine
	stopping     atomic.Bool // new commands are refused; the matcher polls it
	drainExpired atomic.Bool // the matcher no longer waits for consumers
	matcherDone  atomic.Bool // the matcher has ended
	ended        atomic.Bool // nothing more becomes visible
	// firstUnpublished is the first Seq with unpublished events; 0 = none.
	firstUnpublished atomic.Uint64

	_ cacheLine
	// durable is the watermark: the highest Seq whose events consumers may see;
	// math.MaxUint64 without a journal.
	durable atomic.Uint64
	_       cacheLine
}

// New returns an engine that continues from r: Open and BeginEpoch. Errors: theirs.
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

// Open returns an engine without a state, for callers that need the engine before the
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
		expiryWait: newWaiter(Park), // sleeps for milliseconds and more, so it never spins
	}
	e.egress.init(o.EgressSize, o.Wait)
	return e, nil
}

// BeginEpoch lets the engine continue from r and enqueues the StartEpoch of the next epoch
// as its first command. It must be called once, before Run. The engine owns r.State until
// Run has returned; r.State and r.Digest are then those of the last command. It never uses
// r.Market. Error: no epoch is left.
func (e *Engine) BeginEpoch(r *Replica) error {
	epoch := r.State.Epoch() + 1
	if epoch > MaxEpoch {
		return fmt.Errorf("engine: epoch %d: must be at most %d", epoch, uint64(MaxEpoch))
	}
	e.attach(r)
	e.ids.epoch = epoch
	e.admission.Store(uint32(AdmitAll))
	begin := Command{Kind: StartEpoch, Arg: epoch}
	begin.Order.Qty = market.Qty(e.options.MaxOrders)
	if !e.options.Format1 {
		begin.Status = StatusInSlices
	}
	return e.ingress.put(&begin)
}

// attach makes r the state of the engine.
func (e *Engine) attach(r *Replica) {
	seq := r.State.Seq()
	e.replica = r
	e.ingress.init(e.options.IngressSize, seq+1)
	e.matcher.init(e)
	for _, c := range e.egress.consumers {
		c.last = seq
	}
	e.durable.Store(seq)
	if e.options.Journal == nil {
		e.durable.Store(math.MaxUint64)
		e.ingress.journaled.Store(math.MaxUint64)
	}
}

// Epoch returns the epoch that BeginEpoch started, or that of the replica given to Follow.
func (e *Engine) Epoch() uint64 { return e.ids.epoch }

// OrderIDs returns the source of ids for new orders.
func (e *Engine) OrderIDs() *OrderIDs { return &e.ids }

// Position returns the position after the last published event. Use it with Consumer.Await
// for a linearizable read. Any goroutine.
func (e *Engine) Position() uint64 { return e.egress.published.Load() }

// Consumer adds a reader of all events, from those of StartEpoch on. It panics once Run has
// begun, and if there are MaxConsumers already.
func (e *Engine) Consumer(name string) *Consumer {
	if e.running.Load() {
		panic("engine: Consumer " + name + ": called after Run")
	}
	if len(e.egress.consumers) == MaxConsumers {
		panic(fmt.Sprintf("engine: Consumer %s: more than %d consumers", name, MaxConsumers))
	}
	c := newConsumer(name, e)
	e.egress.consumers = append(e.egress.consumers, c)
	return c
}

// publishedSeq returns the last command that was applied and all of whose events were
// published.
func (e *Engine) publishedSeq() uint64 {
	applied := e.ingress.firstSeq + e.ingress.applied.Load() - 1
	if first := e.firstUnpublished.Load(); first != 0 {
		return min(applied, first-1)
	}
	return applied
}

// SetAdmission changes which commands Submit admits from now on. The default is AdmitAll.
// Once the journal has failed, Submit refuses every command.
func (e *Engine) SetAdmission(i Admission) { e.admission.Store(uint32(i)) }

// Submit copies c into the ingress ring, ignoring its Seq and At. After a nil error c will
// be applied in the order of the ring, unless the journal fails first; its events carry
// the result. Submit never blocks or allocates. Errors: ErrFull, ErrReadOnly, ErrStopped.
func (e *Engine) Submit(c *Command) error {
	if err := e.Enqueue(c); err != nil {
		return err
	}
	e.matcherWait.wake()
	return nil
}

// Enqueue is Submit without waking the matcher. The caller must call RunInline next, in
// the same goroutine.
func (e *Engine) Enqueue(c *Command) error {
	err := ErrReadOnly
	if Admission(e.admission.Load()).admits(c) {
		err = e.ingress.put(c)
	}
	if err != nil {
		e.refused.Add(1)
	}
	return err
}

// SubmitAll submits 1 to MaxSubmitAll commands with consecutive Seqs: all of them or none.
// A crash may leave only the first few in the journal. Otherwise it is like Submit.
// Errors: those of Submit, and ErrCommandCount; ErrFull unless the ring has a free slot
// for each command.
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

// Lag is the backlog of one consumer.
type Lag struct {
	Name   string
	Events int // published but not released; 0 once closed
}

// Stats are the engine's figures. They are read one by one, not as of one moment.
type Stats struct {
	Seq     uint64 // last command applied
	Durable uint64 // last durable command; Seq without a journal
	Refused uint64 // calls of Submit, Enqueue and SubmitAll that returned an error

	Ingress, IngressSize int // commands in the ring, and its slots
	Egress, EgressSize   int // events that the slowest consumer has not released, and slots

	Admission Admission
	Consumers []Lag
	Failed    error // the failure that made the engine read-only; nil = none
}

// Stats returns the engine's figures, for metrics and health checks. It allocates.
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

// end wakes the consumers and callers of Await, because no more events will be published.
func (e *Engine) end() {
	e.ended.Store(true)
	e.egress.wakeAll()
	e.egress.wakeAwaits()
}

// drain waits for the matcher to end, and forces it to after DrainTimeout.
func (e *Engine) drain(matched <-chan struct{}) error {
	timeout := time.NewTimer(e.options.DrainTimeout)
	defer timeout.Stop()
	select {
	case <-matched:
		return nil
	case <-timeout.C:
	}
	err := fmt.Errorf("%w: %s", ErrDrainTimeout, e.egress.slowestConsumer())
	e.drainExpired.Store(true)
	e.egress.spaceWait.wake()
	<-matched
	if !e.matcher.discarding {
		return nil
	}
	return err
}

// close refuses new commands from now on; flag, tailStopped or tailFailed, is why.
func (e *Engine) close(flag uint64) {
	e.ingress.tail.Or(flag)
	e.stopping.Store(true)
	e.matcherWait.wake()
	e.egress.spaceWait.wake()
}

const (
	// minTickInterval is the shortest time between two ticks.
	minTickInterval = time.Millisecond
	// sweepInterval is the time between two ticks while orders are ending.
	sweepInterval = 200 * time.Microsecond
)

// runTicker submits a Tick when something expires and no other command has advanced the
// time since. It sleeps while nothing expires.
func (e *Engine) runTicker(ctx context.Context) {
	timer := time.NewTimer(maxTickSleep)
	defer timer.Stop()
	has := func() bool { return e.nextExpiry.Load() != 0 }
	for e.expiryWait.wait(has, ctx.Done()) {
		due := e.nextExpiry.Load()
		if due == 0 {
			continue
		}
		sleep := time.Duration(due - e.ahead.Load() - e.options.Clock())
		if sleep <= 0 {
			sleep = e.submitTick(due == overdue)
		}
		timer.Reset(min(sleep, maxTickSleep))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// submitTick submits a Tick and returns how long to wait before the next check. A refused
// Tick is not counted: the commands of a full ring advance the time too, and they sweep.
func (e *Engine) submitTick(sweep bool) time.Duration {
	if sweep && e.ingress.applied.Load() != e.ingress.end() {
		return sweepInterval
	}
	tick := Command{Kind: Tick}
	if !Admission(e.admission.Load()).admits(&tick) {
		return maxTickSleep
	}
	err := e.ingress.put(&tick)
	switch {
	case err == nil:
		e.matcherWait.wake()
		if sweep {
			return sweepInterval
		}
		return minTickInterval
	case errors.Is(err, ErrFull):
		return minTickInterval
	default:
		return maxTickSleep
	}
}
