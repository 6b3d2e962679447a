package fixgw

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// clientClaim is a claim as its client sees it: the desk's newest record of it, and
// what was reported.
//
//	desk's state      OrdStatus (39)      told by ExecType (150)
//	reserved          A pending new       A
//	paid, delivering  0 new               0 once
//	settled           2 filled            F
//	expired           C expired           C
//	refund_due        4 cancelled         4
//
// expired is left for paid or refund_due by a late payment alone; settled and
// refund_due are for ever. The desk's other states belong to claims that FIX does
// not make.
type clientClaim struct {
	rfq.Claim
	ref    string // the ClOrdID that it was taken under, or quoteRespMark and a QuoteRespID
	digits uint8  // decimals of the base asset
	status byte   // OrdStatus (39)
	// The newest payment for it that was reported as due for refund; At = 0: none was.
	refund refundTold
}

// claim is a claim that a session has taken. The follower alone changes it, under
// session.mu; the session reads it under the same lock.
type claim struct {
	clientClaim
	session *session
	dirty   bool // changed since the last commit; the follower's, without the lock
}

// refundTold is a payment, and when it was booked.
type refundTold struct {
	Signature [64]byte
	At        int64
}

const (
	execPendingNew   byte = 'A'
	statusPendingNew byte = 'A'
)

// claimStatus returns the OrdStatus of a claim in a state.
func claimStatus(s rfq.ClaimState) byte {
	switch s {
	case rfq.ClaimReserved:
		return statusPendingNew
	case rfq.ClaimPaid, rfq.ClaimDelivering, rfq.ClaimCosigned:
		return statusNew
	case rfq.ClaimSettled:
		return statusFilled
	case rfq.ClaimExpired:
		return statusExpired
	}
	return statusCancelled
}

// claimExec returns the ExecType that tells of a new status.
func claimExec(status byte) byte {
	if status == statusFilled {
		return execTrade
	}
	return status // the same characters in FIX
}

// claimReport is one ExecutionReport (35=8) of a claim.
type claimReport struct {
	claim    *clientClaim // Deadline 0: not reserved yet
	symbol   string
	execID   []byte
	execType byte
	at       int64 // TransactTime, Unix nanoseconds
	text     []byte
}

// appendBody appends the report's body without "37=" and without the last SOH.
// Price is dollars for a whole unit of the base asset, the quantities are such
// units.
func (r *claimReport) appendBody(dst []byte) []byte {
	c := r.claim
	t := &c.Terms
	dst = market.AppendClaimID(dst, c.ID)
	dst = appendRef(dst, c.ref)
	if c.Quote != 0 {
		dst = market.AppendQuoteID(append(dst, "\x01198="...), c.Quote)
	}
	dst = append(append(dst, "\x0117="...), r.execID...)
	dst = append(append(dst, "\x01150="...), r.execType)
	dst = append(append(dst, "\x0139="...), c.status)
	dst = appendOffered(append(append(dst, "\x0155="...), r.symbol...), t)
	dst = append(dst, "\x0154=1\x0140=D\x0138="...)
	dst = market.AppendDecimal(dst, t.Base, int(c.digits))
	dst = append(append(dst, "\x01152="...), t.Fill.String()...)
	dst = appendUSDPrice(append(dst, "\x0144="...), t.Price)
	dst = append(append(dst, "\x0115="...), t.Rail.String()...)
	if c.Deadline != 0 {
		dst = appendTime(append(dst, "\x01126="...), c.Deadline)
	}
	if r.execType == execTrade {
		dst = market.AppendDecimal(append(dst, "\x0132="...), t.Base, int(c.digits))
		dst = appendUSDPrice(append(dst, "\x0131="...), t.Price)
	}
	var leaves, filled uint64
	switch {
	case c.status == statusFilled:
		filled = t.Base
	case c.State.Live():
		leaves = t.Base
	}
	dst = market.AppendDecimal(append(dst, "\x01151="...), leaves, int(c.digits))
	dst = market.AppendDecimal(append(dst, "\x0114="...), filled, int(c.digits))
	dst = append(dst, "\x016="...)
	if filled != 0 {
		dst = appendUSDPrice(dst, t.Price)
	} else {
		dst = append(dst, '0')
	}
	dst = appendTime(append(dst, "\x0160="...), r.at)
	if len(r.text) > 0 {
		dst = append(append(dst, "\x0158="...), r.text...)
	}
	return dst
}

// claimStateWord is the contract's word for a state (section D).
func claimStateWord(s rfq.ClaimState) string {
	switch s {
	case rfq.ClaimReserved:
		return "reserved"
	case rfq.ClaimPaid:
		return "paid"
	case rfq.ClaimDelivering:
		return "delivering"
	case rfq.ClaimSettled:
		return "settled"
	case rfq.ClaimExpired:
		return "expired"
	case rfq.ClaimCosigned:
		return "cosigned"
	case rfq.ClaimReleased:
		return "released"
	case rfq.ClaimRefundDue:
		return "refund_due"
	}
	return "state?"
}

// claimText is the Text (58) of the report that tells of c's status.
func claimText(dst []byte, c *clientClaim, late bool, why event.Reason) []byte {
	switch c.status {
	case statusPendingNew:
		return append(dst, "AWAIT_PAYMENT"...)
	case statusNew:
		if late {
			return append(dst, "PAID: late, and honoured"...)
		}
		return append(dst, "PAID"...)
	case statusFilled:
		return append(dst, "SETTLED"...)
	case statusExpired:
		return append(dst, codeClaimExpired+": not paid by its deadline"...)
	}
	return appendRefundText(dst, why)
}

// appendRefundText says that money is owed back, and why.
func appendRefundText(dst []byte, why event.Reason) []byte {
	dst = append(dst, "REFUND_DUE"...)
	if why != event.ReasonNone {
		dst = append(append(dst, ": "...), why.String()...)
	}
	return dst
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
	dst = binary.BigEndian.AppendUint16(dst, c.session.number)
	dst = append(dst, c.digits, c.status)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.refund.At))
	dst = append(dst, c.refund.Signature[:]...)
	dst = append(append(dst, byte(len(c.ref))), c.ref...)
	return rfq.AppendRecord(dst, &c.Claim)
}

// parseClaimRecord reads what appendRecord wrote. session returns the session of
// a number, or nil where there is none any more; such a claim is nil, and so is
// one whose session is another participant's by now.
func parseClaimRecord(id market.ClaimID, value []byte, session func(uint16) *session) (*claim, error) {
	bad := func() (*claim, error) {
		return nil, fmt.Errorf("%w: claim %s: %d bytes", errLayout, market.AppendClaimID(nil, id), len(value))
	}
	if len(value) < claimRecordHead || value[0] != claimRecordVersion || len(value) < claimRecordHead+int(value[77]) {
		return bad()
	}
	refEnd := claimRecordHead + int(value[77])
	record, rest, err := rfq.DecodeRecord(value[refEnd:])
	told, ok := record.(*rfq.Claim)
	if err != nil || !ok || len(rest) != 0 || told.ID != id || refEnd == claimRecordHead {
		return bad()
	}
	s := session(binary.BigEndian.Uint16(value[1:]))
	if s == nil || s.participant.Number != told.Participant {
		return nil, nil
	}
	c := &claim{session: s, clientClaim: clientClaim{
		Claim: *told, ref: string(value[claimRecordHead:refEnd]), digits: value[3], status: value[4],
		refund: refundTold{At: int64(binary.BigEndian.Uint64(value[5:]))},
	}}
	copy(c.refund.Signature[:], value[13:77])
	return c, nil
}

// claimOf returns a copy of a claim of the session's, live or over; ok is false
// where it has none of that id. Any goroutine but one that holds session.mu.
func (s *session) claimOf(id market.ClaimID) (c claim, ok bool, err error) {
	if c, ok = s.liveClaim(id); ok {
		return c, true, nil
	}
	stored, err := s.gateway.storedClaim(id)
	if err != nil || stored == nil || stored.session != s {
		return claim{}, false, err
	}
	return *stored, true, nil
}

// liveClaim returns a copy of a claim of the session's that is not over.
func (s *session) liveClaim(id market.ClaimID) (c claim, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.claims[id]; known != nil {
		return known.shown(), true
	}
	return claim{}, false
}

// claimUnder returns a copy of the claim that was taken under a ClOrdID, or
// under quoteRespMark and a QuoteRespID, today or yesterday.
func (s *session) claimUnder(key string) (c claim, ok bool, err error) {
	s.mu.Lock()
	r := s.refs[key]
	var id market.OrderID
	if r != nil {
		id = r.id
		if r.claim != nil {
			c, ok = r.claim.shown(), true
		}
	}
	s.mu.Unlock()
	if ok || r != nil && r.order != nil || len(key) == 0 || len(key) > MaxClOrdID {
		return c, ok, nil
	}
	if r == nil {
		a, found, err := s.stored([]byte(key))
		if err != nil || !found {
			return claim{}, false, err
		}
		id = a.id
	}
	if c, ok, err = s.claimOf(market.ClaimID(id)); !ok || c.ref != key {
		return claim{}, false, err
	}
	return c, true, nil
}

// shown returns a copy without what is the follower's alone.
func (c *claim) shown() claim {
	return claim{clientClaim: c.clientClaim, session: c.session}
}

// over reports whether the claim can end in nothing else any more, but by a late
// payment.
func (c *clientClaim) over() bool { return !c.State.Live() }

// storedClaim returns a claim from the store, or nil. Any goroutine.
func (g *Gateway) storedClaim(id market.ClaimID) (*claim, error) {
	for _, kind := range [...]byte{keyClaim, keyClaimOver} {
		value, ok, err := g.store.Get(claimKey(nil, kind, id))
		if err != nil {
			return nil, err
		}
		if ok {
			return parseClaimRecord(id, value, g.sessionOf)
		}
	}
	return nil, nil
}

// adoptClaim takes a live claim from the store, before Run.
func (s *session) adoptClaim(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims[c.ID] = c
	s.refs[c.ref] = &ref{clOrdID: c.ref, id: market.OrderID(c.ID), claim: c, answer: '8'}
}

// forgetClaim drops a claim that is over and is in the store as such.
func (s *session) forgetClaim(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claims, c.ID)
	if r := s.refs[c.ref]; r != nil && r.claim == c {
		r.claim = nil // a late payment may bring it back, out of the store
		if r.body == nil {
			s.retireLocked(r)
		}
	}
}
