package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/engine/book"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
)

// TestSubmitFull: with a blocked journal exactly IngressSize commands are accepted, applied
// or not.
func TestSubmitFull(t *testing.T) {
	const size = 8
	j := &slowJournal{gate: make(chan struct{})}
	e := newEngine(t, Options{Journal: j, IngressSize: size})
	fill := func(want int) {
		t.Helper()
		for i := range want {
			if err := e.Submit(&Command{Kind: Tick}); err != nil {
				t.Fatalf("command %d of %d: %v", i+1, want, err)
			}
		}
		if err := e.Submit(&Command{Kind: Tick}); !errors.Is(err, ErrFull) {
			t.Fatalf("command %d: %v, want ErrFull", want+1, err)
		}
	}
	fill(size - 1) // StartEpoch is there already
	e.start(t)
	await.True(t, "all applied", func() bool { return e.Stats().Seq == size })
	fill(0)
	if s := e.Stats(); s.Ingress != size || s.IngressSize != size || s.Durable != 0 || s.Refused != 2 {
		t.Fatalf("%+v", s)
	}
	j.gate <- struct{}{}
	await.True(t, "all durable", func() bool { return e.Stats().Durable == size })
	fill(size)
	close(j.gate)
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	if err := e.Submit(&Command{Kind: Tick}); !errors.Is(err, ErrStopped) {
		t.Fatalf("%v, want ErrStopped", err)
	}
}

// TestStopAwaitsClaimed: a slot that a producer has claimed before shutdown and fills later
// is processed.
func TestStopAwaitsClaimed(t *testing.T) {
	e := newEngine(t, Options{})
	if !e.ingress.tail.CompareAndSwap(1, 2) {
		t.Fatal("StartEpoch is not alone in the ring")
	}
	e.start(t)
	e.stop()
	await.True(t, "the stop", e.stopping.Load)
	time.Sleep(2 * time.Millisecond) // sleep: time for a stop that forgets the slot; a slow machine only sees less of one
	slot := &e.ingress.slots[1]
	slot.Kind = Tick
	atomic.StoreUint64(&slot.Seq, e.ingress.firstSeq+1)
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	if got := e.replica.State.Seq(); got != 2 {
		t.Fatalf("applied up to %d, want 2", got)
	}
}

// TestDeterminism: under any batch size the events differ only in their times, and the
// journal replays to the same.
func TestDeterminism(t *testing.T) {
	for name, newFlow := range map[string]func(uint64) *flow{"orders": newFlow, "desk": newDeskFlow} {
		t.Run(name, func(t *testing.T) {
			var want uint64
			for _, batch := range []int{1, 2, 7, 64, 1024} {
				o := Options{MaxBatch: batch, Clock: func() int64 { return 1_000_000 }}
				got := runFlow(t, newFlow(7), o)
				for i := range got {
					switch got[i].Kind {
					case event.Reference:
					case event.Desk: // there are times in its records
						got[i] = event.Event{Seq: got[i].Seq, Kind: event.Desk}
					default:
						got[i].At = 0
					}
				}
				if sum := digestOf(got); want == 0 {
					want = sum
				} else if sum != want {
					t.Fatalf("batch %d: other events than with batches of one", batch)
				}
			}
		})
	}
}

// TestDeskDeterminism: the same with time passing, so that quotes, claims and tickets
// expire between the requests.
func TestDeskDeterminism(t *testing.T) {
	for _, batch := range []int{1, 7, 1024} {
		var now atomic.Int64
		events := runFlow(t, newDeskFlow(uint64(batch)), Options{
			MaxBatch: batch, Clock: func() int64 { return now.Add(5_000_000 * int64(batch)) },
		})
		var desk rfq.Reader
		seen := map[rfq.ClaimState]int{}
		for i := range events {
			if record, _, ok := desk.Add(&events[i]); ok {
				if c, ok := record.(*rfq.Claim); ok {
					seen[c.State]++
				}
			}
		}
		if seen[rfq.ClaimReserved] == 0 || seen[rfq.ClaimExpired] == 0 || seen[rfq.ClaimSettled] == 0 {
			t.Errorf("batch %d: claims by state %v: not all of reserved, expired and settled", batch, seen)
		}
	}
}

// runFlow runs an engine over some thousand commands of a flow, compares it with the replay
// of its journal on both books, and returns its events.
func runFlow(t *testing.T, f *flow, o Options) []event.Event {
	t.Helper()
	const n = 3_000
	j := &slowJournal{}
	o.Journal = j
	e := newEngine(t, o)
	c := e.Consumer("reader")
	for range n {
		e.mustSubmit(t, f.next())
	}
	e.start(t)
	events := collect(c)
	await.True(t, "the end", func() bool { return e.Stats().Durable >= n+1 })
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	for _, s := range []StateOptions{{}, {Naive: true}} {
		r, err := j.replay(s)
		if err != nil {
			t.Fatal(err)
		}
		if r.Digest != e.replica.Digest || r.State.Hash() != e.replica.State.Hash() {
			t.Fatalf("batch %d, naive %v: the replay differs", o.MaxBatch, s.Naive)
		}
		if roundTrip(t, r.State).Hash() != e.replica.State.Hash() {
			t.Fatalf("batch %d, naive %v: the restored replay differs", o.MaxBatch, s.Naive)
		}
	}
	got := <-events
	if digestOf(got) != e.replica.Digest {
		t.Fatalf("batch %d: the consumer saw other events", o.MaxBatch)
	}
	return got
}

// TestTime: At never falls and no two batches share it, even if the clock jumps.
func TestTime(t *testing.T) {
	var reads atomic.Int64
	clock := func() int64 { return []int64{500, 100, math.MinInt64, 900, 900}[reads.Add(1)%5] }
	j := &slowJournal{}
	e := newEngine(t, Options{Journal: j, MaxBatch: 3, Clock: clock})
	for range 30 {
		e.mustSubmit(t, Command{Kind: Tick})
	}
	e.start(t)
	await.True(t, "the end", func() bool { return e.Stats().Durable == 31 })
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	if _, err := j.replay(StateOptions{}); err != nil {
		t.Fatal(err)
	}
	if reads.Load() < 11 || j.commands[0].At < 1 {
		t.Fatalf("%d reads of the clock for 31 commands in batches of at most 3", reads.Load())
	}
}

const hour = int64(time.Hour)

// TestTimeGoesOn: a clock that was an hour ahead and is set right does not stop the engine's
// time, which stays below its own speed until the clock has caught up; setting it back and
// forth drives it no further.
func TestTimeGoesOn(t *testing.T) {
	e := newEngine(t, Options{})
	m := &e.matcher
	m.init(e.Engine)
	clock := 10 * hour
	e.options.Clock = func() int64 { return clock }
	if at := m.now(); at != 10*hour {
		t.Fatalf("at %d", at)
	}
	clock = 9 * hour
	last := m.now()
	if last != 10*hour+1 {
		t.Fatalf("at %d after the clock was set back", last)
	}
	for ahead := last - clock; clock < 18*hour; {
		clock += int64(time.Second)
		at := m.now()
		switch passed := at - last; {
		case passed < int64(time.Second)*7/8, passed > int64(time.Second):
			t.Fatalf("clock %d: %d passed", clock, passed)
		case at-clock > ahead || e.ahead.Load() != at-clock:
			t.Fatalf("clock %d: %d ahead, published %d, after %d", clock, at-clock, e.ahead.Load(), ahead)
		default:
			last, ahead = at, at-clock
		}
	}
	if last != clock {
		t.Fatalf("at %d, clock %d: it has not caught up", last, clock)
	}
	for range 100 {
		clock -= hour
		m.now()
		clock += hour
		m.now()
	}
	if ahead := e.ahead.Load(); ahead > 100*int64(time.Second) {
		t.Fatalf("%d ahead", ahead)
	}
}

// TestExpiryBehind: an order expires in a quiet market while the clock is behind the engine's
// time.
func TestExpiryBehind(t *testing.T) {
	var clock atomic.Int64
	clock.Store(10 * hour)
	e := newEngine(t, Options{Clock: clock.Load})
	c := e.Consumer("reader")
	e.mustSubmit(t, head()...)
	gtd := order(1, 1, market.Buy, 100, 5)
	gtd.Order.TIF, gtd.Order.ExpireAt = book.GTD, 10*hour+int64(20*time.Millisecond)
	e.start(t)
	e.mustSubmit(t, gtd)
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	for done := false; !done; {
		events, err := c.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		switch last := events[len(events)-1]; last.Kind {
		case event.Accepted:
			clock.Store(9 * hour)
			e.mustSubmit(t, Command{Kind: Tick})
			await.True(t, "the clock's step", func() bool { return e.ahead.Load() > hour/2 })
			clock.Add(int64(30 * time.Millisecond))
		case event.Cancelled:
			done = true
		}
		c.Release(len(events))
	}
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
}

// TestNextEpoch: a second engine continues where the first ended, in a new epoch, with new
// order ids.
func TestNextEpoch(t *testing.T) {
	e := newEngine(t, Options{})
	e.mustSubmit(t, head()...)
	first := e.OrderIDs().Next()
	e.start(t)
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	seq, digest := e.replica.State.Seq(), e.replica.Digest
	next, err := New(Options{}, e.replica)
	if err != nil {
		t.Fatal(err)
	}
	second := &running{Engine: next, replica: e.replica, err: make(chan error, 1)}
	c := second.Consumer("reader")
	if c.CompleteSeq() != seq {
		t.Fatalf("CompleteSeq %d at the start, want %d", c.CompleteSeq(), seq)
	}
	if next.Epoch() != e.Epoch()+1 || second.OrderIDs().Next() <= first {
		t.Fatalf("epoch %d after %d", next.Epoch(), e.Epoch())
	}
	second.start(t)
	events := collect(c)
	if err := second.finish(t); err != nil {
		t.Fatal(err)
	}
	got := <-events
	if len(got) != 1 || got[0].Kind != event.EpochStarted || got[0].Seq != seq+1 || got[0].Other != next.Epoch() {
		t.Fatalf("%+v", got)
	}
	if want := event.Digest(digest, &got[0]); e.replica.Digest != want {
		t.Fatalf("digest %x, want %x", e.replica.Digest, want)
	}
}

// TestExpiry: an order expires in a quiet market.
func TestExpiry(t *testing.T) {
	var clock atomic.Int64
	clock.Store(second)
	e := newEngine(t, Options{Clock: clock.Load})
	c := e.Consumer("reader")
	e.mustSubmit(t, head()...)
	gtd := order(1, 1, market.Buy, 100, 5)
	gtd.Order.TIF, gtd.Order.ExpireAt = book.GTD, second+int64(10*time.Millisecond)
	e.start(t)
	e.mustSubmit(t, gtd)
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	for {
		events, err := c.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		last := events[len(events)-1]
		c.Release(len(events))
		if last.Kind == event.Accepted {
			clock.Store(2 * second)
		}
		if last.Kind == event.Cancelled {
			if event.Reason(last.Code) != event.ReasonExpired || last.At < gtd.Order.ExpireAt {
				t.Fatalf("%+v", last)
			}
			break
		}
	}
	seq := e.Stats().Seq
	await.True(t, "the ticker's sleep", e.expiryWait.sleeps)
	if now := e.Stats().Seq; now > seq+1 {
		t.Fatalf("%d more ticks with nothing to expire", now-seq)
	}
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
}

// TestClaimExpires: a claim expires in a quiet market.
func TestClaimExpires(t *testing.T) {
	e := newEngine(t, Options{})
	c := e.Consumer("reader")
	f := newDeskFlow(1)
	e.mustSubmit(t, f.head...)
	take := &rfq.TakeClaim{Ticket: 1, Tranche: 1, Fill: 1, Rail: market.RailUSDC, Mode: rfq.Modular, Wallet: testAddress(1)}
	e.start(t)
	if err := e.SubmitAll(f.desk.pack(take)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), runtest.HangTimeout)
	defer cancel()
	var desk rfq.Reader
	var deadline int64
	for state := rfq.ClaimState(0); state != rfq.ClaimExpired; {
		events, err := c.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			record, _, _ := desk.Add(&events[i])
			if claim, ok := record.(*rfq.Claim); ok {
				state, deadline = claim.State, claim.Deadline
				if state == rfq.ClaimExpired && claim.ChangedAt < deadline {
					t.Fatalf("%+v", claim)
				}
			}
		}
		c.Release(len(events))
	}
	if now := time.Now().UnixNano(); deadline == 0 || now < deadline {
		t.Fatalf("at %d, deadline %d", now, deadline)
	}
	await.True(t, "the ticker's sleep", e.expiryWait.sleeps)
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	if at := e.replica.State.NextExpiry(); at != 0 {
		t.Fatalf("next expiry %d with nothing to expire", at)
	}
}

// TestTickRespectsAdmission: AdmitNone stops ticks too.
func TestTickRespectsAdmission(t *testing.T) {
	e := newEngine(t, Options{})
	e.SetAdmission(AdmitNone)
	if nap := e.submitTick(false); nap != maxTickSleep || e.ingress.end() != 1 {
		t.Fatalf("nap %v, %d commands", nap, e.ingress.end())
	}
	e.SetAdmission(AdmitCancels)
	if nap := e.submitTick(false); nap != minTickInterval || e.ingress.end() != 2 {
		t.Fatalf("nap %v, %d commands", nap, e.ingress.end())
	}
	e.close(tailStopped)
	if nap := e.submitTick(false); nap != maxTickSleep || e.ingress.end() != 2 {
		t.Fatalf("nap %v, %d commands", nap, e.ingress.end())
	}
}

func TestAdmission(t *testing.T) {
	e := newEngine(t, Options{})
	kinds := []Kind{
		NewOrder, AmendOrder, CancelOrder, MassCancel, Tick,
		DefineInstrument, SetRisk, SetInstrument, SetParticipant, StartEpoch, Fragment, Desk,
	}
	for admission, admitted := range map[Admission][]Kind{
		AdmitAll:     kinds,
		AdmitCancels: {CancelOrder, MassCancel, Tick, SetParticipant},
		AdmitNone:    nil,
		0:            nil,
	} {
		e.SetAdmission(admission)
		for _, k := range kinds {
			err := e.Submit(&Command{Kind: k})
			if ok := slices.Contains(admitted, k); ok != (err == nil) || err != nil && !errors.Is(err, ErrReadOnly) {
				t.Fatalf("admission %d, kind %d: %v", admission, k, err)
			}
		}
		if e.Stats().Admission != admission {
			t.Fatal("Stats does not say the admission")
		}
	}
}

func TestOrderIDs(t *testing.T) {
	ids := OrderIDs{epoch: 3}
	if got := ids.Next(); got != 3<<orderIDBits|1 {
		t.Fatalf("first id %#x", got)
	}
	ids.given.Store(1<<orderIDBits - 2)
	if got := ids.Next(); got != 4<<orderIDBits-1 {
		t.Fatalf("last id %#x", got)
	}
	for range 2 {
		if got := ids.Next(); got != 0 {
			t.Fatalf("id %#x past the epoch's last, want 0", got)
		}
	}
}

func TestOptions(t *testing.T) {
	if err := (Options{}).Validate(); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"IngressSize not a power": {IngressSize: 3},
		"IngressSize of one":      {IngressSize: 1},
		"IngressSize above":       {IngressSize: 2 * MaxRing},
		"EgressSize not a power":  {EgressSize: 12},
		"EgressSize negative":     {EgressSize: -2},
		"MaxBatch above":          {MaxBatch: MaxFrame + 1},
		"MaxBatch negative":       {MaxBatch: -1},
		"Wait unknown":            {Wait: 3},
		"DrainTimeout negative":   {DrainTimeout: -1},
	} {
		if o.Validate() == nil {
			t.Errorf("%s: valid", name)
		}
		if _, err := New(o, NewReplica(StateOptions{})); err == nil {
			t.Errorf("%s: New takes it", name)
		}
	}
	r := NewReplica(StateOptions{})
	r.State.epoch = MaxEpoch
	if _, err := New(Options{}, r); err == nil {
		t.Fatalf("epoch %d: New: %v", r.State.Epoch()+1, err)
	}
}

func TestConsumerLimit(t *testing.T) {
	e := newEngine(t, Options{})
	for range MaxConsumers {
		e.Consumer("reader")
	}
	defer func() {
		if recover() == nil {
			t.Fatal("MaxConsumers+1 do not panic")
		}
	}()
	e.Consumer("one too many")
}

// TestIdleParks: with nothing to do every goroutine of the engine sleeps.
func TestIdleParks(t *testing.T) {
	e := newEngine(t, Options{Journal: nullJournal{}})
	c := e.Consumer("reader")
	e.mustSubmit(t, head()...)
	e.start(t)
	events := collect(c)
	await.True(t, "sleep", func() bool {
		for _, w := range []*waiter{e.matcherWait, e.journalWait, e.expiryWait, c.waiting} {
			if !w.sleeps() {
				return false
			}
		}
		return true
	})
	if s := e.Stats(); s.Durable != s.Seq || s.Egress != 0 {
		t.Fatalf("asleep with work to do: %+v", s)
	}
	if err := e.finish(t); err != nil {
		t.Fatal(err)
	}
	<-events
}

// TestSubmitAllocatesNothing: from Submit until the consumer has the event, without and
// with a journal.
func TestSubmitAllocatesNothing(t *testing.T) {
	for name, journal := range map[string]Journal{"no journal": nil, "journal": nullJournal{}} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, Options{Journal: journal})
			c := e.Consumer("reader")
			e.mustSubmit(t, head()...)
			e.start(t)
			ctx := t.Context()
			read := func(until event.Kind) {
				for {
					events, err := c.Next(ctx)
					if err != nil {
						t.Fatal(err)
					}
					kind := events[len(events)-1].Kind
					c.Release(len(events))
					if kind == until {
						return
					}
				}
			}
			add := order(1, 1, market.Buy, 100, 5)
			cancel := Command{Kind: CancelOrder}
			cancel.Order.ID, cancel.Order.Participant = 1, 1
			round := func() {
				if e.Submit(&add) != nil {
					t.Fatal("refused")
				}
				read(event.Accepted)
				if e.Submit(&cancel) != nil {
					t.Fatal("refused")
				}
				read(event.Cancelled)
			}
			if n := testing.AllocsPerRun(500, round); n != 0 {
				t.Fatalf("%v allocations for two commands", n)
			}
			if err := e.finish(t); err != nil {
				t.Fatal(err)
			}
		})
	}
}

type nullJournal struct{}

func (nullJournal) Append(uint64, []Command, []Command) error { return nil }
