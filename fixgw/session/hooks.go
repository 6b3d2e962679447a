package session

import (
	"bytes"
	"time"

	"github.com/quickfixgo/quickfix"

	"blockdesk/fixgw/participants"
	"blockdesk/internal/ratelimit"
)

// Hooks let the tests of other packages inspect a Server and pause it. The product does not
// use them.
type Hooks struct{ Server *Server }

// QuickfixOnly has every message go through quickfix. Before Start.
func (h Hooks) QuickfixOnly() { h.Server.profile.fastPath = false }

// LimitResends replaces the limit of ResendRequests.
func (h Hooks) LimitResends(r ratelimit.Rate) { h.Server.rates.resends = r }

// Prepare does the part of a reload of list that can fail, and drops the result.
func (h Hooks) Prepare(list []participants.Participant) error {
	_, err := h.Server.prepare(h.Server.registry.Load(), list)
	return err
}

// Acceptors returns how many acceptors of quickfix there are.
func (h Hooks) Acceptors() int { return len(h.Server.acceptors.list) }

// Connections returns the counts of connections, of addresses with a connection that has
// not logged on, and of connections that have not logged on.
func (h Hooks) Connections() (conns, addresses, pending int) {
	l := h.Server.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), len(l.from), l.pending.Len()
}

// PreparedFor reports whether p's quickfix session serves the CompID.
func (h Hooks) PreparedFor(compID string, p *Prepared) bool {
	return h.Server.SessionNamed(compID).acceptor == p.acceptor
}

// Registered returns how many of its sessions are registered with quickfix.
func (e *Prepared) Registered() (n int) {
	for _, id := range e.acceptor.sessions {
		if _, err := quickfix.GetLog(id); err == nil {
			n++
		}
	}
	return n
}

// Ahead returns the set that Next will return, which must have been called before.
func (p *Pool) Ahead() *Prepared { return p.ready[0] }

// SessionHooks are the Hooks of one session.
type SessionHooks struct{ session *Session }

// Session returns the hooks of a session.
func (h Hooks) Session(compID string) SessionHooks {
	return SessionHooks{h.Server.SessionNamed(compID)}
}

// ThroughQuickfix returns how many messages quickfix's session has processed.
func (h SessionHooks) ThroughQuickfix() uint64 { return h.session.Messages.startedByQuickfix.Load() }

// Lock keeps the session from handling messages of its client.
func (h SessionHooks) Lock() { h.session.lock.Lock() }

// Unlock ends what Lock began.
func (h SessionHooks) Unlock() { h.session.lock.Unlock() }

// HoldOutbound keeps what is sent to the client back until release is called.
func (h SessionHooks) HoldOutbound() (release func()) {
	h.session.outbound.mu.Lock()
	return h.session.outbound.mu.Unlock
}

// OnSend calls hook once, as soon as messages with the field have gone to the client and
// before their sender continues.
func (h SessionHooks) OnSend(field string, hook func()) {
	l := &h.session.outbound
	l.mu.Lock()
	defer l.mu.Unlock()
	write := l.write
	l.write = func(first, next, quickfixBefore uint64, messages []byte) {
		write(first, next, quickfixBefore, messages)
		if bytes.Contains(messages, []byte("\x01"+field+"\x01")) {
			l.write = write
			hook()
		}
	}
}

// ConnHooks are the hooks of one connection.
type ConnHooks struct{ conn *socket }

// Conn returns the hooks of the connection that has the session.
func (h SessionHooks) Conn() ConnHooks { return ConnHooks{h.session.conn.Load()} }

// SetWriteTimeout sets how long a write may take.
func (h ConnHooks) SetWriteTimeout(d time.Duration) {
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	h.conn.writeTimeout = d
}

// Waiting returns the bytes that the client has not taken.
func (h ConnHooks) Waiting() int { return h.conn.waiting() }

// Cut returns why the connection was cut; nil = it was not.
func (h ConnHooks) Cut() error {
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	return h.conn.cut
}

// EachMessage calls f for every message that the session keeps, in their order.
func (h SessionHooks) EachMessage(f func(message []byte) error) error {
	m := h.session.Messages
	m.replay = 1 << 20
	return m.IterateMessages(1, m.NextSenderMsgSeqNum(), f)
}
