package wire

import (
	"time"

	"blockdesk/market"
)

// TagTradeReportID is the first field of AE and AR.
const TagTradeReportID = 571

// Values of PartyIDSource (447) and PartyRole (452): the party is the CompID that entered
// the order.
const (
	partySourceOurs    = "D"  // proprietary code
	partyEnteringTrade = "36" // entering trader
)

// AppendCaptureHead appends a TradeCaptureReport's body without "571=", up to LastQty
// (32) and LastPx (31), which follow. status is the order's OrdStatus (39) after the
// trade.
func AppendCaptureHead(dst, execID []byte, status byte, symbol string) []byte {
	dst = append(append(dst, execID...), "\x01487=0\x01856=0\x01570=N\x01150=F\x0117="...)
	dst = append(append(append(dst, execID...), "\x0139="...), status)
	return append(append(dst, "\x0155="...), symbol...)
}

// CaptureSide is the rest of a TradeCaptureReport: its time and its one side.
type CaptureSide struct {
	At      int64          // TransactTime (60), Unix nanoseconds
	Side    byte           // Side (54)
	OrderID []byte         // OrderID (37)
	QuoteID market.QuoteID // SecondaryOrderID (198); 0 = none
	ClOrdID string         // ClOrdID (11) of the order now; "" = none
	CompID  string         // of the session that entered it
	Account string         // Account (1) of the order; "" = none
}

// Append appends the fields after LastPx. Those of the group are in the dictionary's
// order.
func (c *CaptureSide) Append(dst []byte) []byte {
	dst = time.Unix(0, c.At).UTC().AppendFormat(append(dst, "\x0175="...), "20060102")
	dst = AppendTime(append(dst, "\x0160="...), c.At)
	dst = append(append(dst, "\x01552=1\x0154="...), c.Side)
	dst = append(append(dst, "\x0137="...), c.OrderID...)
	if c.QuoteID != 0 {
		dst = market.AppendQuoteID(append(dst, "\x01198="...), c.QuoteID)
	}
	if c.ClOrdID != "" {
		dst = append(append(dst, "\x0111="...), c.ClOrdID...)
	}
	dst = append(append(dst, "\x01453=1\x01448="...), c.CompID...)
	dst = append(dst, "\x01447="+partySourceOurs+"\x01452="+partyEnteringTrade...)
	if c.Account != "" {
		dst = append(append(dst, "\x011="...), c.Account...)
	}
	return dst
}
