// Package yardstick holds what the engine, the journal and the gateways are measured
// against: the least work that could do the same job, without anything that makes ours
// useful. Ladder is a bare order book that only matches; File is a preallocated file that
// is only written, with a checksum, and synced.
//
// It is not for use: it checks no input and has no limits but the sizes that it was made
// with. It must stay as fast as its author can make it, because a slow yardstick would
// flatter the engine.
package yardstick

import "math/bits"

// Ladder is a bare order book: price-time matching and nothing else. No risk,
// no self-trade prevention, no events, no owners, no expiry, no limits; prices
// must be 0 < price < its size. One array of levels serves both sides, a
// two-level bitmap finds the next one, orders of 32 bytes are linked by int32,
// freed slots are reused last-in first-out, and ids are found in a table by
// open addressing.
type Ladder struct {
	levels   []level
	bits     []uint64 // one a level with orders
	summary  []uint64 // one a word of bits
	orders   []order
	free     int32
	slots    []slot
	mask     uint64
	bid, ask int32 // best prices; ask = len(levels) when there is none
	Trades   uint64
	Traded   uint64
}

type level struct{ head, tail int32 }

type order struct {
	id         uint64
	qty        int64
	next, prev int32
	price      int32
	side       int32
}

type slot struct {
	id  uint64
	ref int32
}

// NewLadder returns an empty book for prices below prices (a power of two).
func NewLadder(prices, orders int) *Ladder {
	l := &Ladder{
		levels: make([]level, prices), bits: make([]uint64, prices/64), summary: make([]uint64, max(prices/4096, 1)),
		orders: make([]order, 1, orders+1), slots: make([]slot, 1<<bits.Len(uint(2*orders))), ask: int32(prices),
	}
	l.mask = uint64(len(l.slots) - 1)
	return l
}

func (l *Ladder) hash(id uint64) uint64 { return id * 0x9e3779b97f4a7c15 >> 20 & l.mask }

func (l *Ladder) find(id uint64) (uint64, int32) {
	i := l.hash(id)
	for l.slots[i].ref != 0 {
		if l.slots[i].id == id {
			return i, l.slots[i].ref
		}
		i = (i + 1) & l.mask
	}
	return i, 0
}

// Add matches and rests the remainder unless ioc. It reports whether the order
// rests.
func (l *Ladder) Add(id uint64, buy bool, price int32, qty int64, ioc bool) bool {
	if buy {
		for qty > 0 && l.ask <= price {
			qty = l.hit(l.ask, qty)
		}
	} else {
		for qty > 0 && l.bid >= price && l.bid > 0 {
			qty = l.hit(l.bid, qty)
		}
	}
	if qty == 0 || ioc {
		return false
	}
	ref := l.free
	if ref != 0 {
		l.free = l.orders[ref].next
	} else {
		ref = int32(len(l.orders))
		l.orders = append(l.orders, order{})
	}
	lv := &l.levels[price]
	o := &l.orders[ref]
	*o = order{id: id, qty: qty, price: price, prev: lv.tail}
	if lv.tail == 0 {
		lv.head = ref
		l.bits[price>>6] |= 1 << (price & 63)
		l.summary[price>>12] |= 1 << (price >> 6 & 63)
		if buy && price > l.bid {
			l.bid = price
		} else if !buy && price < l.ask {
			l.ask = price
		}
	} else {
		l.orders[lv.tail].next = ref
	}
	lv.tail = ref
	if buy {
		o.side = 1
	}
	i, _ := l.find(id)
	l.slots[i] = slot{id, ref}
	return true
}

// Cancel takes an order out and reports whether it rested.
func (l *Ladder) Cancel(id uint64) bool {
	i, ref := l.find(id)
	if ref == 0 {
		return false
	}
	l.drop(i)
	l.unlink(ref)
	return true
}

func (l *Ladder) hit(price int32, qty int64) int64 {
	for qty > 0 {
		ref := l.levels[price].head
		if ref == 0 {
			return qty
		}
		o := &l.orders[ref]
		n := min(qty, o.qty)
		qty -= n
		o.qty -= n
		l.Trades++
		l.Traded += uint64(n)
		if o.qty == 0 {
			i, _ := l.find(o.id)
			l.drop(i)
			l.unlink(ref)
			if l.levels[price].head == 0 {
				return qty
			}
		}
	}
	return qty
}

func (l *Ladder) unlink(ref int32) {
	o := &l.orders[ref]
	lv := &l.levels[o.price]
	if o.prev != 0 {
		l.orders[o.prev].next = o.next
	} else {
		lv.head = o.next
	}
	if o.next != 0 {
		l.orders[o.next].prev = o.prev
	} else {
		lv.tail = o.prev
	}
	price, buy := o.price, o.side == 1
	o.next = l.free
	l.free = ref
	if lv.head != 0 {
		return
	}
	if l.bits[price>>6] &^= 1 << (price & 63); l.bits[price>>6] == 0 {
		l.summary[price>>12] &^= 1 << (price >> 6 & 63)
	}
	if buy && price == l.bid {
		l.bid = l.below(price)
	} else if !buy && price == l.ask {
		l.ask = l.above(price)
	}
}

func (l *Ladder) above(price int32) int32 {
	w := price >> 6
	if rest := l.bits[w] &^ (1<<(price&63) - 1); rest != 0 {
		return w<<6 + int32(bits.TrailingZeros64(rest))
	}
	s := w >> 6
	rest := l.summary[s] &^ (2<<(w&63) - 1)
	for rest == 0 {
		if s++; int(s) == len(l.summary) {
			return int32(len(l.levels))
		}
		rest = l.summary[s]
	}
	w = s<<6 + int32(bits.TrailingZeros64(rest))
	return w<<6 + int32(bits.TrailingZeros64(l.bits[w]))
}

func (l *Ladder) below(price int32) int32 {
	w := price >> 6
	if rest := l.bits[w] & (1<<(price&63) - 1); rest != 0 {
		return w<<6 + 63 - int32(bits.LeadingZeros64(rest))
	}
	s := w >> 6
	rest := l.summary[s] & (1<<(w&63) - 1)
	for rest == 0 {
		if s--; s < 0 {
			return 0
		}
		rest = l.summary[s]
	}
	w = s<<6 + 63 - int32(bits.LeadingZeros64(rest))
	return w<<6 + 63 - int32(bits.LeadingZeros64(l.bits[w]))
}

// drop empties slot i and moves back the entries that probed past it.
func (l *Ladder) drop(i uint64) {
	for j := i; ; {
		j = (j + 1) & l.mask
		if l.slots[j].ref == 0 {
			break
		}
		if home := l.hash(l.slots[j].id); (j-home)&l.mask >= (j-i)&l.mask {
			l.slots[i] = l.slots[j]
			i = j
		}
	}
	l.slots[i] = slot{}
}

// Side reports whether a resting order buys; ok is false when it does not rest.
func (l *Ladder) Side(id uint64) (buy, ok bool) {
	_, ref := l.find(id)
	return ref != 0 && l.orders[ref].side == 1, ref != 0
}
