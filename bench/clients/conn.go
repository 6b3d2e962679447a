package clients

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// errHead means that a response head is too long or reports no success.
var errHead = errors.New("the server refused")

// conn is one connection and its parser's state.
type conn struct {
	fd        int
	messages  int // that have arrived in full
	left      int // bytes of a frame's payload that are still to come
	head      [10]byte
	headBytes int  // bytes of head
	newline   bool // events: the last byte was one
}

// exchange sends a request and reads the response's head. Bytes behind it count as messages.
func (c *conn) exchange(form Form, request []byte) ([]byte, error) {
	if _, err := unix.Write(c.fd, request); err != nil {
		return nil, err
	}
	head := make([]byte, headSize)
	have := 0
	for have < len(head) {
		n := 0
		if err := uninterrupted(func() (err error) {
			n, err = unix.Read(c.fd, head[have:])
			return err
		}); err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, fmt.Errorf("%w: %q", errHead, head[:have])
		}
		have += n
		if end := bytes.Index(head[:have], []byte("\r\n\r\n")); end >= 0 {
			c.take(form, head[end+4:have])
			head = head[:end]
			break
		}
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")) && !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
		return nil, fmt.Errorf("%w: %q", errHead, head)
	}
	return head, nil
}

// uninterrupted does a system call again for as long as signals end it, as those
// of Go's scheduler do.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// take counts the messages that data completes.
func (c *conn) take(form Form, data []byte) {
	if form == Events {
		for _, b := range data {
			if b == '\n' && c.newline {
				c.messages++
			}
			c.newline = b == '\n'
		}
		return
	}
	for len(data) > 0 {
		if c.left == 0 {
			c.head[c.headBytes] = data[0]
			c.headBytes++
			data = data[1:]
			size := c.payload()
			if size < 0 {
				continue
			}
			c.headBytes, c.left = 0, size
			if size == 0 {
				c.messages++
			}
			continue
		}
		part := min(c.left, len(data))
		data, c.left = data[part:], c.left-part
		if c.left == 0 {
			c.messages++
		}
	}
}

// payload returns the payload's length once the header is whole, else -1.
func (c *conn) payload() int {
	switch {
	case c.headBytes < 2:
		return -1
	case c.head[1] < 126:
		return int(c.head[1])
	case c.head[1] == 126 && c.headBytes == 4:
		return int(binary.BigEndian.Uint16(c.head[2:]))
	case c.headBytes == len(c.head):
		return int(binary.BigEndian.Uint64(c.head[2:]))
	}
	return -1
}
