package proof

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/store"
)

// account is what the watch has of the treasury's USDC account.
func (x *table) account() *account {
	return &account{
		address: fakeCoin.of(fakeTreasury.addr), since: x.options.Now().Unix() - 10,
		done: map[solana.Signature]finishedAt{}, failed: map[solana.Signature]time.Time{},
	}
}

// goes has the watch look once at an account, without an error.
func (x *table) goes(a *account) {
	x.t.Helper()
	if err := x.follow(x.t.Context(), a); err != nil {
		x.t.Fatal(err)
	}
}

// cursor is the durable one.
func (x *table) cursor() solana.Signature {
	s, _, _ := x.store.Cursor(fakeCoin.of(fakeTreasury.addr))
	return s
}

// old makes a transaction of a while before the watch began.
func (x *table) old() solana.Signature {
	c := x.node.transfer(x.t, fakeFriend, 3)
	c.BlockTime -= 3600
	return x.node.lands(c)
}

// TestWatch: an unreported payment is booked or stored once, over a restart at any
// moment; what was there before the watch is not examined.
func TestWatch(t *testing.T) {
	x := newTable(t, nil)
	before := x.old()
	a := x.account()
	x.goes(a)
	if x.cursor() != before || x.node.count() != 0 {
		t.Fatalf("cursor %s, %d reads", x.cursor(), x.node.count())
	}
	c, other := x.take(), x.take()
	sig := x.node.pays(t, c)
	bare := x.node.lands(x.node.transfer(t, fakeFriend, 5))
	failed := x.node.transfer(t, fakePayer, due(other), binding.Memo(other.ID))
	failed.Failed = true
	x.node.lands(failed)
	x.goes(a)
	if x.state(c) != rfq.ClaimPaid || x.state(other) != rfq.ClaimReserved {
		t.Errorf("states %d, %d", x.state(c), x.state(other))
	}
	if stored, ok := x.store.unmatched(bare); !ok || stored.Amount != 5 || stored.Reason != "missing_reference" || stored.Payer != fakeFriend.addr {
		t.Errorf("unmatched %+v", stored)
	}
	if x.cursor() != before {
		t.Errorf("cursor %s: nothing lingers", x.cursor())
	}
	// Again, and after a restart, nothing happens twice.
	x.goes(a)
	if x.node.count() != 2 {
		t.Errorf("%d reads", x.node.count())
	}
	x.restart(nil)
	a = x.account()
	x.goes(a)
	if x.node.readsOf(sig) != 1 || x.node.readsOf(bare) != 2 || x.desk.proves != 1 {
		t.Errorf("%d and %d reads, %d commands", x.node.readsOf(sig), x.node.readsOf(bare), x.desk.proves)
	}
	// In time the cursor goes over all, and a restart asks for nothing but it.
	x.clock = x.options.CursorDelay
	x.goes(a)
	if x.cursor() != failed.Signature() || len(a.done) != 0 {
		t.Errorf("cursor %s, %d done", x.cursor(), len(a.done))
	}
	x.restart(nil)
	reads := x.node.count()
	x.goes(x.account())
	if x.node.count() != reads+1 || x.node.readsOf(failed.Signature()) != 1 {
		t.Errorf("%d reads more", x.node.count()-reads)
	}
	x.desk.check(t)
}

// TestWatchHistory: what was sent before the watch began, and is final only after
// its first round, is history too.
func TestWatchHistory(t *testing.T) {
	x := newTable(t, nil)
	a := x.account()
	x.goes(a)
	old := x.old()
	c := x.take()
	x.node.pays(t, c)
	x.goes(a)
	if _, stored := x.store.unmatched(old); stored || x.node.readsOf(old) != 0 || x.state(c) != rfq.ClaimPaid {
		t.Errorf("%d reads, state %d", x.node.readsOf(old), x.state(c))
	}
}

// TestPlace: the first cursor is after all that the nodes list, by the middle of their
// answers, and a stored one stays.
func TestPlace(t *testing.T) {
	list := func(slot uint64) []rpc.SignatureInfo {
		return []rpc.SignatureInfo{{Signature: solana.Signature{byte(slot)}, Slot: slot}}
	}
	down := errors.New("down")
	for name, c := range map[string]struct {
		views []rpc.NodeSignatures
		want  byte
		err   error
	}{
		"one":                     {[]rpc.NodeSignatures{{List: list(7)}}, 7, nil},
		"an empty account":        {[]rpc.NodeSignatures{{}}, 0, nil},
		"three":                   {[]rpc.NodeSignatures{{List: list(9)}, {List: list(7)}, {List: list(8)}}, 8, nil},
		"one lies ahead":          {[]rpc.NodeSignatures{{List: list(7)}, {List: list(200)}, {List: list(7)}}, 7, nil},
		"one hides all":           {[]rpc.NodeSignatures{{List: list(7)}, {}, {List: list(7)}}, 7, nil},
		"one is down":             {[]rpc.NodeSignatures{{List: list(9)}, {Err: down}, {List: list(7)}}, 7, nil},
		"two are down":            {[]rpc.NodeSignatures{{List: list(9)}, {Err: down}, {Err: down}}, 0, rpc.ErrNoMajority},
		"one of two is down":      {[]rpc.NodeSignatures{{List: list(9)}, {Err: down}}, 0, rpc.ErrNoMajority},
		"two differ, the earlier": {[]rpc.NodeSignatures{{List: list(9)}, {List: list(8)}}, 8, nil},
	} {
		x := newTable(t, nil)
		p, err := New(x.options, placing{x.node, c.views}, x.desk, x.store)
		if err != nil {
			t.Fatal(err)
		}
		err = p.Place(t.Context())
		s, stored, _ := x.store.Cursor(fakeCoin.of(fakeTreasury.addr))
		if (err != nil) != (c.err != nil) || !errors.Is(err, c.err) || stored != (err == nil) || s[0] != c.want {
			t.Errorf("%s: cursor %d, stored %t, %v", name, s[0], stored, err)
		}
		if !stored {
			continue
		}
		p.node = placing{x.node, []rpc.NodeSignatures{{List: list(250)}}}
		if err := p.Place(t.Context()); err != nil || x.cursor() != s {
			t.Errorf("%s: placed again at %d, %v", name, x.cursor()[0], err)
		}
	}
}

// placing answers with fixed pages.
type placing struct {
	*fakeNode
	views []rpc.NodeSignatures
}

func (n placing) SignaturePageFromEach(context.Context, solana.Address, rpc.Page, rpc.Commitment) ([]rpc.NodeSignatures, error) {
	return n.views, nil
}

// TestWatchFirst: on an account without a history the watch begins with the first
// transaction, and a restart before it changes nothing.
func TestWatchFirst(t *testing.T) {
	x := newTable(t, nil)
	x.goes(x.account())
	if s, ok, _ := x.store.Cursor(fakeCoin.of(fakeTreasury.addr)); !ok || s != (solana.Signature{}) {
		t.Errorf("cursor %s, %t", s, ok)
	}
	c := x.take()
	sig := x.node.pays(t, c)
	x.clock = 24 * time.Hour // while we were away
	x.restart(nil)
	a := x.account()
	x.goes(a)
	if x.state(c) != rfq.ClaimPaid {
		t.Errorf("state %d", x.state(c))
	}
	x.clock += x.options.CursorDelay
	x.goes(a)
	if x.cursor() != sig {
		t.Errorf("cursor %s", x.cursor())
	}
}

// TestWatchPages books thousands of payments that came in one round, over page
// boundaries, whichever it is that has the last one.
func TestWatchPages(t *testing.T) {
	for _, n := range []int{999, 1000, 1001, 2000, 2001} {
		x := newTable(t, nil)
		x.goes(x.account())
		var list []*rfq.Claim
		for range n {
			c := x.take()
			x.node.pays(t, c)
			list = append(list, c)
		}
		a := x.account()
		x.goes(a)
		for i, c := range list {
			if x.state(c) != rfq.ClaimPaid {
				t.Fatalf("%d payments: claim %d in state %d", n, i, x.state(c))
			}
		}
		x.clock = x.options.CursorDelay
		x.goes(a)
		if x.cursor() != x.node.list[n-1].Signature || len(a.done) != 0 || x.node.count() != n {
			t.Errorf("%d payments: cursor %s, %d done, %d reads", n, x.cursor(), len(a.done), x.node.count())
		}
	}
}

// TestWatchAhead: of a history longer than MaxAhead the oldest is looked at first,
// and no more is remembered than that.
func TestWatchAhead(t *testing.T) {
	x := newTable(t, nil)
	x.goes(x.account())
	c := x.take()
	fills := func(n int) {
		for range n {
			at := len(x.node.list)
			s := solana.Signature{1, byte(at), byte(at >> 8), byte(at >> 16)}
			x.node.list = append(x.node.list, rpc.SignatureInfo{Signature: s, Slot: uint64(1000 + at), BlockTime: time.Now().Unix(), Failed: true})
		}
	}
	fills(MaxAhead - 1)
	last := x.node.pays(t, c)
	beyond := x.take()
	x.node.pays(t, beyond)
	a := x.account()
	x.goes(a)
	if x.state(c) != rfq.ClaimPaid || x.state(beyond) != rfq.ClaimReserved || len(a.done) != MaxAhead {
		t.Errorf("states %d and %d, %d done", x.state(c), x.state(beyond), len(a.done))
	}
	x.goes(a)
	if len(a.done) != MaxAhead {
		t.Errorf("%d done", len(a.done))
	}
	x.clock = x.options.CursorDelay
	x.goes(a)
	if x.cursor() != last || len(a.done) != 0 {
		t.Errorf("cursor %s, %d done", x.cursor(), len(a.done))
	}
	x.goes(a)
	if x.state(beyond) != rfq.ClaimPaid {
		t.Errorf("state %d", x.state(beyond))
	}
}

// TestWatchLate: a transaction that a node lists behind newer ones, and one that
// it lists and does not find yet, are booked too.
func TestWatchLate(t *testing.T) {
	x := newTable(t, nil)
	a := x.account()
	x.goes(a)
	c, lagging := x.take(), x.take()
	sig := x.node.pays(t, c)
	notYet := x.node.pays(t, lagging)
	for range 5 {
		x.node.lands(x.node.transfer(t, fakeFriend, 5))
	}
	late := x.node.list[0]
	x.node.list = slices.Delete(x.node.list, 0, 1)
	held := x.node.known[notYet]
	delete(x.node.known, notYet)
	if err := x.follow(t.Context(), a); !errors.Is(err, errNotFinal) || len(a.failed) != 1 {
		t.Errorf("%v, %d failed", err, len(a.failed))
	}
	x.node.list = slices.Insert(x.node.list, 0, late)
	x.node.known[notYet] = held
	x.goes(a)
	if x.state(c) != rfq.ClaimPaid || x.state(lagging) != rfq.ClaimPaid || len(a.failed) != 0 {
		t.Errorf("states %d and %d, %d failed", x.state(c), x.state(lagging), len(a.failed))
	}
	// The list may come in another order within a slot.
	x.node.list[3].Slot, x.node.list[4].Slot = 1003, 1003
	x.node.list[3], x.node.list[4] = x.node.list[4], x.node.list[3]
	x.clock = x.options.CursorDelay
	x.goes(a)
	if reads := x.node.readsOf(sig); reads != 1 || len(a.done) != 0 {
		t.Errorf("%d reads, %d done", reads, len(a.done))
	}
}

// TestWatchLost: a node that does not know the cursor lists everything before it
// too. That is not looked at, and a restart waits for a node that knows it, but
// not for ever.
func TestWatchLost(t *testing.T) {
	x := newTable(t, nil)
	for range 30 {
		x.old()
	}
	a := x.account()
	x.goes(a)
	cursor := x.cursor()
	c := x.take()
	x.node.pays(t, c)
	x.node.lost = true
	x.goes(a)
	if x.node.count() != 1 || x.state(c) != rfq.ClaimPaid {
		t.Errorf("%d reads, state %d", x.node.count(), x.state(c))
	}
	x.restart(nil)
	x.goes(x.account())
	if n := x.node.count(); n != 2 { // the cursor's
		t.Errorf("%d reads", n)
	}
	// A node so far behind that it has not seen the cursor's block.
	x.restart(nil)
	a, whole := x.account(), x.node.list
	x.goes(a)
	x.node.list = whole[:10]
	reads := x.node.count()
	x.goes(a)
	x.node.list = whole
	if x.node.count() != reads {
		t.Errorf("%d reads of what is before the cursor", x.node.count()-reads)
	}
	known := x.node.known[cursor]
	delete(x.node.known, cursor)
	x.restart(nil)
	a = x.account()
	if err := x.follow(t.Context(), a); !errors.Is(err, errCursor) || a.positioned {
		t.Errorf("%v", err)
	}
	x.node.known[cursor] = known
	x.goes(a)
	delete(x.node.known, cursor)
	a = x.account()
	if err := x.follow(t.Context(), a); !errors.Is(err, errCursor) {
		t.Errorf("%v", err)
	}
	x.clock = x.options.GiveUpAfter
	if err := x.follow(t.Context(), a); !a.positioned || a.floor != 0 {
		t.Errorf("never placed: %v", err)
	}
	x.desk.check(t)
}

// TestWatchFaults: while the node or the desk cannot serve nothing is passed, and
// what was passed is not lost.
func TestWatchFaults(t *testing.T) {
	x := newTable(t, func(o *Options) { o.Readers = 1 })
	a := x.account()
	x.goes(a)
	var list []*rfq.Claim
	for range 10 {
		c := x.take()
		x.node.pays(t, c)
		list = append(list, c)
	}
	paid := func() (n int) {
		for _, c := range list {
			if x.state(c) == rfq.ClaimPaid {
				n++
			}
		}
		return n
	}
	down := &rpc.Error{Kind: rpc.Down}
	for _, at := range []int{0, 4} {
		x.node.set(func(f *fakeNode) {
			f.fail = func(s solana.Signature) error {
				if s == f.list[at].Signature {
					return down
				}
				return nil
			}
		})
		if err := x.follow(t.Context(), a); !errors.Is(err, down) || paid() != at || len(a.failed) != 0 {
			t.Errorf("node fails at %d: %v, %d paid, %d failed", at, err, paid(), len(a.failed))
		}
	}
	x.clock = x.options.CursorDelay
	x.node.set(func(f *fakeNode) { f.fail = func(solana.Signature) error { return down } })
	if err := x.follow(t.Context(), a); !errors.Is(err, down) || x.cursor() != (solana.Signature{}) {
		t.Errorf("%v, cursor %s", err, x.cursor())
	}
	x.node.set(func(f *fakeNode) { f.fail = nil })
	x.desk.fail(errDesk)
	if err := x.follow(t.Context(), a); !errors.Is(err, errDesk) {
		t.Errorf("%v", err)
	}
	x.desk.fail(nil)
	if paid() != 4 || x.cursor() != x.node.list[3].Signature {
		t.Errorf("%d paid, cursor %s", paid(), x.cursor())
	}
	x.goes(a)
	if paid() != 10 {
		t.Errorf("%d paid", paid())
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	fresh := x.take()
	x.node.pays(t, fresh)
	if err := x.follow(ctx, a); err == nil && x.state(fresh) != rfq.ClaimPaid {
		t.Error("a round that was stopped says it is done")
	}
	x.goes(a)
	x.desk.check(t)
}

// TestWatchForgets: what a node has listed once and never again is not remembered
// for ever.
func TestWatchForgets(t *testing.T) {
	x := newTable(t, nil)
	a := x.account()
	x.goes(a)
	for range 5 {
		x.node.lands(x.node.transfer(t, fakeFriend, 5))
	}
	x.goes(a)
	x.node.list = slices.Delete(x.node.list, 1, 3)
	x.clock = x.options.CursorDelay
	x.goes(a)
	if len(a.done) != 0 || x.cursor() != x.node.list[2].Signature {
		t.Errorf("%d done, cursor %s", len(a.done), x.cursor())
	}
}

// TestWatchUnreadable: one transaction that no node answers sensibly holds up no
// other one, only the cursor, and is a person's matter in the end.
func TestWatchUnreadable(t *testing.T) {
	x := newTable(t, nil)
	a := x.account()
	x.goes(a)
	c, after := x.take(), x.take()
	first := x.node.pays(t, c)
	poison := x.node.lands(x.node.transfer(t, fakeFriend, 5))
	x.node.pays(t, after)
	x.node.set(func(f *fakeNode) {
		f.fail = func(s solana.Signature) error {
			if s == poison {
				return &rpc.Error{Kind: rpc.WrongAnswer, Err: ledger.ErrIncomplete}
			}
			return nil
		}
	})
	if err := x.follow(t.Context(), a); !errors.Is(err, ledger.ErrIncomplete) {
		t.Errorf("%v", err)
	}
	if x.state(c) != rfq.ClaimPaid || x.state(after) != rfq.ClaimPaid || len(a.failed) != 1 {
		t.Errorf("states %d and %d, %d failed", x.state(c), x.state(after), len(a.failed))
	}
	x.clock = x.options.GiveUpAfter - time.Minute
	if err := x.follow(t.Context(), a); err == nil || x.cursor() != first {
		t.Errorf("%v, cursor %s", err, x.cursor())
	}
	if _, ok := x.store.unmatched(poison); ok {
		t.Error("given up too soon")
	}
	x.clock = x.options.GiveUpAfter + time.Minute
	x.goes(a)
	if stored, ok := x.store.unmatched(poison); !ok || stored.Reason != Unreadable || stored.Amount != 0 || stored.Slot == 0 {
		t.Errorf("unmatched %+v", stored)
	}
	x.clock += x.options.CursorDelay
	x.goes(a)
	if x.cursor() != x.node.list[2].Signature || len(a.failed) != 0 {
		t.Errorf("cursor %s", x.cursor())
	}
}

// TestWatchFull: what there is no room for is retried, forever if necessary, and
// neither given up nor stored twice.
func TestWatchFull(t *testing.T) {
	x := newTable(t, nil)
	a := x.account()
	x.goes(a)
	c := x.take()
	bare := x.node.lands(x.node.transfer(t, fakeFriend, 5))
	x.node.pays(t, c)
	x.store.fail(store.ErrFull)
	for range 3 {
		if err := x.follow(t.Context(), a); !errors.Is(err, store.ErrFull) || x.state(c) != rfq.ClaimPaid {
			t.Errorf("%v, state %d", err, x.state(c))
		}
		x.clock += x.options.GiveUpAfter
	}
	x.store.fail(nil)
	x.goes(a)
	if stored, ok := x.store.unmatched(bare); !ok || stored.Amount != 5 {
		t.Errorf("unmatched %+v", stored)
	}
	d := &scriptedDesk{machineDesk: x.desk, answer: func(rfq.Request) (*desk.Result, error) {
		return &desk.Result{Outcome: rfq.Outcome{Reason: event.ReasonDeskFull}}, nil
	}}
	x.desk2(d)
	short := x.node.lands(x.node.transfer(t, fakePayer, 9, binding.Memo(c.ID)))
	for range 3 {
		if err := x.follow(t.Context(), a); !errors.Is(err, errDeskFull) {
			t.Errorf("%v", err)
		}
		x.clock += x.options.GiveUpAfter
	}
	d.answer = x.desk.Do
	x.goes(a)
	if h, _, _ := x.desk.Claim(c.ID); len(h.Payments) != 2 || h.Payments[1].Signature != short {
		t.Errorf("%+v", h.Payments)
	}
	if _, ok := x.store.unmatched(short); ok {
		t.Error("booked, and kept as unmatched")
	}
}

// TestWatchCircles: a node that lists in circles is found out.
func TestWatchCircles(t *testing.T) {
	x := newTable(t, nil)
	a := x.account()
	x.goes(a)
	later := x.node.transfer(t, fakeFriend, 5)
	later.BlockTime += 3600
	x.node.lands(later)
	x.node.circles, x.node.pages = true, 0
	if err := x.follow(t.Context(), a); !errors.Is(err, ErrAnswer) || x.node.pages != MaxPages {
		t.Errorf("%v after %d pages", err, x.node.pages)
	}
	if _, err := x.list(t.Context(), a); !errors.Is(err, ErrAnswer) {
		t.Errorf("%v", err)
	}
	fresh := x.account()
	x.store.cursors = map[solana.Address]solana.Signature{}
	if err := x.follow(t.Context(), fresh); !errors.Is(err, ErrAnswer) {
		t.Errorf("%v", err)
	}
	x.node.circles = false
	x.goes(a)
}

// TestRun watches a real chain over two lives: unreported payments are booked on both
// rails, and unmatched ones are in settlement's store.
func TestRun(t *testing.T) {
	c := startChain(t)
	c.advance(4) // what made the cast is final
	o := c.options(c.checked)
	o.WatchEvery, o.CursorDelay = 5*time.Millisecond, time.Millisecond
	s := c.stage(nil, o)
	stored := newStore(t)
	first, err := New(o, c.Client, s.machine, stored)
	c.must(err)
	c.must(first.Place(t.Context()))
	run := func(holds func(p *Prover) bool) Stats {
		t.Helper()
		p, err := New(o, c.Client, s.machine, stored)
		c.must(err)
		stop := runtest.Start(t, p.Run)
		await.True(t, "what the watch does", func() bool { return holds(p) })
		stop()
		return p.Stats()
	}
	rounds := func(p *Prover) bool {
		return !slices.ContainsFunc(p.Stats().Watches, func(w Watch) bool { return w.RoundAt == 0 })
	}
	run(rounds)
	usdc, sol, away := s.take(market.RailUSDC), s.take(market.RailSOL), s.take(market.RailUSDC)
	in := func(c *rfq.Claim) rfq.ClaimState {
		now, _, err := s.machine.Claim(c.ID)
		s.must(err)
		return now.Claim.State
	}
	s.as(usdc, draft{})
	s.as(sol, draft{})
	bare := s.does(s.pays(usdc, 77))
	run(func(*Prover) bool {
		return in(usdc) == rfq.ClaimPaid && in(sol) == rfq.ClaimPaid && stored.UnmatchedCount() == 1
	})
	if x, ok, err := stored.UnmatchedPayment(bare); !ok || err != nil || x.Amount != 77 || x.Rail != market.RailUSDC || x.Payer != c.payer.addr {
		t.Errorf("unmatched %+v, %v", x, err)
	}
	s.as(away, draft{}) // while the watch is stopped
	stats := run(func(*Prover) bool { return in(away) == rfq.ClaimPaid })
	if len(stats.Watches) != 2 || stats.Recorded != 1 || stored.UnmatchedCount() != 1 {
		t.Errorf("%+v, %d unmatched", stats, stored.UnmatchedCount())
	}
	c.control("setNode", map[string]any{"mode": "503"})
	run(func(p *Prover) bool {
		return !slices.ContainsFunc(p.Stats().Watches, func(w Watch) bool { return w.Error == "" || w.RoundAt != 0 })
	})
	c.control("heal", nil)
	run(rounds)
	// A desk that is paid to another wallet since a while: what came there is no
	// history, though its watch is new.
	o.Since = time.Now().Add(-time.Hour)
	stored, o.Rails[market.RailSOL].Treasury = newStore(t), []solana.Address{c.thief.addr}
	moved := c.does(giveSOL(c.payer.addr, c.thief.addr, 88))
	run(func(*Prover) bool {
		_, ok, err := stored.UnmatchedPayment(moved)
		return ok && err == nil
	})
	s.machine.check(t)
}
