package engine

import (
	"time"

	"blockdesk/engine/event"
)

// discardBuffer is the size of the ring that a discarding matcher overwrites.
const discardBuffer = 1 << 10

// matcher is the single writer: it turns commands into published events. While Run works,
// only its goroutine or the caller of RunInline that has taken over its role uses it.
type matcher struct {
	engine *Engine
	sink   event.Sink
	ready  func() bool // there is work, or the engine stops; bound once
	room   func() bool

	next     uint64 // first position not yet stamped; between batches = ingress.applied
	digested uint64 // egress position up to which digest is computed
	digest   uint64
	lastAt   int64
	// lastClock is the last reading of the clock; 0 = none.
	lastClock int64
	ahead     int64 // last published
	expiry    int64 // last published
	// discarding: events from here on will never be visible, because the journal has
	// failed or the drain timed out. The ring's content stays for its readers.
	discarding bool
}

func (m *matcher) init(e *Engine) {
	m.engine = e
	m.digest = e.replica.Digest
	m.lastAt = e.replica.State.At()
	m.sink = event.Sink{Buf: e.egress.events, Limit: uint64(len(e.egress.events)), MakeRoom: m.makeRoom}
	m.ready = func() bool { return e.ingress.filled(e.ingress.applied.Load()) || e.stopping.Load() }
	m.room = func() bool {
		return m.sink.Pos < e.egress.limit(m.sink.Pos) || m.cannotWait()
	}
}

// run applies batches until the engine stops and every claimed slot is applied, or until
// the journal fails.
func (m *matcher) run() {
	e := m.engine
	m.publishExpiry()
	for e.failure.Load() == nil {
		n := e.ingress.countFilled(m.next, e.options.MaxBatch)
		if n > 0 {
			m.batch(uint64(n), true)
			continue
		}
		if !e.stopping.Load() {
			e.matcherWait.wait(m.ready, nil)
			continue
		}
		if m.next == e.ingress.end() {
			break
		}
		e.ingress.awaitFilled(m.next)
	}
	e.replica.Digest = m.digest
}

// prefetchAhead is how many commands of a batch are prefetched at a time: enough for the
// loads to overlap, few enough that their lines are still in the cache when they are needed.
const prefetchAhead = 8

// maxTickSleep bounds a sleep, so that a clock that jumps is noticed.
const maxTickSleep = time.Second

// batch stamps n commands, hands them to the journaler and applies them at the same time.
// Without wake the caller must wake the journaler.
func (m *matcher) batch(n uint64, wake bool) {
	e := m.engine
	r := &e.ingress
	at := m.now()
	r.priorDigest[m.next&r.mask] = m.digest
	end := m.next + n
	for p := m.next; p < end; p++ {
		c := &r.slots[p&r.mask]
		c.At, c.first = at, p == m.next
	}
	if e.options.Journal != nil {
		r.stamped.Store(end)
		if wake {
			e.journalWait.wake()
		}
	}

	state := e.replica.State
	for p := m.next; p < end; p++ {
		if (p-m.next)%prefetchAhead == 0 && end-p > 1 {
			for q := p; q < min(p+prefetchAhead, end); q++ {
				state.Prefetch(&r.slots[q&r.mask])
			}
		}
		state.Apply(&r.slots[p&r.mask], &m.sink)
	}
	m.publish()
	m.next = end
	r.applied.Store(end)
	m.publishExpiry()
}

const (
	// slewShare is the share of the passing time by which the clock catches up while the
	// engine's time is ahead of it.
	slewShare = 8
	// maxSlew bounds the time between two readings that counts as passed while the engine's
	// time is ahead: a clock that is set back and forth does not drive it further.
	maxSlew = uint64(maxTickSleep)
)

// now returns the time of a batch: that of the clock, or, if the journal's time is ahead of it
// because the clock was set back, a time that goes on at seven eighths of its speed. So
// deadlines neither stand still until the clock has caught up nor fall due at once.
func (m *matcher) now() int64 {
	clock := m.engine.options.Clock()
	elapsed := int64(0)
	if m.lastClock != 0 && clock > m.lastClock {
		elapsed = int64(min(uint64(clock)-uint64(m.lastClock), maxSlew))
	}
	at := max(clock, m.lastAt+max(elapsed-elapsed/slewShare, 1))
	m.lastClock, m.lastAt = clock, at
	if ahead := at - clock; ahead != m.ahead {
		m.ahead = ahead
		m.engine.ahead.Store(ahead)
	}
	return at
}

// publish adds the written events to the digest and publishes them. Consumers see those
// that are durable.
func (m *matcher) publish() {
	e := m.engine
	if m.digested == m.sink.Pos {
		return
	}
	sum, oldest, kinds := m.digest, m.sink.At(m.digested).Seq, uint32(0)
	for p := m.digested; p < m.sink.Pos; p++ {
		e := m.sink.At(p)
		sum = event.Digest(sum, e)
		kinds |= 1 << (e.Kind & 31)
	}
	m.digest, m.digested = sum, m.sink.Pos
	if m.discarding {
		return
	}
	e.egress.recordKinds(kinds, m.sink.Pos)
	e.egress.published.Store(m.sink.Pos)
	// If none of these events is durable yet, the journaler wakes the consumers: it stores
	// durable before it looks for sleepers, so one of the two wakes them.
	if oldest <= e.durable.Load() {
		e.egress.wake()
	}
}

// makeRoom is called when the sink has reached its limit, so the ring may be full. It
// publishes what is written, even in the middle of a command, because one command may have
// more events than the ring has slots.
func (m *matcher) makeRoom(s *event.Sink) {
	e := m.engine
	m.publish()
	if m.discarding {
		s.Limit = s.Pos + discardBuffer
		return
	}
	s.Limit = e.egress.limit(s.Pos)
	if s.Pos < s.Limit {
		return
	}
	e.egress.spaceWait.wait(m.room, nil)
	s.Limit = e.egress.limit(s.Pos)
	if s.Pos < s.Limit && e.failure.Load() == nil {
		return
	}
	m.discarding = true
	e.firstUnpublished.Store(e.replica.State.Seq())
	s.Buf = make([]event.Event, discardBuffer)
	s.Limit = s.Pos + discardBuffer
}

// cannotWait reports that waiting for consumers is pointless: they will never see the
// events that they would have to release, or the drain timed out.
func (m *matcher) cannotWait() bool {
	e := m.engine
	return e.failure.Load() != nil || e.drainExpired.Load()
}

// publishExpiry wakes the ticker when the earliest expiry has changed.
func (m *matcher) publishExpiry() {
	e := m.engine
	if at := e.replica.State.NextExpiry(); at != m.expiry {
		m.expiry = at
		e.nextExpiry.Store(at)
		e.expiryWait.wake()
	}
}
