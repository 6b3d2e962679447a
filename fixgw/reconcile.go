package fixgw

import (
	"fmt"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/projection"
)

// reconciledClOrdID is the ClOrdID of the last command of a Reconcile. It is in journals
// and must not change.
const reconciledClOrdID = "\x01rebased"

// lostText is the Text (58) of a report of an order that the engine has lost.
const lostText = "lost_by_restart"

// Start ends the recovery of a store that has processed the events of every command. It
// returns projection.ErrUnfinished if a crash interrupted a Reconcile, which must then be
// called again.
func (g *Gateway) Start(s *engine.State) error {
	g.reporter.restoreTerms(s)
	if g.reporter.storedUnfinished {
		return fmt.Errorf("FIX store: %w", projection.ErrUnfinished)
	}
	return nil
}

// restoreTerms gives the live orders of a store of version 0.1, whose records have no
// terms, those that the engine has.
func (f *reporter) restoreTerms(s *engine.State) {
	for _, in := range s.Instruments() {
		s.Orders(in.ID, func(r book.LiveOrder) {
			o := f.orders[r.ID]
			if o == nil || o.Any() {
				return
			}
			o.owner.mu.Lock()
			o.OrderTerms = wire.TermsOf(&r.Order, "")
			o.owner.mu.Unlock()
		})
	}
}

// Reconcile makes the store agree with the engine, in place of Start, in two cases: the
// journal has lost commands whose reports are in the store (a crash in mode interval, an
// older backup), or the store has lost events that the journal no longer has. Before Run.
//
// s is the recovered state. An order that only the store has is reported as cancelled. The
// returned commands cancel every order that the store lacks, or has with another open
// quantity; the engine must execute them before all others. The Reconcile is finished when
// the reporter has processed the last of them; a crash before that leaves it unfinished.
// Fills that were reported and then lost are not corrected, because no record of them is
// left.
//
// A claim that only the store has is reported as cancelled. A claim that differs from the
// desk's is reported as restated. Quotes end without a report.
func (g *Gateway) Reconcile(s *engine.State) ([]engine.Command, error) {
	f := g.reporter
	f.restoreTerms(s)
	f.replaying = true
	defer func() { f.replaying = false }()
	f.at = g.options.Now().UnixNano()
	f.next, f.stored, f.unfinished = position{seq: s.Seq() + 1}, position{}, true
	f.epoch, f.storedEpoch = s.Epoch(), s.Epoch()

	var cancels []engine.Command
	found := make(map[market.OrderID]bool, len(f.orders))
	for _, in := range s.Instruments() {
		s.Orders(in.ID, func(r book.LiveOrder) {
			if o := f.orders[r.ID]; o != nil && o.Live() {
				found[r.ID] = true
				if o.Leaves == r.Open {
					return
				}
			}
			cancels = append(cancels, engine.Command{Kind: engine.CancelOrder, Instrument: in.ID, Order: book.Order{ID: r.ID}})
		})
	}
	for id, o := range f.orders {
		if found[id] || !o.Live() {
			continue
		}
		if err := f.reportLostOrder(o); err != nil {
			return nil, fmt.Errorf("order %d: %w", id, err)
		}
		if err := f.commitIfFull(); err != nil {
			return nil, err
		}
	}
	if err := f.desk.reconcile(s.Desk()); err != nil {
		return nil, err
	}
	last := engine.Command{Kind: engine.Tick}
	last.SetRef([]byte(reconciledClOrdID))
	return append(cancels, last), f.commit()
}

// commitIfFull commits if batchReports reports are waiting.
func (f *reporter) commitIfFull() error {
	if f.reports < batchReports {
		return nil
	}
	return f.commit()
}

// reportLostOrder reports the end of an order that the engine does not have.
func (f *reporter) reportLostOrder(o *order) error {
	o.owner.mu.Lock()
	o.Status = wire.StatusCancelled
	o.owner.mu.Unlock()
	f.markChanged(o)
	in := f.gateway.instruments.Get(o.Instrument)
	if in == nil { // not configured any more
		f.orphanedEvents.Add(1)
		return nil
	}
	f.execID = f.gateway.ids.Append(f.execID[:0])
	r := wire.ExecutionReport{Instrument: in, Order: &o.ClientOrder, ExecType: wire.ExecCancelled, ExecID: f.execID, At: f.at, Text: []byte(lostText)}
	f.out.Scratch = r.AppendBody(f.out.Scratch[:0])
	return f.emit(o.owner, '8', f.out.Scratch)
}
