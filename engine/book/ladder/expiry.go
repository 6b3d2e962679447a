package ladder

import (
	"slices"

	"blockdesk/engine/event"
)

// Orders that expire are linked, through their cold parts, in a bucket for each ExpireAt.
// Day orders share one bucket, so that adding and removing them is O(1), and an order that
// ends early leaves nothing behind.

// addExpiry adds the order in slot to the bucket of at.
func (b *Book) addExpiry(slot int32, at int64) {
	li := b.expiries.find(at)
	if li == none {
		li = b.newLevel()
		b.expiries.insert(at, li)
		if b.next == 0 || at < b.next {
			b.next = at
		}
	}
	first := b.levels[li].head
	d := &b.cold[slot]
	d.expireAt, d.bucket, d.laterExpiry, d.earlierExpiry = at, li, first, 0
	if first != 0 {
		b.cold[first].earlierExpiry = slot
	}
	b.levels[li].head = slot
}

// dropExpiry removes the order in slot from its bucket.
func (b *Book) dropExpiry(slot int32) {
	d := &b.cold[slot]
	if d.laterExpiry != 0 {
		b.cold[d.laterExpiry].earlierExpiry = d.earlierExpiry
	}
	if d.earlierExpiry != 0 {
		b.cold[d.earlierExpiry].laterExpiry = d.laterExpiry
		return
	}
	b.levels[d.bucket].head = d.laterExpiry
	if d.laterExpiry != 0 {
		return
	}
	b.freeLevel(d.bucket)
	b.expiries.remove(d.expireAt)
	if d.expireAt == b.next {
		b.next, _ = b.expiries.min()
	}
}

// NextExpiry returns the earliest ExpireAt of a live order; 0 = none expires.
func (b *Book) NextExpiry() int64 { return b.next }

// Expire cancels every order with ExpireAt <= at, in the order of ExpireAt, then ID.
func (b *Book) Expire(at int64, seq uint64, out *event.Sink) {
	c := command{at, seq, out, b.instrument}
	for b.next != 0 && b.next <= at {
		b.byID = b.byID[:0]
		_, li := b.expiries.min()
		for slot := b.levels[li].head; slot != 0; slot = b.cold[slot].laterExpiry {
			b.byID = append(b.byID, b.orders[slot].id)
		}
		slices.Sort(b.byID)
		for _, id := range b.byID {
			slot, pos := b.find(id, hashOf(id))
			b.cancelOrder(slot, pos, event.ReasonExpired, &c)
		}
	}
}
