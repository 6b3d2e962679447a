package feed

import (
	"testing"

	"pgregory.net/rapid"

	"blockdesk/market"
)

// After any change of a side, its text equals a new formatting.
func TestStripAgainstFormatting(t *testing.T) {
	in := &instruments()[2]
	rapid.Check(t, func(t *rapid.T) {
		sign := rapid.SampledFrom([]market.Price{-1, 1}).Draw(t, "sign")
		f := rapid.SampledFrom([]levelFormat{pairFormat, digitFormat}).Draw(t, "form")
		var s sideText
		book := map[market.Price]market.Qty{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			for range rapid.IntRange(0, 4).Draw(t, "levels") {
				p := market.Price(rapid.IntRange(1, 40).Draw(t, "price"))
				if q := market.Qty(rapid.IntRange(0, 3).Draw(t, "qty")); q > 0 {
					book[p] = q
				} else {
					delete(book, p)
				}
			}
			var levels []market.Level
			for i := range 40 {
				p := market.Price(i + 1)
				if sign < 0 {
					p = market.Price(40 - i)
				}
				if book[p] > 0 && len(levels) < 25 {
					levels = append(levels, market.Level{Price: p, Qty: book[p]})
				}
			}
			s.set(in, levels, sign, f)
			var want []byte
			for i, l := range levels {
				want = appendLevel(want, in, l, f)
				if got := s.firstLevels(i + 1); string(got) != string(want) {
					t.Fatalf("%v:\n got %s\nwant %s", levels, got, want)
				}
			}
			if string(s.firstLevels(100)) != string(want) {
				t.Fatalf("%v: %s", levels, s.firstLevels(100))
			}
		}
	})
}
