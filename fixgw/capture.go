package fixgw

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"blockdesk/engine/event"
	"blockdesk/fixgw/history"
	"blockdesk/fixgw/wire"
)

// A TradeCaptureReport (35=AE) from the gateway reports one side of a trade to its owner.
// Every session that has asked for drop copies (9406=Y) gets one for each fill of its
// participant, whichever session the order came from, and one for each settled claim. The
// session that took the claim gets one in any case. It has nothing of the other side.
//
// It follows the ExecutionReport (35=8) of the same event: it is in the session's message
// store before the reporter's position passes the event, also while the session is logged
// out. After a crash it is made again under the same TradeReportID (571), the ExecID (17).

// dropCopies are the sessions that have asked for drop copies, by their number. The
// reporter reads the list at every fill; sessions join and leave as they log on. A new
// session joins when it is in the registry and quickfix has it: until then a copy could
// not be delivered.
type dropCopies struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*blotter] // immutable; nil = none
}

// follow adds or removes s, according to its present logon flags.
func (d *dropCopies) follow(s *blotter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in := s.DropCopy.Load()
	if in == slices.Contains(d.all(), s) {
		return
	}
	list := slices.DeleteFunc(slices.Clone(d.all()), func(other *blotter) bool { return other == s })
	if in {
		list = append(list, s)
		slices.SortFunc(list, func(a, b *blotter) int { return cmp.Compare(a.Number, b.Number) })
	}
	d.list.Store(&list)
}

func (d *dropCopies) all() []*blotter {
	if list := d.list.Load(); list != nil {
		return *list
	}
	return nil
}

// copyFill sends the drop copies of the fill of o that r has reported, under the ExecID
// of r.
func (f *reporter) copyFill(e *event.Event, o *order, r *wire.ExecutionReport) error {
	in := f.gateway.instruments.Get(e.Instrument)
	if in == nil || len(f.gateway.copies.all()) == 0 { // without the instrument r was not sent either
		return nil
	}
	body := wire.AppendCaptureHead(f.capture[:0], f.execID, o.Status, in.Symbol)
	body = strconv.AppendInt(append(body, "\x01880="...), e.Aux, 10)
	body = in.AppendQty(append(body, "\x0132="...), r.LastQty)
	body = in.AppendPrice(append(body, "\x0131="...), r.LastPx)
	f.text = strconv.AppendUint(f.text[:0], uint64(o.ID), 10)
	f.capture = (&wire.CaptureSide{
		At: e.At, Side: '0' + byte(o.Side), OrderID: f.text, ClOrdID: o.ClOrdID, CompID: o.owner.CompID(), Account: o.Account,
	}).Append(body)
	return f.copyTo(o.owner, nil)
}

// copyTo sends the TradeCaptureReport in f.capture to the drop copies of the
// owner's participant; custom: see emitCapture.
func (f *reporter) copyTo(owner *blotter, custom []byte) error {
	for _, s := range f.gateway.copies.all() {
		if s.Participant.Number != owner.Participant.Number {
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
func (f *reporter) emitCapture(s *blotter, custom []byte) error {
	body := f.capture
	if s.Custom.Load() {
		body = append(body, custom...)
	}
	return f.emitType(s, "AE", wire.TagTradeReportID, body)
}

// recordFill keeps the fill of o that r has reported, for AD and AN.
func (f *reporter) recordFill(e *event.Event, o *order, r *wire.ExecutionReport) error {
	return f.gateway.history.Record(&history.Fill{
		Session: o.owner.Number, Participant: o.owner.Participant.Number, Instrument: o.Instrument, Side: o.Side, Maker: r.Maker,
		Order: o.ID, Trade: r.Trade, Price: r.LastPx, Qty: r.LastQty, At: e.At,
		Seq: e.Seq, Index: f.next.index, Epoch: uint32(f.epoch), Status: o.Status, ClOrdID: o.ClOrdID, Account: o.Account,
	})
}
