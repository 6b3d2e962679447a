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
// order: see writeQueue.

// draft is an application message without header: its body is fields as
// "tag=value" with SOH between them, without firstTag's name and the last SOH.
type draft struct {
	msgType    string
	firstTag   int
	possResend bool
	from, to   int // of the body in batch.bodies
}

// Batch is messages of one session that go out together. One goroutine at a time.
type Batch struct {
	Drafts []draft
	bodies []byte
	// Before is called under the line's mutex, right before the batch gets its
	// numbers; nil = nothing is.
	Before func()
}

// maxKeptBodies is the largest buffer that an empty batch keeps.
const maxKeptBodies = 64 << 10

// Add copies body.
func (b *Batch) Add(msgType string, firstTag int, body []byte, possResend bool) {
	from := len(b.bodies)
	b.bodies = append(b.bodies, body...)
	b.Drafts = append(b.Drafts, draft{msgType, firstTag, possResend, from, len(b.bodies)})
}

// Clear empties the batch for reuse.
func (b *Batch) Clear() {
	b.Drafts = b.Drafts[:0]
	if b.bodies = b.bodies[:0]; cap(b.bodies) > maxKeptBodies {
		b.bodies = nil
	}
}

// outbound numbers a session's messages and sends them.
type outbound struct {
	session *Session
	// online is the connection that has been sent a Logon and no Logout; nil =
	// messages are only stored, as quickfix does it. Set under quickfix's lock.
	online atomic.Pointer[conn]

	mu          sync.Mutex // one deliver at a time; taken before quickfix's locks
	placeholder *quickfix.Message
	batch       *Batch
	err         error
	head        []byte // of the message being encoded
	stamp       int64  // SendingTime of the batch
	encode      func([]byte, *draft, uint64) []byte
	write       func(first, next, quickfixBefore uint64, messages []byte)
}

func (l *outbound) init(s *Session) {
	l.session = s
	l.placeholder = quickfix.NewMessage()
	l.placeholder.Header.SetString(35, "8")
	l.encode, l.write = l.appendDraft, l.push
	s.Messages.onReset = l.restart
}

// number is called when the batch is about to get its numbers.
func (b *Batch) number() {
	if b.Before != nil {
		b.Before()
	}
}

// Deliver numbers the messages of b and sends them, or only stores them where the client
// is not logged on. An error is the store's, and final. Any goroutine that holds none of
// quickfix's locks.
func (s *Session) Deliver(b *Batch) error {
	l := &s.outbound
	l.mu.Lock()
	defer l.mu.Unlock()
	b.number()
	s.server.Out.Add(uint64(len(b.Drafts)))
	l.batch, l.err = b, nil
	err := quickfix.SendToTarget(l.placeholder, s.id)
	l.batch = nil
	if errors.Is(err, quickfix.ErrDoNotSend) {
		return l.err
	}
	return err
}

// Store numbers the messages of b while quickfix does not run. b may be empty: transient
// messages are not sent later.
func (s *Session) Store(b *Batch) error {
	b.number()
	if len(b.Drafts) == 0 {
		return nil
	}
	s.server.Out.Add(uint64(len(b.Drafts)))
	s.outbound.batch, s.outbound.stamp = b, s.server.options.Now().UnixNano()
	return s.Messages.number(b, s.outbound.encode, nil)
}

// numberBatch is called by ToApp of the placeholder.
func (l *outbound) numberBatch() {
	l.stamp = l.session.server.options.Now().UnixNano()
	l.err = l.session.Messages.number(l.batch, l.encode, l.write)
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
		l.online.Store(l.session.conn.Load())
	case "5":
		l.online.Store(nil)
	}
}

// appendDraft appends one whole message.
func (l *outbound) appendDraft(dst []byte, m *draft, seq uint64) []byte {
	id := &l.session.id
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

// Outbox sends application messages one by one. One goroutine at a time.
type Outbox struct {
	batch   Batch
	Scratch []byte
}

// Send hands one message to the session: it is stored, and written when the
// session is logged on. body is in the form of draft; it is copied. An error is
// the store's, and final.
func (o *Outbox) Send(s *Session, msgType string, firstTag int, body []byte, possResend bool) error {
	o.batch.Clear()
	o.batch.Add(msgType, firstTag, body, possResend)
	return s.Deliver(&o.batch)
}

// newsSender sends News (35=B).
type newsSender struct {
	mu  sync.Mutex
	out Outbox
}

// TagHeadline is the first field of News.
const TagHeadline = 148
