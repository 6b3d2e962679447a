package proof

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/store"
)

// TestRequest: what a request says must agree with the claim that the payment
// names, and decides about nothing else.
func TestRequest(t *testing.T) {
	x := newTable(t, nil)
	c := x.take()
	sig := x.node.pays(t, c)
	for _, row := range []struct {
		name string
		r    desk.PaymentProof
		want verdictWord
		word payment.Reason
	}{
		{"the signature alone", desk.PaymentProof{}, verified, ""},
		{"order and tranche", desk.PaymentProof{Ticket: 1, Tranche: 1}, verified, ""},
		{"all", desk.PaymentProof{Ticket: 1, Tranche: 1, Claim: c.ID, Fill: 1, Rail: market.RailUSDC}, verified, ""},
		{"another order", desk.PaymentProof{Ticket: 2, Tranche: 1}, used, ""},
		{"another tranche", desk.PaymentProof{Ticket: 1, Tranche: 2}, used, ""},
		{"another claim", desk.PaymentProof{Ticket: 1, Tranche: 1, Claim: c.ID + 1}, used, ""},
		{"another claim, all else right", desk.PaymentProof{Ticket: 1, Tranche: 1, Claim: 1, Fill: 1, Rail: market.RailUSDC}, used, ""},
		{"another fill", desk.PaymentProof{Ticket: 1, Tranche: 1, Fill: 2}, mismatch, TermsMismatch},
		{"another rail", desk.PaymentProof{Ticket: 1, Tranche: 1, Rail: market.RailSOL}, mismatch, TermsMismatch},
		{"the claim, another order", desk.PaymentProof{Ticket: 2, Tranche: 1, Claim: c.ID}, mismatch, TermsMismatch},
		{"the claim, another tranche", desk.PaymentProof{Ticket: 1, Tranche: 2, Claim: c.ID}, mismatch, TermsMismatch},
		{"the claim, another fill", desk.PaymentProof{Ticket: 1, Tranche: 1, Claim: c.ID, Fill: 2}, mismatch, TermsMismatch},
		{"the claim, another rail", desk.PaymentProof{Ticket: 1, Tranche: 1, Claim: c.ID, Rail: market.RailSOL}, mismatch, TermsMismatch},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.r.Signature = sig
			v, err := x.Verify(t.Context(), &row.r)
			if err != nil || wordOf(&v) != row.want || v.Mismatch != string(row.word) || v.Payment == nil || v.Claim == nil {
				t.Errorf("%+v (%s), %v", v, v.Refused, err)
			}
		})
	}
	if x.state(c) != rfq.ClaimPaid || x.node.count() != 1 || x.desk.proves != 1 {
		t.Errorf("claim in state %d after %d reads and %d commands", x.state(c), x.node.count(), x.desk.proves)
	}
}

// TestWrongRequestFirst: a payment is booked for its claim even if the first request
// reports it for another one.
func TestWrongRequestFirst(t *testing.T) {
	x := newTable(t, nil)
	c, other := x.take(), x.take()
	sig := x.node.pays(t, c)
	x.wants(&desk.PaymentProof{Signature: sig, Ticket: 1, Tranche: 1, Claim: other.ID}, used, "")
	if x.state(c) != rfq.ClaimPaid || x.state(other) != rfq.ClaimReserved {
		t.Errorf("states %d and %d", x.state(c), x.state(other))
	}
	x.wants(request(sig, c), verified, "")
}

// TestKeys: the answer to a key comes back as it was, and a key that was used for
// something else is the desk's refusal, which books nothing.
func TestKeys(t *testing.T) {
	x := newTable(t, nil)
	c, other := x.take(), x.take()
	sig, second := x.node.pays(t, c), x.node.pays(t, other)
	key := rfq.IdempotencyKey{ID: [16]byte{1}, Body: [8]byte{1}}
	r := request(sig, c)
	r.Key = key
	if v := x.wants(r, verified, ""); v.Replayed {
		t.Error("replayed at once")
	}
	wrong := request(second, other)
	wrong.Key = rfq.IdempotencyKey{ID: key.ID, Body: [8]byte{2}}
	if v, err := x.Verify(t.Context(), wrong); !errors.Is(err, errDesk) {
		t.Errorf("%+v, %v", v, err)
	}
	if x.state(other) != rfq.ClaimReserved {
		t.Errorf("state %d", x.state(other))
	}
	x.wants(request(second, other), verified, "")
	// The index has lost it: the desk's answer to the key says so.
	delete(x.desk.index, sig)
	if v := x.wants(r, verified, ""); !v.Replayed {
		t.Error("not replayed")
	}
}

// TestRecordOutlivesHistory: if a claim has had so many payments that its history has
// dropped one, the chain leads to the same answer.
func TestRecordOutlivesHistory(t *testing.T) {
	x := newTable(t, nil)
	c := x.take()
	sig := x.node.pays(t, c)
	first := x.wants(request(sig, c), verified, "")
	x.desk.mu.Lock()
	x.desk.paid[c.ID] = nil
	x.desk.mu.Unlock()
	again := x.wants(request(sig, c), verified, "")
	if *again.Payment != *first.Payment {
		t.Errorf("%+v, then %+v", first.Payment, again.Payment)
	}
}

// TestDust: below the limit nothing is booked or stored; a whole payment is no dust,
// whatever the limit.
func TestDust(t *testing.T) {
	x := newTable(t, func(o *Options) { o.Rails[market.RailUSDC].Dust = 1000 })
	c := x.take()
	for _, atoms := range []uint64{1, 999} {
		dust := x.node.lands(x.node.transfer(t, fakePayer, atoms, binding.Memo(c.ID)))
		x.wants(request(dust, c), mismatch, payment.AmountShort)
		bare := x.node.lands(x.node.transfer(t, fakeFriend, atoms))
		x.wants(request(bare, c), mismatch, payment.MissingReference)
		if _, ok := x.store.unmatched(bare); ok {
			t.Errorf("%d atoms were kept", atoms)
		}
	}
	if h, _, _ := x.desk.Claim(c.ID); len(h.Payments) != 0 || x.Stats().Dust != 4 {
		t.Errorf("booked %+v, %+v", h.Payments, x.Stats())
	}
	sig := x.node.lands(x.node.transfer(t, fakePayer, 1000, binding.Memo(c.ID)))
	if v := x.wants(request(sig, c), mismatch, payment.AmountShort); v.Payment == nil {
		t.Error("a thousand atoms are lost")
	}
	bare := x.node.lands(x.node.transfer(t, fakeFriend, 1000))
	x.wants(request(bare, c), mismatch, payment.MissingReference)
	if _, ok := x.store.unmatched(bare); !ok {
		t.Error("a thousand atoms are lost")
	}
	x.restart(func(o *Options) { o.Rails[market.RailUSDC].Dust = 1 << 60 })
	x.wants(request(x.node.pays(t, c), c), verified, "")
}

// TestFailures: what cannot be asked is an error, nothing is said, and the same
// request goes through later.
func TestFailures(t *testing.T) {
	x := newTable(t, nil)
	c := x.take()
	sig := x.node.pays(t, c)
	wants := func(name string, want error) {
		t.Helper()
		if v, err := x.Verify(t.Context(), request(sig, c)); !errors.Is(err, want) || v != (desk.Verdict{}) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if x.state(c) != rfq.ClaimReserved {
			t.Errorf("%s: state %d", name, x.state(c))
		}
	}
	down := &rpc.Error{Kind: rpc.Down}
	x.node.set(func(f *fakeNode) { f.fail = func(solana.Signature) error { return down } })
	wants("node", down)
	x.node.set(func(f *fakeNode) { f.fail = nil })
	stranger := x.node.lands(x.node.transfer(t, fakeFriend, 5))
	x.store.fail(store.ErrFull)
	if v, err := x.Verify(t.Context(), request(stranger, c)); !errors.Is(err, store.ErrFull) {
		t.Errorf("%+v, %v", v, err)
	}
	x.store.fail(nil)
	x.wants(request(stranger, c), mismatch, payment.MissingReference)
	// A claim whose wallet to be paid is not configured.
	other := *c
	other.ID, other.Terms.PayTo = 7, fakeFriend.addr
	x.desk.mu.Lock()
	x.desk.claims[7] = other
	x.desk.mu.Unlock()
	lost := x.node.lands(x.node.transfer(t, fakePayer, due(c), binding.Memo(7)))
	if v, err := x.Verify(t.Context(), request(lost, c)); !errors.Is(err, ErrWallet) {
		t.Errorf("%+v, %v", v, err)
	}
	x.wants(request(sig, c), verified, "")
	if x.desk.proves != 1 {
		t.Errorf("%d commands", x.desk.proves)
	}
}

// scriptedDesk answers a ProvePayment as a test says, once something has been
// read.
type scriptedDesk struct {
	*machineDesk
	answer func(r rfq.Request) (*desk.Result, error)
}

func (d *scriptedDesk) Do(r rfq.Request) (*desk.Result, error) { return d.answer(r) }

// TestDeskAnswers: what the desk may say of a payment that has come.
func TestDeskAnswers(t *testing.T) {
	x := newTable(t, nil)
	c := x.take()
	sig := x.node.pays(t, c)
	d := &scriptedDesk{machineDesk: x.desk}
	p, err := New(x.options, x.node, d, x.store)
	if err != nil {
		t.Fatal(err)
	}
	verdictOf := func(o desk.Result, err error) (desk.Verdict, error) {
		d.answer = func(rfq.Request) (*desk.Result, error) { return &o, err }
		return p.Verify(t.Context(), request(sig, c))
	}
	refuse := func(why event.Reason) desk.Result { return desk.Result{Outcome: rfq.Outcome{Reason: why}} }
	if v, err := verdictOf(desk.Result{}, errDesk); !errors.Is(err, errDesk) {
		t.Errorf("an error: %+v, %v", v, err)
	}
	if v, err := verdictOf(desk.Result{}, nil); !errors.Is(err, ErrAnswer) {
		t.Errorf("no payment: %+v, %v", v, err)
	}
	if v, err := verdictOf(desk.Result{Payment: &rfq.Payment{Claim: c.ID + 1, Signature: sig}}, nil); !errors.Is(err, ErrAnswer) {
		t.Errorf("another claim's payment: %+v, %v", v, err)
	}
	if v, err := verdictOf(refuse(event.ReasonInvalidCommand), nil); !errors.Is(err, ErrAnswer) {
		t.Errorf("invalid: %+v, %v", v, err)
	}
	if v, err := verdictOf(refuse(event.ReasonDeskFull), nil); err != nil || wordOf(&v) != full {
		t.Errorf("full: %+v, %v", v, err)
	}
	if _, ok := x.store.unmatched(sig); ok {
		t.Error("a payment that the desk may still take was kept as unmatched")
	}
	if err := p.examineListed(t.Context(), sig); !errors.Is(err, errDeskFull) {
		t.Errorf("full: the watch: %v", err)
	}
	if v, err := verdictOf(refuse(event.ReasonPaymentUsed), nil); err != nil || wordOf(&v) != used {
		t.Errorf("used: %+v, %v", v, err)
	}
	if v, err := verdictOf(refuse(event.ReasonUnknownClaim), nil); err != nil || wordOf(&v) != unknown {
		t.Errorf("unknown: %+v, %v", v, err)
	}
	if stored, ok := x.store.unmatched(sig); !ok || stored.Claim != c.ID || stored.Amount != due(c) {
		t.Errorf("unknown: unmatched %+v", stored)
	}
}

// TestRace has many ask for few signatures at once, with right and wrong claims,
// while the watch looks too: each signature is read once and booked once, for its
// own claim.
func TestRace(t *testing.T) {
	const claims, askers, questions = 40, 24, 200
	x := newTable(t, nil)
	x.node.wait = func(context.Context, solana.Signature) {
		time.Sleep(time.Millisecond) // sleep: a slow node, so that many ask at once
	}
	var list []*rfq.Claim
	var sigs []solana.Signature
	for range claims {
		c := x.take()
		list, sigs = append(list, c), append(sigs, x.node.pays(t, c))
	}
	var wg sync.WaitGroup
	for n := range askers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			for range questions {
				at, with := random.IntN(claims), random.IntN(claims)
				if random.IntN(8) == 0 {
					if err := x.examineListed(t.Context(), sigs[at]); err != nil {
						t.Errorf("the watch: %v", err)
					}
					continue
				}
				r := request(sigs[at], list[with])
				r.Claim = list[with].ID
				want := used
				if at == with {
					want = verified
				}
				v, err := x.Verify(t.Context(), r)
				if err != nil || wordOf(&v) != want || v.Payment == nil || v.Payment.Claim != list[at].ID {
					t.Errorf("%+v (%s), %v", v, v.Refused, err)
				}
			}
		})
	}
	wg.Wait()
	for i, c := range list {
		if n := x.node.readsOf(sigs[i]); n != 1 {
			t.Errorf("signature %d was read %d times", i, n)
		}
		if h, _, _ := x.desk.Claim(c.ID); x.state(c) != rfq.ClaimPaid || len(h.Payments) != 1 || h.Payments[0].Signature != sigs[i] {
			t.Errorf("claim %d in state %d: %+v", i, x.state(c), h.Payments)
		}
	}
	if x.desk.proves != claims {
		t.Errorf("%d commands for %d payments", x.desk.proves, claims)
	}
	x.desk.check(t)
}

// TestRaceOfPayments: of many payments of one claim at once, one pays it, and refunds
// of the others are due.
func TestRaceOfPayments(t *testing.T) {
	const payments = 64
	x := newTable(t, nil)
	c := x.take()
	var wg sync.WaitGroup
	results := make([]verdictWord, payments)
	for n := range payments {
		sig := x.node.pays(t, c)
		wg.Go(func() {
			v, err := x.Verify(t.Context(), request(sig, c))
			if err != nil {
				t.Error(err)
			}
			results[n] = wordOf(&v)
		})
	}
	wg.Wait()
	good := 0
	for _, r := range results {
		switch r {
		case verified:
			good++
		case state:
		default:
			t.Errorf("%d", r)
		}
	}
	if good != 1 || x.desk.money()[market.RailUSDC] != payments*due(c) {
		t.Errorf("%d of %d paid the claim; %d atoms are booked", good, payments, x.desk.money()[market.RailUSDC])
	}
	x.desk.check(t)
}

// overtaken is a desk at which another payment is proved right before the first one.
type overtaken struct {
	Desk
	first func()
}

func (d *overtaken) Do(r rfq.Request) (*desk.Result, error) {
	if first := d.first; first != nil && r.Kind() == rfq.KindProvePayment {
		d.first = nil
		first()
	}
	return d.Desk.Do(r)
}

// TestOvertaken: a payment before which another one of its claim is proved is answered with
// the claim as it is since then; so is one that comes later.
func TestOvertaken(t *testing.T) {
	x := newTable(t, nil)
	c := x.take()
	second, first, third := x.node.pays(t, c), x.node.pays(t, c), x.node.pays(t, c)
	x.desk2(&overtaken{x.desk, func() { x.wants(request(first, c), verified, "") }})
	for _, sig := range []solana.Signature{second, third} {
		if v := x.wants(request(sig, c), state, ""); v.Claim == nil || v.Claim.State != rfq.ClaimPaid || v.Payment == nil || v.Payment.Signature != sig {
			t.Errorf("%+v of %+v", v.Claim, v.Payment)
		}
	}
	x.desk.check(t)
}

// TestLeaderLeaves: the caller that made a shared call leaves; those that waited for
// it call themselves and do not get its error.
func TestLeaderLeaves(t *testing.T) {
	x := newTable(t, nil)
	c := x.take()
	sig := x.node.pays(t, c)
	looking := make(chan struct{}, 8)
	x.node.wait = func(ctx context.Context, _ solana.Signature) {
		looking <- struct{}{}
		if x.node.readsOf(sig) == 1 {
			<-ctx.Done()
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := x.Verify(ctx, request(sig, c))
		left <- err
	})
	<-looking
	for range 4 {
		wg.Go(func() {
			if v, err := x.Verify(t.Context(), request(sig, c)); err != nil || wordOf(&v) != verified {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	// One more waits, and goes too: he does not wait for the end.
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := x.Verify(short, request(sig, c)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	leave()
	wg.Wait()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled caller got %v", err)
	}
	if x.node.readsOf(sig) != 2 || x.desk.proves != 1 {
		t.Errorf("%d reads, %d commands", x.node.readsOf(sig), x.desk.proves)
	}
}

// TestBusy: one look more than allowed is refused, and another's of the same
// signature is not one more.
func TestBusy(t *testing.T) {
	const most = 3
	x := newTable(t, func(o *Options) { o.MaxReading = most })
	free, looking := make(chan struct{}), make(chan struct{}, most)
	x.node.wait = func(context.Context, solana.Signature) {
		looking <- struct{}{}
		<-free
	}
	var wg sync.WaitGroup
	verify := func(s solana.Signature) {
		wg.Go(func() {
			if v, err := x.Verify(t.Context(), &desk.PaymentProof{Signature: s}); err != nil || wordOf(&v) != pending {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	for n := range most {
		verify(solana.Signature{byte(n)})
	}
	for range most {
		<-looking
	}
	verify(solana.Signature{0})
	if _, err := x.Verify(t.Context(), &desk.PaymentProof{Signature: solana.Signature{most}}); !errors.Is(err, ErrBusy) {
		t.Errorf("%v", err)
	}
	close(free)
	wg.Wait()
	x.node.wait = nil
	if _, err := x.Verify(t.Context(), &desk.PaymentProof{Signature: solana.Signature{most}}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if len(x.lookups.running) != 0 {
		t.Errorf("%d looks are left", len(x.lookups.running))
	}
}

// TestPanic: a call that panics leaves no waiter, and no answer.
func TestPanic(t *testing.T) {
	f := newSharedCalls[int, int](1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_, _ = f.do(t.Context(), 1, func() (int, error) { panic("look") })
	}()
	if v, err := f.do(t.Context(), 1, func() (int, error) { return 5, nil }); v != 5 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}

// TestOpened: the rent of an account to be paid that is opened on the way is no
// money that came, and lamports into one that was there are.
func TestOpened(t *testing.T) {
	x := newTable(t, func(o *Options) { o.Rails[market.RailSOL] = Rail{Treasury: []solana.Address{fakeTreasury.addr}} })
	for _, before := range []market.Amount{0, 1e9} {
		c := x.take()
		pays := x.node.transfer(t, fakePayer, due(c), binding.Memo(c.ID))
		at := pays.TokensAfter[1].Account
		pays.Before[at], pays.After[at] = before, before+5
		if before == 0 {
			pays.TokensBefore, pays.TokensAfter[1].Amount = pays.TokensBefore[:1], market.Amount(due(c))
		}
		sig := x.node.lands(pays)
		x.wants(request(sig, c), verified, "")
		if stored, ok := x.store.unmatched(sig); ok != (before != 0) || ok && (stored.Amount != 5 || stored.Rail != market.RailSOL) {
			t.Errorf("%d lamports before: unmatched %+v", before, stored)
		}
	}
}

// TestHugeForeign: tokens whose sums exceed 64 bits are noticed.
func TestHugeForeign(t *testing.T) {
	x := newTable(t, func(o *Options) { o.Known = []solana.Address{{0xee}} })
	for _, row := range []struct {
		before, after []market.Amount
		gained        bool
	}{
		{[]market.Amount{1 << 63, 1 << 63}, []market.Amount{1<<64 - 1, 1<<64 - 1}, true},
		{[]market.Amount{1<<64 - 1, 1<<64 - 1}, []market.Amount{1 << 63, 1 << 63}, false},
		{[]market.Amount{5, 1<<64 - 1}, []market.Amount{1<<64 - 1, 5}, false},
		{[]market.Amount{5, 1<<64 - 1}, []market.Amount{1<<64 - 1, 6}, true},
		{[]market.Amount{1<<64 - 1}, []market.Amount{1<<64 - 1, 5}, true},
		{nil, []market.Amount{1}, true},
		{nil, nil, false},
	} {
		c := x.take()
		strange := x.node.transfer(t, fakePayer, 0, binding.Memo(c.ID))
		tokens := func(amounts []market.Amount) (list []ledger.TokenBalance) {
			for i, n := range amounts {
				list = append(list, ledger.TokenBalance{Account: i, Mint: solana.Address{0xee}, Owner: fakeTreasury.addr, Program: solana.TokenProgram, Amount: n})
			}
			return list
		}
		strange.Before[0], strange.Before[1] = 0, 0 // opened on the way, where there was nothing
		for i := range row.before {
			strange.Before[i] = 1
		}
		// The first two accounts stand for the treasury's of a strange mint.
		strange.TokensBefore = append(strange.TokensBefore[1:], tokens(row.before)...)
		strange.TokensAfter = append(strange.TokensAfter[1:], tokens(row.after)...)
		sig := x.node.lands(strange)
		x.store.fail(errDesk)
		if v, err := x.Verify(t.Context(), request(sig, c)); row.gained != errors.Is(err, errDesk) {
			t.Errorf("%+v, %v", v, err)
		}
		x.store.fail(nil)
		x.wants(request(sig, c), mismatch, wrongOf(row.after, row.before))
		if _, ok := x.store.unmatched(sig); ok != row.gained {
			t.Errorf("%v to %v: unmatched %t", row.before, row.after, ok)
		}
	}
}

// wrongOf is the reason that package payment has: it looks at accounts one by one.
func wrongOf(after, before []market.Amount) payment.Reason {
	for i := range after {
		if i >= len(before) || after[i] > before[i] {
			return payment.WrongMint
		}
	}
	return payment.WrongDestination
}

// TestOtherAnswer: a node whose answers our client has not looked through.
func TestOtherAnswer(t *testing.T) {
	x := newTable(t, nil)
	c := x.take()
	sig := x.node.pays(t, c)
	x.node.known[solana.Signature{9}] = x.node.known[sig]
	if v, err := x.Verify(t.Context(), request(solana.Signature{9}, c)); !errors.Is(err, ErrAnswer) {
		t.Errorf("%+v, %v", v, err)
	}
	unsigned := *x.node.known[sig]
	whole := *unsigned.Tx
	whole.Signed = append([]byte{}, whole.Signed...)
	whole.Signed[len(whole.Signed)-1] ^= 1
	unsigned.Tx = &whole
	x.node.known[sig] = &unsigned
	if v, err := x.Verify(t.Context(), request(sig, c)); !errors.Is(err, ErrAnswer) {
		t.Errorf("%+v, %v", v, err)
	}
}
