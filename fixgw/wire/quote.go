package wire

import (
	"strings"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// InternalPrefix is the first byte of the ClOrdIDs of commands that the gateway itself sends
// for a session. It is the field delimiter, so no client can send it.
const InternalPrefix = SOH

// ClientQuote is a quote as its client sees it.
type ClientQuote struct {
	rfq.Quote
	Ref    string // QuoteReqPrefix, then the QuoteReqID
	Digits uint8  // decimals of the base asset
}

// The ids of quote requests and quote responses are not ClOrdIDs: in the session's index,
// in the store and in the engine's References they have a prefix of two bytes, the first of
// which no client can send.
const (
	QuoteReqPrefix  = "\x01R"
	QuoteRespPrefix = "\x01J"
	// MaxQuoteReqID is the longest QuoteReqID (131) and QuoteRespID (693), in bytes.
	MaxQuoteReqID = MaxClOrdID - len(QuoteReqPrefix)
)

// WithoutPrefix returns the client's own id: key without its prefix.
func WithoutPrefix(key []byte) []byte {
	if len(key) >= len(QuoteReqPrefix) && key[0] == InternalPrefix {
		return key[len(QuoteReqPrefix):]
	}
	return key
}

// Codes of kept answers to R. The code of every other answer is its MsgType, of one
// character, and its body begins with OrderID.
const (
	AnswerQuote       byte = 'S'
	AnswerQuoteReject byte = 'g' // an AG
)

// AnswerMassQuote is the code of a kept answer to a MassQuote or QuoteCancel: its MsgType.
const AnswerMassQuote byte = 'b'

// AnswerForm returns the MsgType of a kept answer and its first tag.
func AnswerForm(code byte) (msgType string, firstTag int) {
	switch code {
	case AnswerQuote:
		return "S", TagQuoteID
	case AnswerQuoteReject:
		return "AG", TagQuoteReqID
	case AnswerMassQuote:
		return "b", TagQuoteID
	case AnswerList:
		return "N", TagListID
	}
	return string(code), TagOrderID
}

// Tags that the bodies of quotes begin with.
const (
	TagQuoteID    = 117
	TagQuoteReqID = 131
)

// Values of QuoteStatus (297).
const (
	QuoteRemoved  = "6"
	QuoteExpired  = "7"
	QuoteNotFound = "9"
	QuotePassed   = "11"
)

// appendRef appends the client's own id of a claim: a ClOrdID (11), or a QuoteRespID
// (693).
func appendRef(dst []byte, ref string) []byte {
	if id, ok := strings.CutPrefix(ref, QuoteRespPrefix); ok {
		return append(append(dst, "\x01693="...), id...)
	}
	return append(append(dst, "\x0111="...), ref...)
}

// AppendOffered appends SecurityID (48): the ticket and the tranche of terms.
func AppendOffered(dst []byte, t *rfq.Terms) []byte {
	return append(appendOfferID(append(dst, "\x0148="...), t), "\x0122=8"...)
}

// appendOfferID appends the ids of the ticket and the tranche of terms, as
// T7/T7-1.
func appendOfferID(dst []byte, t *rfq.Terms) []byte {
	return market.AppendTrancheID(append(market.AppendTicketID(dst, t.Ticket), '/'), t.Ticket, t.Tranche)
}

// AppendUSDPrice appends dollars for a whole unit.
func AppendUSDPrice(dst []byte, p market.USDPrice) []byte {
	return market.AppendDecimal(dst, uint64(p), market.USDPriceDecimals)
}

// appendTerms appends the common fields of S and AI, from Symbol on.
func (q *ClientQuote) appendTerms(dst []byte, symbol string) []byte {
	t := &q.Terms
	dst = AppendOffered(append(append(dst, "\x0155="...), symbol...), t)
	dst = append(append(dst, "\x0154=1\x01152="...), t.Fill.String()...)
	dst = append(append(dst, "\x0115="...), t.Rail.String()...)
	dst = AppendUSDPrice(append(dst, "\x01133="...), t.Price)
	dst = market.AppendDecimal(append(dst, "\x01135="...), t.Base, int(q.Digits))
	return AppendTime(append(dst, "\x0162="...), q.ValidUntil)
}

// appendHead appends QuoteID without its tag, and QuoteReqID.
func (q *ClientQuote) appendHead(dst []byte) []byte {
	dst = market.AppendQuoteID(dst, q.ID)
	return append(append(dst, "\x01131="...), strings.TrimPrefix(q.Ref, QuoteReqPrefix)...)
}

// AppendBody appends the Quote (35=S) without "117=" and without the last SOH.
func (q *ClientQuote) AppendBody(dst []byte, symbol string) []byte {
	kind := "\x01537=1" // tradeable
	if q.Indicative {
		kind = "\x01537=0"
	}
	dst = append(q.appendHead(dst), kind...)
	return AppendTime(append(q.appendTerms(dst, symbol), "\x0160="...), q.IssuedAt)
}

// AppendStatus appends the QuoteStatusReport (35=AI) without "117=" and without
// the last SOH.
func (q *ClientQuote) AppendStatus(dst []byte, symbol, status string, at int64, text string) []byte {
	dst = append(q.appendTerms(q.appendHead(dst), symbol), "\x01297="...)
	dst = AppendTime(append(append(dst, status...), "\x0160="...), at)
	if text != "" {
		dst = append(append(dst, "\x0158="...), text...)
	}
	return dst
}

// AppendCancel appends the QuoteCancel (35=Z) without "117=" and without the last
// SOH.
func (q *ClientQuote) AppendCancel(dst []byte, symbol string) []byte {
	dst = append(q.appendHead(dst), "\x01298=1\x01295=1\x0155="...)
	return AppendOffered(append(dst, symbol...), &q.Terms)
}

// AppendCustomTerms appends the custom fields of the terms of a quote or a claim. mint is
// that of USDC.
func AppendCustomTerms(dst []byte, t *rfq.Terms, mint market.Address) []byte {
	dst = AppendCustomText(dst, TagFillUSD, t.Fill.String())
	dst = AppendCustomText(dst, TagRail, t.Rail.String())
	dst = appendCustomInt(dst, TagDiscountBps, int64(t.DiscountBps))
	dst = AppendUSDPrice(AppendTag(dst, TagReferencePriceUSD), t.Reference)
	dst = market.AppendDecimal(AppendTag(dst, TagPaymentAmount), t.Payment, t.Rail.Decimals())
	dst = AppendCustomCount(dst, TagPaymentAtoms, t.Payment)
	dst = AppendCustomText(dst, TagPayTo, Base58(t.PayTo[:]))
	if t.Rail == market.RailUSDC {
		dst = AppendCustomText(dst, TagPaymentMint, Base58(mint[:]))
	}
	dst = AppendCustomCount(dst, TagBaseAtoms, t.Base)
	return appendCustomInt(dst, TagFeeBps, int64(t.FeeBps))
}
