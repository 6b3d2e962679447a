package orders

import (
	"encoding/binary"

	"blockdesk/engine/event"
	"blockdesk/fixgw/history"
	"blockdesk/fixgw/reports"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Reporter keeps the state of orders as their clients see it, and reports what the engine
// does to them. It is a reports.Part.
type Reporter struct {
	out         *reports.Reporter
	sessions    session.Directory[Session]
	instruments *market.Instruments
	history     *history.History
	orders      map[market.OrderID]*order // live, or closed since the last commit

	// Of the command whose events are being processed:
	seq      uint64
	terms    event.Event         // its Terms; Kind 0 = it has none
	quoteSet uint16              // of the mass quote's entry
	refused  []wire.QuoteRefusal // of the mass quote's entries, so far
	// refusedListed are the Rejected events of a list's orders, so far.
	refusedListed []event.Event

	// Since the last commit:
	changed  []*order
	replaced []replaced

	// partials are the mass cancels of sessions in several lists.
	partials        map[uint16]*partialCancel
	partialsChanged bool

	key, record  []byte
	body, text   []byte // of the report
	execID, side []byte // side: body of a TradeCaptureReport
}

// replaced is a ClOrdID of an order that has another one now.
type replaced struct {
	owner   *Session
	clOrdID string
}

// NewReporter returns a reporter without orders. Fills go to h.
func NewReporter(out *reports.Reporter, sessions session.Directory[Session], instruments *market.Instruments, h *history.History) *Reporter {
	return &Reporter{out: out, sessions: sessions, instruments: instruments, history: h, orders: make(map[market.OrderID]*order), partials: make(map[uint16]*partialCancel)}
}

// Load reads the live orders, before the first event.
func (f *Reporter) Load() error {
	if err := f.loadPartials(); err != nil {
		return err
	}
	return kv.Each(f.out.Store(), []byte{keyLive}, []byte{keyLive + 1}, func(key, value []byte) error {
		if len(value) == 0 {
			return nil
		}
		id := market.OrderID(binary.BigEndian.Uint64(key[1:]))
		o, err := parseOrderRecord(id, value, f.sessions.Numbered)
		switch {
		case err != nil:
			return err
		case o == nil:
			f.out.OrphanedEvents.Add(1)
			return nil
		}
		f.orders[id] = o
		o.owner.restore(o)
		return nil
	})
}

// Changed implements reports.Part.
func (f *Reporter) Changed() bool { return len(f.changed) > 0 || f.partialsChanged }

// Fill implements reports.Part.
func (f *Reporter) Fill(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
	day := reports.DayOf(f.out.At)
	for _, o := range f.changed {
		f.record = o.appendRecord(f.record[:0])
		f.key = liveKey(f.key[:0], o.ID)
		if o.Live() {
			set(f.key, f.record)
			continue
		}
		deleteRange(f.key, kv.After(f.key))
		if o.QuoteSet == 0 { // no ClOrdID names it
			f.key = closedKey(f.key[:0], day, o.ID)
			set(f.key, f.record)
		}
	}
	f.fillPartials(set, deleteRange)
	f.history.Commit(set)
}

// Committed implements reports.Part.
func (f *Reporter) Committed() {
	f.history.AfterCommit()
	f.forgetPartials()
	for _, r := range f.replaced {
		r.owner.Close(r.clOrdID)
	}
	for _, o := range f.changed {
		o.dirty = false
		if !o.Live() {
			delete(f.orders, o.ID)
			o.owner.forget(o)
		}
	}
	f.changed, f.replaced = f.changed[:0], f.replaced[:0]
}

// markChanged adds o to the next commit.
func (f *Reporter) markChanged(o *order) {
	if !o.dirty {
		o.dirty = true
		f.changed = append(f.changed, o)
	}
}

// session returns the session of the command; nil = it came from none.
func (f *Reporter) session() *Session {
	if s := f.out.Command.Session; s != nil {
		return f.sessions.Of(s.Session)
	}
	return nil
}
