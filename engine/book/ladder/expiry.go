package ladder

import (
	"slices"

	"blockdesk/engine/event"
)

// Orders that expire hang, by their cold part, in one bucket for each ExpireAt:
// day orders share one, so that entering and leaving are O(1) for them, and
// nothing is left behind by an order that ends early.

// addExpiry hangs the order in slot into the bucket of at.
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
	d.expireAt, d.bucket, d.later, d.sooner = at, li, first, 0
	if first != 0 {
		b.cold[first].sooner = slot
	}
	b.levels[li].head = slot
}

// dropExpiry takes the order in slot out of its bucket.
func (b *Book) dropExpiry(slot int32) {
	d := &b.cold[slot]
	if d.later != 0 {
		b.cold[d.later].sooner = d.sooner
	}
	if d.sooner != 0 {
		b.cold[d.sooner].later = d.later
		return
	}
	b.levels[d.bucket].head = d.later
	if d.later != 0 {
		return
	}
	b.freeLevel(d.bucket)
	b.expiries.remove(d.expireAt)
	if d.expireAt == b.next {
		b.next, _ = b.expiries.min()
	}
}

// NextExpiry returns the earliest ExpireAt of a live order, 0 when none expires.
func (b *Book) NextExpiry() int64 { return b.next }

// Expire cancels every order whose ExpireAt has come, by ExpireAt, then ID.
func (b *Book) Expire(at int64, seq uint64, out *event.Sink) {
	c := command{at, seq, out, b.instrument}
	for b.next != 0 && b.next <= at {
		b.due = b.due[:0]
		_, li := b.expiries.min()
		for slot := b.levels[li].head; slot != 0; slot = b.cold[slot].later {
			b.due = append(b.due, b.orders[slot].id)
		}
		slices.Sort(b.due)
		for _, id := range b.due {
			slot, pos := b.find(id, hashOf(id))
			b.end(slot, pos, event.ReasonExpired, &c)
		}
	}
}
