package fixgw

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

// load reads the live quotes and claims, and the facts. Quotes of sessions that no longer
// exist are deleted, because no event of theirs will be processed. Claims stay.
func (d *deskReports) load() error {
	d.quotes, d.claims = make(map[market.QuoteID]*quote), make(map[market.ClaimID]*claim)
	d.facts.digits = make(map[market.InstrumentID]uint8)
	g := d.reporter.gateway
	value, ok, err := d.reporter.store.Get([]byte{keyFacts})
	switch {
	case err != nil:
		return err
	case ok && !d.facts.parse(value):
		return fmt.Errorf("%w: desk pairs and policy: record has %d bytes", session.ErrLayout, len(value))
	}
	each := func(kind byte, take func(id uint64, value []byte) error) error {
		return kv.Each(d.reporter.store, []byte{kind}, []byte{kind + 1}, func(key, value []byte) error {
			if len(value) == 0 {
				return nil
			}
			return take(binary.BigEndian.Uint64(key[1:]), value)
		})
	}
	var orphans []market.QuoteID
	err = errors.Join(each(keyQuote, func(id uint64, value []byte) error {
		q, err := parseQuoteRecord(market.QuoteID(id), value, g.deskClientNumbered)
		if q == nil {
			d.reporter.orphanedEvents.Add(1)
			orphans = append(orphans, market.QuoteID(id))
			return err
		}
		d.quotes[q.ID], q.owner.quotes[q.ID] = q, q
		return nil
	}), each(keyClaim, func(id uint64, value []byte) error {
		c, err := parseClaimRecord(market.ClaimID(id), value, g.deskClientNumbered)
		if c == nil {
			d.reporter.orphanedEvents.Add(1)
			return err
		}
		d.claims[c.ID] = c
		c.owner.restoreClaim(c)
		return nil
	}))
	if err != nil || len(orphans) == 0 {
		return err
	}
	return g.store.Commit(func(_ func(key, value []byte), deleteRange func(lo, hi []byte)) {
		for _, id := range orphans {
			key := quoteKey(nil, id)
			deleteRange(key, kv.After(key))
		}
	}, false)
}

// hasChanges reports whether quotes, claims or facts of the desk have changed since the last
// commit.
func (d *deskReports) hasChanges() bool {
	return len(d.changedQuotes) > 0 || len(d.changedClaims) > 0 || len(d.forgotten) > 0 || d.changedFacts
}

// commit writes what has changed.
func (d *deskReports) commit(set func(key, value []byte), deleteRange func(lo, hi []byte)) {
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

// afterCommit forgets the changes that the commit has stored.
func (d *deskReports) afterCommit() {
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

// The facts' record:
//
//	0 version · 1 mint of USDC · 33 of each pair, by instrument: instrument u16, decimals
const (
	factsRecordVersion = 1
	factsRecordHead    = 33
)

func (f *deskFacts) append(dst []byte) []byte {
	dst = append(append(dst, factsRecordVersion), f.mint[:]...)
	for _, in := range sortedKeys(f.digits) {
		dst = append(binary.BigEndian.AppendUint16(dst, uint16(in)), f.digits[in])
	}
	return dst
}

// parse reads the encoding of append, and reports whether it is valid.
func (f *deskFacts) parse(value []byte) bool {
	if len(value) < factsRecordHead || value[0] != factsRecordVersion || (len(value)-factsRecordHead)%3 != 0 {
		return false
	}
	copy(f.mint[:], value[1:])
	for pairs := value[factsRecordHead:]; len(pairs) > 0; pairs = pairs[3:] {
		f.digits[market.InstrumentID(binary.BigEndian.Uint16(pairs))] = pairs[2]
	}
	return true
}

// reconcile makes the claims of sessions agree with the desk's.
func (d *deskReports) reconcile(desk *rfq.Machine) error {
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
	err := d.reporter.store.Scan([]byte{keyClaimOver}, []byte{keyClaimOver + 1}, func(key, _ []byte) bool {
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
			err = d.restateClaim(c, &is)
		default:
			err = d.reportLostClaim(c)
		}
		if err != nil {
			return fmt.Errorf("claim %s: %w", market.AppendClaimID(nil, id), err)
		}
		if err := d.reporter.commitIfFull(); err != nil {
			return err
		}
	}
	d.reporter.orphanedEvents.Add(uint64(len(now))) // their sessions are unknown
	return nil
}

// restateClaim reports a claim that the desk has in another state.
func (d *deskReports) restateClaim(c *claim, is *rfq.Claim) error {
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
	d.markClaimChanged(c)
	if c.Status == before {
		return nil
	}
	d.reporter.execID = d.reporter.gateway.ids.Append(d.reporter.execID[:0])
	return d.sendClaim(c, wire.ExecRestated, d.reporter.at, []byte(lostText), false)
}

// reportLostClaim reports the end of a claim that the desk does not have, and forgets it.
func (d *deskReports) reportLostClaim(c *claim) error {
	live := !c.Over()
	c.owner.mu.Lock()
	c.State, c.Status = rfq.ClaimReleased, wire.StatusCancelled
	c.owner.mu.Unlock()
	d.markClaimChanged(c)
	d.forgotten = append(d.forgotten, c.ID)
	if !live {
		return nil
	}
	d.reporter.execID = d.reporter.gateway.ids.Append(d.reporter.execID[:0])
	return d.sendClaim(c, wire.ExecCancelled, d.reporter.at, []byte(lostText), false)
}
