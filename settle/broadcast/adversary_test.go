package broadcast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/market"
	"blockdesk/settle/binding"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/cosign"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"
)

// scenario is one run against nodes that do what they can to be misunderstood.
type scenario struct {
	t *testing.T
	// rng belongs to the test's goroutine.
	rng   *rand.Rand
	world *world
	// healAt is when all faults end.
	healAt time.Duration

	list []*transaction

	mu      sync.Mutex
	refuses *rand.Rand
	wrong   []string
	refused int
}

// transaction is one of a scenario, with the ends that were reported.
type transaction struct {
	*made
	stored store.Transaction
	// missing is set where the bytes are lost; they may have been sent before.
	missing  *broadcast.Missing
	reported []broadcast.Result
	taken    bool
}

// newScenario draws a world from a seed.
func newScenario(t *testing.T, seed uint64) *scenario {
	rng := rand.New(rand.NewPCG(seed, 11))
	s := &scenario{
		t: t, rng: rng, refuses: rand.New(rand.NewPCG(seed, 13)), world: newWorld(seed, 3), healAt: time.Duration(2+rng.IntN(4)) * time.Minute,
	}
	if rng.IntN(2) == 0 {
		s.world.heldFrom = time.Duration(rng.IntN(120)) * time.Second
		s.world.heldTill = s.world.heldFrom + time.Duration(rng.IntN(90))*time.Second
	}
	for i, u := range s.world.nodes {
		u.faults = s.faultsOf(i)
	}
	lossy := rng.IntN(3)
	s.world.outcome = func(m *made) (f outcome) { // the world's lock is held
		if rng := s.world.rng; s.world.age() < s.healAt {
			f.lost = rng.IntN(6) < lossy || m.lastValid%5 == 0
			f.slots, f.forked = uint64(rng.IntN(60)), rng.IntN(4) == 0
			if rng.IntN(3) == 0 {
				f.err = errDown // it may have landed all the same
			}
		}
		return f
	}
	for i := range 24 {
		s.list = append(s.list, s.make(seed, i))
	}
	return s
}

// faultsOf draws a node's faults, one for each half minute. The first node lies;
// the others are at worst down, slow or behind, and never by more than a guess of
// a height allows for.
func (s *scenario) faultsOf(node int) func(age time.Duration) faults {
	const period = 30 * time.Second
	plan := make([]faults, s.healAt/period+1)
	for i := range plan {
		f := &plan[i]
		f.down = s.rng.IntN(3) == 0
		f.lag, f.flaky = uint64(s.rng.IntN(100)), s.rng.IntN(2) == 0
		if s.rng.IntN(4) == 0 {
			f.delay = time.Duration(s.rng.IntN(5000)) * time.Millisecond
		}
		if node == 0 && s.rng.IntN(2) == 0 {
			f.down, f.lie, f.blind = false, 10_000, true
		}
	}
	return func(age time.Duration) faults {
		if age >= s.healAt {
			return faults{}
		}
		return plan[age/period]
	}
}

func (s *scenario) make(seed uint64, i int) *transaction {
	w := s.world
	claim := market.ClaimID(seed*1000 + uint64(i) + 1)
	w.mu.Lock()
	lastValid := w.height(w.tip()) + uint64(s.rng.IntN(151))
	w.mu.Unlock()
	kind := []cosign.Kind{cosign.Cosign, cosign.Deliver}[i%2]
	x := &transaction{stored: storetest.Forge(s.t, claim, kind, uint64(claim), lastValid, time.Now().UnixNano())}
	x.made = &made{raw: x.stored.Bytes(), lastValid: lastValid, fails: s.rng.IntN(5) == 0, reference: binding.Reference(claim)}
	w.add(x.made)
	if i%4 == 3 {
		x.missing = &broadcast.Missing{
			Claim: claim, Kind: kind, Hash: x.stored.Hash(), Reference: x.reference, AllowedAt: time.Now().UnixNano(),
		}
		if s.rng.IntN(2) == 0 {
			x.missing.LastValid = lastValid
		}
		if s.rng.IntN(2) == 0 { // it was sent before the crash
			w.land(x.made, w.tip()+uint64(s.rng.IntN(100)), false)
		}
	}
	return x
}

// ended checks a result against the truth, and sometimes refuses it.
func (s *scenario) ended(_ context.Context, r broadcast.Result) error {
	i := slices.IndexFunc(s.list, func(x *transaction) bool { return x.stored.Claim() == r.Claim })
	x := s.list[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	fail := func(format string, args ...any) {
		s.wrong = append(s.wrong, fmt.Sprintf("claim %d at %v: ", r.Claim, s.world.age())+fmt.Sprintf(format, args...))
	}
	w := s.world
	w.mu.Lock()
	final := w.finalized(w.tip())
	height := w.height(final)
	w.mu.Unlock()
	landed := w.landed(x.made)
	switch {
	case r.End == broadcast.Expired && landed:
		fail("expired, and it is in slot %d", x.slot)
	case r.End == broadcast.Expired && height <= x.lastValid:
		fail("expired at height %d, and it lives to %d", height, x.lastValid)
	case r.End != broadcast.Expired && (!landed || x.slot > final || x.slot != r.Slot || x.fails != (r.End == broadcast.Failed)):
		fail("%v in slot %d; in truth %d, fails %v", r.End, r.Slot, x.slot, x.fails)
	case r.End == broadcast.Failed && r.Error == "":
		fail("failed without an error")
	}
	if r.Hash != x.stored.Hash() || r.Kind != x.stored.Kind() || r.End != broadcast.Expired && r.Signature != x.signature {
		fail("another transaction: %+v", r)
	}
	if x.taken {
		fail("reported again after it was taken, without a restart")
	}
	x.reported = append(x.reported, r)
	if s.refuses.IntN(3) == 0 {
		s.refused++
		return errors.New("refused")
	}
	x.taken = true
	return nil
}

// run tracks all until the end of time, with restarts between, and returns what
// was wrong.
func (s *scenario) run(o broadcast.Options) []string {
	// A restart after the nodes are well has a height guessed anew.
	end := s.healAt + 6*time.Minute
	next := 0
	for s.world.age() < end {
		tracker, err := broadcast.New(o, s.world, s.ended)
		if err != nil {
			s.t.Fatal(err)
		}
		// A restart gives again what was given before; some of it had ended.
		for _, x := range s.list[:next] {
			s.mu.Lock()
			x.taken = false
			s.mu.Unlock()
			s.give(tracker, x)
		}
		life := end - s.world.age()
		if s.world.age() < s.healAt {
			life = time.Duration(1+s.rng.IntN(100)) * time.Second
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), life)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := tracker.Run(ctx); err != nil {
				s.t.Error(err)
			}
		})
		for ctx.Err() == nil {
			for n := s.rng.IntN(6); n > 0 && next < len(s.list); n-- {
				s.give(tracker, s.list[next])
				next++
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(s.rng.IntN(3000)) * time.Millisecond):
			}
		}
		cancel()
		wg.Wait()
	}
	for _, x := range s.list {
		if !x.taken {
			s.wrong = append(s.wrong, fmt.Sprintf("claim %d has not ended: slot %d, missing %v, reported %+v", x.stored.Claim(), x.slot, x.missing != nil, x.reported))
		}
		for _, r := range x.reported {
			if r.End != x.reported[0].End || r.Slot != x.reported[0].Slot {
				s.wrong = append(s.wrong, fmt.Sprintf("claim %d has two ends: %+v", x.stored.Claim(), x.reported))
			}
		}
	}
	return s.wrong
}

func (s *scenario) give(tracker *broadcast.Tracker, x *transaction) {
	var err error
	if x.missing != nil {
		err = tracker.Await(*x.missing)
	} else {
		err = tracker.Track(x.stored)
	}
	if err != nil {
		s.t.Error(err)
	}
}

// adversaries is how many seeds are tried.
const adversaries = 60

// TestAdversary: whatever the nodes do, while at most one of three lies, no
// transaction is said to have ended otherwise than it did; and once they are well
// all have ended. Only bytes that were made are sent.
func TestAdversary(t *testing.T) {
	ends := map[broadcast.End]int{}
	refused := 0
	for seed := range uint64(adversaries) {
		synctest.Test(t, func(t *testing.T) {
			s := newScenario(t, seed)
			for _, text := range s.run(broadcast.Options{}) {
				t.Errorf("seed %d: %s", seed, text)
			}
			for _, x := range s.list {
				if len(x.reported) > 0 {
					ends[x.reported[0].End]++
				}
			}
			refused += s.refused
		})
	}
	t.Logf("%v, refused %d times", ends, refused)
	if ends[broadcast.Finalized] < adversaries || ends[broadcast.Failed] < adversaries || ends[broadcast.Expired] < adversaries || refused < adversaries {
		t.Errorf("too little happened: %v, refused %d times", ends, refused)
	}
}

// TestAdversaryWins: where one node's word is enough, the liar is believed. So the
// test before this one can fail.
func TestAdversaryWins(t *testing.T) {
	wrong := 0
	for seed := range uint64(adversaries) {
		synctest.Test(t, func(t *testing.T) {
			wrong += len(newScenario(t, seed).run(broadcast.Options{Quorum: 1}))
		})
	}
	if wrong == 0 {
		t.Error("nothing was wrong")
	}
}
