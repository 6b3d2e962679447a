package wire

import (
	"cmp"
	"strconv"

	"blockdesk/market"
)

// MaxTradeReportID is the longest TradeReportID (571), in bytes.
const MaxTradeReportID = 64

// Codes of the answers to reports of payments.
const (
	CodePaymentMismatch = "PAYMENT_MISMATCH"
	CodePaymentUsed     = "PAYMENT_ALREADY_USED"
	CodePendingTimeout  = "PENDING_TIMEOUT" // our choice
)

// Values of TradeReportRejectReason (751).
const (
	TradeRejUnknownInstrument = 2
	tradeRejNotAuthorized     = 3
	TradeRejOther             = 99
)

// PaymentAck is one TradeCaptureReportAck (35=AR).
type PaymentAck struct {
	ID, Claim, Signature, Symbol string   // as the client has sent them
	Refusal                      *Refusal // nil = accepted
	At                           int64    // Unix nanoseconds
}

// maxEcho is how many bytes of a client's value an answer repeats.
const maxEcho = 100

// AppendBody appends the answer without "571=" and without the last SOH.
func (a *PaymentAck) AppendBody(dst []byte) []byte {
	echo := func(head, value string) {
		if value != "" {
			dst = AppendText(append(dst, head...), value[:min(len(value), maxEcho)])
		}
	}
	echo("", a.ID)
	echo("\x01572=", a.Claim)
	echo("\x01818=", a.Signature)
	echo("\x0155=", cmp.Or(a.Symbol, NoSymbol))
	dst = AppendTime(append(dst, "\x01150=F\x0160="...), a.At)
	if a.Refusal == nil {
		return append(dst, "\x01939=0"...)
	}
	dst = strconv.AppendInt(append(dst, "\x01939=1\x01751="...), int64(a.Refusal.Reason), 10)
	return AppendText(append(dst, "\x0158="...), a.Refusal.Text)
}

// UnknownClaim is the one answer to a claim that does not exist, and to another
// participant's.
func UnknownClaim() *Refusal {
	return Refuse(tradeRejNotAuthorized, codeUnknownClaim, "TradeReportRefID (572): unknown claim")
}

// PaymentReport holds the raw values of an AE that has passed the dictionary; nil =
// absent. They alias the message.
type PaymentReport struct {
	ID, Claim, Signature            []byte // 571 572 818
	Symbol, qty, price              []byte // 55 32 31
	transType, reportType, execType []byte // 487 856 150
	sides, side, orderID            []byte // 552 54 37
}

// ScanPaymentReport reads the fields of frame. Of a field that occurs in several sides,
// the first counts; CheckForm requires one side.
func ScanPaymentReport(frame []byte) (r PaymentReport) {
	values := map[int]*[]byte{
		571: &r.ID, 572: &r.Claim, 818: &r.Signature, 55: &r.Symbol, 32: &r.qty, 31: &r.price,
		487: &r.transType, 856: &r.reportType, 150: &r.execType, 552: &r.sides, 54: &r.side, 37: &r.orderID,
	}
	EachField(frame, func(tag int, value []byte) {
		if to := values[tag]; to != nil && *to == nil {
			*to = value
		}
	})
	return r
}

// CheckForm checks the fields that do not depend on the claim.
func (r *PaymentReport) CheckForm() *Refusal {
	switch {
	case len(r.ID) > MaxTradeReportID || !printable(r.ID):
		return Refuse(TradeRejOther, CodeInvalidField, "TradeReportID (571): must be 1 to %d printable ASCII characters", MaxTradeReportID)
	case r.Claim == nil:
		return Refuse(TradeRejOther, CodeMissingField, "TradeReportRefID (572): the claim's id")
	case r.Signature == nil:
		return Refuse(TradeRejOther, CodeMissingField, "SecondaryTradeReportID (818): the payment's signature")
	case r.Symbol == nil:
		return Refuse(TradeRejOther, CodeMissingField, "Symbol (55)")
	case r.transType != nil && string(r.transType) != "0":
		return Refuse(TradeRejOther, CodeUnsupported, "TradeReportTransType (487) %.20q: only 0 (new)", r.transType)
	case r.reportType != nil && string(r.reportType) != "0":
		return Refuse(TradeRejOther, CodeUnsupported, "TradeReportType (856) %.20q: only 0 (submit)", r.reportType)
	case r.execType != nil && string(r.execType) != "F":
		return Refuse(TradeRejOther, CodeUnsupported, "ExecType (150) %.20q: only F (trade)", r.execType)
	case string(r.sides) != "1":
		return Refuse(TradeRejOther, CodeInvalidField, "NoSides (552) %.20q: must be 1", r.sides)
	}
	return nil
}

// termsMismatch is REST's reason for a proof that names the right claim with other terms.
const termsMismatch = "terms_mismatch"

// CheckTerms compares the report's terms with the claim's.
func (r *PaymentReport) CheckTerms(c *ClientClaim, set *market.Instruments) *Refusal {
	qty, badQty := market.ParseDecimal(r.qty, int(c.Digits))
	price, badPrice := market.ParseDecimal(r.price, market.USDPriceDecimals)
	in := set.Get(c.Terms.Instrument)
	var field string
	switch {
	case in == nil || string(r.Symbol) != in.Symbol:
		field = "Symbol (55)"
	case badQty != nil || qty != c.Terms.Base:
		field = "LastQty (32)"
	case badPrice != nil || market.USDPrice(price) != c.Terms.Price:
		field = "LastPx (31)"
	case string(r.side) != "1":
		field = "Side (54)"
	case string(r.orderID) != string(r.Claim):
		field = "OrderID (37)"
	default:
		return nil
	}
	return Refuse(TradeRejOther, CodePaymentMismatch, termsMismatch+": %s is not the claim's", field)
}
