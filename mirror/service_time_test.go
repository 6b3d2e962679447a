package mirror_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/internal/await"
	"blockdesk/market"
	"blockdesk/mirror"
)

// TestServiceClockJumps: a wrong clock of ours misdates nothing, and once it is right
// every swap is published with its own time.
func TestServiceClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{-time.Hour, -2 * time.Minute, 2 * time.Minute, time.Hour, 400 * mirror.Day, -400 * mirror.Day} {
		t.Run(fmt.Sprint(jump), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2)
				r.o.Now = func() time.Time {
					r.chain.mu.Lock()
					defer r.chain.mu.Unlock()
					return r.chain.now().Add(r.chain.wrong)
				}
				for range 4 {
					await.VirtualSleep(t, time.Hour)
					r.chain.act(buys(10, 30))
				}
				r.start()
				r.after(2 * cycle)
				r.chain.mu.Lock()
				r.chain.wrong = jump
				r.chain.mu.Unlock()
				r.chain.act(buys(11, 31))
				s := r.after(5 * time.Minute)
				if s.Reasons == 0 || s.Pairs[0].Swaps.Rolling.Day.Status.Proven() {
					t.Errorf("with a wrong clock: %q, %+v", s.Reasons.Words(), s.Pairs[0].Swaps.Rolling.Day)
				}
				r.stop()
				r.start() // as an operator may do after setting the clock
				r.chain.act(buys(12, 32))
				r.after(5 * time.Minute)
				r.chain.mu.Lock()
				r.chain.wrong = 0
				r.chain.mu.Unlock()
				r.chain.act(buys(13, 33))
				s = r.after(2*cycle + time.Second)
				r.stop()
				r.sameTrades("with the right clock")
				if w := &s.Pairs[0].Swaps.Rolling; s.Reasons != 0 || w.Day.Status != mirror.Exact || w.Day.Swaps != 7 || w.Totals.Doubts != 0 {
					t.Errorf("%q: %+v", s.Reasons.Words(), w)
				}
			})
		})
	}
}

// TestServiceNewBeforeOld: while a long past is read, new transactions are read too.
func TestServiceNewBeforeOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const past = 300
		r := newRig(t, 1)
		for range past {
			r.chain.act(buys(1, 3))
			await.VirtualSleep(t, time.Second)
		}
		r.chain.slow = time.Second // a transaction
		r.start()
		r.after(5 * cycle)
		for i := range 5 {
			r.chain.act(buys(2, 7+market.Amount(i)))
			s := r.after(4 * cycle)
			if w := &s.Pairs[0].Swaps; w.Rolling.Last.Quote != 7+market.Amount(i) || w.Rolling.Day.Status == mirror.Behind || w.Pending == 0 {
				t.Errorf("round %d: %+v", i, w)
			}
		}
		s := r.after(past * time.Second)
		r.stop()
		r.sameTrades("at last")
		if s.Pairs[0].Swaps.Rolling.Day.Status != mirror.Exact {
			t.Errorf("%+v", s.Pairs[0].Swaps)
		}
	})
}

// TestServiceMaxPendingSwaps: of an endless past only the limit is kept, and all of it is
// counted. Swaps beyond the limit are not published.
func TestServiceMaxPendingSwaps(t *testing.T) {
	for more := range 2 {
		synctest.Test(t, func(t *testing.T) {
			const most = 64*4 - 1 // it is looked at after 64 steps, of which one is a list
			r := newRig(t, 1)
			r.o.Lookback, r.o.MaxPendingSwaps = -1, most
			for range most - 2 + 65*more {
				r.chain.act(func(s *scene) { s.buy(1, 1, 3) })
				await.VirtualSleep(t, 2*time.Hour)
			}
			r.start()
			s := r.after(3 * cycle)
			w := &s.Pairs[0].Swaps
			swaps := len(r.chain.past.list) - 1 // the first one makes the pool
			if got := len(r.engine.trades); got != swaps && more == 0 || more == 1 && (got >= swaps || got < most-66) {
				t.Errorf("%d of %d swaps are published", got, swaps)
			}
			if w.Rolling.Totals.Swaps != uint64(swaps) || !w.Rolling.Totals.Complete || w.Rolling.Week.Status != mirror.Exact || r.kv.count('t') > 90 {
				t.Errorf("%d transactions are kept: %+v", r.kv.count('t'), w)
			}
			r.stop()
			r.kv = r.kv.crash(0)
			r.start()
			again := &r.after(2 * cycle).Pairs[0].Swaps
			r.stop()
			if again.Rolling.Totals != w.Rolling.Totals || again.Rolling.Week.Status != mirror.Exact {
				t.Errorf("%+v\nwas %+v", again.Rolling, w.Rolling)
			}
		})
	}
}

// TestServicePrunesUnread: a past that no node returns completely is deleted as it is
// read, but for its oldest transaction, which later ones must join; the same for one
// without a time.
func TestServicePrunesUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.o.Lookback = -1
		for range 60 {
			r.chain.act(buys(10, 30))
			await.VirtualSleep(t, 8*time.Hour)
		}
		r.chain.past.list[10].BlockTime = 0
		r.chain.past.floor = 5
		r.start()
		r.after(10 * cycle)
		if n := r.kv.count('t'); n > 25 {
			t.Errorf("%d transactions are kept", n)
		}
		r.stop()
		r.kv, r.chain.past.floor = r.kv.crash(1<<20), 0
		r.start()
		s := r.after(4 * cycle)
		r.stop()
		if w := &s.Pairs[0].Swaps.Rolling; w.Week.Status != mirror.Exact || !w.Totals.Complete || w.Totals.Swaps != 60 || w.Totals.Doubts != 1 {
			t.Errorf("%+v", w)
		}
		if n := r.kv.count('t'); n > 25 {
			t.Errorf("%d transactions are kept", n)
		}
	})
}
