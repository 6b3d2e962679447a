// Package clients runs many market-data clients in a process of their own, so that their
// CPU time is not counted as the server's. A group of clients has one goroutine, one
// epoll(7) and one read buffer, and parses only the head of each message, because
// thousands of clients share the machine with the server under test.
//
// The parent process sends one request at a time over a pipe and reads one answer to each:
// join, follow a schedule, wait for a number of messages, leave. Times are of
// CLOCK_MONOTONIC, which all processes of a machine share. A request that takes longer
// than patience fails with ErrLate.
package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// Form is how a group's messages are delimited.
type Form uint8

const (
	// Frames are WebSocket frames.
	Frames Form = iota + 1
	// Events are server-sent events: each ends with an empty line.
	Events
)

// The requests of a parent.
const (
	doJoin   = "join"
	doAwait  = "await"
	doFollow = "follow"
	doEnd    = "end"
	doLeave  = "leave"
)

// patience is how long one request may wait for the server.
const patience = 60 * time.Second

// ErrLate means that messages did not arrive in time.
var ErrLate = errors.New("messages did not come in time")

// Group is a number of equal connections.
type Group struct {
	Name  string
	Addr  string // IPv4 address and port
	Conns int
	Form  Form
	// Request is what each client sends first; it then reads an HTTP response head.
	// Empty: the client sends and reads nothing first.
	Request []byte
	// Then is what each client sends after that.
	Then []byte
	// Skip is how many messages each client reads before the group has joined.
	Skip int
	// ReceiveBuffer is the kernel's, in bytes; 0 = its default.
	ReceiveBuffer int
}

// Schedule is when messages are due: tick i, of Each messages, Every × i after
// Start.
type Schedule struct {
	Ticks, Each int
	Start       int64 // as Now has it
	Every       time.Duration
}

// order is one request, a line of JSON.
type order struct {
	Do       string
	Name     string
	Group    *Group    `json:",omitempty"`
	Messages int       `json:",omitempty"` // a connection
	Schedule *Schedule `json:",omitempty"`
	Tail     []byte    `json:",omitempty"`
}

// Answer answers a request. Only the fields that the request asks for are set.
type Answer struct {
	Err string `json:",omitempty"`
	// Head is the response head of the group's first connection.
	Head string `json:",omitempty"`
	// First is when the first connection had its messages, Last when the last.
	First, Last int64 `json:",omitempty"`
	// Latency of each delivery, in nanoseconds from when it was due.
	P50, P90, P99, P999, Max, Count int64 `json:",omitempty"`
	// Ended is the number of connections that ended with the expected tail.
	Ended int `json:",omitempty"`
}

// Process is the child process as the parent sees it.
type Process struct {
	in       io.WriteCloser
	requests *json.Encoder
	out      *json.Decoder
	wait     func() error
}

// Start starts a child process: exe with args must call Serve.
func Start(ctx context.Context, exe string, args ...string) (*Process, error) {
	cmd := exec.CommandContext(ctx, exe, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return Over(in, out, cmd.Wait), nil
}

// Over returns a Process for a Serve that reads what is written to in and writes what
// out reads. wait returns Serve's error when it has ended.
func Over(in io.WriteCloser, out io.Reader, wait func() error) *Process {
	return &Process{in: in, requests: json.NewEncoder(in), out: json.NewDecoder(out), wait: wait}
}

// Close ends the process and waits for it.
func (c *Process) Close() error { return errors.Join(c.in.Close(), c.wait()) }

// Answer waits for the answer to the last request.
func (c *Process) Answer() (*Answer, error) {
	var a Answer
	if err := c.out.Decode(&a); err != nil {
		return nil, fmt.Errorf("the client process has ended: %w", err)
	}
	if a.Err != "" {
		return nil, errors.New("client process: " + a.Err)
	}
	return &a, nil
}

// Join requests that a group connects. The answer comes when each connection has read
// Group.Skip messages.
func (c *Process) Join(g Group) error {
	return c.requests.Encode(order{Do: doJoin, Name: g.Name, Group: &g})
}

// Await requests that each connection of the group reads so many messages more than at
// the last request. The answer has First and Last.
func (c *Process) Await(name string, messages int) error {
	return c.requests.Encode(order{Do: doAwait, Name: name, Messages: messages})
}

// Follow is Await for a schedule; the answer has the latencies too. A tick
// counts when its last message has come.
func (c *Process) Follow(name string, s Schedule) error {
	return c.requests.Encode(order{Do: doFollow, Name: name, Schedule: &s})
}

// End requests that each connection is read to its end. The answer counts those whose
// last bytes are tail.
func (c *Process) End(name string, tail []byte) error {
	return c.requests.Encode(order{Do: doEnd, Name: name, Tail: tail})
}

// Leave requests that the group's connections are closed.
func (c *Process) Leave(name string) error { return c.requests.Encode(order{Do: doLeave, Name: name}) }

// Now returns the time that all processes of the machine share, in nanoseconds.
func Now() int64 {
	var t unix.Timespec
	// It fails only for a clock that the kernel does not have.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}
