package rfq

import (
	"slices"

	"blockdesk/market"
)

// chunkItems is the number of items that a table allocates at once.
const chunkItems = 256

// table stores items by key. Items never move, so growing copies nothing and a pointer is valid
// until its item is removed; slots are reused. Nothing visible depends on slots.
type table[K comparable, V any] struct {
	chunks []*[chunkItems]V
	slots  map[K]uint32
	free   []uint32
	used   uint32 // slots ever used
}

func newTable[K comparable, V any]() table[K, V] {
	return table[K, V]{slots: map[K]uint32{}}
}

func (t *table[K, V]) len() int { return len(t.slots) }

// at returns the item in a used slot.
func (t *table[K, V]) at(slot uint32) *V { return &t.chunks[slot/chunkItems][slot%chunkItems] }

func (t *table[K, V]) find(key K) (uint32, bool) {
	slot, ok := t.slots[key]
	return slot, ok
}

// get returns the item, or nil.
func (t *table[K, V]) get(key K) *V {
	if slot, ok := t.slots[key]; ok {
		return t.at(slot)
	}
	return nil
}

// add adds a zero item for a new key and returns its slot.
func (t *table[K, V]) add(key K) uint32 {
	var slot uint32
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
	} else {
		slot = t.used
		t.used++
		if int(slot/chunkItems) == len(t.chunks) {
			t.chunks = append(t.chunks, new([chunkItems]V))
		}
	}
	t.slots[key] = slot
	return slot
}

func (t *table[K, V]) remove(key K) {
	slot, ok := t.slots[key]
	if !ok {
		return
	}
	var zero V
	*t.at(slot) = zero
	delete(t.slots, key)
	t.free = append(t.free, slot)
}

// sorted returns all items in the order of compare.
func (t *table[K, V]) sorted(compare func(a, b *V) int) []*V {
	items := make([]*V, 0, len(t.slots))
	for _, slot := range t.slots {
		items = append(items, t.at(slot))
	}
	slices.SortFunc(items, compare)
	return items
}

// trancheKey identifies a tranche.
type trancheKey struct {
	ticket  market.TicketID
	tranche market.TrancheID
}

// timer is one item of timers, ordered by at, then id.
type timer struct {
	at   int64
	id   uint64
	slot uint32
}

func (t *timer) before(o *timer) bool { return t.at < o.at || t.at == o.at && t.id < o.id }

// timers is a heap of the slots of a table by time and id. It knows the heap index of each
// slot, so that a time can be changed or removed.
type timers struct {
	heap  []timer
	index []uint32 // by slot: 1 + its index in heap; 0 = not in it
}

// set adds or changes the time of a slot.
func (t *timers) set(slot uint32, at int64, id uint64) {
	for int(slot) >= len(t.index) {
		t.index = append(t.index, 0)
	}
	i := int(t.index[slot]) - 1
	if i < 0 {
		i = len(t.heap)
		t.heap = append(t.heap, timer{})
	}
	t.sift(i, timer{at, id, slot})
}

// remove removes the time of a slot, if it has one.
func (t *timers) remove(slot uint32) {
	if int(slot) >= len(t.index) || t.index[slot] == 0 {
		return
	}
	i := int(t.index[slot]) - 1
	t.index[slot] = 0
	last := t.heap[len(t.heap)-1]
	t.heap = t.heap[:len(t.heap)-1]
	if i < len(t.heap) {
		t.sift(i, last)
	}
}

// first returns the slot with the earliest time; false = there is none.
func (t *timers) first() (uint32, bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].slot, true
}

// due returns the first slot if its time is not after at.
func (t *timers) due(at int64) (uint32, bool) {
	if len(t.heap) == 0 || t.heap[0].at > at {
		return 0, false
	}
	return t.heap[0].slot, true
}

// sift stores it at its position in the heap, starting from the free index i.
func (t *timers) sift(i int, it timer) {
	for i > 0 {
		up := (i - 1) / 2
		if !it.before(&t.heap[up]) {
			break
		}
		t.store(i, t.heap[up])
		i = up
	}
	for {
		down := 2*i + 1
		if down >= len(t.heap) {
			break
		}
		if right := down + 1; right < len(t.heap) && t.heap[right].before(&t.heap[down]) {
			down = right
		}
		if !t.heap[down].before(&it) {
			break
		}
		t.store(i, t.heap[down])
		i = down
	}
	t.store(i, it)
}

func (t *timers) store(i int, it timer) {
	t.heap[i] = it
	t.index[it.slot] = uint32(i + 1)
}
