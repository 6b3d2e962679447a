package feed

import (
	"errors"
	"time"
	"unicode/utf8"
)

const (
	// readSize is the most that one connection says before the others have their
	// turn, in bytes.
	readSize = 16 << 10
	// deflateUnit is how many bytes of a compressed message count as one message
	// more.
	deflateUnit = 1 << 10
)

var (
	errTooMany    = &protocolError{CloseTooManyMessage, "too many messages"}
	errNotDeflate = &protocolError{CloseBadData, "message that is not a deflate stream"}
)

// reader makes requests of what connections send and hands them to their
// shard. One reader serves many connections, one at a time: what it holds
// between two of them is only memory to work in. Not for concurrent use.
type reader struct {
	feed *Feed
	buf  [readSize]byte
	zip  inflater
	text []byte    // a message, decompressed
	now  time.Time // of this pass
}

// take hears what has come from c, in the reader's buffer or elsewhere, and
// reports whether more may come: a connection that sends on and on after its
// end is not worth reading to.
func (r *reader) receive(c *conn, data []byte) bool {
	for len(data) > 0 && !c.ignoreInput {
		m, rest, err := c.in.next(data)
		if err == nil && m.opcode != 0 {
			err = r.handle(c, &m)
		}
		if err != nil {
			c.requestClose(err)
		}
		if c.in.rest == nil {
			c.messageSince.Store(0)
		}
		data = rest
	}
	if c.in.rest != nil && c.messageSince.Load() == 0 {
		c.messageSince.Store(r.now.UnixNano())
	}
	c.drainLeft -= len(data)
	return c.drainLeft >= 0
}

// hear acts on one message. An error is a *breach.
func (r *reader) handle(c *conn, m *incoming) error {
	if m.opcode == opClose {
		code, err := closeCode(m.data)
		if err != nil {
			return err
		}
		return &protocolError{code: code}
	}
	if !c.rate.Spend(r.now.UnixNano(), int64(m.cost(time.Second/time.Duration(r.feed.o.MessagesPerSecond))), int64(time.Second)) {
		return errTooMany
	}
	switch m.opcode {
	case opPong:
		return nil
	case opPing:
		return c.send(connMessage{kind: connPing, conn: c, text: string(m.data)})
	}
	data := m.data
	if m.deflated {
		var err error
		data, err = r.zip.inflate(r.text[:0], data, MaxFrame)
		r.text = data
		switch {
		case errors.Is(err, errInflated):
			return errTooBig
		case err != nil:
			return errNotDeflate
		}
	}
	ask := &request{fault: &faultBinary}
	if m.opcode == opText {
		if !utf8.Valid(data) {
			return errText
		}
		// A request aliases its text, and the buffers are for the next.
		ask = parseRequest(append([]byte(nil), data...), r.feed.set, r.feed.o.Tickets != nil)
	}
	return c.send(connMessage{kind: connRequest, conn: c, request: ask})
}

// cost returns what m takes of its sender's rate; one is a message's share. A
// compressed one counts once more for each KiB, since it can be made to need far
// more work than a text of its length; but never for more than there is.
func (m *incoming) cost(one time.Duration) time.Duration {
	if !m.deflated {
		return one
	}
	return min(one*time.Duration(1+len(m.data)/deflateUnit), time.Second)
}

// hand gives m to the shard. errTooMany: it has not kept up with what was sent.
func (c *conn) send(m connMessage) error {
	if c.inflight.Add(1) > maxInflight {
		return errTooMany
	}
	c.shard.inbox.send(m)
	return nil
}

// leave asks the shard to close the connection for the reason that err gives,
// and makes it deaf: what the peer still sends is thrown away, at most maxDrain.
func (c *conn) requestClose(err error) {
	m := connMessage{kind: connClose, conn: c, code: CloseProtocol, text: "protocol error"}
	if b := (*protocolError)(nil); errors.As(err, &b) {
		m.code, m.text = b.code, b.text
	}
	c.ignoreInput, c.drainLeft = true, maxDrain
	c.in.rest = nil
	c.shard.inbox.send(m)
}
