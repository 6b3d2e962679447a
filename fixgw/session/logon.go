package session

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"blockdesk/fixgw/participants"
	"blockdesk/fixgw/wire"
	"blockdesk/internal/solana/eddsa"
)

// A Logon is authenticated here, on a goroutine of the connection, before quickfix sees a byte.
// If the session authenticated it, anyone with the CompID could occupy the session, and each
// refusal would move its sequence numbers, so that the participant could no longer log on.
//
// Every refusal is a Logout with MsgSeqNum 1, sent RefuseDelay after the message came,
// whatever the reason. A password is checked also for an unknown user, against a hash that
// no password has; see passwords.go for what keeps checks cheap. A connection that does not send a whole message is closed silently.

// logons authenticates Logons.
type logons struct {
	*host
	sessions  *sessions
	passwords *passwords
	noHash    *participants.PasswordHash
}

func newLogons(h *host, list *sessions) (logons, error) {
	p, err := newPasswords()
	if err != nil {
		return logons{}, err
	}
	noHash, err := participants.RandomHash()
	return logons{h, list, p, noHash}, err
}

// admit reads the first message of c, authenticates the Logon and attaches the session; d has
// accepted c. After an error the connection is closed, or about to be.
func (v *logons) admit(c *conn, d *listener) error {
	c.Conn.SetReadDeadline(c.accepted.Add(v.options.LogonTimeout))
	frame, err := c.receive(v.options.LogonBytes - wire.MaxHeader)
	if err != nil {
		c.cutOff(err)
		return err
	}
	c.silent.Store(false)
	c.Conn.SetReadDeadline(time.Time{})
	came := time.Now()
	s, l, err := v.authenticate(c, frame)
	if err == nil {
		v.passwords.right(c.address, v.options.Now())
		err = v.takeSession(c, s, &l, came)
	}
	if errors.Is(err, errClientClosed) {
		c.cutOff(err)
		return err
	}
	if err != nil {
		v.RefusedLogons.Add(1)
		v.noteRefusal(&l, err, came)
		v.options.Logger.Info("FIX logon refused", "remote", c.RemoteAddr().String(), "reason", err.Error())
		select {
		case <-time.After(time.Until(came.Add(v.options.RefuseDelay))):
		case <-d.done:
		}
		if v.profile.silentRefuse {
			return err
		}
		if _, sent := c.Write(refuseLogon(frame, v.options.CompID, err.Error())); sent != nil {
			return sent
		}
		return err
	}
	d.loggedOn(c, s)
	c.note(wire.Received, frame)
	c.toQuickfix = quickfixInput{every: time.Duration(l.HeartBtInt) * time.Second / 2}
	seq, _ := wire.ParseSeq(l.SeqNum) // authenticate has checked it
	c.toQuickfix.note(frame, seq, v.options.Now())
	// The messages that fill a gap before the Logon come after the first request, which
	// must not wait for them.
	if expected := s.Messages.target.Load(); seq > expected {
		c.toQuickfix.stuck = true
		c.gap = gap{missing: expected, since: v.options.Now()}
	}
	c.frame = frame
	c.mu.Lock()
	c.writeTimeout = 2 * time.Duration(l.HeartBtInt) * time.Second
	c.mu.Unlock()
	return nil
}

// errReplaced is why the connection of a silent client is cut.
var errReplaced = errors.New("replaced by a new Logon")

// releaseTime is how long a session whose connection is cut may take to be free.
const releaseTime = 2 * time.Second

// takeSession attaches the session of an authenticated Logon. If another connection has it, that
// client gets a TestRequest: a client whose line is dead must be able to come back before
// its heartbeats are missed, and a live one must not lose its session. If nothing comes
// from it within Options.TakeoverSilence, its connection is cut and c gets the session.
//
// A client that logs out and on again at once may be faster than the release of its
// session, so the session is tried for RefuseDelay in any case.
//
// A newcomer that has gone while it waited does not get the session: its Logon would use a
// MsgSeqNum that the client, which had no answer, sends again.
func (v *logons) takeSession(c *conn, s *Session, l *wire.Logon, came time.Time) error {
	limit := came.Add(v.options.RefuseDelay)
	if v.profile.takeover {
		limit = came.Add(max(v.options.RefuseDelay, v.options.TakeoverSilence+releaseTime))
	}
	var holder *socket
	var heard uint64
	var asked time.Time
	err := s.attach(&c.socket, l)
	for errors.Is(err, errConnected) && !v.stopping.Load() && time.Now().Before(limit) {
		switch now := s.conn.Load(); {
		case now == nil || !v.profile.takeover:
		case now != holder: // the first look, or another new connection was faster
			holder, asked = now, time.Time{}
		case asked.IsZero(): // while its own Logon is on its way it cannot be asked
			if heard = now.received.Load(); s.testRequest() {
				asked = time.Now()
			}
		case now.received.Load() != heard:
			if time.Since(came) >= v.options.RefuseDelay && !now.leaving() {
				return fmt.Errorf("%w: session %s is already connected, and the connected client still answers: log it out first", errConnected, s.id.TargetCompID)
			}
		case time.Since(asked) >= v.options.TakeoverSilence:
			now.cutOff(errReplaced)
		}
		time.Sleep(logonPause)
		if c.clientGone() || c.leaving() {
			return errClientClosed
		}
		err = s.attach(&c.socket, l)
	}
	if err == nil && holder != nil {
		v.options.Logger.Info("FIX session taken over by a new connection", "comp_id", s.id.TargetCompID, "remote", c.RemoteAddr().String())
	}
	return err
}

// noteRefusal records the refusal of a Logon in the status of the session that it named.
func (v *logons) noteRefusal(l *wire.Logon, why error, at time.Time) {
	if s := v.sessions.SessionNamed(string(l.Sender)); s != nil {
		s.history.refused(at, why)
	}
}

// authenticate returns the session of a Logon with a valid signature or, if it has none, with the
// right password.
func (v *logons) authenticate(c *conn, frame []byte) (*Session, wire.Logon, error) {
	seq, err := wire.CheckFrame(frame)
	if err == nil && seq == 0 {
		// quickfix would use one of our numbers to answer it.
		err = fmt.Errorf("%w: MsgSeqNum (34) of a Logon must not be 0", wire.ErrField)
	}
	if err != nil {
		return nil, wire.Logon{}, err
	}
	l, err := wire.ParseLogon(frame, v.options.CompID, v.profile.minHeartBt)
	if err != nil {
		return nil, l, err
	}
	s := v.sessions.SessionNamed(string(l.Sender))
	if s != nil && s.removed.Load() {
		s = nil
	}
	if l.Signature != nil {
		return s, l, v.checkSignature(s, &l)
	}
	hash := v.noHash
	if s != nil {
		if own := s.terms.Load().hash; own != nil {
			hash = own
		}
	}
	right, err := v.passwords.check(c, s, hash, l.Password)
	if err != nil {
		return nil, l, err
	}
	if s == nil || !right || string(l.Username) != s.Participant.Name {
		v.passwords.wrong(c.address, v.options.Now())
		return nil, l, errBadLogon
	}
	return s, l, nil
}

// refuseLogon returns the Logout that answers frame.
func refuseLogon(frame []byte, ourCompID, text string) []byte {
	var sender []byte
	wire.EachField(frame, func(tag int, value []byte) {
		if tag == 49 {
			sender = value
		}
	})
	if !wire.IsCompID(string(sender)) {
		sender = []byte("UNKNOWN")
	}
	body := wire.AppendText([]byte("58="), text)
	return wire.AppendMessage(nil, wire.Header{MsgType: "5", Sender: ourCompID, Target: string(sender), Seq: 1, At: time.Now()}, body)
}

// A participant that has a key may log on by a signature instead of a password.
// RawData (96) is the base64 of its Ed25519 signature over the values of
// MsgType (35), SenderCompID (49), TargetCompID (56), MsgSeqNum (34) and
// SendingTime (52) as they stand in the Logon, joined by SOH; RawDataLength (95)
// is the length of that text.
//
// A signed Logon that is intercepted cannot be used again: SendingTime must be close to our
// clock and later than that of the session's last signed Logon, which is stored. It is
// stored when the signature is right, whatever becomes of the Logon.

// MaxLogonSkew is how far SendingTime (52) of a signed Logon may be from our
// clock.
const MaxLogonSkew = 30 * time.Second

// errBadSignature is the one answer to a wrong name, CompID or signature, and
// where there is no key to check it with.
var errBadSignature = errors.New(wire.CodeLogonRefused + ": username, signature or CompID is wrong")

// checkSignature returns what is wrong with a signed Logon; s is nil if its CompID is
// unknown. Only a client with the key learns more than that something is wrong.
func (v *logons) checkSignature(s *Session, l *wire.Logon) error {
	var key *[32]byte
	if s != nil {
		key = s.terms.Load().key
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(string(l.Signature))
	switch {
	case err != nil || len(raw) != 64 || key == nil:
		return errBadSignature
	case l.Username != nil && string(l.Username) != s.Participant.Name:
		return errBadSignature
	case !eddsa.Verify(*key, l.SignedText(), [64]byte(raw)):
		return errBadSignature
	}
	at, err := time.Parse("20060102-15:04:05", string(l.SendingTime))
	if err != nil {
		return fmt.Errorf("%w: SendingTime (52) %.30q is not a UTCTimestamp", wire.ErrField, l.SendingTime)
	}
	if now := v.options.Now(); at.Sub(now).Abs() > MaxLogonSkew {
		return fmt.Errorf("%s: SendingTime (52) is more than %s from the clock of the service, %s",
			wire.CodeLogonRefused, MaxLogonSkew, wire.AppendTime(nil, now.UnixNano()))
	}
	later, err := s.Messages.signedLogon(at.UnixNano())
	if err != nil {
		v.Fail(err)
		return errors.New(wire.CodeLogonRefused + ": the CompID was removed from the configuration")
	}
	if !later {
		return fmt.Errorf("%s: SendingTime (52) is not later than that of the last signed Logon", wire.CodeLogonRefused)
	}
	return nil
}
