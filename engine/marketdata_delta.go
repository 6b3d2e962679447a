package engine

import "blockdesk/market"

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
