package wire

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// recordingConn records the calls of the inner connection.
type recordingConn struct {
	net.Conn
	reported []string
}

func (c *recordingConn) report(what string, t time.Time) error {
	c.reported = append(c.reported, fmt.Sprintf("%s %d", what, t.Unix()))
	return nil
}

func (c *recordingConn) SetReadDeadline(t time.Time) error  { return c.report("read by", t) }
func (c *recordingConn) SetWriteDeadline(t time.Time) error { return c.report("write by", t) }
func (c *recordingConn) SetDeadline(t time.Time) error      { return c.report("by", t) }

func (c *recordingConn) Read(p []byte) (int, error) { return len(p), c.report("read", time.Unix(0, 0)) }

func (c *recordingConn) Write(p []byte) (int, error) {
	return len(p), c.report("write", time.Unix(0, 0))
}

func TestDeadlinesAreSetWhenTheyMatter(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	inner := &recordingConn{}
	c := NewClientConn(inner, 5*time.Second)
	check := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(inner.reported, want) {
			t.Errorf("%s: %q, want %q", what, inner.reported, want)
		}
		inner.reported = nil
	}
	read := func() { _, _ = c.Read(make([]byte, 1)) }
	write := func() { _, _ = c.Write(make([]byte, 1)) }

	read()
	write()
	check("no deadline", "read 0", "write 0")
	_ = c.SetReadDeadline(at(100))
	_ = c.SetReadDeadline(at(20))
	_ = c.SetReadDeadline(at(101))
	_ = c.SetWriteDeadline(at(40))
	check("nothing waits yet")
	read()
	write()
	check("the last one is set", "read by 101", "read 0", "write by 40", "write 0")
	_ = c.SetReadDeadline(at(106))
	_ = c.SetWriteDeadline(at(45))
	read()
	write()
	check("within the slack", "read 0", "write 0")
	_ = c.SetReadDeadline(at(107))
	_ = c.SetWriteDeadline(at(46))
	read()
	write()
	check("beyond it", "read by 107", "read 0", "write by 46", "write 0")
	_ = c.SetReadDeadline(at(106))
	_ = c.SetWriteDeadline(at(45))
	read()
	write()
	check("earlier", "read by 106", "read 0", "write by 45", "write 0")
	_ = c.SetReadDeadline(time.Time{})
	read()
	check("none any more", fmt.Sprintf("read by %d", time.Time{}.Unix()), "read 0")
	_ = c.SetReadDeadline(at(200))
	_ = c.SetDeadline(at(0))
	_ = c.SetReadDeadline(at(300))
	_ = c.SetWriteDeadline(at(301))
	read()
	write()
	check("hijacked", "by 0", "read by 300", "write by 301", "read 0", "write 0")
	if c.UnsafeConn() != inner {
		t.Error("another connection inside")
	}
}

// TestBodyReadWithoutWriteTo: a stream that is read without WriteTo.
func TestBodyReadWithoutWriteTo(t *testing.T) {
	c := NewClientConn(&recordingConn{}, time.Second)
	want := bytes.Repeat([]byte("0123456789"), 1000)
	got, err := io.ReadAll(struct{ io.Reader }{c.stream(want)})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	var out bytes.Buffer
	if n, err := c.stream(want).(io.WriterTo).WriteTo(&out); err != nil || n != int64(len(want)) || !bytes.Equal(out.Bytes(), want) {
		t.Errorf("%d bytes written, %v", n, err)
	}
}
