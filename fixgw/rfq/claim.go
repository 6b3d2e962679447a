package rfq

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
	"blockdesk/persist/kv"
)

// The kinds of keys of this package, in the store.
const (
	keyQuote       byte = 'q' // QuoteID: one live quote
	keyClaim       byte = 'd' // ClaimID: one live claim
	keyClaimOver   byte = 'e' // ClaimID: one claim that is over, until the desk forgets it
	keyFacts       byte = 'f' // facts of the desk
	keyPackageSent byte = 'b' // day, ClaimID: a claim whose transaction package was sent
	keyProof       byte = 't' // session, TradeReportID: a report of a payment without its answer
)

// claimKey: kind is keyClaim or keyClaimOver.
func claimKey(dst []byte, kind byte, id market.ClaimID) []byte {
	return binary.BigEndian.AppendUint64(append(dst, kind), uint64(id))
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

// parseClaimRecord reads the encoding of appendRecord. sessionOf returns the session of
// a number, or nil if there is no such session. Then the claim is nil too, and also
// if the session now belongs to another participant.
func parseClaimRecord(id market.ClaimID, value []byte, sessionOf func(uint16) *Session) (*claim, error) {
	stored, ref, ok := parseRecord[*rfq.Claim](value, claimRecordVersion, claimRecordHead)
	if !ok || stored.ID != id {
		return nil, fmt.Errorf("%w: claim %s: %d bytes", session.ErrLayout, market.AppendClaimID(nil, id), len(value))
	}
	s := sessionOf(binary.BigEndian.Uint16(value[1:]))
	if s == nil || s.Participant.Number != stored.Participant {
		return nil, nil
	}
	c := &claim{owner: s, ClientClaim: wire.ClientClaim{
		Claim: *stored, Ref: ref, Digits: value[3], Status: value[4],
		Refund: wire.Refund{At: int64(binary.BigEndian.Uint64(value[5:]))},
	}}
	copy(c.Refund.Signature[:], value[13:77])
	return c, nil
}

// parseRecord reads a record of a version: head, whose last byte is the length of the
// reference, the reference, which is not empty, and the desk's record.
func parseRecord[R rfq.Record](value []byte, version byte, head int) (record R, ref string, ok bool) {
	if len(value) < head || value[0] != version || value[head-1] == 0 || len(value) < head+int(value[head-1]) {
		return record, "", false
	}
	end := head + int(value[head-1])
	decoded, rest, err := rfq.DecodeRecord(value[end:])
	record, ok = decoded.(R)
	return record, string(value[head:end]), ok && err == nil && len(rest) == 0
}

// storedClaim returns a claim from the store, or nil. Any goroutine.
func storedClaim(store kv.Store, id market.ClaimID, sessions session.Directory[Session]) (*claim, error) {
	for _, kind := range [...]byte{keyClaim, keyClaimOver} {
		value, ok, err := store.Get(claimKey(nil, kind, id))
		if err != nil {
			return nil, err
		}
		if ok {
			return parseClaimRecord(id, value, sessions.Numbered)
		}
	}
	return nil, nil
}

// claimOf returns a copy of a claim of the session, live or ended; ok is false if it has
// none with that id. Any goroutine that does not hold its mutex.
func (s *Session) claimOf(id market.ClaimID) (c claim, ok bool, err error) {
	if c, ok = s.liveClaim(id); ok {
		return c, true, nil
	}
	stored, err := storedClaim(s.entry.Store, id, s.sessions)
	if err != nil || stored == nil || stored.owner != s {
		return claim{}, false, err
	}
	return *stored, true, nil
}

// claimUnder returns a copy of the claim that was taken under a ClOrdID, or under
// QuoteRespPrefix and a QuoteRespID, today or yesterday.
func (s *Session) claimUnder(key string) (c claim, ok bool, err error) {
	if len(key) == 0 || len(key) > wire.MaxClOrdID {
		return claim{}, false, nil
	}
	r, found := s.Find(key)
	if known, isClaim := r.Subject.(*claim); isClaim {
		s.mu.Lock()
		defer s.mu.Unlock()
		return known.snapshot(), true, nil
	}
	if r.Subject != nil { // an order
		return claim{}, false, nil
	}
	if !found {
		if r.ID, found, err = s.StoredID([]byte(key)); err != nil || !found {
			return claim{}, false, err
		}
	}
	if c, ok, err = s.claimOf(market.ClaimID(r.ID)); !ok || c.Ref != key {
		return claim{}, false, err
	}
	return c, true, nil
}

// claimNamed returns a copy of the session's claim by its id, as in OrderID (37), or by
// the ClOrdID that it was taken under.
func (s *Session) claimNamed(orderID, clOrdID []byte) (c claim, ok bool, err error) {
	if id, isClaim := market.ParseClaimID(orderID); isClaim {
		if c, ok, err = s.claimOf(id); ok || err != nil {
			return c, ok, err
		}
	}
	return s.claimUnder(string(clOrdID))
}

// participantClaim returns a copy of a claim that a session of the participant has taken.
func (s *Session) participantClaim(id market.ClaimID) (claim, bool, error) {
	// Live claims first: a new one is in the store a moment later.
	for _, other := range s.sessions.All() {
		if other.Participant.Number == s.Participant.Number {
			if c, ok := other.liveClaim(id); ok {
				return c, true, nil
			}
		}
	}
	stored, err := storedClaim(s.entry.Store, id, s.sessions)
	if err != nil || stored == nil || stored.owner.Participant.Number != s.Participant.Number {
		return claim{}, false, err
	}
	return *stored, true, nil
}
