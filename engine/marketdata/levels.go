package marketdata

import (
	"slices"

	"blockdesk/market"
)

const (
	// levelPage is the most levels of a page, 2 KB.
	levelPage = 128
	// freePages is the most empty pages kept for reuse.
	freePages = 64
)

// level is one displayed price. Keys rise towards the best price: the price itself for bids,
// its negative for asks.
type level struct {
	key int64
	qty int64
}

// levels is one side of a displayed book: sorted pages of sorted levels. The best level is at
// the end of the last page, where most changes happen and moving levels is cheapest. A change
// far from the best moves one page, never the whole side.
type levels struct {
	pages [][]level // none empty; capacity levelPage each
	spare [][]level
}

// add changes the quantity at key by delta, inserting or removing the level as needed. rank is
// the number of better levels, exact below MaxDepth. ok is false, and nothing changes, if the
// quantity would be negative.
func (s *levels) add(key, delta int64) (rank int, ok bool) {
	p := s.page(key)
	if p < 0 {
		if delta < 0 {
			return 0, false
		}
		s.pages = append(s.pages, append(s.newPage(), level{key, delta}))
		return 0, true
	}
	page := s.pages[p]
	i, found := position(page, key)
	rank = len(page) - i
	for q := p + 1; q < len(s.pages) && rank <= MaxDepth; q++ {
		rank += len(s.pages[q])
	}
	if !found {
		if delta < 0 {
			return rank, false
		}
		s.insert(p, i, level{key, delta})
		return rank, true
	}
	rank--
	l := &page[i]
	if l.qty+delta < 0 {
		return rank, false
	}
	l.qty += delta
	if l.qty == 0 {
		s.remove(p, i)
	}
	return rank, true
}

// page returns the index of the page for key: the last page that does not begin above it, or
// the first; -1 without pages.
func (s *levels) page(key int64) int {
	last := len(s.pages) - 1
	if last <= 0 || s.pages[last][0].key <= key {
		return last
	}
	lo, hi := 0, last // the first page above key is in lo..hi
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if s.pages[mid][0].key > key {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return max(lo-1, 0)
}

// position returns the index of key, or where to insert it. It searches the end first, where
// most keys are.
func position(page []level, key int64) (i int, found bool) {
	const near = 8
	hi := len(page)
	for n := 0; n < near; n++ {
		if hi == 0 || page[hi-1].key < key {
			return hi, false
		}
		hi--
		if page[hi].key == key {
			return hi, true
		}
	}
	lo := 0
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if page[mid].key < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(page) && page[lo].key == key
}

func (s *levels) insert(p, i int, l level) {
	page := s.pages[p]
	if len(page) == levelPage {
		const half = levelPage / 2
		upper := append(s.newPage(), page[half:]...)
		page = page[:half]
		s.pages[p] = page
		s.pages = slices.Insert(s.pages, p+1, upper)
		if i > half {
			p, i, page = p+1, i-half, upper
		}
	}
	page = append(page, level{})
	copy(page[i+1:], page[i:])
	page[i] = l
	s.pages[p] = page
}

func (s *levels) remove(p, i int) {
	page := s.pages[p]
	copy(page[i:], page[i+1:])
	page = page[:len(page)-1]
	s.pages[p] = page
	if len(page) > 0 {
		return
	}
	if len(s.spare) < freePages {
		s.spare = append(s.spare, page)
	}
	s.pages = slices.Delete(s.pages, p, p+1)
}

func (s *levels) newPage() []level {
	if n := len(s.spare); n > 0 {
		page := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return page
	}
	return make([]level, 0, levelPage)
}

// top appends the n best levels to dst, best first. sign is +1 for bids, -1 for asks.
func (s *levels) top(dst []market.Level, n int, sign market.Price) []market.Level {
	for p := len(s.pages) - 1; p >= 0; p-- {
		page := s.pages[p]
		for i := len(page) - 1; i >= 0; i-- {
			if len(dst) == n {
				return dst
			}
			dst = append(dst, market.Level{Price: sign * market.Price(page[i].key), Qty: market.Qty(page[i].qty)})
		}
	}
	return dst
}

// len returns the number of levels.
func (s *levels) len() int {
	n := 0
	for _, page := range s.pages {
		n += len(page)
	}
	return n
}

// LevelChange is a price and its new displayed quantity; 0 = the level is removed or no longer
// within the depth.
type LevelChange struct {
	Price market.Price
	Qty   market.Qty
}

// AppendDepthDelta appends the changes that turn the depth best levels of prev into those of
// next, best price first, each price once. Both are one side of a view: best first, prices
// distinct. It allocates only if dst is full.
func AppendDepthDelta(dst []LevelChange, prev, next []market.Level, depth int) []LevelChange {
	prev, next = prev[:min(depth, len(prev))], next[:min(depth, len(next))]
	rising := rises(prev) || rises(next)
	for len(prev) > 0 && len(next) > 0 {
		p, n := prev[0], next[0]
		switch {
		case p.Price == n.Price:
			if p.Qty != n.Qty {
				dst = append(dst, LevelChange(n))
			}
			prev, next = prev[1:], next[1:]
		case (p.Price < n.Price) == rising: // p is better, and removed
			dst = append(dst, LevelChange{Price: p.Price})
			prev = prev[1:]
		default:
			dst = append(dst, LevelChange(n))
			next = next[1:]
		}
	}
	for _, p := range prev {
		dst = append(dst, LevelChange{Price: p.Price})
	}
	for _, n := range next {
		dst = append(dst, LevelChange(n))
	}
	return dst
}

// rises reports whether prices rise away from the best, as asks do. With one level on each
// side it may be wrong, which only changes the order of two changes.
func rises(levels []market.Level) bool {
	return len(levels) > 1 && levels[0].Price < levels[1].Price
}
