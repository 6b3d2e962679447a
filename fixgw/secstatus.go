package fixgw

import (
	"fmt"
	"sync"

	"blockdesk/engine"
	"blockdesk/engine/event"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// Values of SecurityTradingStatus (326).
const (
	tradingHalted  = "2"  // only cancels
	tradingReady   = "17" // orders welcome
	tradingNot     = "18" // mirrored: no orders; or the engine does not have it yet
	tradingUnknown = "20" // no such instrument
)

// statuses answers e with f, and tells each change of an instrument's trading
// status to who has subscribed, from the durable events of the engine.
//
// Until the follower has seen a change, the status is that of the instrument's
// view, which knows all that happened before the gateway's first event. A view
// that is ahead of the follower costs at most an f that says what was said.
type statuses struct {
	gateway *Gateway

	// mu is held while messages are handed to quickfix, as marketData's is, so
	// that none comes after the end of its subscription.
	mu       sync.Mutex
	followed map[market.InstrumentID]uint8 // engine status, by the last event followed
	watches  map[*session]map[string]*watch
	body     []byte
}

// watch is one session's subscription, by its SecurityStatusReqID (324).
type watch struct {
	in   *market.Instrument
	told string // the last SecurityTradingStatus
}

func newStatuses(g *Gateway) *statuses {
	return &statuses{
		gateway: g, followed: make(map[market.InstrumentID]uint8),
		watches: make(map[*session]map[string]*watch),
	}
}

// request handles an e, on the session's goroutine.
func (t *statuses) request(s *session, frame []byte) *wire.Reject {
	r := wire.ScanSecurityRequest(frame)
	if err := r.CheckID("SecurityStatusReqID (324)"); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	watches := t.watches[s]
	used := watches[string(r.ID)] != nil
	in := t.gateway.instruments.Lookup(r.Symbol)
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
		b := t.begin(r.ID, string(r.Symbol), false, tradingUnknown, t.gateway.options.Now().UnixNano())
		t.body = wire.AppendText(append(b, "\x0158="...), wire.SymbolText(t.gateway.instruments, r.Symbol))
		s.sendType("f", wire.TagStatusReqID, t.body, false)
		return nil
	case action == subscribe && len(watches) >= t.gateway.options.MaxSubscriptions:
		return wire.BusinessReject(wire.RejNotAvailable, r.ID, fmt.Sprintf("%s: more than %d subscriptions of a session", wire.CodeOverloaded, t.gateway.options.MaxSubscriptions))
	}
	status := tradingStatus(in, t.present(in))
	if string(r.Subscription) == subscribe {
		if watches == nil {
			watches = make(map[string]*watch)
			t.watches[s] = watches
		}
		watches[string(r.ID)] = &watch{in: in, told: status}
	}
	t.body = t.begin(r.ID, in.Symbol, false, status, t.gateway.options.Now().UnixNano())
	s.sendType("f", wire.TagStatusReqID, t.body, false)
	return nil
}

// present returns the engine's status of an instrument; 0 = it has none. It
// needs mu.
func (t *statuses) present(in *market.Instrument) uint8 {
	if status := t.followed[in.ID]; status != 0 {
		return status
	}
	return t.gateway.market.view(in).Status
}

func tradingStatus(in *market.Instrument, status uint8) string {
	switch {
	case in.Source != market.Matched:
		return tradingNot
	case status == engine.StatusTrading:
		return tradingReady
	case status == engine.StatusHalted:
		return tradingHalted
	}
	return tradingNot
}

// begin appends an f's body after the name of its first field. It needs mu.
func (t *statuses) begin(reqID []byte, symbol string, changed bool, status string, at int64) []byte {
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

// changed tells an InstrumentSet, on the follower's goroutine, to who watches.
func (t *statuses) changed(f *follower, e *event.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.followed[e.Instrument] = uint8(e.Code)
	for s, watches := range t.watches {
		for reqID, w := range watches {
			status := tradingStatus(w.in, uint8(e.Code))
			if w.in.ID != e.Instrument || status == w.told {
				continue
			}
			w.told = status
			t.body = t.begin([]byte(reqID), w.in.Symbol, true, status, e.At)
			if err := f.emitType(t.gateway.blotterOf(s), "f", wire.TagStatusReqID, t.body); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop ends all subscriptions of a session.
func (t *statuses) drop(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.watches, s)
}

// count returns how many subscriptions there are.
func (t *statuses) count() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, watches := range t.watches {
		n += len(watches)
	}
	return n
}
