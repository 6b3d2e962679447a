package marketdata

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"blockdesk/market"
)

// TestLevels compares a paged side with a sorted map.
func TestLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s levels
		model := map[int64]int64{}
		span := rapid.SampledFrom([]int64{3, 50, 400, 5_000}).Draw(t, "span")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range rapid.IntRange(1, 3_000).Draw(t, "steps") {
			key := rng.Int64N(2*span) - span
			delta := rng.Int64N(9) - 4
			if delta == 0 {
				continue
			}
			if rng.IntN(4) == 0 && model[key] > 0 {
				delta = -model[key]
			}
			better := 0
			for k := range model {
				if k > key {
					better++
				}
			}
			rank, ok := s.add(key, delta)
			if want := model[key]+delta >= 0; ok != want {
				t.Fatalf("add(%d, %d) on %d: %v", key, delta, model[key], ok)
			}
			if rank != better && (rank < MaxDepth || better < MaxDepth) {
				t.Fatalf("rank %d, want %d", rank, better)
			}
			if !ok {
				continue
			}
			if model[key] += delta; model[key] == 0 {
				delete(model, key)
			}
		}
		checkModel(t, &s, model)
	})
}

func checkModel(t *rapid.T, s *levels, model map[int64]int64) {
	keys := make([]int64, 0, len(model))
	for k := range model {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] > keys[j] })
	top := s.top(nil, len(keys)+1, 1)
	if len(top) != len(keys) || s.len() != len(keys) {
		t.Fatalf("%d levels, len says %d, want %d", len(top), s.len(), len(keys))
	}
	for i, k := range keys {
		if int64(top[i].Price) != k || int64(top[i].Qty) != model[k] {
			t.Fatalf("level %d is %v, want %d × %d", i, top[i], model[k], k)
		}
	}
	for i, page := range s.pages {
		if len(page) == 0 || cap(page) != levelPage {
			t.Fatalf("page %d has %d of %d levels", i, len(page), cap(page))
		}
	}
	if len(s.spare) > freePages {
		t.Fatalf("%d spare pages, at most %d", len(s.spare), freePages)
	}
}

// TestDepthDelta: the changes turn the top of the old side into that of the new one.
func TestDepthDelta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sign := rapid.SampledFrom([]int{1, -1}).Draw(t, "sign")
		side := func(name string) []market.Level {
			qty := rapid.MapOf(rapid.IntRange(1, 30), rapid.IntRange(1, 3)).Draw(t, name)
			var levels []market.Level
			for p, q := range qty {
				levels = append(levels, market.Level{Price: market.Price(p), Qty: market.Qty(q)})
			}
			slices.SortFunc(levels, func(a, b market.Level) int { return sign * int(a.Price-b.Price) })
			return levels
		}
		prev, next := side("prev"), side("next")
		depth := rapid.IntRange(0, 32).Draw(t, "depth")
		got := map[market.Price]market.Qty{}
		for _, l := range prev[:min(depth, len(prev))] {
			got[l.Price] = l.Qty
		}
		seen := map[market.Price]bool{}
		for _, c := range AppendDepthDelta(nil, prev, next, depth) {
			if seen[c.Price] {
				t.Fatalf("price %d twice", c.Price)
			}
			if old, there := got[c.Price]; c.Qty == old && there || c.Qty == 0 && !there {
				t.Fatalf("change %v changes nothing", c)
			}
			seen[c.Price] = true
			if got[c.Price] = c.Qty; c.Qty == 0 {
				delete(got, c.Price)
			}
		}
		want := next[:min(depth, len(next))]
		if len(got) != len(want) {
			t.Fatalf("%v, want %v", got, want)
		}
		for _, l := range want {
			if got[l.Price] != l.Qty {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
}

// BenchmarkDeepBook adds and removes the worst of a hundred thousand levels,
// where moving a sorted slice would cost most.
func BenchmarkDeepBook(b *testing.B) {
	var s levels
	for i := range int64(100_000) {
		s.add(2*i, 1)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		key := int64(i%1000)*2 + 1
		s.add(key, 1)
		s.add(key, -1)
	}
}
