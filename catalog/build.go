package catalog

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/market"
)

// NewFacts computes the facts of one moment.
func NewFacts(in *Input) *Facts {
	f := &Facts{At: in.At, Service: in.Service, URLs: in.URLs, Tokens: slices.Clone(in.Tokens), Chain: in.Settlement.chain(in.At)}
	if in.DeskEnabled {
		f.Desk = in.desk()
	}
	b := builder{Input: in, mirrored: in.Mirror.pairs()}
	f.Pairs = b.pairs()
	b.addSales(f)
	if state := in.Mirror.State; state != nil {
		canonical := &in.Instruments[0]
		k := b.mirroredPair(canonical.Symbol)
		f.Chain = mirrorChain(state, k, canonical.Source == market.Mirrored)
		f.Snapshots = k.snapshots(in.At, b.dollars(canonical.Quote), in.Service.FeeBps)
	}
	b.addReadings(f.Tokens)
	return f
}

// Cache keeps the facts of the current cycle. The first request of a cycle computes them,
// outside of the order path.
type Cache struct {
	read  func(at Time) *Input
	clock func() time.Time

	computing sync.Mutex
	current   atomic.Pointer[cycleFacts]
}

// cycleFacts are the facts of one cycle, which begins at a multiple of Cycle.
type cycleFacts struct {
	begin time.Time
	facts *Facts
}

// NewCache returns an empty cache. It calls read once a cycle.
func NewCache(read func(at Time) *Input, clock func() time.Time) *Cache {
	return &Cache{read: read, clock: clock}
}

// Facts returns the facts of the current cycle. While another goroutine computes them, it
// returns those of the previous cycle, or waits if there are none. Any goroutine may call
// it.
func (c *Cache) Facts() *Facts {
	begin := c.clock().Truncate(Cycle)
	current := c.current.Load()
	if current != nil && current.begin.Equal(begin) {
		return current.facts
	}
	if current == nil {
		c.computing.Lock()
	} else if !c.computing.TryLock() {
		return current.facts
	}
	defer c.computing.Unlock()
	if current = c.current.Load(); current != nil && current.begin.Equal(begin) {
		return current.facts
	}
	fresh := &cycleFacts{begin, NewFacts(c.read(Time(c.clock().UnixNano())))}
	c.current.Store(fresh)
	return fresh.facts
}
