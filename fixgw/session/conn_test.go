package session

import (
	"errors"
	"net"
	"testing"
	"time"

	"blockdesk/internal/await"
)

// bareConn returns a connection that no listener knows.
func bareConn(o Options, inner net.Conn) *conn {
	return newConn(&host{options: o.WithDefaults()}, inner, func(*conn) {})
}

// TestWriteDeadline: even when little is sent, a blocked socket is cut within
// two heartbeats.
func TestWriteDeadline(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe() // takes nothing that is not read
	defer client.Close()
	c := bareConn(Options{}, server)
	c.writeTimeout = 50 * time.Millisecond
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context()) }()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := await.Receive(t, "the end of the connection", done); err == nil {
		t.Error("no error")
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("a cut connection takes bytes")
	}
}

func TestOutboxLimit(t *testing.T) {
	t.Parallel()
	client, server := net.Pipe()
	defer client.Close()
	c := bareConn(Options{MaxOutbox: 64 << 10}, server)
	if _, err := c.Write(make([]byte, 64<<10)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("one byte above the limit passed")
	}
	if err := c.Run(t.Context()); !errors.Is(err, errSlowReader) {
		t.Errorf("it ended with %v", err)
	}
}
