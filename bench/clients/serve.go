package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"
)

const (
	// readSize is the most that one read(2) takes.
	readSize = 256 << 10
	// eventBatch is the most that one epoll_wait(2) returns.
	eventBatch = 512
	// tailSize is the number of last bytes that end keeps of each connection.
	tailSize = 256
	// headSize bounds an HTTP response head.
	headSize = 4 << 10
)

// errRequest means that a request is malformed.
var errRequest = errors.New("no such order")

// Serve is the child process: it reads requests from in and writes answers to out until
// in or ctx ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s := &server{groups: make(map[string]*group), buf: make([]byte, readSize)}
	defer s.close()
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for ctx.Err() == nil {
		var o order
		if err := orders.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		a, err := s.serve(&o)
		if err != nil {
			a = &Answer{Err: fmt.Sprintf("%s %s: %v", o.Do, o.Name, err)}
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// server is the child's state. One goroutine uses it.
type server struct {
	groups map[string]*group
	buf    []byte
}

func (s *server) close() {
	for _, g := range s.groups {
		g.close()
	}
}

func (s *server) serve(o *order) (*Answer, error) {
	if o.Do == doJoin {
		return s.join(o.Group)
	}
	g := s.groups[o.Name]
	if g == nil {
		return nil, errRequest
	}
	switch o.Do {
	case doAwait:
		first, last, err := g.await(s.buf, o.Messages, nil)
		return &Answer{First: first, Last: last}, err
	case doFollow:
		return g.follow(s.buf, o.Schedule)
	case doEnd:
		ended, err := g.end(s.buf, o.Tail)
		return &Answer{Ended: ended}, err
	case doLeave:
		g.close()
		delete(s.groups, o.Name)
		return &Answer{}, nil
	}
	return nil, errRequest
}

func (s *server) join(spec *Group) (*Answer, error) {
	if spec == nil || s.groups[spec.Name] != nil {
		return nil, errRequest
	}
	g := &group{form: spec.Form, poll: -1}
	var err error
	if g.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	s.groups[spec.Name] = g
	addr, err := netip.ParseAddrPort(spec.Addr)
	if err != nil {
		return nil, err
	}
	g.conns = make([]conn, 0, spec.Conns) // never reallocated
	var head []byte
	for range spec.Conns {
		if head, err = g.dial(addr, spec); err != nil {
			return nil, fmt.Errorf("connection %d: %w", len(g.conns), err)
		}
	}
	if _, _, err := g.await(s.buf, spec.Skip, nil); err != nil {
		return nil, err
	}
	return &Answer{Head: string(head)}, nil
}

// group is a number of equal connections in one epoll.
type group struct {
	form    Form
	poll    int
	conns   []conn
	awaited int // messages that each connection has been read up to so far
}

func (g *group) close() {
	for i := range g.conns {
		_ = unix.Close(g.conns[i].fd)
	}
	g.conns = nil
	_ = unix.Close(g.poll)
}

// dial connects, sends what the group sends, and returns the response head.
func (g *group) dial(addr netip.AddrPort, spec *Group) (head []byte, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	g.conns = append(g.conns, conn{fd: fd})
	c := &g.conns[len(g.conns)-1]
	if spec.ReceiveBuffer > 0 {
		// Before the connect, which negotiates the window.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, spec.ReceiveBuffer); err != nil {
			return nil, err
		}
	}
	wait := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return nil, err
	}
	// Linux continues a connect that a signal has interrupted.
	if err := uninterrupted(func() error {
		return unix.Connect(fd, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()})
	}); err != nil {
		return nil, err
	}
	if len(spec.Request) > 0 {
		if head, err = c.exchange(g.form, spec.Request); err != nil {
			return nil, err
		}
	}
	if len(spec.Then) > 0 {
		if _, err := unix.Write(fd, spec.Then); err != nil {
			return nil, err
		}
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return head, unix.EpollCtl(g.poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(len(g.conns) - 1)})
}

// await reads until each connection has so many more messages, and returns the times at
// which the first and the last connection had them. After each read that completes a
// message it calls got, unless nil, with the connection's number of messages before and
// after the read, counted from the start of this request.
func (g *group) await(buf []byte, messages int, got func(before, now int)) (first, last int64, err error) {
	missing, from := 0, g.awaited
	g.awaited += messages
	for i := range g.conns {
		if g.conns[i].messages < g.awaited {
			missing++
		}
	}
	if missing == 0 {
		return Now(), Now(), nil
	}
	err = g.each(buf, func(i int, data []byte) (done bool, err error) {
		if data == nil {
			return false, io.ErrUnexpectedEOF
		}
		c := &g.conns[i]
		before := c.messages
		c.take(g.form, data)
		if got != nil && c.messages > before {
			got(before-from, c.messages-from)
		}
		if before < g.awaited && c.messages >= g.awaited {
			if first == 0 {
				first = Now()
			}
			missing--
		}
		return missing == 0, nil
	})
	if err != nil {
		err = fmt.Errorf("%d of %d connections wait: %w", missing, len(g.conns), err)
	}
	return first, Now(), err
}

// each reads all connections and passes the data to step with the connection's number,
// nil data at its end, until step is done or fails.
func (g *group) each(buf []byte, step func(i int, data []byte) (done bool, err error)) error {
	events := make([]unix.EpollEvent, eventBatch)
	for deadline := Now() + int64(patience); ; {
		left := time.Duration(deadline - Now())
		if left <= 0 {
			return ErrLate
		}
		ready, err := unix.EpollWait(g.poll, events, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		for _, e := range events[:max(ready, 0)] {
			data, err := g.read(int(e.Fd), buf)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil {
				return err
			}
			if done, err := step(int(e.Fd), data); done || err != nil {
				return err
			}
		}
	}
}

// read returns what connection i has received. It returns nil at its end, after which
// epoll reports the connection no more.
func (g *group) read(i int, buf []byte) ([]byte, error) {
	fd := g.conns[i].fd
	n, err := unix.Read(fd, buf)
	if n > 0 {
		return buf[:n], nil
	}
	if n == 0 || errors.Is(err, unix.ECONNRESET) {
		return nil, unix.EpollCtl(g.poll, unix.EPOLL_CTL_DEL, fd, nil)
	}
	return nil, err
}

// follow measures the latency of each delivery.
func (g *group) follow(buf []byte, s *Schedule) (*Answer, error) {
	if s == nil || s.Each < 1 {
		return nil, errRequest
	}
	hist := hdrhistogram.New(1, int64(time.Minute), 3)
	first, last, err := g.await(buf, s.Ticks*s.Each, func(before, now int) {
		at := Now()
		for tick := before / s.Each; tick < min(now/s.Each, s.Ticks); tick++ {
			_ = hist.RecordValue(max(at-s.Start-int64(tick)*int64(s.Every), 1))
		}
	})
	return &Answer{
		First: first, Last: last, P50: hist.ValueAtQuantile(50), P90: hist.ValueAtQuantile(90), P99: hist.ValueAtQuantile(99),
		P999: hist.ValueAtQuantile(99.9), Max: hist.Max(), Count: hist.TotalCount(),
	}, err
}

// end reads each connection to its end and returns how many ended with tail.
func (g *group) end(buf, tail []byte) (ended int, err error) {
	left := len(g.conns)
	tails := make([][]byte, left)
	err = g.each(buf, func(i int, data []byte) (done bool, err error) {
		if data == nil {
			if left--; bytes.HasSuffix(tails[i], tail) {
				ended++
			}
			return left == 0, nil
		}
		all := append(tails[i], data...)
		tails[i] = append(tails[i][:0], all[max(len(all)-tailSize, 0):]...)
		return false, nil
	})
	return ended, err
}
