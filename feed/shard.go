package feed

import (
	"bytes"
	"errors"
	"syscall"
	"time"

	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// wheelSlots is the number of slots over which the heartbeats of a shard's connections
// are spread.
const wheelSlots = 10

// topic is one stream of a shard: an instrument and a kind.
type topic struct {
	in     *market.Instrument
	kind   kind
	subs   []*subscription
	shared *sharedTopic
	snap   encodedMessage // the last snapshot; zero = none
	snapOf position       // position of snap
}

// shard owns connections: only its goroutine changes their state and writes to their
// sockets. It has one current view of each instrument, and one current book of its tickets
// and one of its sales. Snapshots show those, and the publications that the shard takes later continue from
// them.
type shard struct {
	feed  *Feed
	inbox inbox
	enc   encoder
	zip   deflater

	poll   *poll // while the feed runs
	views  []*marketdata.View
	books  []*deskBook // as Feed.books
	topics []topic     // of instrument i and kind k at i*kinds+k

	wheel      [wheelSlots][]*conn
	conns      int
	nextSlot   int       // the wheel's next slot
	tickAt     time.Time // when nextSlot is due
	dirty      []*conn   // with something to write
	waiting    []*conn   // blocked or closing
	waitingDue time.Time // when the first of waiting is due; zero = none
	stop       bool

	pos       enginePos // engine position of the views
	markEvent []byte    // mark event of markPos, for all streams; nil = none yet
	markPos   enginePos

	now     time.Time // time of this pass
	scratch []byte
	out     []byte // input of write
	sent    int
	sendErr error
	write   func(fd uintptr)
	// sentBytes and sentMessages are those of this pass.
	sentBytes, sentMessages uint64
}

func newShard(f *Feed) *shard {
	s := &shard{
		feed:   f,
		inbox:  newInbox(),
		views:  make([]*marketdata.View, f.set.Len()),
		books:  make([]*deskBook, f.set.Len()*int(deskKinds)),
		topics: make([]topic, f.set.Len()*int(numKinds)),
	}
	for i := range s.topics {
		s.topics[i] = topic{
			in:     f.set.Get(market.InstrumentID(i / int(numKinds))),
			kind:   kind(i % int(numKinds)),
			shared: &f.topics[i],
		}
	}
	s.write = func(fd uintptr) {
		for {
			s.sent, s.sendErr = send(fd, s.out)
			if !errors.Is(s.sendErr, syscall.EINTR) {
				return
			}
		}
	}
	return s
}

// run serves connections until the inbox is halted and the last connection is closed.
func (s *shard) run() {
	s.now = time.Now()
	s.reload()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var t taken
	for {
		s.inbox.take(&t)
		s.now = time.Now()
		s.pass(&t)
		if s.stop && s.conns == 0 {
			return
		}
		s.inbox.setQuiet(s.conns == 0)
		wait := time.Hour
		if next := s.nextDue(); !next.IsZero() {
			wait = max(time.Until(next), 0)
		}
		if len(s.dirty) > 0 {
			wait = 0
		}
		timer.Reset(wait)
		select {
		case <-s.inbox.wake:
		case <-timer.C:
		}
	}
}

// pass handles the inbox, then what is due, then writes.
func (s *shard) pass(t *taken) {
	if t.overrun {
		s.feed.stats.overruns.Add(1)
	}
	if t.overrun || t.missed {
		s.reload()
	}
	for i := range t.pubs {
		if p := &t.pubs[i]; p.book != nil {
			s.publishBook(p)
		} else {
			s.publish(p)
		}
	}
	s.pos = t.pos
	for i := range t.messages {
		s.receive(&t.messages[i])
	}
	if t.stop && !s.stop {
		s.stop = true
		s.each(func(c *conn) {
			s.close(c, CloseRestart, "restart")
			if last := s.now.Add(s.feed.o.CloseWithin); c.closeBy.After(last) {
				c.closeBy = last // a slow connection may have had longer
			}
		})
	}
	s.tick()
	s.retryWaiting()
	s.flushDirty()
	s.countSent()
}

// nextDue returns when the shard must run again without input; zero = never.
func (s *shard) nextDue() time.Time {
	if s.conns == 0 {
		return time.Time{}
	}
	if !s.waitingDue.IsZero() && s.waitingDue.Before(s.tickAt) {
		return s.waitingDue
	}
	return s.tickAt
}

// reload moves the shard to the feed's current views and books. The subscribers of those
// that have changed get snapshots.
func (s *shard) reload() {
	for i := range s.views {
		of := s.topics[i*int(numKinds) : (i+1)*int(numKinds)]
		if cur, view := s.views[i], s.feed.views[i].Load(); cur != view {
			s.views[i] = view
			for k := range marketKinds {
				s.markTopicStale(&of[k], cur != nil && cur.Epoch == view.Epoch)
			}
		}
		for k := tickets; k < numKinds; k++ {
			book, cur := s.feed.deskBook(market.InstrumentID(i), k).Load(), s.book(market.InstrumentID(i), k)
			if *cur != book {
				*cur = book
				s.markTopicStale(&of[k], false)
			}
		}
	}
}

// book returns the shard's current book of a desk kind.
func (s *shard) book(in market.InstrumentID, k kind) **deskBook {
	return &s.books[int(in)*int(deskKinds)+int(k-marketKinds)]
}

// markTopicStale makes t's subscribers wait for a snapshot, but for those that are still
// ahead in the same epoch.
func (s *shard) markTopicStale(t *topic, sameEpoch bool) {
	for _, sub := range t.subs {
		if sameEpoch && sub.has(s.position(t).seq) {
			continue
		}
		sub.conn.markStale(sub)
		s.scheduleWrite(sub.conn)
	}
}

// position returns the position of t.
func (s *shard) position(t *topic) position {
	if t.kind >= marketKinds {
		return (*s.book(t.in.ID, t.kind)).position
	}
	return t.kind.position(s.views[t.in.ID])
}

// publish moves one instrument to its next view and queues its updates. It drops a
// publication that reload has overtaken.
func (s *shard) publish(p *publication) {
	i := int(p.next.Instrument)
	cur := s.views[i]
	if older(p.next, cur) {
		return
	}
	s.views[i] = p.next
	for k := range marketKinds {
		t := &s.topics[i*int(numKinds)+int(k)]
		if len(t.subs) == 0 {
			continue
		}
		if k == l3 && cur.Orders == nil && p.next.Orders != nil {
			for _, sub := range t.subs { // its snapshot has waited for them
				s.scheduleWrite(sub.conn)
			}
		}
		m := encodedMessage{frame: p.frames[k]}
		switch step := k.seq(p.next) - k.seq(cur); {
		case p.next.Epoch != cur.Epoch || step > 1:
			m = encodedMessage{}
		case step == 0:
			continue
		}
		for _, sub := range t.subs {
			if p.next.Epoch == cur.Epoch && sub.has(k.seq(p.next)) {
				continue
			}
			s.deliver(sub, &m)
		}
	}
}

// older reports whether a comes before b among the views of one instrument. EngineSeq is
// not enough, because a command's events may be split over two views.
func older(a, b *marketdata.View) bool {
	if a.Epoch != b.Epoch {
		return a.Epoch < b.Epoch
	}
	return a.DepthSeq < b.DepthSeq || a.TradesSeq < b.TradesSeq || a.TickerSeq < b.TickerSeq
}

// deliver queues one update. It makes the subscriber wait for a snapshot instead if there
// is no update, if the update is a ticker behind a full socket (conflation), or if too
// much is pending (collapse).
func (s *shard) deliver(sub *subscription, m *encodedMessage) {
	c := sub.conn
	data := m.as(c.encoding, &s.zip)
	switch {
	case sub.stale:
	case data == nil:
		c.markStale(sub)
	case c.blocked && sub.topic.kind == ticker:
		s.feed.stats.conflated.Add(1)
		c.markStale(sub)
	case c.updateBytes+len(data) > s.feed.o.MaxPending || len(c.pending) >= maxPendingFrames:
		s.feed.stats.collapsed.Add(1)
		c.collapse()
		c.markStale(sub)
	default:
		c.push(data, sub)
	}
	s.scheduleWrite(c)
}

// snapshot returns the snapshot of t, encoded once for each position and encoding.
func (s *shard) snapshot(t *topic, e encoding) []byte {
	if p := s.position(t); t.snapOf != p || t.snap.frame == nil {
		t.snap, t.snapOf = encodedMessage{frame: s.fullFrame(t), large: true}, p
	}
	return t.snap.as(e, &s.zip)
}

// fullFrame returns an immutable frame with the snapshot of t.
func (s *shard) fullFrame(t *topic) []byte {
	if t.kind >= marketKinds {
		return (*s.book(t.in.ID, t.kind)).snapshot(t.in)
	}
	return bytes.Clone(s.enc.snapshot(t.in, s.views[t.in.ID], t.kind))
}

// refresh queues the snapshots that c waits for, as far as there is room.
func (s *shard) refresh(c *conn) {
	if c.staleSubs == 0 || c.blocked || c.phase != phaseOpen {
		return
	}
	for _, sub := range c.subs {
		if !sub.stale || sub.topic.kind == l3 && s.views[sub.topic.in.ID].Orders == nil {
			continue
		}
		if c.updateBytes > s.feed.o.MaxPending/2 {
			return
		}
		sub.stale, sub.aheadOfShard = false, 0
		c.staleSubs--
		c.push(s.snapshot(sub.topic, c.encoding), sub)
	}
}

// tick turns the wheel: every connection gets its heartbeat once an interval.
func (s *shard) tick() {
	step := s.feed.o.Heartbeat / wheelSlots
	if s.conns == 0 {
		s.tickAt = s.now.Add(step)
		return
	}
	for range wheelSlots {
		if s.now.Before(s.tickAt) {
			return
		}
		s.nextSlot = (s.nextSlot + 1) % wheelSlots
		s.tickAt = s.tickAt.Add(step)
		for _, c := range s.wheel[s.nextSlot] {
			s.heartbeat(c)
		}
	}
	s.tickAt = s.now.Add(step)
}

// heartbeat closes c if a deadline has passed: of a message, of unread answers, of the
// first subscription. Otherwise it sends a heartbeat, if c wants one and its socket is
// not full.
func (s *shard) heartbeat(c *conn) {
	if c.phase != phaseOpen {
		return
	}
	if begun := c.messageSince.Load(); begun != 0 && s.now.UnixNano()-begun >= int64(s.feed.o.MessageWithin) {
		s.close(c, ClosePolicy, "message took too long")
		return
	}
	if s.backlogTooOld(c) {
		s.closeSlow(c)
		return
	}
	if len(c.subs) == 0 {
		if s.now.Sub(c.unsubscribedSince) >= s.feed.o.SubscribeWithin {
			s.close(c, CloseNoSubscription, "no subscription")
		}
		return
	}
	s.expireAhead(c)
	if !c.heartbeat || c.blocked {
		return
	}
	s.refresh(c)
	s.enc.openHeartbeat(s.feed.o.Clock().UnixNano())
	more := false
	for _, sub := range c.subs {
		if at := s.position(sub.topic).seq; !sub.stale && sub.aheadOfShard <= at {
			s.enc.heartbeatSeq(sub.topic.in, sub.topic.kind, at, more)
			more = true
		}
	}
	s.reply(c, s.enc.closeHeartbeat())
}

// expireAhead sends snapshots of the topics in which c is still ahead after AheadWithin:
// it named sequence numbers that never existed, or this process lags.
func (s *shard) expireAhead(c *conn) {
	if c.aheadUntil.IsZero() || s.now.Before(c.aheadUntil) {
		return
	}
	c.aheadUntil = time.Time{}
	for _, sub := range c.subs {
		if sub.has(s.position(sub.topic).seq + 1) {
			c.markStale(sub)
			s.scheduleWrite(c)
		}
	}
}

// backlogTooOld reports whether more than maxBacklog of c's answers have been pending for
// backlogWithin.
func (s *shard) backlogTooOld(c *conn) bool {
	if c.pendingBytes-c.updateBytes <= maxBacklog {
		c.backlogSince = time.Time{}
		return false
	}
	if c.backlogSince.IsZero() {
		c.backlogSince = s.now
	}
	return s.now.Sub(c.backlogSince) >= backlogWithin
}

func (s *shard) each(f func(*conn)) {
	for _, slot := range s.wheel {
		for _, c := range slot {
			f(c)
		}
	}
}

// addToWheel puts c into the emptiest slot. A round robin would fill one slot if
// connections come and go in the same number.
func (s *shard) addToWheel(c *conn) {
	c.slot = 0
	for i := range s.wheel {
		if len(s.wheel[i]) < len(s.wheel[c.slot]) {
			c.slot = i
		}
	}
	c.slotIndex = len(s.wheel[c.slot])
	s.wheel[c.slot] = append(s.wheel[c.slot], c)
}

func (s *shard) removeFromWheel(c *conn) {
	slot := s.wheel[c.slot]
	last := len(slot) - 1
	slot[c.slotIndex] = slot[last]
	slot[c.slotIndex].slotIndex = c.slotIndex
	slot[last] = nil
	s.wheel[c.slot] = slot[:last]
}

// join adds a new connection and sends its welcome.
func (s *shard) join(c *conn) {
	s.conns++
	s.addToWheel(c)
	c.phase = phaseOpen
	c.unsubscribedSince, c.progressAt = s.now, s.now
	s.feed.stats.byEncoding[c.encoding].Add(1)
	if c.stream != nil {
		s.startStream(c)
	} else {
		s.reply(c, s.enc.welcome(&s.feed.o, c.session, s.feed.epoch.Load()))
	}
	if s.stop {
		s.close(c, CloseRestart, "restart")
	}
	if err := s.poll.add(c); err != nil {
		s.abort(c)
	}
}
