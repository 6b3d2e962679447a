package mirror_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"

	"blockdesk/internal/solana"
	"blockdesk/market"
	"blockdesk/mirror"
)

// TestServiceSignatures: each trade's transaction is found by its ordinal, alone and in
// ranges, after a restart, and for two swaps of one transaction.
func TestServiceSignatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		var want []solana.Signature
		for i := range 5 {
			r.chain.act(func(s *scene) {
				for range i%2 + 1 {
					s.buy(1, 10, 30)
				}
			})
			sig := r.chain.past.list[len(r.chain.past.list)-1].Signature()
			want = append(want, slices.Repeat([]solana.Signature{sig}, i%2+1)...)
		}
		r.start()
		r.after(2 * cycle)
		for range 2 {
			all, err := r.s.Signatures(3, 1, uint64(len(want)))
			if err != nil || !slices.Equal(all, want) {
				t.Errorf("%v, want %v: %v", all, want, err)
			}
			for i := range want {
				if sig, ok, err := r.s.Signature(3, uint64(i)+1); !ok || err != nil || sig != want[i] {
					t.Errorf("trade %d: %v, %v, %v", i+1, sig, ok, err)
				}
			}
			r.stop()
			r.kv = r.kv.crash(0)
			r.start()
		}
		r.stop()
		none := solana.Signature{}
		if list, err := r.s.Signatures(3, 6, 9); err != nil || !slices.Equal(list, []solana.Signature{want[5], want[6], none, none}) {
			t.Errorf("past the end: %v, %v", list, err)
		}
		for _, c := range []struct {
			in      market.InstrumentID
			ordinal uint64
		}{{3, 0}, {3, 8}, {3, math.MaxUint64}, {4, 1}} {
			if sig, ok, err := r.s.Signature(c.in, c.ordinal); ok || err != nil || sig != none {
				t.Errorf("trade %d of %d: %v, %v, %v", c.ordinal, c.in, sig, ok, err)
			}
		}
		if list, err := r.s.Signatures(4, 1, 2); err != nil || !slices.Equal(list, make([]solana.Signature, 2)) {
			t.Errorf("another instrument: %v, %v", list, err)
		}
		if list, err := r.s.Signatures(3, math.MaxUint64, math.MaxUint64); err != nil || len(list) != 1 || list[0] != none {
			t.Errorf("the last number: %v, %v", list, err)
		}
	})
}

// TestServiceSignaturesLimits: the limit of a call, and invalid records.
func TestServiceSignaturesLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.chain.act(buys(10, 30))
		r.start()
		r.after(2 * cycle)
		r.stop()
		if list, err := r.s.Signatures(3, 1, mirror.MaxSignatures); err != nil || len(list) != mirror.MaxSignatures {
			t.Errorf("%d of %d: %v", len(list), mirror.MaxSignatures, err)
		}
		for _, to := range []uint64{mirror.MaxSignatures + 1, math.MaxUint64} {
			if list, err := r.s.Signatures(3, 1, to); !errors.Is(err, mirror.ErrTooMany) || list != nil {
				t.Errorf("to %d: %d, %v", to, len(list), err)
			}
		}
		if list, err := r.s.Signatures(3, 2, 1); err != nil || list != nil {
			t.Errorf("none: %v, %v", list, err)
		}
		for key, value := range r.kv.Content() {
			if key[0] == 's' {
				r.kv.Put(key, []byte(value[:len(value)-1]))
			}
		}
		if _, ok, err := r.s.Signature(3, 1); ok || !errors.Is(err, mirror.ErrRecord) {
			t.Errorf("a cut record: %v, %v", ok, err)
		}
		if _, err := r.s.Signatures(3, 1, 1); !errors.Is(err, mirror.ErrRecord) {
			t.Errorf("a cut record: %v", err)
		}
	})
}
