package session

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/quickfixgo/quickfix"

	"blockdesk/fixgw/wire"
)

// Application messages go out past quickfix, which takes 90 allocations for each. quickfix
// holds a lock while it sends. We use it: we ask quickfix to send a placeholder, and in its
// callback before the send (ToApp) we number, encode and write a whole batch; then the
// callback refuses the placeholder. So numbers are given out one after the other, our
// messages do not come between replayed ones, and a sender waits for a replay, as it does
// with quickfix.
//
// A message of quickfix has its number before it reaches the connection, which keeps the
// order: see socket.

// outbound numbers a session's messages and sends them.
type outbound struct {
	host     *host
	id       *quickfix.SessionID
	messages *MessageStore
	conn     *atomic.Pointer[socket] // the session's
	// online is the connection that has been sent a Logon and no Logout; nil =
	// messages are only stored, as quickfix does it. Set under quickfix's lock.
	online atomic.Pointer[socket]

	mu          sync.Mutex // one deliver at a time; taken before quickfix's locks
	placeholder *quickfix.Message
	batch       *Batch
	err         error
	head        []byte // of the message being encoded
	stamp       int64  // SendingTime of the batch
	encode      func([]byte, *draft, uint64) []byte
	write       func(first, next, quickfixBefore uint64, messages []byte)
}

func (l *outbound) init(h *host, id *quickfix.SessionID, messages *MessageStore, conn *atomic.Pointer[socket]) {
	l.host, l.id, l.messages, l.conn = h, id, messages, conn
	l.placeholder = quickfix.NewMessage()
	l.placeholder.Header.SetString(35, "8")
	l.encode, l.write = l.appendDraft, l.push
	messages.onReset = l.restart
}

// deliver is Session.Deliver.
func (l *outbound) deliver(b *Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.number()
	l.host.Out.Add(uint64(len(b.Drafts)))
	l.batch, l.err = b, nil
	err := quickfix.SendToTarget(l.placeholder, *l.id)
	l.batch = nil
	if errors.Is(err, quickfix.ErrDoNotSend) {
		return l.err
	}
	return err
}

// store is Session.Store.
func (l *outbound) store(b *Batch) error {
	b.number()
	if len(b.Drafts) == 0 {
		return nil
	}
	l.host.Out.Add(uint64(len(b.Drafts)))
	l.batch, l.stamp = b, l.host.options.Now().UnixNano()
	return l.messages.number(b, l.encode, nil)
}

// numberBatch is called by ToApp of the placeholder.
func (l *outbound) numberBatch() {
	l.stamp = l.host.options.Now().UnixNano()
	l.err = l.messages.number(l.batch, l.encode, l.write)
}

func (l *outbound) push(first, next, quickfixBefore uint64, messages []byte) {
	if c := l.online.Load(); c != nil {
		c.push(first, next, quickfixBefore, messages)
	}
}

// restart resets the connection's queue when the numbers start again at 1.
func (l *outbound) restart() {
	if c := l.online.Load(); c != nil {
		c.restart()
	}
}

// admin takes a session message that quickfix is about to number: a Logon lets messages
// out, a Logout ends that.
func (l *outbound) admin(msgType []byte) {
	switch string(msgType) {
	case "A":
		l.online.Store(l.conn.Load())
	case "5":
		l.online.Store(nil)
	}
}

// appendDraft appends one whole message.
func (l *outbound) appendDraft(dst []byte, m *draft, seq uint64) []byte {
	id := l.id
	h := append(append(l.head[:0], "35="...), m.msgType...)
	h = strconv.AppendUint(append(h, "\x0134="...), seq, 10)
	h = append(append(h, "\x0149="...), id.SenderCompID...)
	h = wire.AppendTime(append(h, "\x0152="...), l.stamp)
	h = append(append(h, "\x0156="...), id.TargetCompID...)
	if m.possResend {
		h = append(h, "\x0197=Y"...)
	}
	h = append(strconv.AppendInt(append(h, wire.SOH), int64(m.firstTag), 10), '=')
	l.head = h
	return wire.AppendFrame(dst, h, l.batch.bodies[m.from:m.to])
}
