package fixgw

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/quickfixgo/quickfix"

	"blockdesk/fixgw/wire"
)

// Application messages go out past quickfix, which would take 90 allocations for
// each. Its lock of what is sent is ours for a moment: we ask it to send a
// message, the carrier, and while it asks us back (ToApp) whether it may, we
// number, encode and show the connection a whole batch; then it may not. So
// numbers are given out one after the other, nothing of ours comes between
// replayed messages, and whoever sends waits for a replay, as with quickfix.
//
// What quickfix itself sends has its number before it reaches the connection.
// The connection keeps the order: see outlet.

// draft is an application message without header: its body is fields as
// "tag=value" with SOH between them, without firstTag's name and the last SOH.
type draft struct {
	msgType    string
	firstTag   int
	possResend bool
	from, to   int // of the body in batch.bodies
}

// batch is messages of one session that go out together. One goroutine at a
// time.
type batch struct {
	drafts []draft
	bodies []byte
	// before is called under the line's mutex, right before the batch gets its
	// numbers; nil = nothing is.
	before func()
}

// maxKeptBodies is the largest buffer that an idle batch holds on to.
const maxKeptBodies = 64 << 10

// add copies body.
func (b *batch) add(msgType string, firstTag int, body []byte, possResend bool) {
	from := len(b.bodies)
	b.bodies = append(b.bodies, body...)
	b.drafts = append(b.drafts, draft{msgType, firstTag, possResend, from, len(b.bodies)})
}

func (b *batch) clear() {
	b.drafts = b.drafts[:0]
	if b.bodies = b.bodies[:0]; cap(b.bodies) > maxKeptBodies {
		b.bodies = nil
	}
}

// line is a session's way out.
type line struct {
	session *session
	// online is the connection that has been sent a Logon and no Logout; nil =
	// messages are only stored, as quickfix does it. Set under quickfix's lock.
	online atomic.Pointer[conn]

	mu      sync.Mutex // one deliver at a time; taken before quickfix's locks
	carrier *quickfix.Message
	batch   *batch
	err     error
	head    []byte // of the message being encoded
	stamp   int64  // SendingTime of the batch
	encode  func([]byte, *draft, uint64) []byte
	show    func(first, next, handed uint64, messages []byte)
}

func (l *line) init(s *session) {
	l.session = s
	l.carrier = quickfix.NewMessage()
	l.carrier.Header.SetString(35, "8")
	l.encode, l.show = l.appendDraft, l.push
	s.messages.restarted = l.restart
}

// number is called when the batch is about to get its numbers.
func (b *batch) number() {
	if b.before != nil {
		b.before()
	}
}

// deliver numbers the messages of b and sends them, or only stores them where
// nobody is logged on. An error is the store's, and final. Any goroutine that holds none of
// quickfix's locks.
func (s *session) deliver(b *batch) error {
	l := &s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	b.number()
	l.batch, l.err = b, nil
	err := quickfix.SendToTarget(l.carrier, s.id)
	l.batch = nil
	if errors.Is(err, quickfix.ErrDoNotSend) {
		return l.err
	}
	return err
}

// store numbers the messages of b while quickfix does not run. There may be none:
// what tells of a moment is not said later.
func (s *session) store(b *batch) error {
	b.number()
	if len(b.drafts) == 0 {
		return nil
	}
	s.line.batch, s.line.stamp = b, s.server.options.Now().UnixNano()
	return s.messages.number(b, s.line.encode, nil)
}

// carried is ToApp of the carrier.
func (l *line) carried() {
	l.stamp = l.session.server.options.Now().UnixNano()
	l.err = l.session.messages.number(l.batch, l.encode, l.show)
}

func (l *line) push(first, next, handed uint64, messages []byte) {
	if c := l.online.Load(); c != nil {
		c.push(first, next, handed, messages)
	}
}

// restart is told that the numbers begin anew.
func (l *line) restart() {
	if c := l.online.Load(); c != nil {
		c.restart()
	}
}

// admin follows a session message that quickfix is about to number: a Logon
// opens the way out, a Logout ends it.
func (l *line) admin(msgType []byte) {
	switch string(msgType) {
	case "A":
		l.online.Store(l.session.conn.Load())
	case "5":
		l.online.Store(nil)
	}
}

// appendDraft appends one whole message.
func (l *line) appendDraft(dst []byte, m *draft, seq uint64) []byte {
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

// outbox sends application messages one by one. One goroutine at a time.
type outbox struct {
	batch   batch
	scratch []byte
}

// send hands one message to the session: it is stored, and written when the
// session is logged on. body is in the form of draft; it is copied. An error is
// the store's, and final.
func (o *outbox) send(s *session, msgType string, firstTag int, body []byte, possResend bool) error {
	o.batch.clear()
	o.batch.add(msgType, firstTag, body, possResend)
	return s.deliver(&o.batch)
}
