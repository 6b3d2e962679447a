package desk

import (
	"encoding/binary"
	"fmt"

	"blockdesk/market"
)

// The store's layout, version 2. Numbers in keys are big-endian, so that a scan
// sees them in their order; values begin with their own version byte. A record is
// what rfq.AppendRecord writes.
//
//	key                                         value
//	┌───┐                                       ┌───┐
//	│ v │                                       │ 2 │                              layout version
//	├───┤                                       ├───┼─────────┬──────────┐
//	│ c │                                       │ 2 │ Seq u64 │ keys u64 │         cursor: all commands up to Seq
//	├───┼────────┐                              ├───┼─────────┴┬─────────┤         are in the store; it has that
//	│ k │ id [16]│                              │ 2 │ body [8] │ Seq u64 │ records many answers. Answer to a key
//	├───┼────────┼─────────┐                    ├───┴──────────┴─────────┘
//	│ i │ At u64 │ id [16] │                    │ (empty)                          the answers by age
//	├───┼────────┴──┬──────┴──┬────────────┐    ├───┬────────┐
//	│ h │ claim u64 │ Seq u64 │ record u32 │    │ 2 │ record │                     Claim or Payment after a change
//	├───┼───────────┴┬────────┴────────────┘    ├───┼────────┴┐
//	│ t │ ticket u64 │                          │ 2 │ records │                    every ticket as of the cursor
//	├───┼────────────┘                          ├───┴───────┬─┘
//	│ m │                                       │ count u64 │                      written to sync what came before
//	├───┼────────────────┬─────────┐            ├───┬───────┴───┐
//	│ p │ signature [64] │ Seq u64 │            │ 2 │ claim u64 │                  the claim that a payment is for
//	├───┼────────────────┴─┬───────┴─────┐      ├───┼─────────┬─┴──────────┬──────────┬────────┐
//	│ s │ instrument u16   │ ^number u64 │      │ 2 │ Seq u64 │ volume u64 │ fees u64 │ record │ sale
//	├───┼──────────────────┴─────────────┘      ├───┼─────────┴────────────┴──────────┴────────┘
//	│ s │                                       │ 2 │                              there are the sales of all claims
//	└───┘                                       └───┘
//
// A sale's number is inverted, so that a scan sees the newest first; volume and fees are the
// instrument's totals up to it in millionths of a dollar, the record is the settled Claim.
// Stores without the key s alone were written before there were sales: see loadSales.
//
// The records of an answer: Outcome, then what there is of Quote, Claim, Ticket
// with its TicketTranches, Payment. Those of a ticket: Ticket, TicketTranches.
//
// record is the number of the record among those of the command Seq: a command may
// change a claim twice, if it expires it first. An answer needs its ticket as it was at
// that time, which neither the events nor the recovered machine have, so the store
// keeps the tickets too.
const (
	keyAnswer  byte = 'k'
	keyAge     byte = 'i'
	keyHistory byte = 'h'
	keyTicket  byte = 't'
	keyMark    byte = 'm'
	keyPayment byte = 'p'
	keySale    byte = 's'

	layoutVersion = 2
	valueVersion  = 2

	// Sizes of keys and of the cursor's value.
	answerKeySize  = 1 + 16
	ageKeySize     = 1 + 8 + 16
	historyKeySize = 1 + 8 + 8 + 4
	paymentKeySize = 1 + 64 + 8
	paymentSize    = 1 + 8
	saleKeySize    = 1 + 2 + 8
	cursorSize     = 1 + 8 + 8
)

func answerKey(dst []byte, id *[16]byte) []byte { return append(append(dst, keyAnswer), id[:]...) }

func ageKey(dst []byte, at int64, id *[16]byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, keyAge), uint64(max(at, 0)))
	return append(dst, id[:]...)
}

func historyKey(dst []byte, claim market.ClaimID, seq uint64, record uint32) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, keyHistory), uint64(claim))
	dst = binary.BigEndian.AppendUint64(dst, seq)
	return binary.BigEndian.AppendUint32(dst, record)
}

func ticketKey(dst []byte, id market.TicketID) []byte {
	return binary.BigEndian.AppendUint64(append(dst, keyTicket), uint64(id))
}

func paymentKey(dst []byte, signature *[64]byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append(append(dst, keyPayment), signature[:]...), seq)
}

func saleKey(dst []byte, in market.InstrumentID, number uint64) []byte {
	dst = binary.BigEndian.AppendUint16(append(dst, keySale), uint16(in))
	return binary.BigEndian.AppendUint64(dst, ^number)
}

// salesEnd returns the first key after the sales of an instrument.
func salesEnd(in market.InstrumentID) []byte {
	if in++; in == 0 {
		return []byte{keySale + 1}
	}
	return binary.BigEndian.AppendUint16([]byte{keySale}, uint16(in))
}

func appendPaymentClaim(dst []byte, id market.ClaimID) []byte {
	return binary.BigEndian.AppendUint64(append(dst, valueVersion), uint64(id))
}

func parsePaymentClaim(value []byte) (market.ClaimID, error) {
	if len(value) != paymentSize || value[0] != valueVersion {
		return 0, fmt.Errorf("%w: %x is not the claim of a payment", ErrLayout, value)
	}
	return market.ClaimID(binary.BigEndian.Uint64(value[1:])), nil
}

func appendCursor(dst []byte, seq, keys uint64) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, valueVersion), seq)
	return binary.BigEndian.AppendUint64(dst, keys)
}

func parseCursor(value []byte) (seq, keys uint64, err error) {
	if len(value) != cursorSize || value[0] != valueVersion {
		return 0, 0, fmt.Errorf("%w: %x is not a cursor", ErrLayout, value)
	}
	return binary.BigEndian.Uint64(value[1:]), binary.BigEndian.Uint64(value[9:]), nil
}
