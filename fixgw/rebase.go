package fixgw

import (
	"fmt"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/market"
)

// rebasedRef is the ClOrdID of the last command of a Rebase.
const rebasedRef = "\x01rebased"

// lostReason is the text (58) of a report of an order that the engine has lost.
const lostReason = "lost_by_restart"

// Rebase takes the engine's word where store and journal have parted: the
// journal has lost commands whose reports are in the store (a crash in mode
// interval, an older backup), or the store has lost what the journal no longer
// has. Before Run, instead of Replay.
//
// seq and epoch are those that the journal ends with; live gives every live
// order of the engine. An order that only the store has is reported as
// cancelled. The commands returned cancel what the store does not know, or knows
// with another open quantity; they must be the engine's first. Until the last of
// them has been followed the store is Parted, also over a crash. Fills that were
// reported and are lost stay reported: nobody can tell them any more.
func (g *Gateway) Rebase(seq, epoch uint64, live func(func(market.InstrumentID, book.Resting))) ([]engine.Command, error) {
	f := g.follower
	f.replaying = true
	defer func() { f.replaying = false }()
	f.at = g.options.Now().UnixNano()
	f.place, f.done, f.parted = position{seq: seq + 1}, position{}, true
	f.epoch, f.ended = epoch, epoch

	var cancels []engine.Command
	found := make(map[market.OrderID]bool, len(f.orders))
	live(func(in market.InstrumentID, r book.Resting) {
		if o := f.orders[r.ID]; o != nil && o.live() {
			found[r.ID] = true
			if o.leaves == r.Open {
				return
			}
		}
		cancels = append(cancels, engine.Command{Kind: engine.CancelOrder, Instrument: in, Order: book.Order{ID: r.ID}})
	})
	for id, o := range f.orders {
		if found[id] || !o.live() {
			continue
		}
		if err := f.loseOrder(o); err != nil {
			return nil, fmt.Errorf("order %d: %w", id, err)
		}
		if f.reports >= batchReports {
			if err := f.commit(); err != nil {
				return nil, err
			}
		}
	}
	last := engine.Command{Kind: engine.Tick}
	last.SetRef([]byte(rebasedRef))
	return append(cancels, last), f.commit()
}

// Parted reports whether a Rebase was begun and is not through: after a crash it
// must be called again.
func (g *Gateway) Parted() bool { return g.follower.partedStored }

// loseOrder reports the end of an order that the engine does not have.
func (f *follower) loseOrder(o *order) error {
	o.session.mu.Lock()
	o.status = statusCancelled
	o.session.mu.Unlock()
	f.touch(o)
	in := f.gateway.instruments.Get(o.instrument)
	if in == nil { // configured no more
		f.lost.Add(1)
		return nil
	}
	f.execID = f.gateway.localID(f.execID[:0])
	r := report{in: in, order: o, execType: execCancelled, execID: f.execID, at: f.at, text: []byte(lostReason)}
	f.out.scratch = r.appendBody(f.out.scratch[:0])
	return f.emit(o.session, '8', f.out.scratch)
}
