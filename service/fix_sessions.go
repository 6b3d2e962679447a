package service

import (
	"errors"
	"fmt"
	"time"

	"blockdesk/fixgw"
	"blockdesk/fixgw/session"
	"blockdesk/httpgw/admin"
)

// fixSessions is admin.FIX.
type fixSessions struct {
	gateway *fixgw.Gateway
	watch   *participantsWatch
}

// Sessions lists them all.
func (d fixSessions) Sessions() []admin.FIXSession {
	list := d.gateway.Sessions()
	out := make([]admin.FIXSession, 0, len(list))
	for i := range list {
		s := &list[i]
		out = append(out, admin.FIXSession{
			CompID: s.CompID, Participant: s.Participant, Number: s.Number, Removed: s.Removed, LoggedOn: s.LoggedOn,
			Since: unixNanos(s.Since), Remote: s.Remote, NextIn: s.NextIn, NextOut: s.NextOut,
			LiveOrders: s.LiveOrders, PendingRequests: s.PendingRequests, WaitingBytes: s.WaitingBytes, RateRefusals: s.RateRefusals,
			CancelOnDisconnect: s.CancelOnDisconnect, DropCopy: s.DropCopy, CustomFields: s.CustomFields,
			LastLogon: unixNanos(s.LastLogon), LastRefusal: unixNanos(s.LastRefusal), Refusal: s.Refusal,
		})
	}
	return out
}

// unixNanos returns Unix nanoseconds, 0 for the zero time.
func unixNanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// Participants tells what of the participants file is in force.
func (d fixSessions) Participants() admin.FIXParticipants { return d.watch.Status() }

// ResetSequence starts a session's numbers at 1.
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

// fixSessionError puts what operators meet of the FIX gateway into the admin
// address's words.
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
