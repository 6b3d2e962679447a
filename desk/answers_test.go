package desk

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/persist/kv/kvtest"
)

// TestKey: the first answer is repeated to every caller; another body is refused.
func TestKey(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(250)
	first := r.must(keyed(take(ticket.ID, 1), 1, 1))
	if first.Replayed {
		t.Error("the first answer is an earlier one's")
	}
	refused, err := r.Do(keyed(take(ticket.ID, 1), 2, 1))
	if err != nil || refused.Reason != event.ReasonCapacityExhausted {
		t.Fatalf("%+v, %v", refused, err)
	}
	r.must(&rfq.SetTranche{Ticket: ticket.ID, Tranche: 1, Capacity: 500_000_000})
	check := func(when string) {
		t.Helper()
		for key, want := range map[uint32]*Result{1: first, 2: refused} {
			res, err := r.Do(keyed(take(ticket.ID, 1), key, 1))
			if err != nil || !res.Replayed {
				t.Fatalf("%s: key %d: %+v, %v", when, key, res, err)
			}
			sameAnswer(t, fmt.Sprintf("%s: key %d", when, key), res, want)
			_, err = r.Do(keyed(take(ticket.ID, 1), key, 2))
			wantErr(t, when+": another body", err, ErrConflict)
		}
	}
	check("at once")
	if s := r.Stats(); s.Keys != 2 || s.Replayed != 2 || s.Conflicts != 2 {
		t.Errorf("%+v", s)
	}
	r.restart()
	check("after a restart")
	if got := r.View().Ticket(ticket.ID).Tranches[0]; got.Reserved != 250_000_000 {
		t.Errorf("%+v: want one claim", got)
	}
	r.empty()
}

// TestOneOfMany: of a hundred callers with one key, one sends; all with its body
// get its answer, the others a conflict.
func TestOneOfMany(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(1_000_000).ID
	for round := range uint32(20) {
		calls := r.submit.calls.Load()
		answers := make([]call, 100)
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range answers {
			body := byte(1)
			if round >= 10 && i%10 == 0 { // the later rounds have another body among them
				body = 2
			}
			all.Go(func() {
				<-start
				res, err := r.Do(keyed(take(ticket, 1), round+1, body))
				answers[i] = call{res, err}
			})
		}
		close(start)
		all.Wait()
		if n := r.submit.calls.Load() - calls; n != 1 {
			t.Fatalf("round %d: sent %d times", round, n)
		}
		var first *Result
		fresh, conflicts := 0, [2]int{}
		for i, a := range answers {
			if a.err != nil {
				wantErr(t, "a caller", a.err, ErrConflict)
				other := 0
				if round >= 10 && i%10 == 0 {
					other = 1
				}
				conflicts[other]++
				continue
			}
			if first == nil {
				first = a.res
			}
			sameAnswer(t, "a caller", a.res, first)
			if !a.res.Replayed {
				fresh++
			}
		}
		if fresh != 1 || round < 10 && conflicts != [2]int{} || round >= 10 && conflicts != [2]int{0, 10} && conflicts != [2]int{90, 0} {
			t.Errorf("round %d: %d fresh answers, conflicts %v", round, fresh, conflicts)
		}
	}
	if got := r.View().Ticket(ticket).Tranches[0].Reserved; got != 20*250_000_000 {
		t.Errorf("%d reserved: want 20 claims", got)
	}
	r.empty()
}

// TestKeyTTL: a key is free again when its answer is KeyTTL old, and not a
// nanosecond before; then the old answer is taken out.
func TestKeyTTL(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var now int64 = 1_800_000_000_000_000_000
	var mu sync.Mutex
	read := func() int64 { mu.Lock(); defer mu.Unlock(); return now }
	set := func(v int64) { mu.Lock(); defer mu.Unlock(); now = v }
	r.eo.Clock = read
	r.o.Now = func() time.Time { return time.Unix(0, read()) }
	r.start()
	ticket := r.open(1_000_000).ID
	for key := uint32(1); key <= 3; key++ {
		r.must(keyed(quote(ticket), key, 1))
	}
	first := r.must(keyed(quote(ticket), 4, 1))
	ttl := int64(24 * time.Hour)
	set(first.At + ttl - 1)
	if res := r.must(keyed(quote(ticket), 4, 1)); !res.Replayed {
		t.Error("the answer has gone before its time")
	}
	_, err := r.Do(keyed(quote(ticket), 4, 2))
	wantErr(t, "another body in time", err, ErrConflict)
	set(first.At + ttl)
	if res := r.must(keyed(take(ticket, 1), 4, 2)); res.Replayed || res.Claim == nil {
		t.Errorf("the key is not free: %+v", res)
	}
	if res := r.must(keyed(take(ticket, 1), 4, 2)); !res.Replayed || res.Claim == nil {
		t.Errorf("the key has not its new answer: %+v", res)
	}
	await.True(t, "the old answers go", func() bool { return r.Stats().Keys == 1 })
	r.checkKeys(1)
	r.restart()
	if res := r.must(keyed(take(ticket, 1), 4, 2)); !res.Replayed || res.Claim == nil {
		t.Errorf("after a restart: %+v", res)
	}
}

// checkKeys compares the store's answers with their ages and their number.
func (r *rig) checkKeys(want int) {
	r.t.Helper()
	var answers, ages int
	r.store.Scan([]byte{keyAnswer}, []byte{keyAnswer + 1}, func(key, value []byte) bool {
		answers++
		a, err := parseAnswer(value)
		if err != nil {
			r.t.Error(err)
			return false
		}
		if _, ok, _ := r.store.Get(ageKey(nil, a.result.At, (*[16]byte)(key[1:]))); !ok {
			r.t.Errorf("answer %x has no age", key)
		}
		return true
	})
	r.store.Scan([]byte{keyAge}, []byte{keyAge + 1}, func(_, _ []byte) bool { ages++; return true })
	if answers != want || ages != want || r.Stats().Keys != uint64(want) {
		r.t.Errorf("%d answers, %d ages, counted %d; want %d", answers, ages, r.Stats().Keys, want)
	}
}

// TestMaxKeys: one answer more than the limit takes the oldest out.
func TestMaxKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.o.MaxKeys = 5
	r.start()
	ticket := r.open(1_000_000).ID
	r.must(keyed(quote(ticket), 100, 1))
	first := r.must(keyed(quote(ticket), 101, 1))
	for key := uint32(102); key < 105; key++ {
		r.must(keyed(quote(ticket), key, 1))
	}
	if res := r.must(keyed(quote(ticket), 100, 1)); !res.Replayed {
		t.Error("an answer has gone though there is room")
	}
	r.must(keyed(quote(ticket), 105, 1))
	await.True(t, "one answer goes", func() bool { return r.Stats().Keys == 5 })
	r.checkKeys(5)
	sameAnswer(t, "the second oldest", r.must(keyed(quote(ticket), 101, 1)), first)
	if res := r.must(keyed(quote(ticket), 100, 1)); res.Replayed {
		t.Error("the oldest answer is still there")
	}
	// Many at once, so that a commit brings more than the limit.
	var all sync.WaitGroup
	for key := range uint32(400) {
		all.Go(func() { r.must(keyed(quote(ticket), 1000+key, 1)) })
	}
	all.Wait()
	await.True(t, "the others go", func() bool { return r.Stats().Keys == 5 })
	r.checkKeys(5)
	// A smaller limit takes hold after the start.
	if err := r.finish(); err != nil {
		t.Fatal(err)
	}
	r.o.MaxKeys = 2
	r.start()
	await.True(t, "the rest goes", func() bool { return r.Stats().Keys == 2 })
	r.checkKeys(2)
	r.restart()
	r.checkKeys(2)
}

// TestPruneIsBounded: one prune takes out no more than it may.
func TestPruneIsBounded(t *testing.T) {
	t.Parallel()
	store := kvtest.New()
	d, err := New(Options{MaxKeys: 1}, nil, store)
	if err != nil {
		t.Fatal(err)
	}
	f := &d.projector
	next := uint32(0)
	fill := func(n int) {
		for range n {
			next++
			f.key = &rfq.KeyUsed{Key: rfq.IdempotencyKey{ID: keyID(next)}}
			if err := f.writeAnswer(&Result{Outcome: rfq.Outcome{At: int64(next)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.commit(false); err != nil {
			t.Fatal(err)
		}
	}
	fill(1000)
	f.newKeys = 0
	for want := 1000 - pruneExtra; want > 0; want -= pruneExtra {
		if err := f.prune(); err != nil {
			t.Fatal(err)
		}
		if f.keys != uint64(want) {
			t.Fatalf("%d answers are left; want %d", f.keys, want)
		}
	}
	fill(pruneMax + 100)
	f.newKeys = pruneMax
	had := f.keys
	if err := f.prune(); err != nil {
		t.Fatal(err)
	}
	if had-f.keys != pruneMax {
		t.Errorf("%d were taken out; want %d", had-f.keys, pruneMax)
	}
	before := store.Content()
	f.desk.o.MaxKeys = 1 << 20
	if err := f.prune(); err != nil || len(store.Content()) != len(before) {
		t.Errorf("prune took out what may stay: %v", err)
	}
}

// TestAnswerInBetween: a call that has looked into the store in vain and joins the
// table late finds an answer that was stored in between.
func TestAnswerInBetween(t *testing.T) {
	t.Parallel()
	store := &hookStore{Memory: kvtest.New()}
	r := newRig(t)
	r.store = store
	r.start()
	ticket := r.open(1000).ID
	gets := make(chan chan struct{})
	next := func() chan struct{} {
		t.Helper()
		return await.Receive(t, "a look into the store", gets)
	}
	store.gets.Store(&gets)
	late := r.async(keyed(take(ticket, 1), 1, 1))
	lateLook := next()
	other := r.async(keyed(take(ticket, 1), 1, 2))
	otherLook := next()
	first := r.async(keyed(take(ticket, 1), 1, 1))
	close(next())         // its own look
	close(next())         // the follower's
	want := r.get(first)  // has landed
	store.gets.Store(nil) // a caller that looks again is not stopped,
	calls := r.submit.calls.Load()
	close(lateLook)
	got := r.get(late)
	close(otherLook)
	if got.err != nil || !got.res.Replayed || want.err != nil || want.res.Replayed {
		t.Fatalf("late: %+v, first: %+v", got, want)
	}
	sameAnswer(t, "late", got.res, want.res)
	wantErr(t, "another body, late", r.get(other).err, ErrConflict)
	if n := r.submit.calls.Load() - calls; n != 0 {
		t.Errorf("sent %d times more", n)
	}
	r.empty()
}

// TestAnswerBesideAnotherBody: a request with another body may hold the key for a
// moment; a call with the right body still gets the answer.
func TestAnswerBesideAnotherBody(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	ticket := r.open(1000).ID
	want := r.must(keyed(take(ticket, 1), 1, 1))
	// The wrong body has looked before the answer came, and is about to look again.
	key := rfq.IdempotencyKey{ID: keyID(1), Body: [8]byte{2, 1}}
	w := r.table.acquire()
	f, _ := r.table.join(&key, w, 0)
	// So has the right one.
	v := r.table.acquire()
	req := keyed(take(ticket, 1), 1, 1)
	store := r.store.(*kvtest.Memory)
	value := store.Content()[string(answerKey(nil, &key.ID))]
	hidden := &vanishing{Memory: store, times: 1}
	r.Desk.store.Store = hidden
	res, slotInUse, err := r.doKeyed(req, &req.Key, v)
	if err != nil || slotInUse || res == nil || !res.Replayed || len(value) == 0 {
		t.Fatalf("%+v, %v, %v", res, slotInUse, err)
	}
	sameAnswer(t, "the right body", res, want)
	r.table.release(v, false)
	r.table.close(f, nil, ErrConflict)
	<-w.done
	r.table.release(w, false)
	r.empty()
}

// vanishing finds no answer the first times.
type vanishing struct {
	*kvtest.Memory
	times int
}

func (s *vanishing) Get(key []byte) ([]byte, bool, error) {
	if s.times--; s.times >= 0 {
		return nil, false, nil
	}
	return s.Memory.Get(key)
}

// TestKeyOfAnotherGateway: requests that do not come through Do may bring a key
// twice, in one batch of events too; the first answer stays.
func TestKeyOfAnotherGateway(t *testing.T) {
	t.Parallel()
	for _, together := range []bool{false, true} {
		r := newRig(t)
		r.journal.gate = make(chan struct{}, 1<<20)
		r.openGate()
		r.start()
		ticket := r.open(1000).ID
		if together {
			for len(r.journal.gate) > 0 {
				<-r.journal.gate
			}
		}
		var tokens []uint64
		for range 2 {
			req := keyed(quote(ticket), 1, 1)
			req.RequestID = NewRequestID(0)
			tokens = append(tokens, req.RequestID)
			commands, err := engine.DeskCommands(nil, req)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.submit.SubmitAll(commands); err != nil {
				t.Fatal(err)
			}
			if !together {
				r.must(quote(ticket)) // another batch
			}
		}
		r.openGate()
		r.must(quote(ticket))
		if res := r.must(keyed(quote(ticket), 1, 1)); res.RequestID != tokens[0] || !res.Replayed {
			t.Errorf("together %v: the answer of token %d; want %d", together, res.RequestID, tokens[0])
		}
		r.checkKeys(1)
		r.finish()
	}
}

// TestKeyReused: an answer that was taken out is forgotten altogether.
func TestKeyReused(t *testing.T) {
	t.Parallel()
	d, err := New(Options{}, nil, kvtest.New())
	if err != nil {
		t.Fatal(err)
	}
	f := &d.projector
	for i := range int64(4) {
		at := 1 + i*int64(24*time.Hour)
		f.at, f.key = at, &rfq.KeyUsed{Key: rfq.IdempotencyKey{ID: keyID(uint32(1 + i%2))}}
		if err := f.writeAnswer(&Result{Outcome: rfq.Outcome{At: at}}); err != nil {
			t.Fatal(err)
		}
		if err := f.flush(false); err != nil {
			t.Fatal(err)
		}
		if f.keys != 1 {
			t.Fatalf("round %d: %d answers", i, f.keys)
		}
		(&rig{t: t, Desk: d, store: d.store.Store}).checkKeys(1)
	}
}
