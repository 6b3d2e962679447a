package fixgw

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A logon is proven here, on a goroutine of the connection's own, before quickfix
// sees a byte. Were it proven in the session, anybody who knows a CompID could
// hold its session, and each refusal would move the session's sequence numbers,
// so that the rightful owner could no longer log on.
//
// Every refusal is a Logout with MsgSeqNum 1, sent RefuseDelay after the message
// came, whatever the reason was; a password is always checked, against a hash
// that nobody has where the user is unknown. A connection that never says a
// whole message is closed without a word. Logons by signature: signature.go.

// logon is what a Logon (35=A) asks for. Texts alias the message.
type logon struct {
	sender, target     []byte
	username, password []byte
	// signature is RawData (96); nil = the logon is by password.
	signature           []byte
	seqNum, sendingTime []byte
	heartBtInt          int
	reset               bool
	wishes              sessionFlags
}

// refusal texts of a Logon begin with these codes.
const (
	codeLogonRefused = "LOGON_REFUSED"
	codeInvalidField = "INVALID_FIELD"
	codeMissingField = "MISSING_FIELD"
)

// Limits of HeartBtInt (108), in seconds.
const (
	MinHeartBtInt = 10
	MaxHeartBtInt = 60
)

// parseLogon reads a Logon; minHeartBt is the least HeartBtInt, in seconds. The
// error's text is for the client.
func parseLogon(frame []byte, ourCompID string, minHeartBt int) (l logon, err error) {
	beginString, msgType := "", ""
	var heartBtInt, encrypt, reset, rawLength []byte
	var asked wishes
	eachField(frame, func(tag int, value []byte) {
		switch tag {
		case 8:
			beginString = string(value)
		case 34:
			l.seqNum = value
		case 35:
			msgType = string(value)
		case 49:
			l.sender = value
		case 52:
			l.sendingTime = value
		case 56:
			l.target = value
		case 95:
			rawLength = value
		case 96:
			l.signature = value
		case 98:
			encrypt = value
		case 108:
			heartBtInt = value
		case 141:
			reset = value
		case 553:
			l.username = value
		case 554:
			l.password = value
		case tagCustomFields:
			asked.custom = value
		case tagCancelOnDisconnect:
			asked.cancel = value
		case tagDropCopy:
			asked.dropCopy = value
		}
	})
	switch {
	case msgType != "A":
		return l, fmt.Errorf("%s: the first message must be a Logon, not MsgType (35) %.4q", codeLogonRefused, msgType)
	case beginString != "FIX.4.4":
		return l, fmt.Errorf("%s: BeginString (8) %.20q: must be FIX.4.4", codeInvalidField, beginString)
	case string(l.target) != ourCompID:
		return l, fmt.Errorf("%s: TargetCompID (56) %.40q: must be %s", codeInvalidField, l.target, ourCompID)
	case string(encrypt) != "0":
		return l, fmt.Errorf("%s: EncryptMethod (98) %.20q: must be 0", codeInvalidField, encrypt)
	}
	if l.heartBtInt, err = parseHeartBtInt(heartBtInt, minHeartBt); err != nil {
		return l, err
	}
	if l.reset, err = parseYesNo(141, reset, false); err != nil {
		return l, err
	}
	if l.signature != nil {
		if err := checkRawData(rawLength, l.signature); err != nil {
			return l, err
		}
	}
	l.wishes, err = asked.parse()
	return l, err
}

// wishes are the values of what a Logon asks for by fields of ours; nil = absent.
type wishes struct{ custom, cancel, dropCopy []byte }

func (w *wishes) parse() (flags sessionFlags, err error) {
	for _, f := range [...]struct {
		tag    int
		value  []byte
		absent bool
		flag   sessionFlags
	}{
		{tagCustomFields, w.custom, false, flagCustom},
		{tagCancelOnDisconnect, w.cancel, true, flagCancel},
		{tagDropCopy, w.dropCopy, false, flagDropCopy},
	} {
		yes, err := parseYesNo(f.tag, f.value, f.absent)
		if err != nil {
			return 0, err
		}
		if yes {
			flags |= f.flag
		}
	}
	return flags, nil
}

func parseHeartBtInt(value []byte, least int) (int, error) {
	n := 0
	for _, c := range value {
		if c < '0' || c > '9' || n > MaxHeartBtInt {
			n = -1
			break
		}
		n = 10*n + int(c-'0')
	}
	if n < least || n > MaxHeartBtInt {
		return 0, fmt.Errorf("%s: HeartBtInt (108) %.20q: must be %d to %d", codeInvalidField, value, least, MaxHeartBtInt)
	}
	return n, nil
}

func parseYesNo(tag int, value []byte, absent bool) (bool, error) {
	switch {
	case value == nil:
		return absent, nil
	case string(value) == "Y":
		return true, nil
	case string(value) == "N":
		return false, nil
	}
	return false, fmt.Errorf("%s: tag %d %.20q: must be Y or N", codeInvalidField, tag, value)
}

// errConnected is wrapped by the refusal of a Logon to a session that another
// connection has.
var errConnected = errors.New(codeLogonRefused)

// errBadLogon is the one answer to a wrong name, CompID or password.
var errBadLogon = errors.New(codeLogonRefused + ": username, password or CompID is wrong")

// admit reads the first message, proves the logon and takes the session. After
// an error the connection is closed, or about to be.
func (c *conn) admit() error {
	g := c.gateway
	c.Conn.SetReadDeadline(c.accepted.Add(g.options.LogonTimeout))
	frame, err := c.receive(g.options.LogonBytes - maxHeader)
	if err != nil {
		c.cutOff(err)
		return err
	}
	c.Conn.SetReadDeadline(time.Time{})
	came := time.Now()
	s, l, err := g.prove(frame)
	if err == nil {
		err = s.claim(c, &l)
		// Who logs out and on again at once may be faster than we let go. A refusal
		// takes RefuseDelay in any case.
		for errors.Is(err, errConnected) && time.Since(came) < g.options.RefuseDelay && !g.stopping.Load() {
			time.Sleep(logonPause)
			err = s.claim(c, &l)
		}
	}
	if err != nil {
		g.refusedLogons.Add(1)
		g.noteRefusal(&l, err, came)
		g.options.Logger.Info("logon_refused", "remote", c.RemoteAddr().String(), "reason", err.Error())
		select {
		case <-time.After(time.Until(came.Add(g.options.RefuseDelay))):
		case <-g.door.done:
		}
		if g.layer.silentRefuse {
			return err
		}
		if _, sent := c.Write(refuseLogon(frame, g.options.CompID, err.Error())); sent != nil {
			return sent
		}
		return err
	}
	g.door.loggedOn(c, s)
	c.note(received, frame)
	c.share = share{every: time.Duration(l.heartBtInt) * time.Second / 2}
	seq, _ := parseSeq(l.seqNum) // prove has checked it
	c.share.take(frame, seq, g.options.Now())
	// What fills the gap before such a Logon is behind the first request, which must
	// not wait for it.
	c.share.stuck = seq > s.messages.target.Load()
	c.frame = frame
	c.mu.Lock()
	c.patience = 2 * time.Duration(l.heartBtInt) * time.Second
	c.mu.Unlock()
	return nil
}

// prove returns the session of a Logon whose signature is right, or, where it has
// none, its password.
func (g *Gateway) prove(frame []byte) (*session, logon, error) {
	seq, err := checkFrame(frame)
	if err == nil && seq == 0 {
		// Let through, it would cost the session a number of ours.
		err = fmt.Errorf("%w: MsgSeqNum (34) of a Logon must not be 0", errField)
	}
	if err != nil {
		return nil, logon{}, err
	}
	l, err := parseLogon(frame, g.options.CompID, g.layer.minHeartBt)
	if err != nil {
		return nil, l, err
	}
	s := g.sessionNamed(string(l.sender))
	if s != nil && s.removed.Load() {
		s = nil
	}
	if l.signature != nil {
		return s, l, g.proveSignature(s, &l)
	}
	hash := g.noHash
	if s != nil {
		if own := s.terms.Load().hash; own != nil {
			hash = own
		}
	}
	g.verifying <- struct{}{}
	right := hash.verify(l.password)
	<-g.verifying
	if s == nil || !right || string(l.username) != s.participant.Name {
		return nil, l, errBadLogon
	}
	return s, l, nil
}

// strayHash is a hash that no password has.
func strayHash() (*argonHash, error) {
	h := &argonHash{
		memory: argonMemory, passes: argonPasses, lanes: argonLanes,
		salt: make([]byte, argonSalt), derived: make([]byte, argonDerived),
	}
	if _, err := rand.Read(h.salt); err != nil {
		return nil, err
	}
	_, err := rand.Read(h.derived)
	return h, err
}

// refuseLogon returns the Logout that answers frame.
func refuseLogon(frame []byte, ourCompID, text string) []byte {
	var sender []byte
	eachField(frame, func(tag int, value []byte) {
		if tag == 49 {
			sender = value
		}
	})
	if !isCompID(string(sender)) {
		sender = []byte("UNKNOWN")
	}
	body := append(appendText([]byte("58="), text), soh)
	return appendMessage(nil, header{msgType: "5", sender: ourCompID, target: string(sender), seq: 1, at: time.Now()}, body)
}

// header is what stands before a message's body.
type header struct {
	msgType        string
	sender, target string
	seq            uint64
	at             time.Time
	possResend     bool
}

// appendMessage appends one whole message; body is fields with SOH after each.
func appendMessage(dst []byte, h header, body []byte) []byte {
	field := func(dst []byte, tag, value string) []byte {
		return append(append(append(dst, tag...), value...), soh)
	}
	head := field(nil, "35=", h.msgType)
	head = append(strconv.AppendUint(append(head, "34="...), h.seq, 10), soh)
	head = field(head, "49=", h.sender)
	head = append(appendTime(append(head, "52="...), h.at.UnixNano()), soh)
	head = field(head, "56=", h.target)
	if h.possResend {
		head = field(head, "97=", "Y")
	}
	start := len(dst)
	dst = append(dst, "8=FIX.4.4\x019="...)
	dst = append(strconv.AppendInt(dst, int64(len(head)+len(body)), 10), soh)
	dst = append(append(dst, head...), body...)
	sum := byte(0)
	for _, b := range dst[start:] {
		sum += b
	}
	return append(dst, '1', '0', '=', '0'+sum/100, '0'+sum/10%10, '0'+sum%10, soh)
}

// appendTime appends a UTCTimestamp with milliseconds, cut off, not rounded.
func appendTime(dst []byte, at int64) []byte {
	return time.Unix(0, at).UTC().AppendFormat(dst, "20060102-15:04:05.000")
}

// appendText appends text as a field's value: what is not printable ASCII, and
// with it every delimiter, becomes '?'. Our texts quote what clients have sent.
func appendText(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c >= ' ' && c <= '~' {
			dst = append(dst, c)
		} else {
			dst = append(dst, '?')
		}
	}
	return dst
}
