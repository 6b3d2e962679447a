package httpgw

import (
	"strconv"

	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// appendAmount appends the members name and name_atoms of an amount.
func appendAmount(dst []byte, name string, atoms uint64, decimals int) []byte {
	dst = append(append(append(dst, '"'), name...), `":"`...)
	dst = market.AppendDecimal(dst, atoms, decimals)
	dst = append(append(append(dst, `","`...), name...), `_atoms":"`...)
	dst = strconv.AppendUint(dst, atoms, 10)
	return append(dst, '"')
}

// termsWriter renders the terms of quotes and claims. Its zero decimals are for
// a pair that is not there, which no terms name.
type termsWriter struct {
	instruments *market.Instruments
	view        *rfq.View
}

// offer appends the members that say what was sold, without braces.
func (w *termsWriter) offer(dst []byte, t *rfq.Terms, label string) []byte {
	dst = append(dst, `"order_id":"`...)
	dst = market.AppendTicketID(dst, t.Ticket)
	dst = append(dst, `","tranche_id":"`...)
	dst = market.AppendTrancheID(dst, t.Ticket, t.Tranche)
	dst = append(dst, `","ticket_label":`...)
	dst = appendText(dst, label)
	dst = append(dst, `,"pair":"`...)
	dst = append(dst, w.instruments.Get(t.Instrument).Symbol...)
	dst = append(dst, `","fill_usd":"`...)
	dst = append(dst, t.Fill.String()...)
	dst = append(dst, `","rail":"`...)
	dst = append(dst, t.Rail.String()...)
	dst = append(dst, `","reference_price_usd":`...)
	dst = appendUSDPrice(dst, t.Reference)
	dst = append(dst, `,"discount_bps":`...)
	dst = strconv.AppendUint(dst, uint64(t.DiscountBps), 10)
	dst = append(dst, `,"price_usd":`...)
	dst = appendUSDPrice(dst, t.Price)
	dst = append(dst, ',')
	return appendAmount(dst, "base_amount", t.Base, w.baseDecimals(t.Instrument))
}

func (w *termsWriter) baseDecimals(in market.InstrumentID) int {
	if p := w.view.Pair(in); p != nil {
		return int(p.BaseDecimals)
	}
	return 0
}

// baseMint returns the mint of what a pair sells.
func (w *termsWriter) baseMint(in market.InstrumentID) market.Address {
	if p := w.view.Pair(in); p != nil {
		return p.BaseMint
	}
	return market.Address{}
}

// payment appends what is to be paid, with the brace that opens it and not the
// one that closes it.
func (w *termsWriter) payment(dst []byte, t *rfq.Terms) []byte {
	dst = append(dst, `{"rail":"`...)
	dst = append(dst, t.Rail.String()...)
	dst = append(dst, `","mint":`...)
	if t.Rail == market.RailUSDC {
		dst = appendAccount(dst, w.view.Policy.USDCMint)
	} else {
		dst = append(dst, "null"...)
	}
	dst = appendAmount(append(dst, ','), "amount", t.Payment, t.Rail.Decimals())
	dst = append(dst, `,"pay_to":`...)
	return appendAccount(dst, t.PayTo)
}

// fee appends the members about the fee, which is a part of the payment: its
// share, rounded down (our choice).
func (w *termsWriter) fee(dst []byte, t *rfq.Terms) []byte {
	dst = append(dst, `"fee_bps":`...)
	dst = strconv.AppendUint(dst, uint64(t.FeeBps), 10)
	dst = append(dst, `,"fee":{"included":true,`...)
	atoms, err := market.MulDivFloor(t.Payment, uint64(t.FeeBps), market.MaxBps)
	if err != nil { // a fee above the whole, which no policy has
		atoms = t.Payment
	}
	dst = appendAmount(dst, "amount", atoms, t.Rail.Decimals())
	return append(dst, '}')
}
