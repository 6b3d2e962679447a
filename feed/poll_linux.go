//go:build linux && !feed_goroutines

package feed

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// pollEvents is the number of connections that one pass reads at most.
const pollEvents = 128

// poll waits for all connections of a shard at once, on one goroutine: an epoll
// instance, which Go's own poller in turn waits for, so that no thread does.
// The shard adds and removes; run reads.
//
// A connection's event names its seat and the seat's turn, never the file
// descriptor: whoever got that number or that seat later is not meant.
type poll struct {
	file   *os.File // the epoll instance
	raw    syscall.RawConn
	reader *reader
	events [pollEvents]syscall.EpollEvent
	count  int // of events

	mu    sync.Mutex
	slots []pollSlot
	free  []int32 // seats that nobody has

	ready []*conn // of this pass
	n     int     // what fill has read
	err   error
	fill  func(fd uintptr)
}

// seat is where the poll finds a connection.
type pollSlot struct {
	conn *conn // nil = nobody
	gen  int32 // grows with each change of conn
}

func newPoll(f *Feed) (*poll, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("feed: epoll: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("feed: epoll: %w", err)
	}
	p := &poll{file: os.NewFile(uintptr(fd), "epoll"), reader: &reader{feed: f}}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		_ = p.file.Close()
		return nil, fmt.Errorf("feed: epoll: %w", err)
	}
	p.fill = func(fd uintptr) { p.n, p.err = syscall.Read(int(fd), p.reader.buf[:]) }
	return p, nil
}

// add begins to read c, at once if it has said something early. The shard calls
// it, once.
func (p *poll) add(c *conn) error {
	events := uint32(syscall.EPOLLIN)
	if c.early != nil {
		events |= syscall.EPOLLOUT // true at once
	}
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		c.pollSlot, p.free = p.free[n-1], p.free[:n-1]
	} else {
		c.pollSlot = int32(len(p.slots))
		p.slots = append(p.slots, pollSlot{})
	}
	s := &p.slots[c.pollSlot]
	s.gen++
	s.conn, c.pollGen = c, s.gen
	p.mu.Unlock()
	return p.watch(c, syscall.EPOLL_CTL_ADD, events)
}

// remove stops reading c, which has been added and is about to be closed: the
// kernel forgets a socket when it is closed. The shard calls it, once.
func (p *poll) remove(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &p.slots[c.pollSlot]
	s.gen++
	s.conn = nil
	p.free = append(p.free, c.pollSlot)
}

// close ends run.
func (p *poll) close() {
	// Fails only where it was closed before.
	_ = p.file.Close()
}

// run reads connections until close.
func (p *poll) run() {
	for p.raw.Read(p.wait) == nil {
		p.reader.now = time.Now()
		p.collectReady()
		for _, c := range p.ready {
			if !p.read(c) {
				p.stopReading(c)
			}
		}
		clear(p.ready)
	}
}

// gather takes the events that are there, and reports whether there are any. It
// does not wait: level-triggered events that a pass leaves behind come again.
func (p *poll) wait(fd uintptr) bool {
	for {
		n, err := syscall.EpollWait(int(fd), p.events[:], 0)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			panic(fmt.Errorf("feed: epoll_wait on our own instance: %w", err))
		}
		p.count = n
		return n > 0
	}
}

// seated sets ready to the connections that the events mean.
func (p *poll) collectReady() {
	p.ready = p.ready[:0]
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.events[:p.count] {
		if s := &p.slots[e.Fd]; s.gen == e.Pad && s.conn != nil {
			p.ready = append(p.ready, s.conn)
		}
	}
}

// read hears what c has to say now, and reports whether more may come.
func (p *poll) read(c *conn) bool {
	if early := c.early; early != nil {
		c.early = nil
		return p.watch(c, syscall.EPOLL_CTL_MOD, syscall.EPOLLIN) == nil && p.reader.receive(c, early)
	}
	if err := c.raw.Control(p.fill); err != nil {
		return true // the shard has closed it
	}
	switch {
	case p.n > 0:
		return p.reader.receive(c, p.reader.buf[:p.n])
	case errors.Is(p.err, syscall.EAGAIN), errors.Is(p.err, syscall.EINTR):
		return true
	default:
		return false
	}
}

// quit reads c no more and tells its shard.
func (p *poll) stopReading(c *conn) {
	// Fails only on a socket that is gone already.
	_ = p.watch(c, syscall.EPOLL_CTL_DEL, 0)
	c.shard.inbox.send(connMessage{kind: connGone, conn: c})
}

// watch changes what the instance looks for on c's socket.
func (p *poll) watch(c *conn, op int, events uint32) error {
	e := syscall.EpollEvent{Events: events, Fd: c.pollSlot, Pad: c.pollGen}
	err := errors.ErrUnsupported
	_ = p.raw.Control(func(epoll uintptr) {
		if e := c.raw.Control(func(fd uintptr) {
			err = syscall.EpollCtl(int(epoll), op, int(fd), &e)
		}); e != nil {
			err = e
		}
	})
	return err
}
