package session

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The commands of operators, from any goroutine.

var (
	// ErrUnknownSession means that no session has this CompID.
	ErrUnknownSession = errors.New("fix: unknown session")
	// ErrLoggedOn means that the session is logged on, and must not be for this command.
	ErrLoggedOn = errors.New("fix: session is logged on")
	// ErrNotLoggedOn means that the session is not logged on, and must be for this command.
	ErrNotLoggedOn = errors.New("fix: session is not logged on")
	// ErrText means that a text is empty, too long, or not printable ASCII.
	ErrText = errors.New("fix: text must be 1 to " + strconv.Itoa(MaxOperatorText) + " printable ASCII characters")
)

// Status is a session as operators see it. Times are Unix nanoseconds, 0 = never.
type Status struct {
	CompID      string
	Participant string
	Number      uint16 // of the session, in journaled commands
	Removed     bool   // not configured any more; kept for its orders
	LoggedOn    bool
	Since       int64  // of the Logon; 0 = not logged on
	Remote      string // host:port; "" = not connected

	NextIn, NextOut uint64 // sequence numbers: expected next, sent next
	LiveOrders      int
	PendingRequests int    // without an answer of the engine yet
	WaitingBytes    int    // that the client has not read
	RateRefusals    uint64 // messages over the rate, since the start

	CancelOnDisconnect bool
	DropCopy           bool
	CustomFields       bool
	LastLogon          int64  // since the start
	LastRefusal        int64  // of a Logon with its CompID, since the start
	Refusal            string // its reason
}

// Status returns the state of the session.
func (s *Session) Status() Status {
	st := Status{
		CompID: s.id.TargetCompID, Participant: s.Participant.Name, Number: s.Number,
		Removed: s.removed.Load(), LoggedOn: s.loggedOn.Load(),
		NextIn: uint64(s.Messages.NextTargetMsgSeqNum()), NextOut: uint64(s.Messages.NextSenderMsgSeqNum()),
		RateRefusals: s.limits.limited.Load(), CancelOnDisconnect: s.CancelOnDisconnect.Load(),
		DropCopy: s.DropCopy.Load(), CustomFields: s.Custom.Load(),
	}
	if c := s.conn.Load(); c != nil {
		st.Remote, st.WaitingBytes = c.RemoteAddr().String(), c.waiting()
	}
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	st.LastLogon, st.LastRefusal, st.Refusal = s.history.logon, s.history.refusal, s.history.reason
	if st.LoggedOn {
		st.Since = st.LastLogon
	}
	return st
}

// resetPause is the pause between two looks at a client that is being logged out.
const resetPause = 10 * time.Millisecond

// ResetSequence starts both numbers of a session at 1 and deletes its sent messages,
// synced. The client must then request the state of its orders. The session must not be
// logged on; with force it is logged out first. A Logon waits meanwhile.
func (v *Server) ResetSequence(compID string, force bool) error {
	s, err := v.find(compID)
	if err != nil {
		return err
	}
	return v.reset(s, force, resetText)
}

// reset is ResetSequence; text is that of the Logout.
func (v *Server) reset(s *Session, force bool, text string) error {
	s.entry.Lock()
	defer s.entry.Unlock()
	if force && s.loggedOn.Load() {
		s.kick(text)
	}
	most := v.options.KickGrace + 2*v.options.FlushTimeout
	for end := time.Now().Add(most); force && s.conn.Load() != nil && time.Now().Before(end); {
		time.Sleep(resetPause)
	}
	if s.conn.Load() != nil {
		return fmt.Errorf("%w: %s", ErrLoggedOn, s.CompID())
	}
	if err := s.Messages.Reset(); err != nil {
		v.Fail(err)
		return err
	}
	v.options.Logger.Info("FIX sequence numbers reset", "comp_id", s.CompID())
	return nil
}

// find returns the session of a CompID, or ErrUnknownSession.
func (v *Server) find(compID string) (*Session, error) {
	s := v.SessionNamed(compID)
	if s == nil {
		return nil, fmt.Errorf("%w: %s", ErrUnknownSession, compID)
	}
	return s, nil
}

// findLoggedOn is find for a session that must be logged on.
func (v *Server) findLoggedOn(compID string) (*Session, error) {
	s, err := v.find(compID)
	if err == nil && !s.LoggedOn() {
		return nil, fmt.Errorf("%w: %s", ErrNotLoggedOn, compID)
	}
	return s, err
}

// Kick logs a session out with a text. The client may log on again at once.
func (v *Server) Kick(compID, text string) error {
	if !isOperatorText(text) {
		return ErrText
	}
	s, err := v.findLoggedOn(compID)
	if err != nil {
		return err
	}
	s.kick(codeLoggedOut + ": " + text)
	return nil
}

// Announce sends maintenance news to one session, or with an empty CompID to all
// that are logged on, and returns their number.
func (v *Server) Announce(compID, text string) (int, error) {
	if !isOperatorText(text) {
		return 0, ErrText
	}
	list := v.All()
	if compID != "" {
		s, err := v.findLoggedOn(compID)
		if err != nil {
			return 0, err
		}
		list = []*Session{s}
	}
	return v.announce(list, codeMaintenance+": "+text, text)
}

func isOperatorText(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return text != "" && len(text) <= MaxOperatorText
}
