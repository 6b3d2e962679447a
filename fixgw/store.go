package fixgw

import (
	"encoding/binary"

	"blockdesk/market"
)

// The keys of the store. Numbers are big-endian, so that a scan sees them in
// their order.
//
//	v                                   layout version, 1 byte
//	a s r l m u                         sessions: see session/store.go
//	o OrderID                           one live order: see order.go
//	y day OrderID                       one closed order
//	x day session ClOrdID               what a ClOrdID was answered with
//	q QuoteID                           one live quote: see quote.go
//	d ClaimID                           one live claim: see claim.go
//	e ClaimID                           one claim that is over, until the desk forgets it
//	f                                   facts of the desk: see desk.go
//	b day ClaimID                       a claim whose package was sent
//	t session TradeReportID             a report of a payment without its answer: see pay_proof.go
//	c                                   cursor: Seq u64, event index u32, epoch u32
//	g j                                 fills and positions: see package history
//	n session number                    an Account (1): see accounts.go
//	p                                   there while a Reconcile is unfinished
//	k                                   written to make what came before it durable
const (
	keyLive       byte = 'o'
	keyClosed     byte = 'y'
	keyAnswer     byte = 'x'
	keyUnfinished byte = 'p'
	keyMark       byte = 'k'
	keyAccount    byte = 'n'

	keyQuote     byte = 'q'
	keyClaim     byte = 'd'
	keyClaimOver byte = 'e'
	keyFacts     byte = 'f'
	keyPacked    byte = 'b'
	keyProof     byte = 't'
)

const layoutVersion = 2

func liveKey(dst []byte, id market.OrderID) []byte {
	return binary.BigEndian.AppendUint64(append(dst, keyLive), uint64(id))
}

func closedKey(dst []byte, day uint32, id market.OrderID) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, keyClosed), day)
	return binary.BigEndian.AppendUint64(dst, uint64(id))
}

func answerKey(dst []byte, day uint32, session uint16, clOrdID []byte) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, keyAnswer), day)
	dst = binary.BigEndian.AppendUint16(dst, session)
	return append(dst, clOrdID...)
}

func quoteKey(dst []byte, id market.QuoteID) []byte {
	return binary.BigEndian.AppendUint64(append(dst, keyQuote), uint64(id))
}

// claimKey: kind is keyClaim or keyClaimOver.
func claimKey(dst []byte, kind byte, id market.ClaimID) []byte {
	return binary.BigEndian.AppendUint64(append(dst, kind), uint64(id))
}

// dayOf returns the UTC day of a Unix nanosecond. Records of one day are deleted together.
func dayOf(at int64) uint32 {
	const day = 24 * 60 * 60 * 1_000_000_000
	return uint32(max(at, 0) / day)
}
