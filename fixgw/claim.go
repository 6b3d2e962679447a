package fixgw

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// deskClient has the quotes and claims of one session, and handles its messages to the RFQ
// desk. The blotter's mutex guards it.
type deskClient struct {
	*blotter
	quotes map[market.QuoteID]*quote // that the desk has not forgotten
	claims map[market.ClaimID]*claim // live ones
}

// claim is a claim that a session has taken. Only the reporter changes it, under its
// owner's mutex; the session reads it under the same lock.
type claim struct {
	wire.ClientClaim
	owner *deskClient
	dirty bool // changed since the last commit; the reporter's, without the lock
}

// A claim's record:
//
//	0 version · 1 session u16 · 3 decimals · 4 status · 5 refund's booking i64 ·
//	13 refund's signature · 77 length of ref u8 · 78 ref · the desk's record
const (
	claimRecordVersion = 1
	claimRecordHead    = 78
)

func (c *claim) appendRecord(dst []byte) []byte {
	dst = append(dst, claimRecordVersion)
	dst = binary.BigEndian.AppendUint16(dst, c.owner.Number)
	dst = append(dst, c.Digits, c.Status)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Refund.At))
	dst = append(dst, c.Refund.Signature[:]...)
	dst = append(append(dst, byte(len(c.Ref))), c.Ref...)
	return rfq.AppendRecord(dst, &c.Claim)
}

// parseClaimRecord reads the encoding of appendRecord. clientOf returns the deskClient of
// a session number, or nil if there is no such session. Then the claim is nil too, and also
// if the session now belongs to another participant.
func parseClaimRecord(id market.ClaimID, value []byte, clientOf func(uint16) *deskClient) (*claim, error) {
	bad := func() (*claim, error) {
		return nil, fmt.Errorf("%w: claim %s: %d bytes", session.ErrLayout, market.AppendClaimID(nil, id), len(value))
	}
	if len(value) < claimRecordHead || value[0] != claimRecordVersion || len(value) < claimRecordHead+int(value[77]) {
		return bad()
	}
	refEnd := claimRecordHead + int(value[77])
	record, rest, err := rfq.DecodeRecord(value[refEnd:])
	stored, ok := record.(*rfq.Claim)
	if err != nil || !ok || len(rest) != 0 || stored.ID != id || refEnd == claimRecordHead {
		return bad()
	}
	s := clientOf(binary.BigEndian.Uint16(value[1:]))
	if s == nil || s.Participant.Number != stored.Participant {
		return nil, nil
	}
	c := &claim{owner: s, ClientClaim: wire.ClientClaim{
		Claim: *stored, Ref: string(value[claimRecordHead:refEnd]), Digits: value[3], Status: value[4],
		Refund: wire.Refund{At: int64(binary.BigEndian.Uint64(value[5:]))},
	}}
	copy(c.Refund.Signature[:], value[13:77])
	return c, nil
}

// claimOf returns a copy of a claim of the session, live or ended; ok is false if it has
// none with that id. Any goroutine that does not hold its mutex.
func (s *deskClient) claimOf(id market.ClaimID) (c claim, ok bool, err error) {
	if c, ok = s.liveClaim(id); ok {
		return c, true, nil
	}
	stored, err := s.gateway.storedClaim(id)
	if err != nil || stored == nil || stored.owner != s {
		return claim{}, false, err
	}
	return *stored, true, nil
}

// liveClaim returns a copy of a claim of the session that has not ended.
func (s *deskClient) liveClaim(id market.ClaimID) (c claim, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.claims[id]; known != nil {
		return known.snapshot(), true
	}
	return claim{}, false
}

// claimUnder returns a copy of the claim that was taken under a ClOrdID, or
// under QuoteRespPrefix and a QuoteRespID, today or yesterday.
func (s *deskClient) claimUnder(key string) (c claim, ok bool, err error) {
	s.mu.Lock()
	r := s.requests[key]
	var id market.OrderID
	if r != nil {
		id = r.id
		if r.claim != nil {
			c, ok = r.claim.snapshot(), true
		}
	}
	s.mu.Unlock()
	if ok || r != nil && r.order != nil || len(key) == 0 || len(key) > wire.MaxClOrdID {
		return c, ok, nil
	}
	if r == nil {
		a, found, err := s.stored([]byte(key))
		if err != nil || !found {
			return claim{}, false, err
		}
		id = a.id
	}
	if c, ok, err = s.claimOf(market.ClaimID(id)); !ok || c.Ref != key {
		return claim{}, false, err
	}
	return c, true, nil
}

// snapshot returns a copy without the reporter's own fields.
func (c *claim) snapshot() claim {
	return claim{ClientClaim: c.ClientClaim, owner: c.owner}
}

// storedClaim returns a claim from the store, or nil. Any goroutine.
func (g *Gateway) storedClaim(id market.ClaimID) (*claim, error) {
	for _, kind := range [...]byte{keyClaim, keyClaimOver} {
		value, ok, err := g.store.Get(claimKey(nil, kind, id))
		if err != nil {
			return nil, err
		}
		if ok {
			return parseClaimRecord(id, value, g.deskClientNumbered)
		}
	}
	return nil, nil
}

// restoreClaim adds a live claim of the store, before Run.
func (s *deskClient) restoreClaim(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims[c.ID] = c
	s.requests[c.Ref] = &request{clOrdID: c.Ref, id: market.OrderID(c.ID), claim: c, answer: '8'}
}

// forgetClaim drops a claim that has ended and is stored as ended.
func (s *deskClient) forgetClaim(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claims, c.ID)
	if r := s.requests[c.Ref]; r != nil && r.claim == c {
		r.claim = nil // a late payment may make it live again, from the store
		if r.body == nil {
			s.closeLocked(r)
		}
	}
}

// reservedClaims returns copies of the session's claims that wait for a payment.
func (s *deskClient) reservedClaims() (list []rfq.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.claims {
		if c.State == rfq.ClaimReserved {
			list = append(list, c.Claim)
		}
	}
	return list
}
