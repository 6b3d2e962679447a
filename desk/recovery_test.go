package desk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/market"
	"blockdesk/persist"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/persist/projection"
)

// replied are the answers that callers have.
type replied struct {
	req    func() rfq.Request
	result *Result
}

// work does n random requests from several goroutines and returns the answers
// to those with a key.
func (r *rig) work(rng *rand.Rand, ticket market.TicketID, n int, firstKey uint32) map[uint32]replied {
	type reported struct {
		key uint32
		replied
	}
	out := make(chan reported, n)
	var claims []market.ClaimID
	for range 4 {
		if res, err := r.Do(take(ticket, 1)); err == nil && res.Claim != nil {
			claims = append(claims, res.Claim.ID)
		}
	}
	workers := 4
	done := make(chan struct{}, workers)
	for w := range workers {
		seed := rng.Uint64()
		go func() {
			defer func() { done <- struct{}{} }()
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for i := range n / workers {
				key := firstKey + uint32(w*n+i)
				req := randomRequest(rng, ticket, claims)
				if rng.IntN(4) == 0 {
					r.Do(req()) // without a key
					continue
				}
				res, err := r.Do(keyed(req(), key, 1))
				if err == nil {
					out <- reported{key, replied{req, res}}
				}
			}
		}()
	}
	for range workers {
		<-done
	}
	close(out)
	all := map[uint32]replied{}
	for s := range out {
		all[s.key] = s.replied
	}
	return all
}

func randomRequest(rng *rand.Rand, ticket market.TicketID, claims []market.ClaimID) func() rfq.Request {
	wallet, claim, step := byte(1+rng.IntN(5)), claims[rng.IntN(len(claims))], byte(1+rng.IntN(3))
	switch rng.IntN(8) {
	case 0, 1:
		return func() rfq.Request { return take(ticket, wallet) }
	case 2, 3:
		return func() rfq.Request { return quote(ticket) }
	case 4:
		return func() rfq.Request {
			return &rfq.ProvePayment{Claim: claim, Signature: [64]byte{step, byte(claim)}, Rail: market.RailUSDC, Amount: 250_000_000}
		}
	case 5:
		return func() rfq.Request { return &rfq.BeginDelivery{Claim: claim, Proof: [32]byte{step}} }
	case 6:
		return func() rfq.Request { return &rfq.SettleClaim{Claim: claim, Proof: [32]byte{step}} }
	default:
		return func() rfq.Request {
			return &rfq.PostTicket{Label: "more", Instrument: pair, Capacities: []market.USD{market.USD(step) * 250_000_000}}
		}
	}
}

// holds asks for everything that was said again.
func (r *rig) holds(all map[uint32]replied) {
	r.t.Helper()
	for key, s := range all {
		res, err := r.Do(keyed(s.req(), key, 1))
		if err != nil || !res.Replayed {
			r.t.Fatalf("key %d: %+v, %v; was %+v", key, res, err, s.result)
		}
		sameAnswer(r.t, fmt.Sprint("key ", key), res, s.result)
		if s.result.Claim != nil {
			h, ok, err := r.Claim(s.result.Claim.ID)
			if err != nil || !ok || !hasState(h, s.result.Claim) {
				r.t.Fatalf("key %d: claim %+v is not in its history: %+v, %v", key, s.result.Claim, h, err)
			}
		}
	}
}

func hasState(h *History, c *rfq.Claim) bool {
	for i := range h.States {
		if h.States[i] == *c {
			return true
		}
	}
	return false
}

// TestCrash: over several lives that end in the midst of work, with part of the
// store's last commits lost, whatever was said is said again, and nothing is done
// twice.
func TestCrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t)
		r.eo.EgressSize = 128
		r.start()
		ticket := r.open(1_000_000).ID
		all := map[uint32]replied{}
		for life := range 5 {
			for key, s := range r.work(rng, ticket, 60, uint32(1+life*10_000)) {
				all[key] = s
			}
			left := r.store.(*kvtest.Memory).CrashAnywhere(rng)
			r.finish()
			r.store = left
			r.start()
			r.holds(all)
		}
		// Every effect has a published result.
		want := map[market.ClaimID]bool{}
		r.store.Scan([]byte{keyHistory}, []byte{keyHistory + 1}, func(_, value []byte) bool {
			if claim, _, err := parseEntry(value); err == nil && claim != nil {
				want[claim.ID] = true
			}
			return true
		})
		var got market.USD
		for _, tr := range r.View().Ticket(ticket).Tranches {
			got += tr.Reserved + tr.Filled
		}
		if got != market.USD(len(want))*250_000_000 {
			t.Errorf("seed %d: %d reserved and filled for %d claims", seed, got, len(want))
		}
		r.finish()
	}
}

// TestEveryCrashPoint: from every prefix of the store's commits the replay makes
// the same store, and so the same answers; also where commits end in the midst of
// a command.
func TestEveryCrashPoint(t *testing.T) {
	t.Parallel()
	for _, midst := range []bool{false, true} {
		r := newRig(t)
		r.eo.EgressSize = 16
		replica := r.recover()
		if midst {
			r.projector.flushAt = 1
		}
		if err := r.Start(replica.State.Desk().ReadModel(), replica.State.Seq()); err != nil {
			t.Fatal(err)
		}
		r.run()
		rng := rand.New(rand.NewPCG(2, 2))
		ticket := r.open(1_000_000, 250).ID
		all := r.work(rng, ticket, 80, 1)
		r.clock.Add(61e9) // claims expire
		r.must(keyed(quote(ticket), 90_000, 1))
		if err := r.finish(); err != nil {
			t.Fatal(err)
		}
		store := r.store.(*kvtest.Memory)
		if n := store.Commits(); midst && n < 2*len(all) {
			t.Errorf("%d commits for %d requests: none ends in the midst of one", n, len(all))
		}
		want := content(store)
		for n := range store.Commits() + 1 {
			r.store = store.Prefix(n)
			d, replica := r.replay(nil)
			if err := d.Start(replica.State.Desk().ReadModel(), replica.State.Seq()); err != nil {
				t.Fatalf("commit %d: %v", n, err)
			}
			if d.Cursor() != replica.State.Seq() {
				t.Fatalf("commit %d: cursor %d, the journal ends at %d", n, d.Cursor(), replica.State.Seq())
			}
			got := content(r.store.(*kvtest.Memory))
			if !reflect.DeepEqual(got, want) {
				for k := range want {
					if got[k] != want[k] {
						t.Errorf("key %x: %x, want %x", k, got[k], want[k])
					}
				}
				t.Fatalf("commit %d of %d: another store: %d entries, want %d", n, store.Commits(), len(got), len(want))
			}
			for key, s := range all {
				k := rfq.IdempotencyKey{ID: keyID(key), Body: [8]byte{1, 1}}
				res, err := d.storedAnswer(&k)
				if err != nil || res == nil {
					t.Fatalf("commit %d: key %d: %+v, %v", n, key, res, err)
				}
				sameAnswer(t, fmt.Sprintf("commit %d: key %d", n, key), res, s.result)
			}
		}
		if len(all) < 20 {
			t.Errorf("only %d answers", len(all))
		}
	}
}

// TestOnPebble: the same on the real store, through crashes of the machine.
func TestOnPebble(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 3))
	fs := vfs.NewCrashableMem()
	open := func() *persist.KV {
		kv, err := persist.OpenKV("desk", fs, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return kv
	}
	r := newRig(t)
	r.o.SyncEvery = 5 * time.Millisecond
	all := map[uint32]replied{}
	var ticket market.TicketID
	for life := range 4 {
		kv := open()
		r.store = kv
		r.start()
		if life == 0 {
			ticket = r.open(1_000_000).ID
		}
		r.holds(all)
		for key, s := range r.work(rng, ticket, 60, uint32(1+life*10_000)) {
			all[key] = s
		}
		if life == 1 {
			await.True(t, "the cursor is made durable", func() bool { return r.DurableCursor() > 0 && r.DurableCursor() == r.Cursor() })
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
		if err := r.finish(); err != nil {
			t.Fatal(err)
		}
		if err := kv.Close(); err != nil {
			t.Fatal(err)
		}
		fs = crashed
	}
}

// TestDurableCursor: it follows Cursor after a sync, and a clean stop leaves both
// at the journal's end.
func TestDurableCursor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.SyncEvery = 5 * time.Millisecond
	r.start()
	ticket := r.open(1_000_000).ID
	r.must(take(ticket, 1))
	seq := r.View().Seq
	store := r.store.(*kvtest.Memory)
	await.True(t, "a sync", func() bool { return r.DurableCursor() >= seq })
	safe := store.Crash(kvtest.All).Content()
	if got, _, err := parseCursor([]byte(safe[string(rune(projection.KeyCursor))])); err != nil || got < seq {
		t.Errorf("durable up to %d, but synced up to %d, %v", r.DurableCursor(), got, err)
	}
	for range 100 { // no events
		if err := r.eng.Submit(&engine.Command{Kind: engine.Tick}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	end := uint64(len(r.journal.durable()))
	if r.Cursor() != end || r.DurableCursor() != end {
		t.Errorf("after a clean stop: cursor %d, durable %d; the journal ends at %d", r.Cursor(), r.DurableCursor(), end)
	}
}

// TestReplayOfARunningEngine: events taken before Run show in the view too; a
// command may be cut between two calls and Run.
func TestReplayOfARunningEngine(t *testing.T) {
	t.Parallel()
	for cut := 1; cut < 12; cut++ {
		r := newRig(t)
		replica := r.recover()
		c := r.eng.Consumer("desk")
		if err := r.Start(replica.State.Desk().ReadModel(), replica.State.Seq()); err != nil {
			t.Fatal(err)
		}
		commands, err := engine.DeskCommands(nil, &rfq.SetPair{Header: rfq.Header{RequestID: 1}, Pair: rfq.Pair{
			Instrument: pair, Rails: market.AllRails, Source: rfq.SourceOperator, CorridorBps: 1, Via: rfq.NoInstrument,
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.eng.SubmitAll(commands); err != nil {
			t.Fatal(err)
		}
		r.runAfter(c, func() {
			var events []event.Event
			await.True(t, "the pair's events", func() bool { events = c.Poll(); return c.CompleteSeq() >= 1+uint64(len(commands)) })
			n := min(cut, len(events))
			for i := range n {
				if err := r.Replay(events[i : i+1]); err != nil {
					t.Fatal(err)
				}
			}
			c.Release(n)
		})
		await.True(t, "the pair is shown", func() bool { return r.View().Pair(pair) != nil })
		if err := r.finish(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReconcile: where the journal has lost what the store has seen, its word is
// taken; where the store has lost what the journal does not have any more, the
// desk goes on with what there is.
func TestReconcile(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(1_000_000).ID
	durable := r.must(keyed(take(ticket, 1), 1, 1))
	cut := len(r.journal.durable())
	lost := r.must(keyed(take(ticket, 2), 2, 1))
	r.must(&rfq.ProvePayment{Claim: durable.Claim.ID, Signature: [64]byte{1}, Rail: market.RailUSDC, Amount: 250_000_000})
	if id, ok, err := r.PaymentClaim([64]byte{1}); !ok || id != durable.Claim.ID || err != nil {
		t.Errorf("the payment is for %d, %v: %v; want %d", id, ok, err, durable.Claim.ID)
	}
	if id, ok, err := r.PaymentClaim([64]byte{1, 1}); ok || err != nil {
		t.Errorf("a payment that never came is for %d: %v", id, err)
	}
	r.post(250)
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	r.journal.commands = r.journal.commands[:cut]
	replica := r.recover()
	board, seq := replica.State.Desk().ReadModel(), replica.State.Seq()
	if err := r.Start(board, seq); !errors.Is(err, projection.ErrAhead) {
		t.Fatalf("Start: %v; want %v", err, projection.ErrAhead)
	}
	// A crash in the midst of it changes nothing.
	store := r.store.(*kvtest.Memory)
	before := store.Commits()
	if err := r.Reconcile(board, seq); err != nil {
		t.Fatal(err)
	}
	for n := before; n <= store.Commits(); n++ {
		r.store = store.Prefix(n)
		again := r.recover()
		if again.State.Seq() < r.Cursor() {
			if err := r.Reconcile(again.State.Desk().ReadModel(), seq); err != nil {
				t.Fatal(err)
			}
		} else if err := r.Start(again.State.Desk().ReadModel(), seq); err != nil {
			t.Fatalf("commit %d: %v", n, err)
		}
		r.run()
		sameAnswer(t, "what the journal has", r.must(keyed(take(ticket, 1), 1, 1)), durable)
		if h, ok, err := r.Claim(durable.Claim.ID); err != nil || !ok || len(h.States) != 1 || len(h.Payments) != 0 {
			t.Errorf("the claim that is left: %+v, %v, %v", h, ok, err)
		}
		if id, ok, err := r.PaymentClaim([64]byte{1}); ok || err != nil {
			t.Errorf("the payment that is lost is for %d: %v", id, err)
		}
		if _, ok, err := r.Claim(lost.Claim.ID); ok || err != nil {
			t.Errorf("the claim that is lost: %v, %v", ok, err)
		}
		r.checkKeys(1)
		if res := r.must(keyed(take(ticket, 2), 2, 1)); res.Replayed || res.Ticket.Tranches[0].Reserved != 500_000_000 {
			t.Errorf("what was lost is done anew: %+v", res)
		}
		if err := r.finish(); err != nil {
			t.Fatal(err)
		}
		r.journal.commands = r.journal.commands[:cut]
	}

	// The other way round: a store that has lost everything.
	r.store = kvtest.New()
	replica = engine.NewReplica(engine.StateOptions{})
	for _, c := range r.journal.durable() {
		replica.Apply(&c, nil)
	}
	d, err := New(r.o, nil, r.store)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Reconcile(replica.State.Desk().ReadModel(), seq); err != nil {
		t.Fatal(err)
	}
	if d.Cursor() != seq || d.DurableCursor() != seq {
		t.Errorf("cursor %d, durable %d; want %d", d.Cursor(), d.DurableCursor(), seq)
	}
	r.start()
	if res := r.must(take(ticket, 3)); res.Ticket.Tranches[0].Reserved != 500_000_000 {
		t.Errorf("the ticket is not the machine's: %+v", res.Ticket)
	}
}

// TestMissingEvents: a store that does not fit is noticed where it shows.
func TestMissingEvents(t *testing.T) {
	t.Parallel()
	d, err := New(Options{}, nil, kvtest.New())
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		rec rfq.Record
		bad bool
	}{
		{&rfq.TicketTranche{Ticket: 1, Tranche: rfq.Tranche{ID: 1}}, true},
		{&rfq.Ticket{ID: 1}, false},
		{&rfq.TicketTranche{Ticket: 1, Tranche: rfq.Tranche{ID: 2}}, true},
		{&rfq.TicketTranche{Ticket: 1, Tranche: rfq.Tranche{ID: 0}}, true},
		{&rfq.TicketTranche{Ticket: 1, Tranche: rfq.Tranche{ID: 1}}, false},
		{&rfq.TicketTranche{Ticket: 1, Tranche: rfq.Tranche{ID: 2}}, false},
		{&rfq.KeyUsed{RequestID: 9, Key: rfq.IdempotencyKey{ID: keyID(1)}}, false},
		{&rfq.Outcome{RequestID: 9, Ticket: 2}, true},
		{&rfq.Outcome{RequestID: 9, Ticket: 2, Reason: event.ReasonUnknownTicket}, false},
	} {
		if err := d.projector.apply(c.rec, 1); errors.Is(err, ErrLayout) != c.bad {
			t.Errorf("record %d: %v", i, err)
		}
	}
}

// TestForgottenTicket: what the desk forgets, the store forgets.
func TestForgottenTicket(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	durable, missing := r.open(1000).ID, r.post(250).ID
	r.must(&rfq.WithdrawTicket{Ticket: missing})
	r.clock.Add(rfq.TicketRetention + 1e9)
	r.must(&rfq.SetAnchor{Instrument: pair, Price: 1_000_000_000})
	for _, id := range []market.TicketID{durable, missing} {
		_, stored, _ := r.store.Get(ticketKey(nil, id))
		if want := id == durable; stored != want || (r.View().Ticket(id) != nil) != want {
			t.Errorf("ticket %d: stored %v, shown %v", id, stored, r.View().Ticket(id) != nil)
		}
	}
}

// TestReplayPassesOver: events that the store has seen change nothing, though
// others need them.
func TestReplayPassesOver(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(1000).ID
	r.must(keyed(take(ticket, 1), 1, 1))
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	d, err := New(r.o, nil, r.store)
	if err != nil {
		t.Fatal(err)
	}
	replica := engine.NewReplica(engine.StateOptions{})
	for _, c := range r.journal.durable() {
		replica.Apply(&c, func(events []event.Event) {
			if err := d.Replay(events); err != nil {
				t.Fatal(err)
			}
		})
	}
	if n := d.projector.batch.Len() + len(d.projector.changedTickets); n != 0 || d.Cursor() != replica.State.Seq() {
		t.Errorf("%d changes; cursor %d of %d", n, d.Cursor(), replica.State.Seq())
	}
}

// TestOutcomeEndsCommand: after its outcome a request is whole, whatever the
// consumer knows yet; and before it, it is not.
func TestOutcomeEndsCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.open(1000)
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	d, err := New(r.o, nil, kvtest.New())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(&rfq.ReadModel{}, 0); err != nil {
		t.Fatal(err)
	}
	replica := engine.NewReplica(engine.StateOptions{})
	for _, c := range r.journal.durable() {
		replica.Apply(&c, func(events []event.Event) {
			for i := range events {
				before := d.View()
				if err := d.Replay(events[i : i+1]); err != nil {
					t.Fatal(err)
				}
				last := i == len(events)-1
				if whole := d.projector.applied; events[i].Kind == event.Desk && (whole == c.Seq) != last {
					t.Fatalf("seq %d: event %d of %d: whole up to %d", c.Seq, i, len(events), whole)
				}
				if !last && d.View() != before {
					t.Fatalf("seq %d: a view of event %d of %d", c.Seq, i, len(events))
				}
			}
		})
	}
	if len(d.View().Tickets) != 1 {
		t.Errorf("%+v", d.View())
	}
}

// cutConsumer gives events in slices that end anywhere. Whole lags behind at
// times, until Next has waited in vain.
type cutConsumer struct {
	t      *testing.T
	rng    *rand.Rand
	events []event.Event
	given  int // returned
	freed  int // released
	lags   bool
	check  func()
}

func (c *cutConsumer) Next(ctx context.Context) ([]event.Event, error) {
	c.check()
	if _, limited := ctx.Deadline(); c.lags && limited {
		c.lags = false
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if c.given == len(c.events) {
		if c.lags {
			c.t.Error("the last command's end would go unnoticed")
		}
		return nil, io.EOF
	}
	c.given = min(len(c.events), c.given+1+c.rng.IntN(12))
	c.lags = c.given == len(c.events) || c.rng.IntN(2) == 0
	return c.events[c.freed:c.given], nil
}

func (c *cutConsumer) Poll() []event.Event { return nil }
func (c *cutConsumer) Release(n int)       { c.freed += n }

func (c *cutConsumer) CompleteSeq() uint64 {
	last := c.events[c.given-1].Seq
	if c.lags || c.given < len(c.events) && c.events[c.given].Seq == last {
		return last - 1
	}
	return last
}

// endsRequest reports whether e is the last event of an outcome.
func endsRequest(e *event.Event) bool {
	c, ok := e.Desk()
	return ok && rfq.TagOf(&c) == rfq.TagOutcome && c.Index == c.Count-1
}

// deskEvents returns the journal's events up to the last that the desk writes
// by itself, which have no outcome.
func (r *rig) deskEvents() []event.Event {
	var events []event.Event
	end := 0
	replica := engine.NewReplica(engine.StateOptions{})
	for _, c := range r.journal.durable() {
		replica.Apply(&c, func(es []event.Event) {
			events = append(events, es...)
			if last := &es[len(es)-1]; last.Kind == event.Desk && !endsRequest(last) {
				end = len(events)
			}
		})
	}
	if end == 0 {
		r.t.Fatal("nothing has expired by itself")
	}
	return events[:end]
}

// TestCutSlices: however the events are cut, a view is that of all commands that
// have ended, as far as the consumer knows, and of no half one; and the store is
// the same.
func TestCutSlices(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	rng := rand.New(rand.NewPCG(4, 4))
	ticket := r.open(1_000_000, 250).ID
	r.work(rng, ticket, 60, 1)
	for range 4 {
		r.must(take(ticket, 1))
		before := r.View()
		r.expire()
		await.True(t, "claims expire", func() bool { return r.View() != before })
	}
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	events := r.deskEvents()
	var want map[string]string
	for seed := range uint64(8) {
		store := kvtest.New()
		d, err := New(Options{}, nil, store)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Start(&rfq.ReadModel{}, 0); err != nil {
			t.Fatal(err)
		}
		var board rfq.ReadModel
		var reader rfq.Reader
		seen, expect := 0, board.View()
		c := &cutConsumer{t: t, rng: rand.New(rand.NewPCG(seed, 5)), events: events}
		c.check = func() {
			for ; seen < c.given; seen++ {
				e := &events[seen]
				if seen > 0 && e.Seq != events[seen-1].Seq {
					expect = board.View()
				}
				if rec, seq, ok := reader.Add(e); ok {
					board.Apply(rec, seq)
				}
				if endsRequest(e) || seen == c.given-1 && c.CompleteSeq() == e.Seq {
					expect = board.View()
				}
			}
			if c.given > 0 && c.CompleteSeq() == events[c.given-1].Seq {
				expect = board.View()
			}
			if !reflect.DeepEqual(d.View(), expect) {
				t.Fatalf("event %d of %d: a view of seq %d; want that of %d", c.given, len(events), d.View().Seq, expect.Seq)
			}
			checkView(t, d.View())
		}
		if err := d.Run(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = content(store)
		}
		if !reflect.DeepEqual(content(store), want) {
			t.Errorf("seed %d: another store at the end", seed)
		}
	}
}
