package session

import (
	"bytes"
	"strconv"
	"time"

	"blockdesk/fixgw/wire"
)

// Ordinary requests are handled on the goroutine that reads them and bypass quickfix's
// session, whose parsing, dictionary and goroutines cost more than everything else. quickfix stays
// the session layer: it gets every other message, and ordinary ones while it is busy.
//
// A request is ordinary when it is one of D F G H q, has no header field but the four that
// every message needs, no body field but those of wire.Ordinary, each once and in a form
// that the dictionary allows, and was sent now. The validator accepts whatever Scan
// accepts: TestFastPathIsStrict.
//
// quickfix is idle when it has processed every message that it was given: the next
// incoming number is above all of theirs. The number of a message that opens a gap stays
// above it until the gap is closed, so while quickfix waits for a resend it gets every
// message. It also gets one from time to time, because its timer ends the session of a
// client that seems silent.

const (
	// maxLatency is how old and how new a SendingTime may be; quickfix has 120 s.
	maxLatency = 119 * time.Second
	// idleWait is how long a request waits for quickfix to be idle before it goes through
	// quickfix too.
	idleWait = 20 * time.Millisecond
)

// quickfixInput records what a connection has given to quickfix. The reader's goroutine
// only.
type quickfixInput struct {
	highest uint64        // MsgSeqNum
	at      time.Time     // of the last message
	every   time.Duration // how often it must get one
	stuck   bool          // quickfix was not idle in time
	ending  bool          // a Logout was among them
}

// note records that frame goes to quickfix.
func (n *quickfixInput) note(frame []byte, seq uint64, now time.Time) {
	n.at = now
	switch wire.MsgType(frame) {
	case "A":
		n.highest = seq
	case "5":
		n.ending = true
	case "4":
		if !bytes.Contains(frame, []byte("\x01123=Y\x01")) {
			return // a reset is carried out at once, whatever its number
		}
	}
	n.highest = max(n.highest, seq)
}

// quickfixIdle reports whether quickfix has nothing to do, so that seq is the session's
// next message. It waits for at most idleWait.
func (c *conn) quickfixIdle(s *Session, seq uint64, now time.Time) bool {
	n := &c.toQuickfix
	if !c.server.profile.fastPath || n.ending || now.Sub(n.at) >= n.every {
		return false
	}
	if next := s.Messages.target.Load(); next > n.highest {
		n.stuck = false
		return next == seq
	}
	if n.stuck || seq != n.highest+1 {
		return false
	}
	limit := time.NewTimer(idleWait)
	defer limit.Stop()
	for s.Messages.target.Load() < seq {
		select {
		case <-s.Messages.targetSet:
		case <-limit.C:
			n.stuck = true
			return false
		}
	}
	return s.Messages.target.Load() == seq
}

// handleDirect handles x, which c has read, in place of quickfix. False means that
// nothing has happened and that quickfix must get it.
func (s *Session) handleDirect(c *conn, x *wire.Ordinary, now time.Time) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.outbound.online.Load() != c || !s.loggedOn.Load() || s.removed.Load() || s.kicked.Load() || !s.limits.messages.Has(now.UnixNano(), s.server.rates.messages) {
		return false
	}
	if late := now.Sub(time.Unix(0, x.SendingTime)); late > maxLatency || late < -maxLatency {
		return false
	}
	s.server.In.Add(1)
	s.over(now)
	placed, reject := s.Handler.OrderRequest(x.MsgType, &x.OrderRequest, len(c.in) == c.used)
	if reject != nil {
		s.sendReject(x, reject)
	}
	s.Messages.advanceTarget(x.Seq)
	c.placed = placed
	return true
}

// sendReject answers x as quickfix answers a message that its application refuses.
// Handlers refuse by a BusinessMessageReject (35=j) only.
func (s *Session) sendReject(x *wire.Ordinary, reject *wire.Reject) {
	const tagRefSeqNum = 45
	b := strconv.AppendUint(s.Out.Scratch[:0], x.Seq, 10)
	b = append(append(b, "\x0158="...), reject.Text...)
	b = append(append(b, "\x01372="...), x.MsgType)
	if id := reject.RefID; id != "" {
		b = append(append(b, "\x01379="...), id...)
	}
	s.Out.Scratch = strconv.AppendInt(append(b, "\x01380="...), int64(reject.Reason), 10)
	s.Send("j", tagRefSeqNum, s.Out.Scratch, false)
}
