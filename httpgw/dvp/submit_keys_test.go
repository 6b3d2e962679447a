package dvp

import (
	"testing"

	"blockdesk/engine/rfq"
)

// TestSubmitKeysAreBounded: above MaxSubmitKeys the oldest key is dropped, and expired
// keys are removed.
func TestSubmitKeysAreBounded(t *testing.T) {
	now := int64(0)
	k := newSubmitKeys(func() int64 { return now })
	key := func(i int, body byte) rfq.IdempotencyKey {
		return rfq.IdempotencyKey{ID: [16]byte{1, byte(i >> 16), byte(i >> 8), byte(i)}, Body: [8]byte{body}}
	}
	for i := range MaxSubmitKeys {
		if now++; !k.claim(key(i, 1)) {
			t.Fatalf("key %d is refused", i)
		}
	}
	if k.claim(key(0, 2)) || len(k.byID) != MaxSubmitKeys {
		t.Fatalf("the first of %d keys has gone", len(k.byID))
	}
	if !k.claim(key(MaxSubmitKeys, 1)) || k.claim(key(1, 2)) || len(k.byID) != MaxSubmitKeys || k.age.Len() != MaxSubmitKeys {
		t.Fatalf("one more: %d keys, %d in their order", len(k.byID), k.age.Len())
	}
	if !k.claim(key(0, 2)) {
		t.Error("the oldest has not made room")
	}
	for i := range MaxSubmitKeys + 1 {
		k.finish(key(i, 1), i%2 == 0)
		k.finish(key(i, 2), false)
	}
	if n := len(k.byID); n != k.age.Len() || n < MaxSubmitKeys/2-2 || n > MaxSubmitKeys/2+2 {
		t.Errorf("half have been answered, and %d of %d are kept", n, MaxSubmitKeys)
	}
	now += submitKeyLife
	if !k.claim(key(0, 3)) || len(k.byID) != 1 || k.age.Len() != 1 {
		t.Errorf("a day later: %d keys", len(k.byID))
	}
	if k.finish(rfq.IdempotencyKey{}, false); !k.claim(rfq.IdempotencyKey{}) || len(k.byID) != 1 {
		t.Error("no key is kept as one")
	}
}
