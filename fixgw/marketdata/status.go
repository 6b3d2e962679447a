package marketdata

import (
	"fmt"
	"sync"
	"time"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Values of SecurityTradingStatus (326).
const (
	tradingHalted  = "2"  // only cancels
	tradingReady   = "17" // orders welcome
	tradingNot     = "18" // mirrored: no orders; or the engine does not have it yet
	tradingUnknown = "20" // no such instrument
	tradingPreOpen = "21" // orders gather for an auction
)

// Statuses answers e with f and g with h, and sends each change of an instrument's trading
// status, or of the trading session's, to its subscribers, from the durable events of the
// engine.
//
// Until an event changes it, the status is that of the instrument's view, which contains
// everything before the gateway's first event. If a view is ahead of the events, at most
// one f repeats the last one.
type Statuses struct {
	instruments *market.Instruments
	books       *Books
	limit       int  // subscriptions of a session, of either kind
	readOnly    bool // a follower's: no orders here
	now         func() time.Time

	// mu is held while messages are sent, as that of Books is, so that none comes after
	// the end of its subscription.
	mu            sync.Mutex
	followed      map[market.InstrumentID]uint8 // engine status after the last processed event
	subscriptions map[*session.Session]map[string]*statusSubscription
	sessions      map[*session.Session]map[string]bool // subscriptions of the trading session, by TradSesReqID (335)
	counted       bool                                 // trading is right: from the first g on
	trading       int                                  // instruments that take orders
	body          []byte
}

// statusSubscription is one session's subscription, by its SecurityStatusReqID (324).
type statusSubscription struct {
	in   *market.Instrument
	sent string // the last SecurityTradingStatus
}

// NewStatuses returns the statuses of the instruments of books, with its limit of
// subscriptions. readOnly is that of a node that takes no orders.
func NewStatuses(books *Books, readOnly bool, now func() time.Time) *Statuses {
	return &Statuses{
		instruments: books.instruments, books: books, limit: books.limit, readOnly: readOnly, now: now,
		sessions:      make(map[*session.Session]map[string]bool),
		followed:      make(map[market.InstrumentID]uint8),
		subscriptions: make(map[*session.Session]map[string]*statusSubscription),
	}
}

// Request handles an e, on the session's goroutine.
func (t *Statuses) Request(s *session.Session, frame []byte) *wire.Reject {
	r := wire.ScanSecurityRequest(frame)
	if err := r.CheckID("SecurityStatusReqID (324)"); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	watches := t.subscriptions[s]
	used := watches[string(r.ID)] != nil
	in := t.instruments.Lookup(r.Symbol)
	const snapshot, subscribe, unsubscribe = "0", "1", "2"
	switch action := string(r.Subscription); {
	case action == unsubscribe && !used:
		return wire.BusinessReject(wire.RejUnknownID, r.ID, wire.CodeUnknownSubscription+": SecurityStatusReqID (324)")
	case action == unsubscribe:
		delete(watches, string(r.ID))
		return nil
	case used:
		return wire.BusinessReject(wire.RejOther, r.ID, wire.CodeInvalidField+": SecurityStatusReqID (324) is in use")
	case r.Symbol == nil:
		return wire.BusinessReject(wire.RejConditional, r.ID, wire.CodeMissingField+": Symbol (55)")
	case in == nil:
		b := t.begin(r.ID, string(r.Symbol), false, tradingUnknown, t.now().UnixNano())
		t.body = wire.AppendText(append(b, "\x0158="...), wire.SymbolText(t.instruments, r.Symbol))
		s.Send("f", wire.TagStatusReqID, t.body, false)
		return nil
	case action == subscribe && len(watches)+len(t.sessions[s]) >= t.limit:
		return wire.BusinessReject(wire.RejNotAvailable, r.ID, fmt.Sprintf("%s: more than %d subscriptions of a session", wire.CodeOverloaded, t.limit))
	}
	status := tradingStatus(in, t.present(in))
	if string(r.Subscription) == subscribe {
		if watches == nil {
			watches = make(map[string]*statusSubscription)
			t.subscriptions[s] = watches
		}
		watches[string(r.ID)] = &statusSubscription{in: in, sent: status}
	}
	t.body = t.begin(r.ID, in.Symbol, false, status, t.now().UnixNano())
	if status == tradingPreOpen {
		a := t.books.view(in).Auction
		t.body = appendAuction(t.body, in, a.Price, a.Volume, a.Imbalance)
	}
	s.Send("f", wire.TagStatusReqID, t.body, false)
	return nil
}

// appendAuction appends what an auction would trade: its price as the bounds of the next
// opening price, and what both sides have at that price; nothing without a price.
func appendAuction(b []byte, in *market.Instrument, p market.Price, volume, imbalance market.Qty) []byte {
	if p == 0 {
		return b
	}
	b = in.AppendQty(append(b, "\x01330="...), volume+max(imbalance, 0))
	b = in.AppendQty(append(b, "\x01331="...), volume+max(-imbalance, 0))
	b = in.AppendPrice(append(b, "\x01332="...), p)
	return in.AppendPrice(append(b, "\x01333="...), p)
}

// present returns the engine's status of an instrument; 0 = it has none. It
// needs mu.
func (t *Statuses) present(in *market.Instrument) uint8 {
	if status := t.followed[in.ID]; status != 0 {
		return status
	}
	return t.books.view(in).Status
}

func tradingStatus(in *market.Instrument, status uint8) string {
	switch {
	case in.Source != market.Matched:
		return tradingNot
	case status == engine.StatusTrading:
		return tradingReady
	case status == engine.StatusHalted:
		return tradingHalted
	case status == engine.StatusAuction:
		return tradingPreOpen
	}
	return tradingNot
}

// begin appends the body of an f without the name of its first field. It needs mu.
func (t *Statuses) begin(reqID []byte, symbol string, changed bool, status string, at int64) []byte {
	b := wire.AppendText(t.body[:0], string(reqID))
	b = wire.AppendText(append(b, "\x0155="...), symbol)
	unsolicited := byte('N')
	if changed {
		unsolicited = 'Y'
	}
	b = append(append(b, "\x01325="...), unsolicited)
	b = append(append(b, "\x01326="...), status...)
	return wire.AppendTime(append(b, "\x0160="...), at)
}

// Auction calls send with an f for each subscriber of e's instrument.
func (t *Statuses) Auction(e *event.Event, send func(s *session.Session, msgType string, firstTag int, body []byte)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s, watches := range t.subscriptions {
		for reqID, w := range watches {
			if w.in.ID != e.Instrument {
				continue
			}
			w.sent = tradingPreOpen
			t.body = t.begin([]byte(reqID), w.in.Symbol, true, tradingPreOpen, e.At)
			t.body = appendAuction(t.body, w.in, e.Price, e.Qty, market.Qty(e.Aux))
			send(s, "f", wire.TagStatusReqID, t.body)
		}
	}
}

// Changed calls send with an f for each subscriber of an instrument whose status e changes,
// and with an h for each of the trading session if its status changes.
func (t *Statuses) Changed(e *event.Event, send func(s *session.Session, msgType string, firstTag int, body []byte)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.follow(e, send)
	for s, watches := range t.subscriptions {
		for reqID, w := range watches {
			status := tradingStatus(w.in, uint8(e.Code))
			if w.in.ID != e.Instrument || status == w.sent {
				continue
			}
			w.sent = status
			t.body = t.begin([]byte(reqID), w.in.Symbol, true, status, e.At)
			send(s, "f", wire.TagStatusReqID, t.body)
		}
	}
}

// Drop ends all subscriptions of a session.
func (t *Statuses) Drop(s *session.Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.subscriptions, s)
	delete(t.sessions, s)
}

// Count returns how many subscriptions there are.
func (t *Statuses) Count() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, watches := range t.subscriptions {
		n += len(watches)
	}
	for _, watches := range t.sessions {
		n += len(watches)
	}
	return n
}

// follow takes the status of e's instrument, and calls send with an h for each subscriber
// if it changes that of the trading session. It needs mu.
func (t *Statuses) follow(e *event.Event, send func(s *session.Session, msgType string, firstTag int, body []byte)) {
	status := uint8(e.Code)
	old := t.followed[e.Instrument]
	t.followed[e.Instrument] = status
	in := t.instruments.Get(e.Instrument)
	if !t.counted || in == nil {
		return
	}
	before := t.sessionStatus()
	t.trading += opens(in, status) - opens(in, old)
	after := t.sessionStatus()
	if after == before {
		return
	}
	for s, watches := range t.sessions {
		for reqID := range watches {
			t.body = t.beginSession([]byte(reqID), []byte(TradingSession), true, after)
			send(s, "h", wire.TagTradSesReqID, t.body)
		}
	}
}
