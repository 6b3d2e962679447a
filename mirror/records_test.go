package mirror

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/market"
)

// someTrace has every field set.
func someTrace() Trace {
	s := solana.Signature{1, 2, 3}
	return Trace{
		Signature: s, Slot: 7, Time: 8, Payer: solana.Address{9},
		Base: Balance{Named: true, Before: 10, After: 11}, Quote: Balance{Named: true, Created: true, After: 12},
		Movements: []Movement{
			{MovementKey{s, 1, 2}, Swap, 3, Delta{4, true}, Delta{5, false}},
			{MovementKey{s, 6, 0}, OneSided, 1, Delta{}, Delta{7, true}},
		},
	}
}

// TestRecordsGolden freezes the bytes of version 1.
func TestRecordsGolden(t *testing.T) {
	trace := someTrace()
	data := encodeTrace(&trace, true)
	want := []byte{1, 1, 2, 3}
	want = append(want, make([]byte, 61)...)
	want = append(want, 7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 9)
	want = append(want, make([]byte, 31)...)
	want = append(want, 1, 0, 10, 0, 0, 0, 0, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0)
	want = append(want, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0)
	want = append(want, 1, 1, 0, 2, 0, 1, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0)
	want = append(want, 1, 6, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1)
	if !bytes.Equal(data, want) {
		t.Errorf("% x\nwant\n% x", data, want)
	}
	got, failed, err := decodeTrace(data)
	if err != nil || !failed || !reflect.DeepEqual(got, trace) {
		t.Errorf("%+v, %v, %v", got, failed, err)
	}
	for n := range data {
		if _, _, err := decodeTrace(data[:n]); !errors.Is(err, ErrRecord) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	for name, size := range map[string][2]int{
		"head":     {len(encode(nil, &head{})), 1 + 4 + 3*8 + 3*80 + 1 + (8 + 32 + 1 + 8) + 8 + (68 + 16) + 1 + 8 + 8},
		"swap":     {len(encode(nil, &swapRecord{})), 1 + 8 + 84 + 1 + 16 + 16 + 32},
		"recorded": {len(encode(nil, &Snapshot{})), 1 + 16 + 32 + 8 + 32 + 8 + 1},
	} {
		if size[0] != size[1] {
			t.Errorf("a %s has %d bytes, not %d", name, size[0], size[1])
		}
	}
}

// TestPositions: keys sort like positions.
func TestPositions(t *testing.T) {
	r := newRecords(nil, market.MaxInstruments-1, solana.Address{255})
	last := r.traceKey(1, -1<<63)
	for _, at := range []int64{-256, -1, 0, 1, 255, 1<<63 - 1} {
		key := r.traceKey(1, at)
		if bytes.Compare(last, key) >= 0 {
			t.Errorf("% x after % x", key, last)
		}
		last = key
	}
	if bytes.Compare(last, r.traceKey(2, -1<<63)) >= 0 {
		t.Error("a run's traces are among another's")
	}
}

// FuzzTrace: stored bytes are refused or encode to the same bytes.
func FuzzTrace(f *testing.F) {
	trace := someTrace()
	f.Add(encodeTrace(&trace, false))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, failed, err := decodeTrace(data)
		if err != nil {
			if !errors.Is(err, ErrRecord) {
				t.Fatal(err)
			}
			return
		}
		again, _, err := decodeTrace(encodeTrace(&got, failed))
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%+v\nagain %+v, %v", got, again, err)
		}
	})
}
