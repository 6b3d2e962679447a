package engine

import (
	"math"
	"sync/atomic"

	"blockdesk/engine/event"
)

// allKinds are the kinds of events of a consumer that chooses none.
const allKinds = math.MaxUint32

// egress is the ring of events: the matcher writes, and every consumer reads all of it.
// Positions count from 0 without end. Slots from the slowest consumer's cursor up to
// published belong to the readers, the others to the matcher.
type egress struct {
	events    []event.Event
	consumers []*Consumer // fixed once Run begins
	spaceWait *waiter     // the matcher waits here for the slowest consumer

	_         cacheLine
	published atomic.Uint64
	_         cacheLine
}

func (g *egress) init(size int, mode WaitMode) {
	g.events = make([]event.Event, size)
	g.spaceWait = newWaiter(mode)
}

func (g *egress) at(p uint64) *event.Event { return &g.events[p&uint64(len(g.events)-1)] }

// minCursor returns the lowest cursor of all open consumers, or math.MaxUint64.
func (g *egress) minCursor() uint64 {
	low := uint64(math.MaxUint64)
	for _, c := range g.consumers {
		low = min(low, c.cursor.Load())
	}
	return low
}

// limit returns the first position that the matcher may not write, where pos is the next
// one to write.
func (g *egress) limit(pos uint64) uint64 {
	return min(g.minCursor(), pos) + uint64(len(g.events))
}

// wake wakes the consumers that events have become visible for.
func (g *egress) wake() {
	for _, c := range g.consumers {
		if c.wakes() {
			c.waiting.wake()
		}
	}
}

func (g *egress) wakeAll() {
	for _, c := range g.consumers {
		c.waiting.wake()
	}
}

// recordKinds records that events of these kinds end before position end, for the consumers
// with WakeFor.
func (g *egress) recordKinds(kinds uint32, end uint64) {
	for _, c := range g.consumers {
		if c.kinds != allKinds && c.kinds&kinds != 0 {
			c.wanted.Store(end)
		}
	}
}

// slowestConsumer returns the name of the open consumer with the lowest cursor.
func (g *egress) slowestConsumer() string {
	name, low := "", uint64(math.MaxUint64)
	for _, c := range g.consumers {
		if at := c.cursor.Load(); at < low {
			name, low = c.name, at
		}
	}
	return name
}
