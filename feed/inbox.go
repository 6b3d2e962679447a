package feed

import (
	"sync"

	"blockdesk/engine"
)

// publication is what one flush says of one instrument: of its market, next, or
// of its tickets, book; the other is nil. frames has the update of each kind that
// has changed and that somebody may be waiting for.
type publication struct {
	next   *engine.View
	book   *ticketBook
	frames [kinds][]byte
}

// note says what a connection's reader tells its shard.
type note uint8

const (
	noteJoin  note = iota + 1 // a new connection
	noteAsk                   // a request
	notePing                  // a ping frame; text is its data
	noteLeave                 // close with code and text
	noteGone                  // the reader has ended
)

type letter struct {
	note note
	code uint16
	conn *conn
	ask  *request
	text string
}

// inbox is how Run, the tickets' goroutine and the readers reach a shard: two
// queues behind one lock that is held for appends and a swap only.
//
// The queue of publications holds at most maxInbox. A push beyond that empties
// it and sets overrun, whereupon the shard takes the current views and gives
// snapshots. The queue of letters is bounded by the connections: each has at
// most maxInflight requests and pings, one join, one leave and one gone in it.
type inbox struct {
	mu      sync.Mutex
	pubs    []publication
	letters []letter
	mark    mark // of the last publish that had one
	overrun bool
	stop    bool
	wake    chan struct{} // holds one: there is something to take
}

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

func (b *inbox) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// publish hands over copies of pubs. A mark that is not zero says where the markets
// stand after them; one without pubs wakes nobody. It never waits.
func (b *inbox) publish(pubs []publication, at mark) {
	b.mu.Lock()
	if at != (mark{}) {
		b.mark = at
	}
	if len(b.pubs)+len(pubs) > maxInbox {
		clear(b.pubs)
		b.pubs = b.pubs[:0]
		b.overrun = true
	} else {
		b.pubs = append(b.pubs, pubs...)
	}
	b.mu.Unlock()
	if len(pubs) > 0 {
		b.ring()
	}
}

func (b *inbox) send(m letter) {
	b.mu.Lock()
	b.letters = append(b.letters, m)
	b.mu.Unlock()
	b.ring()
}

func (b *inbox) halt() {
	b.mu.Lock()
	b.stop = true
	b.mu.Unlock()
	b.ring()
}

// taken is what one take found.
type taken struct {
	pubs    []publication
	letters []letter
	mark    mark
	overrun bool
	stop    bool
}

// take swaps the queues for the empty ones in t.
func (b *inbox) take(t *taken) {
	clear(t.pubs)
	clear(t.letters)
	b.mu.Lock()
	t.pubs, b.pubs = b.pubs, t.pubs[:0]
	t.letters, b.letters = b.letters, t.letters[:0]
	t.overrun, b.overrun = b.overrun, false
	t.mark, t.stop = b.mark, b.stop
	b.mu.Unlock()
}
