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
	stored, ref, ok := parseRecord[*rfq.Quote](value, quoteRecordVersion, quoteRecordHead)
	if !ok || stored.ID != id || value[4] > 1 {
		return nil, fmt.Errorf("%w: quote %s: %d bytes", session.ErrLayout, market.AppendQuoteID(nil, id), len(value))
	}
	s := sessionOf(binary.BigEndian.Uint16(value[1:]))
	if s == nil {
		return nil, nil
	}
	return &quote{
		ClientQuote: wire.ClientQuote{Quote: *stored, Ref: ref, Digits: value[3]},
		owner:       s, over: value[4] == 1,
	}, nil
}
