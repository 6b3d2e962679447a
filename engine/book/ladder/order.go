package ladder

import (
	"unsafe"

	"blockdesk/engine/book"
	"blockdesk/market"
)

// none is the index of nothing where 0 is a valid one.
const none int32 = -1

// order is the hot part of a live order: what adding, matching and cancelling a plain order
// touch. Two fill a cache line. Slot 0 is no order.
type order struct {
	id market.OrderID
	// owner is the limit price above the participant's 16 bits.
	owner uint64
	// state is flags above 48 bits of quantity: the displayed one of a resting order, the
	// open one of a waiting stop. Trades subtract from the whole word.
	state uint64
	// next and prev link the orders of a level (towards its tail and head) or
	// the stops of a trigger; next links the free list.
	next, prev int32
}

var _ [32]byte = [unsafe.Sizeof(order{})]byte{}

// cold is the rest of a live order. Flags of the order say which fields are valid.
type cold struct {
	taken      market.Qty   // hasTaken: total less open, that is traded or decremented
	display    market.Qty   // hasDisplay
	hidden     market.Qty   // hasDisplay: open less shown
	stop       market.Price // waiting: the trigger, 0 = gathered; once triggered the trade price
	enteredSeq uint64       // waiting: the Seq that placed it there
	expireAt   int64        // expires
	// expires: links to the orders of the same ExpireAt and their bucket.
	laterExpiry, earlierExpiry int32
	bucket                     int32
	_                          int32
}

var _ [64]byte = [unsafe.Sizeof(cold{})]byte{}

const (
	qtyBits = 48
	qtyMask = 1<<qtyBits - 1

	ownerBits = 16
	ownerMask = 1<<ownerBits - 1
)

// Flags of an order's state.
const (
	flagSell     uint64 = 1 << (qtyBits + 0)
	tifShift            = qtyBits + 1 // 3 bits
	stpShift            = qtyBits + 4 // 3 bits
	flagPostOnly uint64 = 1 << (qtyBits + 7)
	// A waiting stop, with flagMarket without a limit; or, with cold.stop 0, an order gathered
	// for an auction.
	flagWaiting uint64 = 1 << (qtyBits + 8)
	flagMarket  uint64 = 1 << (qtyBits + 9)
	// Parts of cold that are valid.
	hasDisplay uint64 = 1 << (qtyBits + 10)
	hasTaken   uint64 = 1 << (qtyBits + 11)
	expires    uint64 = 1 << (qtyBits + 12)
	// One side of a quote.
	flagQuote uint64 = 1 << (qtyBits + 13)
)

func (x *order) price() market.Price               { return market.Price(x.owner >> ownerBits) }
func (x *order) participant() market.ParticipantID { return market.ParticipantID(x.owner) }
func (x *order) qty() market.Qty                   { return market.Qty(x.state & qtyMask) }
func (x *order) side() market.Side                 { return sideOf(x.state) }

func sideOf(state uint64) market.Side { return market.Buy + market.Side(state>>qtyBits&1) }
func tifOf(state uint64) book.TIF     { return book.TIF(state >> tifShift & 7) }
func stpOf(state uint64) book.STP     { return book.STP(state >> stpShift & 7) }

func ownerOf(p market.Price, participant market.ParticipantID) uint64 {
	return uint64(p)<<ownerBits | uint64(participant)
}

// flagsOf returns the flags of a new order. Flags about cold and waiting are set where
// those are filled in.
func flagsOf(o *book.Order) uint64 {
	return uint64(o.Side-market.Buy)<<qtyBits | uint64(o.TIF)<<tifShift | uint64(o.STP)<<stpShift |
		uint64(o.Flags&book.FlagPostOnly)<<(qtyBits+7) | uint64(o.Flags&book.FlagQuote)<<(qtyBits+9)
}

// sign is 1 for Buy and -1 for Sell: sign × price grows with priority.
func sign(s market.Side) int64 { return 3 - 2*int64(s) }

// alloc returns an unused slot, the one freed last if there is one.
func (b *Book) alloc() int32 {
	if slot := b.free; slot != 0 {
		b.free = b.orders[slot].next
		return slot
	}
	if len(b.orders) >= reserveAt && b.reserved == 0 {
		b.reserve()
	}
	b.orders = append(b.orders, order{})
	b.cold = append(b.cold, cold{})
	return int32(len(b.orders) - 1)
}

// addOrder allocates a slot for a participant's new live order, and adds it to an expiry
// bucket if it expires.
func (b *Book) addOrder(id market.OrderID, participant market.ParticipantID, s market.Side, expireAt int64) int32 {
	if b.live >= b.freeBelow {
		b.growIDs()
	}
	slot := b.alloc()
	h := hashOf(id)
	_, pos := b.find(id, h)
	b.orders[slot].id = id
	b.putID(pos, h, slot)
	b.accounts[participant].open[(s-market.Buy)&1]++
	b.live++
	if expireAt != 0 {
		b.addExpiry(slot, expireAt)
	}
	return slot
}

// release frees the slot of a live order that no list holds any more; at is its position in
// the id table.
func (b *Book) release(slot int32, at uint64) {
	x := &b.orders[slot]
	b.deleteID(at, slot)
	a, i := &b.accounts[x.participant()], x.state>>qtyBits&1
	if (x.state^a.marks)>>(genShift+i)&1 != 0 {
		a.ending[i]--
		b.ending--
	} else {
		a.open[i]--
	}
	if x.state&expires != 0 {
		b.dropExpiry(slot)
	}
	b.live--
	x.next = b.free
	b.free = slot
}

// hidden returns the open quantity of a live order that is not displayed.
func (b *Book) hidden(slot int32) market.Qty {
	if b.orders[slot].state&hasDisplay != 0 {
		return b.cold[slot].hidden
	}
	return 0
}

// openOf returns the open quantity of a live order.
func (b *Book) openOf(slot int32) market.Qty { return b.orders[slot].qty() + b.hidden(slot) }

// takenOf returns what a live order has traded or lost by Decrement.
func (b *Book) takenOf(slot int32) market.Qty {
	if b.orders[slot].state&hasTaken != 0 {
		return b.cold[slot].taken
	}
	return 0
}

// take adds q to takenOf the order in slot.
func (b *Book) take(slot int32, q market.Qty) {
	x, c := &b.orders[slot], &b.cold[slot]
	if x.state&hasTaken == 0 {
		x.state |= hasTaken
		c.taken = 0
	}
	c.taken += q
}
