//go:build !linux || feed_goroutines

package feed

import (
	"sync"
	"time"
)

// poll reads the connections of a shard on a goroutine each: what works
// everywhere. The shard adds; run starts the goroutines and joins them. A
// connection that the shard closes ends its goroutine.
type poll struct {
	feed  *Feed
	fresh chan *conn
	ended chan struct{}
}

func newPoll(f *Feed) (*poll, error) {
	return &poll{feed: f, fresh: make(chan *conn), ended: make(chan struct{})}, nil
}

// add begins to read c. The shard calls it, once, while run runs.
func (p *poll) add(c *conn) error {
	p.fresh <- c
	return nil
}

// remove does nothing: that c is closed says all.
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

// read hears c to its end and tells its shard.
func (p *poll) read(c *conn) {
	r := &reader{feed: p.feed, now: time.Now()}
	more := r.receive(c, c.early)
	c.early = nil
	for more {
		n, err := c.tcp.Read(r.buf[:])
		r.now = time.Now()
		more = err == nil && r.receive(c, r.buf[:n])
	}
	c.shard.inbox.send(connMessage{kind: connGone, conn: c})
}
