package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/internal/solana"
	"blockdesk/internal/solana/ledger"
	"blockdesk/internal/solana/rpc"
)

// fixedPages is a Node with one page function for each simulated node.
type fixedPages []func(page rpc.Page) ([]rpc.SignatureInfo, error)

func (n fixedPages) SignaturePageFromEach(_ context.Context, _ solana.Address, page rpc.Page, _ rpc.Commitment) (views []rpc.NodeSignatures, err error) {
	for i, answer := range n {
		list, err := answer(page)
		views = append(views, rpc.NodeSignatures{Upstream: fmt.Sprint(i), Err: err, List: list})
	}
	return views, nil
}

func (fixedPages) AccountsFromEach(context.Context, []solana.Address, rpc.Commitment, uint64) ([]rpc.NodeAccounts, error) {
	return nil, errors.ErrUnsupported
}

func (fixedPages) TransactionByMajority(context.Context, solana.Signature, rpc.Commitment) (*ledger.Confirmed, bool, error) {
	return nil, false, errors.ErrUnsupported
}

func (fixedPages) Health() []rpc.UpstreamHealth { return nil }

// pageOf returns a page of a history, as a node does.
func pageOf(history []rpc.SignatureInfo, page rpc.Page) []rpc.SignatureInfo {
	at := func(s solana.Signature) int {
		return slices.IndexFunc(history, func(i rpc.SignatureInfo) bool { return i.Signature == s })
	}
	if page.Before != (solana.Signature{}) {
		i := at(page.Before)
		if i < 0 {
			return nil
		}
		history = history[i+1:]
	}
	if i := at(page.Until); i >= 0 {
		history = history[:i]
	}
	return history[:min(len(history), page.Limit)]
}

// TestListsProperty: more than half of the nodes are honest, although each orders a slot
// in its own way, and some lag or have deleted the beginning; the others return anything.
// Page by page, a transaction of all honest nodes is listed once, from new to old, and
// one of no honest node never.
func TestListsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var truth []rpc.SignatureInfo // from old to new
		slot := uint64(100)
		for i := range rapid.IntRange(1, 40).Draw(t, "transactions") {
			slot += rapid.SampledFrom([]uint64{0, 0, 1, 5}).Draw(t, "slots")
			truth = append(truth, rpc.SignatureInfo{Signature: solana.Signature{1, byte(i)}, Slot: slot, BlockTime: int64(slot), Failed: i%5 == 0})
		}
		// Slots of half a page cannot be paged by slot.
		bySlot, largest := map[uint64]int{}, 0
		for _, s := range truth {
			bySlot[s.Slot]++
			largest = max(largest, bySlot[s.Slot])
		}
		slices.Reverse(truth)
		honest := rapid.IntRange(1, 4).Draw(t, "honest")
		var nodes fixedPages
		// All honest nodes have the slots from low on. If some lag, one liar may end a
		// page at the point that they do not know, until the next poll.
		low, lags := uint64(0), rapid.Bool().Draw(t, "nodes lag")
		for range honest {
			own := slices.Clone(truth)
			slices.SortStableFunc(own, func(a, b rpc.SignatureInfo) int {
				if a.Slot != b.Slot {
					return int(b.Slot) - int(a.Slot)
				}
				return rapid.IntRange(-1, 1).Draw(t, "order")
			})
			from, to := rapid.Uint64Range(90, 110).Draw(t, "first slot"), slot
			if lags {
				to -= rapid.Uint64Range(0, 9).Draw(t, "behind")
			}
			low = max(low, from)
			own = slices.DeleteFunc(own, func(s rpc.SignatureInfo) bool { return s.Slot < from || s.Slot > to })
			nodes = append(nodes, func(page rpc.Page) ([]rpc.SignatureInfo, error) { return pageOf(own, page), nil })
		}
		for range rapid.IntRange(0, honest-1).Draw(t, "liars") {
			nodes = append(nodes, func(page rpc.Page) ([]rpc.SignatureInfo, error) {
				if rapid.IntRange(0, 5).Draw(t, "silent") == 0 {
					return nil, errors.New("down")
				}
				list := slices.Clone(pageOf(truth, page))
				for i := range list {
					switch rapid.IntRange(0, 9).Draw(t, "lie") {
					case 0:
						list[i].Signature = solana.Signature{2, rapid.Byte().Draw(t, "invented")}
					case 1:
						list[i].Slot -= rapid.Uint64Range(0, 3).Draw(t, "slot")
					case 2:
						list[i].Failed = !list[i].Failed
					case 3:
						list[i].BlockTime = rapid.Int64().Draw(t, "time")
					}
				}
				from := rapid.IntRange(0, len(list)).Draw(t, "from")
				return list[from:rapid.IntRange(from, len(list)).Draw(t, "to")], nil
			})
		}
		l := listQuorum{node: rapid.Permutation(nodes).Draw(t, "order of the nodes")}
		page := rpc.Page{Limit: rapid.IntRange(2, 12).Draw(t, "limit")}
		seen, contested := map[solana.Signature]rpc.SignatureInfo{}, map[solana.Signature]bool{}
		for range 100 {
			got, err := l.List(t.Context(), solana.Address{}, page)
			if errors.Is(err, errContradicted) {
				return // too many of two nodes' differences: nothing is returned
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range got.Entries {
				if i > 0 && e.Slot > got.Entries[i-1].Slot {
					t.Fatalf("slots go up: %+v", got)
				}
				if e.Contested {
					contested[e.Signature] = true // it is read, and most tell whether it was
				} else {
					seen[e.Signature] = e.SignatureInfo
				}
			}
			n := len(got.Entries)
			if n == 0 {
				break
			}
			if page.Before = got.Entries[n-1].Signature; !got.More {
				break
			}
		}
		for _, s := range truth {
			published, ok := seen[s.Signature]
			delete(seen, s.Signature)
			if ok && (published.Slot != s.Slot || published.Failed != s.Failed || published.BlockTime != s.BlockTime && published.BlockTime != 0) {
				t.Errorf("published as %+v: %+v", published, s)
			}
			if !ok && !contested[s.Signature] && s.Slot >= low && !lags && page.Limit > 2*largest {
				t.Errorf("left out: %+v", s)
			}
		}
		for _, s := range seen {
			t.Errorf("invented: %+v", s)
		}
	})
}
