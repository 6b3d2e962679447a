package terms

import (
	"strconv"
	"time"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/httpgw/wire"
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

// Writer renders the terms of quotes and claims as JSON.
type Writer struct {
	instruments *market.Instruments
	View        *rfq.View
}

// Offer appends the members that describe what is sold, without braces.
func (w *Writer) Offer(dst []byte, t *rfq.Terms, label string) []byte {
	dst = append(dst, `"order_id":"`...)
	dst = market.AppendTicketID(dst, t.Ticket)
	dst = append(dst, `","tranche_id":"`...)
	dst = market.AppendTrancheID(dst, t.Ticket, t.Tranche)
	dst = append(dst, `","ticket_label":`...)
	dst = wire.AppendText(dst, label)
	dst = append(dst, `,"pair":"`...)
	dst = append(dst, w.instruments.Get(t.Instrument).Symbol...)
	dst = append(dst, `","fill_usd":"`...)
	dst = append(dst, t.Fill.String()...)
	dst = append(dst, `","rail":"`...)
	dst = append(dst, t.Rail.String()...)
	dst = append(dst, `","reference_price_usd":`...)
	dst = wire.AppendUSDPrice(dst, t.Reference)
	dst = append(dst, `,"discount_bps":`...)
	dst = strconv.AppendUint(dst, uint64(t.DiscountBps), 10)
	dst = append(dst, `,"price_usd":`...)
	dst = wire.AppendUSDPrice(dst, t.Price)
	dst = append(dst, ',')
	return appendAmount(dst, "base_amount", t.Base, int(w.pair(t.Instrument).BaseDecimals))
}

// pair returns a pair of the view. Terms name no pair that the view does not have.
func (w *Writer) pair(in market.InstrumentID) *rfq.Pair {
	if p := w.View.Pair(in); p != nil {
		return p
	}
	return &rfq.Pair{}
}

// OpenPayment appends the object of the payment that is due, without its closing brace.
func (w *Writer) OpenPayment(dst []byte, t *rfq.Terms) []byte {
	dst = append(dst, `{"rail":"`...)
	dst = append(dst, t.Rail.String()...)
	dst = append(dst, `","mint":`...)
	if t.Rail == market.RailUSDC {
		dst = wire.AppendAddress(dst, w.View.Policy.USDCMint)
	} else {
		dst = append(dst, "null"...)
	}
	dst = appendAmount(append(dst, ','), "amount", t.Payment, t.Rail.Decimals())
	dst = append(dst, `,"pay_to":`...)
	return wire.AppendAddress(dst, t.PayTo)
}

// Fee appends the members about the fee, which is part of the payment. Its amount is
// rounded down (our choice).
func (w *Writer) Fee(dst []byte, t *rfq.Terms) []byte {
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

var ways = map[rfq.SettlementMode]string{rfq.Modular: "modular", rfq.Atomic: "atomic"}

// AppendClaimHead appends the beginning of an answer about a claim.
func AppendClaimHead(dst []byte, c *rfq.Claim) []byte {
	dst = append(dst, `{"ok":true,"claim_id":"`...)
	dst = market.AppendClaimID(dst, c.ID)
	dst = append(dst, `","state":"`...)
	dst = append(dst, c.State.Word()...)
	return append(dst, '"')
}

// Claim appends the object with the terms of a claim.
func (w *Writer) Claim(dst []byte, c *rfq.Claim, label string) []byte {
	dst = append(dst, `{"way":"`...)
	dst = append(dst, ways[c.Mode]...)
	dst = append(dst, `","bot_wallet":`...)
	dst = wire.AppendAddress(dst, c.Wallet)
	dst = strconv.AppendBool(append(dst, `,"proven":`...), c.Proven)
	dst = AppendQuoteID(append(dst, `,"quote_id":`...), c.Quote)
	dst = w.Offer(append(dst, ','), &c.Terms, label)
	dst = w.Fee(append(dst, ','), &c.Terms)
	return append(wire.AppendMillis(append(dst, `,"reserved_at":`...), c.ReservedAt), '}')
}

// Sale appends the object of a sale, without what would name its client.
func (w *Writer) Sale(dst []byte, s *desk.Sale, delivery *[64]byte) []byte {
	t := &s.Claim.Terms
	dst = strconv.AppendUint(append(dst, `{"trade_id":`...), s.Number, 10)
	dst = wire.AppendUSDPrice(append(dst, `,"price_usd":`...), t.Price)
	dst = append(dst, `,"fill_usd":"`...)
	dst = append(append(dst, t.Fill.String()...), `",`...)
	dst = appendAmount(dst, "base_amount", t.Base, int(w.pair(t.Instrument).BaseDecimals))
	dst = append(dst, `,"rail":"`...)
	dst = append(append(dst, t.Rail.String()...), `",`...)
	dst = appendAmount(dst, "payment_amount", t.Payment, t.Rail.Decimals())
	dst = append(dst, `,"way":"`...)
	dst = append(append(dst, ways[s.Claim.Mode]...), '"')
	dst = strconv.AppendUint(append(dst, `,"discount_bps":`...), uint64(t.DiscountBps), 10)
	dst = strconv.AppendUint(append(dst, `,"fee_bps":`...), uint64(t.FeeBps), 10)
	dst = wire.AppendMillis(append(dst, `,"ts":`...), s.Claim.ChangedAt)
	return append(wire.AppendSignature(append(dst, `,"l1_signature":`...), delivery), '}')
}

// AppendQuoteID appends the id of the quote of a claim, or null.
func AppendQuoteID(dst []byte, id market.QuoteID) []byte {
	if id == 0 {
		return append(dst, "null"...)
	}
	return append(market.AppendQuoteID(append(dst, '"'), id), '"')
}

// BoundPayment appends the object of the payment that is due, with the reference and
// memo that bind it to its claim.
func (w *Writer) BoundPayment(dst []byte, t *rfq.Terms, pack *desk.Package) []byte {
	dst = append(w.OpenPayment(dst, t), `,"reference":`...)
	dst = append(wire.AppendAddress(dst, pack.Reference), `,"memo":`...)
	return append(wire.AppendText(dst, pack.Memo), '}')
}

// Delivery appends the object of a claim's delivery, with the signature of its
// transaction.
func (w *Writer) Delivery(dst []byte, c *rfq.Claim, signature *[64]byte) []byte {
	return append(wire.AppendSignature(append(w.OpenDelivery(dst, c), `,"l1_signature":`...), signature), '}')
}

// OpenDelivery appends the object of a claim's delivery, without its closing brace.
func (w *Writer) OpenDelivery(dst []byte, c *rfq.Claim) []byte {
	dst = append(wire.AppendAddress(append(dst, `{"to":`...), c.Wallet), `,"mint":`...)
	p := w.pair(c.Terms.Instrument)
	dst = append(wire.AppendAddress(dst, p.BaseMint), ',')
	return appendAmount(dst, "amount", c.Terms.Base, int(p.BaseDecimals))
}

// AppendBlockhash appends the members that bound the life of a transaction. A node accepts it
// at once if it checks transactions at preflight_commitment.
func AppendBlockhash(dst []byte, pack *desk.Package) []byte {
	dst = append(dst, `,"recent_blockhash":"`...)
	dst = append(dst, base58.Encode(pack.Blockhash[:])...)
	dst = strconv.AppendUint(append(dst, `","last_valid_block_height":`...), pack.LastValid, 10)
	return append(dst, `,"preflight_commitment":"`+desk.BlockhashCommitment+`"`...)
}

// paymentStates are the JSON words of payment states (our choice).
var paymentStates = map[rfq.PaymentState]string{
	rfq.PaymentApplied: "applied", rfq.PaymentRefundDue: "refund_due", rfq.PaymentRefunding: "refunding",
	rfq.PaymentRefunded: "refunded",
}

// AppendPayment appends the object of a payment.
func AppendPayment(dst []byte, p *rfq.Payment) []byte {
	dst = wire.AppendSignature(append(dst, `{"l1_signature":`...), &p.Signature)
	dst = append(dst, `,"state":"`...)
	dst = append(dst, paymentStates[p.State]...)
	dst = append(dst, `","reason":`...)
	if p.Reason != event.ReasonNone {
		dst = append(append(append(dst, '"'), p.Reason.String()...), '"')
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"rail":"`...)
	dst = append(dst, p.Rail.String()...)
	dst = appendAmount(append(dst, `",`...), "amount", p.Amount, p.Rail.Decimals())
	dst = appendAmount(append(dst, ','), "applied_amount", p.AppliedAtoms(), p.Rail.Decimals())
	dst = appendAmount(append(dst, ','), "refund_amount", p.RefundAtoms(), p.Rail.Decimals())
	dst = append(dst, `,"payer":`...)
	dst = append(wire.AppendAddress(dst, p.Payer), `,"slot":`...)
	dst = strconv.AppendUint(dst, p.Slot, 10)
	dst = wire.AppendMillis(append(dst, `,"block_time":`...), p.BlockTime*int64(time.Second))
	return append(wire.AppendMillis(append(dst, `,"at":`...), p.At), '}')
}

// TicketStates are the JSON words of ticket states.
var TicketStates = [...]string{
	rfq.TicketOpen: "open", rfq.TicketExhausted: "exhausted",
	rfq.TicketWithdrawn: "withdrawn", rfq.TicketExpired: "expired",
}

// SourceWords are the JSON words of the source of a pair's price.
var SourceWords = map[rfq.PriceSource]string{rfq.SourceOperator: "operator", rfq.SourceBook: "book"}
