package ladder

import (
	"math/bits"
	"unsafe"

	"blockdesk/market"
)

// level is one price: its queue and its sums. Levels 0..window-1 are the ring of the
// window; the others are a slab for far prices, stop triggers and expiry buckets, which use
// only some fields.
type level struct {
	shown, hidden market.Qty // sums over the queue
	price         market.Price
	head, tail    int32 // head 0: empty; a free one links the next by tail
}

var _ [32]byte = [unsafe.Sizeof(level{})]byte{}

const (
	// windowBits is the size of the window: 16,384 prices, 512 KiB, of which only used
	// levels are touched.
	windowBits = 14
	window     = 1 << windowBits
	ringMask   = window - 1
	words      = window / 64
	summaries  = words / 64
)

// noBest is the best key of an empty side: below every key, and too low for any order to reach.
const noBest = -1 << 62

// bitmap marks the used levels of the window, by ring position, in two layers.
type bitmap struct {
	summary [summaries]uint64 // bit w: word w is not 0
	word    [words]uint64
	count   int
}

func (m *bitmap) set(i int) {
	m.word[i>>6&(words-1)] |= 1 << (uint(i) & 63)
	m.summary[i>>12&(summaries-1)] |= 1 << (uint(i) >> 6 & 63)
	m.count++
}

func (m *bitmap) clear(i int) {
	w := i >> 6 & (words - 1)
	m.word[w] &^= 1 << (uint(i) & 63)
	if m.word[w] == 0 {
		m.summary[w>>6&(summaries-1)] &^= 1 << (uint(w) & 63)
	}
	m.count--
}

// up returns the number of steps from position i upwards, with wrap-around, to the first
// used level; 0 if i is used. At least one level must be used.
func (m *bitmap) up(i int) int {
	w := i >> 6 & (words - 1)
	if x := m.word[w] >> (uint(i) & 63); x != 0 {
		return bits.TrailingZeros64(x)
	}
	v := m.nextWord((w + 1) & (words - 1))
	return ((v<<6 + bits.TrailingZeros64(m.word[v])) - i) & ringMask
}

// nextWord returns the first nonzero word at or above w, with wrap-around.
func (m *bitmap) nextWord(w int) int {
	s := w >> 6 & (summaries - 1)
	x := m.summary[s] >> (uint(w) & 63) << (uint(w) & 63)
	for x == 0 {
		s = (s + 1) & (summaries - 1)
		x = m.summary[s]
	}
	return (s<<6 + bits.TrailingZeros64(x)) & (words - 1)
}

// down is up in the other direction.
func (m *bitmap) down(i int) int {
	w := i >> 6 & (words - 1)
	if x := m.word[w] << (63 - uint(i)&63); x != 0 {
		return bits.LeadingZeros64(x)
	}
	v := m.previousWord((w - 1) & (words - 1))
	return (i - (v<<6 + 63 - bits.LeadingZeros64(m.word[v]))) & ringMask
}

func (m *bitmap) previousWord(w int) int {
	s := w >> 6 & (summaries - 1)
	x := m.summary[s] << (63 - uint(w)&63) >> (63 - uint(w)&63)
	for x == 0 {
		s = (s - 1) & (summaries - 1)
		x = m.summary[s]
	}
	return (s<<6 + 63 - bits.LeadingZeros64(x)) & (words - 1)
}

// near reports whether p lies in the window; its level is then int(p) & ringMask.
func (b *Book) near(p market.Price) bool { return uint64(int64(p)-b.base) < window }

// levelAt returns the level of p, or none if p is far and has no orders.
func (b *Book) levelAt(p market.Price) int32 {
	if b.near(p) {
		return int32(p & ringMask)
	}
	b.misses++
	return b.far.find(int64(p))
}

// levelFor returns the level of p for an order of side s to join. The caller must call
// opened if the level was empty. levelFor may slide the window and grow b.levels.
func (b *Book) levelFor(p market.Price, s market.Side) int32 {
	if b.near(p) {
		return int32(p & ringMask)
	}
	return b.farLevelFor(p, s)
}

// opened records that the level li of price p has its first order.
func (b *Book) opened(li int32, p market.Price) {
	b.levels[li].price = p
	if li < window {
		b.used.set(int(li))
	}
}

func (b *Book) farLevelFor(p market.Price, s market.Side) int32 {
	b.misses++
	if b.slideToBest(p, s) {
		return b.levelFor(p, s)
	}
	li := b.far.find(int64(p))
	if li == none {
		li = b.newLevel()
		b.far.insert(int64(p), li)
	}
	return li
}

// slideToBest moves the window to the best price of side s if that price is outside and
// orders near it are busy. A move touches up to one window of levels, so it waits until as
// many operations have paid for a far look-up: a market that jumps back and forth costs at
// most a constant factor more than one that stays outside.
func (b *Book) slideToBest(p market.Price, s market.Side) bool {
	touch := p
	if key := b.best[s&3]; key > sign(s)*int64(p) {
		touch = market.Price(key * sign(s))
	}
	if d := int64(p - touch); d > window/2-1 || d < -window/2 || b.near(touch) || b.misses <= b.used.count {
		return false
	}
	b.slide(int64(touch) - window/2)
	return true
}

// slide moves the window to [base, base+window): levels that leave it go to the far tree,
// far levels that it now covers come in. A price keeps its ring position and orders do not
// name their level, so nothing else moves.
func (b *Book) slide(base int64) {
	old := b.base
	b.base, b.misses = base, 0
	for left, i := b.used.count, int(old&ringMask); left > 0; left-- {
		i = (i + b.used.up(i)) & ringMask
		if p := b.levels[i].price; !b.near(p) {
			li := b.newLevel()
			b.levels[li] = b.levels[i]
			b.levels[i] = level{}
			b.used.clear(i)
			b.far.insert(int64(p), li)
		}
		i = (i + 1) & ringMask
	}
	for {
		p, li := b.far.ceil(base)
		if li == none || p >= base+window {
			return
		}
		i := p & ringMask
		b.levels[i] = b.levels[li]
		b.used.set(int(i))
		b.far.remove(p)
		b.freeLevel(li)
	}
}

// newLevel returns an empty level outside the window. It may grow b.levels.
func (b *Book) newLevel() int32 {
	if li := b.freeLevels; li != 0 {
		b.freeLevels = b.levels[li].tail
		b.levels[li] = level{}
		return li
	}
	b.levels = append(b.levels, level{})
	return int32(len(b.levels) - 1)
}

func (b *Book) freeLevel(li int32) {
	b.levels[li] = level{tail: b.freeLevels}
	b.freeLevels = li
}

// emptied records that the level li of side s has no orders left.
func (b *Book) emptied(li int32, s market.Side) {
	p := b.levels[li].price
	if li < window {
		b.used.clear(int(li))
	} else {
		b.far.remove(int64(p))
		b.freeLevel(li)
	}
	if b.best[s&3] == sign(s)*int64(p) {
		b.best[s&3] = b.after(p, s)
	}
}

// after returns the key of the best level of side s behind price p, or noBest. p must be
// the best price of s or behind it, so that everything behind p is of side s.
func (b *Book) after(p market.Price, s market.Side) int64 {
	if s == market.Buy {
		return b.below(int64(p))
	}
	return -b.above(int64(p))
}

func (b *Book) below(p int64) int64 {
	best := int64(noBest)
	if top := min(p, b.base+window) - 1; top >= b.base && b.used.count > 0 {
		if q := top - int64(b.used.down(int(top&ringMask))); q >= b.base {
			best = q
		}
	}
	if b.far.size > 0 {
		if q, li := b.far.floor(p - 1); li != none {
			best = max(best, q)
		}
	}
	return best
}

func (b *Book) above(p int64) int64 {
	best := int64(-noBest)
	if low := max(p+1, b.base); low < b.base+window && b.used.count > 0 {
		if q := low + int64(b.used.up(int(low&ringMask))); q < b.base+window {
			best = q
		}
	}
	if b.far.size > 0 {
		if q, li := b.far.ceil(p + 1); li != none {
			best = min(best, q)
		}
	}
	return best
}

// append adds slot to the tail of level li.
func (b *Book) append(li, slot int32) {
	lv := &b.levels[li]
	b.orders[slot].prev, b.orders[slot].next = lv.tail, 0
	if lv.tail == 0 {
		lv.head = slot
	} else {
		b.orders[lv.tail].next = slot
	}
	lv.tail = slot
}

// unlink removes slot from the queue of level li.
func (b *Book) unlink(li, slot int32) {
	lv, x := &b.levels[li], &b.orders[slot]
	if x.prev == 0 {
		lv.head = x.next
	} else {
		b.orders[x.prev].next = x.next
	}
	if x.next == 0 {
		lv.tail = x.prev
	} else {
		b.orders[x.next].prev = x.prev
	}
}
