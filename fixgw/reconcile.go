package fixgw

import (
	"fmt"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/projection"
)

// reconciledClOrdID is the ClOrdID of the last command of a Reconcile. Journals have it.
const reconciledClOrdID = "\x01rebased"

// lostText is the Text (58) of a report of an order that the engine has lost.
const lostText = "lost_by_restart"

// Start ends the recovery of a store that has seen the events of every command.
// projection.ErrUnfinished: a crash came before the end of a Reconcile, which must be
// called again.
func (g *Gateway) Start(*engine.State) error {
	if g.reporter.storedUnfinished {
		return fmt.Errorf("FIX store: %w", projection.ErrUnfinished)
	}
	return nil
}

// Reconcile makes the store agree with the engine, in place of Start: the journal has
// lost commands whose reports are in the store (a crash in mode interval, an older
// backup), or the store has lost what the journal no longer has. Before Run.
//
// s is the recovered state. An order that only the store has is reported as
// cancelled. The commands returned cancel what the store does not know, or knows
// with another open quantity; they must be the engine's first. Until the last of
// them has been followed the Reconcile is unfinished, also over a crash. Fills that
// were reported and are lost stay reported: nothing is left to correct them by.
//
// A claim that only the store has is reported as cancelled, one that the two know
// differently as restated. Quotes end without a report.
func (g *Gateway) Reconcile(s *engine.State) ([]engine.Command, error) {
	f := g.reporter
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

// commitIfFull commits if as many reports wait as one commit takes.
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
