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
type connMessageKind uint8

const (
	connJoin    connMessageKind = iota + 1 // a new connection
	connRequest                            // a request
	connPing                               // a ping frame; text is its data
	connClose                              // close with code and text
	connGone                               // the reader has ended
)

type connMessage struct {
	kind    connMessageKind
	code    uint16
	conn    *conn
	request *request
	text    string
}

// inbox is how Run, the tickets' goroutine and the readers reach a shard: two
// queues behind one lock that is held for appends and a swap only.
//
// The queue of publications holds at most maxInbox. A push beyond that empties
// it and sets overrun, whereupon the shard takes the current views and gives
// snapshots. The queue of letters is bounded by the connections: each has at
// most maxInflight requests and pings, one join, one leave and one gone in it.
type inbox struct {
	mu       sync.Mutex
	pubs     []publication
	messages []connMessage
	pos      enginePos // of the last publish that had one
	overrun  bool
	stop     bool
	wake     chan struct{} // holds one: there is something to take
}

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

func (b *inbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// publish hands over copies of pubs. A mark that is not zero says where the markets
// stand after them; one without pubs wakes nobody. It never waits.
func (b *inbox) publish(pubs []publication, at enginePos) {
	b.mu.Lock()
	if at != (enginePos{}) {
		b.pos = at
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
		b.signal()
	}
}

func (b *inbox) send(m connMessage) {
	b.mu.Lock()
	b.messages = append(b.messages, m)
	b.mu.Unlock()
	b.signal()
}

func (b *inbox) halt() {
	b.mu.Lock()
	b.stop = true
	b.mu.Unlock()
	b.signal()
}

// taken is what one take found.
type taken struct {
	pubs     []publication
	messages []connMessage
	pos      enginePos
	overrun  bool
	stop     bool
}

// take swaps the queues for the empty ones in t.
func (b *inbox) take(t *taken) {
	clear(t.pubs)
	clear(t.messages)
	b.mu.Lock()
	t.pubs, b.pubs = b.pubs, t.pubs[:0]
	t.messages, b.messages = b.messages, t.messages[:0]
	t.overrun, b.overrun = b.overrun, false
	t.pos, t.stop = b.pos, b.stop
	b.mu.Unlock()
}
