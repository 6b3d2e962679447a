package orders

import "blockdesk/market"

// Action says what a Change does.
type Action uint8

const (
	New    Action = iota // at the back of its price's queue
	Update               // of the quantity; the order keeps its place
	Delete
)

// Change is a change of one order.
type Change struct {
	Order  // of a Delete: as it was
	Action Action
}

// AppendChanges appends the changes that turn one side of a book into another, for a client
// that applies them in their order and finds orders by their ids. Deletions come first, because
// an order that has lost its place is deleted and comes again.
func AppendChanges(dst []Change, side market.Side, prev, next []Order) []Change {
	head := commonHead(prev, next)
	dst = walk(dst, side, prev[head:], next[head:], true)
	return walk(dst, side, prev[head:], next[head:], false)
}

func commonHead(a, b []Order) int {
	n, limit := 0, min(len(a), len(b))
	for n < limit && a[n] == b[n] {
		n++
	}
	return n
}

// walk appends the deletions, or the other changes.
func walk(dst []Change, side market.Side, prev, next []Order, deletions bool) []Change {
	for len(prev) > 0 || len(next) > 0 {
		var p, n []Order
		p, n, prev, next = cutLevel(side, prev, next)
		for len(n) > 0 {
			i := find(p, n[0].ID)
			if i < 0 {
				break // it is at the back, and so is all that follows
			}
			if deletions {
				dst = appendAll(dst, p[:i], Delete)
			} else if p[i].Qty != n[0].Qty {
				dst = append(dst, Change{n[0], Update})
			}
			p, n = p[i+1:], n[1:]
		}
		if deletions {
			dst = appendAll(dst, p, Delete)
		} else {
			dst = appendAll(dst, n, New)
		}
	}
	return dst
}

// cutLevel cuts the orders of the best price off both sides.
func cutLevel(side market.Side, prev, next []Order) (p, n, prevRest, nextRest []Order) {
	var price market.Price
	switch {
	case len(prev) == 0:
		price = next[0].Price
	case len(next) == 0 || (prev[0].Price > next[0].Price) == (side == market.Buy):
		price = prev[0].Price
	default:
		price = next[0].Price
	}
	i, j := 0, 0
	for i < len(prev) && prev[i].Price == price {
		i++
	}
	for j < len(next) && next[j].Price == price {
		j++
	}
	return prev[:i], next[:j], prev[i:], next[j:]
}

func find(list []Order, id market.OrderID) int {
	for i := range list {
		if list[i].ID == id {
			return i
		}
	}
	return -1
}

func appendAll(dst []Change, list []Order, a Action) []Change {
	for _, o := range list {
		dst = append(dst, Change{o, a})
	}
	return dst
}

// TopLevels returns the orders of the n best prices.
func TopLevels(list []Order, n int) []Order {
	for i := range list {
		if i == 0 || list[i].Price != list[i-1].Price {
			if n--; n < 0 {
				return list[:i]
			}
		}
	}
	return list
}
