package fixgw

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blockdesk/desk"
	"blockdesk/engine/event"
	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
)

// reportFields are those of a report of a payment for a claim, by tag.
func reportFields(claim sessiontest.Message, id, signature string) map[int]string {
	return map[int]string{
		571: id, 572: claim.Get(37), 818: signature, 570: "N", 55: "SLUSD/USDC", 32: claim.Get(38), 31: claim.Get(44),
		75: "20260101", 60: "20260101-00:00:00", 552: "1", 54: "1", 37: claim.Get(37),
	}
}

// report reports a payment for a claim.
func (k *client) report(claim sessiontest.Message, id, signature string) {
	k.t.Helper()
	k.send("AE", wiretest.PaymentReportBody(reportFields(claim, id, signature)))
}

// acked takes messages up to the next AR.
func (k *client) acked(fields string) sessiontest.Message {
	k.t.Helper()
	return k.await("35=AR " + fields)
}

// TestProof: a payment that is found and final is accepted; the same report again
// is answered the same.
func TestProof(t *testing.T) {
	t.Parallel()
	d, bank := newTillShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", nil)
	claim := tk.claimed("c1")
	signature, text := paidBy(1)
	bank.set(func() { bank.known[signature] = desk.Verdict{} })
	tk.report(claim, "p1", text)
	const accepted = "571=p1 150=F 939=0 751= 58= 55=SLUSD/USDC 97= "
	tk.acked(accepted + "572=" + claim.Get(37) + " 818=" + text)
	tk.report(claim, "p1", text)
	tk.acked(accepted)
	for asked := range bank.proved {
		if want := (desk.PaymentProof{Claim: claimID(t, claim.Get(37)), Ticket: 1, Tranche: 1, Signature: signature}); asked != want {
			t.Errorf("asked %+v, want %+v", asked, want)
		}
	}
}

// TestProofRefused: what the desk says of a payment, in the codes of REST.
func TestProofRefused(t *testing.T) {
	t.Parallel()
	d, bank := newTillShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", nil)
	claim := tk.claimed("c1")
	for i, c := range []struct {
		v    desk.Verdict
		want string
	}{
		{desk.Verdict{Refused: event.ReasonPaymentMismatch, Mismatch: "wrong_mint"}, "PAYMENT_MISMATCH: wrong_mint"},
		{desk.Verdict{Refused: event.ReasonPaymentMismatch, Mismatch: "amount_short"}, "PAYMENT_MISMATCH: amount_short"},
		{desk.Verdict{Refused: event.ReasonPaymentMismatch}, "PAYMENT_MISMATCH: payment_mismatch"},
		{desk.Verdict{Refused: event.ReasonPaymentUsed}, "PAYMENT_ALREADY_USED: payment_used"},
		{desk.Verdict{Refused: event.ReasonLatePayment}, "CLAIM_EXPIRED: late_payment"},
		{desk.Verdict{Refused: event.ReasonClaimState}, "CLAIM_EXPIRED: claim_state"},
		{desk.Verdict{Refused: event.ReasonUndeliverable}, "CLAIM_EXPIRED: undeliverable"},
		{desk.Verdict{Refused: event.ReasonUnknownPayment}, "UNKNOWN_CLAIM: "},
		{desk.Verdict{Refused: event.ReasonLocked}, "REFUS_DVP: locked: "},
	} {
		signature, text := paidBy(byte(i + 1))
		bank.set(func() { bank.known[signature] = c.v })
		id := fmt.Sprint("p", i)
		tk.report(claim, id, text)
		m := tk.acked("939=1 571=" + id)
		m.Text(t, c.want)
		if want := map[bool]string{true: "3", false: "99"}[c.v.Refused == event.ReasonUnknownPayment]; m.Get(751) != want {
			t.Errorf("751=%s, want %s in %s", m.Get(751), want, m)
		}
	}
}

// TestProofForm: malformed reports, and reports with terms that are not their claim's,
// are refused with the exact reason, without a request to the chain.
func TestProofForm(t *testing.T) {
	t.Parallel()
	d, bank := newTillShop(t, []string{"TK", "MM"}, withCopies)
	tk, mm := d.dial("TK", nil), d.dial("MM", nil)
	claim, others := tk.claimed("c1"), mm.claimed("c1")
	_, text := paidBy(1)
	for _, c := range []struct {
		tag    int
		value  string // "" = without the field
		reason string
		want   string
	}{
		{572, "", "99", "MISSING_FIELD: TradeReportRefID (572)"},
		{818, "", "99", "MISSING_FIELD: SecondaryTradeReportID (818)"},
		{55, "", "99", "MISSING_FIELD: Symbol (55)"},
		{818, "abc", "99", `INVALID_FIELD: SecondaryTradeReportID (818) "abc": must be`},
		{818, text[:len(text)-1] + "0", "99", "INVALID_FIELD: SecondaryTradeReportID (818)"},
		{818, strings.Repeat("1", 64), "99", "INVALID_FIELD: SecondaryTradeReportID (818)"},
		{818, strings.Repeat("z", 5000), "99", "INVALID_FIELD: SecondaryTradeReportID (818)"},
		{571, strings.Repeat("x", wire.MaxTradeReportID+1), "99", "INVALID_FIELD: TradeReportID (571): must be 1 to 64"},
		{571, "a\xe9b", "99", "INVALID_FIELD: TradeReportID (571)"},
		{487, "1", "99", `UNSUPPORTED: TradeReportTransType (487) "1": only 0`},
		{856, "6", "99", `UNSUPPORTED: TradeReportType (856) "6": only 0`},
		{150, "4", "99", `UNSUPPORTED: ExecType (150) "4": only F`},
		{572, "C1", "3", "UNKNOWN_CLAIM: "},
		{572, "Q" + claim.Get(37)[1:], "3", "UNKNOWN_CLAIM: "},
		{572, "C0000000000001", "3", "UNKNOWN_CLAIM: "},
		{572, others.Get(37), "3", "UNKNOWN_CLAIM: "},
		{55, "XX/YY", "2", "UNKNOWN_SYMBOL: "},
		{55, "92C/SLUSD", "99", "PAYMENT_MISMATCH: terms_mismatch: Symbol (55)"},
		{32, "252.525253", "99", "PAYMENT_MISMATCH: terms_mismatch: LastQty (32)"},
		{32, "-252.525252", "99", "PAYMENT_MISMATCH: terms_mismatch: LastQty (32)"},
		{31, "0.99000001", "99", "PAYMENT_MISMATCH: terms_mismatch: LastPx (31)"},
		{54, "2", "99", "PAYMENT_MISMATCH: terms_mismatch: Side (54)"},
		{37, "1", "99", "PAYMENT_MISMATCH: terms_mismatch: OrderID (37)"},
	} {
		fields := reportFields(claim, "p1", text)
		if fields[c.tag] = c.value; c.value == "" {
			delete(fields, c.tag)
		}
		tk.send("AE", wiretest.PaymentReportBody(fields))
		m := tk.acked("939=1 751=" + c.reason)
		m.Text(t, c.want)
	}
	// Two sides, which the dictionary takes.
	tk.send("AE", strings.Replace(wiretest.PaymentReportBody(reportFields(claim, "p1", text)), "552=1|", "552=2|54=1|37=x|", 1))
	tk.acked("939=1 571=p1").Text(t, `INVALID_FIELD: NoSides (552) "2": must be 1`)
	// A violation of the dictionary is a session reject.
	for tag, want := range map[int]string{570: "371=570", 60: "371=60", 37: "371=37"} {
		fields := reportFields(claim, "p1", text)
		delete(fields, tag)
		tk.send("AE", wiretest.PaymentReportBody(fields))
		tk.await("35=3").Want(t, want)
	}
	if _, proofs := bank.calls(); proofs != 0 {
		t.Errorf("asked %d times", proofs)
	}
	// Zeros at the end and the participant's other session are all right.
	signature, _ := paidBy(1)
	bank.set(func() { bank.known[signature] = desk.Verdict{} })
	fields := reportFields(claim, "p2", text)
	fields[31], fields[32], fields[487], fields[856], fields[150], fields[570] = "00.99", "252.5252520000", "0", "0", "F", "Y"
	tkc := d.dial("TKC", func(o *fixclient.Options) { o.Username = "tk" })
	tkc.send("AE", wiretest.PaymentReportBody(fields))
	tkc.acked("939=0 571=p2 572=" + claim.Get(37))
}

// TestProofWaits: a payment that is not final is looked for again and again, up to
// a limit; so it is while the chain is away. The session goes on meanwhile.
func TestProofWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, bank := newTillShop(t, []string{"TK"}, func(o *Options) { o.ProofTimeout = 400 * time.Millisecond })
		tk := d.dial("TK", nil)
		claim := tk.claimed("c1")
		signature, text := paidBy(1)
		tk.report(claim, "p1", text)
		await.True(t, "a look at the payment", func() bool { _, n := bank.calls(); return n > 1 })
		bank.set(func() { bank.known[signature] = desk.Verdict{} })
		tk.acked("939=0 571=p1")

		_, text = paidBy(2)
		start := time.Now()
		tk.report(claim, "p2", text)
		tk.acked("939=1 751=99 571=p2").Text(t, "PENDING_TIMEOUT: the payment is not final after 400ms")
		if took := time.Since(start); took != d.options.ProofTimeout {
			t.Errorf("given up after %s", took)
		}
		bank.set(func() { bank.away = errAway })
		tk.report(claim, "p3", text)
		m := tk.acked("939=1 751=99 571=p3")
		m.Text(t, "CHAIN_UNAVAILABLE: ")
		if strings.Contains(m.String(), "10.0.0.1") {
			t.Errorf("an error goes out: %s", m)
		}
		full, word := paidBy(3)
		bank.set(func() { bank.away, bank.known[full] = nil, desk.Verdict{Refused: event.ReasonDeskFull} })
		tk.report(claim, "p4", word)
		tk.acked("939=1 571=p4").Text(t, "OVERLOADED: desk_full")

		// A chain that does not answer blocks no session.
		held := make(chan struct{})
		bank.set(func() { bank.held = held })
		tk.report(claim, "p5", text)
		for i := range 3 {
			tk.send("H", fmt.Sprintf("11=h%d|37=%s|55=SLUSD/USDC|54=1|", i, claim.Get(37)))
			tk.await("35=8 150=I")
		}
		bank.set(func() { bank.held = nil })
		close(held)
		tk.acked("939=1 571=p5")
	})
}

// TestProofWithoutChain: where none is configured the answer is at once.
func TestProofWithoutChain(t *testing.T) {
	t.Parallel()
	d, _ := newTillShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", nil)
	claim := tk.claimed("c1")
	d.stop()
	d.start()
	d.gateway.quoteEntry.Settlement = nil
	tk = d.dial("TK", nil)
	_, text := paidBy(1)
	tk.report(claim, "p1", text)
	tk.acked("939=1 571=p1").Text(t, "CHAIN_UNAVAILABLE: ")
}

// TestProofLimits: what waits is bounded for a session and in all, a repetition is
// answered by the answer that is on its way, and an id means one report.
func TestProofLimits(t *testing.T) {
	t.Parallel()
	d, bank := newTillShop(t, []string{"TK", "MM"}, func(o *Options) { o.MaxSessionProofs, o.MaxProofs = 3, 5 })
	tk, mm := d.dial("TK", nil), d.dial("MM", nil)
	claim, others := tk.claimed("c1"), mm.claimed("c1")
	for n := range byte(3) {
		_, text := paidBy(n)
		tk.report(claim, fmt.Sprint("p", n), text)
	}
	await.Equal(t, "reports of payments that wait", 3, d.gateway.payments.Waiting)
	_, text := paidBy(1)
	tk.report(claim, "p1", text)
	d.awaitStats("1 duplicates", func(s Stats) bool { return s.Duplicates == 1 })
	_, text = paidBy(9)
	tk.report(claim, "p1", text)
	tk.acked("939=1 571=p1").Text(t, "INVALID_FIELD: TradeReportID (571)")
	tk.report(claim, "p3", text)
	tk.acked("939=1 571=p3").Text(t, "OVERLOADED: 3 reports of this session")
	for n := range byte(2) {
		_, text := paidBy(10 + n)
		mm.report(others, fmt.Sprint("q", n), text)
	}
	await.Equal(t, "reports of payments that wait", 5, d.gateway.payments.Waiting)
	mm.report(others, "q2", text)
	mm.acked("939=1 571=q2").Text(t, "OVERLOADED: 5 reports wait")
	bank.set(func() {
		for _, n := range []byte{0, 1, 2, 10, 11} {
			signature, _ := paidBy(n)
			bank.known[signature] = desk.Verdict{}
		}
	})
	got := map[string]bool{}
	for range 3 {
		got[tk.acked("939=0").Get(571)] = true
	}
	if !got["p0"] || !got["p1"] || !got["p2"] {
		t.Errorf("answered: %v", got)
	}
	mm.acked("939=0")
	mm.acked("939=0")
	await.Equal(t, "reports of payments that wait", 0, d.gateway.payments.Waiting)
	tk.none()
}

// TestProofOverRestarts: a report that waits is answered by the next run, also
// while its client is away.
func TestProofOverRestarts(t *testing.T) {
	t.Parallel()
	d, bank := newTillShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", keep(1, 1))
	claim := tk.claimed("c1")
	signature, text := paidBy(1)
	tk.report(claim, "p1", text)
	await.True(t, "a look at the payment", func() bool { _, n := bank.calls(); return n > 0 })
	sender, target := tk.leave()
	d.stop()
	bank.set(func() { bank.known[signature] = desk.Verdict{} })
	d.start()
	await.Equal(t, "reports of payments that wait", 0, d.gateway.payments.Waiting)
	tk = d.dial("TK", keep(sender, target))
	tk.acked("939=0 571=p1 97=Y 43=Y")
	sender, target = tk.leave()
	d.stop()
	d.start() // and not once more
	tk = d.dial("TK", keep(sender, target))
	tk.none()
}

// TestProofCrash: wherever a crash comes, a report that the gateway has taken is
// answered, and one that is reported again says the same.
func TestProofCrash(t *testing.T) {
	t.Parallel()
	d, bank := newTillShop(t, []string{"TK"}, nil)
	r := rand.New(rand.NewPCG(9, 9))
	tk := d.dial("TK", keep(1, 1))
	claim := tk.claimed("c1")
	// That the claim is there is not what this is about.
	if err := d.store.Commit(func(func(key, value []byte), func(lo, hi []byte)) {}, true); err != nil {
		t.Fatal(err)
	}
	const reports = 20
	texts, answered := map[string]string{}, map[string]string{}
	for n := range byte(reports) {
		signature, text := paidBy(n)
		texts[fmt.Sprint("p", n)] = text
		bank.set(func() {
			if bank.known[signature] = (desk.Verdict{}); n%3 == 0 {
				bank.known[signature] = desk.Verdict{Refused: event.ReasonPaymentUsed}
			}
		})
	}
	note := func(m sessiontest.Message) {
		if m.Get(35) != "AR" {
			return
		}
		id, text := m.Get(571), m.Pick(572, 818, 939, 58)
		if was, ok := answered[id]; ok && was != text {
			t.Errorf("%s, before it was %s", m, was)
		}
		answered[id] = text
	}
	before := tk.got.Load() // messages when the last five reports began
	for sent := range reports {
		tk.report(claim, fmt.Sprint("p", sent), texts[fmt.Sprint("p", sent)])
		if sent%5 != 4 {
			continue
		}
		tk.awaitMessages(before, r.IntN(6))
		crashed := d.crash(r)
		tk.c.Close()
		<-tk.done
		for len(tk.in) > 0 {
			note(<-tk.in)
		}
		sender, target := tk.c.NextSequence()
		d.store = crashed
		d.start()
		tk = d.dial("TK", keep(sender, target))
		before = tk.got.Load()
		for n := range sent + 1 { // the gateway may never have had them
			if id := fmt.Sprint("p", n); answered[id] == "" {
				tk.report(claim, id, texts[id])
			}
		}
	}
	for len(answered) < reports {
		note(tk.next())
	}
}
