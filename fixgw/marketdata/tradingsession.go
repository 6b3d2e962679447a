package marketdata

import (
	"fmt"

	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// There is one trading session, which has neither a beginning nor an end (our choice): it
// is open while any instrument takes orders, an auction included.

// TradingSession is its TradingSessionID (336).
const TradingSession = "CONTINUOUS"

// Values of TradSesStatus (340).
const (
	sessionHalted   = "1" // every instrument is halted
	sessionOpen     = "2"
	sessionClosed   = "3" // this node takes no orders
	sessionRejected = "6" // no such trading session
)

// SessionRequest handles a g, on the session's goroutine.
func (t *Statuses) SessionRequest(s *session.Session, frame []byte) *wire.Reject {
	r := wire.ScanSessionRequest(frame)
	if err := r.CheckID("TradSesReqID (335)"); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	used := t.sessions[s][string(r.ID)]
	const subscribe, unsubscribe = "1", "2"
	switch action := string(r.Subscription); {
	case action == unsubscribe && !used:
		return wire.BusinessReject(wire.RejUnknownID, r.ID, wire.CodeUnknownSubscription+": TradSesReqID (335)")
	case action == unsubscribe:
		delete(t.sessions[s], string(r.ID))
		return nil
	case used:
		return wire.BusinessReject(wire.RejOther, r.ID, wire.CodeInvalidField+": TradSesReqID (335) is in use")
	case r.Kind != nil && string(r.Kind) != TradingSession:
		const unknownSession = "1" // TradSesStatusRejReason (567)
		b := t.beginSession(r.ID, r.Kind, false, sessionRejected)
		b = append(b, "\x01567="+unknownSession+"\x0158="...)
		t.body = wire.AppendText(b, fmt.Sprintf("%s: TradingSessionID (336): must be %s", wire.CodeInvalidField, TradingSession))
		s.Send("h", wire.TagTradSesReqID, t.body, false)
		return nil
	case action == subscribe && len(t.subscriptions[s])+len(t.sessions[s]) >= t.limit:
		return wire.BusinessReject(wire.RejNotAvailable, r.ID, fmt.Sprintf("%s: more than %d subscriptions of a session", wire.CodeOverloaded, t.limit))
	}
	t.count()
	if string(r.Subscription) == subscribe {
		if t.sessions[s] == nil {
			t.sessions[s] = make(map[string]bool)
		}
		t.sessions[s][string(r.ID)] = true
	}
	t.body = t.beginSession(r.ID, []byte(TradingSession), false, t.sessionStatus())
	s.Send("h", wire.TagTradSesReqID, t.body, false)
	return nil
}

// count counts the instruments that take orders, the first time. From then on follow keeps
// the count, so it must know from which status the next event is a change. It needs mu.
func (t *Statuses) count() {
	if t.counted {
		return
	}
	t.counted = true
	for i := range t.instruments.Len() {
		in := t.instruments.Get(market.InstrumentID(i))
		status := t.present(in)
		t.followed[in.ID] = status
		t.trading += opens(in, status)
	}
}

// opens returns 1 if an instrument of the engine's status takes orders, else 0.
func opens(in *market.Instrument, status uint8) int {
	if s := tradingStatus(in, status); s == tradingReady || s == tradingPreOpen {
		return 1
	}
	return 0
}

// sessionStatus needs mu, and count.
func (t *Statuses) sessionStatus() string {
	switch {
	case t.readOnly:
		return sessionClosed
	case t.trading == 0:
		return sessionHalted
	}
	return sessionOpen
}

// beginSession appends the body of an h without the name of its first field. It needs mu.
func (t *Statuses) beginSession(reqID, id []byte, changed bool, status string) []byte {
	const electronic = "1"
	b := wire.AppendText(t.body[:0], string(reqID))
	b = wire.AppendText(append(b, "\x01336="...), string(id))
	b = append(b, "\x01338="+electronic+"\x01325="...)
	if changed {
		b = append(b, 'Y')
	} else {
		b = append(b, 'N')
	}
	return append(append(b, "\x01340="...), status...)
}
