package fixgw

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"blockdesk/engine/event"
	"blockdesk/market"
)

// A TradeCaptureReport (35=AE) of ours tells the owner of one side of a trade that
// it has happened. Each fill gives one for every session of its participant that
// has asked for a drop copy (9406=Y), whichever of the participant's sessions the
// order came from; a settled claim gives one for the session that took it too.
// Nobody learns of another participant's side but that there is one.
//
// It follows the ExecutionReport (35=8) that tells the same, as another report of
// the same event: it is in the session's message store before the follower's
// position passes the event, also while the session is logged out. A crash makes
// it again under the same TradeReportID (571), which is the ExecID (17).

// tagTradeReportID is the first field of AE and AR.
const tagTradeReportID = 571

// Values of PartyIDSource (447) and PartyRole (452): whoever is named by a CompID
// of ours has entered the order.
const (
	partySourceOurs    = "D"  // proprietary code
	partyEnteringTrade = "36" // entering trader
)

// appendCaptureHead appends a TradeCaptureReport's body without "571=", up to what
// LastQty (32) and LastPx (31) follow on: the form that outbox.send takes. status is
// the order's OrdStatus (39) after the trade.
func appendCaptureHead(dst, execID []byte, status byte, symbol string) []byte {
	dst = append(append(dst, execID...), "\x01487=0\x01856=0\x01570=N\x01150=F\x0117="...)
	dst = append(append(append(dst, execID...), "\x0139="...), status)
	return append(append(dst, "\x0155="...), symbol...)
}

// captureSide is the rest of a TradeCaptureReport: when, and whose.
type captureSide struct {
	at      int64          // TransactTime (60), Unix nanoseconds
	side    byte           // Side (54)
	orderID []byte         // OrderID (37)
	quoteID market.QuoteID // SecondaryOrderID (198); 0 = none
	clOrdID string         // ClOrdID (11) of the order by now; "" = none
	compID  string         // of the session that entered it
}

// append appends what follows LastPx. The fields of the group have the dictionary's
// order.
func (c *captureSide) append(dst []byte) []byte {
	dst = time.Unix(0, c.at).UTC().AppendFormat(append(dst, "\x0175="...), "20060102")
	dst = appendTime(append(dst, "\x0160="...), c.at)
	dst = append(append(dst, "\x01552=1\x0154="...), c.side)
	dst = append(append(dst, "\x0137="...), c.orderID...)
	if c.quoteID != 0 {
		dst = market.AppendQuoteID(append(dst, "\x01198="...), c.quoteID)
	}
	if c.clOrdID != "" {
		dst = append(append(dst, "\x0111="...), c.clOrdID...)
	}
	dst = append(append(dst, "\x01453=1\x01448="...), c.compID...)
	return append(dst, "\x01447="+partySourceOurs+"\x01452="+partyEnteringTrade...)
}

// dropCopies are the sessions that have asked for a drop copy, by their number. The
// follower reads the list at every fill; sessions join and leave as they log on.
// One that is made joins when it is in the roster, and quickfix has it: until then
// a copy could not be delivered.
type dropCopies struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*session] // never changes; nil = none
}

// follow puts s in, or takes it out, as it wishes now.
func (d *dropCopies) follow(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in := s.dropCopy.Load()
	if in == slices.Contains(d.all(), s) {
		return
	}
	list := slices.DeleteFunc(slices.Clone(d.all()), func(other *session) bool { return other == s })
	if in {
		list = append(list, s)
		slices.SortFunc(list, func(a, b *session) int { return cmp.Compare(a.number, b.number) })
	}
	d.list.Store(&list)
}

func (d *dropCopies) all() []*session {
	if list := d.list.Load(); list != nil {
		return *list
	}
	return nil
}

// copyFill sends the drop copies of the fill of o that r has just been sent of, under
// the ExecID of r.
func (f *follower) copyFill(e *event.Event, o *order, r *report) error {
	in := f.gateway.instruments.Get(e.Instrument)
	if in == nil || len(f.gateway.copies.all()) == 0 { // without the instrument r was not sent either
		return nil
	}
	body := appendCaptureHead(f.capture[:0], f.execID, o.status, in.Symbol)
	body = strconv.AppendInt(append(body, "\x01880="...), e.Aux, 10)
	body = in.AppendQty(append(body, "\x0132="...), r.lastQty)
	body = in.AppendPrice(append(body, "\x0131="...), r.lastPx)
	f.text = strconv.AppendUint(f.text[:0], uint64(o.id), 10)
	f.capture = (&captureSide{
		at: e.At, side: '0' + byte(o.side), orderID: f.text, clOrdID: o.clOrdID, compID: o.session.id.TargetCompID,
	}).append(body)
	return f.copyTo(o.session, nil)
}

// copyTo sends the TradeCaptureReport in f.capture to the drop copies of the
// owner's participant; custom: see emitCapture.
func (f *follower) copyTo(owner *session, custom []byte) error {
	for _, s := range f.gateway.copies.all() {
		if s.participant.Number != owner.participant.Number {
			continue
		}
		if err := f.emitCapture(s, custom); err != nil {
			return err
		}
	}
	return nil
}

// emitCapture sends the TradeCaptureReport in f.capture to s, with the custom
// fields behind it where the session takes them.
func (f *follower) emitCapture(s *session, custom []byte) error {
	body := f.capture
	if s.custom.Load() {
		body = append(body, custom...)
	}
	return f.emitType(s, "AE", tagTradeReportID, body)
}

// captureClaim reports a claim that is settled, under the ExecID of the report that
// said so: to the session that took it, and to the drop copies of its participant.
func (f *follower) captureClaim(c *claim, execID []byte) error {
	in := f.gateway.instruments.Get(c.Terms.Instrument)
	if in == nil { // the report was not sent either
		return nil
	}
	body := appendCaptureHead(f.capture[:0], execID, c.status, in.Symbol)
	body = appendOffered(body, &c.Terms)
	body = market.AppendDecimal(append(body, "\x0132="...), c.Terms.Base, int(c.digits))
	body = appendUSDPrice(append(body, "\x0131="...), c.Terms.Price)
	f.text = market.AppendClaimID(f.text[:0], c.ID)
	side := captureSide{
		at: c.ChangedAt, side: '1', orderID: f.text, quoteID: c.Quote, clOrdID: c.ref, compID: c.session.id.TargetCompID,
	}
	if strings.HasPrefix(c.ref, quoteRespMark) {
		side.clOrdID = ""
	}
	f.capture = side.append(body)
	custom := appendCustomText(nil, tagClaimState, claimStateWord(c.State))
	if !c.session.dropCopy.Load() {
		if err := f.emitCapture(c.session, custom); err != nil {
			return err
		}
	}
	return f.copyTo(c.session, custom)
}
