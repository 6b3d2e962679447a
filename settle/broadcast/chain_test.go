package broadcast_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/sandbox"
	"blockdesk/internal/sandbox/sandboxtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"
)

// chain is a real Solana runtime whose slots pass when the test says so, two
// clients of it under two names, and a store.
type chain struct {
	t      testing.TB
	local  *sandboxtest.Chain
	client *rpc.Client // the test's own
	hasty  *rpc.Client // the tracker's: its calls time out, since the chain can be made to hang
	store  *store.Store
	desk   storetest.Desk
	taker  ed25519.PrivateKey
	base   token.Checked
	claims market.ClaimID
}

func startChain(t testing.TB) *chain {
	t.Helper()
	local := sandboxtest.Start(t, sandbox.Options{ManualSlots: true, FinalizeSlots: 4, Seed: "broadcast"})
	setup := local.Setup
	client := local.Client(rpc.Options{Timeout: runtest.HangTimeout, AttemptTimeout: runtest.HangTimeout}, "one", "two")
	hasty := local.Client(rpc.Options{Timeout: time.Second, AttemptTimeout: 300 * time.Millisecond, Attempts: 2}, "one", "two")
	s, err := store.Open(kvtest.New())
	must(t, err)
	c := &chain{t: t, local: local, client: client, hasty: hasty, store: s, taker: local.Key(setup.Wallets[0])}
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
func (c *chain) deliver(amount market.Amount) store.Transaction {
	c.t.Helper()
	common, lastValid := c.common()
	d := build.Delivery{Common: common, Desk: c.desk.Address(), Wallet: storetest.AddressOf(c.taker), Base: c.base, Amount: amount}
	k, err := c.store.PutTransaction(c.desk.Deliver(c.t, c.claims, storetest.Build(c.t, &d)), lastValid, time.Now().UnixNano())
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
	c    *chain
	t    testing.TB
	node *counted
	stop func()

	// given are what the test has it track.
	given []store.Transaction

	mu       sync.Mutex
	reported []broadcast.Result
}

// counted counts the rounds of a tracker: each that has something to look for asks
// for the position first.
type counted struct {
	*rpc.Client
	positions atomic.Int64
}

func (n *counted) Position(ctx context.Context, level rpc.Commitment) (rpc.Position, error) {
	defer n.positions.Add(1)
	return n.Client.Position(ctx, level)
}

func (c *chain) run(t testing.TB) *run {
	t.Helper()
	r := &run{c: c, t: t, node: &counted{Client: c.hasty}}
	o := broadcast.Options{ResendEvery: 100 * time.Millisecond, PollEvery: 20 * time.Millisecond}
	tracker, err := broadcast.New(o, r.node, func(_ context.Context, x broadcast.Result) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reported = append(r.reported, x)
		return nil
	})
	must(t, err)
	r.Tracker = tracker
	r.stop = runtest.Start(t, tracker.Run)
	return r
}

// track has it track a transaction.
func (r *run) track(k store.Transaction) {
	r.t.Helper()
	must(r.t, r.Track(k))
	r.given = append(r.given, k)
}

func (r *run) results() []broadcast.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reported)
}

// wait returns the first n results. A slot passes at each look while the tracker
// sees a transaction in a block: that becomes final, and what has not landed does not
// expire, however long it takes.
func (r *run) wait(n int) []broadcast.Result {
	r.t.Helper()
	return await.Value(r.t, fmt.Sprintf("%d ends", n), func() []broadcast.Result {
		if r.anyLanded() {
			r.c.local.Advance(1)
		}
		return r.results()
	}, func(list []broadcast.Result) bool { return len(list) >= n })
}

// anyLanded reports whether the tracker sees one of the given in a block.
func (r *run) anyLanded() bool {
	return slices.ContainsFunc(r.given, func(k store.Transaction) bool {
		s, ok := r.State(k.Signature())
		return ok && s.Level != 0
	})
}

// quiet checks that nothing ends while the tracker looks again: of two rounds the
// second has begun after this.
func (r *run) quiet() {
	r.t.Helper()
	from := r.node.positions.Load()
	await.True(r.t, "two rounds of the tracker", func() bool { return r.node.positions.Load() >= from+3 })
	if list := r.results(); len(list) != 0 {
		r.t.Fatalf("too early: %+v", list)
	}
}

// landLate lets slots pass until what is on its way lands.
func (r *run) landLate() {
	r.t.Helper()
	var status struct{ Faults struct{ Waiting int } }
	await.True(r.t, "a send that lands late", func() bool {
		must(r.t, r.c.local.Call(r.t.Context(), "sandbox_status", nil, &status))
		return status.Faults.Waiting > 0
	})
	r.c.local.Advance(20)
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
		{name: "landing late", before: func(*run) { c.control("delayLanding", map[string]any{"slots": 20}) }, after: (*run).landLate, want: broadcast.Finalized},
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
			r.track(k)
			if scene.after != nil {
				scene.after(r)
				c.control("heal", nil)
				c.local.Advance(1) // with which what was held becomes final
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
			c.local.Advance(3)
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
	var list []store.Transaction
	for range 40 {
		list = append(list, c.deliver(7))
	}
	r := c.run(t)
	for n := range uint64(4) {
		for _, k := range list {
			r.track(k)
		}
		await.True(t, "some sends", func() bool { return r.Stats().Sends >= 10*n })
		r.stop()
		r = c.run(t)
	}
	for _, k := range list {
		r.track(k)
	}
	first := r.wait(len(list))
	r.stop()
	r = c.run(t)
	c.control("advance", map[string]any{"slots": 170}) // long after, only a search finds them
	for _, k := range list {
		r.track(k)
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
	for _, k := range []store.Transaction{sent, lost} {
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
// signature.
func (c *chain) resigned(t *testing.T) {
	common, lastValid := c.common()
	a := build.Atomic{
		Common: common, Taker: storetest.AddressOf(c.taker), Desk: c.desk.Address(),
		Payment: build.Leg{Rail: market.RailSOL, Amount: 5, To: c.desk.Address()}, Base: c.base, BaseAmount: 9, FeePayer: build.Taker, RentPayer: build.Taker,
	}
	u := storetest.Build(t, &a)
	k, err := c.store.PutTransaction(c.desk.Cosign(t, c.claims, u, c.taker), lastValid, time.Now().UnixNano())
	must(t, err)
	again := c.desk.CosignBy(t, c.claims, u, a.Taker, storetest.Resign(t, c.taker, u.Message()))
	_, err = c.client.Send(t.Context(), again.Bytes(), rpc.SendOptions{})
	must(t, err)
	// The runtime of the tests would take the message twice; the network does not.
	c.control("dropSends", map[string]any{"count": 1_000_000})
	r := c.run(t)
	r.track(k)
	r.quiet()
	c.control("advance", map[string]any{"slots": 160})
	if x := r.wait(1)[0]; x.End != broadcast.Finalized || x.Signature != again.Signature() || x.Hash != k.Hash() {
		t.Errorf("%+v", x)
	}
	c.control("heal", nil)
}
