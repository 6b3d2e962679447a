package rfq

import (
	"encoding/binary"
	"errors"
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// Load reads the live quotes and claims, and the facts. Quotes of sessions that no longer
// exist are deleted, because no event of theirs will be processed. Claims stay.
func (d *Reporter) Load() error {
	value, ok, err := d.out.Store().Get([]byte{keyFacts})
	switch {
	case err != nil:
		return err
	case ok && !d.facts.parse(value):
		return fmt.Errorf("%w: desk pairs and policy: record has %d bytes", session.ErrLayout, len(value))
	}
	each := func(kind byte, take func(id uint64, value []byte) error) error {
		return kv.Each(d.out.Store(), []byte{kind}, []byte{kind + 1}, func(key, value []byte) error {
			if len(value) == 0 {
				return nil
			}
			return take(binary.BigEndian.Uint64(key[1:]), value)
		})
	}
	var orphans []market.QuoteID
	err = errors.Join(each(keyQuote, func(id uint64, value []byte) error {
		q, err := parseQuoteRecord(market.QuoteID(id), value, d.sessions.Numbered)
		if q == nil {
			d.out.OrphanedEvents.Add(1)
			orphans = append(orphans, market.QuoteID(id))
			return err
		}
		d.quotes[q.ID], q.owner.quotes[q.ID] = q, q
		return nil
	}), each(keyClaim, func(id uint64, value []byte) error {
		c, err := parseClaimRecord(market.ClaimID(id), value, d.sessions.Numbered)
		if c == nil {
			d.out.OrphanedEvents.Add(1)
			return err
		}
		d.claims[c.ID] = c
		c.owner.restoreClaim(c)
		return nil
	}))
	if err != nil || len(orphans) == 0 {
		return err
	}
	return d.out.Store().Store.Commit(func(_ func(key, value []byte), deleteRange func(lo, hi []byte)) {
		for _, id := range orphans {
			key := quoteKey(nil, id)
			deleteRange(key, kv.After(key))
		}
	}, false)
}

// Changed implements reports.Part.
func (d *Reporter) Changed() bool {
	return len(d.changedQuotes) > 0 || len(d.changedClaims) > 0 || len(d.forgotten) > 0 || d.changedFacts
}

// Fill implements reports.Part.
func (d *Reporter) Fill(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
	drop := func(key []byte) { deleteRange(key, kv.After(key)) }
	for _, q := range d.changedQuotes {
		if key := quoteKey(nil, q.ID); q.forgotten {
			drop(key)
		} else {
			q.owner.mu.Lock() // its client may pass on it meanwhile
			record := q.appendRecord(nil)
			q.owner.mu.Unlock()
			set(key, record)
		}
	}
	for _, c := range d.changedClaims {
		live, over := claimKey(nil, keyClaim, c.ID), claimKey(nil, keyClaimOver, c.ID)
		if c.State.Live() {
			set(live, c.appendRecord(nil))
			drop(over)
		} else {
			set(over, c.appendRecord(nil))
			drop(live)
		}
	}
	for _, id := range d.forgotten {
		drop(claimKey(nil, keyClaimOver, id))
	}
	if d.changedFacts {
		set([]byte{keyFacts}, d.facts.append(nil))
	}
}

// Committed implements reports.Part.
func (d *Reporter) Committed() {
	for _, q := range d.changedQuotes {
		q.dirty = false
	}
	for _, c := range d.changedClaims {
		c.dirty = false
		if !c.State.Live() {
			delete(d.claims, c.ID)
			c.owner.forgetClaim(c)
		}
	}
	d.changedQuotes, d.changedClaims, d.forgotten, d.changedFacts = d.changedQuotes[:0], d.changedClaims[:0], d.forgotten[:0], false
}

// Reconcile makes the claims of sessions agree with the desk's: it reports those that only
// the store has as cancelled and those that differ as restated, with that text, and ends all
// quotes without a report. It calls commit after each claim.
func (d *Reporter) Reconcile(desk *rfq.Machine, text string, commit func() error) error {
	for _, id := range sortedKeys(d.quotes) {
		if err := d.onRemoved(&rfq.Removed{What: rfq.TagQuote, ID: uint64(id)}); err != nil {
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
	known := sortedKeys(d.claims)
	err := d.out.Store().Scan([]byte{keyClaimOver}, []byte{keyClaimOver + 1}, func(key, _ []byte) bool {
		known = append(known, market.ClaimID(binary.BigEndian.Uint64(key[1:])))
		return true
	})
	if err != nil {
		return err
	}
	for _, id := range known {
		c, err := d.claim(id)
		if err != nil {
			return err
		}
		is, there := now[id]
		delete(now, id)
		switch {
		case c == nil: // of a session that is not configured any more
			continue
		case there:
			d.restateClaim(c, &is, text)
		default:
			d.reportLostClaim(c, text)
		}
		if err := commit(); err != nil {
			return fmt.Errorf("claim %s: %w", market.AppendClaimID(nil, id), err)
		}
	}
	d.out.OrphanedEvents.Add(uint64(len(now))) // their sessions are unknown
	return nil
}

// restateClaim reports a claim that the desk has in another state.
func (d *Reporter) restateClaim(c *claim, is *rfq.Claim, text string) {
	if c.Claim == *is {
		return
	}
	before := c.Status
	c.owner.mu.Lock()
	c.Claim, c.Status = *is, wire.ClaimStatus(is.State)
	if is.State.Live() {
		c.owner.claims[c.ID] = c
	}
	c.owner.mu.Unlock()
	d.markClaimChanged(c)
	if c.Status == before {
		return
	}
	d.execID = d.out.AppendOwnID(d.execID[:0])
	d.sendClaim(c, wire.ExecRestated, d.out.At, []byte(text), false)
}

// reportLostClaim reports the end of a claim that the desk does not have, and forgets it.
func (d *Reporter) reportLostClaim(c *claim, text string) {
	live := !c.Over()
	c.owner.mu.Lock()
	c.State, c.Status = rfq.ClaimReleased, wire.StatusCancelled
	c.owner.mu.Unlock()
	d.markClaimChanged(c)
	d.forgotten = append(d.forgotten, c.ID)
	if !live {
		return
	}
	d.execID = d.out.AppendOwnID(d.execID[:0])
	d.sendClaim(c, wire.ExecCancelled, d.out.At, []byte(text), false)
}
