package feed

import (
	"errors"
	"syscall"
	"time"
)

const (
	// firstRetry and lastRetry bound the waits between two tries of a full
	// socket, which double as long as it takes nothing.
	firstRetry = time.Millisecond
	lastRetry  = 64 * time.Millisecond
	// scratchSize is the most that one write carries of several frames.
	scratchSize = 64 << 10
	// writesPerPass bounds the writes to one connection before the others
	// have theirs.
	writesPerPass = 4
)

// touch lists c for writing in this pass. A blocked connection is written when
// its retry is due.
func (s *shard) scheduleWrite(c *conn) {
	if !c.dirty && !c.blocked {
		c.dirty = true
		s.dirty = append(s.dirty, c)
	}
}

// await lists c among those that the shard must look after in time: blocked or
// closing. It is called when that time is set.
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

// flushDirty gives every listed connection its turn; what is left to do stays
// listed.
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

// tally adds what this pass has sent to the feed's figures.
func (s *shard) countSent() {
	if s.sentBytes > 0 {
		s.feed.stats.bytes.Add(s.sentBytes)
		s.feed.stats.messages.Add(s.sentMessages)
		s.sentBytes, s.sentMessages = 0, 0
	}
}

// flush writes what is pending on c until nothing is left or the socket is
// full, and reports whether it stopped only to let others have their turn.
func (s *shard) flush(c *conn) (more bool) {
	for range writesPerPass {
		if c.phase >= phaseWriteClosed {
			return false
		}
		if len(c.pending) == 0 {
			c.blocked = false // what the socket refused has been dropped since
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
		// Control holds the descriptor, which is all that a write needs that
		// does not wait; RawConn.Write also prepares to wait.
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

// gather sets out to the bytes of one write and returns their number: a lone
// frame as it is, several copied behind each other.
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

// block makes c wait until its socket may have drained.
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

// retry looks after the connections that wait, if one of them is due: a shard
// with many stalled ones must not go through them at every update.
func (s *shard) retryWaiting() {
	if s.waitingDue.IsZero() || s.now.Before(s.waitingDue) {
		return
	}
	s.waitingDue = time.Time{}
	kept := s.waiting[:0]
	for _, c := range s.waiting {
		s.checkWaiting(c)
		c.waiting = c.phase != phaseDead && (c.blocked || c.phase != phaseOpen)
		if c.waiting {
			kept = append(kept, c)
			s.awaitDue(c)
		}
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
}

// attend ends a close that takes too long, tries a full socket again, and gives
// up on one that has taken nothing for SlowAfter.
func (s *shard) checkWaiting(c *conn) {
	switch {
	case c.phase == phaseDead:
	case !c.closeBy.IsZero() && !s.now.Before(c.closeBy):
		s.abort(c)
	case c.blocked && !s.now.Before(c.retryAt):
		// The shard itself may be late, so the client is judged after another try.
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

// slow tells a connection that it is too slow, should it ever read again, and
// closes it.
func (s *shard) closeSlow(c *conn) {
	s.feed.stats.slow.Add(1)
	c.collapse()
	c.push(c.encodeOwn(s.enc.fault(nil, faultSlow)), nil)
	s.close(c, CloseSlowConsumer, "SLOW_CONSUMER")
	// It is slow: else nobody would live to be told.
	c.closeBy = s.now.Add(max(s.feed.o.SlowAfter, s.feed.o.CloseWithin))
}

// close begins the end of a connection: its subscriptions are gone, what is
// pending still goes out, then a close frame, or what a stream has for one.
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

// shut ends our half of a connection whose close frame is written. The peer has
// CloseWithin for its own; its reader throws away what still comes, since a
// socket closed with unread bytes would take the close frame back.
func (s *shard) closeWrite(c *conn) {
	c.phase = phaseWriteClosed
	c.closeBy = s.now.Add(s.feed.o.CloseWithin)
	s.awaitDue(c)
	if err := c.tcp.CloseWrite(); err != nil {
		s.abort(c)
	}
}

// kill ends a connection at once and frees what the kernel holds of it.
func (s *shard) abort(c *conn) {
	if c.phase == phaseDead {
		return
	}
	// Fails only on a socket that is gone already.
	_ = c.tcp.SetLinger(0)
	s.drop(c)
}

// drop closes the socket and forgets the connection; what the kernel holds
// still goes out.
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
	// Fails only on a socket that is gone already.
	_ = c.tcp.Close()
	s.removeFromWheel(c)
	s.conns--
	s.feed.stats.byEncoding[c.encoding].Add(-1)
	s.feed.limits.release(c.ip)
}
