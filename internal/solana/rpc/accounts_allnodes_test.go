package rpc_test

import (
	"errors"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// TestAccountsFromEach: each node's result has its own slot or its own error, and a node
// that is behind has no accounts.
func TestAccountsFromEach(t *testing.T) {
	const account = `{"lamports":5,"owner":"11111111111111111111111111111111","data":["AQI=","base64"],"executable":false}`
	list := []solana.Address{{31: 1}, {31: 2}}
	ahead := newNode(t, result(`{"context":{"slot":72},"value":[null,`+account+`]}`))
	equal := newNode(t, result(`{"context":{"slot":70},"value":[`+account+`,null]}`))
	behind := newNode(t, result(`{"context":{"slot":69},"value":[null,null]}`))
	broken := newNode(t, status(503, ""))
	c := newClient(t, options(ahead, equal, behind, broken))
	views, err := c.AccountsFromEach(t.Context(), list, rpc.Confirmed, 70)
	if err != nil || len(views) != 4 {
		t.Fatal(views, err)
	}
	if v := views[0]; v.Upstream != "a" || v.Slot != 72 || v.Accounts[0] != nil || v.Accounts[1].Address != list[1] || v.Accounts[1].Lamports != 5 {
		t.Errorf("%+v", v)
	}
	if v := views[1]; v.Slot != 70 || v.Accounts[1] != nil || v.Accounts[0] == nil {
		t.Errorf("%+v", v)
	}
	for i, kind := range map[int]rpc.Kind{2: rpc.WrongAnswer, 3: rpc.Down} {
		if v := views[i]; rpc.KindOf(v.Err) != kind || v.Accounts != nil || v.Slot != 0 {
			t.Errorf("%+v", v)
		}
		noSecret(t, views[i].Err)
	}
	if n := len(broken.calls()); n != 1 {
		t.Errorf("a node that fails was asked %d times", n)
	}
	if _, err := c.AccountsFromEach(t.Context(), make([]solana.Address, rpc.MaxAccountsPerCall+1), rpc.Confirmed, 0); !errors.Is(err, rpc.ErrTooMany) {
		t.Error(err)
	}
	if views, err := c.AccountsFromEach(t.Context(), list, rpc.Confirmed, 0); err != nil || views[2].Err != nil || views[2].Slot != 69 {
		t.Errorf("as of any slot: %+v, %v", views, err)
	}
}

// TestAccountsFromAllOfOne: a single node is tried as often as by any call.
func TestAccountsFromAllOfOne(t *testing.T) {
	n := newNode(t, status(503, ""))
	c := newClient(t, options(n))
	views, err := c.AccountsFromEach(t.Context(), nil, rpc.Confirmed, 0)
	if err != nil || len(views) != 1 || views[0].Upstream != "a" || rpc.KindOf(views[0].Err) != rpc.Down {
		t.Errorf("%+v, %v", views, err)
	}
	if len(n.calls()) < 2 {
		t.Error("asked once")
	}
}
