package fixgw

import (
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go/base58"

	"blockdesk/engine/rfq"
	"blockdesk/fixgw/fixclient"
	"blockdesk/fixgw/session/sessiontest"
	"blockdesk/fixgw/wire/wiretest"
	"blockdesk/internal/await"
	"blockdesk/market"
)

// TestQuoteToSettledClaim is the whole conversation, by standard tags alone.
func TestQuoteToSettledClaim(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", nil)
	tk.rfq("r1", "48=T1/T1-1|22=8|54=1|152=250|15=USDC|")
	quote := tk.wantNext("35=S 131=r1 537=1 55=SLUSD/USDC 48=T1/T1-1 22=8 54=1 152=250 15=USDC 133=0.990000000 135=252.525252")
	if quote.Get(62) <= quote.Get(60) {
		t.Errorf("valid until %s, issued at %s", quote.Get(62), quote.Get(60))
	}
	tk.take("c1", quote)
	m := tk.wantNext("35=8 11=c1 150=A 39=A 55=SLUSD/USDC 48=T1/T1-1 54=1 40=D 38=252.525252 152=250 44=0.990000000 15=USDC 151=252.525252 14=0.000000 6=0 58=AWAIT_PAYMENT")
	claim := m.Get(37)
	if m.Get(198) != quote.Get(117) || m.Get(126) <= m.Get(60) {
		t.Errorf("quote %s, deadline %s", m.Get(198), m.Get(126))
	}
	d.pay(claim, 1, 250_000_000)
	tk.wantNext("35=8 11=c1 150=0 39=0 58=PAID 151=252.525252 37=" + claim)
	d.deliver(claim)
	tk.wantNext("35=8 11=c1 150=F 39=2 32=252.525252 31=0.990000000 151=0.000000 14=252.525252 6=0.990000000 58=SETTLED 37=" + claim)
	tk.send("H", "11=c1|55=SLUSD/USDC|54=1|")
	tk.wantNext("35=8 11=c1 150=I 39=2 14=252.525252 37=" + claim)
	tk.wantNoMessage() // a used quote ends without a word
}

// TestQuoteWithoutChainIsIndicative: a quote says whether it could be taken when it was made,
// and for ever. None can be taken while the chain is away.
func TestQuoteWithoutChainIsIndicative(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", nil)
	d.bank.closed.Store(true)
	tk.rfq("r1", "48=T1/T1-1|22=8|54=1|152=250|15=USDC|")
	quote := tk.wantNext("35=S 131=r1 537=0 55=SLUSD/USDC 133=0.990000000")
	tk.take("c1", quote)
	if m := tk.wantNext("35=8 11=c1 150=8 39=8"); !strings.HasPrefix(m.Get(58), "CHAIN_UNAVAILABLE") {
		t.Errorf("58=%s", m.Get(58))
	}
	d.bank.closed.Store(false)
	tk.rfq("r1", "48=T1/T1-1|22=8|54=1|152=250|15=USDC|")
	tk.wantNext("35=S 131=r1 537=0 117=" + quote.Get(117))
	tk.rfq("r2", "")
	tk.wantNext("35=S 131=r2 537=1 48=T1/T1-1")
}

// TestQuoteWithoutChainBeforeFinalize: the same while the group's log cannot record it.
func TestQuoteWithoutChainBeforeFinalize(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK"}, func(o *Options) { o.Format1 = true })
	tk := d.dial("TK", nil)
	d.bank.closed.Store(true)
	tk.rfq("r1", "48=T1/T1-1|22=8|54=1|152=250|15=USDC|")
	tk.wantNext("35=S 131=r1 537=0 55=SLUSD/USDC 133=0.990000000")
	d.bank.closed.Store(false)
	tk.rfq("r2", "")
	tk.wantNext("35=S 131=r2 537=1 48=T1/T1-1")
}

// TestResponseToSettledClaim: the same by AJ, and what is asked about it.
func TestResponseToSettledClaim(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", nil)
	quote := tk.quoted("r1", "")
	tk.send("AJ", "693=a1|117="+quote.Get(117)+"|694=1|55=SLUSD/USDC|")
	first := tk.wantNext("35=8 693=a1 11= 150=A 39=A")
	claim := first.Get(37)
	tk.send("AJ", "693=a1|117="+quote.Get(117)+"|694=1|55=SLUSD/USDC|")
	tk.wantNext("35=8 693=a1 150=A 97=Y 17=" + first.Get(17) + " 37=" + claim)
	tk.send("H", "11=x|37="+claim+"|55=SLUSD/USDC|54=1|")
	tk.wantNext("35=8 693=a1 150=I 39=A 58=AWAIT_PAYMENT 37=" + claim)
	for i, c := range []struct{ msgType, more string }{{"F", ""}, {"G", "40=2|44=1|"}} {
		to := string("12"[i])
		tk.send(c.msgType, "11=f"+to+"|41=a1|37="+claim+"|55=SLUSD/USDC|54=1|38=1|"+c.more+now60)
		tk.wantNext("35=9 11=f" + to + " 41=a1 39=A 102=99 434=" + to + " 37=" + claim)
	}
	// A mass cancel is about orders.
	tk.send("q", "11=q1|530=7|"+now60)
	tk.wantNext("35=r 11=q1 531=7 533=0")
	d.pay(claim, 1, 250_000_000)
	tk.wantNext("35=8 693=a1 150=0 39=0 58=PAID")
	d.deliver(claim)
	tk.wantNext("35=8 693=a1 150=F 39=2")
	tk.send("F", "11=f3|41=x|37="+claim+"|55=SLUSD/USDC|54=1|"+now60)
	tk.wantNext("35=9 11=f3 39=2 102=0 434=1 37=" + claim)
}

// TestQuoteEnds: by its time, by its client, by its ticket, by a lock; and then
// nobody can take it.
func TestQuoteEnds(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK", "MM"}, nil)
	tk, mm := d.dial("TK", nil), d.dial("MM", nil)
	expectEnded := func(id string, quote sessiontest.Message) {
		t.Helper()
		tk.take(id, quote)
		tk.wantNext("35=8 37=NONE 150=8 39=8 103=4 11="+id).Text(t, "CLAIM_EXPIRED: quote_expired: ")
	}
	q := tk.quoted("r1", "")
	tk.send("AJ", "693=p|117="+q.Get(117)+"|694=6|55=SLUSD/USDC|")
	tk.wantNext("35=AI 131=r1 297=11 117=" + q.Get(117))
	expectEnded("c1", q)
	tk.send("AJ", "693=p2|117=Q0000000000001|694=6|55=SLUSD/USDC|")
	tk.wantNext("35=AI 117=Q0000000000001 297=9")
	tk.send("AJ", "693=p3|117="+q.Get(117)+"|694=2|55=SLUSD/USDC|")
	tk.wantNext("35=8 693=p3 150=8 103=11").Text(t, "UNSUPPORTED: QuoteRespType (694)")

	q = tk.quoted("r2", "")
	mm.take("c1", q) // another session's
	mm.wantNext("35=8 11=c1 150=8 103=4")
	d.later(testQuoteTTL)
	tk.wantNext("35=AI 131=r2 297=7 117=" + q.Get(117)) // of r1, which was passed, nothing
	expectEnded("c2", q)

	left := ""
	for i, shut := range []struct {
		by, open rfq.Request
		word     string
	}{
		{&rfq.SetLock{Scope: rfq.LockAll, Locked: true, Reason: "drill"}, &rfq.SetLock{Scope: rfq.LockAll}, "REFUS_DVP: locked: "},
		{&rfq.SetLock{Scope: rfq.LockPair, Instrument: 0, Locked: true}, &rfq.SetLock{Scope: rfq.LockPair}, "REFUS_DVP: locked: "},
		{&rfq.SetLock{Scope: rfq.LockRail, Rail: market.RailUSDC, Locked: true}, &rfq.SetLock{Scope: rfq.LockRail, Rail: market.RailUSDC}, "REFUS_DVP: locked: "},
		{&rfq.WithdrawTicket{Ticket: 1}, nil, "CAPACITY_EXHAUSTED: ticket_withdrawn: "},
	} {
		id := string(rune('a' + i))
		q, sol := tk.quoted("q"+id, ""), tk.quoted("s"+id, "152=250|15=SOL|")
		d.submitDesk(shut.by)
		ends := []string{q.Get(117)}
		if i == 2 { // the other rail is open still
			left = sol.Get(117)
		} else {
			ends = append(ends, sol.Get(117))
		}
		if i == 3 {
			ends = append(ends, left)
		}
		slices.Sort(ends)
		for _, id := range ends {
			tk.wantNext("35=Z 298=1 295=1 55=SLUSD/USDC 48=T1/T1-1 117=" + id)
			tk.wantNext("35=AI 297=6 117="+id).Text(t, shut.word)
		}
		expectEnded("g"+id, q)
		if shut.open != nil {
			d.submitDesk(shut.open)
			expectEnded("h"+id, q) // the first answer stands
		}
	}
	d.later(testQuoteTTL)
	tk.wantNoMessage()
}

// TestClaimEnds: the reports of a claim that is not paid, is paid late, is paid in vain,
// or cannot be delivered.
func TestClaimEnds(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"TK"}, nil)
	tk := d.dial("TK", nil)
	honoured, late := tk.claimed("c1").Get(37), tk.claimed("c2").Get(37)
	d.pay(late, 1, 1) // dust
	tk.wantNext("35=8 11=c2 150=I 39=A").Text(t, "REFUND_DUE: payment_mismatch")
	d.pay(late, 1, 1)
	d.later(testClaimTTL)
	for _, id := range []string{tk.wantNext("35=8 150=C 39=C 151=0.000000 14=0.000000").Get(11), tk.wantNext("35=8 150=C 39=C").Get(11)} {
		if id != "c1" && id != "c2" {
			t.Errorf("%s has expired", id)
		}
	}
	tk.send("F", "11=f|41=c1|55=SLUSD/USDC|54=1|"+now60)
	tk.wantNext("35=9 11=f 41=c1 39=C 102=0")
	await.True(t, "the claims to be in the store alone", func() bool {
		return len(d.handler("TK").quotes.Open(func(market.InstrumentID, market.Side) bool { return true })) == 0
	})
	d.pay(honoured, 2, 250_000_000)
	tk.wantNext("35=8 11=c1 150=0 39=0 151=252.525252").Text(t, "PAID: late")
	tk.send("H", "11=c1|55=SLUSD/USDC|54=1|")
	tk.wantNext("35=8 11=c1 150=I 39=0 151=252.525252 37=" + honoured)
	d.pay(honoured, 3, 250_000_000) // surplus
	tk.wantNext("35=8 11=c1 150=I 39=0").Text(t, "REFUND_DUE: claim_state")
	d.submitDesk(&rfq.AbandonDelivery{Claim: claimID(t, honoured)})
	tk.wantNext("35=8 11=c1 150=4 39=4 151=0.000000").Text(t, "REFUND_DUE: undeliverable")
	d.submitDesk(&rfq.WithdrawTicket{Ticket: 1})
	d.pay(late, 4, 250_000_000)
	tk.wantNext("35=8 11=c2 150=4 39=4").Text(t, "REFUND_DUE: late_payment")
	d.pay(late, 5, 250_000_000)
	tk.wantNext("35=8 11=c2 150=I 39=4").Text(t, "REFUND_DUE: late_payment")
	d.pay(late, 4, 250_000_000) // reported before
	tk.wantNoMessage()
}

// TestCustomFieldsOfQuotes: a session with custom fields gets the values that no standard
// field can carry; the checker validates both kinds of session by their dictionaries.
func TestCustomFieldsOfQuotes(t *testing.T) {
	t.Parallel()
	d := newShop(t, []string{"CF"}, nil)
	k := d.dial("CF", func(o *fixclient.Options) { o.LogonFields = "5600=Y\x01" })
	k.checker = wiretest.CustomChecker()
	payTo, mint := testAccount(201), testAccount(200)
	terms := "5601=250 5602=USDC 5603=100 5604=1.000000000 5605=250.000000 5606=250000000 5611=252525252 5614=50 5607=" +
		base58.Encode(payTo[:]) + " 5608=" + base58.Encode(mint[:])
	quote := k.quoted("r", "")
	quote.Want(t, terms)
	k.take("c", quote)
	m := k.wantNext("35=8 11=c 150=A 5612=reserved " + terms)
	k.send("H", "11=c|55=SLUSD/USDC|54=1|")
	k.wantNext("35=8 11=c 150=I 5612=reserved " + terms)
	d.pay(m.Get(37), 1, 250_000_000)
	k.wantNext("35=8 11=c 150=0 5612=paid")
	sol := k.quoted("sol", "152=250|15=SOL|")
	sol.Want(t, "5602=SOL 5605=2.500000000 5606=2500000000 5608=")
}
