package rpc_test

import (
	"errors"
	"fmt"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// TestSignaturePageFromEach: each node's result has its own page or its own error, and
// all get the same request.
func TestSignaturePageFromEach(t *testing.T) {
	entry := func(slot int) string { return fmt.Sprintf(`{"signature":%q,"slot":%d,"err":null}`, signature, slot) }
	two := newNode(t, result("["+entry(9)+","+entry(8)+"]"))
	none, long := newNode(t, result("[]")), newNode(t, result("["+entry(9)+","+entry(8)+","+entry(7)+"]"))
	broken := newNode(t, status(503, ""))
	c := newClient(t, options(two, none, long, broken))
	page := rpc.Page{Before: signature, Until: solana.Signature{9}, Limit: 2, MinSlot: 7}
	views, err := c.SignaturePageFromEach(t.Context(), solana.Address{31: 1}, page, rpc.Finalized)
	if err != nil || len(views) != 4 {
		t.Fatal(views, err)
	}
	if v := views[0]; v.Upstream != "a" || v.Err != nil || len(v.List) != 2 || v.List[1] != (rpc.SignatureInfo{Signature: signature, Slot: 8}) {
		t.Errorf("%+v", v)
	}
	if v := views[1]; v.Upstream != "b" || v.Err != nil || v.List == nil || len(v.List) != 0 {
		t.Errorf("%+v", v)
	}
	for i, kind := range map[int]rpc.Kind{2: rpc.WrongAnswer, 3: rpc.Down} {
		if v := views[i]; rpc.KindOf(v.Err) != kind || v.List != nil {
			t.Errorf("%+v", v)
		}
		noSecret(t, views[i].Err)
	}
	want := fmt.Sprintf(`{"before":%q,"commitment":"finalized","limit":2,"minContextSlot":7,"until":%q}`, signature, solana.Signature{9})
	if asked := two.calls(); len(asked) != 1 || string(asked[0].Params[1]) != want || len(broken.calls()) != 1 {
		t.Errorf("asked %v, want %s", asked, want)
	}
	if _, err := c.SignaturePageFromEach(t.Context(), solana.Address{}, rpc.Page{Limit: rpc.MaxSignaturesPerCall + 1}, rpc.Finalized); !errors.Is(err, rpc.ErrTooMany) {
		t.Error(err)
	}
}

// TestSignaturePageFromAllOfOne: a single node is tried as often as by any call.
func TestSignaturePageFromAllOfOne(t *testing.T) {
	n := newNode(t, status(503, ""))
	views, err := newClient(t, options(n)).SignaturePageFromEach(t.Context(), solana.Address{}, rpc.Page{}, rpc.Finalized)
	if err != nil || len(views) != 1 || views[0].Upstream != "a" || rpc.KindOf(views[0].Err) != rpc.Down || len(n.calls()) < 2 {
		t.Errorf("%+v, %v, %d calls", views, err, len(n.calls()))
	}
}
