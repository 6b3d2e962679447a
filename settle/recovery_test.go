package settle

import (
	"context"
	"encoding/binary"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana/build"
	"blockdesk/market"
	"blockdesk/persist/kv/kvtest"
	"blockdesk/settle/broadcast"
	"blockdesk/settle/store"
	"blockdesk/settle/store/storetest"
)

// agreeable is a desk that agrees to everything.
type agreeable struct{ Desk }

func (agreeable) Do(r rfq.Request) (*desk.Result, error) {
	return &desk.Result{Outcome: rfq.Outcome{Kind: r.Kind()}}, nil
}

// TestRecoveryGoesOn: a claim whose stored transaction cannot be read does not hold
// up the others.
func TestRecoveryGoesOn(t *testing.T) {
	kv := kvtest.New()
	st, err := store.Open(kv)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.PutTransaction(storetest.Atomic(t, 2, 1, build.Desk), 1000, 1); err != nil {
		t.Fatal(err)
	}
	damaged := append(binary.BigEndian.AppendUint64([]byte{3}, 1), make([]byte, 32)...)
	err = kv.Commit(func(set func(key, value []byte), _ func(lo, hi []byte)) { set(damaged, []byte{9}) }, true)
	if err != nil {
		t.Fatal(err)
	}
	e := &env{store: st, desk: agreeable{}, log: slog.New(slog.DiscardHandler)}
	r := &recovery{env: e, retryEvery: time.Millisecond, claims: []market.ClaimID{1, 2, 3}}
	if r.tracker, err = broadcast.New(broadcast.Options{}, nil, nil); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := r.run(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if n := r.tracker.Stats().Tracked; n != 1 || len(r.claims) != 1 || r.claims[0] != 1 {
		t.Errorf("%d are tracked, left is %v", n, r.claims)
	}
}
