package ladder

import (
	"math/bits"
	"unsafe"

	"blockdesk/internal/addrspace"
	"blockdesk/market"
)

// idTable maps the id of a live order to its slot: open addressing with linear probing,
// sized to the live orders. An entry is the top 39 bits of the id's hash above a 25-bit
// slot; 0 = empty. Its home position is its topmost bits, so that deletion can shift
// followers back without reading orders, and leaves no tombstones. The hash needs no
// secret, because our gateways choose the ids, not clients.
type idTable struct {
	entries []uint64 // length a power of two
	shift   uint     // 64 - log2(len)
	limit   int      // live orders that it may hold: 3/8 of its entries
}

const (
	slotBits = 25
	slotMask = 1<<slotBits - 1
)

func newIDTable() idTable { return tableOf(make([]uint64, 1<<6)) }

// tableOf returns an empty table in entries, which are zero.
func tableOf(entries []uint64) idTable {
	size := uint(bits.Len(uint(len(entries)))) - 1
	return idTable{entries: entries, shift: 64 - size, limit: limitOf(size)}
}

func limitOf(bits uint) int { return 3 << bits >> 3 }

// hashOf spreads ids; sequential ones are distributed evenly.
func hashOf(id market.OrderID) uint64 { return uint64(id) * 0x9e3779b97f4a7c15 }

// doubled returns the table twice as large.
func (t *idTable) doubled() idTable {
	next := tableOf(make([]uint64, 2*len(t.entries)))
	for _, e := range t.entries {
		if e != 0 {
			next.put(next.emptyFor(e), e, int32(e&slotMask))
		}
	}
	return next
}

// emptyFor returns the position to store a new id of hash h.
func (t *idTable) emptyFor(h uint64) uint64 {
	mask := uint64(len(t.entries) - 1)
	i := h >> (t.shift & 63)
	for t.entries[i&mask] != 0 {
		i++
	}
	return i
}

// put stores a slot under hash h at position i, which the probe for h found empty.
func (t *idTable) put(i, h uint64, slot int32) {
	t.entries[i&uint64(len(t.entries)-1)] = h&^slotMask | uint64(slot)
}

// deleteAt empties position i and shifts back the entries behind it that the gap would cut
// off from their home positions.
func (t *idTable) deleteAt(i uint64) {
	entries, shift := t.entries, t.shift&63
	mask := uint64(len(entries) - 1)
	i &= mask
	for j := i; ; {
		j = (j + 1) & mask
		e := entries[j]
		if e == 0 {
			break
		}
		if (j-e>>shift)&mask >= (j-i)&mask {
			entries[i] = e
			i = j
		}
	}
	entries[i] = 0
}

// find returns the slot of a live id and its position in the table; or slot 0 and the
// position to store it.
func (b *Book) find(id market.OrderID, h uint64) (slot int32, at uint64) {
	entries := b.ids.entries
	mask := uint64(len(entries) - 1)
	for i := h >> (b.ids.shift & 63); ; i++ {
		e := entries[i&mask]
		if e == 0 {
			return 0, i
		}
		if (e^h)>>slotBits == 0 {
			if slot := int32(e & slotMask); b.orders[slot].id == id {
				return slot, i
			}
		}
	}
}

// Prefetch loads what a command about id reads first into the CPU's cache. It changes
// nothing that a command depends on.
func (b *Book) Prefetch(id market.OrderID) {
	e := b.ids.entries[hashOf(id)>>(b.ids.shift&63)&uint64(len(b.ids.entries)-1)]
	b.prefetched += b.orders[e&slotMask].state
}

// A large table grows in steps: each new order also enters some old ones in the next table,
// in the order of their slots, while the present one serves. Then the memory of the old one
// is given back, in steps too. Submit and Cancel take their general paths meanwhile.

const (
	// growStep is how many slots a new order moves on: the 1/8 of the limit at which a
	// table begins to grow is enough for all slots.
	growStep = 8
	// dropStep is how many bytes a new order gives back.
	dropStep = 64 << 10
)

// growth is a table that is being filled. It has the live orders of the slots below next.
type growth struct {
	idTable
	next int32
}

// setFreeBelow sets below how many live orders Submit needs no check.
func (b *Book) setFreeBelow() {
	b.freeBelow = min(b.maxOrders, b.ids.limit-b.ids.limit/growStep)
	if b.growing != nil || b.dropping != nil {
		b.freeBelow = 0
	}
	b.general = b.sweeping || b.growing != nil
}

// growIDs makes room for one more id, or takes a step to it.
func (b *Book) growIDs() {
	switch {
	case b.growing != nil:
		b.moveIDs()
	case b.dropping != nil:
		n := min(len(b.dropping), dropStep)
		addrspace.Drop(b.dropping[:n])
		if b.dropping = b.dropping[n:]; len(b.dropping) == 0 {
			b.dropping = nil
		}
	case b.live < b.ids.limit-b.ids.limit/growStep:
		return
	case 2*len(b.ids.entries) < 1<<firstStepwise:
		b.ids = b.ids.doubled()
	default:
		b.growing = &growth{idTable: tableOf(b.takeTable(2 * len(b.ids.entries))), next: 1}
	}
	b.setFreeBelow()
}

// takeTable returns memory for a table of n entries.
func (b *Book) takeTable(n int) []uint64 {
	if len(b.tables) < 8*n {
		return make([]uint64, n)
	}
	entries := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b.tables))), n)
	b.tables = b.tables[8*n:]
	return entries
}

// moveIDs enters the live orders of the next slots in the table that grows, which serves
// once it has all of them.
func (b *Book) moveIDs() {
	g := b.growing
	end := min(g.next+growStep, int32(len(b.orders)))
	for ; g.next < end; g.next++ {
		h := hashOf(b.orders[g.next].id)
		if slot, _ := b.find(b.orders[g.next].id, h); slot == g.next {
			g.put(g.emptyFor(h), h, slot)
		}
	}
	if int(g.next) < len(b.orders) {
		return
	}
	if first := unsafe.Pointer(unsafe.SliceData(b.ids.entries)); b.isReserved(first) {
		b.dropping = unsafe.Slice((*byte)(first), 8*len(b.ids.entries))
	}
	b.ids, b.growing = g.idTable, nil
}

// isReserved reports whether p points into the reserved memory.
func (b *Book) isReserved(p unsafe.Pointer) bool {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(b.memory)))
	return uintptr(p)-first < uintptr(len(b.memory))
}

// putID enters a new order, at the position that find returned.
func (b *Book) putID(at, h uint64, slot int32) {
	b.ids.put(at, h, slot)
	if g := b.growing; g != nil && slot < g.next {
		g.put(g.emptyFor(h), h, slot)
	}
}

// deleteID takes the order in slot out; at is its position.
func (b *Book) deleteID(at uint64, slot int32) {
	b.ids.deleteAt(at)
	g := b.growing
	if g == nil || slot >= g.next {
		return
	}
	h := hashOf(b.orders[slot].id)
	mask := uint64(len(g.entries) - 1)
	i := h >> (g.shift & 63)
	for g.entries[i&mask] != h&^slotMask|uint64(slot) {
		i++
	}
	g.deleteAt(i)
}
