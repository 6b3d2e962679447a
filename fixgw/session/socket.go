package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"blockdesk/fixgw/wire"
)

// socket is one client's connection as its session sees it. Write and push copy into a
// buffer and return at once, so that neither quickfix's session loop nor the caller of
// Deliver waits for a client. Bytes that the kernel accepts without waiting are written at
// once. Run writes the rest, as much as possible per call. A client is cut off if its buffer
// is full, or if a write hangs for two heartbeats.
//
// socket keeps the messages in the order of their sequence numbers. It needs to, because
// quickfix's messages come from its writer goroutine, some time after they were numbered,
// and the messages of Deliver come at once. Delivered messages wait in held until the
// messages before them have come. The wait is short: while the session is online, quickfix
// gives its numbered messages to its writer; otherwise the connection ends. They also wait
// for a replay, because quickfix does not mix new messages with replayed ones.
type socket struct {
	net.Conn
	host     *host
	received atomic.Uint64 // reads that had bytes
	holder   atomic.Pointer[holder]
	forget   func() // called when Run ends

	mu          sync.Mutex // guards all below
	out         []byte     // in order, waiting to be written
	held        []byte
	heldBatches []heldBatch // of held
	// due is the number that goes out next; 0 = quickfix's Logon has not come.
	due          uint64
	writing      bool          // Run is in the middle of a write
	closing      bool          // write the waiting bytes, then close
	ended        bool          // Run has returned
	cut          error         // why reading and writing have ended; nil = they have not
	writeTimeout time.Duration // how long a write may take

	// raw is the socket of a connection without TLS; nil = only Run writes.
	raw         syscall.RawConn
	writeSocket func(fd uintptr) bool // bound once
	written     int
	writeErr    error

	wake chan struct{} // capacity 1: out, closing or cut has changed
}

// holder is the session that a connection has.
type holder struct {
	compID   string
	messages *MessageStore
	release  func() // lets another connection have the session
}

var (
	errSlowReader = errors.New("client reads too slowly")
	errClosed     = errors.New("connection is closed")
)

// heldBatch is a delivered batch that waits for messages of quickfix.
type heldBatch struct {
	first, next    uint64 // its numbers: first to next-1
	quickfixBefore uint64 // number of messages that quickfix's writer must have passed on before
	size           int    // bytes of held
}

func (c *socket) init(h *host, inner net.Conn, forget func()) {
	c.Conn, c.host, c.forget = inner, h, forget
	c.wake, c.writeTimeout = make(chan struct{}, 1), h.options.FlushTimeout
	if c.raw = rawOf(inner); c.raw != nil {
		c.writeSocket = c.attempt
	}
}

// attempt writes what the socket takes without waiting.
func (c *socket) attempt(fd uintptr) bool {
	for {
		c.written, c.writeErr = syscall.Write(int(fd), c.out)
		if !errors.Is(c.writeErr, syscall.EINTR) {
			return true
		}
	}
}

// push queues a delivered batch: the messages numbered first to next-1. They go out after
// quickfix's writer has passed on quickfixBefore messages. It never waits.
func (c *socket) push(first, next, quickfixBefore uint64, messages []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut != nil || c.closing || c.overfull(len(messages)) {
		return
	}
	if len(c.heldBatches) > 0 || c.due != first || c.holder.Load().messages.writtenByQuickfix.Load() < quickfixBefore {
		c.held = append(c.held, messages...)
		c.heldBatches = append(c.heldBatches, heldBatch{first, next, quickfixBefore, len(messages)})
		return
	}
	c.put(messages)
	c.due = next
	c.flush()
}

// overfull cuts off a client if too many bytes wait for it. It needs mu.
func (c *socket) overfull(more int) bool {
	waits := len(c.out) + len(c.held)
	if waits+more <= c.host.options.MaxOutbox {
		return false
	}
	c.cutLocked(fmt.Errorf("%w: %d bytes queued", errSlowReader, waits))
	return true
}

func (c *socket) put(messages []byte) {
	c.out = append(c.out, messages...)
	c.note(wire.Sent, messages)
}

// Write takes a message of quickfix's for the client. It never waits.
func (c *socket) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.holder.Load()
	if s != nil {
		s.messages.writtenByQuickfix.Add(1)
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
func (c *socket) release(seq uint64) {
	if c.due == 0 {
		return
	}
	taken := c.holder.Load().messages.writtenByQuickfix.Load()
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
func (c *socket) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due, c.held, c.heldBatches = 0, c.held[:0], c.heldBatches[:0]
}

// flush writes what the socket takes without waiting, on the caller's goroutine, and
// leaves the rest to Run: waking another goroutine costs more than the write. It needs
// mu.
func (c *socket) flush() {
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

// waiting returns the number of bytes that the client has not read.
func (c *socket) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.out) + len(c.held)
}

// leaving reports whether the connection is closed or about to be.
func (c *socket) leaving() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing || c.cut != nil
}

// Close closes the socket after the waiting bytes are written, which may take
// Options.FlushTimeout. It does not wait for that. quickfix calls it when its session has released the connection.
func (c *socket) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	c.signal()
	c.releaseSession()
	if c.cut != nil {
		return nil // a later deadline would undo the cut's
	}
	return c.Conn.SetWriteDeadline(time.Now().Add(c.host.options.FlushTimeout))
}

// releaseSession lets another connection have the session once quickfix has closed this
// one and nothing more is written. Earlier, quickfix would refuse the next connection
// silently. It needs mu.
func (c *socket) releaseSession() {
	if s := c.holder.Load(); s != nil && c.closing && c.ended {
		s.release()
	}
}

// cutOff ends the connection without sending anything.
func (c *socket) cutOff(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cutLocked(why)
}

func (c *socket) cutLocked(why error) {
	if c.cut == nil {
		c.cut = why
		c.Conn.SetDeadline(time.Unix(1, 0)) // wakes a Read and a Write that wait
	}
	c.signal()
}

func (c *socket) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run writes to the socket until the connection is closed or cut, or ctx ends.
func (c *socket) Run(ctx context.Context) error {
	defer func() {
		c.Conn.Close()
		c.forget()
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
func (c *socket) write(batch []byte) error {
	c.mu.Lock()
	writeTimeout, err := c.writeTimeout, c.cut
	if c.closing {
		writeTimeout = c.host.options.FlushTimeout
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
func (c *socket) note(d wire.Direction, messages []byte) {
	log, s := c.host.options.MessageLog, c.holder.Load()
	if log != nil && s != nil {
		log.Record(d, s.compID, c.host.options.Now(), messages)
	}
}

// rawOf returns the socket of a connection, or nil if it has none.
func rawOf(inner net.Conn) syscall.RawConn {
	s, ok := inner.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
