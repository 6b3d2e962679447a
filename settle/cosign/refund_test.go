package cosign

import (
	"errors"
	"fmt"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/build"
	"blockdesk/internal/solana/tx"
	"blockdesk/market"
	"blockdesk/settle/binding"
)

// paymentOf is the signature of a payment to pay back.
func paymentOf(n byte) solana.Signature { return solana.Signature{n, n, n, n, n, n, n, n, 63: 0xee} }

// refundsOf are refunds of n payments of the taker.
func refundsOf(t testing.TB, rail market.Rail, n int) *build.Refunds {
	t.Helper()
	r := &build.Refunds{Blockhash: solana.Hash{5, 5}, Budget: build.Budget{Units: 300_000, MicroLamports: 1000}, Desk: deskAddress}
	for i := range n {
		leg := build.Leg{Rail: rail, Amount: market.Amount(1000 + i), To: takerAddress}
		if rail == market.RailUSDC {
			leg.Mint = checkedMint(t, 6, solana.TokenProgram, 6)
		}
		payment := paymentOf(byte(i + 1))
		r.Items = append(r.Items, build.Refund{Leg: leg, Memo: binding.RefundMemo(payment), Reference: binding.RefundReference(payment)})
	}
	return r
}

// owing is a desk that owes the taker 1000 atoms and more over a rail. spoil changes what
// it answers.
type owing struct {
	rail  market.Rail
	spoil func(result *desk.Result)
	asked []*rfq.BeginRefund
}

func (o *owing) Do(r rfq.Request) (*desk.Result, error) {
	begin := r.(*rfq.BeginRefund)
	o.asked = append(o.asked, begin)
	result := &desk.Result{Outcome: rfq.Outcome{Kind: r.Kind()}, Payment: &rfq.Payment{
		Signature: begin.Signature, State: rfq.PaymentRefunding, Rail: o.rail, Due: 999 + uint64(begin.Signature[0]), Payer: takerAddress, Proof: begin.Proof,
	}}
	if o.spoil != nil {
		o.spoil(result)
	}
	return result, nil
}

// TestRefunds: as many refunds as fit are built, read, allowed one by one, and signed.
func TestRefunds(t *testing.T) {
	for _, rail := range []market.Rail{market.RailUSDC, market.RailSOL} {
		for n := 1; n <= build.MaxRefunds; n++ {
			t.Run(fmt.Sprintf("%s %d", rail, n), func(t *testing.T) {
				u := built(t, refundsOf(t, rail, n))
				s, err := CheckRefund(u.Message(), deskAddress)
				if err != nil || len(s.Items) != n || s.Desk != deskAddress {
					t.Fatalf("%+v, %v", s, err)
				}
				total, ok := s.Total()
				if want := market.Amount(1000*n + n*(n-1)/2); !ok || total != want {
					t.Errorf("in all %d, want %d", total, want)
				}
				d := &owing{rail: rail}
				a, err := AuthorizeRefund(d, 7, u.Bytes(), usdcMint)
				if err != nil || a.Hash() != u.Hash() || len(d.asked) != n {
					t.Fatalf("%d asked: %v", len(d.asked), err)
				}
				for i, r := range d.asked {
					if r.Operator != 7 || r.Proof != u.Hash() || solana.Signature(r.Signature) != paymentOf(byte(i+1)) {
						t.Errorf("asked %+v", r)
					}
				}
				x, err := a.Sign(testContext(t), deskSigner())
				if err != nil || x.Hash() != u.Hash() || x.Signature() == (solana.Signature{}) {
					t.Fatal(err)
				}
				signed, err := tx.Decode(x.Bytes())
				if err != nil || signed.Signatures[0] != x.Signature() {
					t.Errorf("%v", err)
				}
			})
		}
	}
	if _, err := refundsOf(t, market.RailSOL, build.MaxRefunds+1).Build(&solana.AccountCache{}); !errors.Is(err, build.ErrTerms) {
		t.Errorf("one more: %v", err)
	}
}

// TestRefundIsWhatIsDue: nothing is signed unless the desk's record of each payment has
// the same payer, amount, asset and message.
func TestRefundIsWhatIsDue(t *testing.T) {
	u := built(t, refundsOf(t, market.RailUSDC, 2))
	for name, c := range map[string]struct {
		spoil func(result *desk.Result)
		want  error
	}{
		"other payer":   {func(r *desk.Result) { r.Payment.Payer = otherAddress }, ErrRefundTerms},
		"unknown payer": {func(r *desk.Result) { r.Payment.Payer = solana.Address{} }, ErrRefundTerms},
		"less":          {func(r *desk.Result) { r.Payment.Due-- }, ErrRefundTerms},
		"more":          {func(r *desk.Result) { r.Payment.Due++ }, ErrRefundTerms},
		"other rail":    {func(r *desk.Result) { r.Payment.Rail = market.RailSOL }, ErrRefundTerms},
		"not begun":     {func(r *desk.Result) { r.Payment.State = rfq.PaymentRefundDue }, ErrOutcome},
		"other message": {func(r *desk.Result) { r.Payment.Proof[0]++ }, ErrOutcome},
		"other payment": {func(r *desk.Result) { r.Payment.Signature[0]++ }, ErrOutcome},
		"no record":     {func(r *desk.Result) { r.Payment = nil }, ErrOutcome},
		"other request": {func(r *desk.Result) { r.Kind = rfq.KindRefundPayment }, ErrOutcome},
	} {
		if a, err := AuthorizeRefund(&owing{rail: market.RailUSDC, spoil: c.spoil}, 7, u.Bytes(), usdcMint); !errors.Is(err, c.want) || a != (AuthorizedRefund{}) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := AuthorizeRefund(&owing{rail: market.RailUSDC}, 7, u.Bytes(), solana.Address{9}); !errors.Is(err, ErrRefundTerms) {
		t.Errorf("other mint: %v", err)
	}
	refusing := &owing{rail: market.RailUSDC, spoil: func(r *desk.Result) { r.Reason = event.ReasonPaymentUsed }}
	var refused *RefundRefused
	if _, err := AuthorizeRefund(refusing, 7, u.Bytes(), usdcMint); !errors.As(err, &refused) || refused.Payment != paymentOf(1) || len(refusing.asked) != 1 {
		t.Errorf("refused: %v", err)
	}
}

// TestRefundShapeRefuses: one change, and the key does not sign it as refunds.
func TestRefundShapeRefuses(t *testing.T) {
	other := binding.RefundReference(paymentOf(9))
	for _, rail := range []market.Rail{market.RailUSDC, market.RailSOL} {
		for name, spoil := range map[string]func(e *edit){
			"other reference": func(e *edit) { e.replace(binding.RefundReference(paymentOf(1)), other) },
			"other memo":      func(e *edit) { e.at(3).Data = []byte(binding.RefundMemo(paymentOf(9))) },
			"claim's memo":    func(e *edit) { e.at(3).Data = []byte(binding.Memo(testClaim)) },
			"long memo":       func(e *edit) { e.at(3).Data = append(e.at(3).Data, ' ') },
			"no memo":         func(e *edit) { e.Instructions = e.Instructions[:5] },
			"memo alone":      func(e *edit) { e.Instructions = append(e.Instructions[:2:2], e.Instructions[3:]...) },
			"same twice":      func(e *edit) { e.Instructions = append(e.Instructions, e.Instructions[2], e.Instructions[3]) },
			"nothing":         func(e *edit) { e.Instructions = e.Instructions[:2] },
			"no budget":       func(e *edit) { e.Instructions = e.Instructions[1:] },
			"amount zero": func(e *edit) {
				at := 1
				if rail == market.RailSOL {
					at = 4
				}
				e.setAmount(2, at, 0)
			},
			"another program": func(e *edit) { e.call(solana.SystemProgram, lamportsData(1), 0, 0, 0) },
		} {
			u := built(t, refundsOf(t, rail, 2))
			m, err := tx.DecodeMessage(u.Message())
			if err != nil {
				t.Fatal(err)
			}
			e := &edit{Message: cloneMessage(m), t: t}
			spoil(e)
			if s, err := CheckRefund(encoded(t, e.Message), deskAddress); !errors.Is(err, ErrShape) || len(s.Items) != 0 {
				t.Errorf("%s %s: %v", rail, name, err)
			}
		}
	}
	u := built(t, refundsOf(t, market.RailUSDC, 1))
	for i := range 8 * len(u.Message()) {
		message := append([]byte(nil), u.Message()...)
		message[i/8] ^= 1 << (i % 8)
		s, err := CheckRefund(message, deskAddress)
		if err == nil && len(s.Items) == 1 && s.Items[0].Amount == 1000 && s.Mint == usdcMint && !harmlessBit(message, u.Message()) {
			t.Errorf("bit %d: %+v", i, s)
		}
	}
	if _, err := CheckRefund(built(t, refundsOf(t, market.RailSOL, 1)).Message(), otherAddress); !errors.Is(err, ErrShape) {
		t.Errorf("another desk: %v", err)
	}
	del, at := deliveryOf(t, testClaim), atomicOf(t, testClaim)
	for _, b := range []builder{&del, &at} {
		if _, err := CheckRefund(built(t, b).Message(), deskAddress); !errors.Is(err, ErrShape) {
			t.Errorf("%T is a refund: %v", b, err)
		}
	}
	for _, check := range []func([]byte, solana.Address) (Summary, error){CheckAtomic, CheckDelivery} {
		if _, err := check(u.Message(), deskAddress); !errors.Is(err, ErrShape) {
			t.Errorf("a refund is something else: %v", err)
		}
	}
}

// harmlessBit reports whether two messages differ only in the blockhash or the budget,
// which any value may have, in the account that gets the refund, which the desk's
// record decides, or in the decimals, which the chain checks.
func harmlessBit(a, b []byte) bool {
	ma, erra := tx.DecodeMessage(a)
	mb, errb := tx.DecodeMessage(b)
	if erra != nil || errb != nil {
		return false
	}
	to := mb.Instructions[2].Accounts[2]
	if data := ma.Instructions[2].Data; len(data) == transferSize {
		data[transferSize-1] = mb.Instructions[2].Data[transferSize-1]
	}
	ma.Blockhash, ma.Instructions[0].Data, ma.Instructions[1].Data, ma.Keys[to] = mb.Blockhash, mb.Instructions[0].Data, mb.Instructions[1].Data, mb.Keys[to]
	x, errx := ma.Append(nil)
	return errx == nil && string(x) == string(b)
}
