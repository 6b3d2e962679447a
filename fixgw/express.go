package fixgw

import (
	"bytes"
	"strconv"
	"time"
)

// Ordinary requests are handled on the goroutine that has read them, past
// quickfix's session, whose parsing, dictionary and goroutines cost more than all
// the rest. quickfix stays the session layer: it gets everything that is not
// ordinary, and what is, while it is at work.
//
// A request is ordinary when it is one of D F G H q, has no header field but the
// four that every message needs, no body field but those below, each once, in a
// form that the dictionary surely lets through, and was sent now. What scan lets
// through the validator lets through: TestExpressIsStrict.
//
// quickfix is at rest when every message that it was given is accounted for: the
// next incoming number is above all of theirs. A message that opens a gap stays
// above it until the gap is closed, so while quickfix waits for a resend it gets
// everything. It also gets a message now and then because its timer would take a
// client for dead of whom it hears nothing.

// The messages that may be ordinary, as a set.
type expressKinds uint8

const (
	expressNew    expressKinds = 1 << 0 // D
	expressCancel expressKinds = 1 << 1 // F
	expressAmend  expressKinds = 1 << 2 // G
	expressStatus expressKinds = 1 << 3 // H
	expressMass   expressKinds = 1 << 4 // q

	expressChange = expressCancel | expressAmend
	expressOrder  = expressNew | expressAmend
	expressAll    = expressNew | expressChange | expressStatus | expressMass
)

// express is an ordinary request. It aliases the message.
type express struct {
	request
	kind expressKinds
	seq  uint64
	sent int64 // SendingTime, Unix nanoseconds
}

func expressKind(msgType []byte) expressKinds {
	if len(msgType) != 1 {
		return 0
	}
	switch msgType[0] {
	case 'D':
		return expressNew
	case 'F':
		return expressCancel
	case 'G':
		return expressAmend
	case 'H':
		return expressStatus
	case 'q':
		return expressMass
	}
	return 0
}

// Bits of what scan has seen: the header's fields, and those of the body that
// may be required.
const (
	seenSeq uint32 = 1 << iota
	seenSender
	seenSendingTime
	seenTarget
	seenClOrdID
	seenOrigClOrdID
	seenSide
	seenTransactTime
	seenOrdType
	seenMassType
	seenHandlInst
	seenAccount

	seenHeader = seenSeq | seenSender | seenSendingTime | seenTarget
)

// expressBegin is how an ordinary message begins; BodyLength follows.
var expressBegin = []byte("8=FIX.4.4\x019=")

// scan reads a frame that scanFrame has let through, and reports whether it is
// an ordinary request from sender to target.
func (x *express) scan(frame []byte, sender, target string) bool {
	*x = express{}
	if !bytes.HasPrefix(frame, expressBegin) {
		return false
	}
	rest := frame[len(expressBegin):]
	rest = rest[bytes.IndexByte(rest, soh)+1:]
	end := bytes.IndexByte(rest, soh)
	if end < 3 || string(rest[:3]) != "35=" {
		return false
	}
	if x.kind = expressKind(rest[3:end]); x.kind == 0 {
		return false
	}
	rest = rest[end+1 : len(rest)-trailerSize]
	seen := uint32(0)
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, soh)
		tag, value := splitField(rest[:end])
		if len(value) == 0 {
			return false
		}
		rest = rest[end+1:]
		var bit uint32
		var ok bool
		if seen&seenHeader != seenHeader {
			bit, ok = x.header(tag, value, sender, target)
		} else {
			bit, ok = x.body(tag, value)
		}
		if !ok || seen&bit != 0 {
			return false
		}
		seen |= bit
	}
	needs := x.needs()
	return seen&needs == needs
}

// needs returns the fields that the dictionary requires.
func (x *express) needs() uint32 {
	const side, at = seenHeader | seenClOrdID | seenSide, seenTransactTime
	switch x.kind {
	case expressNew:
		return side | at | seenOrdType
	case expressCancel:
		return side | at | seenOrigClOrdID
	case expressAmend:
		return side | at | seenOrigClOrdID | seenOrdType
	case expressStatus:
		return side
	default:
		return seenHeader | seenClOrdID | seenMassType | at
	}
}

// header takes one of the four fields of the header.
func (x *express) header(tag int, value []byte, sender, target string) (bit uint32, ok bool) {
	switch tag {
	case 34:
		seq, err := parseSeq(value)
		x.seq = seq
		return seenSeq, err == nil
	case 49:
		return seenSender, string(value) == sender
	case 52:
		x.sent, ok = parseTimestamp(value)
		return seenSendingTime, ok
	case 56:
		return seenTarget, string(value) == target
	}
	return 0, false
}

// body takes a field of the body. Fields without a bit are there once because
// their value is nil before.
func (x *express) body(tag int, value []byte) (bit uint32, ok bool) {
	switch tag {
	case 11:
		x.clOrdID = value
		return seenClOrdID, true
	case 41:
		x.origClOrdID = value
		return seenOrigClOrdID, x.kind&expressChange != 0
	case 54:
		x.side = value
		return seenSide, oneOf(value, "12")
	case 60:
		_, ok = parseTimestamp(value)
		return seenTransactTime, ok && x.kind != expressStatus
	case 40:
		x.ordType = value
		return seenOrdType, oneOf(value, "1234") && x.kind&expressOrder != 0
	case 530:
		x.massType = value
		return seenMassType, oneOf(value, "17") && x.kind == expressMass
	case 21: // HandlInst
		return seenHandlInst, oneOf(value, "123") && x.kind&expressOrder != 0
	case 1: // Account
		return seenAccount, x.kind&(expressOrder|expressCancel) != 0
	case 55:
		return 0, once(&x.symbol, value)
	case 37:
		return 0, x.kind&(expressChange|expressStatus) != 0 && once(&x.orderID, value)
	case 38:
		return 0, x.kind&(expressOrder|expressCancel) != 0 && isAmount(value) && once(&x.qty, value)
	case 59:
		return 0, x.kind&expressOrder != 0 && oneOf(value, "01346") && once(&x.tif, value)
	case 44:
		return 0, x.kind&expressOrder != 0 && isAmount(value) && once(&x.price, value)
	case 99:
		return 0, x.kind&expressOrder != 0 && isAmount(value) && once(&x.stop, value)
	case 111:
		return 0, x.kind&expressOrder != 0 && isAmount(value) && once(&x.maxFloor, value)
	case 18:
		return 0, x.kind&expressOrder != 0 && oneOf(value, "6") && once(&x.execInst, value)
	case 432:
		return 0, x.kind&expressOrder != 0 && once(&x.expireDate, value)
	case 126:
		_, ok = parseTimestamp(value)
		return 0, x.kind&expressOrder != 0 && ok && once(&x.expireTime, value)
	}
	return 0, false
}

func once(field *[]byte, value []byte) bool {
	first := *field == nil
	*field = value
	return first
}

// oneOf reports whether value is one of the characters of set.
func oneOf(value []byte, set string) bool {
	if len(value) != 1 {
		return false
	}
	for i := range len(set) {
		if set[i] == value[0] {
			return true
		}
	}
	return false
}

// isAmount reports whether value is digits with at most one point among them.
func isAmount(value []byte) bool {
	points := 0
	for _, c := range value {
		switch {
		case c == '.':
			points++
		case c < '0' || c > '9':
			return false
		}
	}
	return points <= 1 && len(value) > points && len(value) <= maxAmount
}

// maxAmount is the longest number that is ordinary, in bytes.
const maxAmount = 32

const (
	// maxLatency is how old and how new a SendingTime may be; quickfix has 120 s.
	maxLatency = 119 * time.Second
	// restWait is how long a request waits for quickfix to be at rest before it
	// goes that way itself.
	restWait = 20 * time.Millisecond
)

// share is what quickfix has been given of a connection. The reader's goroutine
// only.
type share struct {
	highest uint64        // MsgSeqNum
	at      time.Time     // of the last message
	every   time.Duration // how often it must get one
	stuck   bool          // quickfix did not come to rest in time
	ending  bool          // a Logout was among it
}

// take notes that frame goes to quickfix.
func (n *share) take(frame []byte, seq uint64, now time.Time) {
	n.at = now
	switch msgType(frame) {
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

func msgType(frame []byte) string {
	_, rest, _ := bytes.Cut(frame, []byte("\x0135="))
	value, _, _ := bytes.Cut(rest, []byte{soh})
	return string(value)
}

// atRest reports whether quickfix has nothing in hand, so that seq is the next
// message of the session. It waits a moment for that.
func (c *conn) atRest(s *session, seq uint64, now time.Time) bool {
	n := &c.share
	if !c.gateway.layer.express || n.ending || now.Sub(n.at) >= n.every {
		return false
	}
	if next := s.messages.target.Load(); next > n.highest {
		n.stuck = false
		return next == seq
	}
	if n.stuck || seq != n.highest+1 {
		return false
	}
	limit := time.NewTimer(restWait)
	defer limit.Stop()
	for s.messages.target.Load() < seq {
		select {
		case <-s.messages.turned:
		case <-limit.C:
			n.stuck = true
			return false
		}
	}
	return s.messages.target.Load() == seq
}

// express handles x, which c has read, in quickfix's place. False means that
// nothing has happened and quickfix must have it.
func (s *session) express(c *conn, x *express, now time.Time) bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.line.online.Load() != c || !s.loggedOn.Load() || s.removed.Load() || s.kicked.Load() || !s.rate.Has(now.UnixNano(), s.gateway.rates.messages) {
		return false
	}
	if late := now.Sub(time.Unix(0, x.sent)); late > maxLatency || late < -maxLatency {
		return false
	}
	s.gateway.in.Add(1)
	s.over(now)
	s.alone = len(c.in) == c.used
	if no := s.handleOrder(x.kind.msgType(), &x.request); no != nil {
		s.sendReject(x, no)
	}
	s.messages.passed(x.seq)
	c.placed, s.alone, s.placed = s.placed, false, false
	return true
}

// msgType returns the MsgType of a request of one kind.
func (k expressKinds) msgType() byte {
	switch k {
	case expressNew:
		return 'D'
	case expressCancel:
		return 'F'
	case expressAmend:
		return 'G'
	case expressStatus:
		return 'H'
	default:
		return 'q'
	}
}

// sendReject answers x as quickfix does what its application refuses. The handlers
// refuse by a BusinessMessageReject (35=j) only.
func (s *session) sendReject(x *express, no *reject) {
	const tagRefSeqNum = 45
	b := strconv.AppendUint(s.out.scratch[:0], x.seq, 10)
	b = append(append(b, "\x0158="...), no.text...)
	b = append(append(b, "\x01372="...), x.kind.msgType())
	if id := no.refID; id != "" {
		b = append(append(b, "\x01379="...), id...)
	}
	s.out.scratch = strconv.AppendInt(append(b, "\x01380="...), int64(no.reason), 10)
	s.sendType("j", tagRefSeqNum, s.out.scratch, false)
}
