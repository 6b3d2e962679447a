package desk

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
)

// call is a Do on its way.
type call struct {
	res *Result
	err error
}

func (r *rig) async(req rfq.Request) <-chan call {
	c := make(chan call, 1)
	go func() {
		res, err := r.Do(req)
		c <- call{res, err}
	}()
	return c
}

func (r *rig) get(c <-chan call) call {
	r.t.Helper()
	return await.Receive(r.t, "an answer of Do", c)
}

// empty fails unless no call waits and nothing is in flight.
func (r *rig) empty() {
	r.t.Helper()
	tokens, keys := r.underWay()
	if n := r.Stats().Waiting; n != 0 || tokens != 0 || keys != 0 {
		r.t.Errorf("%d places, %d tokens and %d keys are left", n, tokens, keys)
	}
}

func (r *rig) underWay() (tokens, keys int) {
	for i := range r.table.byID {
		s := &r.table.byID[i]
		s.mu.Lock()
		tokens += len(s.inflight)
		s.mu.Unlock()
		k := &r.table.keys[i]
		k.mu.Lock()
		keys += len(k.inflight)
		k.mu.Unlock()
	}
	return tokens, keys
}

// gated returns a rig with a ticket whose journal waits for the test from now on. In a
// synctest bubble, time-outs are due when nothing else can happen, and not before.
func gated(t *testing.T, adjust func(*Options)) (*rig, market.TicketID) {
	r := newRig(t)
	if adjust != nil {
		adjust(&r.o)
	}
	r.journal.gate = make(chan struct{}, 1<<20)
	for range 100 {
		r.journal.gate <- struct{}{}
	}
	timeout := r.o.Timeout
	r.o.Timeout = runtest.HangTimeout
	r.start()
	ticket := r.open(1_000_000)
	r.Desk.o.Timeout = timeout
	// Let what the gate still holds run out: a command a frame at most.
	for len(r.journal.gate) > 0 {
		<-r.journal.gate
	}
	t.Cleanup(func() {
		for range 1 << 16 {
			r.journal.gate <- struct{}{}
		}
	})
	return r, ticket.ID
}

func (r *rig) openGate() {
	for range 1 << 16 {
		r.journal.gate <- struct{}{}
	}
}

// TestNothingBeforeDurable: no outcome while the journal works on it.
func TestNothingBeforeDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, nothingBeforeDurable)
}

func nothingBeforeDurable(t *testing.T) {
	r, ticket := gated(t, nil)
	before := r.View()
	c := r.async(take(ticket, 1))
	await.True(t, "the request is applied", func() bool { return r.eng.Stats().Seq > before.Seq })
	await.VirtualSleep(t, time.Second)
	synctest.Wait()
	select {
	case got := <-c:
		t.Fatalf("answered before it was durable: %+v", got)
	default:
	}
	if r.View() != before {
		t.Error("the view shows what is not durable")
	}
	r.openGate()
	if got := r.get(c); got.err != nil || got.res.Claim == nil {
		t.Errorf("%+v", got)
	}
}

// TestTimeout: Do gives up in time and leaves nothing behind, but a request with
// a key stays to be found: the next one with the key gets its answer.
func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, timeout)
}

func timeout(t *testing.T) {
	r, ticket := gated(t, func(o *Options) { o.Timeout = 30 * time.Millisecond })
	_, err := r.Do(take(ticket, 1))
	wantErr(t, "no key", err, ErrTimeout, ErrUnknown)
	r.empty()

	calls := r.submit.calls.Load()
	_, err = r.Do(keyed(take(ticket, 1), 1, 1))
	wantErr(t, "a key", err, ErrTimeout, ErrUnknown)
	if tokens, keys := r.underWay(); tokens != 1 || keys != 1 || r.Stats().Waiting != 1 {
		t.Errorf("%d tokens, %d keys, %d places; want one of each", tokens, keys, r.Stats().Waiting)
	}
	_, err = r.Do(keyed(take(ticket, 1), 1, 2))
	wantErr(t, "another body", err, ErrConflict)
	_, err = r.Do(keyed(take(ticket, 1), 1, 1))
	wantErr(t, "the key again", err, ErrTimeout)
	if n := r.Stats().Waiting; n != 1 {
		t.Errorf("%d places; want 1", n)
	}
	again := r.async(keyed(take(ticket, 1), 1, 1))
	synctest.Wait() // it has joined the one that was sent
	r.openGate()
	got := r.get(again)
	if got.err != nil || got.res.Claim == nil || !got.res.Replayed {
		t.Fatalf("after all: %+v, %v", got.res, got.err)
	}
	if n := r.submit.calls.Load() - calls; n != 1 {
		t.Errorf("sent %d times", n)
	}
	await.True(t, "nothing is left", func() bool { tokens, keys := r.underWay(); return tokens+keys+r.Stats().Waiting == 0 })
	if reserved := r.View().Ticket(ticket).Tranches[0].Reserved; reserved != 500_000_000 {
		t.Errorf("%d reserved; want the claims of two requests", reserved)
	}
}

// TestMaxWaiting: one call more than the limit is refused, and a released slot can be
// taken again. A keyed request keeps its slot after its callers have timed out.
func TestMaxWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, maxWaiting)
}

func maxWaiting(t *testing.T) {
	const limit = 6
	r, ticket := gated(t, func(o *Options) { o.MaxWaiting = limit; o.Timeout = time.Second })
	var calls []<-chan call
	for i := range limit {
		req := take(ticket, 1)
		if i%2 == 0 {
			keyed(req, uint32(1+i/4), 1) // two on one key, one on another
		}
		calls = append(calls, r.async(req))
	}
	await.True(t, "all places are taken", func() bool { return r.Stats().Waiting == limit })
	for _, req := range []rfq.Request{quote(ticket), keyed(quote(ticket), 1, 1), keyed(quote(ticket), 99, 1)} {
		_, err := r.Do(req)
		wantErr(t, "one more", err, ErrBusy)
	}
	if n := r.Stats(); n.Busy != 3 || n.Waiting != limit {
		t.Errorf("%+v", n)
	}
	for _, c := range calls {
		wantErr(t, "waiting", r.get(c).err, ErrTimeout)
	}
	await.True(t, "places come back", func() bool { return r.Stats().Waiting == 2 })
	r.openGate()
	await.True(t, "all places come back", func() bool { return r.Stats().Waiting == 0 })
	r.empty()
	r.Desk.o.Timeout = runtest.HangTimeout
	r.must(quote(ticket))
}

// TestFullRing: ErrBusy leaves nothing in flight, also with calls that have joined.
func TestFullRing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, fullRing)
}

func fullRing(t *testing.T) {
	r := newRig(t)
	r.eo.IngressSize = 8
	r.journal.gate = make(chan struct{}, 1<<20)
	r.openGate()
	r.start()
	ticket := r.open(1000).ID
	for len(r.journal.gate) > 0 {
		<-r.journal.gate
	}
	t.Cleanup(r.openGate)
	r.Desk.o.Timeout = 200 * time.Millisecond
	var busy, late atomic.Int64
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			_, err := r.Do(keyed(take(ticket, 1), uint32(i/4), 1))
			switch {
			case errors.Is(err, ErrBusy):
				busy.Add(1)
			case errors.Is(err, ErrTimeout):
				late.Add(1)
			default:
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if busy.Load() == 0 || late.Load() == 0 {
		t.Errorf("%d busy, %d late: want some of both", busy.Load(), late.Load())
	}
	r.openGate()
	await.True(t, "all places come back", func() bool { return r.Stats().Waiting == 0 })
	r.empty()
}

// TestStop: a waiting call ends when the engine stops, not at its timeout.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, stopWaiting)
}

func stopWaiting(t *testing.T) {
	r, ticket := gated(t, func(o *Options) { o.Timeout = time.Hour; o.DrainTimeout = 50 * time.Millisecond })
	calls := []<-chan call{r.async(take(ticket, 1)), r.async(keyed(take(ticket, 1), 1, 1)), r.async(keyed(take(ticket, 1), 1, 1))}
	await.True(t, "all wait", func() bool { return r.Stats().Waiting == 3 })
	await.True(t, "all are sent", func() bool { tokens, _ := r.underWay(); return tokens == 2 })
	began := time.Now()
	r.stop()
	for _, c := range calls {
		wantErr(t, "waiting", r.get(c).err, ErrStopped, ErrUnknown)
	}
	if took := time.Since(began); took > r.o.DrainTimeout {
		t.Errorf("it took %v", took)
	}
	if err := <-r.ran; !errors.Is(err, errDrainTimeout) {
		t.Errorf("Run: %v", err)
	}
	r.openGate()
	<-r.engRan
	r.stop = nil
	_, err := r.Do(quote(ticket))
	wantErr(t, "after the stop", err, ErrStopped)
	if errors.Is(err, ErrUnknown) {
		t.Error("what was never sent cannot have happened")
	}
	r.empty()
}

// TestJournalFails: a waiting call ends when the journal fails, and stored answers can
// still be read.
func TestJournalFails(t *testing.T) {
	t.Parallel()
	r, ticket := gated(t, func(o *Options) { o.Timeout = time.Hour })
	first := r.async(keyed(take(ticket, 1), 5, 1))
	r.journal.gate <- struct{}{}
	want := r.get(first)
	if want.err != nil {
		t.Fatal(want.err)
	}
	calls := []<-chan call{r.async(take(ticket, 1)), r.async(keyed(take(ticket, 1), 1, 1)), r.async(keyed(take(ticket, 1), 1, 1))}
	await.True(t, "all are sent", func() bool { tokens, _ := r.underWay(); return tokens == 2 && r.Stats().Waiting == 3 })
	r.journal.mu.Lock()
	r.journal.failAt = r.journal.frames + 1
	r.journal.mu.Unlock()
	r.openGate()
	for _, c := range calls {
		got := r.get(c)
		if got.err == nil { // its frame was under way already
			continue
		}
		wantErr(t, "waiting", got.err, ErrReadOnly, ErrUnknown)
	}
	await.True(t, "the engine is read-only", func() bool { return r.eng.Stats().Failed != nil })
	_, err := r.Do(quote(ticket))
	wantErr(t, "afterwards", err, ErrReadOnly)
	if errors.Is(err, ErrUnknown) {
		t.Error("what was refused cannot have happened")
	}
	res, err := r.Do(keyed(take(ticket, 1), 5, 1))
	if err != nil || !res.Replayed {
		t.Fatalf("an answer that is stored: %+v, %v", res, err)
	}
	sameAnswer(t, "read-only", res, want.res)
	await.True(t, "nothing is left", func() bool { return r.Stats().Waiting == 0 })
	r.empty()
}

// TestReadOnlyAdmission: a read-only desk refuses; it is no failure.
func TestReadOnlyAdmission(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(1000).ID
	r.eng.SetAdmission(engine.AdmitCancels)
	for _, req := range []rfq.Request{quote(ticket), keyed(quote(ticket), 1, 1)} {
		_, err := r.Do(req)
		wantErr(t, "a quote", err, ErrReadOnly)
	}
	r.must(&rfq.WithdrawTicket{Ticket: ticket})
	r.eng.SetAdmission(engine.AdmitAll)
	if res, err := r.Do(keyed(quote(ticket), 1, 1)); err != nil || res.Replayed {
		t.Errorf("after the refusal: %+v, %v", res, err)
	}
	r.empty()
}

// TestStoreFails: no call hangs and no request is accepted, but views continue; Run
// returns the failure at its end, and Replay restores what the store lacks.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.Timeout = time.Hour
	r.start()
	ticket := r.open(1000).ID
	r.store.(*kvtest.Memory).Break(kvtest.ErrBroken)
	calls := []<-chan call{r.async(take(ticket, 1)), r.async(take(ticket, 2))}
	for _, c := range calls {
		wantErr(t, "waiting", r.get(c).err, ErrReadOnly)
	}
	sent := r.submit.calls.Load()
	for _, req := range []rfq.Request{quote(ticket), keyed(quote(ticket), 2, 1)} {
		_, err := r.Do(req)
		if err == nil || errors.Is(err, ErrUnknown) || r.submit.calls.Load() != sent {
			t.Errorf("afterwards something was sent: %v", err)
		}
	}
	before := r.View().Seq
	withdraw := &rfq.WithdrawTicket{Ticket: ticket}
	withdraw.RequestID = NewRequestID(0)
	commands, err := engine.DeskCommands(nil, withdraw)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.eng.SubmitAll(commands); err != nil {
		t.Fatal(err)
	}
	await.True(t, "readers see what others do", func() bool {
		v := r.View()
		return v.Seq > before && v.Ticket(ticket).State == rfq.TicketWithdrawn
	})
	if _, _, err := r.Claim(1); !errors.Is(err, kvtest.ErrBroken) {
		t.Errorf("Claim: %v", err)
	}
	r.empty()
	if err := r.finish(); !errors.Is(err, kvtest.ErrBroken) {
		t.Errorf("Run: %v", err)
	}
	r.store = r.store.(*kvtest.Memory).Prefix(r.store.(*kvtest.Memory).Commits())
	r.start()
	for _, k := range r.View().Ticket(ticket).Tranches {
		if claims := r.claims(); market.USD(claims)*market.FillUSD(1).USD() != k.Reserved {
			t.Errorf("the repaired store has %d claims, the ticket %d reserved", claims, k.Reserved)
		}
	}
}

// claims counts the claims that the store has heard of.
func (r *rig) claims() int {
	ids := map[string]bool{}
	for key := range content(r.store.(*kvtest.Memory)) {
		if key[0] == keyHistory {
			ids[key[1:9]] = true
		}
	}
	return len(ids)
}

// TestRunIsOnce: Run wants Start before it, and one call.
func TestRunIsOnce(t *testing.T) {
	t.Parallel()
	d, err := New(Options{}, nil, kvtest.New())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(context.Background(), nil); err == nil {
		t.Error("Run before Start")
	}
	r := newRig(t).start()
	r.open(1000) // Run works
	if err := r.Run(context.Background(), nil); err == nil {
		t.Error("Run twice")
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	if err := (Options{}).Validate(); err != nil {
		t.Error(err)
	}
	for i, o := range []Options{
		{Timeout: -1},
		{Timeout: 2 * time.Hour},
		{MaxWaiting: -1},
		{MaxWaiting: 1<<20 + 1},
		{KeyTTL: time.Millisecond},
		{MaxKeys: -1},
		{MaxKeys: 100_000_001},
		{SyncEvery: -1},
		{DrainTimeout: 2 * time.Hour},
	} {
		if err := o.Validate(); err == nil {
			t.Errorf("options %d: no error", i)
		}
		if _, err := New(o, nil, kvtest.New()); err == nil {
			t.Errorf("New with options %d: no error", i)
		}
	}
}

// TestStress: many callers with short timeouts over a slow journal; what was
// answered holds, and nothing is left.
func TestStress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.eo.EgressSize = 64 // commands come in pieces
	r.o.MaxWaiting = 40
	r.start()
	ticket := r.open(1_000_000).ID
	var all sync.WaitGroup
	var claims, distinct sync.Map
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		watchViews(t, r.Desk, done)
	}()
	for g := range 50 {
		all.Go(func() {
			for i := range 40 {
				key := uint32(g%25*1000 + i/2)
				var req rfq.Request
				switch (g/25 + i) % 3 {
				case 0:
					req = quote(ticket)
				case 1:
					req = take(ticket, byte(g+1))
				default:
					req = keyed(take(ticket, byte(key%250+1)), key+1, 1)
				}
				res, err := r.Do(req)
				switch {
				case errors.Is(err, ErrBusy):
				case err != nil || res.Reason != 0:
					t.Errorf("%T: %+v, %v", req, res, err)
				case res.Claim != nil:
					claims.Store(res.Claim.ID, true)
					if k := req.Head().Key; k != (rfq.IdempotencyKey{}) {
						if was, ok := distinct.LoadOrStore(k, res.Claim.ID); ok && was != res.Claim.ID {
							t.Errorf("key %x made claims %d and %d", k.ID, was, res.Claim.ID)
						}
					}
				}
			}
		})
	}
	all.Wait()
	close(done)
	<-watched
	n := 0
	claims.Range(func(id, _ any) bool {
		n++
		if h, ok, err := r.Claim(id.(market.ClaimID)); err != nil || !ok || h.Claim.State != rfq.ClaimReserved {
			t.Errorf("claim %d: %+v, %v, %v", id, h, ok, err)
		}
		return true
	})
	if got, want := fmt.Sprint(r.View().Ticket(ticket).Tranches[0].Reserved), fmt.Sprint(n*250_000_000); got != want {
		t.Errorf("%s reserved for %d claims", got, n)
	}
	r.empty()
}

// watchViews checks every view that it sees.
func watchViews(t *testing.T, d *Desk, done <-chan struct{}) {
	var last *rfq.View
	for {
		select {
		case <-done:
			return
		default:
		}
		v := d.View()
		if v == last {
			runtime.Gosched()
			continue
		}
		if last != nil && v.Seq < last.Seq {
			t.Errorf("a view of seq %d after one of %d", v.Seq, last.Seq)
		}
		last = v
		checkView(t, v)
	}
}

// checkView fails unless v is that of whole commands: the pair has reserved and
// sold what the tickets have, at a dollar a unit.
func checkView(t *testing.T, v *rfq.View) {
	t.Helper()
	var reserved, filled market.USD
	for _, k := range v.Tickets {
		for i := range k.Tranches {
			reserved += k.Tranches[i].Reserved
			filled += k.Tranches[i].Filled
		}
	}
	if p := v.Pair(pair); p != nil && (p.Reserved != uint64(reserved) || p.Sold != uint64(filled)) {
		t.Errorf("the view of seq %d: the pair has reserved %d and sold %d, its tickets %d and %d", v.Seq, p.Reserved, p.Sold, reserved, filled)
	}
}
