package session

import (
	"container/list"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"blockdesk/fixgw/wire"
	"blockdesk/internal/ratelimit"
)

// conn is one client's connection as quickfix sees it. It enforces the limits that
// quickfix does not have.
//
// Reading: quickfix gets nothing until the Logon has been authenticated (logon.go). Afterwards
// each Read returns one whole message, whose length and checksum are right. No more
// messages wait for the session than quickfix's channel can hold. So, when the session
// ends, quickfix's reading goroutine waits in Read, which returns, and not at a channel
// that nothing reads.
//
// Writing: see socket.
type conn struct {
	socket
	accepted   time.Time
	descriptor syscall.RawConn         // of the socket below TLS; nil = none, as in tests
	silent     atomic.Bool             // no whole message has come; before the logon
	waits      *list.Element           // in listener.pending; guarded by its mutex
	address    netip.Addr              // see addressOf
	known      bool                    // its address has logged on before
	session    atomic.Pointer[Session] // nil before the logon

	// Reading: used by the goroutine of admit until the logon, then by quickfix's.
	in         []byte // received
	from       int    // of in: the unread bytes begin there
	used       int    // bytes that the last message takes, from there
	frame      []byte // rest of the message that Read returns; aliases in
	toQuickfix quickfixInput
	request    wire.Ordinary
	gap        gap
	watched    time.Time // gap.since that the socket's read deadline belongs to
	garbage    int
	gapBytes   int // bytes of messages with numbers too high, in this gap
	flood      ratelimit.Bucket
	delivered  uint64 // messages given to quickfix, plus those that the session had begun with before
}

// roomPause is the pause between two looks at a busy session.
const roomPause = 200 * time.Microsecond

var errRate = errors.New(wire.CodeRateLimited)

// newConn returns the connection of a socket. forget is called when nothing more is written
// to it.
func newConn(h *host, inner net.Conn, forget func(*conn)) *conn {
	c := &conn{accepted: h.options.Now(), in: make([]byte, 0, h.options.LogonBytes)}
	c.socket.init(h, inner, func() { forget(c) })
	c.silent.Store(true)
	return c
}

// setSession gives c the session of its Logon.
func (c *conn) setSession(s *Session) {
	c.holder.Store(&holder{compID: s.CompID(), messages: s.Messages, release: func() { s.conn.CompareAndSwap(&c.socket, nil) }})
	c.session.Store(s)
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
		frame, err := c.receive(c.host.options.MaxMessage)
		if errors.Is(err, os.ErrDeadlineExceeded) && !c.leaving() {
			if err = c.gap.expired(s.Messages.target.Load(), c.toQuickfix.highest, c.host.options.Now(), c.host.options.GapTimeout); err == nil {
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
		now := c.host.options.Now()
		if !c.flood.Take(now.UnixNano(), c.host.rates.flood) {
			return c.end(fmt.Errorf("%w: more than %d messages a second", errRate, hardRate*c.host.options.Rate))
		}
		x := &c.request
		if c.host.profile.fastPath && x.Scan(frame, s.id.TargetCompID, s.id.SenderCompID) && c.toQuickfix.idle(s.Messages, x.Seq, now) {
			handled, enqueued := s.handleDirect(&c.socket, x, now, len(c.in) == c.used)
			if enqueued {
				s.Handler.RunInline()
			}
			if handled {
				continue
			}
		}
		wire.MaskData(frame)
		seq, err := wire.CheckFrame(frame)
		if err != nil {
			return c.end(err)
		}
		if err := c.limitGapBytes(s, seq, len(frame)); err != nil {
			return c.end(err)
		}
		if err := c.gap.follow(s.Messages.target.Load(), seq, wire.MsgType(frame), now, c.host.options.GapTimeout); err != nil {
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
		due = time.Now().Add(c.host.options.GapTimeout)
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

// end logs the session out with the reason, if the reason is meant for the client, and
// returns when quickfix has written the Logout: the end of the connection may overtake it.
// A Logout that is sent before quickfix has answered the Logon would be lost too.
func (c *conn) end(err error) error {
	if errors.Is(err, wire.ErrTooLarge) || errors.Is(err, wire.ErrField) || errors.Is(err, wire.ErrNotFIX) || errors.Is(err, errRate) || errors.Is(err, errMissing) {
		s := c.session.Load()
		c.waitFor(s.loggedOn.Load)
		if s.loggedOn.Load() {
			before := s.Messages.queuedByQuickfix.Load() // the answer to the Logon too
			s.kick(err.Error())
			c.waitFor(func() bool { return s.Messages.writtenByQuickfix.Load() > before })
		}
	}
	return err
}

// waitFor waits until done, or the connection is closed, or Options.LogonGrace has passed.
func (c *conn) waitFor(done func() bool) {
	for limit := time.Now().Add(c.host.options.LogonGrace); !done() && !c.leaving() && time.Now().Before(limit); {
		time.Sleep(logonPause)
	}
}

// logonPause is the pause between two looks at what quickfix has not done yet.
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

// clientGone reports whether the client has closed the connection. It reads nothing.
func (c *conn) clientGone() bool {
	if c.descriptor == nil {
		return false
	}
	gone := false
	err := c.descriptor.Read(func(fd uintptr) bool {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		gone = n == 0 && err == nil || errors.Is(err, syscall.ECONNRESET)
		return true
	})
	return gone || err != nil
}
