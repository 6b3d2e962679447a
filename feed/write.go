package feed

import (
	"bytes"
	"errors"
	"syscall"
	"time"
)

const (
	// firstRetry and lastRetry bound the pause before a full socket is tried again. It
	// doubles as long as the socket takes nothing.
	firstRetry = time.Millisecond
	lastRetry  = 64 * time.Millisecond
	// scratchSize is the largest write of several frames, in bytes.
	scratchSize = 64 << 10
	// writesPerPass bounds the writes to one connection before the next.
	writesPerPass = 4
)

// scheduleWrite lists c for writing in this pass, unless its socket is full.
func (s *shard) scheduleWrite(c *conn) {
	if !c.dirty && !c.blocked {
		c.dirty = true
		s.dirty = append(s.dirty, c)
	}
}

// awaitDue lists c, which is blocked or closing, until its next deadline. It is called
// when that is set.
func (s *shard) awaitDue(c *conn) {
	if !c.waiting {
		c.waiting = true
		s.waiting = append(s.waiting, c)
	}
	due := c.closeBy
	if c.blocked && (due.IsZero() || c.retryAt.Before(due)) {
		due = c.retryAt
	}
	if s.waitingDue.IsZero() || due.Before(s.waitingDue) {
		s.waitingDue = due
	}
}

// flushDirty writes to every listed connection. Those with more to write stay listed.
func (s *shard) flushDirty() {
	again := 0
	for _, c := range s.dirty {
		c.dirty = s.flush(c)
		if c.dirty {
			s.dirty[again] = c
			again++
		}
	}
	clear(s.dirty[again:])
	s.dirty = s.dirty[:again]
}

// reply queues a message for c alone, which is never dropped. It closes c as too slow if
// too much is pending.
func (s *shard) reply(c *conn, data []byte) {
	c.push(c.encodeOwn(data), nil)
	s.scheduleWrite(c)
	if c.pendingBytes-c.updateBytes > maxPendingAll && c.phase == phaseOpen {
		s.closeSlow(c)
	}
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
		return (*s.deskList(t.in.ID, t.kind)).snapshot(t.in)
	}
	return bytes.Clone(s.enc.snapshot(t.in, s.views[t.in.ID], t.kind))
}

// countSent adds this pass's deliveries to the feed's figures.
func (s *shard) countSent() {
	if s.sentBytes > 0 {
		s.feed.stats.bytes.Add(s.sentBytes)
		s.feed.stats.messages.Add(s.sentMessages)
		s.sentBytes, s.sentMessages = 0, 0
	}
}

// flush writes c's pending messages until none is left or the socket is full. more: it
// stopped only to let other connections write.
func (s *shard) flush(c *conn) (more bool) {
	for range writesPerPass {
		if c.phase >= phaseWriteClosed {
			return false
		}
		if len(c.pending) == 0 {
			c.blocked = false // the frames that the socket refused were dropped
		}
		s.refresh(c)
		s.queueMark(c)
		if len(c.pending) == 0 {
			c.progressAt = s.now
			if c.phase == phaseClosing {
				s.closeWrite(c)
			}
			return false
		}
		want := s.fillOut(c)
		// Control is enough for a write that does not wait, and cheaper than RawConn.Write.
		if err := c.raw.Control(s.write); err != nil {
			s.sent, s.sendErr = 0, err
		}
		s.out = nil
		if s.sendErr != nil && !errors.Is(s.sendErr, syscall.EAGAIN) {
			s.abort(c)
			return false
		}
		sent := max(s.sent, 0)
		if sent > 0 {
			c.progressAt = s.now
			s.sentBytes += uint64(sent)
			s.sentMessages += uint64(c.consume(sent))
		}
		if sent < want {
			s.block(c, sent > 0)
			return false
		}
		c.blocked, c.backoff = false, 0
	}
	return len(c.pending) > 0 || c.staleSubs > 0 || c.phase == phaseClosing
}

// fillOut sets out to the bytes of the next write and returns their number: one frame as
// it is, or a copy of several.
func (s *shard) fillOut(c *conn) int {
	first := c.pending[0].data[c.offset:]
	if len(c.pending) == 1 || len(first) >= scratchSize {
		s.out = first
		return len(first)
	}
	s.scratch = append(s.scratch[:0], first...)
	for _, f := range c.pending[1:] {
		if len(s.scratch)+len(f.data) > scratchSize {
			break
		}
		s.scratch = append(s.scratch, f.data...)
	}
	s.out = s.scratch
	return len(s.scratch)
}

// block makes c wait for room in its socket.
func (s *shard) block(c *conn, moved bool) {
	if moved || c.backoff == 0 {
		c.backoff = firstRetry
	} else {
		c.backoff = min(2*c.backoff, lastRetry)
	}
	c.blocked = true
	c.retryAt = s.now.Add(c.backoff)
	s.awaitDue(c)
}

// retryWaiting checks the waiting connections if one of them is due, so that stalled
// connections cost nothing at every update.
func (s *shard) retryWaiting() {
	if s.waitingDue.IsZero() || s.now.Before(s.waitingDue) {
		return
	}
	s.waitingDue = time.Time{}
	remaining := s.waiting[:0]
	for _, c := range s.waiting {
		s.checkWaiting(c)
		c.waiting = c.phase != phaseDead && (c.blocked || c.phase != phaseOpen)
		if c.waiting {
			remaining = append(remaining, c)
			s.awaitDue(c)
		}
	}
	clear(s.waiting[len(remaining):])
	s.waiting = remaining
}

// checkWaiting ends a close that takes too long, tries a full socket again, and closes a
// connection whose socket has taken nothing for SlowAfter.
func (s *shard) checkWaiting(c *conn) {
	switch {
	case c.phase == phaseDead:
	case !c.closeBy.IsZero() && !s.now.Before(c.closeBy):
		s.abort(c)
	case c.blocked && !s.now.Before(c.retryAt):
		// Try first, because the shard itself may be late.
		more := s.flush(c)
		if c.blocked && c.phase == phaseOpen && s.now.Sub(c.progressAt) >= s.feed.o.SlowAfter {
			s.closeSlow(c)
			more = s.flush(c)
		}
		if more {
			s.scheduleWrite(c)
		}
	}
}

// closeSlow closes a connection that does not read, with an error message in case it ever
// reads again.
func (s *shard) closeSlow(c *conn) {
	s.feed.stats.slow.Add(1)
	c.collapse()
	c.push(c.encodeOwn(s.enc.errorMessage(nil, faultSlow)), nil)
	s.close(c, CloseSlowConsumer, "SLOW_CONSUMER")
	// Give it longer than CloseWithin, because it is slow.
	c.closeBy = s.now.Add(max(s.feed.o.SlowAfter, s.feed.o.CloseWithin))
}

// close ends c's subscriptions and queues the last message behind the pending ones.
func (s *shard) close(c *conn, code uint16, text string) {
	if c.phase != phaseOpen {
		return
	}
	s.unsubscribeAll(c)
	if last := s.lastMessage(c, code, text); len(last) > 0 {
		c.push(last, nil)
	}
	c.phase = phaseClosing
	c.closeBy = s.now.Add(s.feed.o.CloseWithin)
	s.awaitDue(c)
	s.scheduleWrite(c)
}

// closeWrite ends our half of a connection whose close frame is written. The peer has
// CloseWithin for its own. The reader discards further input, because closing a socket
// with unread bytes would reset it and lose the close frame.
func (s *shard) closeWrite(c *conn) {
	c.phase = phaseWriteClosed
	c.closeBy = s.now.Add(s.feed.o.CloseWithin)
	s.awaitDue(c)
	if err := c.tcp.CloseWrite(); err != nil {
		s.abort(c)
	}
}

// abort closes a connection at once and discards the kernel's buffers.
func (s *shard) abort(c *conn) {
	if c.phase == phaseDead {
		return
	}
	// It fails only if the socket is already closed.
	_ = c.tcp.SetLinger(0)
	s.drop(c)
}

// drop closes the socket and forgets the connection; the kernel still sends its buffers.
func (s *shard) drop(c *conn) {
	if c.phase == phaseDead {
		return
	}
	s.unsubscribeAll(c)
	c.phase = phaseDead
	c.blocked = false
	clear(c.pending)
	c.pending = nil
	s.poll.remove(c)
	// It fails only if the socket is already closed.
	_ = c.tcp.Close()
	s.removeFromWheel(c)
	s.conns--
	s.feed.stats.byEncoding[c.encoding].Add(-1)
	s.feed.limits.release(c.ip)
}

func (s *shard) removeFromWheel(c *conn) {
	slot := s.wheel[c.slot]
	last := len(slot) - 1
	slot[c.slotIndex] = slot[last]
	slot[c.slotIndex].slotIndex = c.slotIndex
	slot[last] = nil
	s.wheel[c.slot] = slot[:last]
}
