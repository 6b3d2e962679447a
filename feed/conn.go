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

// subscription is one connection's interest in one topic of its shard.
type subscription struct {
	conn  *conn
	topic *topic
	index int // its index in topic.subs
	// stale: the subscriber waits for a snapshot and gets no update before it.
	stale bool
	// ahead is where the subscriber is while the shard is not there yet: it has
	// been served elsewhere, and gets what comes after. Zero = it is not ahead.
	ahead uint64
}

// frame is one message that waits for a socket. sub is set for what may be
// dropped and replaced by a snapshot; answers have none.
type frame struct {
	data []byte
	sub  *subscription
}

// dialect is how a connection takes messages.
type encoding uint8

const (
	plain       encoding = iota // WebSocket frames as they are encoded
	deflated                    // WebSocket frames, snapshots compressed (RFC 7692)
	eventStream                 // server-sent events
	encodings                   // their number
)

// phase is where a connection stands between welcome and close.
type phase uint8

const (
	phaseOpen        phase = iota + 1
	phaseClosing           // the close frame is queued
	phaseWriteClosed       // all is written; the peer's end is awaited
	phaseDead              // the socket is closed; what remains of it is forgotten
)

// conn is one connection, of a WebSocket or of server-sent events. What a
// delivery touches comes first, together: a shard goes through all of its
// connections at every update, and memory is what that costs.
type conn struct {
	raw      syscall.RawConn
	encoding encoding

	// ——— the shard's ———
	phase        phase
	dirty        bool // listed in the shard's dirty
	waiting      bool // listed in the shard's waiting
	blocked      bool // the socket was full
	pending      []frame
	offset       int // bytes of pending[0] that are written
	pendingBytes int // of all pending, less offset
	updateBytes  int // of those with a sub
	staleSubs    int // subscriptions that wait for a snapshot
	// patience is until when subscriptions may be ahead; zero = none was.
	aheadUntil time.Time

	progressAt time.Time     // when the socket last accepted a byte, or had nothing to
	backoff    time.Duration // the wait before retryAt
	retryAt    time.Time     // when to try a full socket again
	closeBy    time.Time     // closing: when to stop being polite

	subs              []*subscription
	heartbeat         bool
	unsubscribedSince time.Time // since when it has had no subscription
	backlogSince      time.Time // since when more than maxBacklog of answers waits; zero = it does not
	slot              int       // of the shard's wheel
	slotIndex         int       // its index in the slot

	// ——— everybody's, set once or atomic ———
	shard    *shard
	tcp      *net.TCPConn
	ip       netip.Addr
	session  string
	stream   *stream      // nil = a WebSocket
	inflight atomic.Int32 // requests that the shard has not served
	// begun is when the message that the reader is within began, Unix ns; zero
	// = it is within none.
	messageSince atomic.Int64

	// ——— its reader's ———
	in    decoder
	rate  ratelimit.Bucket // of messages: one second of them at once
	early []byte           // what came behind the upgrade request and has not been read
	// deaf: what the client still sends is thrown away, drain bytes at most.
	ignoreInput bool
	drainLeft   int

	// seat and turn are where its poll finds it; set before it is read.
	pollSlot, pollGen int32
}

// keepPending is the most frames whose memory a connection with nothing pending
// keeps: one that was slow for a while must not hold what it needed then.
const keepPending = 32

// push queues one frame. A frame with a sub counts as live.
func (c *conn) push(data []byte, sub *subscription) {
	c.pending = append(c.pending, frame{data: data, sub: sub})
	c.pendingBytes += len(data)
	if sub != nil {
		c.updateBytes += len(data)
	}
}

// written takes n bytes off the head of what is pending and returns how many
// frames are done.
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

// collapse drops what is pending for subscriptions, all but a frame that is
// half written, and marks those subscriptions stale. Answers stay, in order; what
// would tell of the messages that are dropped does not.
func (c *conn) collapse() {
	kept := c.pending[:0]
	for i, f := range c.pending {
		lasting := f.sub == nil && !c.reportsSeqs(f.data)
		if lasting || i == 0 && c.offset > 0 {
			kept = append(kept, f)
			continue
		}
		c.pendingBytes -= len(f.data)
		if f.sub == nil {
			continue
		}
		c.updateBytes -= len(f.data)
		c.markStale(f.sub)
	}
	clear(c.pending[len(kept):])
	c.pending = kept
	if c.stream != nil {
		c.stream.lastMark = enginePos{} // perhaps it is among what was dropped
	}
}

// reportsSeqs reports whether a pending message says how far the streams are: a
// heartbeat, or a stream's mark. It is true only behind what it tells of, which
// a client would else miss.
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

// knows reports whether the subscriber has had the update that leads to seq. Once
// one comes that it has not, it is not ahead any more.
func (sub *subscription) has(seq uint64) bool {
	if sub.ahead < seq {
		sub.ahead = 0
	}
	return sub.ahead != 0
}

// own returns a message of the encoder's in c's dialect, in memory of its own.
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
