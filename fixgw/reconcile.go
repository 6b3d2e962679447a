package fixgw

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/rfq"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/projection"
)

// reconciledClOrdID is the ClOrdID of the last command of a Reconcile. Journals have it.
const reconciledClOrdID = "\x01rebased"

// lostReason is the text (58) of a report of an order that the engine has lost.
const lostReason = "lost_by_restart"

// Start ends the recovery of a store that has seen the events of every command.
// projection.ErrUnfinished: a crash came before the end of a Reconcile, which must be called
// again.
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
		if err := f.loseOrder(o); err != nil {
			return nil, fmt.Errorf("order %d: %w", id, err)
		}
		if err := f.commitIfFull(); err != nil {
			return nil, err
		}
	}
	if err := f.reconcileDesk(s.Desk()); err != nil {
		return nil, err
	}
	last := engine.Command{Kind: engine.Tick}
	last.SetRef([]byte(reconciledClOrdID))
	return append(cancels, last), f.commit()
}

// commitIfFull commits where as many reports wait as one commit takes.
func (f *reporter) commitIfFull() error {
	if f.reports < batchReports {
		return nil
	}
	return f.commit()
}

// loseOrder reports the end of an order that the engine does not have.
func (f *reporter) loseOrder(o *order) error {
	o.owner.mu.Lock()
	o.Status = wire.StatusCancelled
	o.owner.mu.Unlock()
	f.markChanged(o)
	in := f.gateway.instruments.Get(o.Instrument)
	if in == nil { // configured no more
		f.lost.Add(1)
		return nil
	}
	f.execID = f.gateway.ids.Append(f.execID[:0])
	r := wire.ExecutionReport{Instrument: in, Order: &o.ClientOrder, ExecType: wire.ExecCancelled, ExecID: f.execID, At: f.at, Text: []byte(lostReason)}
	f.out.Scratch = r.AppendBody(f.out.Scratch[:0])
	return f.emit(o.owner, '8', f.out.Scratch)
}

// reconcileDesk makes the claims of sessions agree with the desk's.
func (f *reporter) reconcileDesk(desk *rfq.Machine) error {
	for _, id := range sortedKeys(f.desk.quotes) {
		if err := f.removed(&rfq.Removed{What: rfq.TagQuote, ID: uint64(id)}); err != nil {
			return err
		}
	}
	now := make(map[market.ClaimID]rfq.Claim)
	desk.EachClaim(func(c *rfq.Claim, _ []rfq.Payment) bool {
		if c.Participant != 0 {
			now[c.ID] = *c
		}
		return true
	})
	known := sortedKeys(f.desk.claims)
	err := f.store.Scan([]byte{keyClaimOver}, []byte{keyClaimOver + 1}, func(key, _ []byte) bool {
		known = append(known, market.ClaimID(binary.BigEndian.Uint64(key[1:])))
		return true
	})
	if err != nil {
		return err
	}
	for _, id := range known {
		c, err := f.claim(id)
		if err != nil {
			return err
		}
		is, there := now[id]
		delete(now, id)
		switch {
		case c == nil: // of a session that is configured no more
			continue
		case there:
			err = f.restateClaim(c, &is)
		default:
			err = f.loseClaim(c)
		}
		if err != nil {
			return fmt.Errorf("claim %s: %w", market.AppendClaimID(nil, id), err)
		}
		if err := f.commitIfFull(); err != nil {
			return err
		}
	}
	f.lost.Add(uint64(len(now))) // nobody knows whose they are
	return nil
}

// restateClaim reports a claim that the desk knows in another state.
func (f *reporter) restateClaim(c *claim, is *rfq.Claim) error {
	if c.Claim == *is {
		return nil
	}
	before := c.Status
	c.owner.mu.Lock()
	c.Claim, c.Status = *is, wire.ClaimStatus(is.State)
	if is.State.Live() {
		c.owner.claims[c.ID] = c
	}
	c.owner.mu.Unlock()
	f.markClaimChanged(c)
	if c.Status == before {
		return nil
	}
	f.execID = f.gateway.ids.Append(f.execID[:0])
	return f.sendClaim(c, wire.ExecRestated, f.at, []byte(lostReason), false)
}

// loseClaim reports the end of a claim that the desk does not have, and forgets
// it.
func (f *reporter) loseClaim(c *claim) error {
	live := !c.Over()
	c.owner.mu.Lock()
	c.State, c.Status = rfq.ClaimReleased, wire.StatusCancelled
	c.owner.mu.Unlock()
	f.markClaimChanged(c)
	f.desk.forgotten = append(f.desk.forgotten, c.ID)
	if !live {
		return nil
	}
	f.execID = f.gateway.ids.Append(f.execID[:0])
	return f.sendClaim(c, wire.ExecCancelled, f.at, []byte(lostReason), false)
}
