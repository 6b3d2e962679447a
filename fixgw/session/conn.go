package session

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"blockdesk/fixgw/wire"
	"blockdesk/internal/ratelimit"
)

// conn is one client's connection as quickfix sees it. It enforces the limits that
// quickfix does not have.
//
// Reading: quickfix gets nothing until the Logon has been proven (logon.go). Afterwards
// each Read returns one whole message, whose length and checksum are right. No more
// messages wait for the session than quickfix's channel can hold. So, when the session
// ends, quickfix's reading goroutine waits in Read, which returns, and not at a channel
// that nothing reads.
//
// Writing: Write and push copy into a buffer and return at once, so that neither
// quickfix's session loop nor the caller of Deliver waits for a socket. Bytes that the
// socket accepts without waiting are written at once. Run writes the rest, as much as
// possible per call. A client is cut off if its buffer is full, or if a write hangs for
// two heartbeats.
type conn struct {
	net.Conn
	server   *Server
	accepted time.Time
	socket   syscall.RawConn         // nil = none, as in tests
	silent   atomic.Bool             // no whole message has come; before the logon
	waits    *list.Element           // in listener.pending; guarded by its mutex
	address  netip.Addr              // see addressOf
	known    bool                    // its address has proven a Logon before
	session  atomic.Pointer[Session] // nil before the logon

	// Reading: used by the goroutine of admit until the logon, then by quickfix's.
	in         []byte // received
	from       int    // of in: the unread bytes begin there
	used       int    // bytes that the last message takes, from there
	frame      []byte // rest of the message that Read hands over; aliases in
	toQuickfix quickfixInput
	request    wire.Ordinary
	placed     bool // the request was: handler.RunInline is to be called
	gap        gap
	watched    time.Time     // gap.since that the socket's read deadline belongs to
	received   atomic.Uint64 // reads that had bytes
	garbage    int
	gapBytes   int // bytes of messages with numbers too high, in this gap
	flood      ratelimit.Bucket
	delivered  uint64 // messages handed to quickfix, plus those that the session had begun with before

	mu sync.Mutex
	writeQueue
	closing      bool          // write the waiting bytes, then close
	ended        bool          // Run has returned
	cut          error         // why reading and writing have ended; nil = they have not
	writeTimeout time.Duration // how long a write may take

	wake chan struct{} // capacity 1: out, closing or cut has changed
}

// inChanCapacity is how many messages may lie between a connection and its session.
// quickfix's channel takes twice as many, because what its last connection has left may
// be counted for this one.
const inChanCapacity = 64

// roomPause is the pause between two looks at a busy session.
const roomPause = 200 * time.Microsecond

var (
	errSlowReader = errors.New("client reads too slowly")
	errClosed     = errors.New("connection is closed")
	errRate       = errors.New(wire.CodeRateLimited)
)

func newConn(v *Server, inner net.Conn) *conn {
	c := &conn{
		Conn: inner, server: v, accepted: v.options.Now(), wake: make(chan struct{}, 1),
		writeTimeout: v.options.FlushTimeout, in: make([]byte, 0, v.options.LogonBytes),
	}
	c.silent.Store(true)
	c.writeQueue.init(inner)
	return c
}

// Read gives quickfix the next whole message, or what is left of it; the first is
// the Logon.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.frame) == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
		if err := c.waitForRoom(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.frame)
	c.frame = c.frame[n:]
	return n, nil
}

// next makes frame the next message for quickfix, and handles ordinary requests itself
// (fastpath.go). A message that breaks a rule of the connection ends the session with a
// Logout that names the rule.
func (c *conn) next() error {
	s := c.session.Load()
	for {
		c.watchGap()
		frame, err := c.receive(c.server.options.MaxMessage)
		if errors.Is(err, os.ErrDeadlineExceeded) && !c.leaving() {
			if err = c.gap.expired(s.Messages.target.Load(), c.toQuickfix.highest, c.server.options.Now(), c.server.options.GapTimeout); err == nil {
				continue
			}
		}
		if err != nil {
			return c.end(err)
		}
		c.note(wire.Received, frame)
		if s.kicked.Load() {
			continue
		}
		now := c.server.options.Now()
		if !c.flood.Take(now.UnixNano(), c.server.rates.flood) {
			return c.end(fmt.Errorf("%w: more than %d messages a second", errRate, hardRate*c.server.options.Rate))
		}
		x := &c.request
		if x.Scan(frame, s.id.TargetCompID, s.id.SenderCompID) && c.quickfixIdle(s, x.Seq, now) && s.handleDirect(c, x, now) {
			if c.placed {
				s.Handler.RunInline()
			}
			continue
		}
		wire.MaskData(frame)
		seq, err := wire.CheckFrame(frame)
		if err != nil {
			return c.end(err)
		}
		if err := c.limitGapBytes(s, seq, len(frame)); err != nil {
			return c.end(err)
		}
		if err := c.gap.follow(s.Messages.target.Load(), seq, wire.MsgType(frame), now, c.server.options.GapTimeout); err != nil {
			return c.end(err)
		}
		c.toQuickfix.note(frame, seq, now)
		c.frame = frame
		return nil
	}
}

// watchGap sets the read deadline at which an open gap ends the session, so that it ends
// also if the client sends nothing more.
func (c *conn) watchGap() {
	if c.gap.since.Equal(c.watched) {
		return
	}
	c.watched = c.gap.since
	due := time.Time{}
	if !c.watched.IsZero() {
		due = time.Now().Add(c.server.options.GapTimeout)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut == nil { // a later deadline would undo the cut's
		c.Conn.SetReadDeadline(due)
	}
}

// waitForRoom waits until the session can queue one more message, or has ended.
func (c *conn) waitForRoom() error {
	begun := &c.session.Load().Messages.startedByQuickfix
	for int64(c.delivered-begun.Load()) >= inChanCapacity {
		if c.leaving() {
			return errClosed
		}
		time.Sleep(roomPause)
	}
	c.delivered++
	return nil
}

// end logs the session out with the reason, if the reason is meant for the client. A
// Logout that is sent before quickfix has answered the Logon would be lost.
func (c *conn) end(err error) error {
	if errors.Is(err, wire.ErrTooLarge) || errors.Is(err, wire.ErrField) || errors.Is(err, wire.ErrNotFIX) || errors.Is(err, errRate) || errors.Is(err, errMissing) {
		s := c.session.Load()
		for limit := time.Now().Add(c.server.options.LogonGrace); !s.loggedOn.Load() && !c.leaving() && time.Now().Before(limit); {
			time.Sleep(logonPause)
		}
		if s.loggedOn.Load() {
			s.kick(err.Error())
		}
	}
	return err
}

// leaving reports whether the connection is closed or about to be.
func (c *conn) leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing || c.cut != nil
}

// logonPause is the pause between two looks at a Logon that quickfix has not answered.
const logonPause = 2 * time.Millisecond

// limitGapBytes bounds the bytes of messages that quickfix keeps while a gap is open. The
// session may be as many messages behind as lie between it and this goroutine.
func (c *conn) limitGapBytes(s *Session, seq uint64, size int) error {
	expected := uint64(s.Messages.NextTargetMsgSeqNum())
	if expected > c.toQuickfix.highest {
		c.gapBytes = 0 // the gap is closed: nothing is kept
	}
	if seq <= expected+inChanCapacity+2 {
		if seq == expected {
			c.gapBytes = max(0, c.gapBytes-size)
		}
		return nil
	}
	if c.gapBytes += size; c.gapBytes > MaxAhead {
		return fmt.Errorf("%w: more than %d bytes are queued behind missing message %d", errRate, MaxAhead, expected)
	}
	return nil
}

// receive returns the next message whose length and checksum are right. The message
// aliases c.in until the next call.
func (c *conn) receive(most int) ([]byte, error) {
	c.from += c.used
	c.used = 0
	for {
		skip, n, err := wire.ScanFrame(c.in[c.from:], most)
		switch {
		case err != nil:
			return nil, err
		case n > 0:
			c.used = n
			return c.in[c.from : c.from+n], nil
		case skip > 0:
			if c.garbage += skip; c.garbage > MaxGarbage {
				return nil, fmt.Errorf("%w: more than %d bytes", wire.ErrNotFIX, MaxGarbage)
			}
			c.from += skip
			continue
		}
		if err := c.fill(most); err != nil {
			return nil, err
		}
	}
}

// fill reads what the socket has, at least one byte.
func (c *conn) fill(most int) error {
	c.in = c.in[:copy(c.in, c.in[c.from:])]
	c.from = 0
	if len(c.in) == cap(c.in) {
		if most += wire.MaxHeader; cap(c.in) >= most {
			return wire.ErrTooLarge
		}
		grown := make([]byte, len(c.in), min(most, max(2*cap(c.in), minRead)))
		copy(grown, c.in)
		c.in = grown
	}
	n, err := c.Conn.Read(c.in[len(c.in):cap(c.in)])
	c.in = c.in[:len(c.in)+n]
	if n > 0 {
		c.received.Add(1)
		return nil
	}
	return err
}

const minRead = 4 << 10

// waiting returns the number of bytes that the client has not read.
func (c *conn) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.out) + len(c.held)
}

// Close closes the socket after the waiting bytes are written, which may take
// Options.FlushTimeout. It does not wait for that. quickfix calls it when its session has released the connection.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	c.signal()
	c.releaseSession()
	if c.cut != nil {
		return nil // a later deadline would undo the cut's
	}
	return c.Conn.SetWriteDeadline(time.Now().Add(c.server.options.FlushTimeout))
}

// releaseSession lets another connection have the session once quickfix has closed this
// one and nothing more is written. Earlier, quickfix would refuse the next connection
// silently. It needs mu.
func (c *conn) releaseSession() {
	if s := c.session.Load(); s != nil && c.closing && c.ended {
		s.conn.CompareAndSwap(c, nil)
	}
}

// cutOff ends the connection without sending anything.
func (c *conn) cutOff(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cutLocked(why)
}

func (c *conn) cutLocked(why error) {
	if c.cut == nil {
		c.cut = why
		c.Conn.SetDeadline(time.Unix(1, 0)) // wakes a Read and a Write that wait
	}
	c.signal()
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run writes to the socket until the connection is closed or cut, or ctx ends.
func (c *conn) Run(ctx context.Context) error {
	defer func() {
		c.Conn.Close()
		c.server.listener.forget(c)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
		c.releaseSession()
	}()
	stop := context.AfterFunc(ctx, func() { c.cutOff(ctx.Err()) })
	defer stop()
	var batch []byte
	for {
		c.mu.Lock()
		batch, c.out = c.out, batch[:0]
		c.writing = len(batch) > 0
		closing, cut := c.closing, c.cut
		c.mu.Unlock()
		switch {
		case cut != nil:
			return cut
		case len(batch) > 0:
			if err := c.write(batch); err != nil {
				return err
			}
			if cap(batch) > maxKeptBatch {
				batch = nil
			}
		case closing:
			return nil
		default:
			<-c.wake
		}
	}
}

// maxKeptBatch is the largest buffer that a quiet connection holds on to.
const maxKeptBatch = 64 << 10

// write sets its deadline under mu, where cutOff cannot set one in between: a later
// deadline would undo the one by which cutOff wakes a write.
func (c *conn) write(batch []byte) error {
	c.mu.Lock()
	writeTimeout, err := c.writeTimeout, c.cut
	if c.closing {
		writeTimeout = c.server.options.FlushTimeout
	}
	if err == nil {
		err = c.Conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := c.Conn.Write(batch); err != nil {
		c.cutOff(err)
		return err
	}
	return nil
}

// note adds messages of c's session to the message log, if there is a log and a session. It
// never waits for the disk.
func (c *conn) note(d wire.Direction, messages []byte) {
	log, s := c.server.options.MessageLog, c.session.Load()
	if log != nil && s != nil {
		log.Record(d, s.id.TargetCompID, c.server.options.Now(), messages)
	}
}
