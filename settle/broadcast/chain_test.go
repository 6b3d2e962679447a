package broadcast_test

import (
	"context"
	"crypto/ed25519"
	"slices"
	"sync"
	"testing"
	"time"

	"blockdesk/internal/sandbox"
	"blockdesk/internal/sandbox/sandboxtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"
)

// chain is a real Solana runtime, a client of it under two names, and a store.
type chain struct {
	t      testing.TB
	local  *sandboxtest.Chain
	client *rpc.Client
	store  *store.Store
	desk   storetest.Desk
	taker  ed25519.PrivateKey
	base   token.Checked
	claims market.ClaimID
}

const chainSlot = 20 * time.Millisecond

func startChain(t testing.TB) *chain {
	t.Helper()
	local := sandboxtest.Start(t, sandbox.Options{SlotTime: chainSlot, FinalizeSlots: 4, Seed: "broadcast"})
	setup := local.Setup
	client := local.Client(rpc.Options{Timeout: time.Second, AttemptTimeout: 300 * time.Millisecond, Attempts: 2}, "one", "two")
	s, err := store.Open(&storetest.KV{})
	must(t, err)
	c := &chain{t: t, local: local, client: client, store: s, taker: local.Key(setup.Wallets[0])}
	c.desk.Key = local.Key(setup.Desk)
	c.base = local.Mint(client, local.Address(setup.Mints["SLUSD"].Address), token.Harmless())
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// control calls one of the chain's own methods.
func (c *chain) control(method string, params map[string]any) {
	c.t.Helper()
	c.local.Control(method, params)
}

// common binds the next claim to the newest blockhash.
func (c *chain) common() (build.Common, uint64) {
	c.t.Helper()
	b, err := c.client.Blockhash(c.t.Context())
	must(c.t, err)
	c.claims++
	return build.Common{
		Blockhash: b.Hash, Budget: build.Budget{Units: 120_000, MicroLamports: 1000},
		Memo: binding.Memo(c.claims), Reference: binding.Reference(c.claims),
	}, b.LastValidBlockHeight
}

// deliver signs and keeps the delivery of so many atoms.
func (c *chain) deliver(amount market.Amount) store.Kept {
	c.t.Helper()
	common, lastValid := c.common()
	d := build.Delivery{Common: common, Desk: c.desk.Address(), Wallet: storetest.AddressOf(c.taker), Base: c.base, Amount: amount}
	k, err := c.store.Keep(c.desk.Deliver(c.t, c.claims, storetest.Build(c.t, &d)), lastValid, time.Now().UnixNano())
	must(c.t, err)
	return k
}

// atoms is what the taker has of the base asset.
func (c *chain) atoms() market.Amount {
	c.t.Helper()
	list, _, err := c.client.TokenAccounts(c.t.Context(), storetest.AddressOf(c.taker), c.base.Address(), solana.Address{}, rpc.Confirmed)
	must(c.t, err)
	var sum market.Amount
	for _, a := range list {
		account, err := token.ParseAccount(a.Owner, a.Data)
		must(c.t, err)
		sum += account.Amount
	}
	return sum
}

// run is a tracker on the chain.
type run struct {
	*broadcast.Tracker
	t    testing.TB
	stop func()

	mu   sync.Mutex
	told []broadcast.Result
}

func (c *chain) run(t testing.TB) *run {
	t.Helper()
	r := &run{t: t}
	tracker, err := broadcast.New(broadcast.Options{ResendEvery: 5 * chainSlot, PollEvery: chainSlot}, c.client, func(_ context.Context, x broadcast.Result) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told = append(r.told, x)
		return nil
	})
	must(t, err)
	r.Tracker = tracker
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { must(t, tracker.Run(ctx)) })
	r.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(r.stop)
	return r
}

func (r *run) results() []broadcast.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

// wait returns the first n results.
func (r *run) wait(n int) []broadcast.Result {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if list := r.results(); len(list) >= n {
			return list
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%d of %d ended; %+v", len(r.results()), n, r.Stats())
		}
	}
}

// quiet checks that nothing ends for a while.
func (r *run) quiet() {
	r.t.Helper()
	time.Sleep(25 * chainSlot)
	if list := r.results(); len(list) != 0 {
		r.t.Fatalf("too early: %+v", list)
	}
}

// TestChain is the tracker on a real runtime that fails in every way it can.
func TestChain(t *testing.T) {
	c := startChain(t)
	const many = 1_000_000 // more sends than any of these makes
	for _, scene := range []struct {
		name string
		// before sets what is wrong before the transaction is tracked, after does
		// what comes next; heal is called then.
		before, after func(r *run)
		amount        market.Amount
		want          broadcast.End
	}{
		{name: "well", want: broadcast.Finalized},
		{name: "sends that are dropped", before: func(*run) { c.control("dropSends", map[string]any{"count": 4}) }, want: broadcast.Finalized},
		{name: "answers that are lost", before: func(*run) { c.control("loseAnswers", map[string]any{"count": 3}) }, want: broadcast.Finalized},
		{name: "sends that fail", before: func(*run) { c.control("failSends", map[string]any{"count": 5}) }, want: broadcast.Finalized},
		{name: "landing late", before: func(*run) { c.control("delayLanding", map[string]any{"slots": 20}) }, want: broadcast.Finalized},
		{
			name:   "finality held",
			before: func(*run) { c.control("holdFinality", map[string]any{"hold": true}) },
			after: func(r *run) {
				r.quiet() // it lands meanwhile
				c.control("advance", map[string]any{"slots": 300})
				r.quiet()
			},
			want: broadcast.Finalized,
		},
		{name: "a node that lags", before: func(*run) { c.control("lag", map[string]any{"slots": 100}) }, after: (*run).quiet, want: broadcast.Finalized},
		{
			name: "a node that lags, past the end",
			before: func(*run) {
				c.control("dropSends", map[string]any{"count": many})
				c.control("lag", map[string]any{"slots": 300})
			},
			after: func(r *run) {
				c.control("advance", map[string]any{"slots": 160})
				r.quiet()
			},
			want: broadcast.Expired,
		},
		{name: "503", before: func(*run) { c.control("setNode", map[string]any{"mode": "503"}) }, after: (*run).quiet, want: broadcast.Finalized},
		{name: "reset", before: func(*run) { c.control("setNode", map[string]any{"mode": "reset"}) }, after: (*run).quiet, want: broadcast.Finalized},
		{name: "hang", before: func(*run) { c.control("setNode", map[string]any{"mode": "hang"}) }, after: (*run).quiet, want: broadcast.Finalized},
		{name: "refuse", before: func(*run) { c.control("setNode", map[string]any{"mode": "refuse", "forMs": 700}) }, want: broadcast.Finalized},
		{name: "text", before: func(*run) { c.control("answerGarbage", map[string]any{"count": 40, "kind": "text"}) }, want: broadcast.Finalized},
		{name: "truncated", before: func(*run) { c.control("answerGarbage", map[string]any{"count": 40, "kind": "truncated"}) }, want: broadcast.Finalized},
		{name: "wrong type", before: func(*run) { c.control("answerGarbage", map[string]any{"count": 40, "kind": "wrong_type"}) }, want: broadcast.Finalized},
		{
			name:   "skipped slots", // a transaction's life is in blocks, not slots
			before: func(*run) { c.control("dropSends", map[string]any{"count": many}) },
			after: func(r *run) {
				c.control("skipSlots", map[string]any{"slots": 400})
				r.quiet()
			},
			want: broadcast.Finalized,
		},
		{
			name:   "expiry",
			before: func(*run) { c.control("dropSends", map[string]any{"count": many}) },
			after:  func(*run) { c.control("advance", map[string]any{"slots": 160}) },
			want:   broadcast.Expired,
		},
		{
			name: "expiry with a node down",
			before: func(*run) {
				c.control("dropSends", map[string]any{"count": many})
				c.control("setNode", map[string]any{"mode": "503"})
			},
			after: func(r *run) {
				c.control("advance", map[string]any{"slots": 160})
				r.quiet()
			},
			want: broadcast.Expired,
		},
		{name: "failure", amount: 1 << 62, want: broadcast.Failed},
	} {
		t.Run(scene.name, func(t *testing.T) {
			if scene.amount == 0 {
				scene.amount = 1000
			}
			had, r := c.atoms(), c.run(t)
			k := c.deliver(scene.amount)
			if scene.before != nil {
				scene.before(r)
			}
			must(t, r.Track(k))
			if scene.after != nil {
				scene.after(r)
				c.control("heal", nil)
			}
			got := r.wait(1)[0]
			c.control("heal", nil)
			want := broadcast.Result{Claim: k.Claim(), Kind: k.Kind(), Hash: k.Hash(), Signature: k.Signature(), End: scene.want, Slot: got.Slot, Error: got.Error}
			if got != want || (got.Slot != 0) != (scene.want != broadcast.Expired) || (got.Error != "") != (scene.want == broadcast.Failed) {
				t.Errorf("%+v, want %+v", got, want)
			}
			// Once: what the chain has is the proof. The bytes are sent once more.
			_, err := c.client.Send(t.Context(), k.Bytes(), rpc.SendOptions{SkipPreflight: true})
			must(t, err)
			if scene.want == broadcast.Finalized {
				had += scene.amount
			}
			time.Sleep(3 * chainSlot)
			if has := c.atoms(); has != had {
				t.Errorf("the taker has %d, not %d", has, had)
			}
		})
	}
	t.Run("restarts", c.restarts)
	t.Run("missing", c.missing)
	t.Run("signed again", c.resigned)
}

// restarts: a new tracker goes on with what another one had begun.
func (c *chain) restarts(t *testing.T) {
	had := c.atoms()
	var list []store.Kept
	for range 40 {
		list = append(list, c.deliver(7))
	}
	r := c.run(t)
	for range 4 {
		for _, k := range list {
			must(t, r.Track(k))
		}
		time.Sleep(2 * chainSlot)
		r.stop()
		r = c.run(t)
	}
	for _, k := range list {
		must(t, r.Track(k))
	}
	first := r.wait(len(list))
	r.stop()
	r = c.run(t)
	c.control("advance", map[string]any{"slots": 170}) // long after, only a search finds them
	for _, k := range list {
		must(t, r.Track(k))
	}
	for _, x := range append(first, r.wait(len(list))...) {
		if x.End != broadcast.Finalized {
			t.Errorf("%+v", x)
		}
	}
	if has := c.atoms(); has != had+7*market.Amount(len(list)) {
		t.Errorf("the taker has %d, had %d", has, had)
	}
}

// missing: the bytes are lost; one transaction was sent before and one was not.
func (c *chain) missing(t *testing.T) {
	sent, lost, r := c.deliver(7), c.deliver(7), c.run(t)
	_, err := c.client.Send(t.Context(), sent.Bytes(), rpc.SendOptions{})
	must(t, err)
	for _, k := range []store.Kept{sent, lost} {
		must(t, r.Await(broadcast.Missing{
			Claim: k.Claim(), Kind: k.Kind(), Hash: k.Hash(), Reference: binding.Reference(k.Claim()), LastValid: k.LastValid(), AllowedAt: k.SignedAt(),
		}))
	}
	r.quiet()
	c.control("advance", map[string]any{"slots": 160})
	for _, x := range r.wait(2) {
		want := broadcast.Result{Claim: lost.Claim(), Kind: lost.Kind(), Hash: lost.Hash(), End: broadcast.Expired}
		if x.Claim == sent.Claim() {
			want = broadcast.Result{Claim: sent.Claim(), Kind: sent.Kind(), Hash: sent.Hash(), Signature: sent.Signature(), End: broadcast.Finalized, Slot: x.Slot}
		}
		if x != want {
			t.Errorf("%+v, want %+v", x, want)
		}
	}
}

// resigned: the taker, who pays the fee, lands the desk's message under another
// signature of his.
func (c *chain) resigned(t *testing.T) {
	common, lastValid := c.common()
	a := build.Atomic{
		Common: common, Taker: storetest.AddressOf(c.taker), Desk: c.desk.Address(),
		Payment: build.Leg{Rail: market.RailSOL, Amount: 5, To: c.desk.Address()}, Base: c.base, BaseAmount: 9, FeePayer: build.Taker, RentPayer: build.Taker,
	}
	u := storetest.Build(t, &a)
	k, err := c.store.Keep(c.desk.Cosign(t, c.claims, u, c.taker), lastValid, time.Now().UnixNano())
	must(t, err)
	again := c.desk.CosignBy(t, c.claims, u, a.Taker, storetest.Resign(t, c.taker, u.Message()))
	_, err = c.client.Send(t.Context(), again.Bytes(), rpc.SendOptions{})
	must(t, err)
	// The runtime of the tests would take the message twice; the network does not.
	c.control("dropSends", map[string]any{"count": 1_000_000})
	r := c.run(t)
	must(t, r.Track(k))
	r.quiet()
	c.control("advance", map[string]any{"slots": 160})
	if x := r.wait(1)[0]; x.End != broadcast.Finalized || x.Signature != again.Signature() || x.Hash != k.Hash() {
		t.Errorf("%+v", x)
	}
	c.control("heal", nil)
}
