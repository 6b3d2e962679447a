package ladder

import (
	"runtime"
	"unsafe"

	"blockdesk/internal/addrspace"
	"blockdesk/market"
)

// A slice that grows by append copies all that it holds, which takes milliseconds for a
// million orders. So a book that is not small has address space for the most that it may
// ever hold, and its slices grow in place; the system adds memory where it is first touched.
// Without address space the slices grow by append.

const (
	// reserveAt is the number of orders, levels / 4 or participants from which a book is not
	// small: few enough that moving them takes some ten microseconds.
	reserveAt = 512
	// memoryPage separates the slices, so that each begins in memory of its own.
	memoryPage = 4 << 10
	// firstStepwise is the size, as a power of two, of the smallest id table that is filled
	// in steps.
	firstStepwise = 14
)

// reserve moves the book's slices to address space for maxOrders.
func (b *Book) reserve() {
	b.reserved = max(b.maxOrders, len(b.orders)) + 1
	trees := [...]*tree{&b.far, &b.expiries, &b.stops[market.Buy], &b.stops[market.Sell]}
	// Each order is at a far level or a trigger, and in an expiry bucket.
	levels := window + 2*b.reserved + 3*pagePrices
	tables := 0
	for bits := uint(firstStepwise); ; bits++ {
		tables += 8 << bits
		if limitOf(bits)-limitOf(bits)/growStep > b.reserved {
			break
		}
	}
	size := room[order](b.reserved) + room[cold](b.reserved) + room[level](levels) + room[uint64](levels/pagePrices) +
		room[account](maxAccounts) + len(trees)*room[node](b.reserved+1) + tables
	old := b.memory
	b.memory = addrspace.Reserve(size)
	if b.memory == nil {
		b.tables = nil
		return
	}
	rest := b.memory
	rest, b.orders = move(rest, b.orders, b.reserved)
	rest, b.cold = move(rest, b.cold, b.reserved)
	rest, b.levels = move(rest, b.levels, levels)
	rest, b.pages.used = move(rest, b.pages.used, levels/pagePrices)
	rest, b.accounts = move(rest, b.accounts, maxAccounts)
	for _, t := range trees {
		rest, t.nodes = move(rest, t.nodes, b.reserved+1)
	}
	b.tables = rest
	if old != nil {
		b.cleanup.Stop()
		b.ids.entries = append([]uint64(nil), b.ids.entries...) // may be in old
		b.growing, b.dropping = nil, nil
		b.setFreeBelow()
		addrspace.Release(old)
	}
	b.cleanup = runtime.AddCleanup(b, addrspace.Release, b.memory)
}

// maxAccounts is the number of participants with the service, number 0.
const maxAccounts = 1 << 16

// room returns the bytes of n elements in whole pages.
func room[T any](n int) int {
	return (n*int(unsafe.Sizeof(*new(T))) + memoryPage - 1) &^ (memoryPage - 1)
}

// move copies a slice to the start of mem, with room for n elements, and returns the memory
// after them.
func move[T any](mem []byte, s []T, n int) (rest []byte, moved []T) {
	moved = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), n)[:len(s)]
	copy(moved, s)
	return mem[room[T](n):], moved
}

// growAccounts makes room for the participant.
func (b *Book) growAccounts(participant market.ParticipantID) {
	n := int(participant) + 1
	if n <= len(b.accounts) {
		return
	}
	if n > reserveAt && b.reserved == 0 {
		b.reserve()
	}
	if n <= cap(b.accounts) {
		b.accounts = b.accounts[:n] // never used, so zero
		return
	}
	b.accounts = append(b.accounts, make([]account, n-len(b.accounts))...)
}
