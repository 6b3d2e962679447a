package mirror_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/internal/await"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

// TestServiceShowsNothingOld: proven windows become unproven when the store fails for a
// while or the node is slow.
func TestServiceShowsNothingOld(t *testing.T) {
	for name, harm := range map[string]func(r *rig){
		"the disk is gone":   func(r *rig) { r.kv.left.Store(0) },
		"a node takes hours": func(r *rig) { r.chain.slow = 3 * time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1)
				r.chain.act(buys(10, 30))
				r.start()
				if s := r.after(2 * cycle); s.Pairs[0].Swaps.Rolling.Day.Status != mirror.Exact {
					t.Fatalf("%+v", s.Pairs[0].Swaps)
				}
				harm(r)
				r.chain.act(buys(11, 30))
				s := r.after(2 * time.Minute)
				if w := &s.Pairs[0].Swaps; w.Rolling.Day != (mirror.Window{Status: mirror.Behind}) || w.Rolling.Week != w.Rolling.Day || !s.Reasons.Has(mirror.HistoryBehind) || w.Rolling.Totals.Swaps != 1 {
					t.Errorf("%q %+v", s.Reasons.Words(), w)
				}
				r.chain.slow = 0
				r.stop()
			})
		})
	}
}

// TestServiceEngineComesBack: an engine that refuses for a while gets every swap once, in
// order, and the newest book.
func TestServiceEngineComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.start()
		for round := range 4 {
			r.engine.mu.Lock()
			if r.engine.err = nil; round%2 == 0 {
				r.engine.err = errors.New("full")
			}
			r.engine.mu.Unlock()
			for range 3 {
				r.chain.act(buys(10, 30))
				s := r.after(2 * cycle)
				if s.Reasons.Has(mirror.EngineRefuses) != (round%2 == 0) {
					t.Errorf("round %d: %q", round, s.Reasons.Words())
				}
			}
		}
		s := r.after(cycle)
		r.stop()
		r.sameTrades("in the end")
		if r.engine.refused != 0 || r.engine.Durable(3).Slot != s.Slot || s.Reasons != 0 {
			t.Errorf("%d refused, slot %d: %q at %d", r.engine.refused, r.engine.Durable(3).Slot, s.Reasons.Words(), s.Slot)
		}
	})
}

// TestServiceRollback: after a rolled-back slot of one node or of most, the service
// follows the chain, and no slot goes back.
func TestServiceRollback(t *testing.T) {
	for _, forked := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("%d of 3", forked), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 3)
				r.start()
				r.after(2*cycle + cycle/2)
				for round := range 4 {
					// On a fork some slots ahead the vault is empty.
					r.chain.alterAnswers(func(node int, v *rpc.NodeAccounts) {
						if node < forked {
							hollow(v)
							moveTo(v, v.Slot+6, 0)
						}
					})
					s := r.after(cycle)
					if p := s.Pairs[0].Pool; (p.BaseBalance == 1) != (forked > 1) {
						t.Errorf("round %d on the fork: %+v", round, p)
					}
					before := s.Pairs[0].At.Slot
					r.chain.alterAnswers(nil)
					s = r.after(cycle)
					if p := &s.Pairs[0]; p.Pool.BaseBalance != r.chain.past.vaults[0] || p.At.Slot <= before || p.Reasons != 0 {
						t.Errorf("round %d after the fork: %+v at %d, was %d: %q", round, p.Pool, p.At.Slot, before, p.Reasons.Words())
					}
				}
				r.stop()
				for i, e := range r.engine.refreshes[1:] {
					if e.Slot <= r.engine.refreshes[i].Slot {
						t.Errorf("refresh %d: slot %d after %d", i+1, e.Slot, r.engine.refreshes[i].Slot)
					}
				}
			})
		})
	}
}

// TestServiceSidesChange: three nodes return an empty vault in turn; the majority's
// balance is always published.
func TestServiceSidesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		round := 0
		r.chain.alter = func(node int, v *rpc.NodeAccounts) {
			if node == round%3 {
				hollow(v)
			}
		}
		r.start()
		for range 12 {
			s := r.after(cycle)
			if p := &s.Pairs[0]; p.Pool == nil || p.Pool.BaseBalance != r.chain.past.vaults[0] || p.AgreeingNodes != 2 || !p.Reasons.Has(mirror.Contradicted) {
				t.Errorf("round %d: %+v %q", round, p.Pool, p.Reasons.Words())
			}
			r.chain.mu.Lock()
			round++
			r.chain.mu.Unlock()
		}
		r.stop()
	})
}

// TestServiceCrashesPruning: a crash at each commit while a long past is read and
// deleted.
func TestServiceCrashesPruning(t *testing.T) {
	for _, unsynced := range []int{0, 1, 1 << 20} {
		for at, more := 1, true; more; at++ {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2)
				r.o.Lookback = -1
				for i := range 30 {
					await.VirtualSleep(t, 9*time.Hour)
					r.chain.act(buys(10, 30+market.Amount(i)))
				}
				r.kv.left.Store(int64(at))
				r.start()
				r.after(2 * cycle)
				r.chain.act(buys(1, 2))
				r.after(cycle)
				r.stop()
				more = r.kv.left.Load() == 0
				r.kv = r.kv.crash(unsynced)
				r.start()
				r.chain.act(buys(1, 3))
				s := r.after(3 * cycle)
				r.stop()
				r.sameTrades(fmt.Sprintf("commit %d, %d unsynced", at, unsynced))
				w := &s.Pairs[0].Swaps.Rolling
				swaps, _, _ := r.chain.past.naive(len(r.chain.past.list), r.chain.now().Unix()-7*day)
				if w.Week.Status != mirror.Exact || w.Week.Swaps != swaps || w.Totals.Swaps != 32 || w.Totals.Doubts != 0 || !w.Totals.Complete || r.kv.count('t') > 24 {
					t.Errorf("commit %d, %d unsynced: %+v, %d kept", at, unsynced, w, r.kv.count('t'))
				}
			})
		}
	}
}
