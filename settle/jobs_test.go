package settle

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/market"
)

var errAny = errors.New("any")

func claimIn(id market.ClaimID, state rfq.ClaimState, at int64) *rfq.Claim {
	return &rfq.Claim{ID: id, State: state, ChangedAt: at}
}

// TestJobsInOrder: the job that is due first is taken first, by one worker; a record
// that comes meanwhile is not forgotten.
func TestJobsInOrder(t *testing.T) {
	w := newJobs(time.Second, 8*time.Second)
	w.set(claimIn(2, rfq.ClaimPaid, 5), 10)
	w.set(claimIn(1, rfq.ClaimCosigned, 5), 20)
	w.set(claimIn(3, rfq.ClaimReserved, 5), 1)
	if _, wait, ok := w.take(9); ok || wait != 1 {
		t.Fatalf("before its time: %v, %v", ok, wait)
	}
	for _, want := range []market.ClaimID{2, 1} {
		if c, _, ok := w.take(20); !ok || c.ID != want {
			t.Fatalf("took %d, %v; want %d", c.ID, ok, want)
		}
	}
	if _, _, ok := w.take(1 << 60); ok || w.count() != 2 {
		t.Fatal("taken twice")
	}
	w.set(claimIn(2, rfq.ClaimDelivering, 30), 30)
	w.done(2, 31, nil)
	if c, _, ok := w.take(31); !ok || c.ID != 2 || c.State != rfq.ClaimDelivering {
		t.Fatalf("the record that came meanwhile: %+v, %v", c, ok)
	}
	w.done(2, 32, nil)
	w.done(1, 32, errLater)
	if c, _, ok := w.take(32 + int64(laterPause)); !ok || c.ID != 1 {
		t.Fatalf("later: %d, %v", c.ID, ok)
	}
	w.set(claimIn(1, rfq.ClaimSettled, 40), 40)
	w.done(1, 41, errAny) // it has ended while a worker had it
	w.remove(2)
	w.remove(7)
	if _, _, ok := w.take(1 << 60); ok || w.count() != 0 || w.due.Len() != 0 {
		t.Errorf("%d are left", w.count())
	}
}

// TestJobsBackOff: failures in a row double the pause up to the longest, wherever they
// are reported; a claim whose transaction is out does not wait.
func TestJobsBackOff(t *testing.T) {
	w := newJobs(time.Second, 5*time.Second)
	w.set(claimIn(1, rfq.ClaimPaid, 0), 0)
	now := int64(0)
	for _, pause := range []time.Duration{1, 2, 4, 5, 5} {
		if _, _, ok := w.take(now); !ok {
			t.Fatal("not due")
		}
		w.done(1, now, errAny)
		_, wait, ok := w.take(now)
		if ok || wait != pause*time.Second {
			t.Fatalf("the pause is %v, want %v s", wait, pause)
		}
		now += int64(wait)
	}
	w.take(now)
	w.done(1, now, nil)
	w.setEnded(1, solana.Hash{1}, true, "x")
	w.setEnded(1, solana.Hash{1}, true, "x")
	if !w.hasEnded(1, solana.Hash{1}) || w.hasEnded(1, solana.Hash{2}) || w.hasEnded(2, solana.Hash{1}) || w.byID[1].failures != 6 {
		t.Errorf("%+v", w.byID[1])
	}
	w.set(claimIn(1, rfq.ClaimDelivering, 0), now)
	if _, _, ok := w.take(now); !ok {
		t.Error("one that is out waits")
	}
	w.done(1, now, nil)
	w.set(claimIn(1, rfq.ClaimPaid, 0), now)
	if _, wait, ok := w.take(now); ok || wait != 5*time.Second {
		t.Errorf("paid again: %v, %v", wait, ok)
	}
}

// TestAuditOnce: an audit is done once, repeated while it fails.
func TestAuditOnce(t *testing.T) {
	w := newJobs(1, 1)
	w.addSearch(claimIn(1, rfq.ClaimRefundDue, 0), 0)
	w.addSearch(claimIn(1, rfq.ClaimRefundDue, 0), 0)
	for _, err := range []error{errAny, errLater, nil} {
		if _, _, ok := w.take(1 << 60); !ok {
			t.Fatal("not due")
		}
		w.done(1, 0, err)
	}
	if w.count() != 0 || w.searches.Len() != 0 {
		t.Errorf("%d are left", w.count())
	}
	w.addSearch(claimIn(1, rfq.ClaimRefundDue, 0), 0)
	w.set(claimIn(2, rfq.ClaimPaid, 0), 5)
	for _, want := range []market.ClaimID{2, 1} {
		if c, _, ok := w.take(9); !ok || c.ID != want {
			t.Errorf("took %d, want %d: tokens before audits", c.ID, want)
		}
	}
}

// TestJobsFailing: which claims are listed, in which order, and how many.
func TestJobsFailing(t *testing.T) {
	w := newJobs(1, 1)
	for id := market.ClaimID(1); id <= 4; id++ {
		w.set(claimIn(id, rfq.ClaimPaid, int64(id)*10), 0)
	}
	w.setSigned(4, 2, 25, solana.Signature{4})
	w.take(0)
	w.done(1, 0, &deliveryProblem{problemAttempts, errAny})
	if n := w.countFailing(30, 10); n != 2 { // 1 by its problem, 2 by its age; 4 was signed at 25
		t.Errorf("%d are failing", n)
	}
	list := w.failing(35, 10, 1, 2)
	if len(list) != 2 || list[0].Claim != 2 || list[1].Claim != 4 || list[1].Attempts != 2 || list[1].Delivery != (solana.Signature{4}) {
		t.Errorf("%+v", list)
	}
	if first := w.failing(35, 10, 0, 1); len(first) != 1 || first[0].Claim != 1 || first[0].Reason != problemAttempts {
		t.Errorf("%+v", first)
	}
}

// TestJobsKeepAll: in whatever order records come and jobs are done, each claim that
// needs work can be taken in the end, once, with its newest record, and no other.
func TestJobsKeepAll(t *testing.T) {
	states := []rfq.ClaimState{
		rfq.ClaimReserved, rfq.ClaimPaid, rfq.ClaimDelivering, rfq.ClaimSettled, rfq.ClaimExpired, rfq.ClaimCosigned,
		rfq.ClaimReleased, rfq.ClaimRefundDue,
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := newJobs(time.Millisecond, time.Second)
		want, taken, now := map[market.ClaimID]rfq.ClaimState{}, map[market.ClaimID]bool{}, int64(0)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now += rapid.Int64Range(0, 2e9).Draw(rt, "pause")
			switch rapid.IntRange(0, 2).Draw(rt, "what") {
			case 0:
				id, state := market.ClaimID(rapid.IntRange(1, 5).Draw(rt, "claim")), rapid.SampledFrom(states).Draw(rt, "state")
				w.set(claimIn(id, state, now), now)
				if needsWork(state) {
					want[id] = state
				} else {
					delete(want, id)
					delete(taken, id)
				}
			case 1:
				if c, _, ok := w.take(now); ok {
					if taken[c.ID] || want[c.ID] != c.State {
						rt.Fatalf("took %d in state %d", c.ID, c.State)
					}
					taken[c.ID] = true
				}
			case 2:
				for id := range taken {
					w.done(id, now, rapid.SampledFrom([]error{errAny, errLater}).Draw(rt, "err"))
					delete(taken, id)
					break
				}
			}
		}
		for id := range taken {
			w.done(id, now, errAny)
		}
		got := map[market.ClaimID]rfq.ClaimState{}
		for c, _, ok := w.take(1 << 62); ok; c, _, ok = w.take(1 << 62) {
			got[c.ID] = c.State
		}
		if len(got) != len(want) {
			rt.Fatalf("%v are left, want %v", got, want)
		}
		for id, state := range want {
			if got[id] != state {
				rt.Fatalf("%d is left in %d, want %d", id, got[id], state)
			}
		}
	})
}

// TestJobEnteredAgain: a claim that ends and is entered again while a worker has its old job
// keeps the new one.
func TestJobEnteredAgain(t *testing.T) {
	w := newJobs(time.Second, time.Minute)
	w.set(claimIn(7, rfq.ClaimPaid, 1), 1)
	if _, _, ok := w.take(1); !ok {
		t.Fatal("no job")
	}
	w.remove(7)
	w.set(claimIn(7, rfq.ClaimDelivering, 2), 2)
	w.done(7, 3, nil)
	if c, _, ok := w.take(3); !ok || c.State != rfq.ClaimDelivering {
		t.Errorf("%+v, %t", c, ok)
	}
}
