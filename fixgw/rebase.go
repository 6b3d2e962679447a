package fixgw

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine"
	"blockdesk/engine/book"
	"blockdesk/engine/rfq"
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
//
// claims gives every claim of the desk (rfq.Machine.EachClaim). One that only the
// store has is reported as cancelled, one that the two know differently as
// restated; quotes end without a word.
func (g *Gateway) Rebase(seq, epoch uint64, live func(func(market.InstrumentID, book.Resting)), claims func(func(*rfq.Claim, []rfq.Payment) bool)) ([]engine.Command, error) {
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
	if err := f.rebaseDesk(claims); err != nil {
		return nil, err
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

// rebaseDesk takes the desk's word for the claims of sessions.
func (f *follower) rebaseDesk(each func(func(*rfq.Claim, []rfq.Payment) bool)) error {
	for _, id := range sortedKeys(f.desk.quotes) {
		if err := f.gone(&rfq.Gone{What: rfq.TagQuote, ID: uint64(id)}); err != nil {
			return err
		}
	}
	now := make(map[market.ClaimID]rfq.Claim)
	each(func(c *rfq.Claim, _ []rfq.Payment) bool {
		if c.Participant != 0 {
			now[c.ID] = *c
		}
		return true
	})
	known := sortedKeys(f.desk.claims)
	err := f.gateway.store.Scan([]byte{keyClaimOver}, []byte{keyClaimOver + 1}, func(key, _ []byte) bool {
		known = append(known, market.ClaimID(binary.BigEndian.Uint64(key[1:])))
		return true
	})
	if err != nil {
		return fmt.Errorf("FIX store: %w", err)
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
		if f.reports >= batchReports {
			if err := f.commit(); err != nil {
				return err
			}
		}
	}
	f.lost.Add(uint64(len(now))) // nobody knows whose they are
	return nil
}

// restateClaim reports a claim that the desk knows in another state.
func (f *follower) restateClaim(c *claim, is *rfq.Claim) error {
	if c.Claim == *is {
		return nil
	}
	before := c.status
	c.session.mu.Lock()
	c.Claim, c.status = *is, claimStatus(is.State)
	if is.State.Live() {
		c.session.claims[c.ID] = c
	}
	c.session.mu.Unlock()
	f.touchClaim(c)
	if c.status == before {
		return nil
	}
	f.execID = f.gateway.localID(f.execID[:0])
	return f.sendClaim(c, execRestated, f.at, []byte(lostReason), false)
}

// loseClaim reports the end of a claim that the desk does not have, and forgets
// it.
func (f *follower) loseClaim(c *claim) error {
	live := !c.over()
	c.session.mu.Lock()
	c.State, c.status = rfq.ClaimReleased, statusCancelled
	c.session.mu.Unlock()
	f.touchClaim(c)
	f.desk.forgotten = append(f.desk.forgotten, c.ID)
	if !live {
		return nil
	}
	f.execID = f.gateway.localID(f.execID[:0])
	return f.sendClaim(c, execCancelled, f.at, []byte(lostReason), false)
}
