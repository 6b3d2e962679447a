package broadcast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"
)

// bench is a tracker over a simulated world, and the ends that it has reported.
type bench struct {
	*broadcast.Tracker
	t     *testing.T
	world *world

	mu       sync.Mutex
	reported []reported
	// refuse says of each telling whether ended fails.
	refuse func(broadcast.Result) error
}

type reported struct {
	broadcast.Result
	at time.Duration
}

// inBubble runs a test in fake time, with a tracker that runs until it ends.
func inBubble(t *testing.T, nodes int, o broadcast.Options, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, world: newWorld(1, nodes)}
		tracker, err := broadcast.New(o, b.world, func(_ context.Context, r broadcast.Result) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.reported = append(b.reported, reported{r, b.world.age()})
			if b.refuse != nil {
				return b.refuse(r)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		b.Tracker = tracker
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := tracker.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		test(t, b)
		cancel()
		wg.Wait()
	})
}

// forge makes a transaction that lives for some blocks.
func (b *bench) forge(claim market.ClaimID, blocks uint64) (store.Transaction, *made) {
	b.t.Helper()
	return b.forgeKind(cosign.Deliver, claim, blocks)
}

func (b *bench) forgeKind(kind cosign.Kind, claim market.ClaimID, blocks uint64) (store.Transaction, *made) {
	b.t.Helper()
	w := b.world
	w.mu.Lock()
	lastValid := w.height(w.tip()) + blocks
	w.mu.Unlock()
	k := storetest.Forge(b.t, claim, kind, uint64(claim), lastValid, time.Now().UnixNano())
	m := &made{raw: k.Bytes(), lastValid: lastValid, reference: binding.Reference(claim)}
	w.add(m)
	return k, m
}

func (b *bench) track(k store.Transaction) {
	b.t.Helper()
	if err := b.Track(k); err != nil {
		b.t.Fatal(err)
	}
}

// results are the reported ends so far.
func (b *bench) results() []reported {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.reported)
}

// one is the only reported end.
func (b *bench) one() broadcast.Result {
	b.t.Helper()
	list := b.results()
	if len(list) != 1 {
		b.t.Fatalf("reported %+v", list)
	}
	return list[0].Result
}

// TestLife: sent at once and every two seconds until it is confirmed, reported once
// its block is final.
func TestLife(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, m := b.forge(1, 150)
		b.world.outcome = func(*made) outcome { return outcome{lost: b.world.age() < 7*time.Second} }
		b.track(k)
		await.VirtualSleep(t, 5*time.Second)
		if s, ok := b.State(k.Signature()); !ok || s.Sent != 3 || s.Level != 0 || s.Claim != 1 || s.LastValid != k.LastValid() || s.Past || s.End != 0 || s.Problem != "" {
			t.Errorf("%+v, %v", s, ok)
		}
		await.VirtualSleep(t, 5*time.Second)
		if s, _ := b.State(k.Signature()); s.Level != rpc.Confirmed || s.Slot != m.slot {
			t.Errorf("%+v", s)
		}
		if s := b.Stats(); s.Tracked != 1 || s.Landed != 1 || s.Sends != 5 || s.SendErrors != 0 || s.Position.Slot == 0 {
			t.Errorf("%+v", s)
		}
		await.VirtualSleep(t, 15*time.Second)
		r := b.one()
		if r != (broadcast.Result{Claim: 1, Kind: cosign.Deliver, Hash: k.Hash(), Signature: k.Signature(), End: broadcast.Finalized, Slot: m.slot}) {
			t.Errorf("%+v", r)
		}
		if got := fmt.Sprint(b.world.sendsOf(k.Signature())); got != "[0s 2s 4s 6s 8s]" {
			t.Errorf("sent at %s", got)
		}
		if s := b.Stats(); s.Tracked != 0 || s.Landed != 0 || s.Finalized != 1 || s.Reporting != 0 {
			t.Errorf("%+v", s)
		}
		if _, ok := b.State(k.Signature()); ok {
			t.Error("it is still known")
		}
	})
}

// TestForked: one that a fork drops is sent again.
func TestForked(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, _ := b.forge(1, 150)
		forkedBlocks := 0
		b.world.outcome = func(*made) outcome {
			forkedBlocks++
			return outcome{forked: forkedBlocks < 4}
		}
		b.track(k)
		await.VirtualSleep(t, 40*time.Second)
		if r := b.one(); r.End != broadcast.Finalized || forkedBlocks != 4 {
			t.Errorf("%+v after %d sends", r, forkedBlocks)
		}
	})
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, _ := b.forge(1, 150)
		b.world.outcome = func(*made) outcome { return outcome{forked: b.world.age() == 0, lost: b.world.age() > 0} }
		b.track(k)
		await.VirtualSleep(t, 20*time.Second)
		// Once more when it is seen to be dropped, and then at the usual pace.
		if n := len(b.world.sendsOf(k.Signature())); n < 10 || n > 12 {
			t.Errorf("sent %d times", n)
		}
	})
}

// TestConfirmedDropped: even one that was confirmed is sent again when no node
// knows it any more.
func TestConfirmedDropped(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, m := b.forge(1, 150)
		b.track(k)
		await.VirtualSleep(t, 4*time.Second)
		if s, _ := b.State(k.Signature()); s.Level != rpc.Confirmed {
			t.Fatalf("%+v", s)
		}
		b.world.mu.Lock()
		m.slot = 0
		b.world.mu.Unlock()
		await.VirtualSleep(t, 30*time.Second)
		if r := b.one(); r.End != broadcast.Finalized || len(b.world.sendsOf(k.Signature())) < 2 {
			t.Errorf("%+v, sent at %v", r, b.world.sendsOf(k.Signature()))
		}
	})
}

func TestFailedAndExpired(t *testing.T) {
	inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
		b.world.nodes[1].set(faults{down: true})
		failing, m := b.forge(1, 100)
		m.fails = true
		lost, _ := b.forge(2, 100)
		b.world.outcome = func(m *made) outcome { return outcome{lost: m.signature == lost.Signature()} }
		b.track(failing)
		b.track(lost)
		await.VirtualSleep(t, 40*time.Second)
		r := b.one()
		if r.Claim != 1 || r.End != broadcast.Failed || r.Slot != m.slot || r.Error != `{"InstructionError":[2,"Custom"]}` {
			t.Errorf("%+v", r)
		}
		if s := b.Stats(); s.Past != 0 {
			t.Errorf("%+v", s)
		}
		await.VirtualSleep(t, 30*time.Second)
		if list := b.results(); len(list) != 2 || list[1].Claim != 2 || list[1].End != broadcast.Expired || list[1].Slot != 0 || list[1].Signature != lost.Signature() {
			t.Errorf("%+v", list)
		}
		// Sent every two seconds to its end, one time in three to the one that is
		// down.
		if n := len(b.world.sendsOf(lost.Signature())); n < 15 || n > 32 {
			t.Errorf("sent %d times", n)
		}
		if s := b.Stats(); s.Failed != 1 || s.Expired != 1 || s.Past != 0 || s.SendErrors == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestEndReportedAgain: an end is reported again, with growing pauses, until the callback takes
// it; it is always the same.
func TestEndReportedAgain(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, _ := b.forge(1, 150)
		refused := errors.New("refused")
		b.refuse = func(broadcast.Result) error { return refused }
		b.track(k)
		await.VirtualSleep(t, 80*time.Second)
		list := b.results()
		var pauses []time.Duration
		for i := range list {
			if list[i].Result != list[0].Result {
				t.Errorf("%+v, then %+v", list[0], list[i])
			}
			if i > 0 {
				pauses = append(pauses, list[i].at-list[i-1].at)
			}
		}
		if got := fmt.Sprint(pauses[:10]); got != "[100ms 200ms 400ms 800ms 1.6s 3.2s 6.4s 10s 10s 10s]" {
			t.Errorf("pauses: %s", got)
		}
		if s, ok := b.State(k.Signature()); !ok || s.End != broadcast.Finalized {
			t.Errorf("%+v, %v", s, ok)
		}
		if s := b.Stats(); s.Reporting != 1 || s.Tracked != 1 {
			t.Errorf("%+v", s)
		}
		b.track(k) // changes nothing: it has ended
		b.mu.Lock()
		refused = nil
		b.mu.Unlock()
		await.VirtualSleep(t, 20*time.Second)
		n := len(b.results())
		await.VirtualSleep(t, time.Minute)
		if s := b.Stats(); len(b.results()) != n || s.Reporting != 0 || s.Tracked != 0 || s.Finalized != 1 {
			t.Errorf("reported %d, then %d times; %+v", n, len(b.results()), s)
		}
		// Given again after its end, it is reported again.
		b.track(k)
		await.VirtualSleep(t, 20*time.Second)
		if list := b.results(); len(list) != n+1 || list[n].Result != list[0].Result {
			t.Errorf("reported %d, then %d times", n, len(list))
		}
	})
}

func TestTwice(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, _ := b.forge(1, 150)
		missing := broadcast.Missing{Claim: 1, Kind: cosign.Deliver, Hash: k.Hash(), Reference: binding.Reference(1), LastValid: k.LastValid(), AllowedAt: k.SignedAt()}
		for range 3 {
			b.track(k)
			if err := b.Await(missing); err != nil {
				t.Fatal(err)
			}
		}
		await.VirtualSleep(t, time.Second)
		if n := len(b.world.sendsOf(k.Signature())); n != 1 {
			t.Errorf("sent %d times", n)
		}
		// An awaited transaction gets its bytes.
		late, _ := b.forge(2, 150)
		for _, height := range []uint64{late.LastValid(), 0} {
			missing = broadcast.Missing{Claim: 2, Kind: cosign.Deliver, Hash: late.Hash(), Reference: binding.Reference(2), LastValid: height}
			if err := b.Await(missing); err != nil {
				t.Fatal(err)
			}
		}
		await.VirtualSleep(t, time.Second)
		if s := b.Stats(); s.Tracked != 2 {
			t.Errorf("%+v", s)
		}
		b.track(late)
		await.VirtualSleep(t, 20*time.Second)
		if list := b.results(); len(list) != 2 || list[0].End != broadcast.Finalized || list[1].End != broadcast.Finalized {
			t.Errorf("%+v", list)
		}
	})
}

func TestInvalid(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		well := broadcast.Missing{Claim: 1, Hash: solana.Hash{1}, Reference: solana.Address{1}}
		for name, spoil := range map[string]func(m *broadcast.Missing){
			"no claim":     func(m *broadcast.Missing) { m.Claim = 0 },
			"no hash":      func(m *broadcast.Missing) { m.Hash = solana.Hash{} },
			"no reference": func(m *broadcast.Missing) { m.Reference = solana.Address{} },
		} {
			m := well
			spoil(&m)
			if err := b.Await(m); !errors.Is(err, broadcast.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := b.Track(store.Transaction{}); !errors.Is(err, broadcast.ErrInvalid) {
			t.Errorf("nothing: %v", err)
		}
	})
}

// TestFull: so many and not one more; all of them end, in batches that a node
// takes, and nothing of them is left.
func TestFull(t *testing.T) {
	if testing.Short() {
		t.Skip("65,536 transactions")
	}
	runtest.SkipUnderRace(t, "65,536 transactions")
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		for n := range broadcast.MaxTracked {
			k, _ := b.forge(market.ClaimID(n+1), 150)
			b.track(k)
		}
		k, _ := b.forge(broadcast.MaxTracked+1, 150)
		if err := b.Track(k); !errors.Is(err, broadcast.ErrFull) {
			t.Errorf("one more: %v", err)
		}
		missing := broadcast.Missing{Claim: k.Claim(), Kind: k.Kind(), Hash: k.Hash(), Reference: binding.Reference(k.Claim())}
		if err := b.Await(missing); !errors.Is(err, broadcast.ErrFull) {
			t.Errorf("one more to wait for: %v", err)
		}
		await.VirtualSleep(t, 25*time.Second)
		if s := b.Stats(); len(b.results()) != broadcast.MaxTracked || s.Tracked != 0 || s.Finalized != broadcast.MaxTracked || s.Sends != broadcast.MaxTracked {
			t.Errorf("reported %d; %+v", len(b.results()), s)
		}
		b.track(k)
	})
}

// TestRateLimited: a node that wants us to wait is waited for.
func TestRateLimited(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, _ := b.forge(1, 150)
		b.world.outcome = func(*made) outcome {
			return outcome{lost: true, err: &rpc.Error{Kind: rpc.RateLimited, RetryAfter: 7 * time.Second}}
		}
		b.track(k)
		await.VirtualSleep(t, 20*time.Second)
		if got := fmt.Sprint(b.world.sendsOf(k.Signature())); got != "[0s 7s 14s]" {
			t.Errorf("sent at %s", got)
		}
		if s, _ := b.State(k.Signature()); s.Problem != "rate_limited" {
			t.Errorf("%+v", s)
		}
	})
}

// TestIdle: with nothing under way no node is asked.
func TestIdle(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		await.VirtualSleep(t, time.Minute)
		if n := b.world.nodes[0].calls; n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestLooks: one that has landed is looked at a few times, not at every round.
func TestLooks(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		k, _ := b.forge(1, 150)
		b.track(k)
		await.VirtualSleep(t, time.Minute)
		rounds := int(b.results()[0].at / (400 * time.Millisecond))
		if looks := b.world.nodes[0].calls - 1 - rounds; b.one().End != broadcast.Finalized || looks > 6 {
			t.Errorf("%d looks in %d rounds", looks, rounds)
		}
	})
}

// TestStop: a node that does not answer does not keep Run.
func TestStop(t *testing.T) {
	inBubble(t, 1, broadcast.Options{}, func(t *testing.T, b *bench) {
		b.world.nodes[0].set(faults{delay: time.Hour})
		for n := range 40 {
			k, _ := b.forge(market.ClaimID(n+1), 150)
			b.track(k)
		}
		await.VirtualSleep(t, 10*time.Second)
	})
}

// TestResigned: the taker has signed the desk's message again with another
// signature, and landed that.
func TestResigned(t *testing.T) {
	inBubble(t, 3, broadcast.Options{}, func(t *testing.T, b *bench) {
		taker := storetest.Key(storetest.TakerKey)
		a := build.Atomic{
			Common: storetest.Common(1, 1), Taker: storetest.AddressOf(taker), Desk: storetest.AddressOf(storetest.Key(storetest.DeskKey)),
			Payment: build.Leg{Rail: market.RailSOL, Amount: 7, To: solana.Address{8}}, Base: storetest.Mint(t), BaseAmount: 5,
			FeePayer: build.Taker, RentPayer: build.Taker,
		}
		u, desk := storetest.Build(t, &a), storetest.Desk{Key: storetest.Key(storetest.DeskKey)}
		s, err := store.Open(kvtest.New())
		if err != nil {
			t.Fatal(err)
		}
		k, err := s.PutTransaction(desk.Cosign(t, 1, u, taker), b.world.height(startSlot)+100, time.Now().UnixNano())
		if err != nil {
			t.Fatal(err)
		}
		again := desk.CosignBy(t, 1, u, a.Taker, storetest.Resign(t, taker, u.Message()))
		b.world.add(&made{raw: k.Bytes(), reference: binding.Reference(1)}) // it has no height to land at
		other := &made{raw: again.Bytes(), lastValid: k.LastValid(), reference: binding.Reference(1)}
		b.world.add(other)
		b.track(k)
		await.VirtualSleep(t, 10*time.Second)
		b.world.land(other, b.world.tip(), false)
		await.VirtualSleep(t, 90*time.Second)
		want := broadcast.Result{Claim: 1, Kind: cosign.Cosign, Hash: k.Hash(), Signature: again.Signature(), End: broadcast.Finalized, Slot: other.slot}
		if r := b.one(); r != want {
			t.Errorf("%+v, want %+v", r, want)
		}
		for _, sig := range []solana.Signature{k.Signature(), again.Signature()} {
			if _, ok := b.State(sig); ok {
				t.Errorf("%s is still known", sig)
			}
		}
	})
}
