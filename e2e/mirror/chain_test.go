package mirror

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"blockdesk/e2e/feedtest"
	"blockdesk/e2e/programtest"
	"blockdesk/internal/await"
	"blockdesk/internal/runtest"
)

// A pool and a book on a local chain move while the service follows them through
// three nodes that fail, lag and lie, through a fork that is rolled back, and
// through restarts and kills. Everything that it publishes was done, to the atom.
//
// BLOCKDESK_MIRROR_SECONDS is for how long, with troubles and restarts by chance;
// without it, each kind is met once. BLOCKDESK_SEED asks for the same moves again.
func TestMirrorFollowsTheChain(t *testing.T) {
	runtest.SkipUnderRace(t, "it follows a chain in real time, which the detector is too slow for; the tests of mirror race the same code")
	t.Parallel()
	seed := runtest.Seed(t)
	r := newMirrorRig(t, seed)
	t.Cleanup(func() {
		if t.Failed() {
			var s mirrorStatus
			ok, err := r.watch.get("status", &s)
			t.Logf("%v %v: %+v", ok, err, s)
		}
	})
	r.trade()
	followers := overWebSocket(t, r)
	if seconds := programtest.FromEnv(t, "BLOCKDESK_MIRROR_SECONDS", 0); seconds > 0 {
		r.tumble(rand.New(rand.NewPCG(seed, 8)), time.Duration(seconds)*time.Second)
	} else {
		r.trials()
	}
	client, book := r.overFIX()
	r.follows(r.now() + 5)
	for _, f := range followers {
		await.Value(t, f.Name+" to see enough", func() *feedtest.Followed { return f.Counts(t) }, mirrorEnough)
	}
	await.True(t, "updates over FIX", func() bool { return book.updates() >= 3 })
	r.rest()
	r.m.book.orders = nil
	r.m.book.fill(r.m.rng)
	r.lastOfAll()
	r.idle(finalizeSlots + 2)
	r.checkAll(followers, func(last *mirroredDepth) { r.checkFIX(client, book, last) })
}

// The local chain itself is a node that can be mirrored, as a demo does: one that is
// alone is believed, though it reports the content of a slot that is still open.
func TestMirrorFollowsTheSandbox(t *testing.T) {
	runtest.SkipUnderRace(t, "it follows a chain in real time, which the detector is too slow for; the tests of mirror race the same code")
	t.Parallel()
	r := &mirrorRig{t: t, m: newChainMarket(t, programtest.FromEnv(t, "BLOCKDESK_SEED", 5))}
	r.start(r.m.node.URL())
	for range 25 {
		r.pace(t.Context())
		if err := r.m.step(); err != nil {
			t.Fatal(err)
		}
	}
	r.idle(finalizeSlots + 2)
	b := r.m.cluster.tip(0)
	await.True(t, "the last book", func() bool {
		var d mirroredDepth
		programtest.GetJSON(t, r.s.Addresses.API+"/api/v1/market/depth?limit=100&symbol=SLUSD/USDC", &d)
		return d.Slot != nil && *d.Slot+1 >= b.slot && slices.Equal(d.Bids, b.bids) && slices.Equal(d.Asks, b.asks)
	})
	for _, p := range r.m.pools {
		await.True(t, fmt.Sprintf("the trades of %s", p.symbol), func() bool {
			var page struct{ Trades []mirroredTrade }
			programtest.GetJSON(t, r.s.Addresses.API+"/api/v1/market/trades?limit=100&symbol="+p.symbol, &page)
			return len(page.Trades) == len(p.numbered())
		})
	}
}

// follows waits until the service publishes a slot that is not before.
func (r *mirrorRig) follows(slot uint64) {
	r.t.Helper()
	await.True(r.t, fmt.Sprintf("a book of slot %d", slot), func() bool {
		r.watch.check()
		r.watch.mu.Lock()
		defer r.watch.mu.Unlock()
		return r.watch.slot >= slot
	})
}

// lastOfAll has the second pool's swap be newer than all that the first pool saw:
// the status record goes on telling of the first, whose pair is the canonical one.
func (r *mirrorRig) lastOfAll() {
	r.t.Helper()
	if err := r.m.exchange(r.m.pools[1]); err != nil {
		r.t.Fatal(err)
	}
}

// awaitSwaps waits until all swaps that are final by now are published.
func (r *mirrorRig) awaitSwaps() {
	r.t.Helper()
	final := r.now() - finalizeSlots
	var left []string
	defer func() {
		if len(left) > 0 {
			r.t.Logf("not published: %v", left)
		}
	}()
	await.True(r.t, fmt.Sprintf("the swaps up to slot %d", final), func() bool {
		r.watch.check()
		left = r.m.cluster.unpublished(r.watch.published(), final)
		return len(left) == 0
	})
}

// now is the newest slot that nodes report.
func (r *mirrorRig) now() uint64 { return r.m.cluster.tip(0).slot }

// trials are one of each.
func (r *mirrorRig) trials() {
	r.t.Helper()
	r.follows(r.now())
	troubles := r.troubles()
	for i, name := range []string{
		"another book", "far behind", "slow drip", "more swaps", "huge", "far ahead", "other swaps", "ahead", "two clocks", "fewer swaps", "a page",
	} {
		r.nodes[i%3].set(troubles[name])
		r.follows(r.now() + 3) // two nodes are enough
		r.awaitSwaps()
		r.nodes[i%3].set(trouble{})
	}
	r.contradiction()
	r.forked(10, 4)
	r.outage(2)
	r.nodes[1].set(troubles["another book"])
	r.restart(false)
	r.follows(r.now() + 3)
	r.nodes[1].set(trouble{})
	r.restart(true)
	r.follows(r.now() + 3)
}

// contradiction leaves two nodes that contradict each other: nothing is published until one
// of them has stopped, and the status record says why.
func (r *mirrorRig) contradiction() {
	r.t.Helper()
	troubles := r.troubles()
	r.nodes[0].set(troubles["down"])
	r.nodes[1].set(troubles["another book"])
	words := []string{"rpc_upstreams_contradict", "rpc_failover_active", "chain_data_stale"}
	await.True(r.t, fmt.Sprintf("a status record that names %v", words), func() bool {
		r.watch.check()
		return !slices.ContainsFunc(words, func(word string) bool { return !r.watch.seen(word) })
	})
	r.nodes[1].set(trouble{})
	r.follows(r.now() + 3)
	r.nodes[0].set(trouble{})
}

// forked has all nodes follow a fork for some slots, which is some slots ahead,
// and then roll it back: the published swaps stand until the chain has come
// further, and no swap of it is ever published.
func (r *mirrorRig) forked(slots, ahead int) {
	r.t.Helper()
	from := r.now()
	r.m.cluster.setDiverge(func(b *bank) *bank { return r.m.forged(b, 3).at(b.slot+uint64(ahead), b.unix) })
	r.follows(from + uint64(slots))
	r.m.cluster.setDiverge(nil)
	r.follows(r.now() + uint64(ahead) + 2)
}

// outage takes all nodes away, until the service has asked each so many times in vain.
func (r *mirrorRig) outage(asked int) {
	r.t.Helper()
	var calls atomic.Int64
	for _, n := range r.nodes {
		n.set(trouble{answer: func(_ context.Context, w http.ResponseWriter) {
			calls.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
		}})
	}
	enough := int64(asked * len(r.nodes))
	await.Value(r.t, fmt.Sprintf("%d questions to nodes that are away", enough), calls.Load, func(n int64) bool { return n >= enough })
	r.heal()
	r.follows(r.now())
}

// tumble lets chance decide for so long.
func (r *mirrorRig) tumble(rng *rand.Rand, length time.Duration) {
	r.t.Helper()
	troubles := r.troubles()
	// Where one of the other nodes is slow for once, nothing shows which of the two
	// lists is right: that leaves a doubt, and no order within a slot.
	delete(troubles, "more swaps")
	delete(troubles, "fewer swaps")
	names := slices.Sorted(maps.Keys(troubles))
	for until := time.Now().Add(length); time.Now().Before(until); {
		r.watch.check()
		switch n := rng.IntN(24); n {
		case 0, 1:
			r.restart(n == 0)
		case 2:
			if err := r.s.Kill(); err != nil {
				r.t.Fatal(err)
			}
			time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Second)))) // sleep: swaps go on
			if err := r.s.Restart(context.Background()); err != nil {
				r.t.Fatal(err)
			}
		case 3:
			r.heal()
			r.forked(5+rng.IntN(15), rng.IntN(6))
		case 4:
			r.outage(1 + rng.IntN(6))
		case 5:
			r.heal()
			r.follows(r.now() + 1)
		default:
			r.spoil(rng.IntN(3), troubles[names[rng.IntN(len(names))]])
		}
		time.Sleep(time.Duration(rng.Int64N(int64(time.Second)))) // sleep: paces the troubles
	}
	r.heal()
}

// spoil puts a node into trouble. A lying node needs two honest ones against it:
// a service that hears it alone must believe it.
func (r *mirrorRig) spoil(i int, now trouble) {
	for j, n := range r.nodes {
		n.mu.Lock()
		other := n.now
		n.mu.Unlock()
		if j != i && !other.well() && (now.lies() || other.lies()) {
			return
		}
	}
	r.nodes[i].set(now)
}

// lies reports whether the node returns invented data.
func (now *trouble) lies() bool {
	return now.lie != nil || now.altered || now.invents || now.hides
}

// well reports whether nothing is wrong.
func (now *trouble) well() bool {
	return now.answer == nil && now.lag == 0 && !now.lies()
}

// heal ends all troubles.
func (r *mirrorRig) heal() {
	for _, n := range r.nodes {
		n.set(trouble{})
	}
}

// checkAll checks everything that is published at the end against the ledger.
func (r *mirrorRig) checkAll(followers []*feedtest.Follower, gateways func(last *mirroredDepth)) {
	r.t.Helper()
	r.heal()
	r.follows(r.now())
	for _, p := range r.m.pools {
		want := p.numbered()
		await.True(r.t, fmt.Sprintf("%d trades of %s", len(want), p.symbol), func() bool {
			r.watch.check()
			r.watch.mu.Lock()
			defer r.watch.mu.Unlock()
			return len(r.watch.trades[p.symbol]) >= len(want)
		})
	}
	r.checkStatus()
	r.checkProof()
	r.checkPools()
	r.watch.end()
	r.watch.check()
	for _, p := range r.m.pools {
		r.checkTrades(p)
	}
	var last mirroredDepth
	programtest.GetJSON(r.t, r.s.Addresses.API+"/api/v1/market/depth?limit=100&symbol=SLUSD/USDC", &last)
	b := r.m.cluster.tip(0)
	if last.Slot == nil || *last.Slot != b.slot || last.Source != "mirrored" || !slices.Equal(last.Bids, b.bids) || !slices.Equal(last.Asks, b.asks) {
		r.t.Errorf("the last book is %+v, want %v %v", last, b.bids, b.asks)
	}
	for _, n := range r.nodes {
		if n.hasty > 0 {
			r.t.Errorf("%d questions about what need not be final", n.hasty)
		}
	}
	gateways(&last)
	r.checkSymbols()
	checkFollowers(r.t, followers, r.checkCandles())
	r.t.Logf("%d slots, %v", r.now(), r.m.counts)
	r.t.Logf("%d books of %d slots, %d pools", r.watch.depths, len(r.watch.slots), r.watch.pools)
}

// CheckTrades holds a pool's trades to its swaps: each once, in the chain's order,
// with its transaction.
func (r *mirrorRig) checkTrades(p *chainPool) {
	r.t.Helper()
	reported, want := r.watch.trades[p.symbol], p.numbered()
	if len(reported) != len(want) {
		r.t.Fatalf("%s: %d trades are published, %d were done", p.symbol, len(reported), len(want))
	}
	var ids []uint64
	for i := range reported {
		ids = append(ids, reported[i].ID)
	}
	of := r.tape(p, ids)
	for i := range reported {
		if x := of.Published(i); reported[i].PublishedTrade != x || reported[i].Signature != want[i].signature || reported[i].Source != "mirrored" {
			r.t.Fatalf("%s: trade %d is published as %+v, done was %+v: %+v", p.symbol, i, reported[i], want[i], x)
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != len(reported) {
		r.t.Errorf("%s: a number twice", p.symbol)
	}
}
