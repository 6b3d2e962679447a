package proof

import (
	"errors"
	"testing"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/engine/rfq"
	"blockdesk/internal/solana"
	"blockdesk/internal/solana/payment"
	"blockdesk/internal/solana/token"
	"blockdesk/market"
)

// minAttacks is how many named cases the suite must have.
const minAttacks = 200

// want is the result of a case: the verdict, what the desk has booked, and what is
// stored as unmatched. Nothing else may have come.
type want struct {
	verdict     verdictWord
	word        string // of a mismatch
	state       rfq.PaymentState
	why         event.Reason
	rail        market.Rail
	amount      uint64
	unmatchedAs string // reason, "" for none
	unmatchedOn market.Rail
	strayed     uint64
	unnamed     bool // the unmatched payment names no claim
	err         error
	claim       rfq.ClaimState // at the end; 0: reserved, or paid where it is verified
	unbooked    bool           // money moved that is ours to ignore: the sums are not compared
}

// verdictWord is a Verdict without its details.
type verdictWord event.Reason

const (
	verified verdictWord = verdictWord(event.ReasonNone)
	pending  verdictWord = 0xffff
	mismatch verdictWord = verdictWord(event.ReasonPaymentMismatch)
	used     verdictWord = verdictWord(event.ReasonPaymentUsed)
	unknown  verdictWord = verdictWord(event.ReasonUnknownClaim)
	state    verdictWord = verdictWord(event.ReasonClaimState)
	late     verdictWord = verdictWord(event.ReasonLatePayment)
	full     verdictWord = verdictWord(event.ReasonDeskFull)
)

func wordOf(v *desk.Verdict) verdictWord {
	if v.Pending > 0 {
		return pending
	}
	return verdictWord(v.Refused)
}

// attack is a case: a payment of the payer's claim on a rail, made somehow.
type attack struct {
	name string
	rail market.Rail
	// wallet takes the claim; nil: the payer's.
	wallet func(s *stage) solana.Address
	// attack makes the transaction and returns what the client sends in.
	attack func(s *stage, c *rfq.Claim) solana.Signature
	want   want
}

// due is what a claim owes.
func due(c *rfq.Claim) uint64 { return c.Terms.Payment }

// The amounts of every claim here: 250 dollars in USDC atoms, and in lamports at
// 250 dollars a SOL.
const (
	dueUSDC = 250_000_000
	dueSOL  = 1_000_000_000
)

func paid(amount uint64) want {
	rail := market.RailUSDC
	if amount >= dueSOL {
		rail = market.RailSOL
	}
	return want{state: rfq.PaymentApplied, rail: rail, amount: amount}
}

// refused is a mismatch that brought us nothing.
func refused(why payment.Reason) want { return want{verdict: mismatch, word: string(why)} }

// refund is money that the desk books and owes back.
func refund(v verdictWord, word payment.Reason, why event.Reason, rail market.Rail, amount uint64) want {
	return want{verdict: v, word: string(word), state: rfq.PaymentRefundDue, why: why, rail: rail, amount: amount}
}

// short is less than is due, on the claim's rail.
func short(rail market.Rail, amount uint64) want {
	return refund(mismatch, payment.AmountShort, event.ReasonPaymentMismatch, rail, amount)
}

// otherRail is money on the rail that is not the claim's.
func otherRail(rail market.Rail, amount uint64) want {
	return refund(mismatch, payment.WrongMint, event.ReasonPaymentMismatch, rail, amount)
}

// unmatchedFor is a mismatch that is stored as unmatched, for a person.
func unmatchedFor(why payment.Reason, rail market.Rail, amount uint64) want {
	return want{verdict: mismatch, word: string(why), unmatchedAs: string(why), unmatchedOn: rail, strayed: amount}
}

// nameless is unmatchedFor without a claim.
func nameless(why payment.Reason, rail market.Rail, amount uint64) want {
	w := unmatchedFor(why, rail, amount)
	w.unnamed = true
	return w
}

// TestAttacks executes every case on a real runtime, foreign programs and transfer
// hooks included, and compares the desk and the unmatched payments with the case and
// with our accounts. TestLies has what the runtime cannot be made to do (an answer
// that is wrong, incomplete, late or of something else); other tests with a fake node
// have what needs a history, a clock or a desk of its own (pages, restarts, a full
// desk).
func TestAttacks(t *testing.T) {
	c := startChain(t)
	s := c.stage(nil, c.options(c.checked))
	names := map[string]bool{}
	run := func(s *stage, list []attack) {
		for i := range list {
			a := &list[i]
			if names[a.name] {
				t.Fatalf("two cases are named %q", a.name)
			}
			names[a.name] = true
			t.Run(a.name, func(t *testing.T) { s.run(t, a) })
		}
	}
	s.props = s.prepare()
	run(s, tokenAttacks())
	run(s, lamportAttacks())
	run(s, bindingAttacks())
	run(s, formAttacks())
	run(s, lifeAttacks())
	run(s, restoredAttacks())

	taxed := c.stage(nil, c.options(c.check(s.props.taxed, token.ExtensionSet(token.TransferFee))))
	taxed.props = s.props
	run(taxed, taxedAttacks())
	taxed.machine.check(t)
	if len(names) < minAttacks {
		t.Errorf("%d cases, want %d at least", len(names), minAttacks)
	}
	t.Logf("%d cases", len(names))
	s.machine.check(t)
	if got := c.atoms(c.thief.addr, c.slusd); got != 0 {
		t.Errorf("%d tokens were delivered", got)
	}
}

// run plays a case and checks all that came of it, twice, and by the watch too.
func (s *stage) run(t *testing.T, a *attack) {
	s.in(t)
	wallet := s.payer.addr
	if a.wallet != nil {
		wallet = a.wallet(s)
	}
	c := s.machine.take(t, wallet, a.rail, rfq.Modular, 1)
	before, booked := s.holdings(s.usdc), s.machine.money()
	s.asked = c
	sig := a.attack(s, c)
	c = s.asked
	v, err := s.verify(sig, c)
	if !errors.Is(err, a.want.err) || err == nil && (wordOf(&v) != a.want.verdict || v.Mismatch != a.want.word) {
		t.Fatalf("%+v (%s), %v", v, v.Refused, err)
	}
	s.audit(t, a, sig, c)
	if a.want.err == nil {
		s.again(t, a, sig, c, &v)
	}
	if a.want.unbooked {
		return
	}
	after, now := s.holdings(s.usdc), s.machine.money()
	for rail := range after {
		came := now[rail] - booked[rail]
		if market.Rail(rail) == a.want.unmatchedOn {
			came += a.want.strayed
		}
		if after[rail]-before[rail] != came {
			t.Errorf("rail %d: %d came, %d are reported", rail, int64(after[rail]-before[rail]), came)
		}
	}
}

// audit checks what the desk and the unmatched payments have of a signature.
func (s *stage) audit(t *testing.T, a *attack, sig solana.Signature, c *rfq.Claim) {
	t.Helper()
	w := &a.want
	now, _, err := s.machine.Claim(c.ID)
	s.must(err)
	var got *rfq.Payment
	for i := range now.Payments {
		if now.Payments[i].Signature == sig {
			got = &now.Payments[i]
		}
	}
	switch {
	case w.state == 0 && got != nil:
		t.Errorf("booked: %+v", *got)
	case w.state != 0 && (got == nil || got.State != w.state || got.Reason != w.why || got.Rail != w.rail || got.Amount != w.amount):
		t.Errorf("booked: %+v", got)
	}
	if got != nil && got.State == rfq.PaymentApplied && got.Payer != c.Wallet {
		t.Errorf("paid by %s", solana.Base58(got.Payer))
	}
	x, ok := s.unmatched(sig)
	switch {
	case ok != (w.unmatchedAs != ""):
		t.Errorf("unmatched: %+v", x)
	case ok && (x.Reason != w.unmatchedAs || x.Rail != w.unmatchedOn || x.Amount != w.strayed || w.unnamed != (x.Claim != c.ID)):
		t.Errorf("unmatched: %+v", x)
	}
	end := w.claim
	if end == 0 {
		end = rfq.ClaimReserved
		if w.verdict == verified && w.state != 0 {
			end = rfq.ClaimPaid
		}
	}
	if now.Claim.State != end {
		t.Errorf("claim in state %d, want %d", now.Claim.State, end)
	}
	s.machine.check(t)
}

// again asks once more, with every detail, and lets the watch look: the answer and
// all that is booked stay as they are.
func (s *stage) again(t *testing.T, a *attack, sig solana.Signature, c *rfq.Claim, first *desk.Verdict) {
	t.Helper()
	full := request(sig, c)
	full.Claim, full.Fill, full.Rail = c.ID, c.Terms.Fill, c.Terms.Rail
	for _, r := range []*desk.PaymentProof{request(sig, c), full} {
		v, err := s.prover.Verify(t.Context(), r)
		if err != nil || v.Refused != first.Refused || v.Mismatch != first.Mismatch || v.Pending != first.Pending {
			if r.Claim == 0 || first.Refused != event.ReasonPaymentUsed {
				t.Errorf("again: %+v, %v", v, err)
			}
		}
	}
	if err := s.prover.examineListed(t.Context(), sig); (err != nil) != (a.want.verdict == pending && first.Claim == nil) {
		t.Errorf("the watch: %v", err)
	}
	s.audit(t, a, sig, c)
}

// in makes the stage report to a subtest.
func (s *stage) in(t *testing.T) {
	outer := s.chain.t
	s.chain.t = t
	t.Cleanup(func() { s.chain.t = outer })
}
