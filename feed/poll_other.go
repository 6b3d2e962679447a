//go:build !linux || feed_goroutines

package feed

import (
	"sync"
	"time"
)

// poll reads each connection of a shard on a goroutine of its own, which works on every
// platform. The shard adds connections; run starts their goroutines and waits for them.
// Closing a connection ends its goroutine.
type poll struct {
	feed  *Feed
	fresh chan *conn
	ended chan struct{}
}

func newPoll(f *Feed) (*poll, error) {
	return &poll{feed: f, fresh: make(chan *conn), ended: make(chan struct{})}, nil
}

// add begins to read c. The shard calls it once, while run is running.
func (p *poll) add(c *conn) error {
	p.fresh <- c
	return nil
}

// remove does nothing, because closing c ends its goroutine.
func (p *poll) remove(*conn) {}

// close ends run, after the shard has ended.
func (p *poll) close() { close(p.ended) }

// run reads connections until close.
func (p *poll) run() {
	var readers sync.WaitGroup
	defer readers.Wait()
	for {
		select {
		case c := <-p.fresh:
			readers.Go(func() { p.read(c) })
		case <-p.ended:
			return
		}
	}
}

// read reads c to its end and reports to its shard that it is gone.
func (p *poll) read(c *conn) {
	r := &reader{feed: p.feed, now: time.Now()}
	more := r.receive(c, c.earlyInput)
	c.earlyInput = nil
	for more {
		n, err := c.tcp.Read(r.buf[:])
		r.now = time.Now()
		more = err == nil && r.receive(c, r.buf[:n])
	}
	c.inbox.send(connMessage{kind: connClosed, conn: c})
}
