package feed

import (
	"errors"
	"syscall"
	"time"

	"blockdesk/engine/marketdata"
	"blockdesk/market"
)

// wheelSlots is the number of slots over which the heartbeats of a shard's connections
// are spread.
const wheelSlots = 10

// shard owns connections: only its goroutine changes their state and writes to their
// sockets. It has one current view of each instrument, and one current list of its tickets
// and one of its sales. Snapshots show those, and the publications that the shard takes later continue from
// them.
type shard struct {
	feed  *Feed
	inbox inbox
	enc   encoder
	zip   deflater

	poll   *poll // while the feed runs
	views  []*marketdata.View
	lists  []*deskList // as Feed.lists
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
		lists:  make([]*deskList, f.set.Len()*int(deskKinds)),
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
		if p := &t.pubs[i]; p.list != nil {
			s.publishList(p)
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

// receive handles one message of a connection's reader.
func (s *shard) receive(m *connMessage) {
	c := m.conn
	switch m.kind {
	case connJoin:
		s.join(c)
	case connClosed:
		if c.phase == phaseClosing {
			s.flush(c) // the close frame, in case the reader gave up on the client's input
		}
		s.drop(c)
	case connClose:
		s.close(c, m.code, m.text)
	case connPing:
		c.inflight.Add(-1)
		if c.phase == phaseOpen {
			s.reply(c, s.enc.pongFrame([]byte(m.text)))
		}
	case connRequest:
		c.inflight.Add(-1)
		if c.phase == phaseOpen {
			s.serve(c, m.request)
		}
	}
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

// reload moves the shard to the feed's current views and lists. The subscribers of those
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
			list, cur := s.feed.deskList(market.InstrumentID(i), k).Load(), s.deskList(market.InstrumentID(i), k)
			if *cur != list {
				*cur = list
				s.markTopicStale(&of[k], false)
			}
		}
	}
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

// publishList moves one instrument to its next list of tickets or sales and queues its update. It drops a
// publication that reload has overtaken.
func (s *shard) publishList(p *publication) {
	current := s.deskList(p.list.instrument, p.list.kind)
	cur := *current
	if p.list.epoch < cur.epoch || p.list.epoch == cur.epoch && p.list.seq <= cur.seq {
		return
	}
	*current = p.list
	m := encodedMessage{frame: p.frames[p.list.kind]}
	if p.list.epoch != cur.epoch || p.list.seq != cur.seq+1 {
		m = encodedMessage{}
	}
	t := s.topic(topicRef{in: s.feed.set.Get(p.list.instrument), kind: p.list.kind})
	for _, sub := range t.subs {
		s.deliver(sub, &m)
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

// startStream sends a stream's header and welcome, and handles its request.
func (s *shard) startStream(c *conn) {
	head, request := c.stream.head, c.stream.request
	c.stream.head, c.stream.request = nil, nil
	c.push(appendRetry(head, reconnectAfter), nil)
	s.reply(c, s.enc.welcome(&s.feed.o, c.session, s.feed.epoch.Load()))
	s.serve(c, request)
}
