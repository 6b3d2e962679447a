package mirror_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/internal/solana/rpc"
)

// TestServiceRecordsFinal: a snapshot has a final slot, whatever newer slots nodes
// return, and there is none before a final slot is available; the published state has
// newer slots.
func TestServiceRecordsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		r.o.SnapshotEvery = time.Hour
		r.chain.act(buys(10, 30))
		const behind = 32
		r.chain.alterAnswers(func(_ int, v *rpc.NodeAccounts) { hollow(v) }) // a fork
		r.chain.final = func(v *rpc.NodeAccounts) { v.Err = errors.New("down") }
		r.start()
		if s := r.after(3 * cycle).Pairs[0]; s.Pool == nil || s.Pool.BaseBalance != 1 || len(s.Swaps.Snapshots) != 0 {
			t.Errorf("nothing is final: %+v, recorded %+v", s.Pool, s.Swaps.Snapshots)
		}
		r.chain.mu.Lock()
		r.chain.final = func(v *rpc.NodeAccounts) {
			for i, a := range v.Accounts {
				v.Accounts[i] = r.chain.account(a.Address)
			}
			moveTo(v, v.Slot-behind, -behind*time.Second/2)
		}
		r.chain.mu.Unlock()
		list := r.after(2 * cycle).Pairs[0].Swaps.Snapshots
		r.stop()
		if len(list) != 1 || list[0].BaseBalance != 1_000_000-10 || list[0].Swaps != 1 || list[0].Slot > r.chain.slot()-behind || list[0].Slot == 0 {
			t.Errorf("recorded %+v", list)
		}
	})
}
