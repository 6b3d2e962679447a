package rfq

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

// claim is a claim that a session has taken. Only the reporter changes it, under its
// owner's mutex; the session reads it under the same lock.
type claim struct {
	wire.ClientClaim
	owner *Session
	dirty bool // changed since the last commit; the reporter's, without the lock
}

// LiveUnder implements reports.Subject.
func (c *claim) LiveUnder(string) bool { return !c.Over() }

// snapshot returns a copy without the reporter's own fields.
func (c *claim) snapshot() claim { return claim{ClientClaim: c.ClientClaim, owner: c.owner} }

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
	s := sessionOf(binary.BigEndian.Uint16(value[1:]))
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
