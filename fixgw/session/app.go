package session

import (
	"bytes"
	"fmt"

	"github.com/quickfixgo/quickfix"

	"blockdesk/fixgw/wire"
)

// app is quickfix's Application. Its callbacks run on the session's goroutine; ToApp and
// ToAdmin also run on the sender's, with locks held.
type app struct {
	*host
	sessions *sessions
}

var _ quickfix.Application = app{}

// OnCreate does nothing: sessions are made before quickfix's.
func (app) OnCreate(quickfix.SessionID) {}

// OnLogon lets the session trade.
func (a app) OnLogon(id quickfix.SessionID) {
	if s := a.sessions.SessionNamed(id.TargetCompID); s != nil {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.limits.strikes = 0
		s.history.loggedOn(a.options.Now())
		s.loggedOn.Store(true)
		a.options.Logger.Info("FIX session logged on", "comp_id", id.TargetCompID)
	}
}

// OnLogout ends the session's subscriptions, and the orders that are to end with it.
func (a app) OnLogout(id quickfix.SessionID) {
	s := a.sessions.SessionNamed(id.TargetCompID)
	if s == nil || !s.end() {
		return
	}
	a.options.Logger.Info("FIX session logged out", "comp_id", id.TargetCompID)
	s.Handler.LoggedOut()
	if !a.stopping.Load() {
		s.Handler.CancelOrders()
	}
}

// ToAdmin sends every session message as quickfix has made it, and adds the reason to the
// Logout when the service stops.
func (a app) ToAdmin(m *quickfix.Message, id quickfix.SessionID) {
	msgType, err := m.Header.GetBytes(35)
	if err != nil {
		return
	}
	s := a.sessions.SessionNamed(id.TargetCompID)
	s.outbound.admin(msgType)
	if !a.profile.codedTexts {
		return
	}
	switch string(msgType) {
	case "3":
		text := codedText(m)
		s.rejected.Store(&text)
	case "5":
		codedText(m)
		switch why := s.rejected.Load(); {
		case m.Body.Has(tagText):
		case a.stopping.Load():
			m.Body.SetString(tagText, a.logoutText())
		case why != nil:
			m.Body.SetString(tagText, *why)
		}
	}
}

// codedText puts a code before a Text of quickfix's own, and returns the Text.
func codedText(m *quickfix.Message) string {
	text, err := m.Body.GetBytes(tagText)
	switch {
	case err != nil:
		return ""
	case wire.HasCode(text):
		return string(text)
	}
	code := wire.CodeInvalidField
	if bytes.HasPrefix(text, []byte("MsgSeqNum too low")) {
		code = codeSequenceTooLow
	}
	coded := code + ": " + string(text)
	m.Body.SetString(tagText, coded)
	return coded
}

// codeSequenceTooLow begins the Text of the Logout of a client whose number was used before.
const codeSequenceTooLow = "SEQUENCE_TOO_LOW"

// ToApp sends every application message. The placeholder stands for messages that go
// another way (outbound.go).
func (a app) ToApp(m *quickfix.Message, id quickfix.SessionID) error {
	if l := &a.sessions.SessionNamed(id.TargetCompID).outbound; m == l.placeholder {
		l.numberBatch()
		return quickfix.ErrDoNotSend
	}
	return nil
}

// FromAdmin takes a session message.
func (a app) FromAdmin(m *quickfix.Message, id quickfix.SessionID) quickfix.MessageRejectError {
	s := a.sessions.SessionNamed(id.TargetCompID)
	s.rejected.Store(nil)
	s.lock.Lock()
	defer s.lock.Unlock()
	reject := a.admin(s, m)
	seq, err := m.Header.GetInt(tagMsgSeqNum)
	s.Messages.keepTarget = reject != nil && err == nil && seq != s.Messages.NextTargetMsgSeqNum()
	return reject
}

// admin checks session messages against the dictionary and our limits.
func (a app) admin(s *Session, m *quickfix.Message) quickfix.MessageRejectError {
	a.In.Add(1)
	s.Messages.activity.Add(1)
	msgType, err := m.Header.GetBytes(35)
	if err != nil {
		return err
	}
	if string(msgType) == "A" && !s.opening.Swap(false) && !s.loggedOn.Load() {
		// quickfix still reads what came behind the end of the session.
		return quickfix.RejectLogon{Text: wire.CodeLogonRefused + ": the session has ended"}
	}
	if err := withCode(a.validator.Validate(m)); err != nil {
		a.Rejects.Add(1)
		return err
	}
	if s.over(a.options.Now()) {
		// Not refused: a Heartbeat or Logout must count. It was counted.
		a.RateLimited.Add(1)
	}
	switch string(msgType) {
	case "A":
		if _, err := wire.ParseLogon(m.Bytes(), a.options.CompID, a.profile.minHeartBt); err != nil {
			return quickfix.RejectLogon{Text: err.Error()}
		}
		if s.removed.Load() { // after the Logon was authenticated
			return quickfix.RejectLogon{Text: removedText}
		}
	case "4":
		// quickfix lets the number overflow, and what no message can have would
		// lock the session until it is reset.
		newSeqNo, err := m.Body.GetBytes(tagNewSeqNo)
		if err != nil {
			return err
		}
		if _, err := wire.ParseSeq(newSeqNo); err != nil {
			a.Rejects.Add(1)
			tag := quickfix.Tag(tagNewSeqNo)
			return quickfix.NewMessageRejectError(fmt.Sprintf("%s: NewSeqNo (36): must be 1 to 999999999", wire.CodeInvalidField), sessionRejectValue, &tag)
		}
	case "2":
		if !s.limits.resends.Take(a.options.Now().UnixNano(), a.rates.resends) {
			a.RateLimited.Add(1)
			return quickfix.NewMessageRejectError(fmt.Sprintf("%s: at most %d ResendRequests at once and one a second", wire.CodeRateLimited, MaxResends), sessionRejectOther, nil)
		}
		return a.checkResend(s, m)
	}
	return nil
}

// checkResend refuses a ResendRequest for numbers that no message has had since the numbers began
// at 1: there is nothing to fill the gap with.
func (a app) checkResend(s *Session, m *quickfix.Message) quickfix.MessageRejectError {
	tag := quickfix.Tag(tagBeginSeqNo)
	first, err := m.Body.GetInt(tag)
	last := s.Messages.NextSenderMsgSeqNum() - 1
	if err != nil || first <= last {
		return err
	}
	a.Rejects.Add(1)
	text := fmt.Sprintf("%s: BeginSeqNo (7) %d: our last number is %d: earlier days cannot be resent", wire.CodeInvalidField, first, last)
	return quickfix.NewMessageRejectError(text, sessionRejectValue, &tag)
}

// Values of SessionRejectReason (373).
const (
	sessionRejectValue = 5
	sessionRejectOther = 99
)

const (
	tagBeginSeqNo = 7
	tagMsgSeqNum  = 34
	tagNewSeqNo   = 36
	tagText       = 58
)

// FromApp takes an application message.
func (a app) FromApp(m *quickfix.Message, id quickfix.SessionID) quickfix.MessageRejectError {
	s := a.sessions.SessionNamed(id.TargetCompID)
	s.rejected.Store(nil)
	s.lock.Lock()
	defer s.lock.Unlock()
	a.In.Add(1)
	s.Messages.activity.Add(1)
	if s.over(a.options.Now()) {
		a.RateLimited.Add(1)
		return quickfixReject(wire.BusinessReject(wire.RejNotAvailable, wire.BusinessIDOf(m.Bytes()), fmt.Sprintf("%s: more than %d messages a second", wire.CodeRateLimited, a.options.Rate)))
	}
	if err := withCode(a.validator.Validate(m)); err != nil {
		a.Rejects.Add(1)
		return err
	}
	if !s.loggedOn.Load() || s.removed.Load() { // what quickfix still had when the session ended
		return quickfixReject(wire.BusinessReject(wire.RejNotAvailable, wire.BusinessIDOf(m.Bytes()), wire.CodeReadOnly+": the session has ended"))
	}
	msgType, err := m.Header.GetBytes(35)
	if err != nil {
		return err
	}
	return quickfixReject(s.Handler.Message(msgType, m.Bytes()))
}

// quickfixReject returns a reject as quickfix sends it.
func quickfixReject(reject *wire.Reject) quickfix.MessageRejectError {
	if reject == nil {
		return nil
	}
	return quickfix.NewBusinessMessageRejectErrorWithRefID(reject.Text, reject.Reason, reject.RefID, nil)
}
