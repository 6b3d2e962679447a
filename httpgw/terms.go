package httpgw

import (
	"strconv"

	"blockdesk/desk"
	"blockdesk/engine/event"
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

// claimStates are the wire words (contract, section D).
var claimStates = map[rfq.ClaimState]string{
	rfq.ClaimReserved: "reserved", rfq.ClaimPaid: "paid", rfq.ClaimDelivering: "delivering",
	rfq.ClaimSettled: "settled", rfq.ClaimExpired: "expired", rfq.ClaimCosigned: "cosigned",
	rfq.ClaimReleased: "released", rfq.ClaimRefundDue: "refund_due",
}

var ways = map[rfq.Way]string{rfq.Modular: "modular", rfq.Atomic: "atomic"}

// claimHead appends what an answer about a claim begins with.
func claimHead(dst []byte, c *rfq.Claim) []byte {
	dst = append(dst, `{"ok":true,"claim_id":"`...)
	dst = market.AppendClaimID(dst, c.ID)
	dst = append(dst, `","state":"`...)
	dst = append(dst, claimStates[c.State]...)
	return append(dst, '"')
}

// claim appends the object with the terms of a claim.
func (w *termsWriter) claim(dst []byte, c *rfq.Claim, label string) []byte {
	dst = append(dst, `{"way":"`...)
	dst = append(dst, ways[c.Way]...)
	dst = append(dst, `","bot_wallet":`...)
	dst = appendAccount(dst, c.Wallet)
	dst = appendQuoteID(append(dst, `,"quote_id":`...), c.Quote)
	dst = w.offer(append(dst, ','), &c.Terms, label)
	dst = w.fee(append(dst, ','), &c.Terms)
	return append(appendMillis(append(dst, `,"reserved_at":`...), c.ReservedAt), '}')
}

// appendQuoteID appends the quote that gave a claim its price, or null.
func appendQuoteID(dst []byte, id market.QuoteID) []byte {
	if id == 0 {
		return append(dst, "null"...)
	}
	return append(market.AppendQuoteID(append(dst, '"'), id), '"')
}

// boundPayment appends the object of what is to be paid, with what binds it to
// its claim.
func (w *termsWriter) boundPayment(dst []byte, t *rfq.Terms, pack *desk.Package) []byte {
	dst = append(w.payment(dst, t), `,"reference":`...)
	dst = append(appendAccount(dst, pack.Reference), `,"memo":`...)
	return append(appendText(dst, pack.Memo), '}')
}

// delivery appends the object of what a claim brings its wallet, and by which
// transaction.
func (w *termsWriter) delivery(dst []byte, c *rfq.Claim, signature *[64]byte) []byte {
	return append(appendSignature(append(w.delivered(dst, c), `,"l1_signature":`...), signature), '}')
}

// delivered appends what a claim brings its wallet, with the brace that opens
// it and not the one that closes it.
func (w *termsWriter) delivered(dst []byte, c *rfq.Claim) []byte {
	dst = append(appendAccount(append(dst, `{"to":`...), c.Wallet), `,"mint":`...)
	dst = append(appendAccount(dst, w.baseMint(c.Terms.Instrument)), ',')
	return appendAmount(dst, "amount", c.Terms.Base, w.baseDecimals(c.Terms.Instrument))
}

// paymentStates are the wire words (our choice).
var paymentStates = map[rfq.PaymentState]string{
	rfq.PaymentApplied: "applied", rfq.PaymentRefundDue: "refund_due", rfq.PaymentRefunded: "refunded",
}

// appendPayment appends the object of a payment.
func appendPayment(dst []byte, p *rfq.Payment) []byte {
	dst = appendSignature(append(dst, `{"l1_signature":`...), &p.Signature)
	dst = append(dst, `,"state":"`...)
	dst = append(dst, paymentStates[p.State]...)
	dst = append(dst, `","reason":`...)
	if p.Why != event.ReasonNone {
		dst = append(append(append(dst, '"'), p.Why.String()...), '"')
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"rail":"`...)
	dst = append(dst, p.Rail.String()...)
	dst = appendAmount(append(dst, `",`...), "amount", p.Amount, p.Rail.Decimals())
	dst = append(dst, `,"payer":`...)
	dst = append(appendAccount(dst, p.Payer), `,"slot":`...)
	dst = strconv.AppendUint(dst, p.Slot, 10)
	return append(appendMillis(append(dst, `,"at":`...), p.At), '}')
}

var ticketStates = [...]string{
	rfq.TicketOpen: "open", rfq.TicketExhausted: "exhausted",
	rfq.TicketWithdrawn: "withdrawn", rfq.TicketExpired: "expired",
}

var sourceWords = map[rfq.PriceSource]string{rfq.SourceOperator: "operator", rfq.SourceBook: "book"}
