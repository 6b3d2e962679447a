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
	values := map[int]*[]byte{
		131: &r.ID, 146: &r.Groups, 55: &r.Symbol, 48: &r.Security, 22: &r.Source, 54: &r.Side,
		38: &r.Qty, 152: &r.Cash, 15: &r.Rail, 537: &r.QuoteType,
	}
	EachField(frame, func(tag int, value []byte) {
		switch to := values[tag]; {
		case to == nil:
		case *to != nil:
			r.Twice = true
		default:
			*to = value
		}
	})
	return r
}

// Content is OrderRequest.Content of a quote request.
func (r *QuoteRequest) Content() uint64 {
	h := content(0).add([]byte{'R'})
	for _, value := range [...][]byte{r.Groups, r.Symbol, r.Security, r.Source, r.Side, number(r.Qty), number(r.Cash), r.Rail, r.QuoteType} {
		h = h.add(value)
	}
	return h.sum()
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
