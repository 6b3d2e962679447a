package engine

import (
	"encoding/hex"
	"fmt"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// TestReplayOf010: journals of version 0.1.0 replay to the same events and the same state. The
// digests and hashes are those of its code.
func TestReplayOf010(t *testing.T) {
	for seed, want := range map[uint64]string{
		1: "f256093762358c93 63e60dd57a7ca678bb930101415fa99bc833c46b51f452c3444c4eb1604ae383",
		2: "587526cb443188f0 5f1961a2b3666bb246b481a6f6095012fea2aad93c1609004249fa99c337a99f",
		3: "3dc73cec6829dba5 cdd8f342939d6813cbf76aa7baaac0de28dc3f2ce77942639f3fea7ec42f22d8",
	} {
		f := newDeskFlow(seed)
		r := NewReplica(StateOptions{})
		kinds := map[event.Kind]int{}
		for i := range int64(30_000) {
			c := f.next()
			c.Seq, c.At = uint64(i+1), second+i*second/50
			r.Apply(&c, func(es []event.Event) {
				for j := range es {
					kinds[es[j].Kind]++
				}
			})
		}
		hash := r.State.Hash()
		if got := fmt.Sprintf("%016x %s", r.Digest, hex.EncodeToString(hash[:])); got != want {
			t.Errorf("seed %d: %s; want %s", seed, got, want)
		}
		if kinds[event.Desk] < 10_000 || kinds[event.Traded] < 1000 {
			t.Errorf("seed %d: %v", seed, kinds)
		}
	}
}

// TestReplayGuarded: under RulesGuarded a state that is restored from snapshots writes the same
// events, also in the middle of a mass expiry.
func TestReplayGuarded(t *testing.T) {
	f := newDeskFlow(4)
	policy := testPolicy(second, second)
	policy.Rules, policy.LateWindow, policy.Grace, policy.UnprovenTTL = rfq.RulesGuarded, 0, second/2, second
	policy.UnprovenPerClient, policy.UnprovenShareBps = rfq.MaxCapacity, market.MaxBps
	f.head = append(f.head, f.desk.pack(&rfq.SetPolicy{Policy: policy})...)
	for in := range market.InstrumentID(2) {
		p := testPair(in)
		p.FirmBps = [market.RailCount]uint16{1: 100, 2: 150}
		f.head = append(f.head, f.desk.pack(&rfq.SetPair{Pair: p})...)
	}
	r, other := NewReplica(StateOptions{}), NewReplica(StateOptions{})
	unswept := 0
	for i := range int64(20_000) {
		c := f.next()
		c.Seq, c.At = uint64(i+1), second+i*second/200
		if i%500 > 450 {
			c.At += 20 * second // much is due at once
		}
		again := c
		r.Apply(&c, func([]event.Event) {})
		other.Apply(&again, func([]event.Event) {})
		if next := r.State.NextExpiry(); next != 0 && next <= r.State.At() {
			unswept++
		}
		if i%97 != 0 {
			continue
		}
		state, err := RestoreState(other.State.AppendSnapshot(nil), StateOptions{})
		if err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		other.State = state
		if r.Digest != other.Digest || r.State.Hash() != state.Hash() {
			t.Fatalf("command %d: the restored state differs", i)
		}
	}
	if unswept < 100 {
		t.Errorf("%d commands left something due", unswept)
	}
}
