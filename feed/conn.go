package feed

import (
	"bytes"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"blockdesk/internal/ratelimit"
)

// subscription is one connection's subscription to a topic of its shard.
type subscription struct {
	conn  *conn
	topic *topic
	index int // in topic.subs
	// stale: the subscriber waits for a snapshot and gets no update before it.
	stale bool
	// aheadOfShard is the subscriber's seq while the shard has not reached it; the subscriber
	// resumed from another shard or process. Zero = not ahead.
	aheadOfShard uint64
}

// frame is a pending message. An update or snapshot has a sub, and may be dropped and
// replaced by a snapshot; an answer has none.
type frame struct {
	data []byte
	sub  *subscription
}

// phase is the phase of a connection's life.
type phase uint8

const (
	phaseOpen        phase = iota + 1
	phaseClosing           // the close frame is queued
	phaseWriteClosed       // all is written; waiting for the peer's end
	phaseDead              // the socket is closed
)

// conn is a connection, a WebSocket or a stream of server-sent events. The fields that a
// delivery uses come first, together, because a shard visits all its connections at every
// update and memory access dominates.
type conn struct {
	raw      syscall.RawConn
	encoding encoding

	// Of the shard.
	phase        phase
	dirty        bool // in shard.dirty
	waiting      bool // in shard.waiting
	blocked      bool // the socket is full
	pending      []frame
	offset       int // written bytes of pending[0]
	pendingBytes int // of pending, less offset
	updateBytes  int // of pending frames with a sub
	staleSubs    int // stale subscriptions
	// aheadUntil is the time until which subscriptions may be ahead; zero = none is
	// ahead.
	aheadUntil time.Time

	progressAt time.Time     // when the socket last took a byte, or nothing was pending
	backoff    time.Duration // pause before retryAt
	retryAt    time.Time     // when to try a full socket again
	closeBy    time.Time     // closing: deadline of the phase

	subs              []*subscription
	heartbeat         bool
	unsubscribedSince time.Time // when it last lost its subscriptions
	backlogSince      time.Time // since when more than maxBacklog of answers is pending; zero = is not
	slot              int       // in the shard's wheel
	slotIndex         int       // in the slot

	// Of all goroutines: immutable or atomic.
	inbox    *inbox
	tcp      *net.TCPConn
	ip       netip.Addr
	session  string
	stream   *stream      // nil = a WebSocket
	inflight atomic.Int32 // requests that the shard has not handled
	// messageSince is when the incomplete message that the reader has began, Unix ns;
	// zero = none.
	messageSince atomic.Int64

	// Of the reader.
	in         decoder
	rate       ratelimit.Bucket // of messages; holds those of one second
	earlyInput []byte           // input that came with the upgrade request
	// ignoreInput: discard further input, at most drainLeft bytes.
	ignoreInput bool
	drainLeft   int

	// pollSlot and pollGen identify the connection in the poll; they are set before
	// it is read.
	pollSlot, pollGen int32
}

// stream is the state that a connection with server-sent events has in addition to
// conn.
type stream struct {
	head     []byte    // of the response; nil = queued
	request  *request  // of the query; nil = handled
	lastMark enginePos // the last queued mark event that was not dropped
}

// keepPending is the largest pending slice that an idle connection keeps, in frames, so
// that a connection that was slow once does not hold its memory.
const keepPending = 32

// push queues one frame.
func (c *conn) push(data []byte, sub *subscription) {
	c.pending = append(c.pending, frame{data: data, sub: sub})
	c.pendingBytes += len(data)
	if sub != nil {
		c.updateBytes += len(data)
	}
}

// consume removes n written bytes from pending and returns the number of completed
// frames.
func (c *conn) consume(n int) (done int) {
	c.pendingBytes -= n
	n += c.offset
	for done < len(c.pending) && n >= len(c.pending[done].data) {
		f := &c.pending[done]
		n -= len(f.data)
		if f.sub != nil {
			c.updateBytes -= len(f.data)
		}
		*f = frame{}
		done++
	}
	c.offset = n
	switch {
	case done == len(c.pending) && cap(c.pending) > keepPending:
		c.pending = nil
	case done == len(c.pending):
		c.pending = c.pending[:0]
	case done > 0:
		rest := copy(c.pending, c.pending[done:])
		clear(c.pending[rest:])
		c.pending = c.pending[:rest]
	}
	return done
}

// collapse drops pending updates and snapshots, but for a partly written frame, and makes
// their subscriptions stale. Answers stay, in order. Messages that name sequence numbers
// of the dropped ones are dropped too.
func (c *conn) collapse() {
	remaining := c.pending[:0]
	for i, f := range c.pending {
		lasting := f.sub == nil && !c.reportsSeqs(f.data)
		if lasting || i == 0 && c.offset > 0 {
			remaining = append(remaining, f)
			continue
		}
		c.pendingBytes -= len(f.data)
		if f.sub == nil {
			continue
		}
		c.updateBytes -= len(f.data)
		c.markStale(f.sub)
	}
	clear(c.pending[len(remaining):])
	c.pending = remaining
	if c.stream != nil {
		c.stream.lastMark = enginePos{} // it may have been dropped
	}
}

// reportsSeqs reports whether a pending message names sequence numbers: a heartbeat or a
// mark event. It is wrong once an update before it is dropped.
func (c *conn) reportsSeqs(data []byte) bool {
	if c.encoding == eventStream {
		return isMark(data) || bytes.HasPrefix(data, []byte("event: heartbeat\n"))
	}
	return len(data) > headRoom && data[0] == finText &&
		bytes.HasPrefix(framePayload(data), []byte(heartbeatHead))
}

func (c *conn) markStale(sub *subscription) {
	if !sub.stale {
		sub.stale = true
		c.staleSubs++
	}
}

// has reports whether the subscriber, being ahead, already has the update to seq. With
// the first update that it does not have it is no longer ahead.
func (sub *subscription) has(seq uint64) bool {
	if sub.aheadOfShard < seq {
		sub.aheadOfShard = 0
	}
	return sub.aheadOfShard != 0
}

// encodeOwn returns a copy of one of the encoder's frames in c's encoding.
func (c *conn) encodeOwn(frame []byte) []byte {
	if c.encoding == eventStream {
		return appendEvent(nil, frame)
	}
	return bytes.Clone(frame)
}

// find returns c's subscription to that instrument and channel, or nil.
func (c *conn) find(ref topicRef) *subscription {
	for _, sub := range c.subs {
		if sub.topic.in == ref.in && sub.topic.kind.sameChannel(ref.kind) {
			return sub
		}
	}
	return nil
}
