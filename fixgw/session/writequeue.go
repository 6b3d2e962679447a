package session

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"

	"blockdesk/fixgw/wire"
)

// writeQueue keeps a connection's messages in the order of their sequence numbers. It needs
// to, because quickfix's messages come from its writer goroutine, some time after they were
// numbered, and the messages of Deliver come at once. Guarded by conn.mu.
//
// Delivered messages wait in held until the messages before them have come. The wait is
// short: while the session is online, quickfix hands its numbered messages to its writer;
// otherwise the connection ends. They also wait for a replay, because quickfix does not
// mix new messages with replayed ones.
type writeQueue struct {
	out         []byte // in order, waiting to be written
	held        []byte
	heldBatches []heldBatch // of held
	// due is the number that goes out next; 0 = quickfix's Logon has not come.
	due uint64
	// writing: Run is in the middle of a write.
	writing bool

	// raw is the socket of a connection without TLS; nil = only Run writes.
	raw         syscall.RawConn
	writeSocket func(fd uintptr) bool // bound once
	written     int
	writeErr    error
}

// heldBatch is a delivered batch that waits for messages of quickfix.
type heldBatch struct {
	first, next    uint64 // its numbers: first to next-1
	quickfixBefore uint64 // number of messages that quickfix's writer must have passed on before
	size           int    // bytes of held
}

func (l *writeQueue) init(inner any) {
	if s, ok := inner.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			l.raw, l.writeSocket = raw, l.attempt
		}
	}
}

// attempt writes what the socket takes without waiting.
func (l *writeQueue) attempt(fd uintptr) bool {
	for {
		l.written, l.writeErr = syscall.Write(int(fd), l.out)
		if !errors.Is(l.writeErr, syscall.EINTR) {
			return true
		}
	}
}

// push queues a delivered batch: the messages numbered first to next-1. They go out after
// quickfix's writer has passed on quickfixBefore messages. It never waits.
func (c *conn) push(first, next, quickfixBefore uint64, messages []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut != nil || c.closing || c.overfull(len(messages)) {
		return
	}
	s := c.session.Load()
	if len(c.heldBatches) > 0 || c.due != first || s.Messages.writtenByQuickfix.Load() < quickfixBefore {
		c.held = append(c.held, messages...)
		c.heldBatches = append(c.heldBatches, heldBatch{first, next, quickfixBefore, len(messages)})
		return
	}
	c.put(messages)
	c.due = next
	c.flush()
}

// overfull cuts off a client if too many bytes wait for it. It needs mu.
func (c *conn) overfull(more int) bool {
	waits := len(c.out) + len(c.held)
	if waits+more <= c.server.options.MaxOutbox {
		return false
	}
	c.cutLocked(fmt.Errorf("%w: %d bytes queued", errSlowReader, waits))
	return true
}

func (c *conn) put(messages []byte) {
	c.out = append(c.out, messages...)
	c.note(wire.Sent, messages)
}

// Write takes a message of quickfix's for the client. It never waits.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.session.Load()
	if s != nil {
		s.Messages.writtenByQuickfix.Add(1)
	}
	switch {
	case c.cut != nil:
		return 0, c.cut
	case c.closing:
		return 0, errClosed
	case c.overfull(len(p)):
		return 0, c.cut
	}
	seq, logon := numberOf(p)
	if logon {
		c.due = seq
	}
	if seq > 0 {
		c.release(seq)
	}
	c.put(p)
	if seq > 0 {
		c.due = seq + 1
	}
	if s != nil {
		c.release(c.due)
	}
	c.flush()
	return len(p), nil
}

// numberOf returns the number that a message of quickfix uses: 0 for a message that is
// sent again and for a gap fill between such. logon reports whether it is a Logon.
func numberOf(message []byte) (seq uint64, logon bool) {
	msgType := []byte(nil)
	for rest := message; len(rest) > 0; {
		end := bytes.IndexByte(rest, wire.SOH)
		if end < 0 {
			break
		}
		tag, value := wire.SplitField(rest[:end])
		rest = rest[end+1:]
		switch tag {
		case 8, 9, 49, 52, 56:
		case 35:
			msgType = value
		case 34:
			seq, _ = wire.ParseSeq(value) // quickfix's own
		case 43:
			return 0, false
		default:
			// The header fields that we look for come first.
			return seq, string(msgType) == "A"
		}
	}
	return seq, string(msgType) == "A"
}

// release moves held batches that wait for messages before seq. It needs mu.
func (c *conn) release(seq uint64) {
	if c.due == 0 {
		return
	}
	taken := c.session.Load().Messages.writtenByQuickfix.Load()
	for len(c.heldBatches) > 0 && c.heldBatches[0].first <= seq && taken >= c.heldBatches[0].quickfixBefore {
		p := c.heldBatches[0]
		if p.first >= c.due {
			c.put(c.held[:p.size])
			c.due = p.next
			seq = max(seq, c.due)
		}
		c.held = c.held[:copy(c.held, c.held[p.size:])]
		c.heldBatches = c.heldBatches[:copy(c.heldBatches, c.heldBatches[1:])]
	}
}

// restart drops the waiting messages: the numbers start again at 1 with the next Logon.
func (c *conn) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due, c.held, c.heldBatches = 0, c.held[:0], c.heldBatches[:0]
}

// flush writes what the socket takes without waiting, on the caller's goroutine, and
// leaves the rest to Run: waking another goroutine costs more than the write. It needs
// mu.
func (c *conn) flush() {
	if len(c.out) == 0 {
		return
	}
	if c.raw == nil || c.writing || c.closing || c.cut != nil {
		c.signal()
		return
	}
	c.written, c.writeErr = 0, nil
	if err := c.raw.Write(c.writeSocket); err != nil {
		// The deadline of Run's last write has passed: Run sets another.
		c.signal()
		return
	}
	if c.writeErr != nil && !errors.Is(c.writeErr, syscall.EAGAIN) {
		c.cutLocked(c.writeErr)
		return
	}
	c.out = c.out[:copy(c.out, c.out[max(c.written, 0):])]
	if len(c.out) > 0 {
		c.signal()
	} else if cap(c.out) > maxKeptBatch {
		c.out = nil
	}
}
