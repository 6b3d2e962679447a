package service

import (
	"errors"
	"fmt"

	"blockdesk/fixgw"
	"blockdesk/fixgw/session"
	"blockdesk/httpgw/admin"
)

// fixSessions implements admin.FIX.
type fixSessions struct {
	gateway *fixgw.Gateway
	watch   *participantsWatch
}

// Sessions lists the sessions.
func (d fixSessions) Sessions() []admin.FIXSession {
	list := d.gateway.Sessions()
	out := make([]admin.FIXSession, len(list))
	for i, s := range list {
		out[i] = admin.FIXSession(s)
	}
	return out
}

// Participants returns the state of the participants file.
func (d fixSessions) Participants() admin.FIXParticipants { return d.watch.Status() }

// ResetSequence sets a session's sequence numbers to 1.
func (d fixSessions) ResetSequence(compID string, force bool) error {
	return fixSessionError(d.gateway.ResetSequence(compID, force))
}

// Kick logs a session out.
func (d fixSessions) Kick(compID, text string) error {
	return fixSessionError(d.gateway.Kick(compID, text))
}

// Announce sends maintenance news.
func (d fixSessions) Announce(compID, text string) (int, error) {
	sent, err := d.gateway.Announce(compID, text)
	return sent, fixSessionError(err)
}

// fixSessionError translates errors of the FIX gateway into those of the admin address.
func fixSessionError(err error) error {
	for inner, outer := range map[error]error{
		session.ErrUnknownSession: admin.ErrFIXUnknownSession, session.ErrLoggedOn: admin.ErrFIXLoggedOn,
		session.ErrNotLoggedOn: admin.ErrFIXNotLoggedOn, session.ErrText: admin.ErrFIXText,
	} {
		if errors.Is(err, inner) {
			return fmt.Errorf("%w: %w", outer, err)
		}
	}
	return err
}
