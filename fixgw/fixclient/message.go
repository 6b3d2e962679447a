package fixclient

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

const soh = 0x01

// MaxMessage is the largest incoming message, in bytes.
const MaxMessage = 1 << 20

// ErrMalformed is wrapped in the error of Run when bytes are not FIX.
var ErrMalformed = errors.New("malformed FIX message")

// Message is one received message. It is valid until the next one is read.
type Message struct {
	raw []byte // from "8=" to the last SOH
}

// AsMessage returns the Message of a whole message's bytes, such as Trace gets. Nothing
// is checked or copied.
func AsMessage(raw []byte) *Message { return &Message{raw: raw} }

// Raw returns the whole message. It aliases the read buffer.
func (m *Message) Raw() []byte { return m.raw }

// Type returns MsgType (35), or "" if there is none.
func (m *Message) Type() string {
	// Conversions of one byte do not allocate.
	return string(m.Get(35))
}

// Get returns the first value of tag, or nil. It aliases the message.
func (m *Message) Get(tag int) (value []byte) {
	m.Fields(func(t int, v []byte) bool {
		if t == tag {
			value = v
			return false
		}
		return true
	})
	return value
}

// Int returns the first value of tag as a number, or 0 if it is none.
func (m *Message) Int(tag int) int {
	n, err := strconv.Atoi(string(m.Get(tag)))
	if err != nil {
		return 0
	}
	return n
}

// Fields calls f for each field in order until f returns false. Use it to read repeating
// groups.
func (m *Message) Fields(f func(tag int, value []byte) bool) {
	for rest := m.raw; len(rest) > 0; {
		end := bytes.IndexByte(rest, soh)
		if end < 0 {
			return
		}
		tag, i := 0, 0
		for ; i < end && rest[i] != '='; i++ {
			tag = tag*10 + int(rest[i]-'0')
		}
		if i < end && !f(tag, rest[i+1:end]) {
			return
		}
		rest = rest[end+1:]
	}
}

// read returns the next message; its checksum and body length are verified.
func (c *Client) read() (*Message, error) {
	buf := c.buf[:0]
	fill := func(n int) error {
		at := len(buf)
		if cap(buf) < at+n {
			buf = append(make([]byte, 0, 2*(at+n)), buf...)
		}
		buf = buf[:at+n]
		for read := 0; read < n; {
			k, err := c.in.Read(buf[at+read:])
			read += k
			if err != nil && read < n {
				return err
			}
		}
		return nil
	}
	const prefix = "8=FIX.4.4\x019="
	if err := fill(len(prefix)); err != nil {
		return nil, err
	}
	if string(buf) != prefix {
		return nil, fmt.Errorf("%w: it begins with %q", ErrMalformed, buf)
	}
	length := 0
	for digits := 0; ; digits++ {
		if err := fill(1); err != nil {
			return nil, err
		}
		b := buf[len(buf)-1]
		if b == soh {
			break
		}
		if b < '0' || b > '9' || digits == 9 {
			return nil, fmt.Errorf("%w: BodyLength (9) is not a number of at most 9 digits", ErrMalformed)
		}
		length = length*10 + int(b-'0')
	}
	if length > MaxMessage {
		return nil, fmt.Errorf("%w: BodyLength (9) %d: must be at most %d", ErrMalformed, length, MaxMessage)
	}
	const trailer = len("10=000\x01")
	if err := fill(length + trailer); err != nil {
		return nil, err
	}
	var sum byte
	for _, b := range buf[:len(buf)-trailer] {
		sum += b
	}
	tail := buf[len(buf)-trailer:]
	want := [trailer]byte{'1', '0', '=', '0' + sum/100, '0' + sum/10%10, '0' + sum%10, soh}
	if !bytes.Equal(tail, want[:]) {
		return nil, fmt.Errorf("%w: CheckSum (10) is %q, want %q", ErrMalformed, tail, want)
	}
	c.buf, c.msg.raw = buf, buf
	return &c.msg, nil
}
