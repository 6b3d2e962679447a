package rfq

import (
	"encoding/binary"
	"fmt"

	"blockdesk/engine/rfq"
	"blockdesk/fixgw/session"
	"blockdesk/fixgw/wire"
	"blockdesk/market"
)

func quoteKey(dst []byte, id market.QuoteID) []byte {
	return binary.BigEndian.AppendUint64(append(dst, keyQuote), uint64(id))
}

// A quote's record:
//
//	0 version · 1 session u16 · 3 decimals · 4 over · 5 length of ref u8 · 6 ref ·
//	the desk's record
const (
	quoteRecordVersion = 1
	quoteRecordHead    = 6
)

func (q *quote) appendRecord(dst []byte) []byte {
	over := byte(0)
	if q.over {
		over = 1
	}
	dst = binary.BigEndian.AppendUint16(append(dst, quoteRecordVersion), q.owner.Number)
	dst = append(append(dst, q.Digits, over, byte(len(q.Ref))), q.Ref...)
	return rfq.AppendRecord(dst, &q.Quote)
}

// parseQuoteRecord reads the encoding of appendRecord, as parseClaimRecord does.
func parseQuoteRecord(id market.QuoteID, value []byte, sessionOf func(uint16) *Session) (*quote, error) {
	bad := func() (*quote, error) {
		return nil, fmt.Errorf("%w: quote %s: %d bytes", session.ErrLayout, market.AppendQuoteID(nil, id), len(value))
	}
	if len(value) < quoteRecordHead || value[0] != quoteRecordVersion || value[4] > 1 || len(value) < quoteRecordHead+int(value[5]) {
		return bad()
	}
	refEnd := quoteRecordHead + int(value[5])
	record, rest, err := rfq.DecodeRecord(value[refEnd:])
	stored, ok := record.(*rfq.Quote)
	if err != nil || !ok || len(rest) != 0 || stored.ID != id || refEnd == quoteRecordHead {
		return bad()
	}
	s := sessionOf(binary.BigEndian.Uint16(value[1:]))
	if s == nil {
		return nil, nil
	}
	return &quote{
		ClientQuote: wire.ClientQuote{Quote: *stored, Ref: string(value[quoteRecordHead:refEnd]), Digits: value[3]},
		owner:       s, over: value[4] == 1,
	}, nil
}
