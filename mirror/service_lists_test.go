package mirror_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/internal/await"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/rpc"
	"blockdesk/market"
	"blockdesk/mirror"
)

// invented is a signature that no transaction has.
func invented(n uint64) (s solana.Signature) {
	s[63] = 1
	binary.LittleEndian.PutUint64(s[8:], n)
	return s
}

// lies are the ways in which a node changes a list. They do not modify the list.
func lies() map[string]func(page rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
	lieCount := uint64(0)
	return map[string]func(page rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo{
		"nothing": func(rpc.Page, []rpc.SignatureInfo) []rpc.SignatureInfo { return nil },
		"all but the newest": func(_ rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
			return list[min(1, len(list)):]
		},
		"every other one": func(_ rpc.Page, list []rpc.SignatureInfo) (out []rpc.SignatureInfo) {
			for i := 0; i < len(list); i += 2 {
				out = append(out, list[i])
			}
			return out
		},
		"all as failed": func(_ rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
			list = slices.Clone(list)
			for i := range list {
				list[i].Failed = !list[i].Failed
			}
			return list
		},
		"another time": func(_ rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
			list = slices.Clone(list)
			for i := range list {
				list[i].BlockTime -= 1000
			}
			return list
		},
		"another slot": func(_ rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
			list = slices.Clone(list)
			for i := range list {
				list[i].Slot--
			}
			return list
		},
		"slots backwards": func(_ rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
			list = slices.Clone(list)
			slices.Reverse(list)
			return list
		},
		"each twice": func(page rpc.Page, list []rpc.SignatureInfo) (out []rpc.SignatureInfo) {
			for i := range list {
				out = append(out, list[i], list[i])
			}
			return out[:min(len(out), page.Limit)]
		},
		"more in between": func(page rpc.Page, list []rpc.SignatureInfo) (out []rpc.SignatureInfo) {
			for i := range list {
				more := list[i]
				lieCount++
				more.Signature = invented(lieCount)
				out = append(out, more, list[i])
			}
			return out[:min(len(out), page.Limit)]
		},
		"a page of nothing else": func(page rpc.Page, list []rpc.SignatureInfo) (out []rpc.SignatureInfo) {
			for range page.Limit {
				lieCount++
				out = append(out, rpc.SignatureInfo{Signature: invented(lieCount), Slot: page.MinSlot, BlockTime: epoch})
			}
			return out
		},
		"the far future": func(page rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
			lieCount++
			return append([]rpc.SignatureInfo{{Signature: invented(lieCount), Slot: page.MinSlot + 1_000_000}}, list...)
		},
		"a bit of future": func(page rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
			lieCount++
			return append([]rpc.SignatureInfo{{Signature: invented(lieCount), Slot: page.MinSlot + 1000}}, list...)
		},
	}
}

// TestServiceListsOfThree: whatever one of three nodes lists, all swaps are published
// once, in order and without delay, and the windows are proven.
func TestServiceListsOfThree(t *testing.T) {
	for name, lie := range lies() {
		for liar := range 3 {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, 3)
					r.chain.alterList = func(node int, page rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
						if node == liar {
							return lie(page, list)
						}
						return list
					}
					for range 5 {
						await.VirtualSleep(t, time.Minute)
						r.chain.act(buys(10, 30))
						r.chain.act(func(s *scene) { s.sell(1, 7, 20) })
						r.chain.act(func(s *scene) { s.buy(1, 1, 1).c.Failed = true })
					}
					r.start()
					r.after(2 * cycle)
					for i := range 6 {
						r.chain.act(buys(10, 31+market.Amount(i)))
						s := r.after(2 * cycle)
						if w := &s.Pairs[0].Swaps; w.Rolling.Day.Status != mirror.Exact || w.Rolling.Day.Swaps != 10+i+1 || w.Rolling.Totals.Doubts != 0 {
							t.Fatalf("liar %d, round %d: %+v, %v", liar, i, w.Rolling, s.Pairs[0].Err)
						}
					}
					r.stop()
					r.sameTrades(name)
				})
			})
		}
	}
}

// TestServiceListsOfTwo: two contradicting nodes make no majority. A few differences
// delay the history and leave it uncertain; once both agree again, all swaps were
// published once and in order.
func TestServiceListsOfTwo(t *testing.T) {
	for name, lie := range lies() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2)
				for range 5 {
					await.VirtualSleep(t, time.Minute)
					r.chain.act(buys(10, 30))
				}
				r.start()
				r.after(2 * cycle)
				r.chain.mu.Lock()
				r.chain.alterList = func(node int, page rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
					if node == 0 {
						return lie(page, list)
					}
					return list
				}
				r.chain.mu.Unlock()
				for i := range 30 {
					r.chain.act(buys(10, 31+market.Amount(i)))
					s := r.after(2 * cycle)
					w := &s.Pairs[0].Swaps.Rolling
					if w.Day.Status == mirror.Exact && w.Day.Swaps < 5+i-5 {
						t.Errorf("%d of %d swaps are shown as all", w.Day.Swaps, 5+i+1)
					}
				}
				r.chain.mu.Lock()
				r.chain.alterList = nil
				r.chain.mu.Unlock()
				r.chain.act(buys(3, 5))
				s := r.after(5 * time.Minute)
				r.stop()
				r.sameTrades(name)
				if s.Reasons != 0 {
					t.Errorf("%q: %v", s.Reasons.Words(), s.Pairs[0].Err)
				}
			})
		})
	}
}

// bySignature sorts each slot's transactions by signature, as old nodes do.
func bySignature(list []rpc.SignatureInfo) []rpc.SignatureInfo {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b rpc.SignatureInfo) int {
		if a.Slot != b.Slot {
			return cmp.Compare(b.Slot, a.Slot)
		}
		return bytes.Compare(a.Signature[:], b.Signature[:])
	})
	return list
}

// TestServiceListsOrders: nodes that order the transactions of a slot differently and
// answer alternately, over more than a page and through restarts, lose and repeat none.
func TestServiceListsOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		round := 0
		r.chain.alterList = func(node int, _ rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
			if round%3 != 0 || node == 1 {
				// In round 0 only the first node answers, otherwise only the second.
				return bySignature(list)
			}
			return list
		}
		acts := 0
		act := func(n int) {
			for range n {
				r.chain.act(func(s *scene) { s.transfer(1, keyUserBase, keyBaseVault, 100) })
				r.chain.act(buys(10, 30+market.Amount(acts%50)))
				r.chain.act(func(s *scene) { s.sell(1, 10, 20) })
				acts++
				await.VirtualSleep(t, time.Second)
			}
		}
		act(400)
		for round = range 6 {
			r.start()
			r.after(2 * cycle)
			act(5)
			r.after(cycle)
			r.stop()
			r.kv = r.kv.crash(round)
		}
		r.start()
		s := r.after(3 * cycle)
		r.stop()
		if w := &s.Pairs[0].Swaps; w.Rolling.Totals.Swaps != uint64(2*acts) || w.Numbered != uint64(2*acts) || len(r.engine.trades) != 2*acts || r.engine.refused != 0 {
			t.Errorf("%d swaps made: %d counted, %d numbered, %d published, %d refused", 2*acts, w.Rolling.Totals.Swaps, w.Numbered, len(r.engine.trades), r.engine.refused)
		}
		published := map[mirror.Trade]int{}
		for _, trade := range r.wanted() {
			trade.Ordinal = 0
			published[trade]++
		}
		for _, trade := range r.engine.trades {
			trade.Ordinal = 0
			published[trade]--
		}
		for trade, n := range published {
			if n != 0 {
				t.Errorf("%+v: %d", trade, n)
			}
		}
	})
}

// TestServiceListsRepeated: a single node that lists transactions twice is refused, and
// none counts twice.
func TestServiceListsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.start()
		r.after(2 * cycle)
		r.chain.mu.Lock()
		r.chain.alterList = func(_ int, _ rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
			if len(list) > 2 {
				list = append([]rpc.SignatureInfo{list[1]}, list...) // of one slot all
			}
			return list
		}
		r.chain.mu.Unlock()
		for range 3 {
			r.chain.act(buys(10, 30))
		}
		if s := r.after(2 * time.Minute); !s.Reasons.Has(mirror.HistoryBehind) || s.Pairs[0].Swaps.Numbered != 0 {
			t.Errorf("%q %+v", s.Reasons.Words(), s.Pairs[0].Swaps)
		}
		r.chain.mu.Lock()
		r.chain.alterList = nil
		r.chain.mu.Unlock()
		s := r.after(2 * cycle)
		r.stop()
		r.sameTrades("at last")
		if s.Reasons != 0 {
			t.Errorf("%q", s.Reasons.Words())
		}
	})
}

// TestServiceOldMissing: an old transaction that no node has does not stop the reading of
// the past while new ones arrive.
func TestServiceOldMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		for range 5 {
			await.VirtualSleep(t, time.Minute)
			r.chain.act(buys(10, 30))
		}
		r.chain.past.lost = r.chain.past.list[2].Signature()
		r.start()
		for range 20 {
			r.chain.act(buys(1, 3))
			r.after(cycle)
		}
		s := r.after(cycle)
		r.stop()
		if w := &s.Pairs[0].Swaps; !w.Rolling.Totals.Complete || w.Rolling.Totals.Swaps != 24 || w.Rolling.Day.Status != mirror.Uncertain || w.Numbered != 24 {
			t.Errorf("%+v", w)
		}
	})
}

// TestServiceBelievesNoEnd: a node that sometimes returns an empty past loses no swap;
// one that always does has deleted it.
func TestServiceBelievesNoEnd(t *testing.T) {
	for _, c := range []struct{ empty, published int }{{7, 7}, {8, 3}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 1)
			for range 6 {
				await.VirtualSleep(t, time.Minute)
				r.chain.act(buys(10, 30))
			}
			asked := 0
			r.chain.alterList = func(_ int, page rpc.Page, list []rpc.SignatureInfo) []rpc.SignatureInfo {
				if page.Before == (solana.Signature{}) {
					return list[:min(len(list), 2)]
				}
				if asked++; asked <= c.empty {
					return nil
				}
				return list
			}
			r.start()
			r.after(12 * cycle)
			r.chain.act(buys(1, 3))
			s := r.after(2 * cycle)
			r.stop()
			if w := &s.Pairs[0].Swaps.Rolling; len(r.engine.trades) != c.published || w.Totals.Swaps != 7 || !w.Totals.Complete {
				t.Errorf("empty %d times: %d published, want %d: %+v", c.empty, len(r.engine.trades), c.published, w)
			}
		})
	}
}
