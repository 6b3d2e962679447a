package feed

import (
	"bytes"
	"errors"
	"time"
	"unicode/utf8"
)

const (
	// readSize is the most that is read from one connection before the next, in bytes.
	readSize = 16 << 10
	// deflateUnit is the number of bytes of a compressed message that count as another
	// message.
	deflateUnit = 1 << 10
)

var (
	errTooMany    = &protocolError{CloseTooManyMessage, "too many messages"}
	errNotDeflate = &protocolError{CloseBadData, "message is not a deflate stream"}
)

// reader decodes the input of connections into messages to their shard. One reader serves
// all connections of a shard, one at a time. It is not safe for concurrent use.
type reader struct {
	feed *Feed
	buf  [readSize]byte
	zip  inflater
	text []byte    // a decompressed message
	now  time.Time // of this pass
}

// receive decodes input of c and reports whether to read more: not from a connection that
// still sends after its end.
func (r *reader) receive(c *conn, data []byte) bool {
	for len(data) > 0 && !c.ignoreInput {
		m, rest, err := c.in.next(data)
		if err == nil && m.opcode != 0 {
			err = r.handle(c, &m)
		}
		if err != nil {
			c.requestClose(err)
		}
		if c.in.partial == nil {
			c.messageSince.Store(0)
		}
		data = rest
	}
	if c.in.partial != nil && c.messageSince.Load() == 0 {
		c.messageSince.Store(r.now.UnixNano())
	}
	c.drainLeft -= len(data)
	return c.drainLeft >= 0
}

// handle handles one message. Its error is a *protocolError.
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
	request := &request{errorMessage: &faultBinary}
	if m.opcode == opText {
		if !utf8.Valid(data) {
			return errText
		}
		// Clone, because the request aliases its text and the buffers are reused.
		request = parseRequest(bytes.Clone(data), r.feed.set, r.feed.channels())
	}
	return c.send(connMessage{kind: connRequest, conn: c, request: request})
}

// cost returns the share of its sender's message rate that m uses, one for an
// uncompressed message. A compressed message counts once more for each KiB, because
// decompression can be made expensive, up to the whole rate of a second.
func (m *incoming) cost(one time.Duration) time.Duration {
	if !m.deflated {
		return one
	}
	return min(one*time.Duration(1+len(m.data)/deflateUnit), time.Second)
}

// send sends m to the shard. errTooMany: too many requests are pending.
func (c *conn) send(m connMessage) error {
	if c.inflight.Add(1) > maxInflight {
		return errTooMany
	}
	c.inbox.send(m)
	return nil
}

// requestClose asks the shard to close the connection because of err. Further input is
// discarded, up to maxDrain bytes.
func (c *conn) requestClose(err error) {
	m := connMessage{kind: connClose, conn: c, code: CloseProtocol, text: "protocol error"}
	if p := (*protocolError)(nil); errors.As(err, &p) {
		m.code, m.text = p.code, p.text
	}
	c.ignoreInput, c.drainLeft = true, maxDrain
	c.in.partial = nil
	c.inbox.send(m)
}
