package ladder

import (
	"math/bits"
	"unsafe"

	"blockdesk/market"
)

// level is one price: its queue and its sums. Far prices, stop triggers and expiry buckets
// use only some of the fields.
type level struct {
	shown, hidden market.Qty // sums over the queue
	price         market.Price
	head, tail    int32 // head 0: empty; a free one links the next by tail
}

var _ [32]byte = [unsafe.Sizeof(level{})]byte{}

const (
	// A page is the levels of 64 consecutive prices, 2 KiB.
	pageBits   = 6
	pagePrices = 1 << pageBits
	pageMask   = pagePrices - 1
	// windowBits is the size of the window: 262,144 prices. Only pages with a used level
	// have memory.
	windowBits  = 18
	window      = 1 << windowBits
	ringMask    = window - 1
	windowPages = window / pagePrices
	summaries   = windowPages / 64
)

// noBest is the best key of an empty side: below every key, and too low for any order to reach.
const noBest = -1 << 62

// pageTable finds the levels of the window. A position is a price & ringMask; a page has
// the number position >> pageBits.
type pageTable struct {
	// first is a page's first level; 0 if no level of the page is used. The levels of
	// page 0 of the slab are always empty, so that reading needs no test.
	first [windowPages]int32
	// used marks the used levels of a page, by its first level >> pageBits.
	used    []uint64
	summary [summaries]uint64 // bit n & 63 of n >> 6: page n has a used level
	top     uint64            // bit s: summary[s] is not 0
	count   int               // used levels
}

// at returns the level of a position. If it is not used, it may be one of page 0.
func (t *pageTable) at(p market.Price) int32 {
	return t.first[p>>pageBits&(windowPages-1)] | int32(p&pageMask)
}

// add enters a page without used levels.
func (t *pageTable) add(n int, first int32) {
	n &= windowPages - 1
	t.first[n] = first
	t.summary[n>>6] |= 1 << (uint(n) & 63)
	t.top |= 1 << (uint(n) >> 6)
}

// remove removes a page without used levels.
func (t *pageTable) remove(n int) {
	n &= windowPages - 1
	t.first[n] = 0
	if t.summary[n>>6] &^= 1 << (uint(n) & 63); t.summary[n>>6] == 0 {
		t.top &^= 1 << (uint(n) >> 6)
	}
}

// up returns the number of steps from position i upwards, with wrap-around, to the first
// used level; 0 if i is used. At least one level must be used.
func (t *pageTable) up(i int) int {
	n := i >> pageBits & (windowPages - 1)
	if x := t.usedOf(n) >> (uint(i) & 63); x != 0 {
		return bits.TrailingZeros64(x)
	}
	n = t.nextPage((n + 1) & (windowPages - 1))
	return (n<<pageBits + bits.TrailingZeros64(t.usedOf(n)) - i) & ringMask
}

func (t *pageTable) usedOf(n int) uint64 { return t.used[t.first[n]>>pageBits] }

// nextPage returns the first page with a used level at or above n, with wrap-around.
func (t *pageTable) nextPage(n int) int {
	s := n >> 6 & (summaries - 1)
	x := t.summary[s] >> (uint(n) & 63) << (uint(n) & 63)
	if x == 0 {
		above := t.top >> uint(s) >> 1 << 1 << uint(s)
		if above == 0 {
			above = t.top
		}
		s = bits.TrailingZeros64(above) & (summaries - 1)
		x = t.summary[s]
	}
	return (s<<6 + bits.TrailingZeros64(x)) & (windowPages - 1)
}

// down is up in the other direction.
func (t *pageTable) down(i int) int {
	n := i >> pageBits & (windowPages - 1)
	if x := t.usedOf(n) << (63 - uint(i)&63); x != 0 {
		return bits.LeadingZeros64(x)
	}
	n = t.previousPage((n - 1) & (windowPages - 1))
	return (i - (n<<pageBits + 63 - bits.LeadingZeros64(t.usedOf(n)))) & ringMask
}

func (t *pageTable) previousPage(n int) int {
	s := n >> 6 & (summaries - 1)
	x := t.summary[s] << (63 - uint(n)&63) >> (63 - uint(n)&63)
	if x == 0 {
		below := t.top & (1<<uint(s) - 1)
		if below == 0 {
			below = t.top
		}
		s = (63 - bits.LeadingZeros64(below)) & (summaries - 1)
		x = t.summary[s]
	}
	return (s<<6 + 63 - bits.LeadingZeros64(x)) & (windowPages - 1)
}

// near reports whether p lies in the window; its level is then window.at(p).
func (b *Book) near(p market.Price) bool { return uint64(int64(p)-b.base) < b.width }

// levelAt returns the level of p, or none if p is far and has no orders.
func (b *Book) levelAt(p market.Price) int32 {
	if b.near(p) {
		return b.pages.at(p)
	}
	b.misses++
	return b.far.find(int64(p))
}

// levelFor returns the level of p for an order of side s to join. The caller must call
// opened if the level was empty. levelFor may slide the window and grow b.levels.
func (b *Book) levelFor(p market.Price, s market.Side) int32 {
	if !b.near(p) {
		return b.farLevelFor(p, s)
	}
	if li := b.pages.at(p); li >= pagePrices {
		return li
	}
	b.pages.add(int(p>>pageBits), b.newPage())
	return b.pages.at(p)
}

// opened records that the level li of price p has its first order.
func (b *Book) opened(li int32, p market.Price) {
	b.levels[li].price = p
	if b.near(p) {
		b.pages.used[li>>pageBits] |= 1 << (uint(p) & 63)
		b.pages.count++
	}
}

// closed records that the level li of price p in the window has no orders left.
func (b *Book) closed(li int32, p market.Price) {
	b.pages.count--
	if b.pages.used[li>>pageBits] &^= 1 << (uint(p) & 63); b.pages.used[li>>pageBits] == 0 {
		b.pages.remove(int(p >> pageBits))
		b.freePage(li &^ pageMask)
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

// slideToBest moves the window towards the best price of side s if that price is outside and
// orders near it are busy, and reports whether p is now inside. A move touches up to slideStep
// levels, so it waits until as many operations have paid for a far look-up: a market that
// jumps back and forth costs at most a constant factor more than one that stays outside.
func (b *Book) slideToBest(p market.Price, s market.Side) bool {
	touch := p
	if key := b.best[s&3]; key > sign(s)*int64(p) {
		touch = market.Price(key * sign(s))
	}
	if d := int64(p - touch); d > window/2-1 || d < -window/2 || b.misses <= min(b.pages.count, slideStep) {
		return false
	}
	switch {
	case !b.near(touch):
		b.target = (int64(touch) - window/2) &^ pageMask
	case b.width == window:
		return false
	}
	b.slide()
	return b.near(p)
}

// slideStep is how many levels one command moves at most, in some ten microseconds.
const slideStep = 64

// slide moves the window to [target, target+window), or towards it by slideStep levels:
// levels that leave it go to the far tree, then far levels that it covers come in. Until then
// it is narrower. A price keeps its position, so the pages that stay do not move, and orders
// do not name their level.
func (b *Book) slide() {
	b.misses = 0
	left := slideStep
	low, high := b.bounds()
	for ; left > 0 && b.pages.count > 0 && (low < b.target || high >= b.target+window); left-- {
		if low < b.target {
			b.evict(low)
		} else {
			b.evict(high)
		}
		low, high = b.bounds()
	}
	if b.pages.count == 0 {
		b.base, b.width = b.target, 0
	} else {
		base := max(b.base, min(b.target, low))
		end := min(b.base+int64(b.width), max(b.target+window, high+1))
		b.base, b.width = base, uint64(end-base)
	}
	b.widen(left)
}

// bounds returns the lowest and the highest used price in the window.
func (b *Book) bounds() (low, high int64) {
	if b.pages.count == 0 {
		return 0, 0
	}
	end := b.base + int64(b.width)
	return b.base + int64(b.pages.up(int(b.base&ringMask))), end - 1 - int64(b.pages.down(int((end-1)&ringMask)))
}

// evict moves the used level of price p in the window to the far tree.
func (b *Book) evict(p int64) {
	li, from := b.newLevel(), b.pages.at(market.Price(p))
	b.levels[li] = b.levels[from]
	b.levels[from] = level{}
	b.closed(from, market.Price(p))
	b.far.insert(p, li)
}

// widen widens the window, which lies in its target, over at most left far levels.
func (b *Book) widen(left int) {
	for ; left > 0 && b.width < window; left-- {
		end := b.base + int64(b.width)
		if p, li := b.far.ceil(end); end < b.target+window {
			if li == none || p >= b.target+window {
				b.width = uint64(b.target + window - b.base)
				continue
			}
			b.width = uint64(p + 1 - b.base)
			b.comeIn(p, li)
			continue
		}
		p, li := b.far.floor(b.base - 1)
		if li == none || p < b.target {
			p, li = b.target, none
		}
		b.base, b.width = p, uint64(end-p)
		b.comeIn(p, li)
	}
}

// comeIn moves the far level li of price p, now in the window, to its page; none = nothing.
func (b *Book) comeIn(p int64, li int32) {
	if li == none {
		return
	}
	b.far.remove(p)
	to := b.levelFor(market.Price(p), market.Buy)
	b.levels[to] = b.levels[li]
	b.opened(to, market.Price(p))
	b.freeLevel(li)
}

// newPage returns the first of 64 empty levels. It may grow b.levels.
func (b *Book) newPage() int32 {
	if first := b.freePages; first != 0 {
		b.freePages = b.levels[first].tail
		b.levels[first].tail = 0
		return first
	}
	if len(b.levels) >= 4*reserveAt && b.reserved == 0 {
		b.reserve()
	}
	b.levels = append(b.levels, make([]level, pagePrices)...)
	b.pages.used = append(b.pages.used, 0)
	return int32(len(b.levels) - pagePrices)
}

// freePage takes back a page whose levels are empty.
func (b *Book) freePage(first int32) {
	b.levels[first].tail = b.freePages
	b.freePages = first
}

// newLevel returns an empty level outside the window. It may grow b.levels.
func (b *Book) newLevel() int32 {
	if b.freeLevels == 0 {
		first := b.newPage()
		for li := first + pageMask; li >= first; li-- {
			b.freeLevel(li)
		}
	}
	li := b.freeLevels
	b.freeLevels = b.levels[li].tail
	b.levels[li] = level{}
	return li
}

func (b *Book) freeLevel(li int32) {
	b.levels[li] = level{tail: b.freeLevels}
	b.freeLevels = li
}

// emptied records that the level li of side s has no orders left.
func (b *Book) emptied(li int32, s market.Side) {
	p := b.levels[li].price
	if b.near(p) {
		b.closed(li, p)
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
	if top := min(p, b.base+int64(b.width)) - 1; top >= b.base && b.pages.count > 0 {
		if q := top - int64(b.pages.down(int(top&ringMask))); q >= b.base {
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
	end := b.base + int64(b.width)
	if low := max(p+1, b.base); low < end && b.pages.count > 0 {
		if q := low + int64(b.pages.up(int(low&ringMask))); q < end {
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

// peek is levelAt for readers: it does not count as an operation on a far price.
func (b *Book) peek(p market.Price) int32 {
	if b.near(p) {
		return b.pages.at(p)
	}
	return b.far.find(int64(p))
}

// waitingLists are the indexes of Book.stops in canonical order. Those of buy stops and of
// gathered sell orders, the odd ones, go upwards, the others downwards.
var waitingLists = [...]market.Side{market.Buy, market.Sell, gatheredBuys, gatheredSells}

const (
	gatheredBuys  market.Side = 0
	gatheredSells market.Side = 3
)

// gathered returns the index of the gathered orders of side s.
func gathered(s market.Side) market.Side { return (s - market.Buy) * gatheredSells }

// sideOfList returns the side of the orders at an index of Book.stops.
func sideOfList(list market.Side) market.Side {
	if list == market.Buy || list == gatheredBuys {
		return market.Buy
	}
	return market.Sell
}

// direction is +1 for a list that goes upwards, else -1.
func direction(list market.Side) int64 { return 2*int64(list&1) - 1 }

// firstStop returns the first trigger or limit of a list, the nearest to the market or the
// best, and its level, or none. nextStop returns the one behind a trigger or limit.
func (b *Book) firstStop(list market.Side) (int64, int32) {
	if list&1 != 0 {
		return b.stops[list&3].min()
	}
	return b.stops[list&3].max()
}

func (b *Book) nextStop(list market.Side, key int64) (int64, int32) {
	if list&1 != 0 {
		return b.stops[list&3].ceil(key + 1)
	}
	return b.stops[list&3].floor(key - 1)
}
