package feed

import (
	"sync"

	"blockdesk/engine/marketdata"
)

// publication is a change of one instrument: of its market data (next) or of its tickets or
// sales (list); the other one is nil. frames has the update of each kind that has changed and
// has subscribers.
type publication struct {
	next   *marketdata.View
	list   *deskList
	frames [numKinds][]byte
}

// connMessageKind is the kind of a message from a connection's reader to its shard.
type connMessageKind uint8

const (
	connJoin    connMessageKind = iota + 1 // a new connection
	connRequest                            // a request
	connPing                               // a ping frame; text is its payload
	connClose                              // close the connection with code and text
	connClosed                             // the client has closed the connection
)

type connMessage struct {
	kind    connMessageKind
	code    uint16
	conn    *conn
	request *request
	text    string
}

// inbox is the input of a shard: publications from Run and the desk publisher, and
// messages from the reader. Its lock is held only for appends and a swap.
//
// pubs holds at most maxInbox publications. One more empties it and sets overrun: the
// shard then takes the current views and sends snapshots. messages is bounded by the
// connections: each has at most maxInflight requests and pings, one join, one close and
// one report that the client has closed.
type inbox struct {
	mu       sync.Mutex
	pubs     []publication
	messages []connMessage
	pos      enginePos // of the last publish that had one
	overrun  bool
	stop     bool
	quiet    bool          // the shard has no connection and gets no publications
	missed   bool          // it has missed some
	wake     chan struct{} // buffered: there is something to take
}

func newInbox() inbox { return inbox{wake: make(chan struct{}, 1)} }

func (b *inbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// publish appends copies of pubs and never waits. A pos that is not zero is the engine
// position after them; a pos without pubs does not wake the shard.
func (b *inbox) publish(pubs []publication, pos enginePos) {
	b.mu.Lock()
	if pos != (enginePos{}) {
		b.pos = pos
	}
	wake := len(pubs) > 0 && !b.quiet
	switch {
	case b.quiet:
		b.missed = true
	case len(b.pubs)+len(pubs) > maxInbox:
		clear(b.pubs)
		b.pubs = b.pubs[:0]
		b.overrun = true
	default:
		b.pubs = append(b.pubs, pubs...)
	}
	b.mu.Unlock()
	if wake {
		b.signal()
	}
}

// setQuiet says that the shard has no connection. It gets no publications until it has
// one, and then learns that it has missed some.
func (b *inbox) setQuiet(quiet bool) {
	b.mu.Lock()
	b.quiet = quiet
	b.mu.Unlock()
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

// taken is the content of an inbox at one take.
type taken struct {
	pubs     []publication
	messages []connMessage
	pos      enginePos // of the last publish with one
	overrun  bool
	missed   bool
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
	t.missed, b.missed = b.missed, false
	b.quiet = b.quiet && len(t.messages) == 0 // a connection may come with them
	t.pos, t.stop = b.pos, b.stop
	b.mu.Unlock()
}
