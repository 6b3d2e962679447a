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

// pollEvents is the most connections that one pass reads.
const pollEvents = 128

// poll reads all connections of a shard on one goroutine. It waits on an epoll
// instance, and Go's own poller waits on that instance, so that no thread is blocked.
// The shard adds and removes connections; run reads them.
//
// An event carries the connection's slot and the slot's generation instead of the file
// descriptor, so that an event of a closed connection never reaches the next
// connection in the slot.
type poll struct {
	file   *os.File // the epoll instance
	raw    syscall.RawConn
	reader *reader
	events [pollEvents]syscall.EpollEvent
	count  int // of events

	mu    sync.Mutex
	slots []pollSlot
	free  []int32 // indexes of free slots

	ready []*conn // of this pass
	n     int     // result of fill
	err   error
	fill  func(fd uintptr)
}

// pollSlot holds a connection.
type pollSlot struct {
	conn *conn // nil = free
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

// add begins to read c, at once if it has early input. The shard calls it once.
func (p *poll) add(c *conn) error {
	events := uint32(syscall.EPOLLIN)
	if c.earlyInput != nil {
		events |= syscall.EPOLLOUT // ready at once
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

// remove stops reading c, which was added and is about to be closed; closing a socket
// removes it from the epoll instance. The shard calls it once.
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
	// It fails only if it is already closed.
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

// wait takes the pending events without waiting and reports whether there are any. The
// events are level-triggered, so those that a pass leaves come again.
func (p *poll) wait(fd uintptr) bool {
	for {
		n, err := syscall.EpollWait(int(fd), p.events[:], 0)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			panic(fmt.Errorf("feed: epoll_wait: %w", err))
		}
		p.count = n
		return n > 0
	}
}

// collectReady sets ready to the connections that have events.
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

// read reads c once and reports whether to read it again.
func (p *poll) read(c *conn) bool {
	if earlyInput := c.earlyInput; earlyInput != nil {
		c.earlyInput = nil
		return p.watch(c, syscall.EPOLL_CTL_MOD, syscall.EPOLLIN) == nil && p.reader.receive(c, earlyInput)
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

// stopReading stops reading c and reports to its shard that it is gone.
func (p *poll) stopReading(c *conn) {
	// It fails only if the socket is already closed.
	_ = p.watch(c, syscall.EPOLL_CTL_DEL, 0)
	c.inbox.send(connMessage{kind: connClosed, conn: c})
}

// watch changes the events of c's socket for which the instance waits.
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
