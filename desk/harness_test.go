package desk

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
	"blockdesk/persist/kv"
	"blockdesk/persist/kv/kvtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal keeps commands in memory. Every Append takes a token of gate, if there
// is one; the frame failAt fails.
type journal struct {
	gate   chan struct{}
	failAt int

	mu       sync.Mutex
	frames   int
	commands []engine.Command
}

func (j *journal) Append(_ uint64, a, b []engine.Command) error {
	if j.gate != nil {
		<-j.gate
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.frames++; j.frames == j.failAt {
		return kvtest.ErrBroken
	}
	j.commands = append(append(j.commands, a...), b...)
	return nil
}

func (j *journal) durable() []engine.Command {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.commands[:len(j.commands):len(j.commands)]
}

// submitter counts what it hands to the engine.
type submitter struct {
	eng   *engine.Engine
	calls atomic.Int64
}

func (s *submitter) SubmitAll(cs []engine.Command) error {
	s.calls.Add(1)
	return s.eng.SubmitAll(cs)
}

// rig is a desk over an engine, a journal and a store.
type rig struct {
	t       testing.TB
	o       Options
	eo      engine.Options
	journal *journal // nil = none
	store   kv.Store
	clock   atomic.Int64 // the time, Unix nanoseconds: it moves on with what the engine does, and by Add

	*Desk
	submit *submitter
	eng    *engine.Engine
	stop   context.CancelFunc
	ran    chan error // Desk.Run
	engRan chan error
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, journal: &journal{}, store: kvtest.New()}
	r.clock.Store(1_800_000_000_000_000_000)
	r.eo.Clock = func() int64 { return r.clock.Add(int64(time.Microsecond)) }
	r.o.Timeout = runtest.HangTimeout
	r.o.Now = func() time.Time { return time.Unix(0, r.clock.Load()) }
	t.Cleanup(func() {
		if r.stop != nil {
			r.finish()
		}
	})
	return r
}

// replay brings a new desk and a replica up to the journal's end.
func (r *rig) replay(submit Submitter) (*Desk, *engine.Replica) {
	r.t.Helper()
	d, err := New(r.o, submit, r.store)
	if err != nil {
		r.t.Fatal(err)
	}
	replica := engine.NewReplica(engine.StateOptions{})
	if r.journal == nil {
		return d, replica
	}
	floor := d.Cursor()
	for _, c := range r.journal.durable() {
		visit := func(events []event.Event) {
			if err := d.Replay(events); err != nil {
				r.t.Fatal(err)
			}
		}
		if c.Seq <= floor {
			visit = nil
		}
		replica.Apply(&c, visit)
	}
	return d, replica
}

// recover builds the desk and the engine, not running yet.
func (r *rig) recover() *engine.Replica {
	r.t.Helper()
	r.submit = &submitter{}
	o := r.o
	r.o.Failed = func() error { return r.eng.Stats().Failed }
	d, replica := r.replay(r.submit)
	r.o = o
	r.Desk = d
	if r.journal != nil {
		r.eo.Journal = r.journal
	}
	eng, err := engine.New(r.eo, replica)
	if err != nil {
		r.t.Fatal(err)
	}
	r.eng, r.submit.eng = eng, eng
	return replica
}

// start recovers and runs.
func (r *rig) start() *rig {
	r.t.Helper()
	replica := r.recover()
	if err := r.Start(replica.State.Desk().ReadModel(), replica.State.Seq()); err != nil {
		r.t.Fatal(err)
	}
	r.run()
	return r
}

func (r *rig) run() { r.runAfter(r.eng.Consumer("desk"), func() {}) }

// runAfter runs the engine, then first, then the desk.
func (r *rig) runAfter(c *engine.Consumer, first func()) {
	ctx, stop := context.WithCancel(context.Background())
	r.stop, r.ran, r.engRan = stop, make(chan error, 1), make(chan error, 1)
	go func() { r.engRan <- r.eng.Run(ctx) }()
	first()
	go func() {
		err := r.Run(ctx, c)
		c.Close()
		r.ran <- err
	}()
}

// finish stops everything and returns what Desk.Run said.
func (r *rig) finish() error {
	r.t.Helper()
	r.stop()
	r.stop = nil
	err := await.Receive(r.t, "the end of Run", r.ran)
	<-r.engRan
	return err
}

// restart stops cleanly and starts again.
func (r *rig) restart() {
	r.t.Helper()
	if err := r.finish(); err != nil {
		r.t.Fatal(err)
	}
	r.start()
}

// The pair that tests sell: a unit costs a dollar, and has 10^6 atoms.
const pair market.InstrumentID = 3

// open sets the desk up and returns its first ticket: tranches of these
// capacities in dollars.
func (r *rig) open(dollars ...uint64) *rfq.Ticket {
	r.t.Helper()
	policy := rfq.Policy{QuoteTTL: 15e9, ClaimTTL: 60e9, LateWindow: 3600e9, FeeBps: 10, WalletClaims: 60_000}
	policy.PayTo[market.RailUSDC] = market.Address{1}
	r.must(&rfq.SetPolicy{Policy: policy})
	r.must(&rfq.SetPair{Pair: rfq.Pair{
		Instrument: pair, BaseMint: market.Address{2}, BaseDecimals: 6, Rails: market.AllRails,
		Source: rfq.SourceOperator, CorridorBps: 500, Via: rfq.NoInstrument,
	}})
	r.must(&rfq.SetAnchor{Instrument: pair, Price: 1_000_000_000})
	r.must(&rfq.SetInventory{Instrument: pair, Atoms: 1 << 60})
	return r.post(dollars...)
}

func (r *rig) post(dollars ...uint64) *rfq.Ticket {
	r.t.Helper()
	p := &rfq.PostTicket{Label: "block", Instrument: pair}
	for _, d := range dollars {
		p.Capacities = append(p.Capacities, market.USD(d*1_000_000))
	}
	return r.must(p).Ticket
}

func quote(t market.TicketID) *rfq.RequestQuote {
	return &rfq.RequestQuote{Ticket: t, Tranche: 1, Fill: 1, Rail: market.RailUSDC}
}

func take(t market.TicketID, wallet byte) *rfq.TakeClaim {
	return &rfq.TakeClaim{Ticket: t, Tranche: 1, Fill: 1, Rail: market.RailUSDC, Mode: rfq.Modular, Wallet: market.Address{wallet}}
}

// keyed gives the request a key and a body.
func keyed[R rfq.Request](r R, key uint32, body byte) R {
	k := &r.Head().Key
	k.ID, k.Body = keyID(key), [8]byte{body, 1}
	return r
}

func keyID(key uint32) (id [16]byte) {
	id[0], id[1], id[2], id[3], id[15] = byte(key), byte(key>>8), byte(key>>16), byte(key>>24), 7
	return id
}

// must does a request that the rules let through.
func (r *rig) must(req rfq.Request) *Result {
	r.t.Helper()
	res, err := r.Do(req)
	if err != nil {
		r.t.Fatalf("%T: %v", req, err)
	}
	if res.Reason != 0 {
		r.t.Fatalf("%T: refused: %s, limit %d", req, res.Reason, res.Limit)
	}
	return res
}

// expire brings the time of all claims, which a tick ends.
func (r *rig) expire() {
	r.t.Helper()
	r.clock.Add(61e9)
	if err := r.eng.Submit(&engine.Command{Kind: engine.Tick}); err != nil { // the engine's own is up to a second away
		r.t.Fatal(err)
	}
}

// wantErr fails unless err is one of want.
func wantErr(t testing.TB, what string, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("%s: %v; want %v", what, err, w)
		}
	}
}

// sameAnswer compares two answers to one key.
func sameAnswer(t testing.TB, what string, got, want *Result) {
	t.Helper()
	a, b := *got, *want
	a.Replayed, b.Replayed = false, false
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s: another answer\n got %+v\nwant %+v", what, a, b)
	}
}
