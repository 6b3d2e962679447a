package engine

import (
	"blockdesk/engine/event"
)

// blindBuffer is the number of event slots that a blind matcher writes over and
// over.
const blindBuffer = 1 << 10

// matcher is the one writer: it turns filled commands into published events.
// Its goroutine alone touches it while Run works, or who has its turn: RunInline.
type matcher struct {
	engine *Engine
	sink   event.Sink
	ready  func() bool // idle's opposite, bound once
	room   func() bool

	next   uint64 // first position not yet stamped; between batches the ring's applied
	folded uint64 // egress position up to which digest has gone
	digest uint64
	lastAt int64
	expiry int64 // as last told
	// blind: nobody will see what is written from here on; see Engine.close and
	// ErrDrainTimeout. The ring's content stays, for those who still read it.
	blind bool
}

func (m *matcher) init(e *Engine) {
	m.engine = e
	m.digest = e.replica.Digest
	m.lastAt = e.replica.State.At()
	m.sink = event.Sink{Buf: e.egress.events, Limit: uint64(len(e.egress.events)), MakeRoom: m.makeRoom}
	m.ready = func() bool { return e.ingress.filled(e.ingress.applied.Load()) || e.stopping.Load() }
	m.room = func() bool {
		return m.sink.Pos < e.egress.limit(m.sink.Pos) || m.hopeless()
	}
}

// run applies batches until the engine stops and everything claimed is applied,
// or until the journal fails.
func (m *matcher) run() {
	e := m.engine
	m.tellExpiry()
	for e.failure.Load() == nil {
		n := e.ingress.run(m.next, e.options.MaxBatch)
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

// batch stamps n commands, hands them to the journaler, and applies them while
// it works; without wake the journaler is the caller's to wake.
func (m *matcher) batch(n uint64, wake bool) {
	e := m.engine
	r := &e.ingress
	at := max(e.options.Clock(), m.lastAt+1)
	m.lastAt = at
	r.prior[m.next&r.mask] = m.digest
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
		state.Apply(&r.slots[p&r.mask], &m.sink)
	}
	m.publish()
	m.next = end
	r.applied.Store(end)
	m.tellExpiry()
}

// publish folds what has been written into the digest and shows it to the
// consumers, who see of it what is durable.
func (m *matcher) publish() {
	e := m.engine
	if m.folded == m.sink.Pos {
		return
	}
	sum, oldest := m.digest, m.sink.At(m.folded).Seq
	for p := m.folded; p < m.sink.Pos; p++ {
		sum = event.Digest(sum, m.sink.At(p))
	}
	m.digest, m.folded = sum, m.sink.Pos
	if m.blind {
		return
	}
	e.egress.published.Store(m.sink.Pos)
	// If nothing of this is durable yet, the journaler will wake them: it
	// stores durable before it looks who sleeps, so one of the two does.
	if oldest <= e.durable.Load() {
		e.egress.wake()
	}
}

// makeRoom is the sink's slow path: the ring is full as far as the sink knows.
// What is written is published, also in the middle of a command, so that one
// command may have more events than the ring has slots.
func (m *matcher) makeRoom(s *event.Sink) {
	e := m.engine
	m.publish()
	if m.blind {
		s.Limit = s.Pos + blindBuffer
		return
	}
	s.Limit = e.egress.limit(s.Pos)
	if s.Pos < s.Limit {
		return
	}
	e.egress.room.wait(m.room, nil)
	s.Limit = e.egress.limit(s.Pos)
	if s.Pos < s.Limit && e.failure.Load() == nil {
		return
	}
	m.blind = true
	e.blindFrom.Store(e.replica.State.Seq())
	s.Buf = make([]event.Event, blindBuffer)
	s.Limit = s.Pos + blindBuffer
}

// hopeless reports that waiting for consumers has no end: what they would have
// to release will never be shown to them, or they had their time.
func (m *matcher) hopeless() bool {
	e := m.engine
	return e.failure.Load() != nil || e.abandoned.Load()
}

// tellExpiry wakes the ticker when the earliest expiry has changed.
func (m *matcher) tellExpiry() {
	e := m.engine
	if at := e.replica.State.NextExpiry(); at != m.expiry {
		m.expiry = at
		e.nextExpiry.Store(at)
		e.expiryWait.wake()
	}
}
