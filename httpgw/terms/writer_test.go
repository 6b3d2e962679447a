package terms

import (
	"strings"
	"testing"

	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/market"
)

// TestPayment: a payment shows what pays its claim, what is paid back and why, also one that
// was recorded before payments had these figures.
func TestPayment(t *testing.T) {
	for name, c := range map[string]struct {
		payment rfq.Payment
		want    string
	}{
		"applied": {
			rfq.Payment{State: rfq.PaymentApplied, Amount: 7_000_000, Applied: 7_000_000, BlockTime: 1_795_262_400},
			`"state":"applied","reason":null,"rail":"USDC","amount":"7.000000","amount_atoms":"7000000","applied_amount":"7.000000",` +
				`"applied_amount_atoms":"7000000","refund_amount":"0.000000","refund_amount_atoms":"0","payer":null,"slot":0,"block_time":"2026-11-21T12:00:00.000Z"`,
		},
		"surplus": {
			rfq.Payment{State: rfq.PaymentRefundDue, Reason: event.ReasonSurplus, Amount: 7_000_000, Applied: 5_000_000, Due: 2_000_000},
			`"state":"refund_due","reason":"surplus","rail":"USDC","amount":"7.000000","amount_atoms":"7000000","applied_amount":"5.000000",` +
				`"applied_amount_atoms":"5000000","refund_amount":"2.000000","refund_amount_atoms":"2000000"`,
		},
		"refunding": {
			rfq.Payment{State: rfq.PaymentRefunding, Reason: event.ReasonPriceCorridor, Amount: 7_000_000, Due: 7_000_000},
			`"state":"refunding","reason":"price_corridor","rail":"USDC","amount":"7.000000","amount_atoms":"7000000","applied_amount":"0.000000",` +
				`"applied_amount_atoms":"0","refund_amount":"7.000000","refund_amount_atoms":"7000000"`,
		},
		"of 0.1.0, refunded": {
			rfq.Payment{State: rfq.PaymentRefunded, Reason: event.ReasonLatePayment, Amount: 7_000_000},
			`"state":"refunded","reason":"late_payment","rail":"USDC","amount":"7.000000","amount_atoms":"7000000","applied_amount":"0.000000",` +
				`"applied_amount_atoms":"0","refund_amount":"7.000000","refund_amount_atoms":"7000000","payer":null,"slot":0,"block_time":null`,
		},
	} {
		c.payment.Rail = market.RailUSDC
		if got := string(AppendPayment(nil, &c.payment)); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for s := rfq.PaymentApplied; s <= rfq.PaymentRefunding; s++ {
		if paymentStates[s] == "" {
			t.Errorf("payment state %d has no word", s)
		}
	}
}
