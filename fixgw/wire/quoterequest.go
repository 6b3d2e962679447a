package wire

import (
	"strings"

	"blockdesk/market"
)

// QuoteRequest holds the raw values of an R; nil = absent. They alias the
// message.
type QuoteRequest struct {
	ID, Groups            []byte
	Symbol                []byte
	Security, Source      []byte
	Side, Qty, Cash, Rail []byte
	QuoteType             []byte
	Twice                 bool // a field of the group occurred twice
}

// ScanQuoteRequest reads the fields of frame, which has passed the dictionary. Of a group
// with several entries it keeps the first.
func ScanQuoteRequest(frame []byte) (r QuoteRequest) {
	EachField(frame, func(tag int, value []byte) {
		var field *[]byte
		switch tag {
		case 131:
			field = &r.ID
		case 146:
			field = &r.Groups
		case 55:
			field = &r.Symbol
		case 48:
			field = &r.Security
		case 22:
			field = &r.Source
		case 54:
			field = &r.Side
		case 38:
			field = &r.Qty
		case 152:
			field = &r.Cash
		case 15:
			field = &r.Rail
		case 537:
			field = &r.QuoteType
		default:
			return
		}
		if *field != nil {
			r.Twice = true
			return
		}
		*field = value
	})
	return r
}

// ParseFill reads a step of the ladder, in dollars with or without decimals.
func ParseFill(text []byte) (market.FillUSD, *Refusal) {
	if text == nil {
		return 0, Refuse(QuoteRejOther, CodeMissingField, "CashOrderQty (152)")
	}
	usd, err := market.ParseDecimal(text, market.USDDecimals)
	var steps strings.Builder
	for f := market.FillUSD(1); f <= market.FillCount; f++ {
		if err == nil && f.USD() == market.USD(usd) {
			return f, nil
		}
		steps.WriteString(" " + f.String())
	}
	return 0, Refuse(QuoteRejOther, CodeInvalidField, "CashOrderQty (152) %.40q: must be one of%s", text, steps.String())
}

// ParseRail reads Currency; absent = USDC, the first rail.
func ParseRail(text []byte) (market.Rail, *Refusal) {
	if text == nil {
		return market.RailUSDC, nil
	}
	if rail, ok := market.ParseRail(text); ok {
		return rail, nil
	}
	return 0, Refuse(QuoteRejOther, CodeInvalidField, "Currency (15) %.20q: must be %s or %s", text, market.RailUSDC, market.RailSOL)
}
