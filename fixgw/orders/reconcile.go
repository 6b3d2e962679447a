package orders

import (
	"fmt"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// RestoreTerms gives the live orders of a store of version 0.1, whose records have no
// terms, those that the engine has.
func (f *Reporter) RestoreTerms(s *engine.State) {
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

// Foreign returns commands that cancel each order of the recovered state that the store
// lacks, or has with another open quantity.
func (f *Reporter) Foreign(s *engine.State) (cancels []engine.Command) {
	for _, in := range s.Instruments() {
		s.Orders(in.ID, func(r book.LiveOrder) {
			if o := f.orders[r.ID]; o == nil || !o.Live() || o.Leaves != r.Open {
				cancels = append(cancels, engine.Command{Kind: engine.CancelOrder, Instrument: in.ID, Order: book.Order{ID: r.ID}})
			}
		})
	}
	return cancels
}

// ReportLost reports each order that the recovered state does not have as cancelled, with
// that text. It calls commit after each report.
func (f *Reporter) ReportLost(s *engine.State, text string, commit func() error) error {
	live := make(map[market.OrderID]bool)
	for _, in := range s.Instruments() {
		s.Orders(in.ID, func(r book.LiveOrder) { live[r.ID] = true })
	}
	for id, o := range f.orders {
		if live[id] || !o.Live() {
			continue
		}
		f.reportLost(o, text)
		if err := commit(); err != nil {
			return fmt.Errorf("order %d: %w", id, err)
		}
	}
	return nil
}

func (f *Reporter) reportLost(o *order, text string) {
	o.owner.mu.Lock()
	o.Status = wire.StatusCancelled
	o.owner.mu.Unlock()
	f.markChanged(o)
	in := f.instruments.Get(o.Instrument)
	if in == nil { // not configured any more
		f.out.OrphanedEvents.Add(1)
		return
	}
	f.execID = f.out.AppendOwnID(f.execID[:0])
	r := wire.ExecutionReport{Instrument: in, Order: &o.ClientOrder, ExecType: wire.ExecCancelled, ExecID: f.execID, At: f.out.At, Text: []byte(text)}
	f.body = r.AppendBody(f.body[:0])
	f.out.Emit(o.owner.Session, "8", wire.TagOrderID, f.body)
}
