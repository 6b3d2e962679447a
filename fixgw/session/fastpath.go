package session

import (
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

// maxLatency is how old and how new a SendingTime may be; quickfix has 120 s.
const maxLatency = 119 * time.Second

// handleDirect handles x, which c has read, in place of quickfix; alone and enqueued are
// those of Handler.OrderRequest. If it returns handled false, nothing has happened and
// quickfix must get x.
func (s *Session) handleDirect(c *socket, x *wire.Ordinary, now time.Time, alone bool) (handled, enqueued bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.outbound.online.Load() != c || !s.loggedOn.Load() || s.removed.Load() || s.kicked.Load() || !s.limits.messages.Has(now.UnixNano(), s.host.rates.messages) {
		return false, false
	}
	if late := now.Sub(time.Unix(0, x.SendingTime)); late > maxLatency || late < -maxLatency {
		return false, false
	}
	s.host.In.Add(1)
	s.over(now)
	enqueued, reject := s.Handler.OrderRequest(x.MsgType, &x.OrderRequest, alone)
	if reject != nil {
		s.sendReject(x, reject)
	}
	s.Messages.advanceTarget(x.Seq)
	return true, enqueued
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
