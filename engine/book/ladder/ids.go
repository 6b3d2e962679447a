package ladder

import "blockdesk/market"

// idTable maps the id of a live order to its slot: open addressing with linear probing,
// sized to the live orders. An entry is the top 39 bits of the id's hash above a 25-bit
// slot; 0 = empty. Its home position is its topmost bits, so that deletion can shift
// followers back without reading orders, and leaves no tombstones. The hash needs no
// secret, because our gateways choose the ids, not clients.
type idTable struct {
	entries []uint64 // length a power of two
	shift   uint     // 64 - log2(len)
	limit   int      // live orders that it may hold: 5/8 of its entries
}

const (
	slotBits = 25
	slotMask = 1<<slotBits - 1
)

func newIDTable() idTable { return sizedIDTable(6) }

func sizedIDTable(bits uint) idTable {
	return idTable{entries: make([]uint64, 1<<bits), shift: 64 - bits, limit: 3 << bits >> 3}
}

// hashOf spreads ids; sequential ones are distributed evenly.
func hashOf(id market.OrderID) uint64 { return uint64(id) * 0x9e3779b97f4a7c15 }

// grow doubles the table.
func (t *idTable) grow() {
	old := t.entries
	*t = sizedIDTable(64 - t.shift + 1)
	mask := uint64(len(t.entries) - 1)
	for _, e := range old {
		if e == 0 {
			continue
		}
		i := e >> (t.shift & 63)
		for t.entries[i&mask] != 0 {
			i++
		}
		t.entries[i&mask] = e
	}
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
