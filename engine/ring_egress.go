package engine

import (
	"math"
	"sync/atomic"

	"blockdesk/engine/event"
)

// egress is the ring of events: the matcher writes, every consumer reads all of
// it. Positions count from 0 for ever. Slots from the slowest consumer's cursor
// up to published belong to the readers, the rest to the matcher.
type egress struct {
	events    []event.Event
	consumers []*Consumer // fixed once Run begins
	room      *waiter     // the matcher waits here for the slowest consumer

	_         cacheLine
	published atomic.Uint64
	_         cacheLine
}

func (g *egress) init(size int, mode WaitMode) {
	g.events = make([]event.Event, size)
	g.room = newWaiter(mode)
}

func (g *egress) at(p uint64) *event.Event { return &g.events[p&uint64(len(g.events)-1)] }

// slowest returns the lowest cursor of all open consumers, or the largest number.
func (g *egress) slowest() uint64 {
	low := uint64(math.MaxUint64)
	for _, c := range g.consumers {
		low = min(low, c.cursor.Load())
	}
	return low
}

// limit returns the first position that may not be written when the next one to
// write is pos.
func (g *egress) limit(pos uint64) uint64 {
	return min(g.slowest(), pos) + uint64(len(g.events))
}

func (g *egress) wake() {
	for _, c := range g.consumers {
		c.waiting.wake()
	}
}

// laggard names the open consumer that is furthest behind.
func (g *egress) laggard() string {
	name, low := "", uint64(math.MaxUint64)
	for _, c := range g.consumers {
		if at := c.cursor.Load(); at < low {
			name, low = c.name, at
		}
	}
	return name
}
