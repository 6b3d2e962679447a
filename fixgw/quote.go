package fixgw

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/mr-tron/base58"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// clientQuote is a firm price as its client sees it.
type clientQuote struct {
	rfq.Quote
	ref    string // quoteReqMark and the QuoteReqID
	digits uint8  // decimals of the base asset
}

// quote is a firm price that a session was given: live until the desk says that
// it is gone. The follower alone changes it, under session.mu; the session reads
// it under the same lock, and sets over where its client passes.
type quote struct {
	clientQuote
	session *session
	over    bool // told as ended, though the desk still has it: nothing more is told, and no claim takes it

	dirty bool // changed since the last commit; the follower's, without the lock
	gone  bool // the desk has forgotten it; the follower's
}

// Ids of requests for quotes and of responses to them are names apart from
// ClOrdIDs: in the session's index, in the store and in the engine's References
// they have two bytes before them, of which the first is one that no client can
// send.
const (
	quoteReqMark  = "\x01R"
	quoteRespMark = "\x01J"
	// MaxQuoteReqID is the longest QuoteReqID (131) and QuoteRespID (693), in bytes.
	MaxQuoteReqID = MaxClOrdID - len(quoteReqMark)
)

// unmarked returns the client's own id of a name in session.refs.
func unmarked(key []byte) []byte {
	if len(key) >= len(quoteReqMark) && key[0] == internalMark {
		return key[len(quoteReqMark):]
	}
	return key
}

// What the answers to R are called where answers are kept; every other answer is
// a report whose MsgType is one character and which begins with OrderID.
const (
	answerQuote       byte = 'S'
	answerQuoteReject byte = 'g' // an AG
)

// answerForm returns the MsgType of a kept answer and the tag that it begins
// with.
func answerForm(code byte) (msgType string, firstTag int) {
	switch code {
	case answerQuote:
		return "S", tagQuoteID
	case answerQuoteReject:
		return "AG", tagQuoteReqID
	}
	return string(code), tagOrderID
}

// Tags that the bodies of quotes begin with.
const (
	tagQuoteID    = 117
	tagQuoteReqID = 131
)

// Values of QuoteStatus (297).
const (
	quoteRemoved  = "6"
	quoteExpired  = "7"
	quoteNotFound = "9"
	quotePassed   = "11"
)

// appendRef appends the client's own id of what a claim was taken by: a ClOrdID
// (11), or a QuoteRespID (693).
func appendRef(dst []byte, ref string) []byte {
	if id, ok := strings.CutPrefix(ref, quoteRespMark); ok {
		return append(append(dst, "\x01693="...), id...)
	}
	return append(append(dst, "\x0111="...), ref...)
}

// appendOffered appends SecurityID (48): the ticket and the tranche of terms.
func appendOffered(dst []byte, t *rfq.Terms) []byte {
	return append(appendOfferID(append(dst, "\x0148="...), t), "\x0122=8"...)
}

// appendOfferID appends the ids of the ticket and the tranche of terms, as
// T7/T7-1.
func appendOfferID(dst []byte, t *rfq.Terms) []byte {
	return market.AppendTrancheID(append(market.AppendTicketID(dst, t.Ticket), '/'), t.Ticket, t.Tranche)
}

// appendUSDPrice appends dollars for a whole unit.
func appendUSDPrice(dst []byte, p market.USDPrice) []byte {
	return market.AppendDecimal(dst, uint64(p), market.USDPriceDecimals)
}

// appendTerms appends what S and AI say alike of a quote, from Symbol on.
func (q *clientQuote) appendTerms(dst []byte, symbol string) []byte {
	t := &q.Terms
	dst = appendOffered(append(append(dst, "\x0155="...), symbol...), t)
	dst = append(append(dst, "\x0154=1\x01152="...), t.Fill.String()...)
	dst = append(append(dst, "\x0115="...), t.Rail.String()...)
	dst = appendUSDPrice(append(dst, "\x01133="...), t.Price)
	dst = market.AppendDecimal(append(dst, "\x01135="...), t.Base, int(q.digits))
	return appendTime(append(dst, "\x0162="...), q.ValidUntil)
}

// appendHead appends QuoteID without its tag, and QuoteReqID.
func (q *clientQuote) appendHead(dst []byte) []byte {
	dst = market.AppendQuoteID(dst, q.ID)
	return append(append(dst, "\x01131="...), strings.TrimPrefix(q.ref, quoteReqMark)...)
}

// appendBody appends the Quote (35=S) without "117=" and without the last SOH.
func (q *clientQuote) appendBody(dst []byte, symbol string) []byte {
	dst = append(q.appendHead(dst), "\x01537=1"...)
	return appendTime(append(q.appendTerms(dst, symbol), "\x0160="...), q.IssuedAt)
}

// appendStatus appends the QuoteStatusReport (35=AI) without "117=" and without
// the last SOH.
func (q *clientQuote) appendStatus(dst []byte, symbol, status string, at int64, text string) []byte {
	dst = append(q.appendTerms(q.appendHead(dst), symbol), "\x01297="...)
	dst = appendTime(append(append(dst, status...), "\x0160="...), at)
	if text != "" {
		dst = append(append(dst, "\x0158="...), text...)
	}
	return dst
}

// appendCancel appends the QuoteCancel (35=Z) without "117=" and without the last
// SOH.
func (q *clientQuote) appendCancel(dst []byte, symbol string) []byte {
	dst = append(q.appendHead(dst), "\x01298=1\x01295=1\x0155="...)
	return appendOffered(append(dst, symbol...), &q.Terms)
}

// appendCustomTerms appends what standard fields have no place for in the terms
// of a quote or a claim. mint is that of USDC.
func appendCustomTerms(dst []byte, t *rfq.Terms, mint market.Address) []byte {
	dst = appendCustomText(dst, tagFillUSD, t.Fill.String())
	dst = appendCustomText(dst, tagRail, t.Rail.String())
	dst = appendCustomInt(dst, tagDiscountBps, int64(t.DiscountBps))
	dst = appendUSDPrice(appendTag(dst, tagReferencePriceUSD), t.Reference)
	dst = market.AppendDecimal(appendTag(dst, tagPaymentAmount), t.Payment, t.Rail.Decimals())
	dst = appendCustomCount(dst, tagPaymentAtoms, t.Payment)
	dst = appendCustomText(dst, tagPayTo, base58Text(t.PayTo[:]))
	if t.Rail == market.RailUSDC {
		dst = appendCustomText(dst, tagPaymentMint, base58Text(mint[:]))
	}
	dst = appendCustomCount(dst, tagBaseAtoms, t.Base)
	return appendCustomInt(dst, tagFeeBps, int64(t.FeeBps))
}

func base58Text(data []byte) string { return base58.Encode(data) }

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
	dst = binary.BigEndian.AppendUint16(append(dst, quoteRecordVersion), q.session.number)
	dst = append(append(dst, q.digits, over, byte(len(q.ref))), q.ref...)
	return rfq.AppendRecord(dst, &q.Quote)
}

// parseQuoteRecord reads what appendRecord wrote, as parseClaimRecord does.
func parseQuoteRecord(id market.QuoteID, value []byte, session func(uint16) *session) (*quote, error) {
	bad := func() (*quote, error) {
		return nil, fmt.Errorf("%w: quote %s: %d bytes", errLayout, market.AppendQuoteID(nil, id), len(value))
	}
	if len(value) < quoteRecordHead || value[0] != quoteRecordVersion || value[4] > 1 || len(value) < quoteRecordHead+int(value[5]) {
		return bad()
	}
	refEnd := quoteRecordHead + int(value[5])
	record, rest, err := rfq.DecodeRecord(value[refEnd:])
	told, ok := record.(*rfq.Quote)
	if err != nil || !ok || len(rest) != 0 || told.ID != id || refEnd == quoteRecordHead {
		return bad()
	}
	s := session(binary.BigEndian.Uint16(value[1:]))
	if s == nil {
		return nil, nil
	}
	return &quote{
		clientQuote: clientQuote{Quote: *told, ref: string(value[quoteRecordHead:refEnd]), digits: value[3]},
		session:     s, over: value[4] == 1,
	}, nil
}
