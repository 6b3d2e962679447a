package wire

import (
	"strconv"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// ClientClaim is a claim as its client sees it: the desk's newest record of it, and the
// last report.
//
//	desk's state      OrdStatus (39)      reported by ExecType (150)
//	reserved          A pending new       A
//	paid, delivering  0 new               0 once
//	settled           2 filled            F
//	expired           C expired           C
//	refund_due        4 cancelled         4
//
// Only a late payment changes expired, to paid or refund_due; settled and refund_due are
// final. The desk's other states belong to claims that FIX does not make.
type ClientClaim struct {
	rfq.Claim
	Ref    string // the ClOrdID that it was taken under, or QuoteRespPrefix and a QuoteRespID
	Digits uint8  // decimals of the base asset
	Status byte   // OrdStatus (39)
	// Refund is the newest payment that was reported as due for refund; At = 0: none
	// was.
	Refund Refund
}

// Refund is a payment, and when it was booked.
type Refund struct {
	Signature [64]byte
	At        int64
}

// ExecType (150) and OrdStatus (39) of a claim that waits for its payment.
const (
	ExecPendingNew   byte = 'A'
	StatusPendingNew byte = 'A'
)

// ClaimStatus returns the OrdStatus of a claim in a state.
func ClaimStatus(s rfq.ClaimState) byte {
	switch s {
	case rfq.ClaimReserved:
		return StatusPendingNew
	case rfq.ClaimPaid, rfq.ClaimDelivering, rfq.ClaimCosigned:
		return StatusNew
	case rfq.ClaimSettled:
		return StatusFilled
	case rfq.ClaimExpired:
		return StatusExpired
	}
	return StatusCancelled
}

// ClaimExec returns the ExecType that reports a new status.
func ClaimExec(status byte) byte {
	if status == StatusFilled {
		return ExecTrade
	}
	return status // the same characters in FIX
}

// ClaimReport is one ExecutionReport (35=8) of a claim.
type ClaimReport struct {
	Claim    *ClientClaim // Deadline 0: not reserved yet
	Symbol   string
	ExecID   []byte
	ExecType byte
	At       int64 // TransactTime, Unix nanoseconds
	Text     []byte
}

// AppendBody appends the report's body without "37=" and without the last SOH. Price is
// dollars for a whole unit of the base asset; quantities are such units.
func (r *ClaimReport) AppendBody(dst []byte) []byte {
	c := r.Claim
	t := &c.Terms
	dst = market.AppendClaimID(dst, c.ID)
	dst = appendRef(dst, c.Ref)
	if c.Quote != 0 {
		dst = market.AppendQuoteID(append(dst, "\x01198="...), c.Quote)
	}
	dst = append(append(dst, "\x0117="...), r.ExecID...)
	dst = append(append(dst, "\x01150="...), r.ExecType)
	dst = append(append(dst, "\x0139="...), c.Status)
	dst = AppendOffered(append(append(dst, "\x0155="...), r.Symbol...), t)
	dst = append(dst, "\x0154=1\x0140=D\x0138="...)
	dst = market.AppendDecimal(dst, t.Base, int(c.Digits))
	dst = append(append(dst, "\x01152="...), t.Fill.String()...)
	dst = AppendUSDPrice(append(dst, "\x0144="...), t.Price)
	dst = append(append(dst, "\x0115="...), t.Rail.String()...)
	if c.Deadline != 0 {
		dst = AppendTime(append(dst, "\x01126="...), c.Deadline)
	}
	if r.ExecType == ExecTrade {
		dst = market.AppendDecimal(append(dst, "\x0132="...), t.Base, int(c.Digits))
		dst = AppendUSDPrice(append(dst, "\x0131="...), t.Price)
	}
	var leaves, filled uint64
	switch {
	case c.Status == StatusFilled:
		filled = t.Base
	case c.State.Live():
		leaves = t.Base
	}
	dst = market.AppendDecimal(append(dst, "\x01151="...), leaves, int(c.Digits))
	dst = market.AppendDecimal(append(dst, "\x0114="...), filled, int(c.Digits))
	dst = append(dst, "\x016="...)
	if filled != 0 {
		dst = AppendUSDPrice(dst, t.Price)
	} else {
		dst = append(dst, '0')
	}
	dst = AppendTime(append(dst, "\x0160="...), r.At)
	if len(r.Text) > 0 {
		dst = append(append(dst, "\x0158="...), r.Text...)
	}
	return dst
}

// ClaimText appends the Text (58) of the report of c's status.
func ClaimText(dst []byte, c *ClientClaim, late bool, why event.Reason) []byte {
	switch c.Status {
	case StatusPendingNew:
		return append(dst, "AWAIT_PAYMENT"...)
	case StatusNew:
		if late {
			return append(dst, "PAID: late, and honoured"...)
		}
		return append(dst, "PAID"...)
	case StatusFilled:
		return append(dst, "SETTLED"...)
	case StatusExpired:
		return append(dst, CodeClaimExpired+": not paid by its deadline"...)
	}
	return AppendRefundText(dst, why)
}

// AppendRefundText appends the Text (58) for money that is due for refund.
func AppendRefundText(dst []byte, why event.Reason) []byte {
	dst = append(dst, "REFUND_DUE"...)
	if why != event.ReasonNone {
		dst = append(append(dst, ": "...), why.String()...)
	}
	return dst
}

// Over reports whether the claim has ended; only a late payment can still change it.
func (c *ClientClaim) Over() bool { return !c.State.Live() }

// AppendQuoteReject appends a QuoteRequestReject (35=AG) without "131=" and
// without the last SOH.
func AppendQuoteReject(dst []byte, id, symbol string, reason int, text []byte) []byte {
	dst = strconv.AppendInt(append(append(dst, id...), "\x01658="...), int64(reason), 10)
	dst = append(append(dst, "\x01146=1\x0155="...), symbol...)
	return append(append(dst, "\x0158="...), text...)
}

// AppendClaimReject appends the ExecutionReport (35=8) of a refused claim, without "37="
// and without the last SOH.
func AppendClaimReject(dst []byte, key string, execID []byte, symbol string, reason int, at int64, text []byte) []byte {
	dst = appendRef(append(dst, "NONE"...), key)
	dst = append(append(dst, "\x0117="...), execID...)
	dst = append(dst, "\x01150=8\x0139=8"...)
	if symbol != "" { // FIX has no empty fields
		dst = append(append(dst, "\x0155="...), symbol...)
	}
	dst = AppendTime(append(dst, "\x0154=1\x0140=D\x01151=0\x0114=0\x016=0\x0160="...), at)
	dst = append(append(dst, "\x0158="...), text...)
	return strconv.AppendInt(append(dst, "\x01103="...), int64(reason), 10)
}
