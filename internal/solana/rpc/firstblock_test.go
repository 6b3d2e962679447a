package rpc_test

import (
	"net/http"
	"testing"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
)

// TestFirstBlock: a node is asked once for the height of its first block, and not at all if
// it has the whole chain. A node that does not return the block has an unknown height.
func TestFirstBlock(t *testing.T) {
	for name, c := range map[string]struct {
		slot, block string
		want        rpc.FirstBlock
		calls       string // of two questions
	}{
		"pruned": {
			"700", `{"blockHeight":600,"blockTime":1700000000}`,
			rpc.FirstBlock{Slot: 700, Height: 600, Time: 1700000000},
			"getFirstAvailableBlock getBlock getFirstAvailableBlock",
		},
		"without a time": {
			"700", `{"blockHeight":600,"blockTime":null}`,
			rpc.FirstBlock{Slot: 700, Height: 600},
			"getFirstAvailableBlock getBlock getFirstAvailableBlock",
		},
		"the whole chain": {"0", `null`, rpc.FirstBlock{}, "getFirstAvailableBlock getFirstAvailableBlock"},
		"deleted meanwhile": {
			"700", `null`, rpc.FirstBlock{Slot: 700}, "getFirstAvailableBlock getBlock getFirstAvailableBlock getBlock",
		},
		"an old block without a height": {
			"700", `{"blockHeight":null,"blockTime":5}`, rpc.FirstBlock{Slot: 700}, "getFirstAvailableBlock getBlock getFirstAvailableBlock getBlock",
		},
		"a height above its slot": {
			"700", `{"blockHeight":701,"blockTime":5}`, rpc.FirstBlock{Slot: 700}, "getFirstAvailableBlock getBlock getFirstAvailableBlock getBlock",
		},
	} {
		n := newNode(t, answering(map[string]string{"getFirstAvailableBlock": c.slot, "getBlock": c.block}))
		client := newClient(t, options(n))
		for range 2 {
			views, err := client.FirstBlockFromEach(t.Context())
			if err != nil || len(views) != 1 || views[0].Err != nil || views[0].Upstream != "a" || views[0].First != c.want {
				t.Errorf("%s: %+v, %v", name, views, err)
			}
		}
		if got := methodsOf(n); got != c.calls {
			t.Errorf("%s: asked %s", name, got)
		}
	}
	down := newNode(t, status(http.StatusServiceUnavailable, "no"))
	if views, err := newClient(t, options(down)).FirstBlockFromEach(t.Context()); err != nil || rpc.KindOf(views[0].Err) != rpc.Down {
		t.Errorf("down: %+v, %v", views, err)
	}
}

// TestFirstBlockHas: what a node must still have to say that something is not on the chain.
func TestFirstBlockHas(t *testing.T) {
	const lastValid, life = 1000, 150
	for _, c := range []struct {
		first             rpc.FirstBlock
		life, since, slot bool // lives to 1000, since the time 5000, since slot 9000
	}{
		{rpc.FirstBlock{}, true, true, true},
		{rpc.FirstBlock{Slot: 1}, true, true, true},
		{rpc.FirstBlock{Slot: 9000, Height: 850, Time: 5000}, true, true, true},
		{rpc.FirstBlock{Slot: 9001, Height: 851, Time: 5001}, false, false, false},
		// Slots are skipped: only the height says which blocks there are.
		{rpc.FirstBlock{Slot: 849, Height: 0, Time: 0}, false, false, true},
		{rpc.FirstBlock{Slot: 1_000_000, Height: 700, Time: 4000}, true, true, false},
	} {
		if got := c.first.HasLife(lastValid, life); got != c.life {
			t.Errorf("%+v: life %t", c.first, got)
		}
		if got := c.first.HasSince(5000); got != c.since {
			t.Errorf("%+v: since %t", c.first, got)
		}
		if got := c.first.HasSlot(9000); got != c.slot {
			t.Errorf("%+v: slot %t", c.first, got)
		}
	}
	if young := (rpc.FirstBlock{Slot: 2, Height: 1}); young.HasLife(life-1, life) {
		t.Error("a last valid height below a life")
	}
}

// TestHistoryFirstBlock: the first block is read after the list that it belongs to.
func TestHistoryFirstBlock(t *testing.T) {
	answers := with(position(1000, 600), "getSignaturesForAddress", "[]")
	n := newNode(t, answering(answers))
	views := []rpc.NodeStatuses{{Upstream: "a", Finalized: rpc.Position{Slot: 1000}}}
	c := newClient(t, options(n))
	if h := c.SignaturesFromEach(t.Context(), solana.Address{9}, views, 10)[0]; h.Err != nil || h.First != (rpc.FirstBlock{Slot: 7, Height: 5, Time: 1700000000}) {
		t.Errorf("%+v", h)
	}
	if got := methodsOf(n); got != "getSignaturesForAddress getFirstAvailableBlock getBlock" {
		t.Errorf("asked %s", got)
	}
	n.respond(answering(with(answers, "getFirstAvailableBlock", "null")))
	if h := c.SignaturesFromEach(t.Context(), solana.Address{9}, views, 10)[0]; rpc.KindOf(h.Err) != rpc.WrongAnswer || h.List != nil {
		t.Errorf("without a first block: %+v", h)
	}
}
