// Package crowd is many market-data clients in one process of its own, so that
// what the server costs can be told from what they cost. They are as cheap as
// clients can be: no goroutine each, one epoll(7) a group, one buffer for all,
// and of each message they look at its header alone.
//
// Its parent gives orders, one at a time, and each has one answer. Times are
// those of CLOCK_MONOTONIC, which all processes of a machine share.
package crowd

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

// Form is how a group's messages are told apart.
type Form uint8

const (
	// Frames are WebSocket frames.
	Frames Form = iota + 1
	// Events are server-sent events: each ends with an empty line.
	Events
)

// What a crowd can be told to do.
const (
	doJoin   = "join"
	doAwait  = "await"
	doFollow = "follow"
	doEnd    = "end"
	doLeave  = "leave"
)

// patience is how long one order may wait for the server.
const patience = 60 * time.Second

// ErrLate says that messages did not come within the crowd's patience.
var ErrLate = errors.New("messages did not come in time")

// Group is a number of equal connections.
type Group struct {
	Name  string
	Addr  string // IPv4 address and port
	Conns int
	Form  Form
	// Request is what each sends first; it waits for the end of an HTTP
	// response head then. Nothing = nothing.
	Request []byte
	// Then is what each sends after that.
	Then []byte
	// Skip messages are read before the group has joined.
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

// order is one line to the crowd.
type order struct {
	Do       string
	Name     string
	Group    *Group    `json:",omitempty"`
	Messages int       `json:",omitempty"` // a connection
	Schedule *Schedule `json:",omitempty"`
	Tail     []byte    `json:",omitempty"`
}

// Answer is what the crowd says to an order. Fields have a meaning only where
// the order gives them one.
type Answer struct {
	Err string `json:",omitempty"`
	// Head is the response head of the group's first connection.
	Head string `json:",omitempty"`
	// First is when the first connection had its messages, Last when the last.
	First, Last int64 `json:",omitempty"`
	// Latency of each delivery, in nanoseconds from when it was due.
	P50, P90, P99, P999, Max, Count int64 `json:",omitempty"`
	// Told is the number of connections that ended with the expected tail.
	Told int `json:",omitempty"`
}

// Crowd is the parent's end.
type Crowd struct {
	in   io.WriteCloser
	ask  *json.Encoder
	out  *json.Decoder
	wait func() error
}

// Start runs a crowd as a child: exe with args must call Serve.
func Start(ctx context.Context, exe string, args ...string) (*Crowd, error) {
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

// Over is a crowd whose Serve reads what is written to in and writes what out
// reads. wait returns when it has ended, with its error.
func Over(in io.WriteCloser, out io.Reader, wait func() error) *Crowd {
	return &Crowd{in: in, ask: json.NewEncoder(in), out: json.NewDecoder(out), wait: wait}
}

// Close ends the crowd and waits for it.
func (c *Crowd) Close() error { return errors.Join(c.in.Close(), c.wait()) }

// Answer waits for the answer to the order before.
func (c *Crowd) Answer() (*Answer, error) {
	var a Answer
	if err := c.out.Decode(&a); err != nil {
		return nil, fmt.Errorf("the crowd is gone: %w", err)
	}
	if a.Err != "" {
		return nil, errors.New("crowd: " + a.Err)
	}
	return &a, nil
}

// Join tells the crowd to connect a group. The answer comes when each
// connection has read what Group.Skip says.
func (c *Crowd) Join(g Group) error { return c.ask.Encode(order{Do: doJoin, Name: g.Name, Group: &g}) }

// Await tells the crowd to read until each connection of the group has so many
// messages more than at the order before. The answer has First and Last.
func (c *Crowd) Await(name string, messages int) error {
	return c.ask.Encode(order{Do: doAwait, Name: name, Messages: messages})
}

// Follow is Await for a schedule; the answer has the latencies too. A tick
// counts when its last message has come.
func (c *Crowd) Follow(name string, s Schedule) error {
	return c.ask.Encode(order{Do: doFollow, Name: name, Schedule: &s})
}

// End tells the crowd to read each connection to its end and to count those
// whose last bytes are tail.
func (c *Crowd) End(name string, tail []byte) error {
	return c.ask.Encode(order{Do: doEnd, Name: name, Tail: tail})
}

// Leave tells the crowd to close the group's connections.
func (c *Crowd) Leave(name string) error { return c.ask.Encode(order{Do: doLeave, Name: name}) }

// Now is the time that all processes of the machine share, in nanoseconds.
func Now() int64 {
	var t unix.Timespec
	// Fails only for a clock that the kernel does not have.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}
