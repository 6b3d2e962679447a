package mirror_test

import (
	"errors"
	"testing"
	"time"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/mirror"
)

// TestBackfillContestedSplit: a contested transaction that only some nodes have is not
// awaited, because it may be invented, and a liar could stop the history.
func TestBackfillContestedSplit(t *testing.T) {
	node := nodeOf(chainOf(5))
	f := follow(t, node, mirror.BackfillOptions{})
	if err := f.poll(); err != nil {
		t.Fatal(err)
	}
	newest := f.Cursor().Newest
	f.Poll(time.Unix(f.now+10, 0), 0)
	invented := mirror.Entry{SignatureInfo: rpc.SignatureInfo{Signature: solana.Signature{9}, Slot: newest.Slot + 1}, Contested: true}
	known := mirror.Entry{SignatureInfo: rpc.SignatureInfo{Signature: newest.Signature, Slot: newest.Slot, BlockTime: newest.Time}}
	if _, err := f.Listed(mirror.List{Entries: []mirror.Entry{invented, known}}); err != nil {
		t.Fatal(err)
	}
	node.err = rpc.ErrNoMajority
	for i := 1; i < 8; i++ {
		if err := f.step(); !errors.Is(err, rpc.ErrNoMajority) || len(f.errs) != 0 {
			t.Fatalf("try %d: %v, passed over %v", i, err, f.errs)
		}
		f.Poll(time.Unix(f.now+10, 0), 0)
	}
	if err := f.step(); err != nil || len(f.errs) != 1 || !errors.Is(f.errs[0], rpc.ErrNoMajority) {
		t.Errorf("%v, passed over %v", err, f.errs)
	}
	if f.Cursor().Newest != newest {
		t.Errorf("the history ends at %+v, what may never have been", f.Cursor().Newest)
	}
}
